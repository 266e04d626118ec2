"""Without data, and at level 0 with data, every sampler returns the prior."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from scipy import stats

from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian
from cadlag.sampling import SAMPLERS
from statistical.checks import prior_uniforms, sample, sample_until
from statistical.kernels_under_test import small_model

Array = NDArray[np.float64]

# about 120 coordinates are tested here in four moments and one test of fit: one false alarm in a thousand runs
LARGEST_Z, LEAST_P = 4.75, 1e-5
LADDER = (1.0, 0.4, 0.0)
PRESET = {0.7: ("published_code", 1), 1.0: ("theorem", 1), 1.5: ("published_code", 2)}
PRIORS = [(0.7, "sd"), (1.0, "variance"), (1.0, "sd"), (1.5, "variance")]


def assert_prior(model: KernelProcess, draws: Array) -> None:
    """Draws (chain, draw, coordinate): moments by z-scores, the law by Kolmogorov and Smirnov's test after thinning."""
    uniforms = prior_uniforms(model, draws)
    fewest = min(float(array_stats.ess(u)) for u in np.moveaxis(uniforms, 2, 0))
    assert fewest > 100.0
    step = int(np.ceil(uniforms[..., 0].size / fewest))
    for j in range(model.dimension):
        u = uniforms[..., j]
        size = float(array_stats.ess(u))
        # the spread is that of a uniform variable, as a sample with too few rare events underrates its error
        known = (
            (u, 0.5, 1.0 / 12.0),
            ((u - 0.5) ** 2, 1.0 / 12.0, 1.0 / 180.0),
            (u < 0.1, 0.1, 0.09),
            (u > 0.9, 0.1, 0.09),
        )
        for values, mean, variance in known:
            column = np.asarray(values, dtype=float)
            z = (column.mean() - mean) / np.sqrt(variance / min(float(array_stats.ess(column)), size))
            assert abs(z) < LARGEST_Z, (j, mean, z)
        assert stats.kstest(u[:, ::step].ravel(), "uniform").pvalue > LEAST_P, j


def prior_model(alpha: float, noise_prior_on: str, n: int = 6) -> KernelProcess:
    preset, depth = PRESET[alpha]
    return small_model(alpha, preset, depth, n, likelihood=Gaussian(prior_on=noise_prior_on, scale=1.7))


@pytest.mark.parametrize(
    ("alpha", "noise_prior_on"), [*PRIORS[:2], *(pytest.param(*prior, marks=pytest.mark.slow) for prior in PRIORS[2:])]
)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_data(sampler: str, alpha: float, noise_prior_on: str) -> None:
    model = prior_model(alpha, noise_prior_on)
    empty = replace(model, X=model.X[:0], y=model.y[:0], _buffers={})
    options: dict[str, Any] = {"levels": (1.0, 0.5)} if sampler == "tempered" else {}
    draws, info, _ = sample_until(empty, sampler, 200, 300, 4, 31, 250.0, **options)
    assert_prior(empty, draws)
    np.testing.assert_allclose(info["log_likelihood"], 0.0, atol=1e-9)


@pytest.mark.parametrize(("alpha", "noise_prior_on"), [PRIORS[2], pytest.param(*PRIORS[1], marks=pytest.mark.slow)])
@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "tempered"])
def test_level_zero(sampler: str, alpha: float, noise_prior_on: str) -> None:
    """Tempered is left out here: its rungs have levels of their own."""
    model = prior_model(alpha, noise_prior_on)
    model = replace(model, y=np.linspace(-3.0, 40.0, len(model.X)), _buffers={})
    rng = np.random.default_rng(32)
    kernel = SAMPLERS[sampler](model, 200)
    state, seen = kernel.init(rng), []
    for i in range(1, 4001):
        state, _ = kernel.step(rng, state, 0.0)
        seen.append(state["position"])
        if i in kernel.rendezvous:
            (state,) = kernel.pool([state], [np.array(seen)])
    assert_prior(model, np.array(seen)[None, 200:])


@pytest.mark.parametrize(("alpha", "noise_prior_on"), [PRIORS[1], pytest.param(*PRIORS[2], marks=pytest.mark.slow)])
def test_lowest_rung_of_a_ladder_that_ends_at_zero(alpha: float, noise_prior_on: str) -> None:
    model = prior_model(alpha, noise_prior_on)
    model = replace(model, y=np.array([0.1, -0.4, 2.0, 2.2, 1.9, 0.0]), _buffers={})
    rng = np.random.default_rng(33)
    kernel = SAMPLERS["tempered"](model, 200, levels=LADDER)
    state, seen = kernel.init(rng), []
    for _ in range(900):
        state, _ = kernel.step(rng, state, 1.0)
        seen.append(state["rungs"][-1]["position"])
    assert_prior(model, np.array(seen)[None, 200:])


def test_data_move_the_posterior_away() -> None:
    """The check can fail: with data the same draws are not the prior's."""
    model = replace(prior_model(1.0, "variance"), y=np.array([0.1, -0.4, 20.0, 22.0, 19.0, 0.0]), _buffers={})
    draws, _ = sample(model, "nuts", 200, 400, 2, 34)
    with pytest.raises(AssertionError):
        assert_prior(model, draws)
