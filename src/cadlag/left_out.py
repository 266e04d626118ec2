"""p(y_k | y_-k) = Σ_t w_tk N(y_k; m_tk, s²_tk), w_tk ∝ 1/p(y_k | y_-k, draw t): each row predicted from all the others.

The draws t come from the posterior given all rows; the weights carry them to the posterior without row k. They are
smoothed by a generalised Pareto law fitted to their tail, whose shape k̂ says how far to trust the row: up to 0.7 well.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr

from cadlag.linalg.gaussian import Array, LeftOut
from cadlag.predictive import Predictive

TRUSTED = 0.7  # of k̂
_FEWEST = 25  # draws that a tail can be fitted to


@dataclass(frozen=True)
class LeaveOneOut:
    """The predictive law of each training row given the others.

    Attributes
    ----------
    y
        The rows' responses, (n,).
    means
        Given each draw, (draws, n).
    variances
        Given each draw, (draws, n).
    weights
        Of the draws, for each row, (draws, n); columns sum to one.
    pareto_shape
        k̂ of each row, (n,); NaN with too few draws to tell, -inf with one, which needs no weights.
    """

    y: Array
    means: Array
    variances: Array
    weights: Array
    pareto_shape: Array

    @classmethod
    def reweighted(cls, y: Array, errors: Array, variances: Array) -> Self:
        """Weights from the draws' own densities of the row left out.

        Parameters
        ----------
        y
            Responses, (n,).
        errors
            y_k - E[y_k | y_-k, draw], (draws, n).
        variances
            var[y_k | y_-k, draw], (draws, n).

        Returns
        -------
        LeaveOneOut
            The laws.
        """
        log_density = LeftOut(errors, variances).log_density
        weights, shape = importance_weights(log_density)
        return cls(y, y - errors, variances, weights, shape)

    @property
    def mean(self) -> Array:
        """Mean of each row's law."""
        return np.asarray((self.weights * self.means).sum(axis=0))

    @property
    def std(self) -> Array:
        """Standard deviation of each row's law."""
        return np.sqrt((self.weights * (self.variances + (self.means - self.mean) ** 2)).sum(axis=0))

    @property
    def log_score(self) -> Array:
        """Log density of each response given all others, averaged over the draws."""
        log_density = LeftOut(self.y - self.means, self.variances).log_density
        return np.asarray(logsumexp(log_density, b=self.weights, axis=0))

    @property
    def pit(self) -> Array:
        """F_k(y_k): uniform on (0, 1) when the laws are calibrated."""
        z = (self.y - self.means) / np.sqrt(self.variances)
        return np.clip((self.weights * ndtr(z)).sum(axis=0), 0.0, 1.0)

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the other rows determine each row at all."""
        return np.asarray(np.isfinite(self.variances).all(axis=0))

    @property
    def is_trusted(self) -> NDArray[np.bool_]:
        """Whether the weights of each row are good enough."""
        return self.pareto_shape <= TRUSTED

    def quantile(self, p: ArrayLike) -> Array:
        """Quantiles of each row's law.

        Parameters
        ----------
        p
            Probabilities, (q,).

        Returns
        -------
        Array
            (n, q); NaN for a row that the others do not determine.
        """
        levels = np.atleast_1d(np.asarray(p, dtype=float))
        found = np.full((len(self.y), len(levels)), np.nan)
        for k in np.flatnonzero(self.is_known):
            found[k] = Predictive(self.means[:, [k]], self.variances[:, [k]], self.weights[:, k]).quantile(levels)[0]
        return found

    def gain_over(self, other: Self) -> tuple[float, float]:
        """How much better the same rows are predicted than by another model.

        Parameters
        ----------
        other
            Of the other model.

        Returns
        -------
        tuple[float, float]
            Sum of the differences of log scores, and its standard error.
        """
        gain = self.log_score - other.log_score
        return float(gain.sum()), float(np.sqrt(len(gain)) * gain.std())


def importance_weights(log_density: Array) -> tuple[Array, Array]:
    """Weights w_tk ∝ 1/p(y_k | y_-k, draw t), Pareto-smoothed, that carry draws given y to draws given y_-k."""
    # A row that the others do not determine has no density given any draw.
    density = np.where(np.isfinite(log_density).all(axis=0), log_density, 0.0)
    weights = np.exp(density.min(axis=0) - density)
    shape = np.full(density.shape[1], np.nan if len(density) > 1 else -np.inf)  # a single draw needs no weights
    if len(density) >= _FEWEST:
        for k, logs in enumerate(density.T):
            weights[:, k], shape[k] = _smoothed(logs, weights[:, k])
    return weights / weights.sum(axis=0), shape


def _smoothed(log_density: Array, raw: Array) -> tuple[Array, float]:
    """Weights of one row; the raw ones where the draws of their tail are all alike, so that no law can be fitted."""
    from arviz_stats.base import array_stats  # noqa: PLC0415  loads xarray and matplotlib where they are installed

    try:
        with np.errstate(all="ignore"):
            logs, shape = array_stats.psislw(log_density)  # it takes the sign by itself
            weights = np.exp(np.asarray(logs))
    except ValueError:
        return raw, float("nan")
    return (weights, float(shape)) if np.isfinite(weights).all() else (raw, float("nan"))
