"""The power of the quick checks: each planted error is caught by a joint-law check of one kernel."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cadlag import likelihood
from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling import nuts as nuts_module
from cadlag.sampling.emulator import Emulator
from cadlag.sampling.hops import NutsWithHops
from cadlag.sampling.mixture import Mixture
from cadlag.sampling.nuts import Nuts
from cadlag.sampling.tempering import Tempered
from cadlag.stable import PositiveStable
from statistical.checks import joint_law, paired, worst
from statistical.kernels_under_test import MOVES, small_model

Patch = pytest.MonkeyPatch
half_cauchy = likelihood.log_half_cauchy


def lost_jacobian(patch: Patch) -> None:
    """The density of σ² where that of log σ² belongs."""

    def wrong(log_v: float, scale: float, on: str) -> tuple[float, float]:
        value, slope = half_cauchy(log_v, scale, on)
        return value - log_v, slope - 1.0

    patch.setattr(likelihood, "log_half_cauchy", wrong)


def half_cauchy_on_the_other_scale(patch: Patch) -> None:
    """σ instead of σ²."""
    patch.setattr(likelihood, "log_half_cauchy", lambda log_v, scale, on: half_cauchy(log_v, scale, "sd"))


def stable_scale_off_by_the_cosine(patch: Patch) -> None:
    """Draws of S(α/2, 1) in the usual parametrisation, which is not that of the Laplace transform."""
    right = PositiveStable.sample_log

    def wrong(self: PositiveStable, rng: np.random.Generator, size: Any = None) -> Any:
        return right(self, rng, size) - math.log(math.cos(0.5 * math.pi * self.index)) / self.index

    patch.setattr(PositiveStable, "sample_log", wrong)


def no_proposal_density(patch: Patch) -> None:
    """The jump accepted by π(x')/π(x) alone."""
    patch.setattr(Mixture, "log_density", lambda self, positions: np.zeros(len(positions)))


def walk_without_what_it_gained(patch: Patch) -> None:
    """The end of a walk accepted by π(x')/π(x) alone."""
    right = Emulator.walk
    patch.setattr(Emulator, "walk", lambda *arguments: (right(*arguments)[0], 0.0))


def emulator_follows_the_draws(patch: Patch) -> None:
    """The emulator keeps learning: what it has seen moves towards the current draw."""
    right = NutsWithHops._walk

    def wrong(self: NutsWithHops, rng: np.random.Generator, state: dict[str, Any], level: float) -> Any:
        emulator = state["emulator"]
        shift = 0.5 * (state["nuts"]["position"] - emulator["centre"])
        moved = {**emulator, "centre": emulator["centre"] + shift, "positions": emulator["positions"] + shift}
        return right(self, rng, {**state, "emulator": moved}, level)

    patch.setattr(NutsWithHops, "_walk", wrong)


def mixture_follows_the_draws(patch: Patch) -> None:
    """The proposal keeps learning: its first component moves to the current draw."""
    right = NutsWithHops._jump

    def wrong(self: NutsWithHops, rng: np.random.Generator, state: dict[str, Any], level: float) -> Any:
        means = state["mixture"]["means"].copy()
        means[0] = state["nuts"]["position"]
        return right(self, rng, {**state, "mixture": {**state["mixture"], "means": means}}, level)

    patch.setattr(NutsWithHops, "_jump", wrong)


def stretch_without_jacobian(patch: Patch) -> None:
    """A coordinate scaled by z and accepted by π(x')/π(x) alone."""

    def wrong(self: NutsWithHops, rng: np.random.Generator, j: int, position: Any, anchor: Any, *rest: float) -> Any:
        value, level = rest
        proposal = position.copy()
        proposal[j] = anchor[j] + math.exp(rng.standard_normal()) * (position[j] - anchor[j])
        proposed = self.target.log_target(proposal, level)
        accepted = math.log(1.0 - rng.random()) < proposed - value
        return (*((proposal, proposed) if accepted else (position, value)), False)

    patch.setattr(NutsWithHops, "_stretch", wrong)


def step_size_follows_the_draws(patch: Patch) -> None:
    """Adapting after warm-up: the step of NUTS depends on where it starts."""
    right = Nuts.step

    def wrong(self: Nuts, rng: np.random.Generator, state: dict[str, Any], level: float) -> Any:
        step = 1.2 if state["position"][-1] > 0.0 else 0.05
        return right(self, rng, {**state, "step_size": step}, level)

    patch.setattr(Nuts, "step", wrong)


def missing_half(patch: Patch) -> None:
    """-log|Λ| - yᵀΛ⁻¹y without the ½."""
    value, gradient = KernelProcess.log_likelihood, KernelProcess.log_likelihood_gradient

    def wrong_gradient(self: KernelProcess, position: Any) -> Any:
        a, b = gradient(self, position)
        return 2.0 * a, 2.0 * b

    patch.setattr(KernelProcess, "log_likelihood", lambda self, position: 2.0 * value(self, position))
    patch.setattr(KernelProcess, "log_likelihood_gradient", wrong_gradient)


def noise_read_as_a_standard_deviation(patch: Patch) -> None:
    """The last coordinate taken for log σ."""
    right = KernelProcess.scales

    def wrong(self: KernelProcess, position: Any) -> Any:
        scales = right(self, position)
        return replace(scales, log_noise=2.0 * scales.log_noise)

    patch.setattr(KernelProcess, "scales", wrong)


def stale_value(patch: Patch) -> None:
    """What is remembered is not compared with where the chain is."""

    def wrong(self: Nuts, position: Any, level: float) -> float:
        if self._here is None:
            self._here = nuts_module._Known(position, level, self.target.log_target(position, level), None)
        return self._here.value

    patch.setattr(Nuts, "evaluate_value", wrong)
    patch.setattr(Nuts, "remember_value", lambda *_: None)


def stale_gradient(patch: Patch) -> None:
    """NUTS goes on from the value and gradient of its own last point, jumps or not."""
    right = Nuts.evaluate

    def wrong(self: Nuts, position: Any, level: float) -> Any:
        found = getattr(self, "_stale", None)
        self._stale = right(self, position, level)
        return found or self._stale

    patch.setattr(Nuts, "evaluate", wrong)


def no_kinetic_energy(patch: Patch) -> None:
    """Points of a trajectory weighted by π alone."""
    right = nuts_module._Trajectory.leaf

    def wrong(self: Any, start: Any, direction: float) -> Any:
        tree = right(self, start, direction)
        tree.log_weight += 0.5 * float(tree.right.momentum @ tree.right.momentum)
        return tree

    patch.setattr(nuts_module._Trajectory, "leaf", wrong)


def half_an_exchange(patch: Patch) -> None:
    """Replicas exchanged by the gain of the colder one."""

    def wrong(self: Tempered, rng: np.random.Generator, rungs: list[Any], i: int) -> bool:
        x, y = rungs[i]["position"], rungs[i + 1]["position"]
        gain = self.target.log_target(y, self.levels[i]) - self.target.log_target(x, self.levels[i])
        if math.log(1.0 - rng.random()) >= gain:
            return False
        rungs[i], rungs[i + 1] = {**rungs[i], "position": y}, {**rungs[i + 1], "position": x}
        return True

    patch.setattr(Tempered, "_exchange", wrong)


# Move that shows the bug, and whether the quick check is enough: some bugs move each draw so little that only the long
# check can see them.
BUGS: dict[Callable[[Patch], None], tuple[str, bool]] = {
    lost_jacobian: ("nuts", True),
    half_cauchy_on_the_other_scale: ("nuts", True),
    stable_scale_off_by_the_cosine: ("independence", True),
    no_proposal_density: ("jump", True),
    mixture_follows_the_draws: ("jump", True),
    walk_without_what_it_gained: ("walk", True),
    emulator_follows_the_draws: ("walk", False),
    stretch_without_jacobian: ("stretch", False),
    step_size_follows_the_draws: ("nuts", True),
    missing_half: ("independence", True),
    noise_read_as_a_standard_deviation: ("independence", True),
    no_kinetic_energy: ("nuts", True),
    half_an_exchange: ("exchange", False),
    stale_value: ("jump", False),
    stale_gradient: ("nuts_and_jumps", False),
}
LONG = 3000


@pytest.mark.slow
@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bug_is_caught(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    move, quick = BUGS[bug]
    z = joint_law(small_model(), MOVES[move], 41) if quick else paired(small_model(), MOVES[move], LONG, 43)
    check = "quick" if quick else "long"
    print(f"\n{bug.__name__} ({check} check): |z| = {worst(z):.1f} at {max(z, key=lambda name: abs(z[name]))}")
    assert worst(z) > 4.0


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_long_check_finds_nothing_where_nothing_is_planted(move: str) -> None:
    z = paired(small_model(), MOVES[move], LONG, 44)
    print(f"\n{move}: |z| = {worst(z):.1f} at {max(z, key=lambda name: abs(z[name]))}")
    assert worst(z) < 4.0
