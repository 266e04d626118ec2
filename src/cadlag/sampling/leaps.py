"""x' = leap(x), reversible under the prior, accepted with probability min{1, L(x')^β / L(x)^β}: moves between modes.

A target may know where its modes are alike: parts that can change places, or be drawn afresh while others stay. It
then offers `n_leaps`, how many to try at a time, and `leap(rng, position)`, a proposal under which its prior is
reversible. Each costs one likelihood and nothing adapts. NUTS does the rest from wherever they end, in short
trajectories, as no metric fits all modes.
"""

import math
from typing import Protocol

import numpy as np

from cadlag.sampling.contract import Array, Info, State, Target
from cadlag.sampling.nuts import Nuts


class LeapingTarget(Target, Protocol):
    """A target that knows moves between its modes."""

    @property
    def n_leaps(self) -> int:
        """How many to try at a time."""

    def leap(self, rng: np.random.Generator, position: Array) -> Array:
        """A proposal under which the prior is reversible."""


class NutsWithLeaps(Nuts):
    """NUTS whose every trajectory starts after leaps that the target proposes.

    Parameters
    ----------
    target
        The log density.
    n_warmup
        Iterations that adapt.
    """

    target: LeapingTarget

    def __init__(self, target: LeapingTarget, n_warmup: int) -> None:
        super().__init__(target, n_warmup, max_depth=4)

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """Leaps, then a step of NUTS."""
        position, accepted = self._leap(rng, state["position"], level)
        state, info = super().step(rng, {**state, "position": position}, level)
        return state, {**info, "leap_accept": accepted / self.target.n_leaps}

    def _leap(self, rng: np.random.Generator, position: Array, level: float) -> tuple[Array, int]:
        """Leaps; the same object, whose gradient is known, if none is accepted."""
        likelihood, accepted = self.target.log_likelihood_at(position, level), 0
        for _ in range(self.target.n_leaps):
            proposal = self.target.leap(rng, position)
            if proposal is position:
                continue
            proposed = self.target.log_likelihood_at(proposal, level)
            if math.log(1.0 - rng.random()) < proposed - likelihood:
                position, likelihood, accepted = proposal, proposed, accepted + 1
        return position, accepted
