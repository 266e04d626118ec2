"""f(x_i) at a few training rows i: what is watched of draws whose parts have no fixed names."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.sampling.contract import Array, Info, State

N_PROBES = 8


def probe_rows(n: int) -> NDArray[np.int64]:
    """The training rows at which the function is watched."""
    return np.linspace(0, max(n - 1, 0), min(N_PROBES, n)).round().astype(np.int64)


def as_info(values: Array) -> Info:
    """The function at the probes, as a kernel reports it with a draw."""
    return {f"probe{k}": float(f) for k, f in enumerate(values)}


class Watched:
    """A kernel that also reports the function's mean at the probes, given each draw.

    Parameters
    ----------
    make
        Maker of the kernel, called with target and n_warmup.
    target
        A model whose draws condition to Gaussian processes.
    n_warmup
        Iterations that adapt.
    """

    def __init__(self, make: Callable[..., Any], target: Any, n_warmup: int) -> None:
        self.kernel, self.target = make(target, n_warmup), target
        self._inputs = target.X[probe_rows(len(target.y))]
        self._seen: tuple[Array, Info] | None = None
        self.init, self.pool, self.rendezvous = self.kernel.init, self.kernel.pool, self.kernel.rendezvous

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """The kernel's step, and a look at the function."""
        state, info = self.kernel.step(rng, state, level)
        return state, {**info, **self._look(state["position"])}

    def _look(self, position: Array) -> Info:
        """Once for each place: a draw that stays costs nothing."""
        if self._seen is None or not np.array_equal(self._seen[0], position):
            self._seen = position, as_info(self.target.condition(position).mean(self._inputs))
        return self._seen[1]
