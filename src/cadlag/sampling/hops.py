"""x' ~ T(x, ·), accepted with probability min{1, π(x') π̃(x) / (π(x) π̃(x'))}, T reversible under an emulator π̃.

NUTS, joined by walks under what all chains have learned of the target.

At first each chain climbs to a few modes; all chains share what they found and start near modes taken by their mass.
An emulator (a Gaussian process) stands for the log density, fitted to all that has been evaluated, and each iteration
proposes the end of a walk under it, a long one that visits other modes or a short one that stays near. It costs one
likelihood, and where the emulator is right draws are nearly independent. The chains meet again early, then after
1.4 times the time each, a last time at the end of warm-up: the emulator is fitted again, as is a mixture q of t laws,
to whose draws long walks hop, and NUTS takes over the chains' common spread as its metric. Until warm-up ends one more
likelihood an iteration is spent on a walk under a flatter law, so that the emulator knows the tails: where it is too
low, chains would stay long. NUTS runs now and then, for what walks miss, and more often where few are accepted. Where
the noise goes to zero the posterior narrows to a funnel. There it helps to stretch one coordinate at a time about a
draw a of q: x'_j = a_j + z (x_j - a_j), log z standard normal, accepted with probability min{1, z π(x') / π(x)};
coordinates are taken more often whose tails have been seen to be heavy. Without an emulator (too little seen, or
a chain of a version that had none) draws of q are proposed instead, accepted with probability
min{1, π(x') q(x) / (π(x) q(x'))}.
Nothing changes after warm-up: the posterior is left invariant exactly, whatever q and π̃.
"""

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.sampling.contract import Array, Info, State, Target, described
from cadlag.sampling.emulator import Emulator
from cadlag.sampling.laplace import Modes, find_modes
from cadlag.sampling.mixture import Mixture, fit_mixture
from cadlag.sampling.nuts import Nuts

_SOONEST, _LATER = 10, 1.4  # iterations, and then so many times as many
_LATEST = 0.85  # of warm-up, for a meeting before its end
_MOST_JUMPS = 8
_TRIAL = (6, 4)  # jumps an iteration and iterations a NUTS trajectory, while nothing is known of acceptance
_WANTED = 1.2  # jumps accepted in an iteration
_NORMAL_KURTOSIS = 3.0
_LONG, _SHORT = (30, 0.5), (2, 0.0)  # steps of a walk, and the share of hops among them
_FLATTER = 0.85  # power of the emulator: where it is too low in the tails, chains would stay long
_FAR = 0.6  # power under which the tails are looked for
_UNTIL_STRETCHED = 4  # iterations of walks
_FIRST_TURN = 25  # iterations of walks a NUTS trajectory, while nothing is known of acceptance


class NutsWithHops:
    """NUTS joined by walks under an emulator fitted to the warm-up of all chains.

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
        self._emulator: tuple[State, Emulator, Mixture] | None = None

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
                "period": 1, "stretched": np.ones(self.target.dimension), "iteration": 0, "tried": 0, "accepted": 0.0,
                "emulator": None, "seen": _nothing(self.target.dimension)}  # fmt: skip

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
            mixture = fit_mixture(np.random.default_rng(seed), train, held_out).widened()
        except (NotPositiveDefiniteError, np.linalg.LinAlgError):
            return list(states)
        tried, accepted = sum(s["tried"] for s in states), sum(s["accepted"] for s in states)
        n_jumps, period = _schedule(accepted / tried) if tried else _TRIAL
        learned = {"mixture": mixture.to_state(), "n_jumps": n_jumps, "period": period, "tried": 0, "accepted": 0.0,
                   "stretched": _heaviness(np.concatenate(recent))}  # fmt: skip
        if states[0].get("emulator") is not None:
            before, seen = states[0]["emulator"], [s["seen"] for s in states]
            learned |= _emulated(before["centre"], before["factor"], [before, *seen], before)
            learned["period"] = _turn(accepted / tried) if tried else _FIRST_TURN
        return [{**s, **learned, "nuts": nuts} for s, nuts in zip(states, self._share_metric(states, recent))]

    def _share_modes(self, states: Sequence[State]) -> list[State]:
        """Start every chain anew, near any mode that one of them found, by its mass."""
        modes = Modes.join([s["modes"] for s in states])
        rng = np.random.default_rng(np.random.SeedSequence(modes.places.view(np.uint64).ravel()[:64].tolist()))
        mixture, heaviest = Mixture.about(modes), int(np.argmax(modes.log_masses))
        jumps = dict(zip(("n_jumps", "period"), _TRIAL)) | {"mixture": mixture.to_state(), "modes": None}
        jumps |= _emulated(modes.places[heaviest], modes.factors[heaviest], [modes.to_state()], None)
        if jumps["emulator"] is not None:
            jumps["period"] = _FIRST_TURN
        return [{**s, **jumps, "nuts": self.nuts.start_from(*modes.start(rng, self.target))} for s in states]

    def _share_metric(self, states: Sequence[State], recent: Sequence[Array]) -> list[State]:
        """NUTS with the covariance within chains; not at the end of warm-up, when the step size is settled."""
        if states[0]["iteration"] >= self.n_warmup:
            return [s["nuts"] for s in states]
        centred = np.concatenate([positions - positions.mean(axis=0) for positions in recent])
        count = len(centred) - len(recent)
        return [self.nuts.adopt(s["nuts"], centred.T @ centred / count, count) for s in states]

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """A walk or jumps, once there is something to go by, then a NUTS trajectory when its turn has come."""
        iteration = state["iteration"] + 1
        state = {**state, "iteration": iteration}
        info: Info = {"jump_accept": 0.0, "n_jumps": 0.0}
        failures = 0.0
        if state["mixture"] is not None:
            move = self._jump if state.get("emulator") is None else self._walk
            state, info, failures = move(rng, state, level)
        if iteration > self.n_warmup > state["nuts"]["iteration"]:
            state["nuts"] = self.nuts.freeze(state["nuts"])  # a chain that learned for fewer iterations than now
        untuned = state["nuts"]["step_size"] == 0.0 and _LATEST * self.n_warmup < iteration
        if iteration % state["period"] == 0 or untuned:
            state["nuts"], own = self.nuts.step(rng, state["nuts"], level)
        else:
            value = self.nuts.evaluate_value(state["nuts"]["position"], level)
            own = described(value, math.nan, step_size=state["nuts"]["step_size"])
        info = {**own, **info, "n_failures": own["n_failures"] + failures}
        if iteration == self.n_warmup:
            state["nuts"] = self.nuts.freeze(state["nuts"])
        state["position"] = state["nuts"]["position"]
        return state, info

    def _walk(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info, float]:
        emulator, mixture = self._read_emulator(state)
        position, iteration = state["nuts"]["position"], state["iteration"]
        start, value = position, self.nuts.evaluate_value(position, level)
        proposal, gain = emulator.walk(rng, position, mixture, *(_SHORT if iteration % 2 else _LONG), _FLATTER)
        seen = [(proposal, self.target.log_target(proposal, level))]
        if iteration <= self.n_warmup:
            far, _ = emulator.walk(rng, position, mixture, *_LONG, _FAR)
            seen.append((far, self.target.log_target(far, level)))
            state = {**state, "seen": _longer(state["seen"], seen)}
        failures = sum(at == -math.inf for _, at in seen)
        accepted = math.log(1.0 - rng.random()) < (seen[0][1] - value) - gain
        if accepted:
            position, value = seen[0]
        if iteration % _UNTIL_STRETCHED == 0:
            anchor = self._read(state["mixture"]).sample(rng, 1)[0]
            j = _taken(rng, state["stretched"], len(position))
            position, value, failed = self._stretch(rng, j, position, anchor, value, level)
            failures += failed
        if position is not start:
            self.nuts.remember_value(position, level, value)
        tried = {"tried": state["tried"] + 1, "accepted": state["accepted"] + accepted}
        state = {**state, **tried, "nuts": {**state["nuts"], "position": position}}
        return state, {"jump_accept": float(accepted), "n_jumps": 1.0}, float(failures)

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

    def _read_emulator(self, state: State) -> tuple[Emulator, Mixture]:
        """The emulator, and the mixture in its units."""
        if self._emulator is None or self._emulator[0] is not state["emulator"]:
            emulator = Emulator(**state["emulator"])
            self._emulator = state["emulator"], emulator, emulator.whitened(self._read(state["mixture"]))
        return self._emulator[1:]


def _nothing(d: int) -> State:
    """No log densities seen."""
    return {"positions": np.empty((0, d)), "values": np.empty(0)}


def _longer(seen: State, more: Sequence[tuple[Array, float]]) -> State:
    """Some more log densities seen."""
    positions, values = zip(*more)
    return {"positions": np.vstack([seen["positions"], *positions]), "values": np.append(seen["values"], values)}


def _emulated(centre: Array, factor: Array, seen: Sequence[State], before: State | None) -> State:
    """An emulator of all log densities seen, or that from before, and nothing that waits to be learned from."""
    positions, values = (np.concatenate([part[name] for part in seen]) for name in ("positions", "values"))
    with suppress(NotPositiveDefiniteError, np.linalg.LinAlgError):
        before = Emulator.learn(centre, factor, positions, values).to_state()
    return {"emulator": before, "seen": _nothing(len(centre))}


def _turn(rate: float) -> int:
    """Iterations a NUTS trajectory, for a given acceptance rate of walks."""
    return 100 if rate > 0.3 else 25 if rate > 0.1 else 5


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
