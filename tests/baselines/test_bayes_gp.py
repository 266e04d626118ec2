"""The scikit-learn face of tgp's Gaussian process: presets, scaling, units, files, and what it says of its inputs."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import BayesGPRegressor, load
from cadlag.datasets import simulate
from cadlag.methods import METHODS
from cadlag.metrics import score
from cadlag.papers.experiment import evaluate_task
from cadlag.papers.rows import Task

QUIET = "ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning"
pytestmark = pytest.mark.filterwarnings(QUIET)

RNG = np.random.default_rng(11)
N = 30
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 10.0 + 3.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.2 * RNG.standard_normal(N)
NEW = RNG.uniform(-2.0, 2.0, (7, 2))
KINDS = ("observation", "function")


def regressor(**settings):
    return BayesGPRegressor(**{"n_draws": 30, "n_warmup": 30, "n_chains": 2, "random_state": 3, **settings})


def rounds(**settings):
    return regressor(**{"sampler": "tgp", "thin": 3, **settings})


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(X, Y)


@parametrize_with_checks([BayesGPRegressor(sampler="tgp", n_draws=10, n_warmup=30, n_chains=1)])
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([BayesGPRegressor("loria_bhadra", n_draws=10, n_warmup=20, n_chains=1)])
def test_scikit_learn_with_the_default_sampler(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_both_samplers_find_the_same_posterior():
    """Means of log unknowns within 4.5 standard errors; one mode, as the rounds take thousands to change it."""
    x = np.linspace(0.0, 1.0, 25)[:, None]
    y = np.sin(6.0 * x[:, 0]) + 0.2 * np.random.default_rng(0).standard_normal(25)
    models = [
        regressor(n_draws=400, n_warmup=300, n_chains=4).fit(x, y),
        rounds(n_draws=500, n_warmup=100, n_chains=4, thin=20).fit(x, y),
    ]
    tables = [model.posterior_.summary() for model in models]
    for k, name in enumerate(tables[0]["parameter"][:-1]):
        draws = [np.log(model.posterior_.scalars()[name]) for model in models]
        errors = [d.std() / np.sqrt(table["ess_bulk"][k]) for d, table in zip(draws, tables)]
        assert abs(draws[0].mean() - draws[1].mean()) < 4.5 * np.hypot(*errors), name
    std = [model.predict(x, return_std=True)[1] for model in models]
    np.testing.assert_allclose(*std, rtol=0.05)
    np.testing.assert_allclose(models[0].predict(x), models[1].predict(x), atol=0.1 * std[0].mean())


def test_it_learns():
    truth = 10.0 + 3.0 * NEW[:, 0] + np.sin(3.0 * NEW[:, 1])
    model = regressor(n_draws=100, n_warmup=150).fit(X, Y)
    assert np.sqrt(np.mean((model.predict(NEW) - truth) ** 2)) < 0.35
    assert 0.01 < np.median(model.posterior_["noise_variance"]) < 0.3
    low, high = model.predict_interval(NEW, 0.99).T
    assert np.all((low < truth) & (truth < high))


# Presets -------------------------------------------------------------------------------------------------------------


def test_presets():
    default, companion = (rounds(preset=name, n_draws=4).fit(X, Y) for name in ("tgp_default", "loria_bhadra"))
    assert (default.model_.correlation, companion.model_.correlation) == ("expsep", "matern")
    assert np.ptp(default.model_.y) == pytest.approx(1.0)
    assert default.model_.y.mean() == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_array_equal(companion.model_.y, Y)
    for model in (default, companion):
        np.testing.assert_allclose([model.model_.X.min(axis=0), model.model_.X.max(axis=0)], [[0, 0], [1, 1]])
    assert rounds(correlation="exp", n_draws=4).fit(X, Y).model_.correlation == "exp"
    raw = rounds(m0r1=False, n_draws=4).fit(X, Y)
    np.testing.assert_array_equal(raw.model_.y, Y)
    assert raw.posterior_["ranges"].shape == (2, 4, 2)
    assert companion.posterior_["range"].shape == (2, 4)


def test_published_chains():
    """1,500 draws from rounds 1,002, 1,004, ... 4,000; 10,000 of 20,000."""
    model = BayesGPRegressor.published("tgp_default", random_state=0)
    assert model.thin * (model.n_warmup + model.n_draws) == 4000
    model.fit(X[:8], Y[:8], X_test=NEW)
    assert model.posterior_.n_chains * model.posterior_.n_draws == 1500
    assert model.predict_distribution(NEW).n_atoms == 1500
    other = BayesGPRegressor.published("loria_bhadra", n_chains=2)
    assert (other.n_warmup, other.n_draws, other.thin, other.n_atoms) == (10_000, 10_000, 1, 10_000)
    assert (other.preset, other.scale_over, other.sampler, other.n_chains) == (
        "loria_bhadra", "train_and_test", "tgp", 2,
    )  # fmt: skip
    with pytest.raises(ValueError, match="preset must be one of tgp_default, loria_bhadra, got 'bgp'"):
        BayesGPRegressor.published("bgp")


# Scaling and units ---------------------------------------------------------------------------------------------------


def test_unit_cube_over_training_and_test_rows():
    wide = np.vstack([NEW, [[4.0, -6.0]]])
    model = rounds(scale_over="train_and_test").fit(X, Y, X_test=wide)
    both = np.vstack([X, wide])
    np.testing.assert_allclose(model.model_.X, (X - both.min(axis=0)) / np.ptp(both, axis=0), rtol=1e-14)
    again = rounds(scale_over="train_and_test").fit(X, Y, X_test=pd.DataFrame(wide[::-1]))
    np.testing.assert_array_equal(model.posterior_.positions, again.posterior_.positions)
    np.testing.assert_allclose(model.predict(wide[:2]), model.predict(wide)[:2], rtol=1e-12)
    inside = rounds(scale_over="train_and_test").fit(X, Y, X_test=X[:3])
    np.testing.assert_array_equal(inside.posterior_.positions, rounds().fit(X, Y).posterior_.positions)


def test_experiments_give_it_the_test_inputs_that_its_settings_want():
    assert [rounds(scale_over=over).wants_test_inputs for over in ("train", "train_and_test")] == [False, True]
    settings = {"n_draws": 3, "n_warmup": 3, "n_chains": 1, "sampler": "tgp", "scale_over": "train_and_test"}
    data, own = simulate("2d", 4), BayesGPRegressor(**settings, random_state=4)
    law = own.fit(data.X_train, data.y_train, X_test=data.X_test).predict_distribution(data.X_test)
    values = evaluate_task(Task("sim2d", "bayes_gp", settings, 4))
    assert values["crps"] == score(law, data.y_test)["crps"]


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"scale_over": "train_and_test"}, None, "X_test and scale_over=.* go together"),
        ({}, NEW, "X_test and scale_over=.* go together"),
        ({"scale_over": "train_and_test"}, NEW[:, :1], "X_test has 1 columns, X has 2"),
        ({"scale_over": "train_and_test"}, np.full((2, 2), np.nan), "X_test holds NaN at row 0, column 0"),
        ({"scale_over": "train_and_test"}, [["a", "b"]], "X_test holds 'a'"),
        ({"scale_over": "all"}, None, "scale_over must be one of train, train_and_test"),
        ({"preset": "bgp"}, None, "preset must be one of"),
        ({"correlation": "rbf"}, None, "correlation must be None or one of expsep, exp, matern, got 'rbf'"),
        ({"sampler": "gibbs"}, None, "sampler must be one of"),
        ({"nu": 0.0}, None, r"nu must be a number in \(0, 50\], got 0.0"),
        ({"nu": "a"}, None, "nu must be a number"),
        ({"thin": 0}, None, "thin must be an integer of at least 1"),
        ({"m0r1": 1}, None, "m0r1 must be True, False, or None"),
        ({"include_beta_var": "no"}, None, "include_beta_var must be True or False"),
        ({"emulate_tgp_matern_bug": 1}, None, "emulate_tgp_matern_bug must be True or False"),
    ],
)
def test_bad_settings_are_refused(settings, given, message):
    model = regressor(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, X_test=given)
    assert not [name for name in vars(model) if name.endswith("_") or name.startswith("_")]


def test_units():
    """Any affine map of an input; and of the response, where its range is the unit."""
    model, other = rounds().fit(X, Y), rounds().fit(X * [3.7, -0.01] + [5.0, 200.0], 1000.0 * Y - 55.0)
    np.testing.assert_allclose(model.posterior_.positions, other.posterior_.positions, rtol=1e-6, atol=1e-6)
    new = NEW * [3.7, -0.01] + [5.0, 200.0]
    for shift, one, two in zip((-55.0, 0.0), model.predict(NEW, return_std=True), other.predict(new, return_std=True)):
        np.testing.assert_allclose(two, 1000.0 * one + shift, rtol=1e-6)
    for name in ("variance", "noise_variance"):
        np.testing.assert_allclose(other.posterior_[name], 1e6 * model.posterior_[name], rtol=1e-5)


# Columns that say nothing new ----------------------------------------------------------------------------------------


def test_dependent_columns_are_named_and_left_out_of_the_mean():
    table = pd.DataFrame({"wall": X[:, 0], "roof": X[:, 1], "surface": X[:, 0] + 2.0 * X[:, 1]})
    with pytest.warns(
        UserWarning, match=r"linear combinations of others: (wall|roof|surface) left out of the linear mean"
    ):
        model = rounds(n_draws=5).fit(table, Y)
    assert model.model_.F.shape == (N, 3)
    assert model.posterior_["ranges"].shape[-1] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        rounds(n_draws=5).fit(X, Y)


def test_constant_columns():
    same = np.column_stack([X, np.full(N, 7.0)])
    with pytest.warns(UserWarning) as caught:
        model = rounds(n_draws=5).fit(same, Y)
    assert ["nothing can be learned" in str(w.message) for w in caught if w.category is UserWarning] == [True]
    assert model.model_.F.shape == (N, 3)
    assert np.isfinite(model.predict(np.column_stack([NEW, [7.0, 8.0] + [7.0] * 5]))).all()


def test_fewer_rows_than_columns():
    wide = RNG.uniform(size=(4, 6))
    with pytest.warns(UserWarning, match="linear combinations"):
        model = rounds(n_draws=5).fit(wide, Y[:4])
    assert model.model_.n_free == 0
    assert np.isfinite(model.predict(wide, return_std=True)).all()


def test_constant_and_exactly_linear_responses():
    for y in (np.full(N, 2.0), 1.0 + X @ [1.0, 2.0]):
        for model in (rounds(), regressor()):
            mean, std = model.fit(X, y).predict(X, return_std=True)
            np.testing.assert_allclose(mean, y, atol=1e-3)
            assert np.isfinite(std).all()


# One law, many questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_questions_agree(fitted, kind):
    law = fitted.predict_distribution(NEW, kind=kind)
    assert law.n_atoms == 60
    point, std = fitted.predict(NEW, return_std=True, kind=kind)
    np.testing.assert_allclose(point, law.median, rtol=1e-12)
    cov = fitted.predict(NEW, return_cov=True, kind=kind)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-7)
    draws = fitted.sample_y(NEW, 20_000, kind=kind)
    centred = draws - law.mean[:, None]
    products = centred[:, None] * centred[None]
    assert np.abs((products.mean(axis=2) - cov) / (products.std(axis=2) / np.sqrt(20_000))).max() < 4.5


def test_the_nugget_is_the_noise(fitted):
    function, observation = (fitted.predict_distribution(NEW, kind=kind) for kind in ("function", "observation"))
    noise = fitted.posterior_["noise_variance"].ravel()
    np.testing.assert_allclose(observation.variances - function.variances, np.tile(noise[:, None], 7), rtol=1e-9)
    np.testing.assert_allclose(noise, (fitted.posterior_["variance"] * fitted.posterior_["nugget"]).ravel())


def test_beta_variance_is_added_on_demand(fitted):
    more = regressor(include_beta_var=True).fit(X, Y)
    np.testing.assert_array_equal(more.posterior_.positions, fitted.posterior_.positions)
    np.testing.assert_allclose(more.predict(NEW), fitted.predict(NEW), rtol=1e-2)
    assert np.all(more.predict(NEW, return_std=True)[1] > fitted.predict(NEW, return_std=True)[1])


def test_emulated_bug():
    """Only for as many rows as there are training rows, only for the Matérn correlation, only for observations."""
    settings = {"preset": "loria_bhadra", "n_draws": 15}
    plain, bug = (rounds(emulate_tgp_matern_bug=flag, **settings).fit(X, Y) for flag in (False, True))
    np.testing.assert_array_equal(bug.predict(NEW), plain.predict(NEW))
    np.testing.assert_allclose(bug.predict(X), Y, rtol=1e-8)
    assert np.abs(plain.predict(X) - Y).max() > 0.05
    other = X[::-1] + 0.01
    mean, std = bug.predict(other, return_std=True)
    assert np.all(std < plain.predict(other, return_std=True)[1])
    assert np.abs(mean - plain.predict(other)).max() > 0.05
    np.testing.assert_array_equal(bug.predict(other[1:], kind="function"), plain.predict(other[1:], kind="function"))
    for question in ({"kind": "function"}, {"return_cov": True}):
        with pytest.raises(ValueError, match="as many rows as training rows"):
            bug.predict(other, **question)
    with pytest.raises(ValueError, match="as many rows as training rows"):
        bug.sample_y(other)
    separable = rounds(emulate_tgp_matern_bug=True, n_draws=15).fit(X, Y)
    np.testing.assert_array_equal(separable.predict(other), rounds(n_draws=15).fit(X, Y).predict(other))
    assert bug.feature_relevance(n_atoms=5)["relevance"].shape == (2,)


def test_relevance_and_names(fitted):
    table = pd.DataFrame(X, columns=["age", "income"])
    model = regressor(n_draws=6).fit(table, Y)
    assert {"ranges[age]", "ranges[income]", "nugget", "variance", "a0", "g0"} <= set(model.posterior_.scalars())
    relevance = fitted.feature_relevance(n_atoms=20)
    assert list(relevance["input"]) == ["x0", "x1"]
    assert relevance["relevance"][0] > relevance["relevance"][1] > 0.01
    log_density = fitted.posterior_.to_arviz()["log_likelihood"]["y"].values
    assert log_density.shape == (2, 30, N)
    assert np.isfinite(log_density).all()


# Chains and files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"sampler": "tgp", "preset": "loria_bhadra"}])
def test_files_workers_and_extension(tmp_path, settings):
    model = regressor(n_draws=10, **settings).fit(X, Y)
    model.save(tmp_path / "m.cadlag")
    other = load(tmp_path / "m.cadlag")
    np.testing.assert_array_equal(model.predict(NEW), other.predict(NEW))
    whole = regressor(n_draws=14, n_jobs=2, **settings).fit(X, Y, checkpoint=tmp_path / "run.d")
    for twin in (model.extend(4), other.extend(4), pickle.loads(pickle.dumps(whole))):
        np.testing.assert_array_equal(twin.posterior_.positions, whole.posterior_.positions)
    resumed = regressor(n_draws=14, **settings).fit(X, Y, checkpoint=tmp_path / "run.d")
    np.testing.assert_array_equal(resumed.posterior_.positions, whole.posterior_.positions)


def test_no_warning_on_loading(tmp_path):
    with pytest.warns(UserWarning, match="linear combinations"):
        model = rounds(n_draws=5).fit(np.column_stack([X, X.sum(axis=1)]), Y)
    model.save(tmp_path / "m.cadlag")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        load(tmp_path / "m.cadlag")


def test_scaling_over_test_rows_is_saved(tmp_path):
    model = rounds(scale_over="train_and_test", n_draws=5).fit(X, Y, X_test=3.0 * NEW)
    model.save(tmp_path / "m.cadlag")
    np.testing.assert_array_equal(load(tmp_path / "m.cadlag").predict(NEW), model.predict(NEW))


def test_registry_and_clone(fitted):
    assert METHODS["bayes_gp"] is BayesGPRegressor
    assert clone(fitted).get_params() == fitted.get_params()
    promised = {"preset": "tgp_default", "include_beta_var": False, "scale_over": "train", "n_draws": 1000,
                "n_warmup": 1000, "n_chains": 4, "emulate_tgp_matern_bug": False}  # fmt: skip
    assert promised.items() <= BayesGPRegressor().get_params().items()


def test_too_large_a_fit_is_refused():
    with pytest.raises(MemoryError, match="An exact fit to 30 rows"):
        rounds(max_memory=1000.0).fit(X, Y)
