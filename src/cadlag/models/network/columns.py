"""K = vA⁻² + ΦᵀΦ, C = K⁻¹, P = ΦC, e = y - PΦᵀy: what one column more or less changes, in O(nM).

Unit j contributes the column φ_j(x) = sgn(w_j·x̃), or κ max(w_j·x̃, 0) with κ such that both kinds have the same mean
square under the prior; row i of everything is multiplied by its weight ω_i. A unit that has been taken out keeps its
column in Φ, with zeros in C and P.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cadlag.low_rank import log_marginal_of_sums, precision_of_sums

Array = NDArray[np.float64]

SIGN, RELU = 0, 1
COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**COMPILED)
def from_log(log_variance: Any) -> Any:
    """The variance, kept within 1e±100: beyond that no data tell variances apart."""
    return np.exp(np.minimum(np.maximum(log_variance, -230.0), 230.0))


@njit(**COMPILED)
def fill_column(X: Array, omega: Array, direction: Array, kind: int, relu_scale: float, out: Array) -> None:
    """One unit at every row."""
    n, q = X.shape
    for i in range(n):
        z = 0.0
        for k in range(q):
            z += X[i, k] * direction[k]
        if kind == SIGN:
            out[i] = omega[i] if z >= 0.0 else -omega[i]
        else:
            out[i] = omega[i] * relu_scale * z if z > 0.0 else 0.0


@njit(**COMPILED)
def explain(
    Phi: Array, y: Array, gram: Array, products: Array, square: float, variances: Array, noise: float
) -> tuple[Array, Array, Array]:
    """P, C and the residual, afresh."""
    (n, m), factor = Phi.shape, log_marginal_of_sums(gram, products, square, len(y), variances, noise)[1]
    C = precision_of_sums(factor, variances, noise)
    P, residual = np.zeros((n, m)), y.copy()
    for i in range(n):
        for j in range(m):
            for k in range(m):
                P[i, k] += Phi[i, j] * C[j, k]
        for k in range(m):
            residual[i] -= P[i, k] * products[k]
    return P, C, residual


@njit(**COMPILED)
def take_out(j: int, P: Array, C: Array, residual: Array, y: Array) -> None:
    """Remove unit j: C, P and the residual become those of the other units."""
    n, m = P.shape
    pivot = C[j, j]
    if pivot <= 0.0:
        return
    ratio = np.empty(m)
    for k in range(m):
        ratio[k] = C[k, j] / pivot
    mean = 0.0
    for i in range(n):
        mean += P[i, j] * y[i]
    shift = mean / pivot
    for i in range(n):
        p = P[i, j]
        residual[i] += shift * p
        for k in range(m):
            P[i, k] -= ratio[k] * p
        P[i, j] = 0.0
    for k in range(m):
        for h in range(m):
            C[k, h] -= ratio[k] * (pivot * ratio[h])
    for k in range(m):
        C[k, j] = 0.0
        C[j, k] = 0.0


@njit(**COMPILED)
def overlaps(column: Array, Phi: Array, P: Array) -> tuple[Array, Array]:
    """Pᵀφ and Φᵀφ."""
    n, m = P.shape
    projected, products = np.zeros(m), np.zeros(m)
    for i in range(n):
        c = column[i]
        for k in range(m):
            projected[k] += P[i, k] * c
            products[k] += Phi[i, k] * c
    return projected, products


@njit(**COMPILED)
def unexplained(column: Array, projected: Array, Phi: Array, out: Array) -> float:
    """φ - ΦCΦᵀφ into `out`; returns its product with φ."""
    n, m = Phi.shape
    total = 0.0
    for i in range(n):
        fitted = 0.0
        for k in range(m):
            fitted += Phi[i, k] * projected[k]
        out[i] = column[i] - fitted
        total += column[i] * out[i]
    return total


@njit(**COMPILED)
def put_in(
    j: int, column: Array, variance: float, noise: float, Phi: Array, P: Array, C: Array, residual: Array,
    gram: Array, work: Array,
) -> None:  # fmt: skip
    """Add a column with prior variance a² as unit j, which must have been taken out."""
    n, m = P.shape
    Phi[:, j] = column
    u, products = overlaps(column, Phi, P)
    gram[j, :] = products
    gram[:, j] = products
    own = unexplained(column, u, Phi, work)
    pivot = noise / variance + own if variance > 0.0 else math.inf
    if not pivot < math.inf:
        return
    along = 0.0
    for i in range(n):
        along += column[i] * residual[i]
    for i in range(n):
        p = work[i] / pivot
        residual[i] -= p * along
        for k in range(m):
            P[i, k] -= p * u[k]
        P[i, j] = p
    for k in range(m):
        for h in range(m):
            C[k, h] += u[k] * u[h] / pivot
        C[k, j] = -u[k] / pivot
        C[j, k] = -u[k] / pivot
    C[j, j] = 1.0 / pivot


@njit(**COMPILED)
def gain(variance: float, precision: float, pull: float) -> float:
    """Log likelihood of a column with prior variance a², less that without: S = (φᵀφ - hᵀCh)/v, t = φᵀe/v."""
    spread = variance * precision
    return -0.5 * math.log1p(spread) + 0.5 * variance * pull * pull / (1.0 + spread)
