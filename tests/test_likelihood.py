"""The likelihood's part of a model: noise that differs by row, known or beside an unknown level, by dense algebra."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cadlag.kernel_process.groups import GroupedProcess
from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian
from cadlag.network.model import StableNetwork

RNG = np.random.default_rng(3)
N = 14
X = np.column_stack([np.ones(N), RNG.uniform(-2.0, 2.0, (N, 2))])
Y, Z = RNG.standard_normal((2, N))
U = RNG.uniform(0.2, 3.0, N)
PROCESSES = [
    lambda likelihood: KernelProcess(X, Y, depth=2, likelihood=likelihood),
    lambda likelihood: GroupedProcess(X, Y, likelihood=likelihood, n_groups=2, n_centred=2),
]


def log_density(y, covariance):
    return multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)


@pytest.mark.parametrize("make", PROCESSES)
@pytest.mark.parametrize("known", [None, 0.3, np.linspace(0.1, 1.0, N)])
@pytest.mark.parametrize("floor", [0.0, 0.7])
def test_pseudo_data_of_a_process(make, known, floor):
    model = make(Gaussian(known)).given(Z, U)
    position = 0.5 * np.random.default_rng(1).standard_normal(model.dimension)
    variance = math.exp(position[-1]) if known is None else known
    expected = log_density(Z, model.covariance(position) + np.diag(variance * U + floor**2))
    assert model.log_likelihood(position, floor) == pytest.approx(expected, abs=1e-9)
    value, gradient = model.log_likelihood_gradient(position, floor)
    assert value == pytest.approx(expected, abs=1e-9)
    steps = 1e-5 * np.eye(model.dimension)
    slopes = [
        (model.log_likelihood(position + h, floor) - model.log_likelihood(position - h, floor)) / 2e-5 for h in steps
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("bulk_depth", [0, 1])
@pytest.mark.parametrize("known", [None, 0.3, np.linspace(0.1, 1.0, N)])
def test_pseudo_data_of_a_network(bulk_depth, known):
    model = StableNetwork(X, Y, 5, likelihood=Gaussian(known), bulk_depth=bulk_depth).given(Z, U)
    position = model.sample_prior(np.random.default_rng(2))
    units = model.read(position)
    Phi = model.columns(units)
    function = (Phi * model.variances(units)) @ Phi.T
    if model.process is not None:
        function += model.process.covariance(model.bulk_position(units))
    noise = (math.exp(units.log_v) if known is None else known) * U
    covariance = function + np.diag(noise)
    assert model.log_likelihood_at(position, 0.0) == pytest.approx(log_density(Z, covariance), rel=1e-9)
    np.testing.assert_allclose(model.row_noise(units, 0.0), noise, rtol=1e-12)
    left, precision = model.leave_one_out(position), np.linalg.inv(covariance)
    np.testing.assert_allclose(left.errors, precision @ Z / np.diagonal(precision), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(left.variances, 1.0 / np.diagonal(precision), rtol=1e-6)


@pytest.mark.parametrize("bulk_depth", [0, 1])
def test_the_floor_of_a_network_is_a_target_of_its_own(bulk_depth):
    """With bulk d² is added to every row; without, relative variances are raised in proportion, to the same mean."""
    model = StableNetwork(X, Y, 5, bulk_depth=bulk_depth).given(Z, U)
    position = model.sample_prior(np.random.default_rng(4))
    units = model.read(position)
    added = model.row_noise(units, 0.6) - model.row_noise(units, 0.0)
    np.testing.assert_allclose(added, np.full(N, 0.36) if bulk_depth else 0.36 * U / U.mean(), rtol=1e-9)


def test_a_known_level_and_relative_variances_are_variances_by_row():
    one, other = (
        KernelProcess(X, Y, likelihood=Gaussian(0.4)).given(Y, U),
        KernelProcess(X, Y, likelihood=Gaussian(0.4 * U)),
    )
    position = np.zeros(one.dimension)
    assert one.log_likelihood(position) == pytest.approx(other.log_likelihood(position), abs=1e-12)


@pytest.mark.parametrize(
    "make", [*PROCESSES, lambda likelihood: StableNetwork(X, Y, 5, likelihood=likelihood, bulk_depth=1)]
)
@pytest.mark.parametrize("known", [None, 0.3, np.linspace(0.1, 1.0, N)])
def test_the_same_data_are_the_same_model(make, known):
    model = make(Gaussian(known))
    position = model.sample_prior(np.random.default_rng(6))
    level = model.exact_level
    assert model.given(Y).log_likelihood_at(position, level) == model.log_likelihood_at(position, level)


@pytest.mark.parametrize("on", ["variance", "sd"])
def test_draws_of_the_prior_have_its_density(on):
    """P(log σ² < t) by draws and by the integral of the density."""
    law, rng = Gaussian(prior_on=on, scale=1.7), np.random.default_rng(7)
    draws = np.array([law.sample(rng) for _ in range(4000)])
    grid = np.linspace(-30.0, 1.0, 20_001)
    below = np.trapezoid([math.exp(law.log_prior(t)[0]) for t in grid], grid)
    assert np.mean(draws < 1.0) == pytest.approx(below, abs=4.0 * 0.5 / math.sqrt(4000))


def test_new_rows_have_the_mean_of_the_variances():
    assert Gaussian(np.array([1.0, 3.0])).new_variance(1.0) == 2.0
    assert Gaussian(relative=np.array([1.0, 3.0])).new_variance(0.5) == 1.0
    process = KernelProcess(X, Y).given(Z, U)
    position = np.zeros(process.dimension)
    expected = process.likelihood.new_variance(math.exp(position[-1]))
    assert process.condition(position).noise_variance == pytest.approx(expected, rel=1e-12)
    assert Gaussian(0.4).new_variance(0.5) == Gaussian().new_variance(0.5) == 0.5
