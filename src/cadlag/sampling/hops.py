"""x' ~ q, accepted with probability min{1, π(x') q(x) / (π(x) q(x'))}.

NUTS, joined by jumps that know all chains' modes.

At first each chain climbs to a few modes; all chains share what they found and start near modes taken by their mass.
Each iteration proposes jumps drawn from q, t laws about the modes to begin with, and NUTS runs now and then, for what q
misses. The chains meet again early and then after 1.4 times the time each, a last time at the end of warm-up: q is
fitted to what all of them have visited lately, and NUTS takes over their common spread within chains as its metric. A
chain caught in a minor mode leaves it in one step, and where q fits well the draws are nearly independent at the price
of one likelihood each (where jumps rarely land NUTS runs more often). Where the noise goes to zero the posterior
narrows to a funnel that q misses and where the steps of NUTS are too long. There it helps to stretch one coordinate at
a time about a draw a of q: x'_j = a_j + z (x_j - a_j), log z standard normal, accepted with probability
min{1, z π(x') / π(x)}; coordinates are taken more often whose tails have been seen to be heavy. Nothing changes after
warm-up: the posterior is left invariant exactly, whatever q.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.sampling.contract import Array, Info, State, Target, described
from cadlag.sampling.laplace import Modes, find_modes
from cadlag.sampling.mixture import Mixture, fit_mixture
from cadlag.sampling.nuts import Nuts

_SOONEST, _LATER = 10, 1.4  # iterations, and then so many times as many
_LATEST = 0.85  # of warm-up, for a meeting before its end
_MOST_JUMPS = 8
_TRIAL = (6, 4)  # jumps an iteration and iterations a NUTS trajectory, while nothing is known of acceptance
_WANTED = 1.2  # jumps accepted in an iteration
_NORMAL_KURTOSIS = 3.0


class NutsWithHops:
    """NUTS with hops to draws of a mixture fitted to the warm-up of all chains.

    Parameters
    ----------
    target
        The log density.
    n_warmup
        Iterations that adapt.
    """

    def __init__(self, target: Target, n_warmup: int) -> None:
        self.target, self.n_warmup = target, n_warmup
        self.nuts = Nuts(target, n_warmup)
        self._mixture: tuple[State, Mixture] | None = None

    @property
    def rendezvous(self) -> Sequence[int]:
        """Where the chains meet; never in a warm-up too short to learn from."""
        if self.n_warmup < 80 or self.target.dimension == 0:
            return ()
        early = (round(_SOONEST * _LATER**k) for k in range(128))
        return (1, *itertools.takewhile(lambda end: end <= _LATEST * self.n_warmup, early), self.n_warmup)

    def init(self, rng: np.random.Generator) -> State:
        """Start near a mode, with nothing to jump to yet."""
        modes = find_modes(rng, self.target) if self.rendezvous else None
        nuts = self.nuts.init(rng) if modes is None else self.nuts.start_from(*modes.start(rng, self.target))
        return {"position": None, "nuts": nuts, "modes": modes and modes.to_state(), "mixture": None, "n_jumps": 0,
                "period": 1, "stretched": np.ones(self.target.dimension), "iteration": 0, "tried": 0,
                "accepted": 0.0}  # fmt: skip

    def pool(self, states: Sequence[State], history: Sequence[Array]) -> list[State]:
        """Fit mixture and metric to the last two thirds of all seen, and jump as often as it pays."""
        if states[0]["modes"] is not None:
            return self._share_modes(states)
        recent = [positions[len(positions) // 3 :] for positions in history]
        seed = np.random.SeedSequence([states[0]["iteration"], len(states), recent[0].shape[1]])
        # Repeated positions would be in both parts and favour mixtures that learn them by heart: split in time.
        train = np.concatenate([positions[: len(positions) // 2] for positions in recent])
        held_out = np.concatenate([positions[len(positions) // 2 :] for positions in recent])
        try:
            mixture = fit_mixture(np.random.default_rng(seed), train, held_out).widened().to_state()
        except (NotPositiveDefiniteError, np.linalg.LinAlgError):
            return list(states)
        tried, accepted = sum(s["tried"] for s in states), sum(s["accepted"] for s in states)
        n_jumps, period = _schedule(accepted / tried) if tried else _TRIAL
        learned = {"mixture": mixture, "n_jumps": n_jumps, "period": period, "tried": 0, "accepted": 0.0,
                   "stretched": _heaviness(np.concatenate(recent))}  # fmt: skip
        return [{**s, **learned, "nuts": nuts} for s, nuts in zip(states, self._share_metric(states, recent))]

    def _share_modes(self, states: Sequence[State]) -> list[State]:
        """Start every chain anew, near any mode that one of them found, by its mass."""
        modes = Modes.join([s["modes"] for s in states])
        rng = np.random.default_rng(np.random.SeedSequence(modes.places.view(np.uint64).ravel()[:64].tolist()))
        jumps = dict(zip(("n_jumps", "period"), _TRIAL)) | {"mixture": Mixture.about(modes).to_state(), "modes": None}
        return [{**s, **jumps, "nuts": self.nuts.start_from(*modes.start(rng, self.target))} for s in states]

    def _share_metric(self, states: Sequence[State], recent: Sequence[Array]) -> list[State]:
        """NUTS with the covariance within chains; not at the end of warm-up, when the step size is settled."""
        if states[0]["iteration"] >= self.n_warmup:
            return [s["nuts"] for s in states]
        centred = np.concatenate([positions - positions.mean(axis=0) for positions in recent])
        count = len(centred) - len(recent)
        return [self.nuts.adopt(s["nuts"], centred.T @ centred / count, count) for s in states]

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """Jumps, once there is somewhere to jump to, then a NUTS trajectory when its turn has come."""
        iteration = state["iteration"] + 1
        state = {**state, "iteration": iteration}
        info: Info = {"jump_accept": 0.0, "n_jumps": 0.0}
        failures = 0.0
        if state["mixture"] is not None:
            state, info, failures = self._jump(rng, state, level)
        if iteration > self.n_warmup > state["nuts"]["iteration"]:
            state["nuts"] = self.nuts.freeze(state["nuts"])  # a chain that learned for fewer iterations than now
        if iteration % state["period"] == 0:
            state["nuts"], own = self.nuts.step(rng, state["nuts"], level)
        else:
            value = self.nuts.evaluate_value(state["nuts"]["position"], level)
            own = described(value, math.nan, step_size=state["nuts"]["step_size"])
        info = {**own, **info, "n_failures": own["n_failures"] + failures}
        if iteration == self.n_warmup:
            state["nuts"] = self.nuts.freeze(state["nuts"])
        state["position"] = state["nuts"]["position"]
        return state, info

    def _jump(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info, float]:
        mixture = self._read(state["mixture"])
        n, position = state["n_jumps"], state["nuts"]["position"]
        proposals = mixture.sample(rng, n + 1)
        log_q = mixture.log_density(np.vstack([position[None], proposals[:n]]))
        uniforms = np.log(1.0 - rng.random(n))
        value, here, accepted, failures = self.nuts.evaluate_value(position, level), log_q[0], 0, 0.0
        for proposal, log_q_proposal, log_uniform in zip(proposals[:n], log_q[1:], uniforms):
            proposed = self.target.log_target(proposal, level)
            failures += proposed == -math.inf
            if log_uniform < (proposed - value) + (here - log_q_proposal):
                position, value, here, accepted = proposal, proposed, log_q_proposal, accepted + 1
        before = position
        j = _taken(rng, state.get("stretched"), len(position))
        position, value, failed = self._stretch(rng, j, position, proposals[n], value, level)
        if accepted or position is not before:
            self.nuts.remember_value(position, level, value)
        tried = {"tried": state["tried"] + n, "accepted": state["accepted"] + accepted}
        state = {**state, **tried, "nuts": {**state["nuts"], "position": position}}
        return state, {"jump_accept": accepted / n, "n_jumps": float(n)}, failures + failed

    def _stretch(
        self, rng: np.random.Generator, j: int, position: Array, anchor: Array, value: float, level: float
    ) -> tuple[Array, float, bool]:
        """One coordinate scaled about the anchor's, for narrow places that jumps miss and NUTS steps across."""
        log_factor, log_uniform = rng.standard_normal(), math.log(1.0 - rng.random())
        proposal = position.copy()
        proposal[j] = anchor[j] + math.exp(log_factor) * (position[j] - anchor[j])
        proposed = self.target.log_target(proposal, level)
        accepted = log_uniform < proposed - value + log_factor  # dx'_j / dx_j = z
        return (*((proposal, proposed) if accepted else (position, value)), proposed == -math.inf)

    def _read(self, state: State) -> Mixture:
        if self._mixture is None or self._mixture[0] is not state:
            self._mixture = (state, Mixture.from_state(state))
        return self._mixture[1]


def _schedule(rate: float) -> tuple[int, int]:
    """Jumps an iteration, and iterations a NUTS trajectory, for a given acceptance rate of jumps."""
    if rate < 0.02:  # of the mixture before; the next one is better
        return _MOST_JUMPS // 2, 3
    return min(math.ceil(_WANTED / rate), _MOST_JUMPS), 10 if rate > 0.15 else 5 if rate > 0.05 else 3


def _heaviness(positions: Array) -> Array:
    """How often each coordinate is to be stretched, by its kurtosis."""
    centred = positions - positions.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = np.nan_to_num((centred**4).mean(axis=0) / (centred**2).mean(axis=0) ** 2, nan=_NORMAL_KURTOSIS)
    return np.maximum(kurtosis - 0.7 * _NORMAL_KURTOSIS, 0.1)


def _taken(rng: np.random.Generator, weights: Array | None, d: int) -> int:
    """A coordinate, by weight; uniformly for a chain of a version that had none."""
    if weights is None:
        return int(rng.integers(d))
    shares = np.cumsum(weights)
    return min(int(np.searchsorted(shares, rng.random() * shares[-1])), d - 1)
