"""s_j' ~ prior, accepted with probability min{1, p(y | s') / p(y | s)}.

Algorithms 1-3 of Loría & Bhadra as their code runs them.

One iteration goes through the input scales one coordinate at a time in order, then the layer scales from the first
layer up, then the noise variance. The prior is the proposal, so it cancels. Kept for fidelity: its acceptance falls
quickly as the data grow.
"""

import math

import numpy as np

from cadlag.sampling.contract import Apart, Info, State, Target, described, find_start


class Independence(Apart):
    """Coordinate-wise independence Metropolis-Hastings from the prior.

    Parameters
    ----------
    target
        The log density.
    n_warmup
        Not used: nothing adapts. Kept so that all kernels are made alike.
    """

    def __init__(self, target: Target, n_warmup: int = 0) -> None:
        self.target = target

    def init(self, rng: np.random.Generator) -> State:
        """Start from the prior."""
        return {"position": find_start(rng, self.target)}

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """One sweep over all coordinates."""
        position = state["position"]
        likelihood = self.target.log_likelihood_at(position, level)
        fresh = self.target.sample_prior(rng)
        accepted, failures = 0, 0
        for j in range(len(position)):
            proposal = position.copy()
            proposal[j] = fresh[j]
            proposed = self.target.log_likelihood_at(proposal, level)
            failures += proposed == -math.inf
            if math.log(1.0 - rng.random()) < proposed - likelihood:
                position, likelihood, accepted = proposal, proposed, accepted + 1
        log_target = likelihood + self.target.log_prior(position)
        return {"position": position}, described(log_target, accepted / max(len(position), 1), n_failures=failures)
