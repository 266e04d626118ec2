"""p(S, c, σ² | y, units): the scales of the bulk and the noise, given the units, as a target for NUTS.

The output weights are integrated out: y ~ N(0, ΦA²Φᵀ + cΣ_K + σ²I).
"""

import math

import numpy as np

from cadlag.kernel_process.model import KernelProcess
from cadlag.linalg.low_rank import Columns
from cadlag.network.scales import LOG_LEAST
from cadlag.sampling.contract import Array


class GivenUnits:
    """The conditional law of the bulk; its level is the noise floor.

    Parameters
    ----------
    process
        The bulk.
    columns
        Φ, (n, M).
    variances
        a_j².
    """

    exact_level = 0.0

    def __init__(self, process: KernelProcess, columns: Array, variances: Array) -> None:
        self.process = process
        self.columns = Columns(columns, variances)

    @property
    def dimension(self) -> int:
        """Number of unknowns."""
        return self.process.dimension

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of the unknowns."""
        return self.process.sample_prior(rng)

    def log_prior(self, position: Array) -> float:
        """Log prior density, -inf where the noise is below its least."""
        return self.process.log_prior(position) if self._allowed(position) else -math.inf

    def _allowed(self, position: Array) -> bool:
        return not self.process.likelihood.n_unknown or float(position[-1]) > LOG_LEAST

    def log_likelihood_at(self, position: Array, level: float) -> float:
        """log p(y | units, position) with a noise floor."""
        return self.process.log_likelihood(position, level, self.columns)

    def log_target(self, position: Array, level: float) -> float:
        """log prior + log likelihood."""
        prior = self.log_prior(position)
        return prior + self.log_likelihood_at(position, level) if math.isfinite(prior) else prior

    def log_target_gradient(self, position: Array, level: float) -> tuple[float, Array]:
        """Log prior + log likelihood, and the gradient."""
        if not self._allowed(position):
            return -math.inf, np.zeros(self.dimension)
        prior, by_prior = self.process.log_prior_gradient(position)
        if not math.isfinite(prior):
            return prior, np.nan_to_num(by_prior)
        value, gradient = self.process.log_likelihood_gradient(position, level, self.columns)
        return prior + value, by_prior + gradient
