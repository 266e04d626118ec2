"""The scikit-learn face: its conventions, every question of the interface, and the answers against dense algebra."""

import json
import pickle
import re
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal, spearmanr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import StableKernelRegressor, load
from cadlag.methods import METHODS
from cadlag.regressor import _permuted
from cadlag.sampling import SAMPLERS, chains
from cadlag.storage import read_tree, write_tree

QUIET = "ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning"
pytestmark = pytest.mark.filterwarnings(QUIET)

N = 30
RNG = np.random.default_rng(42)
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 10.0 + 4.0 * (X[:, 0] > 0.3) + 0.3 * RNG.standard_normal(N)
NEW = RNG.uniform(-2.5, 2.5, (7, 2))
KINDS = ("observation", "function")


def regressor(**settings):
    return StableKernelRegressor(**{"n_draws": 40, "n_warmup": 40, "n_chains": 2, "random_state": 3, **settings})


def tiny(**settings):
    """Too short to mean anything, long enough to be a fit."""
    return regressor(**{"n_draws": 6, "n_warmup": 6, "n_chains": 1, **settings})


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(X, Y)


@pytest.fixture(scope="module")
def deep():
    """Two hidden layers whose scales are both random, in the preset that has a random c_1 and a divisor."""
    return regressor(preset="published_code", depth=2, alpha=1.8, n_draws=10, n_warmup=10).fit(X, Y)


def same(one, other):
    np.testing.assert_array_equal(one.posterior_.positions, other.posterior_.positions)
    assert one.posterior_.stats.keys() == other.posterior_.stats.keys()
    for name, values in one.posterior_.stats.items():
        np.testing.assert_array_equal(values, other.posterior_.stats[name], err_msg=name)


# scikit-learn --------------------------------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        StableKernelRegressor(n_draws=20, n_warmup=100, n_chains=1),
        StableKernelRegressor(sampler="independence", n_draws=30, n_warmup=60, n_chains=1),
    ]
)
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)


def test_clone_and_parameters():
    model = regressor(alpha=1.5, noise_variance=np.ones(N), progress=False)
    twin = clone(model)
    assert twin is not model
    assert twin.get_params().keys() == model.get_params().keys()
    assert twin.get_params()["alpha"] == 1.5
    assert model.set_params(alpha=0.7, depth=2) is model
    assert (model.alpha, model.depth, twin.alpha) == (0.7, 2, 1.5)
    with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
        model.set_params(gamma=1)
    names = (
        "alpha depth order preset fit_intercept noise_variance sampler n_draws n_warmup n_chains n_jobs standardize "
        "point progress random_state max_memory"
    )
    assert set(names.split()) <= set(model.get_params())
    promised = {"alpha": 1.0, "depth": 1, "order": 1, "preset": "theorem", "fit_intercept": True, "sampler": "nuts"}
    assert promised.items() <= StableKernelRegressor().get_params().items()


def test_pickle(fitted):
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict(NEW), fitted.predict(NEW))
    same(twin, fitted)
    same(twin.extend(5), regressor(n_draws=45).fit(X, Y))
    fresh = pickle.loads(pickle.dumps(tiny()))
    np.testing.assert_array_equal(fresh.fit(X, Y).predict(NEW), tiny().fit(X, Y).predict(NEW))


def test_pipeline():
    pipeline = make_pipeline(StandardScaler(), tiny(standardize=False)).fit(X, Y)
    point, std = pipeline.predict(NEW, return_std=True)
    assert point.shape == std.shape == (7,)
    direct = tiny(standardize=False).fit(StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(point, direct.predict(pipeline[0].transform(NEW)))


def test_grid_search():
    search = GridSearchCV(tiny(sampler="independence"), {"alpha": [1.0, 2.0]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_["alpha"] in (1.0, 2.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(NEW).shape == (7,)


def test_inputs_alone_may_be_standardised():
    """The response is centred and keeps its units, which matters to a prior that has no scale of the response."""
    fitted = tiny(standardize="inputs").fit(X, Y)
    assert fitted.response_scaling_.scale == 1.0
    direct = tiny(standardize=False).fit(StandardScaler().fit_transform(X) * np.sqrt(1.0 - 1.0 / len(X)), Y - Y.mean())
    np.testing.assert_allclose(fitted.model_.X, direct.model_.X, rtol=1e-12)
    np.testing.assert_allclose(fitted.model_.y, direct.model_.y, rtol=1e-12)
    with pytest.raises(ValueError, match="standardize must be True, False or \"inputs\", got 'no'"):
        tiny(standardize="no").fit(X, Y)


def test_cross_validation():
    scores = cross_val_score(tiny(n_warmup=20), X, Y, cv=2, scoring="r2", error_score="raise")
    assert scores.shape == (2,)
    assert scores.min() > 0.0


def test_inspection(fitted):
    importance = permutation_importance(fitted, X, Y, n_repeats=2, random_state=0).importances_mean
    assert importance[0] > 0.5
    assert abs(importance[1]) < 0.2
    profile = partial_dependence(fitted, X, [0], grid_resolution=4)["average"][0]
    assert profile.shape == (4,)
    assert profile[-1] - profile[0] > 2.0


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    table = frame({"age": X[:, 0], "income": X[:, 1]})
    model = tiny().fit(table, frame({"y": Y})["y"])
    plain = tiny().fit(X, Y)
    assert list(model.feature_names_in_) == ["age", "income"]
    np.testing.assert_array_equal(model.predict(table), plain.predict(X))
    assert {"input_scales[intercept]", "input_scales[age]", "input_scales[income]"} <= set(model.posterior_.scalars())
    assert list(model.feature_relevance()["input"]) == ["age", "income"]
    assert not hasattr(plain, "feature_names_in_")
    assert list(plain.feature_relevance()["input"]) == ["x0", "x1"]
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.predict(table[["income", "age"]])
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        model.predict_interval(table[["age"]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint8])
def test_other_numbers(dtype):
    inputs, responses = (10 * X + 30).astype(dtype), (5 * Y).astype(dtype)
    model, wide = tiny().fit(inputs, responses), tiny().fit(inputs.astype(float), responses.astype(float))
    assert model.predict(inputs).dtype == np.float64
    np.testing.assert_array_equal(model.predict(inputs), wide.predict(inputs.astype(float)))


def test_memory_layout_does_not_matter():
    model = tiny().fit(X, Y)
    np.testing.assert_array_equal(
        tiny().fit(np.asfortranarray(X), Y).predict(np.asfortranarray(NEW)), model.predict(NEW)
    )
    before = X.copy(), Y.copy()
    model.predict(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


# Predictions against dense algebra -----------------------------------------------------------------------------------


def dense_process(model, plain_recursion, draw):
    """Covariance of the function at training and new rows in squared units of y, from the named draws of one atom."""
    posterior, (chain, step) = model.posterior_, draw
    stack = np.vstack([model.input_scaling_.apply(X), model.input_scaling_.apply(NEW)])
    stack = np.column_stack([np.ones(len(stack)), stack]) if model.fit_intercept else stack
    p, scales = stack.shape[1], np.ones(model.depth + 1)
    if "layer_scales" in posterior.draws:
        labels = [int(label[1:]) - 1 for label in posterior.labels["layer_scales"]]
        scales[labels] = posterior["layer_scales"][chain, step]
    weights = posterior["input_scales"][chain, step] if "input_scales" in posterior.draws else np.ones(p)
    divisor = p if model.preset == "published_code" else 1.0
    last = plain_recursion(stack, weights, scales[:-1], model.order, divisor)[-1]
    return scales[-1] * last * float(model.response_scaling_.scale) ** 2


def dense_noise(model, draw):
    known = model.noise_variance
    return model.posterior_["noise_variance"][draw] if known is None else np.broadcast_to(known, N)


def condition(K, noise, y):
    """Mean and covariance at the last rows given noisy values at the first, and the noise of a new observation."""
    n = len(y)
    gain = np.linalg.solve(K[:n, :n] + np.eye(n) * noise, K[:n, n:]).T
    return gain @ y, K[n:, n:] - gain @ K[:n, n:]


CASES = {
    "default": {},
    "no intercept": {"fit_intercept": False},
    "raw": {"standardize": False},
    "steps": {"order": 0},
    "order 2": {"order": 2},
    "order 3": {"order": 3},
    "depth 3": {"depth": 3},
    "depth 2, steps": {"depth": 2, "order": 0, "preset": "prop2"},
    "prop2": {"preset": "prop2"},
    "prop2, depth 3": {"preset": "prop2", "depth": 3},
    "published code": {"preset": "published_code"},
    "published code, depth 2": {"preset": "published_code", "depth": 2},
    "normal, learned noise": {"alpha": 2.0},
    "normal, known noise": {"alpha": 2.0, "noise_variance": 0.3},
    "normal, published code": {"alpha": 2.0, "noise_variance": 0.3, "preset": "published_code", "depth": 2},
    "known noise": {"noise_variance": 0.5},
    "known noise, raw": {"noise_variance": 0.5, "standardize": False},
    "noise of each row": {"noise_variance": np.linspace(0.1, 2.0, N)},
    "prior on the sd": {"noise_prior_on": "sd"},
}


@pytest.mark.parametrize("case", CASES)
def test_atoms_are_gaussian_processes(case, plain_recursion):
    """Each draw's mean, variance, covariance and noise, in the units of y."""
    model = tiny(**{"alpha": 1.9, "n_draws": 4, **CASES[case]}).fit(X, Y)
    law, noisy = model.predict_distribution(NEW, "function"), model.predict_distribution(NEW)
    assert law.n_atoms == 4
    total, outer = np.zeros((7, 7)), np.zeros((7, 7))
    for t in range(4):
        K, noise = dense_process(model, plain_recursion, (0, t)), dense_noise(model, (0, t))
        mean, covariance = condition(K, noise, Y - float(model.response_scaling_.centre))
        mean = mean + float(model.response_scaling_.centre)
        np.testing.assert_allclose(law.means[t], mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(law.variances[t], np.diag(covariance), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(noisy.variances[t], law.variances[t] + np.mean(noise), rtol=1e-9)
        total += covariance / 4
        outer += np.outer(mean, mean) / 4
    expected = total + outer - np.outer(law.mean, law.mean)
    covariance = model.predict(NEW, return_cov=True, kind="function")[1]
    np.testing.assert_allclose(covariance, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["default", "known noise", "noise of each row", "normal, known noise"])
def test_pointwise_likelihood_is_leave_one_out(case, plain_recursion):
    """Each row predicted from the others with the scales held, in the units of y."""
    model = tiny(**{"alpha": 1.9, "n_draws": 3, **CASES[case]}).fit(X, Y)
    found = model.posterior_.to_arviz()["log_likelihood"]["y"].values
    assert found.shape == (1, 3, N)
    centred = Y - float(model.response_scaling_.centre)
    for t in range(3):
        K, noise = dense_process(model, plain_recursion, (0, t)), np.broadcast_to(dense_noise(model, (0, t)), N)
        K = K[:N, :N]
        for k in range(N):
            order = np.r_[np.delete(np.arange(N), k), k]
            mean, covariance = condition(K[np.ix_(order, order)], noise[order[:-1]], centred[order[:-1]])
            expected = multivariate_normal.logpdf(centred[k], mean[0], covariance[0, 0] + noise[k])
            assert found[0, t, k] == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_to_arviz(fitted):
    tree = fitted.posterior_.to_arviz()
    assert all(name in tree for name in ("posterior", "sample_stats", "log_likelihood"))
    assert list(tree["posterior"]["input_scales"].coords["input_scales_entry"].values) == ["intercept", "x0", "x1"]
    assert list(tree["posterior"]["layer_scales"].coords["layer_scales_entry"].values) == ["c2"]
    assert tree["posterior"]["noise_variance"].shape == (2, 40)
    assert {"log_target", "accept", "diverging", "log_likelihood"} <= set(tree["sample_stats"].data_vars)


def test_log_likelihood_is_that_of_the_data(fitted, plain_recursion):
    K = dense_process(fitted, plain_recursion, (1, 7))[:N, :N]
    cov = K + np.eye(N) * dense_noise(fitted, (1, 7))
    centred = Y - float(fitted.response_scaling_.centre)
    expected = multivariate_normal.logpdf(centred, np.zeros(N), cov) + N * np.log(float(fitted.response_scaling_.scale))
    assert fitted.posterior_.stats["log_likelihood"][1, 7] == pytest.approx(expected, abs=1e-5)


# One law, many questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_questions_agree(fitted, kind):
    law = fitted.predict_distribution(NEW, kind=kind)
    assert (len(law), law.n_atoms) == (7, 80)
    point, std = fitted.predict(NEW, return_std=True, kind=kind)
    np.testing.assert_allclose(point, law.median, rtol=1e-12)
    np.testing.assert_allclose(std, law.std, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict(NEW, kind=kind), point, rtol=0)
    levels = [0.0, 0.01, 0.05, 0.5, 0.95, 1.0]
    quantiles = fitted.predict_quantiles(NEW, levels, kind=kind)
    assert quantiles.shape == (7, 6)
    np.testing.assert_allclose(quantiles, law.quantile(levels), rtol=1e-12)
    np.testing.assert_allclose([law.cdf(q) for q in quantiles.T], np.repeat(levels, 7).reshape(6, 7), atol=1e-9)
    assert fitted.predict_quantiles(NEW, 0.5, kind=kind).shape == (7, 1)
    interval = fitted.predict_interval(NEW, coverage=0.8, kind=kind)
    assert interval.shape == (7, 2)
    np.testing.assert_allclose(interval, law.quantile([0.1, 0.9]), rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_interval(NEW, kind=kind), law.interval(0.9), rtol=1e-12)
    cov = fitted.predict(NEW, return_cov=True, kind=kind)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-8)
    np.testing.assert_array_equal(cov, cov.T)
    assert np.linalg.eigvalsh(cov).min() > -1e-10 * np.trace(cov)


def test_observations_vary_by_the_noise_more(fitted):
    noise = fitted.posterior_["noise_variance"].mean()
    (point, std), (same_point, inner) = (fitted.predict(NEW, return_std=True, kind=kind) for kind in KINDS)
    np.testing.assert_allclose(std**2, inner**2 + noise, rtol=1e-10)
    assert np.abs(point - same_point).max() < std.max()
    difference = np.subtract(*(fitted.predict(NEW, return_cov=True, kind=kind)[1] for kind in KINDS))
    np.testing.assert_allclose(difference, noise * np.eye(7), atol=1e-10 * noise + 1e-12 * std.max() ** 2)


def test_point_prediction():
    model = tiny(point="mean").fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), model.predict_distribution(NEW).mean, rtol=1e-12)
    np.testing.assert_allclose(model.set_params(point="median").predict(NEW), model.predict_quantiles(NEW, 0.5)[:, 0])
    with pytest.raises(ValueError, match="point must be"):
        model.set_params(point="mode").predict(NEW)


def test_n_atoms_thins_the_draws(fitted):
    thin = regressor(n_atoms=7)
    thin.__dict__.update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
    law, full = thin.predict_distribution(NEW), fitted.predict_distribution(NEW)
    assert law.n_atoms == 7
    np.testing.assert_array_equal(law.means[[0, -1]], full.means[[0, -1]])


@pytest.mark.parametrize("kind", KINDS)
def test_sample_y_is_joint(fitted, kind):
    draws = fitted.sample_y(NEW, n_samples=20_000, random_state=1, kind=kind)
    assert draws.shape == (7, 20_000)
    law, (_, cov) = fitted.predict_distribution(NEW, kind=kind), fitted.predict(NEW, return_cov=True, kind=kind)
    centred = draws - law.mean[:, None]
    error = centred.std(axis=1) / np.sqrt(20_000)
    assert np.abs(centred.mean(axis=1) / error).max() < 4.5
    products = centred[:, None] * centred[None]
    error = products.std(axis=2) / np.sqrt(20_000)
    assert np.abs((products.mean(axis=2) - cov) / error).max() < 4.5
    # The off-diagonal must matter for this test to mean anything.
    assert np.abs((cov - np.diag(np.diag(cov))) / error).max() > 20.0


def test_sample_y_and_its_seed(fitted):
    first = fitted.sample_y(NEW, 3, random_state=5)
    assert first.shape == (7, 3)
    np.testing.assert_array_equal(fitted.sample_y(NEW, 3, random_state=5), first)
    assert not np.array_equal(fitted.sample_y(NEW, 3, random_state=6), first)
    assert fitted.sample_y(NEW).shape == (7, 1)
    generator = np.random.default_rng(5)
    assert not np.array_equal(fitted.sample_y(NEW, 3, generator), fitted.sample_y(NEW, 3, generator))
    assert len(np.unique(fitted.sample_y(NEW[:1], 50, kind="function"))) == 50


class Ladder(StableKernelRegressor):
    """Atom t is the constant t, but for a little."""

    def _n_atoms(self):
        return 100

    def _joint(self, X, atoms):
        for t in atoms:
            yield np.full(len(X), float(t)), 1e-6 * np.ones((len(X), len(X))), 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_y_come_in_no_order(fitted, kind):
    """Neither by atom nor by chain: any part of the columns is a sample; rows of a column stay together."""
    model = Ladder(standardize=False)
    model.__dict__.update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
    draws = model.sample_y(NEW, 1000, random_state=2, kind=kind)
    atoms = np.round((draws - float(fitted.response_scaling_.centre)) / float(fitted.response_scaling_.scale))
    assert np.array_equal(atoms, np.tile(atoms[0], (7, 1)))
    assert len(np.unique(atoms)) == 100
    assert abs(spearmanr(np.arange(1000), atoms[0]).statistic) < 0.12
    assert np.mean(atoms[0, 1:] == atoms[0, :-1]) < 0.05


def test_rows_do_not_depend_on_other_rows(fitted):
    point, std = fitted.predict(NEW, return_std=True)
    quantiles, cov = fitted.predict_quantiles(NEW, [0.02, 0.7]), fitted.predict(NEW, return_cov=True)[1]
    for rows in ([3], [6, 0], [2, 2, 1]):
        alone = fitted.predict(NEW[rows], return_std=True)
        np.testing.assert_allclose(alone[0], point[rows], rtol=1e-10)
        np.testing.assert_allclose(alone[1], std[rows], rtol=1e-10)
        np.testing.assert_allclose(fitted.predict_quantiles(NEW[rows], [0.02, 0.7]), quantiles[rows], rtol=1e-10)
        part = fitted.predict(NEW[rows], return_cov=True, kind="function")[1]
        whole = fitted.predict(NEW, return_cov=True, kind="function")[1]
        np.testing.assert_allclose(part, whole[np.ix_(rows, rows)], atol=1e-10 * np.trace(cov))


def test_pieces_of_rows_make_no_difference(fitted, monkeypatch):
    whole = fitted.predict_quantiles(NEW, [0.1, 0.9]), fitted.predict_distribution(NEW).means
    monkeypatch.setattr("cadlag.regressor._CHUNK_BYTES", 16 * 80 * 2)
    np.testing.assert_allclose(fitted.predict_quantiles(NEW, [0.1, 0.9]), whole[0], rtol=1e-10)
    np.testing.assert_allclose(fitted.predict_distribution(NEW).means, whole[1], rtol=1e-10)


# Units ---------------------------------------------------------------------------------------------------------------


def test_units_by_powers_of_two():
    """Exactly the same run, hence exactly the same answers."""
    model, other = tiny().fit(X, Y - 10.0), tiny().fit(X * [4.0, 0.125], 1024.0 * (Y - 10.0))
    np.testing.assert_array_equal(model.posterior_.positions, other.posterior_.positions)
    new = NEW * [4.0, 0.125]
    for mine, theirs in zip(model.predict(NEW, return_std=True), other.predict(new, return_std=True)):
        np.testing.assert_array_equal(1024.0 * mine, theirs)
    np.testing.assert_array_equal(1024.0 * model.sample_y(NEW, 4), other.sample_y(new, 4))
    np.testing.assert_array_equal(2.0**20 * model.posterior_["noise_variance"], other.posterior_["noise_variance"])
    np.testing.assert_array_equal(model.posterior_["input_scales"], other.posterior_["input_scales"])


def test_units_and_shifts():
    """Standardised data agree to rounding, which a short run does not blow up."""
    model = tiny(noise_variance=0.2).fit(X, Y)
    other = tiny(noise_variance=0.2e6).fit(3.7 * X - 12.0, 1000.0 * Y + 55.0)
    np.testing.assert_allclose(model.model_.X, other.model_.X, atol=1e-13)
    np.testing.assert_allclose(model.model_.y, other.model_.y, atol=1e-13)
    new = 3.7 * NEW - 12.0
    point, std = other.predict(new, return_std=True)
    np.testing.assert_allclose(point, 1000.0 * model.predict(NEW) + 55.0, rtol=1e-9)
    np.testing.assert_allclose(std, 1000.0 * model.predict(NEW, return_std=True)[1], rtol=1e-8)
    cov = model.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(other.predict(new, return_cov=True)[1], 1e6 * cov, rtol=1e-7, atol=1e-3)


def test_known_noise_is_in_squared_units_of_y():
    """One number is the same as that number for each row; another unit of y is another number."""
    one = tiny(noise_variance=0.4).fit(X, Y)
    each = tiny(noise_variance=[0.4] * N).fit(X, Y)
    np.testing.assert_allclose(one.predict(NEW), each.predict(NEW), rtol=1e-9)
    scaled = tiny(noise_variance=0.4 * 64.0).fit(X, 8.0 * Y)
    np.testing.assert_allclose(8.0 * one.predict(NEW), scaled.predict(NEW), rtol=1e-12)
    assert "noise_variance" not in one.posterior_.draws
    difference = np.subtract(*(one.predict(NEW, return_std=True, kind=kind)[1] ** 2 for kind in KINDS))
    np.testing.assert_allclose(difference, 0.4, rtol=1e-10)


def test_noisy_rows_count_less():
    """A row declared pure noise is as good as absent."""
    noise = np.full(N, 0.2)
    noise[4] = 1e12
    raw = {"standardize": False, "alpha": 2.0, "n_draws": 1, "n_warmup": 0}
    model = tiny(noise_variance=noise, **raw).fit(X, Y)
    absent = tiny(noise_variance=np.delete(noise, 4), **raw).fit(np.delete(X, 4, axis=0), np.delete(Y, 4))
    np.testing.assert_allclose(model.predict(NEW), absent.predict(NEW), rtol=1e-8)


# Posterior and diagnostics -------------------------------------------------------------------------------------------


def test_posterior_names(fitted, deep):
    posterior = fitted.posterior_
    assert set(posterior.draws) == {"input_scales", "layer_scales", "noise_variance"}
    assert posterior["input_scales"].shape == (2, 40, 3)
    assert posterior["layer_scales"].shape == (2, 40, 1)
    assert posterior["noise_variance"].shape == (2, 40)
    assert 0.02 < np.median(posterior["noise_variance"]) < 0.5
    assert deep.posterior_.labels["layer_scales"] == ["c1", "c2"]
    table = posterior.summary()
    assert list(table) == ["parameter", "median", "q05", "q95", "rhat", "ess_bulk", "ess_tail"]
    assert list(table["parameter"]) == [
        "input_scales[intercept]", "input_scales[x0]", "input_scales[x1]", "layer_scales[c2]", "noise_variance",
        "log_likelihood",
    ]  # fmt: skip
    assert np.all(table["q05"] <= table["median"])
    assert np.all(table["median"] <= table["q95"])
    assert len(repr(table).splitlines()) == 7
    assert tiny(alpha=2.0).fit(X, Y).posterior_.draws.keys() == {"noise_variance"}
    assert tiny(preset="prop2").fit(X, Y).posterior_.draws.keys() == {"input_scales", "noise_variance"}


def test_diagnostics(fitted):
    found, table = fitted.diagnostics_, fitted.posterior_.summary()
    assert found["worst_rhat"] == table["rhat"].max()
    assert found["worst_ess_bulk"] == table["ess_bulk"].min()
    assert found["worst_ess_tail"] == table["ess_tail"].min()
    assert found["worst_rhat_parameter"] in table["parameter"]
    assert {"n_failures", "n_divergences", "mean_accept", "n_chains", "n_draws"} <= found.keys()


def test_convergence_warning_names_the_parameter():
    model = tiny(sampler="independence", n_draws=20, n_chains=2)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    (warning,) = caught
    found = model.diagnostics_
    assert f"R-hat of {found['worst_rhat_parameter']} is {found['worst_rhat']:.3f}" in str(warning.message)
    assert found["worst_ess_bulk_parameter"] in str(warning.message)
    assert warning.filename == __file__


def test_good_runs_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = regressor(alpha=2.0, n_draws=600, n_warmup=100, n_chains=2).fit(X[:8], Y[:8])
        tiny(alpha=2.0, noise_variance=0.1).fit(X, Y)
    assert model.diagnostics_["worst_rhat"] < 1.01
    assert model.diagnostics_["worst_ess_bulk"] > 400


def test_nothing_unknown(plain_recursion):
    """α = 2 and known noise: a plain Gaussian process with every method still there."""
    model = tiny(alpha=2.0, noise_variance=0.09, n_chains=2).fit(X, Y)
    assert model.posterior_.draws == {}
    assert model.posterior_.positions.shape == (2, 6, 0)
    assert np.isnan(model.diagnostics_["worst_rhat"])
    mean, covariance = condition(dense_process(model, plain_recursion, (0, 0)), 0.09, Y - Y.mean())
    point, std = model.predict(NEW, return_std=True, kind="function")
    np.testing.assert_allclose(point, mean + Y.mean(), rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert model.sample_y(NEW, 5).shape == (7, 5)
    assert model.extend(3).posterior_.n_draws == 9
    assert set(model.feature_relevance()) == {"input", "relevance", "q05", "q95"}
    assert model.sample_kernels(n_draws=2).shape == (2, N, N)
    tree = model.posterior_.to_arviz()
    assert tree["log_likelihood"]["y"].shape == (2, 9, N)
    np.testing.assert_allclose(model.predict_distribution(NEW).means, np.tile(point, (12 + 6, 1)), rtol=1e-9)


# Relevance, kernels, features ----------------------------------------------------------------------------------------


def test_feature_relevance(fitted):
    table = fitted.feature_relevance()
    assert list(table["input"]) == ["x0", "x1"]
    assert table["relevance"][0] > 0.8
    assert table["relevance"][1] < 0.15
    assert np.all(table["q05"] <= table["relevance"])
    assert np.all(table["relevance"] <= table["q95"])
    scales = fitted.posterior_["input_scales"].reshape(-1, 3)
    np.testing.assert_allclose(table["scale"], np.median(scales, axis=0)[1:])
    np.testing.assert_allclose(table["scale_q95"], np.quantile(scales, 0.95, axis=0)[1:])
    assert table.to_pandas().shape == (2, 7)
    assert repr(fitted.feature_relevance()) == repr(table)


def test_relevance_of_an_input_that_is_not_there():
    """A constant column cannot matter, and one relevant input has it all: E(f - f')² = 2 Var f."""
    inputs = np.column_stack([X[:, 0], np.full(N, 5.0)])
    table = tiny().fit(inputs, Y).feature_relevance()
    assert table["relevance"][1] == 0.0
    assert 0.7 < table["relevance"][0] < 1.3


def test_relevance_of_inputs_together(fitted):
    """All of them have it all, as above; a group of one is that input under another name."""
    table = fitted.feature_relevance(groups={"both": ["x1", "x0"]})
    assert list(table["input"]) == ["both"]
    assert 0.7 < table["relevance"][0] < 1.3
    largest = fitted.posterior_["input_scales"].reshape(-1, 3)[:, 1:].max(axis=1)
    assert [table[name][0] for name in ("scale_q05", "scale")] == pytest.approx(list(np.quantile(largest, [0.05, 0.5])))
    plain, named = fitted.feature_relevance(), fitted.feature_relevance(groups={"last": ["x1"]})
    assert list(named["input"]) == ["x0", "last"]
    for name in ("relevance", "q05", "q95", "scale", "scale_q95"):
        np.testing.assert_array_equal(named[name], plain[name])


def test_inputs_together_are_permuted_in_the_same_way():
    rows = np.arange(40.0).reshape(10, 4)
    changed = _permuted(np.random.default_rng(0), rows, [1, 3])
    np.testing.assert_array_equal(changed[:, [0, 2]], rows[:, [0, 2]])
    np.testing.assert_array_equal(changed[:, 3] - changed[:, 1], 2.0)
    assert sorted(changed[:, 1]) == list(rows[:, 1]) != list(changed[:, 1])


def test_groups_of_inputs_that_are_not_there(fitted):
    with pytest.raises(ValueError, match=r"groups\['a'\] has 'x7', which is no input: choose from x0, x1"):
        fitted.feature_relevance(groups={"a": ["x0", "x7"]})
    with pytest.raises(ValueError, match=r"groups\['a'\] is empty"):
        fitted.feature_relevance(groups={"a": []})


def dense_kernels(model, plain_recursion, inputs, t):
    stack = np.column_stack([np.ones(len(inputs)), model.input_scaling_.apply(inputs)])
    flat = {
        name: values.reshape(-1, values.shape[-1]) for name, values in model.posterior_.draws.items() if values.ndim > 2
    }
    c = flat["layer_scales"][t]
    return plain_recursion(stack, flat["input_scales"][t], c, model.order, stack.shape[1]), c


@pytest.mark.parametrize("layer", [0, 1, 2, None])
def test_sample_kernels(deep, plain_recursion, layer):
    kernels = deep.sample_kernels(layer, X=NEW, n_draws=20)
    assert kernels.shape == (20, 7, 7)
    np.testing.assert_allclose(kernels, kernels.transpose(0, 2, 1), rtol=1e-12)
    lowest = np.linalg.eigvalsh(kernels).min(axis=1)
    assert np.all(lowest > -1e-12 * np.trace(kernels, axis1=1, axis2=2))
    for t in (0, 19):
        expected = dense_kernels(deep, plain_recursion, NEW, t)[0][2 if layer is None else layer]
        np.testing.assert_allclose(kernels[t], expected, rtol=1e-6, atol=1e-9)


def test_sample_kernels_at_training_rows(deep):
    kernels = deep.sample_kernels(n_draws=3)
    assert kernels.shape == (3, N, N)
    np.testing.assert_allclose(kernels, deep.sample_kernels(2, X=X, n_draws=3), rtol=1e-12)
    assert deep.sample_kernels(n_draws=500).shape == (20, N, N)


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("scaled", [True, False])
def test_sample_features(deep, plain_recursion, layer, scaled):
    """Covariance c_ℓ Σ_{ℓ-1}, features independent of one another."""
    rows = NEW[:3]
    features = deep.sample_features(layer, n_features=20_000, X=rows, n_draws=1, scaled=scaled, random_state=4)
    assert features.shape == (1, 20_000, 3)
    matrices, c = dense_kernels(deep, plain_recursion, rows, 0)
    expected = matrices[layer - 1] * (c[layer - 1] if scaled else 1.0)
    products = features[0][:, :, None] * features[0][:, None, :]
    error = products.std(axis=0) / np.sqrt(20_000)
    assert np.abs((products.mean(axis=0) - expected) / error).max() < 4.5
    neighbours = (features[0][::2] * features[0][1::2]).mean(axis=0) / np.diag(expected)
    assert np.abs(neighbours).max() < 4.5 / np.sqrt(10_000)


def test_sample_features_of_training_rows(deep, fitted):
    assert deep.sample_features(2, n_features=3, n_draws=5).shape == (5, 3, N)
    for model, layer in ((deep, 3), (fitted, 2), (fitted, 0)):
        with pytest.raises(ValueError, match="for the output use sample_y"):
            model.sample_features(layer)


# The prior -----------------------------------------------------------------------------------------------------------


def test_sample_prior_of_the_normal_process(plain_recursion):
    model = StableKernelRegressor(alpha=2.0, depth=2, fit_intercept=False, noise_variance=3.0)
    rows = NEW[:3]
    for kind, noise in (("function", 0.0), ("observation", 3.0)):
        draws = model.sample_prior(rows, n_samples=3000, random_state=2, kind=kind)
        assert draws.shape == (3, 3000)
        expected = plain_recursion(rows, np.ones(2), [1.0, 1.0], 1)[-1] + noise * np.eye(3)
        products = draws[:, None] * draws[None]
        assert np.abs((products.mean(axis=2) - expected) / (products.std(axis=2) / np.sqrt(3000))).max() < 4.5


def test_sample_prior_is_cauchy():
    """Order 0 has Σ_kk = 1, so that ψ(x) = √c Z with c Lévy at α = 1: Cauchy with scale 1/√2."""
    draws = StableKernelRegressor(order=0).sample_prior(NEW[:1], n_samples=4000, random_state=0)[0]
    below = np.array([np.mean(np.abs(draws) < q / np.sqrt(2.0)) for q in (0.2, 1.0, 10.0)])
    expected = 2.0 / np.pi * np.arctan([0.2, 1.0, 10.0])
    assert np.abs((below - expected) / np.sqrt(expected * (1.0 - expected) / 4000)).max() < 4.0
    repeated = StableKernelRegressor(order=0).sample_prior(NEW[:1], n_samples=4000, random_state=0)[0]
    np.testing.assert_array_equal(repeated, draws)


# methods.md 1.9: α, d, I of (0, d), I of (-d/2, d/2)
INFORMATION = {
    2.0: [(0.1, 2.31822, 2.31577), (0.5, 0.85358, 0.80520), (1.0, 0.42273, 0.30723), (2.0, 0.20012, 0.05341)],
    1.0: [(0.1, 2.12013, 2.10373), (0.5, 0.84579, 0.78271), (1.0, 0.47366, 0.37984), (2.0, 0.24363, 0.13069)],
}


@pytest.mark.parametrize("alpha", INFORMATION)
def test_conditional_mutual_information(alpha):
    d, from_zero, centred = np.array(INFORMATION[alpha]).T
    first, second = np.concatenate([0.0 * d, -0.5 * d])[:, None], np.concatenate([d, 0.5 * d])[:, None]
    model = StableKernelRegressor(alpha=alpha, fit_intercept=False)
    value, error = model.conditional_mutual_information(first, second, n_samples=3000, random_state=1)
    expected = np.concatenate([from_zero, centred])
    if alpha == 2.0:
        np.testing.assert_allclose(value, expected, atol=6e-6)
        np.testing.assert_array_equal(error, 0.0)
    else:
        assert np.all((error > 0.0) & (error < 0.05))
        assert np.abs((value - expected) / error).max() < 4.0


# Runs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_extend_continues_bit_for_bit(sampler):
    settings = {"sampler": sampler, "n_warmup": 40 if sampler == "nuts" else 6, "n_chains": 2, "depth": 2}
    short, long = tiny(**settings).fit(X, Y), tiny(**settings, n_draws=15).fit(X, Y)
    assert short.extend(4) is short
    same(short.extend(n_draws=5), long)
    assert short.posterior_.n_draws == 15
    np.testing.assert_array_equal(short.predict(NEW), long.predict(NEW))
    assert short.diagnostics_ == long.diagnostics_


def test_workers_make_no_difference(fitted):
    model = regressor(n_jobs=2).fit(X, Y)
    same(model, fitted)
    np.testing.assert_array_equal(model.predict(NEW), fitted.predict(NEW))


def test_random_state():
    def positions(seed):
        return tiny(random_state=seed, n_warmup=2, n_draws=2).fit(X, Y).posterior_.positions

    parent = np.random.SeedSequence(9)
    first, second = parent.spawn(2)
    for seed in (3, np.int64(3), parent, first):
        np.testing.assert_array_equal(positions(seed), positions(seed))
    np.testing.assert_array_equal(positions(3), positions(np.random.SeedSequence(3)))
    np.testing.assert_array_equal(positions(np.random.RandomState(3)), positions(np.random.RandomState(3)))
    np.testing.assert_array_equal(positions(np.random.default_rng(3)), positions(np.random.default_rng(3)))
    different = [positions(seed).tobytes() for seed in (3, 4, parent, first, second, None, None)]
    assert len(set(different)) == len(different)


def test_chains_differ(fitted):
    assert not np.any(fitted.posterior_.positions[0] == fitted.posterior_.positions[1])


def test_progress(capsys):
    tiny(progress=True, n_chains=2).fit(X, Y)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        r"sampling \[#{24}\] 12/12 iterations x 2 chains, \d+ divergences, \d+s gone, 0s left\n", printed.err
    )
    tiny().fit(X, Y)
    assert capsys.readouterr().err == ""


class Interrupt:
    """A progress callback that interrupts once, as soon as all chains have reached an iteration."""

    def __init__(self, at):
        self.at, self.done = at, False

    def __call__(self, reached, *_):
        if not self.done and min(reached) >= self.at:
            self.done = True
            raise KeyboardInterrupt


def test_interrupted_fit_keeps_its_draws(fitted, monkeypatch):
    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 1e-9)
    model = regressor(progress=Interrupt(52))
    with pytest.warns(UserWarning, match="interrupted: 12 draws a chain are kept"):
        model.fit(X, Y)
    assert model.posterior_.n_draws == 12
    assert np.isfinite(model.predict(NEW)).all()
    np.testing.assert_array_equal(model.posterior_.positions, fitted.posterior_.positions[:, :12])
    model.set_params(progress=Interrupt(60))
    with pytest.warns(UserWarning, match="interrupted: 20 draws a chain are kept"):
        model.extend(28)
    assert model.posterior_.n_draws == 20
    same(model.set_params(progress=False).extend(20), fitted)


def test_interrupted_warm_up_leaves_nothing():
    model = tiny(n_warmup=20, progress=Interrupt(1))
    with pytest.raises(KeyboardInterrupt, match="before the first draw"):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]


# Files ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "run.cadlag"
    fitted.save(path)
    return path


READER = """
import json, sys, cadlag
model = cadlag.load(sys.argv[1])
print(json.dumps([part.tolist() for part in model.predict(json.loads(sys.argv[2]), return_std=True)]))
"""


def test_saved_model_is_the_same_elsewhere(fitted, saved):
    twin = load(saved)
    assert type(twin) is StableKernelRegressor
    same(twin, fitted)
    assert repr(twin.get_params()) == repr(fitted.get_params())
    answer = fitted.predict(NEW, return_std=True)
    np.testing.assert_array_equal(twin.predict(NEW, return_std=True), answer)
    np.testing.assert_array_equal(twin.predict_interval(NEW), fitted.predict_interval(NEW))
    np.testing.assert_array_equal(twin.sample_y(NEW, 3), fitted.sample_y(NEW, 3))
    assert twin.diagnostics_ == fitted.diagnostics_
    same(twin.extend(5), regressor(n_draws=45).fit(X, Y))
    arguments = [sys.executable, "-c", READER, str(saved), json.dumps(NEW.tolist())]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    np.testing.assert_array_equal(json.loads(printed), answer)


@pytest.mark.parametrize(
    "settings",
    [
        {"noise_variance": np.linspace(0.1, 1.0, N)}, {"noise_variance": list(np.linspace(0.1, 1.0, N))},
        {"noise_variance": pd.Series(np.linspace(0.1, 1.0, N))}, {"noise_variance": np.float32(0.5)},
        {"alpha": 2.0, "noise_variance": 1}, {"fit_intercept": False, "standardize": False, "point": "mean"},
        {"preset": "published_code", "depth": 2, "order": 0, "random_state": np.random.default_rng(1)},
        {"sampler": "tempered", "n_warmup": 2, "n_draws": 2}, {"sampler": "independence", "progress": print},
    ],
)  # fmt: skip
def test_every_setting_survives_the_file(settings, tmp_path, capsys):
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = tiny(**settings).fit(frame, Y)
    model.save(tmp_path / "m.cadlag")
    twin = load(tmp_path / "m.cadlag")
    assert list(twin.feature_names_in_) == ["a", "b"]
    new = pd.DataFrame(NEW, columns=["a", "b"])
    np.testing.assert_array_equal(twin.predict(new, return_std=True), model.predict(new, return_std=True))
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(new[["b", "a"]])
    same(twin.extend(2), model.set_params(progress=False).extend(2))


def test_cut_files_are_refused(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "cut.cadlag"
    for length in np.random.default_rng(0).integers(0, len(content), 50):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load(path)


def test_other_files_are_refused(saved, tmp_path):
    path = tmp_path / "other.cadlag"
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        load(path)
    tree = read_tree(saved, "model")
    for other in (
        {}, {"method": "kernel"}, {**tree, "method": "network"}, {**tree, "method": []},
        {**tree, "chains": None, "stats": 1},
        {**tree, "settings": {**tree["settings"], "alpha": 3.0}}, {**tree, "settings": {"colour": "red"}},
        {**tree, "data": {"X": tree["data"]["X"]}}, {**tree, "positions": tree["positions"][0]},
    ):  # fmt: skip
        write_tree(path, other, "model")
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load(path)
    write_tree(path, tree, "posterior")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        load(path)
    path.write_text("alpha,1\n")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        load(path)


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_files_with_a_scale_that_nothing_can_be_divided_by_are_refused(saved, tmp_path, scale):
    path, tree = tmp_path / "other.cadlag", read_tree(saved, "model")
    inputs, response = tree["input_scaling"], tree["response_scaling"]
    for other in (
        {**tree, "response_scaling": {**response, "scale": scale}},
        {**tree, "input_scaling": {**inputs, "scale": np.array([1.0, scale])}},
    ):
        write_tree(path, other, "model")
        with pytest.raises(ValueError, match=f"{re.escape(str(path))} .*a scale is not positive"):
            load(path)


def test_registry():
    assert METHODS["kernel"] is StableKernelRegressor
    for name, method in METHODS.items():
        assert method._method == name


# Memory --------------------------------------------------------------------------------------------------------------


def peak_of(call):
    """Bytes taken on the way to a refusal, and its message."""
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError) as caught:
            call()
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def test_fit_is_refused_before_it_allocates():
    n = 4000
    inputs, model = np.linspace(0.0, 1.0, n)[:, None], tiny(max_memory=50e6, neighbors=None)
    peak, message = peak_of(lambda: model.fit(inputs, inputs[:, 0]))
    assert peak < 5e6
    assert "An exact fit to 4000 rows needs about" in message
    assert "use fewer rows" in message
    assert not hasattr(model, "model_")
    two_workers = tiny(max_memory=1.5 * 12 * N**2, n_jobs=2, n_chains=2)
    with pytest.raises(MemoryError, match="n_jobs"):
        two_workers.fit(X, Y)
    two_workers.set_params(n_jobs=1).fit(X, Y)


@pytest.mark.parametrize("question", ["predict_distribution", "sample_y", "return_cov"])
def test_questions_are_refused_before_they_allocate(question):
    many = np.tile(NEW, (1000, 1))
    model = tiny().fit(X, Y).set_params(max_memory=1e6)
    ask = {
        "predict_distribution": lambda: model.predict_distribution(many),
        "sample_y": lambda: model.sample_y(many),
        "return_cov": lambda: model.predict(many, return_cov=True),
    }[question]
    peak, message = peak_of(ask)
    assert peak < 20e6
    assert "fewer rows" in message
    assert model.predict_quantiles(many).shape == (7000, 3)


def test_kernels_are_refused_before_they_allocate(deep):
    many = np.tile(NEW, (300, 1))
    model = clone(deep).set_params(max_memory=50e6)
    model.__dict__.update({name: value for name, value in vars(deep).items() if name.endswith("_")})
    peak, message = peak_of(lambda: model.sample_kernels(X=many))
    assert peak < 5e6
    assert "ask for fewer draws" in message


def test_draws_that_would_not_fit_are_refused_before_they_are_made():
    with pytest.raises(MemoryError, match=r"A run of 1,000,000,010 draws needs .* use fewer draws"):
        tiny(n_draws=10**9, n_warmup=10, n_chains=1, max_memory=1e9).fit(X, Y)
