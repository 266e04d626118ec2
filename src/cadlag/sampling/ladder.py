"""π_β(x) ∝ prior(x) likelihood(x)^β: the ladder of targets between prior, β = 0, and posterior, β = 1."""

import math
from collections.abc import Callable

import numpy as np

from cadlag.sampling.contract import Array, Forgetful


class PowerLadder(Forgetful):
    """The targets of a model that gives prior and likelihood with their gradients; the level is β."""

    exact_level = 1.0
    log_prior: Callable[..., float]
    log_prior_gradient: Callable[..., tuple[float, Array]]
    log_likelihood: Callable[..., float]  # -inf where it cannot be evaluated
    log_likelihood_gradient: Callable[..., tuple[float, Array]]

    def log_likelihood_at(self, position: Array, level: float) -> float:
        """β × log likelihood: the target's log density less the prior's."""
        return level * self.log_likelihood(position) if level > 0.0 else 0.0

    def log_target(self, position: Array, level: float) -> float:
        """Log prior + β × log likelihood."""
        prior = self.log_prior(position)
        return prior + self.log_likelihood_at(position, level) if math.isfinite(prior) else prior

    def log_target_gradient(self, position: Array, level: float) -> tuple[float, Array]:
        """Log prior + β × log likelihood, and the gradient."""
        prior, by_prior = self.log_prior_gradient(position)
        if level == 0.0 or not math.isfinite(prior):
            return prior, np.nan_to_num(by_prior)
        value, gradient = self.log_likelihood_gradient(position)
        return prior + level * value, by_prior + level * gradient
