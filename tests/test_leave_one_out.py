"""Rows predicted from all the others: against fits without them, and the weights against a conjugate posterior."""

import numpy as np
import pytest
from scipy.stats import norm

from cadlag import NNGPRegressor, StableKernelRegressor
from cadlag.posterior import leave_one_out_weights
from cadlag.verdict import difference, score_left_out

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet", "ignore:.*units are in use")

RNG = np.random.default_rng(8)
N = 12
X = RNG.uniform(-1.0, 1.0, (N, 2))
Y = 3.0 + 2.0 * (X[:, 0] > 0.2) + 0.3 * RNG.standard_normal(N)
NOISE = RNG.uniform(0.05, 0.2, N)


def test_against_fits_without_the_row():
    """With nothing to learn there is one atom, and leaving out is exact."""
    settings = {"sampler": "ml", "amplitude": 2.0, "noise_variance": 0.3, "standardize": False}
    table = NNGPRegressor(**settings).fit(X, Y).leave_one_out()
    for k in (0, 5, N - 1):
        rest = np.delete(np.arange(N), k)
        law = NNGPRegressor(**settings).fit(X[rest], Y[rest]).predict_distribution(X[[k]])
        np.testing.assert_allclose(table["mean"][k], law.mean[0], rtol=1e-9)
        np.testing.assert_allclose(table["std"][k], law.std[0], rtol=1e-9)
        np.testing.assert_allclose(table["pit"][k], law.cdf(Y[k])[0], rtol=1e-9)
        np.testing.assert_allclose(table["log_score"][k], law.logpdf(Y[k])[0], rtol=1e-9)
    np.testing.assert_allclose(table["response"], Y, rtol=1e-14)


@pytest.mark.parametrize("noise", [None, NOISE])
def test_atoms_against_conditioning_on_the_others(noise, make=StableKernelRegressor):
    settings = {"n_draws": 2, "n_warmup": 4, "n_chains": 1, "standardize": False, "random_state": 0}
    model = make(**settings, noise_variance=noise).fit(X, Y)
    position = model.posterior_.atoms()[-1]
    gap, variance = model.model_.left_out(position)
    for k in (0, 7):
        rest = np.delete(np.arange(N), k)
        known = None if noise is None else noise[rest]
        other = make(**settings, noise_variance=known).fit(X[rest], Y[rest]).model_.condition(position)
        mean, spread = other.moments(model._with_intercept(X[[k]]))
        own = other.noise_variance if noise is None else noise[k]
        np.testing.assert_allclose(gap[k], Y[k] - mean[0], rtol=1e-6)
        np.testing.assert_allclose(variance[k], spread[0] + own, rtol=1e-6)


def test_units_of_the_table():
    settings = {"n_draws": 6, "n_warmup": 6, "n_chains": 1, "random_state": 0}
    plain = StableKernelRegressor(**settings).fit(X, Y).leave_one_out()
    scaled = StableKernelRegressor(**settings).fit(X, 5.0 + 100.0 * Y).leave_one_out()
    np.testing.assert_allclose(scaled["mean"], 5.0 + 100.0 * plain["mean"], rtol=1e-6)
    np.testing.assert_allclose(scaled["std"], 100.0 * plain["std"], rtol=1e-6)
    np.testing.assert_allclose(scaled["pit"], plain["pit"], atol=1e-6)
    np.testing.assert_allclose(scaled["log_score"], plain["log_score"] - np.log(100.0), rtol=1e-6)
    gain, error = difference(plain, scaled)
    np.testing.assert_allclose([gain, error], [N * np.log(100.0), 0.0], atol=1e-5)


def test_weights_against_a_conjugate_posterior():
    """θ ~ N(0, 1), y_k ~ N(θ, 1): weighted draws given y have the mean of the posterior given y_-k."""
    rng, n = np.random.default_rng(3), 8
    y = np.append(rng.standard_normal(n - 1), 2.5)
    draws = y.sum() / (n + 1) + rng.standard_normal(4000) / np.sqrt(n + 1)
    weights, shape = leave_one_out_weights(norm.logpdf(y[None], draws[:, None]))
    assert (shape < 0.7).all()
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    np.testing.assert_allclose(weights.T @ draws, (y.sum() - y) / n, atol=5.0 / np.sqrt(4000 * n))
    assert abs(draws.mean() - (y.sum() - y[-1]) / n) > 0.2, "without weights the answer would be another"


def test_few_draws_are_weighted_without_smoothing():
    log_density = np.log([[0.2, 1.0], [0.4, 1.0], [0.1, 4.0]])
    weights, shape = leave_one_out_weights(log_density)
    np.testing.assert_allclose(weights, np.array([[5.0, 1.0], [2.5, 1.0], [10.0, 0.25]]) / [17.5, 2.25])
    assert np.isnan(shape).all()


def test_draws_that_are_all_alike():
    weights, _ = leave_one_out_weights(np.full((50, 3), -1.5))
    np.testing.assert_allclose(weights, 1 / 50)


def test_score():
    rows = {"response": [1.0, 2, 3, 4], "mean": [1.0, 2, 3, 2], "pit": [0.04, 0.5, 0.9, 1],
            "log_score": [-1.0, -2, -3, -4], "pareto_k": [0.1, 0.9, np.nan, 0.2]}  # fmt: skip
    table = {name: np.array(values) for name, values in rows.items()}
    found = score_left_out(table)
    expected = {"r2": 1 - 4 / 5, "rmse": 1.0, "coverage": 0.5, "log_score": -2.5, "n_doubtful": 1}
    assert found == pytest.approx(expected)
