"""Exchange x_i and x_j with probability min{1, π_i(x_j) π_j(x_i) / (π_i(x_i) π_j(x_j))}.

Replica exchange over levels.

A chain carries one replica for each rung of a ladder of levels, the exact target first. Every replica takes a step of
its own kernel, which adapts to its rung, then neighbours propose to exchange positions. Only `log_target` is used, so
a ladder may be of temperatures, of noise floors, or of anything a target understands.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cadlag.sampling.contract import Apart, Info, Kernel, Levels, State
from cadlag.sampling.nuts import Nuts

DEFAULT_LEVELS = tuple(float(level) for level in np.geomspace(1.0, 0.03, 7))


class Tempered(Apart):
    """Replica exchange around any kernel.

    Parameters
    ----------
    target
        The log density at each level.
    n_warmup
        Iterations that adapt.
    levels
        The ladder, the target's exact level first.
    make
        Maker of the kernel of a rung, called with target and n_warmup.
    """

    def __init__(
        self, target: Levels, n_warmup: int, levels: Sequence[float] = DEFAULT_LEVELS, make: Callable[..., Any] = Nuts
    ) -> None:
        if levels[0] != target.exact_level:
            raise ValueError(
                f"the first level of a ladder must be the exact one, {target.exact_level}, got {levels[0]}"
            )
        self.target, self.levels = target, tuple(levels)
        self.kernels: list[Kernel] = [make(target, n_warmup) for _ in levels]

    def init(self, rng: np.random.Generator) -> State:
        """A start for every rung."""
        rungs = [kernel.init(rng) for kernel in self.kernels]
        return {"position": rungs[0]["position"], "rungs": rungs, "iteration": 0}

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """A step on every rung, then exchanges between neighbours, even and odd pairs in turn."""
        if level != self.levels[0]:
            raise ValueError(f"a ladder has its levels already and steps at its first, {self.levels[0]}, got {level}")
        steps = [kernel.step(rng, rung, own) for kernel, rung, own in zip(self.kernels, state["rungs"], self.levels)]
        rungs, infos = [rung for rung, _ in steps], [info for _, info in steps]
        swaps = [self._exchange(rng, rungs, i) for i in range(state["iteration"] % 2, len(rungs) - 1, 2)]
        position = rungs[0]["position"]
        exact = self.target.log_target(position, self.levels[0])
        total = {key: sum(info[key] for info in infos) for key in ("n_gradients", "n_failures")}
        info = {**infos[0], **total, "log_target": exact, "swap_accept": sum(swaps) / len(swaps) if swaps else math.nan}
        return {"position": position, "rungs": rungs, "iteration": state["iteration"] + 1}, info

    def _exchange(self, rng: np.random.Generator, rungs: list[State], i: int) -> bool:
        (x, y), (a, b) = (rungs[i]["position"], rungs[i + 1]["position"]), self.levels[i : i + 2]
        evaluate = self.target.log_target
        gain = evaluate(y, a) + evaluate(x, b) - evaluate(x, a) - evaluate(y, b)
        if not math.log(1.0 - rng.random()) < gain:
            return False
        rungs[i] = {**rungs[i], "position": y}
        rungs[i + 1] = {**rungs[i + 1], "position": x}
        return True
