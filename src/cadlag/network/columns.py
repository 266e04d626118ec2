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
from cadlag.linalg.vecchia import Precision, Sets

Array = NDArray[np.float64]

SIGN, RELU = 0, 1
MANY = 4096  # rows, beyond which they are gone through in parts of this size
AT_ONCE = 512  # rows that stay in the cache
COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


class Under(NamedTuple):
    """V, the precision of what the units are added to: in full, (n, n), or sparse; I where both are left empty."""

    full: Array
    sparse: Precision

    def apply(self, x: Array) -> Array:
        """Vx, of a vector or of columns."""
        if len(self.full):
            return self.full @ x
        return self.sparse.apply(x) if len(self.sparse.values) else x

    def diagonal(self, n: int) -> Array:
        """V_ii of n rows."""
        if len(self.full):
            return np.diagonal(self.full)
        return self.sparse.diagonal if len(self.sparse.values) else np.ones(n)


NOT_SPARSE = Precision(Sets.of(np.empty((0, 0), dtype=np.int32)), np.empty((0, 1)))
WHITE = Under(np.empty((0, 0)), NOT_SPARSE)


class Rows(NamedTuple):
    """The data: inputs as units see them, weights ω, V, and Vy of weighted responses.

    The inputs stand there twice, also a row an input: then all rows are multiplied by a direction side by side.
    """

    X: Array
    XT: Array
    omega: Array
    V: Under
    pulled: Array


class Near(NamedTuple):
    """Of many rows: unit vectors along (b_j, v_j) as they were, and |sin| of the angle from hyperplane to row.

    Both have a row a unit; there are none where the rows are few enough to be looked at one by one.
    """

    directions: Array
    sines: NDArray[np.float32]


class Members(NamedTuple):
    """The units: (b_j, v_j) row by row, log s_j, kinds, and which rows are near their hyperplanes."""

    W: Array
    log_s: Array
    kinds: NDArray[np.int64]
    near: Near


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
def products_at(X: Array, which: np.ndarray, direction: Array) -> Array:
    """w·x̃ of some rows."""
    out = np.empty(len(which))
    for i in range(len(which)):
        out[i] = product(X[which[i]], direction)
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
    """Several units at every row, (n, c), each to the same bits as by :func:`entry`."""
    n, c = len(X), len(directions)
    out = np.empty((n, c))
    for start in range(0, n, AT_ONCE):
        part = X[start : start + AT_ONCE].T.copy()
        for k in range(c):
            z = products(part, directions[k])
            for i in range(len(z)):
                value = (
                    (1.0 if z[i] >= 0.0 else -1.0) if kinds[k] == SIGN else (relu_scale * z[i] if z[i] > 0.0 else 0.0)
                )
                out[start + i, k] = omega[start + i] * value
    return out


@njit(**COMPILED)
def sines_of_rows(X: Array, directions: Array) -> NDArray[np.float32]:
    """|w·x| / |x| for unit vectors w, (M, n)."""
    n, m = len(X), len(directions)
    out = np.empty((m, n), dtype=np.float32)
    for start in range(0, n, AT_ONCE):
        part = X[start : start + AT_ONCE].T.copy()
        inverse = np.zeros(part.shape[1])
        for k in range(len(part)):
            for i in range(len(inverse)):
                inverse[i] += part[k, i] * part[k, i]
        for i in range(len(inverse)):
            inverse[i] = 1.0 / math.sqrt(inverse[i])
        for j in range(m):
            z = products(part, directions[j])
            for i in range(len(z)):
                out[j, start + i] = abs(z[i]) * inverse[i]
    return out


def near_of(X: Array, W: Array, many: int = MANY) -> Near:
    """How near the rows are to the hyperplanes as they stand, of more than so many rows."""
    if len(X) <= many:
        return Near(np.empty((0, W.shape[1])), np.empty((0, 0), dtype=np.float32))
    directions = W / np.linalg.norm(W, axis=1)[:, None]
    return Near(directions, sines_of_rows(X, directions))


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
def gain(variance: float, precision: float, pull: float) -> float:
    """Log likelihood of a column with prior variance a², less that without: S = (φᵀVφ - hᵀCh)/v, t = φᵀe/v."""
    spread = variance * precision
    return -0.5 * math.log1p(spread) + 0.5 * variance * pull * pull / (1.0 + spread)
