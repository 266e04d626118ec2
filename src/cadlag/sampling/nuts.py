"""The no-U-turn sampler: a trajectory of H(x, r) = -log π(x) + ½|r|² is doubled until it turns back on itself.

Multinomial weights along the trajectory and the criterion on summed momenta, also across subtrees, of Betancourt (2017)
after Hoffman & Gelman (2014). The chain moves in whitened coordinates x = L u, with LLᵀ the covariance learned in
expanding windows; the step size follows by dual averaging. After warm-up nothing adapts.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cadlag.sampling import adaptation
from cadlag.sampling.contract import Apart, Array, Info, State, Target, described, find_start
from cadlag.sampling.laplace import find_modes

_MAX_ENERGY_ERROR = 1000.0
_WANTED_ACCEPT = 0.8  # mean acceptance statistic that the step size is tuned to
_FEW = 10  # steps, whose average says little


class _Point(NamedTuple):
    """A phase-space point in whitened coordinates."""

    position: Array
    momentum: Array
    value: float
    gradient: Array


class _Known(NamedTuple):
    """What has been evaluated at the current position."""

    position: Array
    level: float
    value: float
    gradient: Array | None


@dataclass(slots=True)
class _Tree:
    """A stretch of trajectory: its ends, momenta summed, a multinomial draw from it."""

    left: _Point
    right: _Point
    proposal: _Point
    log_weight: float
    momentum_sum: Array
    turning: bool
    diverging: bool
    accept_sum: float
    n_leapfrog: int


def _turns(momentum_sum: Array, left: Array, right: Array) -> bool:
    return float(momentum_sum @ left) <= 0.0 or float(momentum_sum @ right) <= 0.0


class _Trajectory:
    """Leapfrog steps and doublings from one starting point."""

    def __init__(
        self, target: Target, level: float, factor: Array, step: float, energy: float, rng: np.random.Generator
    ) -> None:
        self.target, self.level, self.factor, self.step = target, level, factor, step
        self.energy, self.rng = energy, rng
        self.n_failures = 0

    def leapfrog(self, start: _Point, direction: float) -> _Point:
        step = direction * self.step
        momentum = start.momentum + (0.5 * step) * (start.gradient @ self.factor)
        position = start.position + self.factor @ (step * momentum)
        value, gradient = self.target.log_target_gradient(position, self.level)
        if value == -math.inf:
            self.n_failures += 1
        momentum = momentum + (0.5 * step) * (gradient @ self.factor)
        return _Point(position, momentum, value, gradient)

    def leaf(self, start: _Point, direction: float) -> _Tree:
        point = self.leapfrog(start, direction)
        log_weight = self.energy + point.value - 0.5 * float(point.momentum @ point.momentum)
        if math.isnan(log_weight):
            log_weight = -math.inf
        accept = 1.0 if log_weight >= 0.0 else math.exp(log_weight)
        diverging = log_weight < -_MAX_ENERGY_ERROR
        return _Tree(point, point, point, log_weight, point.momentum, False, diverging, accept, 1)

    def build(self, start: _Point, direction: float, depth: int) -> _Tree:
        if depth == 0:
            return self.leaf(start, direction)
        inner = self.build(start, direction, depth - 1)
        if inner.turning or inner.diverging:
            return inner
        outer = self.build(inner.right if direction > 0 else inner.left, direction, depth - 1)
        return self.merge(inner, outer, direction, biased=False)

    def merge(self, inner: _Tree, outer: _Tree, direction: float, biased: bool) -> _Tree:
        """Join two stretches; `biased` prefers the newer half, as the top level of the tree does."""
        left, right = (inner, outer) if direction > 0 else (outer, inner)
        total = np.logaddexp(inner.log_weight, outer.log_weight)
        stopped = outer.turning or outer.diverging
        proposal = inner.proposal
        reference = inner.log_weight if biased else total
        if not stopped and self.rng.random() < math.exp(min(0.0, outer.log_weight - reference)):
            proposal = outer.proposal
        summed = left.momentum_sum + right.momentum_sum
        turning = stopped or (
            _turns(summed, left.left.momentum, right.right.momentum)
            or _turns(left.momentum_sum + right.left.momentum, left.left.momentum, right.left.momentum)
            or _turns(right.momentum_sum + left.right.momentum, left.right.momentum, right.right.momentum)
        )
        return _Tree(
            left.left, right.right, proposal, float(total), summed, turning, outer.diverging,
            inner.accept_sum + outer.accept_sum, inner.n_leapfrog + outer.n_leapfrog,
        )  # fmt: skip


class Nuts(Apart):
    """NUTS with a dense metric, as an explicit-state kernel.

    Parameters
    ----------
    target
        The log density.
    n_warmup
        Iterations that adapt.
    max_depth
        Largest number of doublings.
    """

    def __init__(self, target: Target, n_warmup: int, max_depth: int = 8) -> None:
        self.target, self.n_warmup, self.max_depth = target, n_warmup, max_depth
        self._windows = adaptation.windows(n_warmup)
        self._here: _Known | None = None

    def init(self, rng: np.random.Generator) -> State:
        """Start near a mode, with its curvature as first metric."""
        if self.target.dimension == 0:
            return self.start_from(find_start(rng, self.target))
        return self.start_from(*find_modes(rng, self.target).start(rng, self.target))

    def start_from(self, position: Array, factor: Array | None = None) -> State:
        """A state at a given position, with nothing learned yet."""
        d = len(position)
        return {
            "position": position, "iteration": 0, "step_size": 0.0, "factor": np.eye(d) if factor is None else factor,
            "averaging": adaptation.restart_averaging(0.1),
            "welford": adaptation.nothing_seen(d),
        }  # fmt: skip

    def evaluate(self, position: Array, level: float) -> tuple[float, Array]:
        """Value and gradient, remembered for the position where the last step ended."""
        known = self._here
        if known is not None and known.position is position and known.level == level and known.gradient is not None:
            return known.value, known.gradient
        return self.target.log_target_gradient(position, level)

    def evaluate_value(self, position: Array, level: float) -> float:
        """Log density at a position, computed once while the chain stays there at the same level."""
        known = self._here
        if known is not None and known.position is position and known.level == level:
            return known.value
        value = self.target.log_target(position, level)
        self._here = _Known(position, level, value, None)
        return value

    def remember_value(self, position: Array, level: float, value: float) -> None:
        """Tell the value at a position reached by other means."""
        self._here = _Known(position, level, value, None)

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """One trajectory, and adaptation while in warm-up."""
        if self.target.dimension == 0:
            value = self.target.log_target(state["position"], level)
            return state, described(value, 1.0)
        if state["step_size"] == 0.0:
            state = self._tune_first_step(rng, state, level)
        end, info = self.transition(rng, state["position"], state["factor"], state["step_size"], level)
        self._here = _Known(end.position, level, end.value, end.gradient)
        state = {**state, "position": end.position, "iteration": state["iteration"] + 1}
        if state["iteration"] <= self.n_warmup:
            state = self._adapt(rng, state, info["accept"], level)
        return state, info

    def _launch(self, rng: np.random.Generator, position: Array, level: float) -> tuple[_Point, float]:
        """A position with a fresh momentum, and its energy."""
        value, gradient = self.evaluate(position, level)
        momentum = rng.standard_normal(len(position))
        return _Point(position, momentum, value, gradient), 0.5 * float(momentum @ momentum) - value

    @np.errstate(over="ignore", invalid="ignore")  # a trajectory that blows up is a divergence, not news
    def transition(
        self, rng: np.random.Generator, position: Array, factor: Array, step: float, level: float
    ) -> tuple[_Point, Info]:
        """One no-U-turn trajectory with given metric and step size."""
        start, energy = self._launch(rng, position, level)
        trajectory = _Trajectory(self.target, level, factor, step, energy, rng)
        tree = _Tree(start, start, start, 0.0, start.momentum, False, False, 0.0, 0)
        depth = 0
        while depth < self.max_depth and not tree.turning:
            direction = 1.0 if rng.random() < 0.5 else -1.0
            outer = trajectory.build(tree.right if direction > 0 else tree.left, direction, depth)
            tree = trajectory.merge(tree, outer, direction, biased=True)
            depth += 1
        accept = tree.accept_sum / max(tree.n_leapfrog, 1)
        info = described(tree.proposal.value, accept, tree.n_leapfrog, tree.diverging, trajectory.n_failures, step)
        return tree.proposal, info

    def _tune_first_step(self, rng: np.random.Generator, state: State, level: float) -> State:
        """Double or halve until one leapfrog step is accepted about half the time."""
        start, energy = self._launch(rng, state["position"], level)
        step = state["averaging"]["tried"]

        def accepted(size: float) -> bool:
            trajectory = _Trajectory(self.target, level, state["factor"], size, energy, rng)
            with np.errstate(over="ignore", invalid="ignore"):
                return trajectory.leaf(start, 1.0).log_weight > math.log(0.5)

        grow = accepted(step)
        for _ in range(60):
            step = step * 2.0 if grow else step * 0.5
            if accepted(step) != grow:
                break
        return {**state, "step_size": step, "averaging": adaptation.restart_averaging(step)}

    def _adapt(self, rng: np.random.Generator, state: State, accept: float, level: float) -> State:
        averaging = adaptation.average(state["averaging"], accept, _WANTED_ACCEPT)
        state = {**state, "averaging": averaging, "step_size": averaging["tried"]}
        iteration = state["iteration"]
        if self._windows and adaptation.first_window(self.n_warmup) < iteration <= self._windows[-1]:
            state["welford"] = adaptation.accumulate(state["welford"], state["position"])
            if iteration in self._windows:
                state = self._tune_first_step(rng, adaptation.renew_metric(state), level)
        return self.freeze(state) if iteration == self.n_warmup else state

    def adopt(self, state: State, covariance: Array, count: int) -> State:
        """Take over a covariance learned elsewhere; the step size is found anew."""
        averaging = adaptation.restart_averaging(max(state["step_size"] or state["averaging"]["tried"], 1e-6))
        factor = adaptation.shrunk_factor(covariance, count, state["factor"])
        return {**state, "factor": factor, "step_size": 0.0, "averaging": averaging}

    def freeze(self, state: State) -> State:
        """End the adaptation, wherever it stands, with the averaged step size."""
        averaging = state["averaging"]
        step = math.exp(averaging["log_mean"]) if averaging["count"] > 0 else averaging["tried"]
        if 0 < averaging["count"] < _FEW:  # the average starts far above the step that was found first
            step = min(step, 0.1 * math.exp(averaging["centre"]))
        return {**state, "step_size": step, "iteration": max(state["iteration"], self.n_warmup)}
