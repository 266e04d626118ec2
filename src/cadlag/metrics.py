"""RMSE² = n⁻¹ Σ (y_i - ŷ_i)², MAE = n⁻¹ Σ |y_i - ŷ_i|, CRPS = n⁻¹ Σ ∫ (F_i(x) - 1{x >= y_i})² dx, and other scores.

Plain functions of arrays; a predictive law is anything with the few methods of `Law`. For a mixture of normals, with X
and X' two independent draws from it::

    CRPS(y)   = E|X - y| - ½ E|X - X'|
    E|X - y|  = Σ_t w_t A(y - μ_t, s_t²),     A(d, v) = E|d + √v Z| = d (2Φ(d/√v) - 1) + 2√v φ(d/√v),   A(d, 0) = |d|
    E|X - X'| = Σ_ij w_i w_j A(μ_i - μ_j, s_i² + s_j²)
"""

import math
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_REACH = 8.3  # Φ(-8.3) < 2⁻⁵³: beyond this many standard deviations a normal law has no mass in double precision
_CLASS_RATIO = 4.0  # atoms whose standard deviations are within this factor share a lattice
_LATTICE_STEPS = 2.8  # lattice steps in the smallest standard deviation of a class: an error of exp(-29)


class Law(Protocol):
    """What the probabilistic scores ask of a predictive law at n inputs."""

    @property
    def mean(self) -> FloatArray:
        """Means (n,)."""

    @property
    def median(self) -> FloatArray:
        """Medians (n,)."""

    def interval(self, coverage: float = ...) -> FloatArray:
        """Central intervals (n, 2)."""

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Distribution functions at y (n,)."""

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Log densities at y (n,)."""

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability scores at y (n,)."""


def _aligned(*values: ArrayLike) -> list[FloatArray]:
    """Float vectors of one length; nothing is broadcast, since a column against a row would silently be n² errors."""
    arrays = [np.asarray(value, dtype=np.float64) for value in values]
    if arrays[0].ndim != 1 or arrays[0].size == 0 or any(array.shape != arrays[0].shape for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"Scores need vectors of one length, at least 1; got shapes {shapes}.")
    return arrays


def _inside(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NDArray[np.bool_]:
    values, low, high = _aligned(y, lower, upper)
    return (low <= values) & (values <= high)


def rmse(y: ArrayLike, prediction: ArrayLike) -> float:
    """Root mean squared error.

    Parameters
    ----------
    y
        Observed responses (n,).
    prediction
        Point predictions (n,).

    Returns
    -------
    float
        In the unit of y.
    """
    values, predicted = _aligned(y, prediction)
    return float(np.sqrt(np.mean((values - predicted) ** 2)))


def mae(y: ArrayLike, prediction: ArrayLike) -> float:
    """Mean absolute error.

    Parameters
    ----------
    y
        Observed responses (n,).
    prediction
        Point predictions (n,).

    Returns
    -------
    float
        In the unit of y.
    """
    values, predicted = _aligned(y, prediction)
    return float(np.mean(np.abs(values - predicted)))


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Share of responses in their closed interval [lower, upper].

    Parameters
    ----------
    y
        Observed responses (n,).
    lower
        Lower ends (n,).
    upper
        Upper ends (n,).

    Returns
    -------
    float
        Between 0 and 1.
    """
    return float(np.mean(_inside(y, lower, upper)))


def interval_width(lower: ArrayLike, upper: ArrayLike) -> float:
    """Mean width of the intervals.

    Parameters
    ----------
    lower
        Lower ends (n,).
    upper
        Upper ends (n,).

    Returns
    -------
    float
        In the unit of y.
    """
    low, high = _aligned(lower, upper)
    return float(np.mean(high - low))


def mean_crps(predictive: Law, y: ArrayLike) -> float:
    """Mean continuous ranked probability score; small is good.

    Parameters
    ----------
    predictive
        Predictive law at the n inputs.
    y
        Observed responses (n,).

    Returns
    -------
    float
        In the unit of y.
    """
    return float(np.mean(predictive.crps(_aligned(y)[0])))


def log_score(predictive: Law, y: ArrayLike) -> float:
    """Mean log predictive density; large is good.

    Parameters
    ----------
    predictive
        Predictive law at the n inputs.
    y
        Observed responses (n,).

    Returns
    -------
    float
        In nats an observation.
    """
    return float(np.mean(predictive.logpdf(_aligned(y)[0])))


def pit(predictive: Law, y: ArrayLike) -> FloatArray:
    """Probability integral transform F_i(y_i): uniform on (0, 1) when the law is calibrated.

    Parameters
    ----------
    predictive
        Predictive law at the n inputs.
    y
        Observed responses (n,).

    Returns
    -------
    ndarray
        (n,) values between 0 and 1.
    """
    return predictive.cdf(_aligned(y)[0])


def score(predictive: Law, y: ArrayLike, point: str = "median", coverage: float = 0.9) -> dict[str, float]:
    """Every score of one predictive law.

    Parameters
    ----------
    predictive
        Predictive law at the n inputs.
    y
        Observed responses (n,).
    point
        The point prediction behind rmse and mae: "median" or "mean".
    coverage
        Nominal probability of the central interval behind coverage and width.

    Returns
    -------
    dict
        rmse, mae, crps, log_score, coverage and width.
    """
    if point not in ("median", "mean"):
        raise ValueError(f'point must be "median" or "mean", got {point!r}.')
    prediction = predictive.median if point == "median" else predictive.mean
    lower, upper = predictive.interval(coverage).T
    return {
        "rmse": rmse(y, prediction),
        "mae": mae(y, prediction),
        "crps": mean_crps(predictive, y),
        "log_score": log_score(predictive, y),
        "coverage": float(np.mean(_inside(y, lower, upper))),
        "width": interval_width(lower, upper),
    }


@njit(cache=True, error_model="numpy")
def _distance(d: float, v: float) -> float:
    """A(d, v) = E|d + √v Z|."""
    if d * d >= _REACH * _REACH * v:
        return abs(d)
    sd = math.sqrt(v)
    z = d / sd
    return d * math.erf(z * _ROOT_HALF) + sd * _ROOT_TWO_OVER_PI * math.exp(-0.5 * z * z)


@njit(cache=True, error_model="numpy")
def _pair_term(first: int, means: FloatArray, variances: FloatArray, weights: FloatArray) -> float:
    """½ Σ w_i w_j A over the pairs with at least one atom at or after `first`, one by one."""
    out = 0.0
    for j in range(first, means.size):
        row = 0.5 * weights[j] * _distance(0.0, 2.0 * variances[j])
        for i in range(j):
            row += weights[i] * _distance(means[i] - means[j], variances[i] + variances[j])
        out += weights[j] * row
    return out


@njit(cache=True, error_model="numpy")
def _point_term(means: FloatArray, weights: FloatArray) -> float:
    """½ Σ w_i w_j |μ_i - μ_j| = ∫ F (W - F) dx for point masses of total weight W, the means increasing."""
    total, below, out = weights.sum(), 0.0, 0.0
    for k in range(means.size - 1):
        below += weights[k]
        out += below * (total - below) * (means[k + 1] - means[k])
    return out


@njit(cache=True, error_model="numpy")
def _deposit(lattice: FloatArray, position: float, variance: float, weight: float) -> None:
    """Add weight N(k; position, variance) at the integers k, outwards from the centre by N(k+1) = N(k) r qᵏ."""
    centre = round(position)
    offset, reach = centre - position, int(_REACH * math.sqrt(variance)) + 1
    peak = weight * math.exp(-0.5 * offset * offset / variance) / math.sqrt(2.0 * math.pi * variance)
    decay = math.exp(-1.0 / variance)
    lattice[centre] += peak
    for direction in (1, -1):
        value, ratio = peak, math.exp(-(0.5 + direction * offset) / variance)
        for k in range(1, reach + 1):
            value *= ratio
            ratio *= decay
            lattice[centre + direction * k] += value


@njit(cache=True, error_model="numpy")
def _lattice_distance(left: FloatArray, right: FloatArray, variance: float) -> float:
    """Σ_kl left_k right_l A(k - l, variance): Σ |k - l| by partial sums, A - |·| by its few nonzero terms."""
    left_total, right_total = left.sum(), right.sum()
    left_below, right_below, out = 0.0, 0.0, 0.0
    for k in range(left.size):
        left_below += left[k]
        right_below += right[k]
        out += left_below * (right_total - right_below) + right_below * (left_total - left_below)
    out += _distance(0.0, variance) * (left * right).sum()
    for lag in range(1, min(int(_REACH * math.sqrt(variance)) + 1, left.size)):
        overlap = (left[lag:] * right[:-lag]).sum() + (left[:-lag] * right[lag:]).sum()
        out += (_distance(float(lag), variance) - lag) * overlap
    return out


@njit(cache=True, error_model="numpy")
def _lattice_term(
    first: int, origin: float, step: float, n_cells: int, means: FloatArray, variances: FloatArray, weights: FloatArray
) -> float:
    """The sum of `_pair_term` from two mass distributions on a lattice.

    A(d, s_i² + s_j²) sees only the sum of the variances. With v the smallest variance of the class it is the mean of
    A(X_i - X_j, 3v/8) over N(μ_i, s_i² - 3v/4) and N(μ_j, s_j² + 3v/8): all three are smooth on the scale √v however
    narrow atom j is, so sums over a lattice of step h replace the integrals with an error of exp(-3π²v / 8h²).
    """
    smallest = variances[first]
    sharp, broad = np.zeros(n_cells), np.zeros(n_cells)
    for t in range(means.size):
        position = (means[t] - origin) / step
        # Pairs inside the class are met in both orders, hence the half.
        share = 0.5 if t >= first else 1.0
        _deposit(broad, position, (variances[t] + 0.375 * smallest) / step**2, share * weights[t])
        if t >= first:
            _deposit(sharp, position, (variances[t] - 0.75 * smallest) / step**2, weights[t])
    return step * _lattice_distance(sharp, broad, 0.375 * smallest / step**2)


@njit(cache=True, error_model="numpy")
def _class_term(first: int, means: FloatArray, variances: FloatArray, weights: FloatArray) -> float:
    """½ Σ w_i w_j A over the pairs with at least one atom at or after `first`, by the cheaper of the two ways."""
    n, n_members = means.size, means.size - first
    step = math.sqrt(variances[first]) / _LATTICE_STEPS
    reach = _REACH * np.sqrt(variances + 0.375 * variances[first]) + 3.0 * step
    origin = (means - reach).min()
    n_cells = ((means + reach).max() - origin) / step
    # Rough costs, which decide only the time taken; the second bound keeps memory at O(n).
    if 15.0 * n_cells + 100.0 * (n + n_members) < 8.0 * n_members * (n + first) and n_cells < 100.0 * n:
        return _lattice_term(first, origin, step, int(n_cells) + 1, means, variances, weights)
    return _pair_term(first, means, variances, weights)


@njit(cache=True, error_model="numpy")
def _half_spread(means: FloatArray, variances: FloatArray, weights: FloatArray) -> float:
    """½ E|X - X'|, a class of similar standard deviations at a time, from the widest down; the variances increase."""
    out, stop = 0.0, means.size
    while stop > 0:
        if variances[stop - 1] == 0.0:
            return out + _point_term(means[:stop], weights[:stop])
        first = np.searchsorted(variances[:stop], variances[stop - 1] / _CLASS_RATIO**2)
        out += _class_term(first, means[:stop], variances[:stop], weights[:stop])
        stop = first
    return out


@njit(cache=True, error_model="numpy")
def _crps(
    y: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray, orders: NDArray[np.intp]
) -> FloatArray:
    out = np.empty(y.size)
    for i in range(y.size):
        order = orders[:, i].copy()
        mu, var, w = means[:, i].copy()[order], variances[:, i].copy()[order], weights[order]
        error = 0.0
        for t in range(w.size):
            error += w[t] * _distance(y[i] - mu[t], var[t])
        # Rounding could make a tiny score negative.
        out[i] = max(error - _half_spread(mu, var, w), 0.0)
    return out


def crps_normal_mixture(y: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray) -> FloatArray:
    """Continuous ranked probability score of mixtures of normals, exact to rounding.

    Parameters
    ----------
    y
        Observed responses (n,).
    means
        Means of the atoms (n_atoms, n).
    variances
        Variances of the atoms (n_atoms, n); zero is a point mass.
    weights
        Weights of the atoms (n_atoms,), in any unit.

    Returns
    -------
    ndarray
        (n,) scores in the unit of y.
    """
    # By variance, and by mean among equals, which puts the point masses first and in order.
    orders = np.lexsort((means, variances), axis=0)
    return _crps(y, means, variances, weights / weights.sum(), orders)
