"""d' = u d, u ~ Unif(¾, 4/3), accepted by p(d', g | y)/p(d, g | y) Π 1/u_i: a round of tgp's chain, as a transition.

A round moves all ranges together (with several of them in two rounds of three), the nugget in every other round, both
with β and σ² integrated out; draws σ² given them; and moves a₀ and g₀ given σ². As the density of the proposal at d'
is 1/(d(4/3 - 3/4)), the ratio of the two directions is d/d'. Nothing adapts.
"""

import math

import numpy as np

from cadlag.baselines.bayes_gp.least_squares import Regression
from cadlag.baselines.bayes_gp.model import LinearMeanProcess
from cadlag.baselines.bayes_gp.prior import (
    A0_RATE,
    G0_RATE,
    Values,
    log_nugget_prior,
    log_range_prior,
    log_variance_prior,
)
from cadlag.linalg import gaussian
from cadlag.sampling.contract import Apart, Array, Info, State

FACTORS = (3.0 / 4.0, 4.0 / 3.0)
RANGES_MOVED, NUGGET_MOVED = 2.0 / 3.0, 0.5


class MetropolisRounds(Apart):
    """tgp's Metropolis moves of ranges, nugget, variance and hyperparameters; so many rounds make one draw.

    Parameters
    ----------
    model
        The process.
    n_warmup
        Not used: nothing adapts. Kept so that all kernels are made alike.
    rounds
        Rounds a draw.
    """

    def __init__(self, model: LinearMeanProcess, n_warmup: int = 0, rounds: int = 1) -> None:
        self.model, self.n_warmup, self.rounds = model, n_warmup, rounds
        self._known: tuple[bytes, Regression] | None = None

    def init(self, rng: np.random.Generator) -> State:
        """Start where tgp does: every chain at the same place."""
        return {"position": self.model.position(Values(np.full(self.model.n_ranges, 0.5), 0.1, 1.0, 5.0, 10.0))}

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """As many rounds of Metropolis steps as make one draw."""
        position, accepted, failures = state["position"], [], 0
        for _ in range(self.rounds):
            position, tried = self._round(rng, position)
            accepted += [t == "accepted" for t in tried]
            failures += tried.count("failed")
        likelihood = self.model.log_density(self._fit(position), self.model.values(position).variance)
        info = {
            "log_target": likelihood + self.model.log_prior(position),
            "accept": float(np.mean(accepted)) if accepted else math.nan, "n_failures": float(failures),
        }  # fmt: skip
        return {"position": position}, info

    def _round(self, rng: np.random.Generator, position: Array) -> tuple[Array, list[str]]:
        k, tried = self.model.n_ranges, []
        for part, share in ((slice(0, k), RANGES_MOVED if k > 1 else 1.0), (slice(k, k + 1), NUGGET_MOVED)):
            if share == 1.0 or rng.random() < share:
                position, outcome = self._move(rng, position, part)
                tried.append(outcome)
        position = position.copy()
        position[k + 1] = self._draw_log_variance(rng, position)
        for coordinate in (k + 2, k + 3):
            position = self._move_hyperparameter(rng, position, coordinate)
        return position, tried

    # Ranges and nugget, given neither β nor σ² -----------------------------------------------------------------------

    def _move(self, rng: np.random.Generator, position: Array, part: slice) -> tuple[Array, str]:
        log_factors = np.log(rng.uniform(*FACTORS, size=len(position[part])))
        proposal = position.copy()
        proposal[part] += log_factors
        threshold = math.log(1.0 - rng.random())
        here = self._log_marginal(position, self._fit(position))
        try:
            fit = self.model.fit(self.model.values(proposal))
        except gaussian.NotPositiveDefiniteError:
            return position, "failed"
        if not threshold < self._log_marginal(proposal, fit) - here - float(log_factors.sum()):
            return position, "rejected"
        self._known = (self._key(proposal), fit)
        return proposal, "accepted"

    def _log_marginal(self, position: Array, fit: Regression) -> float:
        at = self.model.values(position)
        return self.model.log_marginal(fit, at.a0, at.g0) + log_range_prior(at.ranges) + log_nugget_prior(at.nugget)

    def _key(self, position: Array) -> bytes:
        return position[: self.model.n_ranges + 1].tobytes()

    def _fit(self, position: Array) -> Regression:
        """The regression at the ranges and nugget, not computed anew while they stay."""
        key = self._key(position)
        if self._known is None or self._known[0] != key:
            self._known = (key, self.model.fit(self.model.values(position)))
        return self._known[1]

    # The variance and its prior --------------------------------------------------------------------------------------

    def _draw_log_variance(self, rng: np.random.Generator, position: Array) -> float:
        """σ² ~ IG((a₀ - m + n)/2, (g₀ + λ)/2)."""
        at = self.model.values(position)
        scale = 0.5 * (at.g0 + self._fit(position).square)
        return math.log(scale) - math.log(rng.standard_gamma(0.5 * (at.a0 + self.model.n_free)))

    def _move_hyperparameter(self, rng: np.random.Generator, position: Array, coordinate: int) -> Array:
        log_factor = math.log(rng.uniform(*FACTORS))
        proposal = position.copy()
        proposal[coordinate] += log_factor
        change = self._log_hyperprior(proposal) - self._log_hyperprior(position)
        return proposal if math.log(1.0 - rng.random()) < change - log_factor else position

    def _log_hyperprior(self, position: Array) -> float:
        at = self.model.values(position)
        return log_variance_prior(at.variance, at.a0, at.g0) - A0_RATE * at.a0 - G0_RATE * at.g0
