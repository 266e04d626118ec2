"""K = vA⁻² + ΦᵀVΦ, C = K⁻¹: what one column more or less changes, in O(M²).

Unit j contributes the column φ_j(x) = sgn(w_j·x̃), or κ max(w_j·x̃, 0) with κ such that both kinds have the same mean
square under the prior; row i of everything is multiplied by its weight ω_i. The units are added to Gaussian noise with
covariance vV⁻¹. A unit that has been taken out leaves zeros in C; its image Vφ and its sums stay.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cadlag.linalg.low_rank import log_marginal_of_sums, precision_of_sums

Array = NDArray[np.float64]

SIGN, RELU = 0, 1
COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


class Rows(NamedTuple):
    """The data: inputs as units see them, weights ω, V (left empty where it is I), and Vy of weighted responses.

    The inputs stand there twice, also a row an input: then all rows are multiplied by a direction side by side.
    """

    X: Array
    XT: Array
    omega: Array
    V: Array
    pulled: Array


class Members(NamedTuple):
    """The units: (b_j, v_j) row by row, log s_j, kinds."""

    W: Array
    log_s: Array
    kinds: NDArray[np.int64]


class Explained(NamedTuple):
    """What the likelihood knows of the units: VΦ, ΦᵀVΦ, ΦᵀVy and C."""

    images: Array
    gram: Array
    products: Array
    C: Array


class Common(NamedTuple):
    """Given to all units: log of a_j²/s_j, v, α/2, κ, the table of the density of log s."""

    log_scale: float
    noise: float
    half_alpha: float
    relu_scale: float
    table: tuple[float, float, Array]


@njit(**COMPILED)
def from_log(log_variance: float) -> float:
    """The variance, kept within 1e±100: beyond that no data tell variances apart."""
    return math.exp(min(max(log_variance, -230.0), 230.0))


@njit(**COMPILED)
def dot(x: Array, y: Array) -> float:
    """xᵀy in four sums, which the processor takes side by side, always in the same order."""
    n, a, b, c, d = len(x), 0.0, 0.0, 0.0, 0.0
    for k in range(0, n - 3, 4):
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
    for k in range(n - n % 4, n):
        a += x[k] * y[k]
    return (a + b) + (c + d)


@njit(**COMPILED)
def write(x: Array, out: Array) -> None:
    """x into a row or column of a matrix."""
    for k in range(len(x)):
        out[k] = x[k]


@njit(**COMPILED)
def add_multiple(factor: float, x: Array, out: Array) -> None:
    """Out + factor·x into out."""
    for k in range(len(out)):
        out[k] += factor * x[k]


@njit(**COMPILED)
def product(row: Array, direction: Array) -> float:
    """w·x̃."""
    z = 0.0
    for k in range(len(row)):
        z += row[k] * direction[k]
    return z


@njit(**COMPILED)
def products(XT: Array, direction: Array) -> Array:
    """w·x̃ of all rows, each to the same bits as by :func:`product`."""
    out = np.zeros(XT.shape[1])
    for k in range(len(direction)):
        add_multiple(direction[k], XT[k], out)
    return out


@njit(**COMPILED)
def entry(row: Array, direction: Array, kind: int, relu_scale: float) -> float:
    """One unit at one row, without the row's weight."""
    z = product(row, direction)
    if kind == SIGN:
        return 1.0 if z >= 0.0 else -1.0
    return relu_scale * z if z > 0.0 else 0.0


@njit(**COMPILED)
def fill_columns(X: Array, omega: Array, directions: Array, kinds: np.ndarray, relu_scale: float) -> Array:
    """Several units at every row, (n, c)."""
    n, c = len(X), len(directions)
    out = np.empty((n, c))
    for i in range(n):
        for k in range(c):
            out[i, k] = omega[i] * entry(X[i], directions[k], kinds[k], relu_scale)
    return out


def inverse_of_sums(gram: Array, variances: Array, noise: float) -> Array:
    """C afresh, from ΦᵀVΦ."""
    factor = log_marginal_of_sums(gram, np.zeros(len(gram)), 0.0, 0, variances, noise)[1]
    return precision_of_sums(factor, variances, noise)


@njit(**COMPILED)
def take_out(j: int, fit: Explained) -> None:
    """Remove unit j: C becomes that of the other units, with zeros in its place."""
    C = fit.C
    m, pivot = len(C), C[j, j]
    if pivot <= 0.0:
        return
    own = C[j].copy()
    for k in range(m):
        ratio = own[k] / pivot
        for h in range(m):
            C[k, h] -= ratio * own[h]
    for k in range(m):
        C[j, k] = 0.0
        C[k, j] = 0.0


@njit(**COMPILED)
def put_in(j: int, variance: float, noise: float, fit: Explained) -> None:
    """Add unit j, which has been taken out and whose sums are up to date, with prior variance a²."""
    C, h = fit.C, fit.gram[j]
    m, own = len(C), fit.gram[j, j]
    u = np.zeros(m)
    for k in range(m):
        for i in range(m):
            u[k] += C[k, i] * h[i]
    for k in range(m):
        own -= h[k] * u[k]
    weight = 1.0 / (noise / variance + max(own, 0.0)) if variance > 0.0 else 0.0
    u[j] = -1.0
    for k in range(m):
        for i in range(m):
            C[k, i] += weight * u[k] * u[i]


@njit(**COMPILED)
def residual_of(rows: Rows, fit: Explained) -> Array:
    """e = V(y - ΦCΦᵀVy), what the units that are in leave of the responses."""
    residual = np.dot(fit.images, np.dot(fit.C, fit.products))
    for i in range(len(residual)):
        residual[i] = rows.pulled[i] - residual[i]
    return residual


@njit(**COMPILED)
def gain(variance: float, precision: float, pull: float) -> float:
    """Log likelihood of a column with prior variance a², less that without: S = (φᵀVφ - hᵀCh)/v, t = φᵀe/v."""
    spread = variance * precision
    return -0.5 * math.log1p(spread) + 0.5 * variance * pull * pull / (1.0 + spread)
