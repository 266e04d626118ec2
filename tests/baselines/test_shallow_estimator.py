"""The shallow stable network's scikit-learn face."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import ShallowStableRegressor, load
from cadlag.methods import METHODS

pytestmark = [
    pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the cells of:UserWarning"),
]

RNG = np.random.default_rng(0)
LINE = RNG.uniform(-3.0, 3.0, (30, 1))
STEP = 20.0 + 5.0 * (LINE[:, 0] > 0.4) + 0.5 * RNG.standard_normal(30)
PLANE = RNG.uniform(-1.0, 1.0, (20, 2))
HEIGHT = 4.0 * (PLANE[:, 0] + PLANE[:, 1] > 0.2) + 0.2 * RNG.standard_normal(20)


def regressor(**settings):
    return ShallowStableRegressor(
        **{"n_draws": 40, "n_warmup": 60, "n_chains": 2, "random_state": 3, **settings}
    )  # fmt: skip


@pytest.fixture(scope="module")
def line():
    return regressor(n_draws=200).fit(LINE, STEP)


@pytest.fixture(scope="module")
def plane():
    return regressor().fit(pd.DataFrame(PLANE, columns=["a", "b"]), HEIGHT)


@parametrize_with_checks([ShallowStableRegressor(n_draws=4, n_warmup=4, n_chains=1)])
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)


def test_the_step_is_found(line):
    assert METHODS["shallow_stable"] is ShallowStableRegressor
    low, high = line.predict([[-1.0], [2.0]])
    assert low == pytest.approx(20.0, abs=0.7)
    assert high == pytest.approx(25.0, abs=0.7)
    wide, narrow = line.predict([[0.4], [2.0]], return_std=True)[1]
    assert wide > narrow
    assert np.median(line.posterior_["noise_variance"]) == pytest.approx(0.25, abs=0.2)
    assert {"noise_variance", "function[row 0]", "log_likelihood"} <= set(line.posterior_.scalars())
    assert line.posterior_.positions.shape == (2, 200, 31)
    assert line.diagnostics_["worst_rhat"] < 1.1


def test_a_row_is_predicted_alike_in_any_company(line, plane):
    for model, rows in ((line, LINE + 0.03), (plane, pd.DataFrame(PLANE + 0.03, columns=["a", "b"]))):
        whole = model.predict_quantiles(rows)
        np.testing.assert_allclose(whole[5:8], model.predict_quantiles(rows[5:8]), rtol=1e-9)
        np.testing.assert_allclose(whole[7:4:-1], model.predict_quantiles(rows[5:8][::-1]), rtol=1e-9)


def test_joint_laws(plane):
    rows = pd.DataFrame(PLANE[:6] + 0.05, columns=["a", "b"])
    _, std = plane.predict(rows, return_std=True)
    _, covariance = plane.predict(rows, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=0.25)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    draws = plane.sample_y(rows, 400, random_state=1)
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.3)
    again = plane.predict(rows, return_cov=True)[1]
    np.testing.assert_array_equal(covariance, again)


def test_training_rows_are_alike_alone_and_together(line):
    """They cut no cells, so that nothing is drawn."""
    _, std = line.predict(LINE[:5], return_std=True)
    _, covariance = line.predict(LINE[:5], return_cov=True)
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-8)


@pytest.mark.parametrize("setting", [{}, {"sampler": "independence", "noise_prior": "code"}, {"noise_variance": 0.3},
                                     {"alpha": 2.0, "noise_variance": np.full(20, 0.1)}, {"alpha": 1.4}])  # fmt: skip
def test_saved_and_loaded(tmp_path, setting):
    model = regressor(n_draws=8, n_warmup=10, **setting).fit(PLANE, HEIGHT)
    model.save(tmp_path / "m.cadlag")
    for other in (load(tmp_path / "m.cadlag"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(model.predict(PLANE + 0.1), other.predict(PLANE + 0.1))
        if model.model_.dimension:
            model_positions = clone(model).set_params(n_draws=12).fit(PLANE, HEIGHT).posterior_.positions
            np.testing.assert_array_equal(other.extend(4).posterior_.positions, model_positions)


def test_draws_do_not_depend_on_workers_or_checkpoints(tmp_path):
    one = regressor(n_draws=12, n_warmup=10).fit(PLANE, HEIGHT)
    two = regressor(n_draws=12, n_warmup=10, n_jobs=2).fit(PLANE, HEIGHT, checkpoint=tmp_path / "run.d")
    np.testing.assert_array_equal(one.posterior_.positions, two.posterior_.positions)


def test_more_than_two_inputs_are_warned_of():
    X = RNG.normal(size=(12, 3))
    with pytest.warns(UserWarning, match="StableNetworkRegressor fits the same prior in any dimension"):
        model = regressor(n_draws=5, n_warmup=5).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X + 0.1, return_cov=True)[1]).all()


def test_relevance(plane):
    """Both inputs matter, by about as much."""
    table = plane.feature_relevance(n_atoms=10)
    assert list(table["input"]) == ["a", "b"]
    assert min(table["relevance"]) > 0.2


def test_published_probabilities_change_the_model():
    plain, published = (regressor(n_draws=4, n_warmup=4, emulate_published=e).fit(LINE, STEP) for e in (False, True))
    assert plain.model_.cells.probabilities.sum() == pytest.approx(1.0)
    assert published.model_.cells.probabilities.sum() > 1.2
    assert np.isfinite(published.predict(LINE + 0.1, return_cov=True)[1]).all()


def test_known_noise_of_each_row():
    model = regressor(noise_variance=np.linspace(0.1, 1.0, 30), n_draws=20).fit(LINE, STEP)
    assert "noise_variance" not in model.posterior_.draws
    assert len(model.posterior_.pointwise(model.posterior_.positions)[0, 0]) == 30


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"nu": 0.0}, "nu must be a positive number"),
        ({"alpha": 2.5}, r"alpha must be a number in \(0, 2\]"),
        ({"sampler": "nuts"}, "sampler must be one of gibbs, independence"),
        ({"noise_prior": "cauchy"}, "noise_prior must be one of half_cauchy, code"),
        ({"emulate_published": "yes"}, "emulate_published must be True or False"),
        ({"noise_variance": 1e-14}, "noise_variance is smaller than 1e-10 of the variance of y"),
        ({"max_memory": 1000.0}, None),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(MemoryError if message is None else ValueError, match=message or "use fewer rows or draws"):
        regressor(**setting).fit(LINE, STEP)


def test_large_joint_laws_are_refused(plane):
    small = clone(plane).set_params(max_memory=5e6, n_draws=5, n_warmup=5).fit(PLANE, HEIGHT)
    with pytest.raises(MemoryError, match="ask for fewer rows at a time"):
        small.sample_y(RNG.normal(size=(250, 2)))


@pytest.mark.parametrize("y", [np.zeros(30), np.full(30, 7.0), 1e-100 * STEP, 1e100 * STEP])
def test_odd_responses(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = regressor(n_draws=20, n_warmup=30).fit(LINE, y)
        point, std = model.predict(LINE + 0.1, return_std=True)
    assert np.isfinite(point).all()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_responses_out_of_proportion_to_the_prior(scale):
    model = regressor(standardize=False, n_draws=20, n_warmup=30).fit(LINE, scale * STEP)
    assert np.isfinite(model.posterior_.stats["log_target"]).all()
    assert np.isfinite(model.predict(LINE + 0.1)).all()


def test_duplicate_rows_and_exact_responses():
    X = np.repeat(LINE[:10], 3, axis=0)
    y = np.repeat((LINE[:10, 0] > 0.0).astype(float), 3)
    model = regressor(n_draws=50, n_warmup=100).fit(X, y)
    assert len(model.model_.cells.probabilities) == 10
    np.testing.assert_allclose(model.predict(X), y, atol=0.15)
