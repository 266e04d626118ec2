"""exp(-Σ_i w_i (x_i - x'_i)²) and (r^ν K_ν(r)) / (2^(ν-1) Γ(ν)), r² the same sum: correlations of weighted distances.

No factor √(2ν) stands in the Matérn correlation: r is the distance over the range. Distances are sums of squared
differences taken row by row, so that an entry does not depend on what other rows are asked, and is 0 exactly where
rows are equal.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gamma, kv

Array = NDArray[np.float64]

CORRELATIONS = ("expsep", "exp", "matern")

_FAR = 700.0  # e^-700 is the last that is a normal number


@njit(cache=True, nogil=True)
def squared_distances(A: Array, B: Array, weights: Array) -> Array:
    """Σ_i w_i (a_i - b_i)² between all rows of A and B.

    Parameters
    ----------
    A
        (m, p).
    B
        (n, p).
    weights
        (p,).

    Returns
    -------
    Array
        (m, n).
    """
    out = np.empty((len(A), len(B)))
    for k in range(len(A)):
        for h in range(len(B)):
            total = 0.0
            for i in range(len(weights)):
                gap = A[k, i] - B[h, i]
                total += weights[i] * gap * gap
            out[k, h] = total
    return out


@njit(cache=True, nogil=True)
def squared_distances_below(X: Array, weights: Array) -> Array:
    """The same among the rows of X, below the diagonal; zeros elsewhere.

    Parameters
    ----------
    X
        (n, p).
    weights
        (p,).

    Returns
    -------
    Array
        (n, n).
    """
    out = np.zeros((len(X), len(X)))
    for k in range(len(X)):
        for h in range(k):
            total = 0.0
            for i in range(len(weights)):
                gap = X[k, i] - X[h, i]
                total += weights[i] * gap * gap
            out[k, h] = total
    return out


@njit(cache=True, nogil=True)
def _by_weight(X: Array, pairs: Array) -> Array:
    """Σ_{k>h} pairs_kh (x_ki - x_hi)² for each i."""
    out = np.zeros(X.shape[1])
    for k in range(len(X)):
        for h in range(k):
            for i in range(len(out)):
                gap = X[k, i] - X[h, i]
                out[i] += pairs[k, h] * gap * gap
    return out


def matern(r: Array, nu: float) -> Array:
    """(r^ν K_ν(r)) / (2^(ν-1) Γ(ν)); in closed form for ν = ½, 3/2 and 5/2.

    Parameters
    ----------
    r
        Distances over the range.
    nu
        Smoothness ν.

    Returns
    -------
    Array
        Correlations.
    """
    # Capped, as beyond it K_ν is 0 and its product with a power of an infinite distance not a number.
    r = np.minimum(r, _FAR)
    if nu == 0.5:
        return np.exp(-r)
    if nu == 1.5:
        return (1.0 + r) * np.exp(-r)
    if nu == 2.5:
        return (1.0 + r + r * r / 3.0) * np.exp(-r)
    # K_ν is infinite where the distance is 0 or nearly, and the correlation 1.
    return _bessel(r, nu, nu, 1.0) / (2.0 ** (nu - 1.0) * gamma(nu))


def matern_slope(r: Array, nu: float) -> Array:
    """-r M'(r) = (r^(ν+1) K_(ν-1)(r)) / (2^(ν-1) Γ(ν)), the derivative of the correlation by the log range.

    Parameters
    ----------
    r
        Distances over the range.
    nu
        Smoothness ν.

    Returns
    -------
    Array
        Derivatives.
    """
    r = np.minimum(r, _FAR)
    if nu == 1.5:
        return r * r * np.exp(-r)
    return _bessel(r, nu + 1.0, nu - 1.0, 0.0) / (2.0 ** (nu - 1.0) * gamma(nu))


def _bessel(r: Array, power: float, nu: float, at_zero: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        values = r**power * kv(nu, r)
    limit = at_zero * 2.0 ** (nu - 1.0) * gamma(nu) if at_zero else 0.0
    return np.where(np.isfinite(values), values, limit)


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
        """Number of ranges: one for each input, or one for all.

        Parameters
        ----------
        n_inputs
            Number of inputs.

        Returns
        -------
        int
            How many.
        """
        return n_inputs if self.kind == "expsep" else 1

    def below(self, X: Array, ranges: Array) -> Array:
        """Correlations among the rows of X, below the diagonal.

        Parameters
        ----------
        X
            (n, p).
        ranges
            d.

        Returns
        -------
        Array
            (n, n); ones elsewhere.
        """
        return self._of(squared_distances_below(X, self._weights(ranges, X)))

    def cross(self, A: Array, B: Array, ranges: Array) -> Array:
        """Correlations between the rows of A and of B.

        Parameters
        ----------
        A
            (m, p).
        B
            (n, p).
        ranges
            d.

        Returns
        -------
        Array
            (m, n).
        """
        return self._of(squared_distances(A, B, self._weights(ranges, B)))

    def pull_back(self, X: Array, ranges: Array, pairs: Array) -> Array:
        """Derivative by the log ranges.

        Parameters
        ----------
        X
            (n, p).
        ranges
            d.
        pairs
            Derivative by the correlation of each pair, below the diagonal.

        Returns
        -------
        Array
            As many as there are ranges.
        """
        weights = self._weights(ranges, X)
        squares = squared_distances_below(X, weights)
        if self.kind == "expsep":
            return weights * _by_weight(X, pairs * np.exp(-squares))
        slope = matern_slope(np.sqrt(squares), self.nu) if self.kind == "matern" else squares * np.exp(-squares)
        return np.array([np.vdot(np.tril(pairs, -1), slope)])

    def _weights(self, ranges: Array, X: Array) -> Array:
        weights = np.empty(X.shape[1])
        weights[:] = 1.0 / (ranges * ranges if self.kind == "matern" else ranges)
        return weights

    def _of(self, squares: Array) -> Array:
        if self.kind == "matern":
            return matern(np.sqrt(squares, out=squares), self.nu)
        np.negative(squares, out=squares)
        return np.exp(squares, out=squares)
