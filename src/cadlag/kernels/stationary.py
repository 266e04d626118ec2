"""exp(-Σ_i w_i (x_i - x'_i)²) and (r^ν K_ν(r)) / (2^(ν-1) Γ(ν)), r² the same sum: correlations of weighted distances.

No factor √(2ν) stands in the Matérn correlation: r is the distance over the range. Distances are sums of squared
differences taken row by row, so that an entry does not depend on what other rows are asked, and is 0 exactly where
rows are equal; one input after the other, over a row of the matrix, which vectorises. The exponential and the Matérn of
ν = ½, 3/2 and 5/2 have closed forms and are compiled, without temporary matrices.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.special import gamma, kv

from cadlag.kernels.arc_cosine import Array

CORRELATIONS = ("expsep", "exp", "matern")
_EXPONENTIAL = 0.0  # stands for ν where there is none
_CLOSED = (_EXPONENTIAL, 0.5, 1.5, 2.5)
_FAR = 700.0  # e^-700 is the last that is a normal number
_COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_COMPILED)
def _add_squares(row: Array, point: Array, columns: Array, weights: Array) -> None:
    """The squared distances q of one point to the first rows of a table, that is held by columns."""
    row[:] = 0.0
    for i in range(len(weights)):
        for h in range(len(row)):
            gap = point[i] - columns[i, h]
            row[h] += weights[i] * gap * gap


@njit(**_COMPILED)
def _closed(square: float, nu: float) -> float:
    """The correlation at a squared distance q."""
    if nu == _EXPONENTIAL:
        return math.exp(-square)
    r = min(math.sqrt(square), _FAR)
    if nu == 0.5:
        return math.exp(-r)
    if nu == 1.5:
        return (1.0 + r) * math.exp(-r)
    return (1.0 + r + r * r / 3.0) * math.exp(-r)


@njit(**_COMPILED)
def _slope(square: float, nu: float) -> float:
    """Minus its derivative by q, twice that for the Matérn, whose q has the range squared: by the log range, over q."""
    if nu == _EXPONENTIAL:
        return math.exp(-square)
    r = min(math.sqrt(square), _FAR)
    if nu == 0.5:
        return math.exp(-r) / r if r > 0.0 else 0.0
    return math.exp(-r) if nu == 1.5 else (1.0 + r) / 3.0 * math.exp(-r)


@njit(**_COMPILED)
def _below(X: Array, weights: Array, nu: float) -> Array:
    out, columns = np.ones((len(X), len(X))), np.ascontiguousarray(X.T)
    for k in range(len(X)):
        row = out[k, :k]
        _add_squares(row, X[k], columns, weights)
        for h in range(k):
            row[h] = _closed(row[h], nu)
    return out


@njit(**_COMPILED)
def _cross(A: Array, B: Array, weights: Array, nu: float) -> Array:
    out, columns = np.empty((len(A), len(B))), np.ascontiguousarray(B.T)
    for k in range(len(A)):
        row = out[k]
        _add_squares(row, A[k], columns, weights)
        for h in range(len(B)):
            row[h] = _closed(row[h], nu)
    return out


@njit(fastmath={"reassoc", "contract"}, **_COMPILED)
def _sum_of_squares(row: Array, here: float, column: Array) -> float:
    total = 0.0
    for h in range(len(row)):
        gap = here - column[h]
        total += row[h] * gap * gap
    return total


@njit(**_COMPILED)
def _pull_back(X: Array, weights: Array, pairs: Array, nu: float) -> Array:
    """Derivative by the log range of each input."""
    out, buffer, columns = np.zeros(len(weights)), np.empty(len(X)), np.ascontiguousarray(X.T)
    for k in range(len(X)):
        row = buffer[:k]
        _add_squares(row, X[k], columns, weights)
        for h in range(k):
            row[h] = pairs[k, h] * _slope(row[h], nu)
        for i in range(len(weights)):
            out[i] += weights[i] * _sum_of_squares(row, X[k, i], columns[i])
    return out


@njit(**_COMPILED)
def _distances(A: Array, B: Array, weights: Array) -> Array:
    out, columns = np.empty((len(A), len(B))), np.ascontiguousarray(B.T)
    for k in range(len(A)):
        _add_squares(out[k], A[k], columns, weights)
    return np.sqrt(out)


def matern(r: Array, nu: float) -> Array:
    """(r^ν K_ν(r)) / (2^(ν-1) Γ(ν)) for any ν."""
    return _bessel(r, nu, nu, 1.0)


def _matern_slope(r: Array, nu: float) -> Array:
    """(r^(ν+1) K_(ν-1)(r)) / (2^(ν-1) Γ(ν)), the derivative of the correlation by the log range."""
    return _bessel(r, nu, nu - 1.0, 0.0) * r


def _bessel(r: Array, nu: float, order: float, at_zero: float) -> Array:
    """(r^ν K_order(r)) / (2^(ν-1) Γ(ν)), with a limit at 0, near which K is infinite."""
    # Capped, as beyond it K is 0 and its product with a power of an infinite distance not a number.
    r = np.minimum(r, _FAR)
    with np.errstate(invalid="ignore", over="ignore"):
        values = r**nu * kv(order, r) / (2.0 ** (nu - 1.0) * gamma(nu))
    return np.where(np.isfinite(values), values, at_zero)


@dataclass(frozen=True)
class Stationary:
    """A correlation of inputs that depends on their difference, with ranges d.

    Attributes
    ----------
    kind
        "expsep" exp(-Σ_i Δ_i²/d_i), "exp" exp(-‖Δ‖²/d), or "matern" of r = ‖Δ‖/d.
    nu
        Smoothness of the Matérn correlation.
    """

    kind: str
    nu: float = 1.5

    def n_ranges(self, n_inputs: int) -> int:
        """Number of ranges: one for each input, or one for all."""
        return n_inputs if self.kind == "expsep" else 1

    def below(self, X: Array, ranges: Array) -> Array:
        """Correlations among the rows of X."""
        weights, shape = self._weights(ranges, X), self._shape
        return _below(X, weights, shape) if shape in _CLOSED else matern(_distances(X, X, weights), shape)

    def cross(self, A: Array, B: Array, ranges: Array) -> Array:
        """Correlations between the rows of A and of B, (m, n)."""
        weights, shape = self._weights(ranges, B), self._shape
        return _cross(A, B, weights, shape) if shape in _CLOSED else matern(_distances(A, B, weights), shape)

    def pull_back(self, X: Array, ranges: Array, pairs: Array) -> Array:
        """Derivative by the log ranges."""
        weights, shape = self._weights(ranges, X), self._shape
        if shape in _CLOSED:
            by_input = _pull_back(X, weights, pairs, shape)
            return by_input if self.kind == "expsep" else np.array([by_input.sum()])
        return np.array([np.vdot(np.tril(pairs, -1), _matern_slope(_distances(X, X, weights), shape))])

    @property
    def _shape(self) -> float:
        return float(self.nu) if self.kind == "matern" else _EXPONENTIAL

    def _weights(self, ranges: Array, X: Array) -> Array:
        weights = np.empty(X.shape[1])
        weights[:] = 1.0 / (ranges * ranges if self.kind == "matern" else ranges)
        return weights
