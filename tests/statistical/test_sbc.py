"""Simulation-based calibration: the unknowns that made the data rank uniformly among posterior draws given these data.

Ranked are every log scale, the log noise variance, the log likelihood and the function at a new input. A sampler passes
if all its rank distribution functions lie within simultaneous bands at once with probability 95 %. Of ten right ones
four in ten times one does not; so what leaves its bands gets five times as many replications more, and all of them
together, the first included, decide (after Gandy & Scott, 2020, who would judge the new ones alone).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling.independence import Independence
from statistical.checks import rank_deviation, sample_function, sample_until

Array = NDArray[np.float64]
Ranks = dict[str, list[int]]

N_REPLICATIONS, N_MORE, N_ROWS, N_DRAWS = 200, 1000, 12, 99
SETTINGS: tuple[dict[str, Any], ...] = (
    {"preset": "theorem", "depth": 1, "alpha": 1.0},
    {"preset": "published_code", "depth": 2, "alpha": 1.5},
)
# name: sampler, order, chains, warm-up, draws at first, options
CASES: dict[str, tuple[str, int, int, int, int, dict[str, Any]]] = {
    "tempered": ("tempered", 1, 1, 150, 250, {"levels": (1.0, 0.3, 0.08)}),
    "plain_nuts": ("plain_nuts", 1, 2, 200, 200, {}),
    "nuts": ("nuts", 1, 2, 200, 200, {}),
    "nuts, order 0": ("nuts", 0, 2, 200, 200, {}),
}
INPUTS = np.column_stack([np.ones(N_ROWS + 1), np.random.default_rng(12).uniform(-2.0, 2.0, (N_ROWS + 1, 2))])


def simulate(rng: np.random.Generator, replication: int, order: int) -> tuple[KernelProcess, Array, float]:
    """Unknowns from the prior, data given them, and the function at one more input."""
    setting = SETTINGS[replication % len(SETTINGS)]
    stacked = KernelProcess(INPUTS, np.zeros(N_ROWS + 1), order=order, **setting)
    truth = stacked.sample_prior(rng)
    function = sample_function(rng, stacked, truth)
    y = function[:-1] + np.exp(0.5 * truth[-1]) * rng.standard_normal(N_ROWS)
    return KernelProcess(INPUTS[:-1], y, order=order, **setting), truth, float(function[-1])


def sample_function_at(rng: np.random.Generator, model: KernelProcess, positions: Array) -> Array:
    """A draw of the function at the new input for each draw of the unknowns."""
    moments = np.array([np.concatenate(model.condition(x).moments(INPUTS[-1:])) for x in positions])
    return moments[:, 0] + np.sqrt(moments[:, 1]) * rng.standard_normal(len(moments))


def rank(rng: np.random.Generator, truth: float, draws: Array) -> int:
    """Rank of the truth, ties broken at random."""
    return int(np.sum(draws < truth) + rng.integers(np.sum(draws == truth) + 1))


def quantities(model: KernelProcess, positions: Array, likelihood: Array, function: Array) -> dict[str, Array]:
    """What is ranked, by name."""
    names = [*(f"s{j + 1}" for j in range(model.n_inputs)), *(f"c{k}" for k in model.random_layers), "noise"]
    return {**dict(zip(names, positions.T, strict=True)), "likelihood": likelihood, "function": function}


def add_ranks(
    ranks: dict[str, list[int]],
    rng: np.random.Generator,
    model: KernelProcess,
    truth: Array,
    function: float,
    draws: Array,
) -> None:
    """Rank the truth among draws in every quantity."""
    everything = np.vstack([truth, draws])
    likelihood = np.array([model.log_likelihood(x) for x in everything])
    functions = np.append(function, sample_function_at(rng, model, draws))
    for name, values in quantities(model, everything, likelihood, functions).items():
        ranks[name].append(rank(rng, values[0], values[1:]))


def report(name: str, ranks: dict[str, list[int]], remark: str) -> float:
    """The largest deviation in units of bands that hold for all quantities at once."""
    level = 1.0 - 0.05 / len(ranks)
    deviations = {key: rank_deviation(np.array(values), N_DRAWS, level) for key, values in ranks.items()}
    details = " ".join(f"{key} {value:.2f}" for key, value in deviations.items())
    print(f"\nSBC {name}: largest deviation {max(deviations.values()):.2f} of its band ({details}); {remark}")
    return max(deviations.values())


def posterior(case: str, model: KernelProcess, seed: np.random.SeedSequence) -> tuple[Array, float]:
    """Draws thinned from a run long enough to hold as many independent ones, and the effective number it held."""
    sampler, _, n_chains, n_warmup, n_draws, options = CASES[case]
    positions, _, effective = sample_until(model, sampler, n_warmup, n_draws, n_chains, seed, N_DRAWS, **options)
    pooled = positions.reshape(-1, positions.shape[2])
    return pooled[np.linspace(0, len(pooled) - 1, N_DRAWS).astype(int)], effective


def ranks_of(case: str, seeds: Sequence[np.random.SeedSequence]) -> tuple[Ranks, list[float]]:
    """Ranks of the truth in each quantity, replication by replication, and how many effective draws each had."""
    ranks: Ranks = defaultdict(list)
    effective = []
    for replication, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        model, truth, function = simulate(rng, replication, CASES[case][1])
        draws, size = posterior(case, model, seed)
        effective.append(size)
        add_ranks(ranks, rng, model, truth, function, draws)
    return ranks, effective


def judge(
    case: str, ranks_of: Callable[[Sequence[np.random.SeedSequence]], tuple[Ranks, list[float]]], entropy: list[int]
) -> None:
    """Demand uniform ranks, of all replications together after a second batch; and enough effective draws."""
    parent = np.random.SeedSequence(entropy)
    ranks: Ranks = defaultdict(list)
    effective: list[float] = []
    for n_replications in (N_REPLICATIONS, N_MORE):
        found, sizes = ranks_of(parent.spawn(n_replications))
        effective += sizes
        for name, values in found.items():
            ranks[name] += values
        few = np.mean(np.array(effective) < N_DRAWS)
        remark = f"{len(effective)} replications, effective draws: median {np.median(effective):.0f}, "
        deviation = report(case, ranks, remark + f"least {min(effective):.0f}, {few:.1%} under {N_DRAWS}")
        assert few < 0.05
        if deviation <= 1.0:
            return
    pytest.fail(f"{case}: ranks deviate by {deviation:.2f} of their band in {len(effective)} replications")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ranks_are_uniform(case: str) -> None:
    judge(case, partial(ranks_of, case), [20, list(CASES).index(case)])


class Backwards:
    """A target with its coordinates in the opposite order."""

    exact_level = 1.0

    def __init__(self, model: KernelProcess) -> None:
        self.model, self.dimension = model, model.dimension

    def log_prior(self, position: Array) -> float:
        return self.model.log_prior(position[::-1].copy())

    def log_target(self, position: Array, level: float) -> float:
        return self.model.log_target(position[::-1].copy(), level)

    def log_likelihood_at(self, position: Array, level: float) -> float:
        return self.model.log_likelihood_at(position[::-1].copy(), level)

    def sample_prior(self, rng: np.random.Generator) -> Array:
        return self.model.sample_prior(rng)[::-1]


def sweep(rng: np.random.Generator, target: Any, position: Array, n_draws: int, thin: int) -> list[Array]:
    """Every thin-th state of the published sampler."""
    kernel, state, draws = Independence(target), {"position": position}, []
    for i in range(1, n_draws * thin + 1):
        state, _ = kernel.step(rng, state, 1.0)
        if i % thin == 0:
            draws.append(state["position"])
    return draws


@pytest.mark.slow
def test_ranks_are_uniform_independence() -> None:
    """The exact form of the test, as this sampler may need 10⁵ sweeps for 99 independent draws.

    The truth is put at a random place of a stationary stretch of the chain, continued forwards by the sampler and
    backwards by its reversal, the sweep in the opposite order: ranks are uniform however slowly the chain moves.
    """
    ranks: dict[str, list[int]] = defaultdict(list)
    distinct = []
    for replication, seed in enumerate(np.random.SeedSequence(21).spawn(N_REPLICATIONS)):
        rng = np.random.default_rng(seed)
        model, truth, function = simulate(rng, replication, 1)
        n_before = int(rng.integers(N_DRAWS + 1))
        before = sweep(rng, Backwards(model), truth[::-1].copy(), n_before, 5)
        after = sweep(rng, model, truth, N_DRAWS - n_before, 5)
        draws = np.array([*(x[::-1] for x in before), *after])
        distinct.append(np.mean([len(np.unique(column)) for column in draws.T]))
        add_ranks(ranks, rng, model, truth, function, draws)
    assert report("independence", ranks, f"distinct values of {N_DRAWS}: median {np.median(distinct):.0f}") <= 1.0
