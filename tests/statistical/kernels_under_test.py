"""Single transition kernels with everything that adapts held fixed at arbitrary values, for the joint-law checks."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.kernel_process.groups import GroupedProcess
from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling import LEAPING
from cadlag.sampling.emulator import Emulator
from cadlag.sampling.hops import NutsWithHops
from cadlag.sampling.independence import Independence
from cadlag.sampling.leaps import NutsWithLeaps
from cadlag.sampling.mixture import Mixture
from cadlag.sampling.nuts import Nuts
from cadlag.sampling.tempering import Tempered

Array = NDArray[np.float64]
N_STEPS = 6  # transitions between two renewals of the data, so that what a kernel remembers is used


def small_model(
    alpha: float = 1.0, preset: str = "theorem", depth: int = 1, n: int = 6, **options: Any
) -> KernelProcess:
    """A few rows with an intercept and two inputs."""
    return KernelProcess(_inputs(n, 2), np.zeros(n), alpha=alpha, preset=preset, depth=depth, **options)


def small_grouped(n_groups: int = 2, n_centred: int = 1, n: int = 6, **options: Any) -> GroupedProcess:
    """A few rows with an intercept and an input, in groups with a centre each."""
    return GroupedProcess(_inputs(n, 1), np.zeros(n), n_groups=n_groups, n_centred=n_centred, **options)


def _inputs(n: int, p: int) -> Array:
    return np.column_stack([np.ones(n), np.random.default_rng(7).uniform(-2.0, 2.0, (n, p))])


def fixed_factor(d: int) -> Array:
    """A metric that fits nothing in particular."""
    return np.tril(np.full((d, d), 0.2)) + np.diag(np.linspace(1.0, 2.0, d))


def fixed_mixture(d: int) -> Mixture:
    """Two t laws about where the prior is, neither of which fits."""
    factors = np.stack([1.5 * np.eye(d), 3.0 * np.eye(d) + 0.5 * np.tril(np.ones((d, d)), -1)])
    return Mixture.of(np.log([0.6, 0.4]), np.stack([np.full(d, -0.3), np.full(d, 1.5)]), factors)


@cache
def fixed_emulator(d: int) -> dict[str, Any]:
    """An emulator of something else than the posterior."""
    points = np.random.default_rng(3).standard_normal((20 * d, d))
    learned = Emulator.learn(
        np.full(d, -0.3), 1.5 * np.eye(d), points, np.cos(points).sum(axis=1) - (points**2).sum(axis=1)
    )
    return learned.to_state()


def nuts_state(kernel: Nuts, position: Array, step_size: float = 0.5) -> dict[str, Any]:
    """A state past its warm-up."""
    return {**kernel.start_from(position), "step_size": step_size, "factor": fixed_factor(len(position))}


def jump_state(kernel: NutsWithHops, position: Array, n_jumps: int = 2, period: int = 1) -> dict[str, Any]:
    """A state past its warm-up with a mixture to jump to."""
    mixture = fixed_mixture(len(position)).to_state()
    return {"position": position, "nuts": nuts_state(kernel.nuts, position), "mixture": mixture, "modes": None,
            "n_jumps": n_jumps, "period": period, "iteration": 0, "tried": 0, "accepted": 0.0}  # fmt: skip


def _repeat(rng: np.random.Generator, kernel: Any, state: Any) -> Any:
    for _ in range(N_STEPS):
        state, _ = kernel.step(rng, state, 1.0)
    return state


def nuts(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """The no-U-turn transition."""
    kernel = Nuts(model, 0)
    return _repeat(rng, kernel, nuts_state(kernel, position))["position"], None


def jump(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Jumps alone: the turn of NUTS never comes."""
    kernel = NutsWithHops(model, 0)
    return _repeat(rng, kernel, jump_state(kernel, position, period=10**9))["position"], None


def stretch(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Coordinates stretched one at a time, nothing else."""
    kernel, mixture = NutsWithHops(model, 0), fixed_mixture(len(position))
    value = model.log_target(position, 1.0)
    for anchor in mixture.sample(rng, 4 * N_STEPS):
        j = int(rng.integers(len(position)))
        position, value, _ = kernel._stretch(rng, j, position, anchor, value, 1.0)
    return position, None


def walk(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Walks under an emulator of something else, and stretches: the turn of NUTS never comes."""
    kernel, d = NutsWithHops(model, 0), len(position)
    state = {**jump_state(kernel, position, period=10**9), "emulator": fixed_emulator(d), "stretched": np.ones(d)}
    return _repeat(rng, kernel, state)["position"], None


def nuts_and_jumps(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Jumps, and NUTS every second time."""
    kernel = NutsWithHops(model, 0)
    return _repeat(rng, kernel, jump_state(kernel, position, period=2))["position"], None


def independence(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """One sweep after another."""
    return _repeat(rng, Independence(model), {"position": position})["position"], None


def leaps(rng: np.random.Generator, model: GroupedProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Leaps that the model proposes, nothing else."""
    return NutsWithLeaps(model, 0)._leap(rng, position, 1.0)[0], None


def nuts_with_leaps(rng: np.random.Generator, model: GroupedProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Leaps and a trajectory."""
    kernel = NutsWithLeaps(model, 0)
    return kernel.step(rng, nuts_state(kernel, position), 1.0)[0]["position"], None


class Still:
    """A kernel that stays where it is, so that nothing but the exchange moves."""

    def __init__(self, target: KernelProcess, n_warmup: int) -> None:
        self.target = target

    def step(self, rng: np.random.Generator, state: Any, level: float) -> tuple[Any, dict[str, float]]:
        return state, {"n_gradients": 0.0, "n_failures": 0.0}


def exchange(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """Exchanges alone, with a replica drawn from the prior."""
    kernel = Tempered(model, 0, levels=(1.0, 0.0), make=Still)
    rungs = [{"position": position}, {"position": model.sample_prior(rng)}]
    return kernel.step(rng, {"position": position, "rungs": rungs, "iteration": 0}, 1.0)[0]["position"], None


def tempered(rng: np.random.Generator, model: KernelProcess, position: Array, memory: Any) -> tuple[Array, Any]:
    """NUTS at the posterior and at the prior, with exchanges; the replica at the prior goes on from round to round."""
    return _exchanging(rng, Tempered(model, 0, levels=(1.0, 0.0)), position, memory)


def tempered_with_leaps(
    rng: np.random.Generator, model: GroupedProcess, position: Array, memory: Any
) -> tuple[Array, Any]:
    """The same with leaps of centres and groups."""
    return _exchanging(rng, LEAPING["tempered"](model, 0, levels=(1.0, 0.0)), position, memory)


def _exchanging(rng: np.random.Generator, kernel: Tempered, position: Array, memory: Any) -> tuple[Array, Any]:
    other = kernel.target.sample_prior(rng) if memory is None else memory
    rungs = [nuts_state(k, x) for k, x in zip(kernel.kernels, (position, other))]
    state = _repeat(rng, kernel, {"position": position, "rungs": rungs, "iteration": 0})
    return state["position"], state["rungs"][1]["position"]


MOVES = {move.__name__: move for move in (nuts, jump, walk, stretch, nuts_and_jumps, independence, exchange, tempered)}
