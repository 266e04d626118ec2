"""y ~ N(Fβ, σ²(K* + gI)), F = [1, x], β flat: the hierarchical Gaussian process of Gramacy's tgp without its tree.

K* is a correlation with ranges d, inputs being meant to lie in the unit cube: "expsep" exp(-Σ_i Δ_i²/d_i), "exp"
exp(-‖Δ‖²/d), "matern" that of r = ‖Δ‖/d. With β integrated out over a flat prior, m columns in F, and b̂, λ, V_b those
of :mod:`~cadlag.baselines.bayes_gp.least_squares`,

    log p(y | d, g, σ²) = ½ log|V_b| - ½ log|K| - ½(n - m) log 2πσ² - λ/2σ²,
    log p(y | d, g)     = ½ log|V_b| - ½ log|K| - ½(a₀ - m + n) log((g₀ + λ)/2) + const.

A position holds log d, log(g - 1e-10), log σ², log(a₀ - 2), log(g₀ - 1e-10); their priors are in
:mod:`~cadlag.baselines.bayes_gp.prior`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cadlag.baselines.bayes_gp.atom import LinearMean, LinearMeanAtom
from cadlag.baselines.bayes_gp.least_squares import Regression, independent_columns
from cadlag.baselines.bayes_gp.prior import LEAST_A0, OFFSET, Values, gradient_by_logs, log_density, sample_values
from cadlag.kernels.stationary import Stationary
from cadlag.linalg.gaussian import LOG_2PI, Array, LeftOut, NotPositiveDefiniteError
from cadlag.names import distinct
from cadlag.sampling.ladder import PowerLadder

_KNOWN = 1e-10  # precision of a row given the others, over that given none, below which it is rounding


@dataclass(frozen=True)
class LinearMeanProcess(PowerLadder, LinearMean):
    """Prior and likelihood of a Gaussian process about a linear mean.

    Attributes
    ----------
    X
        Inputs, without a column of ones, (n, p).
    y
        Responses, (n,).
    correlation
        "expsep", "exp" or "matern".
    nu
        Smoothness of the Matérn correlation.
    include_beta_var
        Whether the uncertainty of β is part of the variance of the function: σ² hᵀV_b h with h = f(x) - FᵀK⁻¹k.
    """

    X: Array
    y: Array
    correlation: str = "expsep"
    nu: float = 1.5
    include_beta_var: bool = False

    @cached_property
    def stationary(self) -> Stationary:
        """The correlation K*."""
        return Stationary(self.correlation, self.nu)

    @cached_property
    def n_ranges(self) -> int:
        """Number of ranges."""
        return self.stationary.n_ranges(self.n_inputs)

    @property
    def dimension(self) -> int:
        """Number of unknowns."""
        return self.n_ranges + 4

    # The linear mean -------------------------------------------------------------------------------------------------

    @cached_property
    def linear_inputs(self) -> NDArray[np.int_]:
        """Inputs with a coefficient: those that are no linear combination of others."""
        return independent_columns(self.X)

    def basis(self, X: Array) -> Array:
        """Columns f(x) of the linear mean: ones, and the inputs that have a coefficient."""
        if len(self.y) == 0:
            return np.zeros((len(X), 0))
        return np.column_stack([np.ones(len(X)), X[:, self.linear_inputs]])

    @property
    def n_free(self) -> int:
        """n - m, the number of observations that are left to the process."""
        return len(self.y) - self.F.shape[1]

    # Positions -------------------------------------------------------------------------------------------------------

    def values(self, position: Array) -> Values:
        """Ranges, nugget, variance and the parameters of their priors at a position."""
        natural, k = np.exp(position), self.n_ranges
        nugget, variance, a0, g0 = natural[k:].tolist()
        return Values(natural[:k], nugget + OFFSET, variance, a0 + LEAST_A0, g0 + OFFSET)

    def position(self, values: Values) -> Array:
        """The inverse of :meth:`values`."""
        rest = [values.nugget - OFFSET, values.variance, values.a0 - LEAST_A0, values.g0 - OFFSET]
        return np.log(np.concatenate([values.ranges, rest]))

    def named(self, positions: Array) -> dict[str, Array]:
        """Draws by name."""
        natural, k = np.exp(positions), self.n_ranges
        ranges = {"ranges": natural[..., :k]} if self.correlation == "expsep" else {"range": natural[..., 0]}
        nugget, variance = natural[..., k] + OFFSET, natural[..., k + 1]
        return {
            **ranges, "nugget": nugget, "variance": variance, "noise_variance": variance * nugget,
            "a0": natural[..., k + 2] + LEAST_A0, "g0": natural[..., k + 3] + OFFSET,
        }  # fmt: skip

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the ranges: those of the inputs."""
        return {"ranges": distinct(names)}

    # Densities -------------------------------------------------------------------------------------------------------

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw from the prior."""
        return self.position(sample_values(rng, self.n_ranges))

    def log_prior(self, position: Array) -> float:
        """Log prior density of a position."""
        return log_density(self.values(position)) + float(position.sum())

    def log_prior_gradient(self, position: Array) -> tuple[float, Array]:
        """Log prior density and its gradient."""
        return self.log_prior(position), 1.0 + gradient_by_logs(self.values(position))

    def log_likelihood(self, position: Array) -> float:
        """log p(y | d, g, σ²), -inf where K cannot be factorised."""
        at = self.values(position)
        try:
            return self.log_density(self.fit(at), at.variance)
        except NotPositiveDefiniteError:
            return -math.inf

    def log_likelihood_gradient(self, position: Array) -> tuple[float, Array]:
        """Log likelihood and gradient, zero where it is -inf: the derivative by K is ½(eeᵀ/σ² - P), e = Py.

        P = K⁻¹ - K⁻¹F V_b FᵀK⁻¹ as in :meth:`leave_one_out`.
        """
        at, gradient = self.values(position), np.zeros(self.dimension)
        try:
            fit = self.fit(at)
        except NotPositiveDefiniteError:
            return -math.inf, gradient
        pairs = np.outer(fit.errors / at.variance, fit.errors)
        pairs -= fit.projected_inverse()
        k = self.n_ranges
        gradient[:k] = self.stationary.pull_back(self.X, at.ranges, pairs)
        gradient[k] = 0.5 * np.trace(pairs) * (at.nugget - OFFSET)
        gradient[k + 1] = 0.5 * (fit.square / at.variance - self.n_free)
        return self.log_density(fit, at.variance), gradient

    def log_density(self, fit: Regression, variance: float) -> float:
        """log p(y | d, g, σ²) from the regression."""
        log_scale = LOG_2PI + math.log(variance)
        determinants = 0.5 * (fit.log_det_coefficients - fit.log_det)
        return determinants - 0.5 * self.n_free * log_scale - 0.5 * fit.square / variance

    def log_marginal(self, fit: Regression, a0: float, g0: float) -> float:
        """log p(y | d, g, a₀, g₀), β and σ² integrated out, up to a function of a₀ and g₀."""
        determinants = 0.5 * (fit.log_det_coefficients - fit.log_det)
        return determinants - 0.5 * (a0 + self.n_free) * math.log(0.5 * (g0 + fit.square))

    # Given the unknowns ----------------------------------------------------------------------------------------------

    def fit(self, at: Values) -> Regression:
        """The regression given d and g."""
        return self.regression(at.ranges, at.nugget)

    def condition(self, position: Array) -> LinearMeanAtom:
        """The Gaussian process that one draw stands for, given the data."""
        at = self.values(position)
        return LinearMeanAtom(self, at.ranges, at.nugget, at.variance, self.fit(at))

    def leave_one_out(self, position: Array) -> LeftOut:
        """Each row given d, g, σ² and all the others, β integrated out: Λ⁻¹ = P/σ², P = K⁻¹ - K⁻¹F V_b FᵀK⁻¹.

        A row without which a coefficient is unknown has no law: its variance is infinite.
        """
        at = self.values(position)
        fit = self.fit(at)
        precision = np.diagonal(fit.projected_inverse())
        precision = np.where(precision > _KNOWN / (1.0 + at.nugget), precision, 0.0)
        return LeftOut.solved(fit.errors / at.variance, precision / at.variance)
