"""f(x) | y ~ N(f(x)ᵀb̂ + kᵀK⁻¹(y - Fb̂), σ²(1 - kᵀK⁻¹k)): one draw of a process about a linear mean, conditioned.

A new observation adds σ²g, the nugget's share. The law is that given β = b̂; the uncertainty of β adds σ² hᵀV_b h with
h = f(x) - FᵀK⁻¹k, where it is wanted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cadlag.baselines.bayes_gp.least_squares import Regression, regress, whiten
from cadlag.data import Scaling
from cadlag.model import Array, Model


class LinearMean(Model):
    """What processes about a linear mean share: the covariance K = K* + gI, and the regression under it."""

    include_beta_var: bool = False
    stationary: Any  # a Stationary
    basis: Callable[[Array], Array]
    noise_variance = None

    @property
    def operations_to_condition(self) -> float:
        """What one draw's predictions cost at least."""
        return float(len(self.y)) ** 3 / 3.0

    @cached_property
    def F(self) -> Array:  # noqa: N802
        """The basis at the training inputs."""
        return self.basis(self.X)

    def covariance(self, ranges: Array, nugget: float) -> Array:
        """K at the training inputs, lower triangle, (n, n)."""
        K: Array = self.stationary.below(self.X, ranges)
        np.fill_diagonal(K, 1.0 + nugget)
        return K

    def regression(self, ranges: Array, nugget: float) -> Regression:
        """The regression given d and g; raises where K cannot be factorised."""
        return regress(self.covariance(ranges, nugget), self.F, self.y)

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """Draws by name, in the units of the data."""
        draws = super().draws(positions, stats, inputs, response)
        draws["variance"] = draws["variance"] * float(response.scale) ** 2
        return draws


@dataclass(frozen=True)
class LinearMeanAtom:
    """One draw, conditioned on the data.

    Attributes
    ----------
    model
        The process.
    ranges
        Ranges d of its correlation.
    nugget
        Nugget g.
    variance
        Variance σ².
    given
        The regression at them.
    """

    model: LinearMean
    ranges: Array
    nugget: float
    variance: float
    given: Regression

    @property
    def noise_variance(self) -> float:
        """σ²g, what a new observation adds to the function."""
        return self.variance * self.nugget

    def cross(self, X: Array) -> Array:
        """Correlations k of new inputs to the rows, (k, n)."""
        return self.model.stationary.cross(X, self.model.X, self.ranges)

    def mean(self, X: Array) -> Array:
        """Mean of the function alone, (k,)."""
        return self.model.basis(X) @ self.given.coefficients + self.cross(X) @ self.given.errors

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function, (k,) each."""
        half = whiten(self.given.factor, self.cross(X).T)
        share = np.maximum(1.0 - np.einsum("nk,nk->k", half, half), 0.0)
        more = (self._spread(X, half) ** 2).sum(axis=1)
        return self._mean(X, half), self.variance * (share + more)

    def moments_tied(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of observations when the nugget is also in the correlation of new row i to row i."""
        half = whiten(self.given.factor, self.cross(X).T + self.nugget * np.eye(len(X)))
        share = 1.0 + self.nugget - np.einsum("nk,nk->k", half, half)
        more = (self._spread(X, half) ** 2).sum(axis=1)
        return self._mean(X, half), self.variance * np.maximum(share + more, 0.0)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function."""
        half = whiten(self.given.factor, self.cross(X).T)
        own = self.model.stationary.cross(X, X, self.ranges)
        spread = self._spread(X, half)
        return self._mean(X, half), self.variance * (own - half.T @ half + spread @ spread.T)

    def _mean(self, X: Array, half: Array) -> Array:
        return self.model.basis(X) @ self.given.coefficients + half.T @ self.given.residual

    def _spread(self, X: Array, half: Array) -> Array:
        """Rows whose products are hᵀV_b h', or none."""
        if not self.model.include_beta_var:
            return np.zeros((len(X), 0))
        # h = f - FᵀK⁻¹k = f - RᵀQᵀ(U⁻ᵀk), so that hᵀR⁻¹ = fᵀR⁻¹ - (U⁻ᵀk)ᵀQ
        return self.given.scaled_by_coefficients(self.model.basis(X)) - half.T @ self.given.q
