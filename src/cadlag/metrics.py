"""Scores of predictions: RMSE = (n⁻¹ Σ (y_i - ŷ_i)²)^½, MAE = n⁻¹ Σ |y_i - ŷ_i|, CRPS = n⁻¹ Σ ∫ (F_i(x) - 1{x >= y_i})² dx.

Plain functions of arrays. A predictive law is anything with the few methods of `Law`, so no score knows which method ran.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


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
