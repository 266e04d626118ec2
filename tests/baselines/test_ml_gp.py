"""The Gaussian process by maximum likelihood: identities of the model, its gradient, what its search finds."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal, norm
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import MLGPRegressor, load
from cadlag.baselines.ml_gp.model import MLProcess

RNG = np.random.default_rng(8)
N = 25
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 3.0 + np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.standard_normal(N)
NEW = RNG.uniform(-2.0, 2.0, (5, 2))
AT = np.array([-0.3, 0.4, -2.0])


def dense(model, position):
    """R + gI, μ̂, σ̂² by the formulas."""
    beta, g = np.exp(position[:-1]), math.exp(position[-1])
    R = np.exp(-(((model.X[:, None] - model.X) ** 2) * beta).sum(axis=2))
    C = R + g * np.eye(len(R))
    ones = np.ones(len(R))
    mean = ones @ np.linalg.solve(C, model.y) / (ones @ np.linalg.solve(C, ones))
    e = model.y - mean
    return C, mean, e @ np.linalg.solve(C, e) / len(e)


def test_objective_is_the_likelihood_at_the_best_mean_and_variance():
    model = MLProcess(X, Y)
    C, mean, variance = dense(model, AT)
    law = multivariate_normal(np.full(N, mean), variance * C)
    assert model.objective(AT) == pytest.approx(-law.logpdf(Y), rel=1e-10)
    for a, b in ((1.01, 1.0), (0.99, 1.0), (1.0, 1.02), (1.0, 0.98)):
        assert multivariate_normal(np.full(N, a * mean), b * variance * C).logpdf(Y) < law.logpdf(Y)


@pytest.mark.parametrize("position", [AT, AT + 1.0, np.array([2.0, -3.0, 1.0])])
def test_gradient(position):
    model = MLProcess(X, Y)
    value, gradient = model.objective_gradient(position)
    assert value == model.objective(position)
    assert (
        check_grad(model.objective, lambda x: model.objective_gradient(x)[1], position) < 2e-5 * np.abs(gradient).max()
    )


def test_gradient_vanishes_at_the_maximum():
    fitted = MLGPRegressor().fit(X, Y)
    position = fitted.posterior_.positions[0, 0]
    assert fitted.diagnostics_["converged"] == 1.0
    assert np.abs(fitted.model_.objective_gradient(position)[1]).max() < 1e-3
    assert fitted.diagnostics_["log_likelihood"] == pytest.approx(-fitted.model_.objective(position))


@pytest.mark.parametrize("x", [X[:, :1], np.vstack([X[1:], X[1:2]]) * [1.0, 0.01]], ids=["line", "with a row twice"])
def test_the_closest_pair_at_the_start(x):
    """Its correlation in one input is 0.3 to 0.65, and all of that."""
    model, rng = MLProcess(x, Y), np.random.default_rng(0)
    starts = np.array([model.sample_start(rng) for _ in range(400)])
    gaps = ((x[:, None] - x) ** 2).sum(axis=2)
    correlations = np.exp(-np.exp(starts[:, :-1]) * gaps[gaps > 0.0].min())
    assert correlations.min() >= 0.3
    assert correlations.max() <= 0.65
    assert np.all(correlations.min(axis=0) < 0.31)
    assert np.all(correlations.max(axis=0) > 0.64)
    np.testing.assert_allclose(np.exp(starts[:, -1]), 1.0 / np.var(Y, ddof=1))


@pytest.mark.parametrize(("a", "b"), [(3.0, -7.0), (0.01, 100.0)])
def test_units_of_the_response(a, b):
    plain = MLGPRegressor(standardize=False).fit(X, Y)
    moved = MLGPRegressor(standardize=False, nugget=a**2).fit(X, a * Y + b)
    np.testing.assert_allclose(moved.posterior_.positions, plain.posterior_.positions, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(moved.predict(NEW), a * plain.predict(NEW) + b, rtol=1e-4)
    for name, power in (("variance", 2), ("noise_variance", 2)):
        np.testing.assert_allclose(moved.posterior_[name], a**power * plain.posterior_[name], rtol=5e-3)
    gap = moved.posterior_["mean"] - (a * plain.posterior_["mean"] + b)
    assert np.abs(gap).max() < 1e-4 * math.sqrt(moved.posterior_["variance"][0, 0])
    objective = MLProcess(X, Y).objective(AT) + N * math.log(a)
    assert MLProcess(X, a * Y + b).objective(AT) == pytest.approx(objective, abs=1e-8)


def test_units_of_the_inputs():
    stretch = np.array([10.0, 0.2])
    one, other = MLProcess(X, Y), MLProcess(X * stretch, Y)
    moved = AT - np.append(2.0 * np.log(stretch), 0.0)
    assert other.objective(moved) == pytest.approx(one.objective(AT), rel=1e-10)


@pytest.mark.parametrize(
    ("stretch", "standardize"), [(10.0, False), (0.2, False), (np.array([10.0, 0.2]), True)], ids=str
)
def test_units_of_the_inputs_after_a_search(stretch, standardize):
    one, other = (MLGPRegressor(standardize=standardize).fit(x, Y) for x in (X, X * stretch))
    ranges, wanted = other.posterior_["inverse_ranges"] * stretch**2, one.posterior_["inverse_ranges"]
    np.testing.assert_allclose(ranges, wanted, rtol=1e-4)
    likelihood = one.diagnostics_["log_likelihood"]
    assert other.diagnostics_["log_likelihood"] == pytest.approx(likelihood, abs=1e-6)


def test_rows_in_another_order():
    order = RNG.permutation(N)
    starts = [MLProcess(X, Y).sample_start(np.random.default_rng(2)) for _ in range(2)]
    assert MLProcess(X[order], Y[order]).objective(starts[0]) == pytest.approx(MLProcess(X, Y).objective(starts[0]))
    fits = [MLGPRegressor().fit(*data) for data in ((X, Y), (X[order], Y[order]))]
    np.testing.assert_allclose(fits[0].predict(NEW), fits[1].predict(NEW), rtol=1e-3)


def test_without_a_nugget_it_interpolates_and_far_away_it_forgets():
    model = MLProcess(X, Y)
    atom = model.condition(np.array([0.0, 0.0, math.log(1e-9)]))
    mean, variance = atom.moments(X)
    np.testing.assert_allclose(mean, Y, atol=1e-4)
    assert variance.max() < 1e-5 * atom.variance
    far_mean, far_variance = atom.moments(np.full((1, 2), 1e3))
    assert far_mean[0] == pytest.approx(atom.given.coefficients[0])
    assert far_variance[0] == pytest.approx(atom.variance)
    heavy = model.condition(np.array([0.0, 0.0, math.log(1e9)]))
    np.testing.assert_allclose(heavy.mean(NEW), Y.mean(), rtol=1e-6)


def test_prediction_against_dense_algebra():
    model = MLProcess(X, Y)
    C, mu, variance = dense(model, AT)
    cross = np.exp(-(((NEW[:, None] - X) ** 2) * np.exp(AT[:-1])).sum(axis=2))
    own = np.exp(-(((NEW[:, None] - NEW) ** 2) * np.exp(AT[:-1])).sum(axis=2))
    mean = mu + cross @ np.linalg.solve(C, Y - mu)
    covariance = variance * (own - cross @ np.linalg.solve(C, cross.T))
    atom = model.condition(AT)
    np.testing.assert_allclose(atom.mean(NEW), mean, rtol=1e-9)
    np.testing.assert_allclose(atom.moments(NEW), (mean, np.diagonal(covariance)), rtol=1e-7)
    np.testing.assert_allclose(atom.joint(NEW)[1], covariance, rtol=1e-7, atol=1e-12)
    assert atom.noise_variance == pytest.approx(variance * math.exp(AT[-1]))


def test_leave_one_out_at_the_values_found():
    model = MLProcess(X, Y)
    C, mu, variance = dense(model, AT)
    found = model.leave_one_out(AT).log_density
    for k in range(N):
        rest = np.delete(np.arange(N), k)
        weights = np.linalg.solve(C[np.ix_(rest, rest)], C[rest, k])
        law = norm(mu + weights @ (Y[rest] - mu), math.sqrt(variance * (C[k, k] - weights @ C[rest, k])))
        assert found[k] == pytest.approx(law.logpdf(Y[k]), rel=1e-8)


def test_finds_what_scikit_learn_finds():
    from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: PLC0415
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel  # noqa: PLC0415

    x = np.linspace(-2.0, 2.0, 40)[:, None]
    y = np.sin(3.0 * x[:, 0]) + 0.2 * np.random.default_rng(1).standard_normal(40)
    ours = MLGPRegressor().fit(x, y)
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0).fit(x, y)
    new = np.linspace(-1.9, 1.9, 20)[:, None]
    np.testing.assert_allclose(ours.predict(new, kind="function"), theirs.predict(new), atol=0.03)
    assert ours.posterior_["noise_variance"][0, 0] == pytest.approx(theirs.kernel_.k2.noise_level, rel=0.1)


def test_save_and_load(tmp_path):
    model = MLGPRegressor().fit(X, Y)
    model.save(tmp_path / "m.cadlag")
    again = load(tmp_path / "m.cadlag")
    np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
    assert again.diagnostics_.keys() == model.diagnostics_.keys()


def test_refuses():
    for settings, words in (({"n_starts": 0}, "n_starts must be"), ({"nugget": 0.0}, "nugget must be")):
        with pytest.raises(ValueError, match=words):
            MLGPRegressor(**settings).fit(X, Y)


@parametrize_with_checks([MLGPRegressor(n_starts=1)])
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)
