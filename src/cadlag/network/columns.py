"""K = vA⁻² + ΦᵀVΦ, C = K⁻¹, P = VΦC, e = V(y - ΦCΦᵀVy): what one column more or less changes, in O(nM).

Unit j contributes the column φ_j(x) = sgn(w_j·x̃), or κ max(w_j·x̃, 0) with κ such that both kinds have the same mean
square under the prior; row i of everything is multiplied by its weight ω_i. The units are added to Gaussian noise with
covariance vV⁻¹. A unit that has been taken out leaves zeros in C and P.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cadlag.linalg.low_rank import log_marginal_of_sums, precision_of_sums

Array = NDArray[np.float64]

SIGN, RELU = 0, 1
COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


class Rows(NamedTuple):
    """The data: inputs as units see them, weighted responses, weights ω, and V, which is left empty where it is I."""

    X: Array
    y: Array
    omega: Array
    V: Array


class Members(NamedTuple):
    """The units: (b_j, v_j) row by row, log s_j, kinds."""

    W: Array
    log_s: Array
    kinds: NDArray[np.int64]


class Explained(NamedTuple):
    """What the units explain: VΦ, ΦᵀVΦ, ΦᵀVy, P, C and the residual e."""

    images: Array
    gram: Array
    products: Array
    P: Array
    C: Array
    residual: Array


class Common(NamedTuple):
    """Given to all units: log of a_j²/s_j, v, α/2, κ, the table of the density of log s."""

    log_scale: float
    noise: float
    half_alpha: float
    relu_scale: float
    table: tuple[float, float, Array]


@njit(**COMPILED)
def from_log(log_variance: Any) -> Any:
    """The variance, kept within 1e±100: beyond that no data tell variances apart."""
    return np.exp(np.minimum(np.maximum(log_variance, -230.0), 230.0))


@njit(**COMPILED)
def entry(row: Array, direction: Array, kind: int, relu_scale: float) -> float:
    """One unit at one row, without the row's weight."""
    z = 0.0
    for k in range(len(row)):
        z += row[k] * direction[k]
    if kind == SIGN:
        return 1.0 if z >= 0.0 else -1.0
    return relu_scale * z if z > 0.0 else 0.0


@njit(**COMPILED)
def fill_column(X: Array, omega: Array, direction: Array, kind: int, relu_scale: float, out: Array) -> None:
    """One unit at every row."""
    for i in range(len(X)):
        out[i] = omega[i] * entry(X[i], direction, kind, relu_scale)


@njit(**COMPILED)
def column_of(j: int, rows: Rows, members: Members, law: Common) -> Array:
    """Unit j as it now is, weighted."""
    column = np.empty(len(rows.y))
    fill_column(rows.X, rows.omega, members.W[j], members.kinds[j], law.relu_scale, column)
    return column


@njit(**COMPILED)
def fill_columns(X: Array, omega: Array, directions: Array, kinds: np.ndarray, relu_scale: float) -> Array:
    """Several units at every row, (n, c)."""
    n, c = len(X), len(directions)
    out = np.empty((n, c))
    for i in range(n):
        for k in range(c):
            out[i, k] = omega[i] * entry(X[i], directions[k], kinds[k], relu_scale)
    return out


@njit(**COMPILED)
def explain(
    images: Array, gram: Array, products: Array, pulled: Array, square: float, variances: Array, noise: float
) -> tuple[Array, Array, Array]:
    """P, C and the residual, afresh, from VΦ and Vy."""
    (n, m), factor = images.shape, log_marginal_of_sums(gram, products, square, len(pulled), variances, noise)[1]
    C = precision_of_sums(factor, variances, noise)
    P, residual = np.zeros((n, m)), pulled.copy()
    for i in range(n):
        for j in range(m):
            for k in range(m):
                P[i, k] += images[i, j] * C[j, k]
        for k in range(m):
            residual[i] -= P[i, k] * products[k]
    return P, C, residual


@njit(**COMPILED)
def take_out(j: int, y: Array, fit: Explained) -> None:
    """Remove unit j: C, P and the residual become those of the other units."""
    P, C, residual = fit.P, fit.C, fit.residual
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
def record(j: int, column: Array, image: Array, rows: Rows, fit: Explained) -> tuple[Array, float]:
    """Write the image of unit j and its sums; returns Pᵀφ and eᵀφ."""
    images, m = fit.images, fit.P.shape[1]
    u, overlaps, product, along = np.zeros(m), np.zeros(m), 0.0, 0.0
    for i in range(len(column)):
        c, images[i, j] = column[i], image[i]
        product += image[i] * rows.y[i]
        along += c * fit.residual[i]
        for k in range(m):
            u[k] += fit.P[i, k] * c
            overlaps[k] += images[i, k] * c
    for k in range(m):
        fit.gram[j, k] = overlaps[k]
        fit.gram[k, j] = overlaps[k]
    fit.products[j] = product
    return u, along


@njit(**COMPILED)
def put_in(j: int, column: Array, image: Array, variance: float, noise: float, rows: Rows, fit: Explained) -> None:
    """Add a column φ and its Vφ, with prior variance a², as unit j, which must have been taken out."""
    images, P, C = fit.images, fit.P, fit.C
    (n, m), own = P.shape, 0.0
    u, along = record(j, column, image, rows, fit)
    for i in range(n):
        left = images[i, j]
        for k in range(m):
            left -= images[i, k] * u[k]
        own += column[i] * left
        P[i, j] = left
    weight = 1.0 / (noise / variance + own) if variance > 0.0 else 0.0
    for i in range(n):
        p = P[i, j] * weight
        fit.residual[i] -= p * along
        for k in range(m):
            P[i, k] -= p * u[k]
        P[i, j] = p
    u[j] = -1.0
    for k in range(m):
        for h in range(m):
            C[k, h] += weight * u[k] * u[h]


@njit(**COMPILED)
def gain(variance: float, precision: float, pull: float) -> float:
    """Log likelihood of a column with prior variance a², less that without: S = (φᵀVφ - hᵀCh)/v, t = φᵀe/v."""
    spread = variance * precision
    return -0.5 * math.log1p(spread) + 0.5 * variance * pull * pull / (1.0 + spread)
