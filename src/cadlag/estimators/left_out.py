"""p(y_k | y_-k) = Σ_t w_tk N(y_k; m_tk, s²_tk), w_tk ∝ 1/p(y_k | y_-k, draw t): each row predicted from all the others.

The draws t come from the posterior given all rows; the weights carry them to the posterior without row k. They are
smoothed by a generalised Pareto law fitted to their tail, whose shape k̂ says how far to trust the row: up to 0.7 well.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from cadlag.predictive import Predictive

Array = NDArray[np.float64]

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
        log_density = -0.5 * (np.log(variances) + errors**2 / variances)
        log_weights, shape = _smoothed(log_density)
        weights = np.exp(log_weights - log_weights.max(axis=0))
        return cls(y, y - errors, variances, weights / weights.sum(axis=0), shape)

    @property
    def mean(self) -> Array:
        """Mean of each row's law."""
        return np.asarray((self.weights * self.means).sum(axis=0))

    @property
    def pit(self) -> Array:
        """F_k(y_k): uniform on (0, 1) when the laws are calibrated."""
        z = (self.y - self.means) / np.sqrt(self.variances)
        return np.clip((self.weights * ndtr(z)).sum(axis=0), 0.0, 1.0)

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
            (n, q).
        """
        levels = np.atleast_1d(np.asarray(p, dtype=float))
        laws = (Predictive(self.means[:, [k]], self.variances[:, [k]], self.weights[:, k]) for k in range(len(self.y)))
        return np.concatenate([law.quantile(levels) for law in laws])


def _smoothed(log_density: Array) -> tuple[Array, Array]:
    """Log weights, whose raw form is -log_density, and k̂, column by column."""
    if len(log_density) < _FEWEST:
        unknown = np.nan if len(log_density) > 1 else -np.inf  # a single draw needs no weights
        return -log_density, np.full(log_density.shape[1], unknown)
    from arviz_stats.base import array_stats  # noqa: PLC0415  loads xarray and matplotlib where they are installed

    with np.errstate(all="ignore"):
        log_weights, shape = array_stats.psislw(log_density, axis=0)
    return np.asarray(log_weights).T, np.asarray(shape)
