"""Simulation-based calibration of the network: sign, ReLU, both kinds, and units with bulk.

Ranked are quantities without labels: amplitude, noise, the largest scale, the number of sign units, the log likelihood,
the function at a new input. Bands as for the kernel process.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.typing import NDArray

from cadlag.network.model import StableNetwork
from cadlag.network.transition import Sweeps
from statistical.network_checks import sample_function
from statistical.test_sbc import INPUTS, N_DRAWS, N_ROWS, Ranks, judge, rank

Array = NDArray[np.float64]

# settings, warm-up, draws at first
CASES: dict[str, tuple[dict[str, Any], int, int]] = {
    "network, sign": ({"activation": "sign"}, 100, 600),
    "network, ReLU": ({"activation": "relu"}, 100, 600),
    "network, auto": ({"activation": "auto"}, 100, 600),
    "network, auto, input scales": ({"activation": "auto", "input_scales": True}, 100, 600),
    "network, auto, smooth bulk": ({"activation": "auto", "bulk_depth": 1}, 600, 400),  # a fifth of it to adapt in
    "network, auto, bulk": ({"activation": "auto", "bulk_depth": 1, "rough": True}, 600, 400),
}
ALPHAS = (1.0, 1.5)


def simulate(
    rng: np.random.Generator, replication: int, settings: dict[str, Any]
) -> tuple[StableNetwork, Array, float]:
    """Unknowns from the prior, data given them, and the function at one more input."""
    alpha = ALPHAS[replication % len(ALPHAS)]
    model = StableNetwork(INPUTS[:-1], np.zeros(N_ROWS), n_units=4, alpha=alpha, **settings)
    truth = model.sample_prior(rng)
    function = sample_function(rng, model, truth, INPUTS)
    noise = np.exp(0.5 * model.read(truth).log_v)
    return replace(model, y=function[:-1] + noise * rng.standard_normal(N_ROWS)), truth, float(function[-1])


def quantities(model: StableNetwork, positions: Array) -> dict[str, Array]:
    """What is ranked, by name, but for the function."""
    units = [model.read(x) for x in positions]
    found = {
        "amplitude": [u.log_tau for u in units],
        "noise": [u.log_v for u in units],
        "largest scale": [u.log_s.max() for u in units],
        "likelihood": [model.log_likelihood_at(x, 0.0) for x in positions],
    }
    if model.activation == "auto":
        found["sign units"] = [float((u.kinds == 0).sum()) for u in units]
    if model.n_input_scales:
        found["input scale"] = [u.log_inputs[0] for u in units]
    if model.n_bulk_scales:
        found["bulk amplitude"] = [u.log_bulk[-1 - model.rough] for u in units]
    if model.rough:
        found["rough amplitude"] = [u.log_bulk[-1] for u in units]
    return {name: np.array(values) for name, values in found.items()}


def posterior(model: StableNetwork, n_warmup: int, n_draws: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Draws thinned from a chain doubled, at most six times, until it holds as many independent ones."""
    kernel = Sweeps(model, n_warmup)
    state, draws = kernel.init(rng), []
    for _ in range(n_warmup):
        state, _ = kernel.step(rng, state, 0.0)
    for longer in (1, 2, 4, 8, 16, 32, 64):
        while len(draws) < longer * n_draws:
            state, _ = kernel.step(rng, state, 0.0)
            draws.append(state["position"])
        found = quantities(model, np.array(draws))
        effective = min(float(array_stats.ess(values[None])) for values in found.values() if np.ptp(values) > 0.0)
        if effective >= N_DRAWS:
            break
    return np.array(draws)[np.linspace(0, len(draws) - 1, N_DRAWS).astype(int)], effective


def ranks_of(case: str, seeds: Sequence[np.random.SeedSequence]) -> tuple[Ranks, list[float]]:
    """Ranks of the truth in each quantity, replication by replication, and how many effective draws each had."""
    settings, n_warmup, n_draws = CASES[case]
    ranks: Ranks = defaultdict(list)
    effective = []
    for replication, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        model, truth, function = simulate(rng, replication, settings)
        draws, size = posterior(model, n_warmup, n_draws, rng)
        effective.append(size)
        found = quantities(model, np.vstack([truth, draws]))
        moments = np.array([np.concatenate(model.condition(x).moments(INPUTS[-1:])) for x in draws])
        at = moments[:, 0] + np.sqrt(moments[:, 1]) * rng.standard_normal(len(moments))
        for name, values in {**found, "function": np.append(function, at)}.items():
            ranks[name].append(rank(rng, values[0], values[1:]))
    return ranks, effective


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ranks_are_uniform(case: str) -> None:
    judge(case, partial(ranks_of, case), [30, list(CASES).index(case)])
