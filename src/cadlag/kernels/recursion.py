"""Σ_k = F_δ(11ᵀ + c_k Σ_{k-1}), k = 1..K, from Σ_0 = X̃ S X̃ᵀ / d₁: the deep arc-cosine recursion and its reverse mode.

Everything is carried in normalised form: nothing overflows at any order or depth. With `u_k = log c + log Σ_kk`,
`g² = sigmoid(u)`, `b² = 1 - g²` and ρ the correlations of Σ_{k-1}, one layer is

    cos θ_kh = b_k b_h + g_k g_h ρ_kh,   ρ'_kh = J_δ(θ_kh) / J_δ(0),   log Σ'_kk = log (2δ-1)!! + δ log(1 + e^u_k).

The first cosine is the inner product of the unit vectors (1, √w∘x)/√A, `w_j = c_1 s_j / d₁`, `A = 1 + Σ w_j x_j²`.
For δ ≥ 1 an error ε in cos θ costs ε in ρ', so inner products suffice; ρ' = 1 - θ/π at δ = 0 feels θ itself, so there
θ comes from differences of inputs, and deeper layers use `1 - cos θ' = g² θ/π`, which has no subtraction.

References: Cho & Saul (2009), "Kernel methods for deep learning"; Loría & Bhadra (2025), Theorem 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from cadlag.kernels.arc_cosine import EXACT, SUMS, Array, activate_row, poly_t


@dataclass(frozen=True)
class Layers:
    """What one set of inputs contributes to every kernel entry, at given scales.

    Attributes
    ----------
    order
        The order δ of the activation.
    unit
        First-layer unit vectors (1, √w∘x)/√A as columns, the bias in the first row: (p+1, n).
    inputs
        The inputs as rows, (p, n), for differences at δ = 0; empty otherwise.
    roots
        √w, and last the bias, all divided by one common factor: (p+1,).
    inverse_norm
        1/√A under that common factor.
    b
        √(1 / (1 + c_k Σ_{k-1})) for the layers k = 2..K: (K-1, n).
    g
        √(c_k Σ_{k-1} / (1 + c_k Σ_{k-1})), likewise.
    log_variance
        log of the diagonal of Σ_K.
    """

    order: int
    unit: Array
    inputs: Array
    roots: Array
    inverse_norm: Array
    b: Array
    g: Array
    log_variance: Array


def _log_double_factorial(order: int) -> float:
    """log (2δ-1)!!, the diagonal of F_δ at unit variance."""
    return math.lgamma(2 * order + 1) - order * math.log(2.0) - math.lgamma(order + 1)


@njit(**EXACT)
def _carry(
    X: Array, log_weights: Array, log_scales: Array, order: int, constant: float
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    n, p = X.shape
    largest = 0.0
    for j in range(p):
        largest = max(largest, 0.5 * log_weights[j])
    roots, unit = np.empty(p + 1), np.empty((p + 1, n))
    roots[p] = math.exp(-largest)
    norm2, inverse_norm = np.full(n, roots[p] * roots[p]), np.empty(n)
    for j in range(p):
        roots[j] = math.exp(0.5 * log_weights[j] - largest)
        for k in range(n):
            unit[j + 1, k] = roots[j] * X[k, j]
            norm2[k] += unit[j + 1, k] * unit[j + 1, k]
    log_variance = np.empty(n)
    for k in range(n):
        inverse_norm[k] = 1.0 / math.sqrt(norm2[k])
        log_variance[k] = constant + order * (math.log(norm2[k]) + 2.0 * largest)
    for k in range(n):
        unit[0, k] = roots[p] * inverse_norm[k]
    for j in range(p):
        for k in range(n):
            unit[j + 1, k] *= inverse_norm[k]
    inputs = X.T.copy() if order == 0 else np.empty((0, 0))
    b, g = np.empty((len(log_scales), n)), np.empty((len(log_scales), n))
    for layer in range(len(log_scales)):
        for k in range(n):
            u = log_scales[layer] + log_variance[k]
            softplus = max(u, 0.0) + math.log1p(math.exp(-abs(u)))
            b[layer, k] = math.exp(-0.5 * softplus)
            g[layer, k] = math.exp(0.5 * (u - softplus))
            log_variance[k] = constant + order * softplus
    return unit, inputs, roots, inverse_norm, b, g, log_variance


def layers(X: Array, log_weights: Array, log_scales: Array, order: int) -> Layers:
    """Carry the diagonal of the recursion for one set of inputs."""
    log_weights, log_scales = np.asarray(log_weights, dtype=float), np.asarray(log_scales, dtype=float)
    return Layers(order, *_carry(X, log_weights, log_scales, order, _log_double_factorial(order)))


@njit(**SUMS)
def dot_rows(column: Array, unit: Array, stop: int, out: Array) -> None:
    """cos θ of one input with the first `stop` others, four coordinates at a time."""
    p = unit.shape[0]
    first = column[0]
    row = unit[0]
    for h in range(stop):
        out[h] = first * row[h]
    j = 1
    while j + 4 <= p:
        a0, a1, a2, a3 = column[j], column[j + 1], column[j + 2], column[j + 3]
        r0, r1, r2, r3 = unit[j], unit[j + 1], unit[j + 2], unit[j + 3]
        for h in range(stop):
            out[h] += (a0 * r0[h] + a1 * r1[h]) + (a2 * r2[h] + a3 * r3[h])
        j += 4
    while j < p:
        a0 = column[j]
        r0 = unit[j]
        for h in range(stop):
            out[h] += a0 * r0[h]
        j += 1


@njit(**EXACT)
def angle_rows(
    column: Array, scale: float, inputs: Array, roots: Array, inverse_norm: Array, stop: int, out: Array, work: Array
) -> None:
    """θ of one input with the first `stop` others from differences: N² = β²|d|² + |u|²|d - κu|², sin θ = N/√(AB)."""
    p = len(column)
    bias2 = roots[p] * roots[p]
    dd, ud, ee, cc = work[0], work[1], work[2], work[3]
    uu = 0.0
    for j in range(p):
        uu += (roots[j] * column[j]) ** 2
    inverse = 1.0 / uu if uu > 0.0 else 0.0
    for h in range(stop):
        dd[h] = 0.0
        ud[h] = 0.0
        ee[h] = 0.0
        cc[h] = bias2
    for j in range(p):
        x, row, a = column[j], inputs[j], roots[j]
        u = a * x
        for h in range(stop):
            d = a * (row[h] - x)
            dd[h] += d * d
            ud[h] += u * d
            cc[h] += u * (a * row[h])
    if p > 1:
        for j in range(p):
            x, row, a = column[j], inputs[j], roots[j]
            u = a * x
            for h in range(stop):
                e = a * (row[h] - x) - (ud[h] * inverse) * u
                ee[h] += e * e
    for h in range(stop):
        r = scale * inverse_norm[h]
        c = cc[h] * r
        sine2 = (bias2 * dd[h] + uu * ee[h]) * r * r
        q = min(sine2 / (1.0 + abs(c)), 1.0)
        t = math.sqrt(q) * poly_t(q)
        out[h] = t if c > 0.0 else math.pi - t
        dd[h] = t  # for the reverse mode: the acute angle, which π - θ would round away


@njit(**SUMS)
def map_row(b_k: float, g_k: float, b: Array, g: Array, rho: Array, cosine: Array, stop: int) -> None:
    """One layer: cos θ = b_k b_h + g_k g_h ρ_kh."""
    for h in range(stop):
        cosine[h] = b_k * b[h] + g_k * g[h] * rho[h]


@njit(**EXACT)
def deepen_angles(g2: float, theta: Array, stop: int) -> None:
    """δ = 0: θ' from 1 - cos θ' = g² θ/π, without subtraction."""
    factor = g2 / math.pi
    for h in range(stop):
        q = min(factor * theta[h], 1.0)
        theta[h] = math.sqrt(q) * poly_t(q)


@njit(**SUMS)
def _row(
    order: int, k: int, stop: int, unit_k: Array, inputs_k: Array, norm_k: Array, b_k: Array, g_k: Array,
    unit: Array, inputs: Array, roots: Array, norm: Array, b: Array, g: Array, work: Array, rho: Array,
) -> None:  # fmt: skip
    """Correlations of Σ_K between input k of one set and the first `stop` inputs of another."""
    depth = b.shape[0]
    if order == 0:
        angle_rows(inputs_k[:, k], norm_k[k], inputs, roots, norm, stop, rho, work)
        for layer in range(depth):
            deepen_angles(g_k[layer, k] * g_k[layer, k], rho, stop)
        for h in range(stop):
            rho[h] = 1.0 - rho[h] * (1.0 / math.pi)
        return
    cosine = work[0]
    dot_rows(unit_k[:, k], unit, stop, cosine)
    activate_row(order, cosine, rho, stop)
    for layer in range(depth):
        map_row(b_k[layer, k], g_k[layer, k], b[layer], g[layer], rho, cosine, stop)
        activate_row(order, cosine, rho, stop)


@njit(**SUMS)
def _fill_lower(
    order: int, unit: Array, inputs: Array, roots: Array, norm: Array, b: Array, g: Array, weight: Array, out: Array
) -> None:
    n = unit.shape[1]
    work = np.empty((4, n))
    rho = np.empty(n)
    for k in range(n):
        _row(order, k, k, unit, inputs, norm, b, g, unit, inputs, roots, norm, b, g, work, rho)
        row = out[k]
        w = weight[k]
        for h in range(k):
            row[h] = w * weight[h] * rho[h]
        row[k] = 1.0


@njit(**SUMS)
def _fill_cross(
    order: int, unit1: Array, inputs1: Array, norm1: Array, b1: Array, g1: Array,
    unit: Array, inputs: Array, roots: Array, norm: Array, b: Array, g: Array, out: Array,
) -> None:  # fmt: skip
    n = unit.shape[1]
    work = np.empty((4, n))
    for k in range(unit1.shape[1]):
        _row(order, k, n, unit1, inputs1, norm1, b1, g1, unit, inputs, roots, norm, b, g, work, out[k])


def correlations(points: Layers, weight: Array, out: Array | None = None) -> Array:
    """Lower triangle of w_k w_h ρ_kh, unit diagonal: the correlations of y when w² is the share of Σ_K in it."""
    n = points.unit.shape[1]
    out = np.zeros((n, n)) if out is None else out
    _fill_lower(
        points.order, points.unit, points.inputs, points.roots, points.inverse_norm, points.b, points.g, weight, out
    )
    return out


def cross_correlations(rows: Layers, columns: Layers) -> Array:
    """Correlations of Σ_K between two sets of inputs at the same scales."""
    out = np.empty((rows.unit.shape[1], columns.unit.shape[1]))
    _fill_cross(
        rows.order, rows.unit, rows.inputs, rows.inverse_norm, rows.b, rows.g,
        columns.unit, columns.inputs, columns.roots, columns.inverse_norm, columns.b, columns.g, out,
    )  # fmt: skip
    return out
