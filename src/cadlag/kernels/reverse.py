"""Reverse mode of the deep recursion: gradients by all scales from the derivative by each pair of correlations.

With pair adjoints c̄ of cos θ, `Q_k = Σ_h c̄_kh c_kh` and `E_k = Σ_h c̄_kh b_h`, one layer pulls back as

    ρ̄ = g_k g_h c̄,   ū_k = ½(b_k² Q_k - b_k E_k) + δ g_k² (adjoint of log Σ'_kk),   dℓ/d log c = Σ_k ū_k,

and the first layer gives `dℓ/d log w_j = Σ_{k>h} c̄ û_kj û_hj + Σ_k û_kj² (δ Ā_k - ½ Q_k)`. Cosines are recomputed row
by row, so that nothing but the matrix of adjoints itself is n×n. At δ = 0 the adjoints are those of log θ:

    d log θ/d log w_j = [(Δû_j)² - q(û_kj² + û_hj²)] / (2 θ sin θ),   q = 1 - cos θ,

which stays finite as θ → 0; identical rows contribute nothing. Moving all inputs by one vector, x_k ← x_k + t, adds

    dc_kh/dt_j = √w_j [n_k (û_hj - c û_kj) + n_h (û_kj - c û_hj)],   n = 1/√A,

which is `dℓ/dt_j = (√w_j/β) Σ_k û_kj [E_k + û_k0 (2δ Ā_k - Q_k)]`, û_k0 = β n_k the bias; at δ = 0 it comes from
differences, `(n_k ∓ n_h)(û_hj ∓ û_kj) ± q(n_k û_kj + n_h û_hj)`, the lower signs where θ is obtuse.
"""

import math

import numpy as np
from numba import njit

from cadlag.kernels.arc_cosine import SUMS, Array, activate_with_slope
from cadlag.kernels.recursion import Layers, angle_rows, deepen_angles, dot_rows, map_row

Adjoint = Array | tuple[Array, Array]

# Helpers are written into their callers: as functions of their own, whose sums may be reordered, they have been seen to
# give other bits when freshly compiled than when read from the cache, so that draws depended on the worker.
_HELPER = {"inline": "always", **SUMS}


@njit(**_HELPER)
def pull_row(
    k: int, adjoint: Array, slope: Array, scale: Array, cosine: Array, b: Array, q_sum: Array, e_sum: Array
) -> None:
    """adjoint <- adjoint·scale_k scale_h·ρ'; add Q_k = Σ_h c̄ c and E_k = Σ_h c̄ b_h on both sides of each pair."""
    b_k, scale_k = b[k], scale[k]
    q_k = 0.0
    e_k = 0.0
    for h in range(k):
        pulled = adjoint[h] * slope[h] * (scale_k * scale[h])
        adjoint[h] = pulled
        weighted = pulled * cosine[h]
        q_k += weighted
        e_k += pulled * b[h]
        q_sum[h] += weighted
        e_sum[h] += pulled * b_k
    q_sum[k] += q_k
    e_sum[k] += e_k


@njit(**_HELPER)
def add_products(k: int, adjoint: Array, unit: Array, total: Array) -> None:
    """total_j += û_kj Σ_{h<k} c̄_kh û_hj."""
    p = unit.shape[0]
    j = 1
    while j + 2 <= p:
        r0, r1 = unit[j], unit[j + 1]
        s0, s1 = 0.0, 0.0
        for h in range(k):
            s0 += adjoint[h] * r0[h]
            s1 += adjoint[h] * r1[h]
        total[j - 1] += r0[k] * s0
        total[j] += r1[k] * s1
        j += 2
    if j < p:
        r0 = unit[j]
        s0 = 0.0
        for h in range(k):
            s0 += adjoint[h] * r0[h]
        total[j - 1] += r0[k] * s0


@njit(**_HELPER)
def _reverse_smooth(
    order: int, unit: Array, b: Array, g: Array, weight: Array, adjoint: Array, total: Array, q_sum: Array, e_sum: Array
) -> None:
    """Pull the pair adjoints of w_k w_h ρ back through all layers, one row at a time, recomputing the row's cosines."""
    n, depth = unit.shape[1], b.shape[0]
    cosine, slope = np.empty((depth + 1, n)), np.empty((depth + 1, n))
    rho = np.empty(n)
    for k in range(n):
        dot_rows(unit[:, k], unit, k, cosine[0])
        for layer in range(depth):
            activate_with_slope(order, cosine[layer], rho, slope[layer], k)
            map_row(b[layer, k], g[layer, k], b[layer], g[layer], rho, cosine[layer + 1], k)
        activate_with_slope(order, cosine[depth], rho, slope[depth], k)
        row, scale = adjoint[k], weight
        for layer in range(depth, 0, -1):
            pull_row(k, row, slope[layer], scale, cosine[layer], b[layer - 1], q_sum[layer], e_sum[layer])
            scale = g[layer - 1]
        pull_row(k, row, slope[0], scale, cosine[0], unit[0], q_sum[0], e_sum[0])
        add_products(k, row, unit, total)


@njit(**_HELPER)
def _reverse_diagonals(
    order: int, unit: Array, b: Array, g: Array, q_sum: Array, e_sum: Array, u_adjoint: Array, total: Array,
    by_scale: Array, moved: Array,
) -> None:  # fmt: skip
    """From the last layer down; `u_adjoint`, that of log Σ_K, is overwritten."""
    p, n = unit.shape
    depth = b.shape[0]
    for layer in range(depth - 1, -1, -1):
        for k in range(n):
            b_k, g_k = b[layer, k], g[layer, k]
            pulled = 0.5 * (b_k * b_k * q_sum[layer + 1, k] - b_k * e_sum[layer + 1, k])
            u_adjoint[k] = pulled + order * g_k * g_k * u_adjoint[k]
            by_scale[layer] += u_adjoint[k]
    for j in range(1, p):
        for k in range(n):
            total[j - 1] += unit[j, k] * unit[j, k] * (order * u_adjoint[k] - 0.5 * q_sum[0, k])
    for j in range(len(moved)):
        for k in range(n):
            moved[j] += unit[j + 1, k] * (e_sum[0, k] + unit[0, k] * (2.0 * order * u_adjoint[k] - q_sum[0, k]))


@njit(**SUMS)
def _reverse_all(
    order: int, unit: Array, b: Array, g: Array, weight: Array, adjoint: Array, carried: Array, total: Array,
    by_scale: Array, moved: Array,
) -> None:  # fmt: skip
    """The pairs first, then the diagonals."""
    n, depth = unit.shape[1], b.shape[0]
    q_sum, e_sum = np.zeros((depth + 1, n)), np.zeros((depth + 1, n))
    _reverse_smooth(order, unit, b, g, weight, adjoint, total, q_sum, e_sum)
    _reverse_diagonals(order, unit, b, g, q_sum, e_sum, carried.copy(), total, by_scale, moved)


@njit(**SUMS)
def _reverse_sums(
    order: int, unit: Array, b: Array, g: Array, q_sum: Array, e_sum: Array, carried: Array, total: Array,
    by_scale: Array,
) -> None:  # fmt: skip
    """The diagonals alone."""
    _reverse_diagonals(order, unit, b, g, q_sum, e_sum, carried.copy(), total, by_scale, np.empty(0))


@njit(**_HELPER)
def _pull_angles(g2: float, before: Array, here: Array, row: Array, stop: int) -> float:
    """d log θ' = q/(θ' sin θ') d log q with q = g² θ/π."""
    pulled = 0.0
    for h in range(stop):
        q = g2 * before[h] * (1.0 / math.pi)
        row[h] = row[h] * q / (here[h] * math.sin(here[h])) if here[h] > 0.0 else 0.0
        pulled += row[h]
    return pulled


@njit(**_HELPER)
def _pull_first_angles(k: int, theta: Array, acute: Array, row: Array, versine: Array, sign: Array) -> None:
    """row <- ±adjoint/(2 θ sin θ), - where θ is obtuse; versine_k += Σ_h row (1 - |cos θ|), on both sides."""
    v_k = 0.0
    for h in range(k):
        sign[h] = 1.0 if theta[h] == acute[h] else -1.0
        sine, half = math.sin(acute[h]), math.sin(0.5 * acute[h])
        row[h] = sign[h] * row[h] / (2.0 * theta[h] * sine) if sine > 0.0 else 0.0
        weighted = row[h] * 2.0 * half * half
        versine[h] += weighted
        v_k += weighted
    versine[k] += v_k


@njit(**_HELPER)
def _add_square_differences(
    k: int, row: Array, unit: Array, inputs: Array, roots: Array, norm: Array, sign: Array, gap: Array, total: Array
) -> None:
    """total_j += Σ_h row (û_kj ∓ û_hj)², û_h turned round where θ is obtuse, from differences of inputs."""
    p = unit.shape[0] - 1
    for h in range(k):
        gap[h] = 0.0
    for j in range(p):
        scale, x, others = roots[j], inputs[j, k], inputs[j]
        for h in range(k):
            gap[h] += (scale * (others[h] - x)) * (scale * (others[h] + x))
    for h in range(k):
        gap[h] *= norm[k] * norm[k] * norm[h] / (norm[k] + norm[h])
    for j in range(p):
        scale, x, others, column = roots[j] * norm[k], inputs[j, k], inputs[j], unit[j + 1]
        s = 0.0
        for h in range(k):
            d = sign[h] * column[h] * gap[h] - scale * (sign[h] * others[h] - x)
            s += row[h] * d * d
        total[j] += s


@njit(**_HELPER)
def _add_moves(
    k: int, row: Array, unit: Array, inputs: Array, roots: Array, norm: Array, sign: Array, gap: Array, moved: Array
) -> None:
    """moved_j += 2 Σ_h row (n_k ∓ n_h)(û_kj ∓ û_hj), with gap = (n_k - n_h)/n_h."""
    for j in range(len(moved)):
        scale, x, others, column = roots[j] * norm[k], inputs[j, k], inputs[j], unit[j + 1]
        s = 0.0
        for h in range(k):
            d = sign[h] * column[h] * gap[h] - scale * (sign[h] * others[h] - x)
            s += row[h] * d * (gap[h] * norm[h] if sign[h] > 0.0 else norm[k] + norm[h])
        moved[j] += 2.0 * s


@njit(**_HELPER)
def pull_step_row(
    k: int, row: Array, unit: Array, inputs: Array, roots: Array, norm: Array, g: Array, weight: Array, theta: Array,
    work: Array, versine: Array, total: Array, log_q: Array, moved: Array,
) -> None:  # fmt: skip
    """Pull the pair adjoints of one row back through all layers at δ = 0, recomputing its angles."""
    depth = g.shape[0]
    angle_rows(inputs[:, k], norm[k], inputs, roots, norm, k, theta[0], work)
    for layer in range(depth):
        theta[layer + 1, :k] = theta[layer, :k]
        deepen_angles(g[layer, k] * g[layer, k], theta[layer + 1], k)
    w, last = weight[k], theta[depth]
    for h in range(k):
        row[h] *= -w * weight[h] * last[h] * (1.0 / math.pi)
    for layer in range(depth, 0, -1):
        log_q[layer] += _pull_angles(g[layer - 1, k] ** 2, theta[layer - 1], theta[layer], row, k)
    _pull_first_angles(k, theta[0], work[0], row, versine, work[1])
    _add_square_differences(k, row, unit, inputs, roots, norm, work[1], work[2], total)
    _add_moves(k, row, unit, inputs, roots, norm, work[1], work[2], moved)


@njit(**SUMS)
def _reverse_step(
    unit: Array, inputs: Array, roots: Array, norm: Array, g: Array, weight: Array, adjoint: Array, total: Array,
    log_q: Array, moved: Array,
) -> None:  # fmt: skip
    n, depth = unit.shape[1], g.shape[0]
    work, theta, versine = np.empty((4, n)), np.empty((depth + 1, n)), np.zeros(n)
    for k in range(n):
        pull_step_row(
            k, adjoint[k], unit, inputs, roots, norm, g, weight, theta, work, versine, total, log_q, moved
        )  # fmt: skip
    for j in range(len(total)):
        total[j] -= np.sum(unit[j + 1] * unit[j + 1] * versine)
    for j in range(len(moved)):
        moved[j] -= 2.0 * np.sum(unit[j + 1] * norm * versine)


def reverse(
    points: Layers, weight: Array, adjoint: Adjoint, log_variance_adjoint: Array, moved: Array | None = None
) -> tuple[Array, Array]:
    """Reverse mode: the gradient with respect to `log_weights` and `log_scales` of :func:`layers`.

    `adjoint` holds the derivatives by the pairs and is overwritten, or what `LocalPairs.pull` has left of them: sums
    for each row, and totals.
    """
    if isinstance(adjoint, tuple):
        return _reverse_pulled(points, *adjoint, log_variance_adjoint)
    p, depth = points.unit.shape[0] - 1, points.b.shape[0]
    total, by_shift = np.zeros(p), np.empty(0) if moved is None else moved
    if points.order == 0:
        log_q = np.zeros(depth + 1)
        _reverse_step(
            points.unit, points.inputs, points.roots, points.inverse_norm, points.g, weight, adjoint, total, log_q,
            by_shift,
        )  # fmt: skip
        by_shift *= points.roots[: len(by_shift)]
        return total, log_q[1:] * (points.b[:, 0] ** 2 if depth else 1.0)
    by_scale = np.zeros(depth)
    _reverse_all(
        points.order, points.unit, points.b, points.g, weight, adjoint, log_variance_adjoint, total, by_scale, by_shift
    )
    by_shift *= points.roots[: len(by_shift)] / points.roots[p]
    return total, by_scale


def _reverse_pulled(points: Layers, sums: Array, totals: Array, log_variance_adjoint: Array) -> tuple[Array, Array]:
    """The diagonals, after the pairs."""
    p, depth = points.unit.shape[0] - 1, points.b.shape[0]
    total, by_scale = totals[:p].copy(), np.zeros(depth)
    if points.order == 0:
        total -= (points.unit[1:] ** 2 * sums[0]).sum(axis=1)
        return total, totals[p + 1 :] * (points.b[:, 0] ** 2 if depth else 1.0)
    _reverse_sums(
        points.order, points.unit, points.b, points.g, sums[: depth + 1], sums[depth + 1 :], log_variance_adjoint,
        total, by_scale,
    )  # fmt: skip
    return total, by_scale
