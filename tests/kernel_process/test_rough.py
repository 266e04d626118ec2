"""A kernel process with a rough part: the sum of two processes that share the scales of the inputs."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from cadlag.kernel_process.model import KernelProcess
from cadlag.kernel_process.rough import ROUGH, SMOOTH, RoughProcess
from cadlag.likelihood import Gaussian

RNG = np.random.default_rng(61)
N = 18
X = np.column_stack([np.ones(N), RNG.uniform(-2.0, 2.0, (N, 2))])
Y = np.sin(2.0 * X[:, 1]) + 0.3 * RNG.standard_normal(N)
OPTIONS = [
    {},
    {"alpha": 1.4},
    {"alpha": 2.0},
    {"likelihood": Gaussian(0.3)},
    {"likelihood": Gaussian(np.linspace(0.1, 1.0, N))},
]


def position_of(model, seed=3):
    return model.sample_prior(np.random.default_rng(seed))


def test_covariance_is_the_sum_of_those_of_two_processes():
    model = RoughProcess(X, Y)
    at = np.array([0.3, -0.4, 0.8, 0.5, -1.2, 0.1])
    log_s, (log_smooth, log_rough) = at[:3], at[3:5]
    parts = [
        KernelProcess(X, Y, order=own).covariance(np.concatenate([log_s, [log_c, 0.0]]))
        for own, log_c in ((1, log_smooth), (0, log_rough))
    ]
    np.testing.assert_allclose(model.covariance(at), parts[0] + parts[1], rtol=1e-12)


def test_rows_that_coincide_have_a_likelihood_and_a_gradient():
    twice = np.vstack([X, X[:4], X[4:8] + 1e-9])
    model = RoughProcess(twice, np.append(Y, Y[:8] + 0.1))
    value, gradient = model.log_likelihood_gradient(np.array([0.3, -0.4, 0.8, 0.5, -1.0, -4.0]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("log_noise", [math.log(1e-6), math.log(1e-10)])
def test_rows_that_stand_twice_are_one_row_with_half_the_noise(log_noise):
    """Were they not all one, c_0 would look like noise between them."""
    at = np.array([0.3, -0.4, 0.8, 0.5, -0.5, log_noise])
    twice = RoughProcess(np.vstack([X, X]), np.append(Y, Y))
    once = RoughProcess(X, Y, likelihood=Gaussian(0.5 * math.exp(log_noise)))
    apart = -0.5 * N * (math.log(2.0 * math.pi) + log_noise + math.log(2.0))  # of y - y' = 0, N(0, 2σ²), and of √2
    value, gradient = twice.log_likelihood_gradient(at)
    expected, by_scales = once.log_likelihood_gradient(at[:-1])
    assert value == pytest.approx(expected + apart, abs=1e-3 if log_noise < -20.0 else 1e-6)
    np.testing.assert_allclose(gradient[:-1], by_scales, atol=1e-3 if log_noise < -20.0 else 1e-5)


def test_a_rough_part_goes_with_one_map_of_order_one():
    with pytest.raises(ValueError, match="order 1 and depth 1, got 0 and 1"):
        RoughProcess(X, Y, order=0)


@pytest.mark.parametrize("options", OPTIONS)
def test_likelihood_against_the_dense_normal_law(options):
    model = RoughProcess(X, Y, **options)
    at = position_of(model)
    covariance = model.covariance(at) + np.diag(np.broadcast_to(np.exp(model.scales(at).log_noise), N))
    expected = -0.5 * (np.linalg.slogdet(2.0 * np.pi * covariance)[1] + Y @ np.linalg.solve(covariance, Y))
    assert model.log_likelihood(at) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("floor", [0.0, 0.4])
@pytest.mark.parametrize("options", OPTIONS)
def test_gradients_against_differences(options, floor):
    model = RoughProcess(X, Y, **options)
    at = position_of(model, 5) * 0.5
    likelihood, prior = model.log_likelihood_gradient(at, floor)[1], model.log_prior_gradient(at)[1]
    for k, e in enumerate(1e-5 * np.eye(model.dimension)):
        by_likelihood = (model.log_likelihood(at + e, floor) - model.log_likelihood(at - e, floor)) / 2e-5
        assert likelihood[k] == pytest.approx(by_likelihood, rel=1e-6, abs=1e-6)
        assert prior[k] == pytest.approx((model.log_prior(at + e) - model.log_prior(at - e)) / 2e-5, rel=1e-6, abs=1e-6)


def test_amplitudes_are_half_cauchy():
    """The draws have the law whose density the prior is, and it is that of log c where √c is half-Cauchy."""
    model = RoughProcess(X, Y)
    rng, first = np.random.default_rng(8), model.n_weights
    draws = np.array([model.sample_scales(rng) for _ in range(4000)])
    for k, scale in ((first, SMOOTH), (first + 1, ROUGH)):
        at = draws[0].copy()

        def density(log_c, k=k, at=at):
            at[k] = log_c
            return math.exp(model.prior_of_scales(at)[0])

        total = quad(density, -60.0, 60.0, limit=400)[0]
        log_c = 2.0 * math.log(scale) + 1.0
        share = quad(density, -60.0, log_c, limit=400)[0] / total
        assert share == pytest.approx(2.0 / math.pi * math.atan(math.exp(0.5)), rel=1e-6)
        amplitudes = np.exp(0.5 * draws[:, k])
        assert kstest(2.0 / math.pi * np.arctan(amplitudes / scale), "uniform").pvalue > 1e-4


def test_either_part_can_be_absent():
    """With an amplitude that goes to zero what is left is the other process."""
    model = RoughProcess(X, Y)
    for k, order in ((4, 1), (3, 0)):
        at = np.array([0.3, -0.4, 0.8, 0.5, 0.5, -1.0])
        at[k] = -200.0
        alone = KernelProcess(X, Y, order=order).log_likelihood(np.array([0.3, -0.4, 0.8, 0.5, -1.0]))
        assert model.log_likelihood(at) == pytest.approx(alone, rel=1e-10)


def test_no_bulk_at_all_is_noise():
    model = RoughProcess(X, Y)
    value = model.log_likelihood(np.array([0.3, -0.4, 0.8, -400.0, -400.0, -1.0]))
    v = math.exp(-1.0)
    assert value == pytest.approx(-0.5 * (N * math.log(2.0 * math.pi * v) + Y @ Y / v), rel=1e-10)
