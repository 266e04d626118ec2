"""f(x) | y ~ N(f(x)ᵀb̂ + kᵀK⁻¹(y - Fb̂), σ²(1 - kᵀK⁻¹k)): one draw of a process about a linear mean, conditioned.

A new observation adds σ²g, the nugget's share. The law is that given β = b̂; the uncertainty of β adds σ² hᵀV_b h with
h = f(x) - FᵀK⁻¹k, where it is wanted.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from cadlag.baselines.bayes_gp.least_squares import Regression
from cadlag.kernels.stationary import Array, Stationary


class Given(Protocol):
    """The unknowns at one draw."""

    @property
    def ranges(self) -> Array:
        """Ranges d of the correlation."""

    @property
    def nugget(self) -> float:
        """Nugget g."""

    @property
    def variance(self) -> float:
        """Variance σ²."""


class Known(NamedTuple):
    """Ranges, nugget and variance that have been estimated."""

    ranges: Array
    nugget: float
    variance: float


class LinearMean(Protocol):
    """What an atom asks of its process."""

    @property
    def X(self) -> Array:  # noqa: N802
        """Training inputs."""

    @property
    def include_beta_var(self) -> bool:
        """Whether the uncertainty of β counts."""

    @property
    def stationary(self) -> Stationary:
        """The correlation."""

    def basis(self, X: Array) -> Array:
        """Columns of the linear mean."""


@dataclass(frozen=True)
class LinearMeanAtom:
    """One draw, conditioned on the data.

    Attributes
    ----------
    model
        The process.
    at
        Its unknowns.
    given
        The regression at them.
    """

    model: LinearMean
    at: Given
    given: Regression

    @property
    def noise_variance(self) -> float:
        """σ²g, what a new observation adds to the function."""
        return self.at.variance * self.at.nugget

    def cross(self, X: Array) -> Array:
        """Correlations k of new inputs to the rows, (k, n)."""
        return self.model.stationary.cross(X, self.model.X, self.at.ranges)

    def mean(self, X: Array) -> Array:
        """Mean of the function alone, (k,)."""
        return self.model.basis(X) @ self.given.coefficients + self.cross(X) @ self.given.errors

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function, (k,) each."""
        half = self.given.whiten(self.cross(X).T)
        share = np.maximum(1.0 - np.einsum("nk,nk->k", half, half), 0.0)
        more = (self._spread(X, half) ** 2).sum(axis=1)
        return self._mean(X, half), self.at.variance * (share + more)

    def moments_tied(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of observations when the nugget is also in the correlation of new row i to row i."""
        half = self.given.whiten(self.cross(X).T + self.at.nugget * np.eye(len(X)))
        share = 1.0 + self.at.nugget - np.einsum("nk,nk->k", half, half)
        more = (self._spread(X, half) ** 2).sum(axis=1)
        return self._mean(X, half), self.at.variance * np.maximum(share + more, 0.0)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function."""
        half = self.given.whiten(self.cross(X).T)
        own = self.model.stationary.cross(X, X, self.at.ranges)
        spread = self._spread(X, half)
        return self._mean(X, half), self.at.variance * (own - half.T @ half + spread @ spread.T)

    def _mean(self, X: Array, half: Array) -> Array:
        return self.model.basis(X) @ self.given.coefficients + half.T @ self.given.residual

    def _spread(self, X: Array, half: Array) -> Array:
        """Rows whose products are hᵀV_b h', or none."""
        if not self.model.include_beta_var:
            return np.zeros((len(X), 0))
        # h = f - FᵀK⁻¹k = f - RᵀQᵀ(U⁻ᵀk), so that hᵀR⁻¹ = fᵀR⁻¹ - (U⁻ᵀk)ᵀQ
        return self.given.scaled_by_coefficients(self.model.basis(X)) - half.T @ self.given.q
