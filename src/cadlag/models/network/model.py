"""y ~ N(0, ΦA²Φᵀ + σ²I), a_j = τ M^(-1/α) √s_j: prior and likelihood of the stable network, and one draw of it.

A position is one flat vector: the units (b_j, v_j) row by row, log s, kinds, log τ, log σ². Level d of the target is
the posterior with σ² + d² in place of σ²; 0 is the posterior.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadlag.gaussian import log_marginal_of_sums
from cadlag.models.network.columns import RELU, SIGN
from cadlag.models.network.lattice import fill_columns
from cadlag.models.network.scales import log_half_cauchy
from cadlag.stable import PositiveStable, positive_stable

Array = NDArray[np.float64]
ACTIVATIONS = {"sign": 0, "relu": 1, "auto": 2}


class Units(NamedTuple):
    """A position, read."""

    W: Array
    log_s: Array
    kinds: NDArray[np.int64]
    log_tau: float
    log_v: float


@dataclass(frozen=True)
class StableNetwork:
    """Prior and likelihood of the i.i.d. stable network.

    Attributes
    ----------
    X
        Inputs with a column of ones first, (n, q).
    y
        Responses.
    n_units
        M.
    alpha
        Stability index.
    activation
        "sign", "relu" or "auto".
    amplitude
        τ, or None when unknown.
    noise_variance
        σ², or None when unknown.
    noise_prior_on
        Whether the half-Cauchy prior is on the "variance" or the "sd".
    noise_scale
        Scale of that half-Cauchy.
    """

    X: Array
    y: Array
    n_units: int = 30
    alpha: float = 1.0
    activation: str = "auto"
    amplitude: float | None = None
    noise_variance: float | None = None
    noise_prior_on: str = "variance"
    noise_scale: float = 1.0

    exact_level = 0.0

    @cached_property
    def law(self) -> PositiveStable:
        """The prior law of each scale."""
        return positive_stable(self.alpha)

    @cached_property
    def stable(self) -> bool:
        """Whether the scales are random."""
        return self.alpha < 2.0

    @cached_property
    def dimension(self) -> int:
        """Length of a position."""
        return self.n_units * (self.X.shape[1] + 2) + 2

    @cached_property
    def log_factor(self) -> float:
        """log M^(-2/α)."""
        return -2.0 / self.alpha * math.log(self.n_units)

    @cached_property
    def relu_scale(self) -> float:
        """κ: a ReLU column has mean square ½(1 + |x|²) under the prior."""
        if len(self.X) == 0:
            return math.sqrt(2.0)
        return math.sqrt(2.0 / float(np.einsum("ij,ij->i", self.X, self.X).mean()))

    def read(self, position: Array) -> Units:
        """A position by parts, copied."""
        m, q = self.n_units, self.X.shape[1]
        W = position[: m * q].reshape(m, q).copy()
        log_s, kinds = position[m * q : m * q + m].copy(), position[m * q + m : m * q + 2 * m].astype(np.int64)
        return Units(W, log_s, kinds, float(position[-2]), float(position[-1]))

    def write(self, units: Units) -> Array:
        """The parts as one position."""
        return np.concatenate([units.W.ravel(), units.log_s, units.kinds.astype(float), [units.log_tau, units.log_v]])

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of all unknowns."""
        m, q = self.n_units, self.X.shape[1]
        kinds = {"sign": np.full(m, SIGN), "relu": np.full(m, RELU), "auto": rng.integers(2, size=m)}[self.activation]
        log_tau = math.log(abs(math.tan(math.pi * (rng.random() - 0.5))) + 1e-300)
        log_v = math.log(self.noise_scale * abs(math.tan(math.pi * (rng.random() - 0.5))) + 1e-300)
        return self.write(Units(
            rng.standard_normal((m, q)), self.law.sample_log(rng, m), kinds,
            math.log(self.amplitude) if self.amplitude is not None else log_tau,
            math.log(self.noise_variance) if self.noise_variance is not None
            else log_v * (1.0 if self.noise_prior_on == "variance" else 2.0),
        ))  # fmt: skip

    @cached_property
    def noise_power(self) -> float:
        """Power of σ that is half-Cauchy."""
        return 2.0 if self.noise_prior_on == "variance" else 1.0

    def log_prior(self, position: Array) -> float:
        """Log prior density up to a constant."""
        units = self.read(position)
        value = -0.5 * float((units.W**2).sum())
        if self.stable:
            value += float(self.law.log_density(units.log_s).sum())
        if self.amplitude is None:
            value += log_half_cauchy(units.log_tau)
        if self.noise_variance is None:
            value += log_half_cauchy(0.5 * self.noise_power * units.log_v - math.log(self.noise_scale))
        return value

    def columns(self, units: Units, X: Array | None = None) -> Array:
        """Φ, (n, M)."""
        return fill_columns(self.X if X is None else X, units.W, units.kinds, self.relu_scale)

    def variances(self, units: Units) -> Array:
        """a_j²."""
        return np.exp(2.0 * units.log_tau + self.log_factor + units.log_s)

    def log_likelihood_at(self, position: Array, level: float) -> float:
        """log p(y | units) with a noise floor."""
        units = self.read(position)
        Phi = self.columns(units)
        value, _, _ = log_marginal_of_sums(
            Phi.T @ Phi, Phi.T @ self.y, float(self.y @ self.y), len(self.y), self.variances(units),
            math.exp(units.log_v) + level * level,
        )  # fmt: skip
        return value

    def log_target(self, position: Array, level: float) -> float:
        """log prior + log likelihood."""
        return self.log_prior(position) + self.log_likelihood_at(position, level)
