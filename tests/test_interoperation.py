"""Both families among other libraries: frames in and out, pipelines, searches, inspection, copies.

Where one family stands alone, `test_regressor` asks the same of the other.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cadlag import StableKernelRegressor, StableNetworkRegressor

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(11)
X = RNG.uniform(-2.0, 2.0, (40, 2))
Y = 10.0 + 4.0 * (X[:, 0] > 0.3) + 0.3 * RNG.standard_normal(40)
NAMES = ["age", "income"]
TINY = {"n_draws": 8, "n_warmup": 15, "n_chains": 1, "random_state": 3}
FAMILIES = {
    "kernel": StableKernelRegressor(**TINY),
    "network": StableNetworkRegressor(n_units=4, bulk=False, **TINY),
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


def table(frame):
    return FRAMES[frame](dict(zip(NAMES, X.T)))


@pytest.fixture(params=FAMILIES)
def model(request):
    return clone(FAMILIES[request.param])


@pytest.fixture(scope="module", params=FAMILIES)
def fitted(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(FAMILIES[request.param]).fit(table("pandas"), Y)


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_keep_their_names(frame):
    model, plain = clone(FAMILIES["network"]), clone(FAMILIES["network"]).fit(X, Y)
    model.fit(table(frame), FRAMES[frame]({"y": Y})["y"])
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.predict(table(frame)), plain.predict(X))
    np.testing.assert_array_equal(model.predict_interval(table(frame)), plain.predict_interval(X))
    assert list(model.feature_relevance(n_atoms=4)["input"]) == NAMES
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.predict(table(frame)[NAMES[::-1]])


@pytest.mark.parametrize("frame", FRAMES)
def test_results_become_frames(fitted, frame):
    results = [fitted.posterior_.summary(), fitted.feature_relevance(n_atoms=4)]
    if isinstance(fitted, StableNetworkRegressor):
        results.append(fitted.break_points())
    for result in results:
        found = getattr(result, f"to_{frame}")()
        assert isinstance(found, FRAMES[frame])
        assert list(found.columns) == list(result)
        for name in result:
            np.testing.assert_array_equal(found[name].to_numpy(), result[name])


@pytest.mark.parametrize("frame", FRAMES)
def test_names_go_through_a_pipeline(model, frame):
    pipeline = make_pipeline(StandardScaler(), model).set_output(transform=frame).fit(table(frame), Y)
    assert list(pipeline[-1].feature_names_in_) == NAMES
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="X does not have valid feature names")
        point, std = pipeline.predict(table(frame), return_std=True)
    assert point.shape == std.shape == (40,)
    scaled = pipeline[0].transform(table(frame))
    np.testing.assert_array_equal(point, clone(model).fit(scaled, Y).predict(scaled))


def test_categories_come_from_a_column_transformer(model):
    shops = pd.Series(["north", "south"] * 20)
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["shop"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(encoder, model).fit(table("pandas").assign(shop=shops), Y)
    assert list(pipeline[-1].feature_names_in_) == ["shop_north", "shop_south", *NAMES]
    assert list(pipeline[-1].feature_relevance(n_atoms=4)["input"]) == ["shop_north", "shop_south", *NAMES]


def test_searched_and_cross_validated():
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(FAMILIES["network"]))
    setting = "stablenetworkregressor__alpha"
    search = GridSearchCV(pipeline, {setting: [1.0, 2.0]}, cv=2, error_score="raise").fit(table("pandas"), Y)
    assert search.best_params_[setting] == search.best_estimator_[-1].alpha
    assert list(search.best_estimator_[-1].feature_names_in_) == NAMES
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0.0
    assert cross_val_score(pipeline, table("pandas"), Y, cv=2, error_score="raise").min() > 0.3


def test_inspected(fitted):
    importance = permutation_importance(fitted, table("pandas"), Y, n_repeats=2, random_state=0).importances_mean
    assert importance[0] > 0.5 > 0.2 > abs(importance[1])
    profile = partial_dependence(fitted, table("pandas"), ["age"], grid_resolution=4)["average"][0]
    assert profile[-1] - profile[0] > 2.0


def test_copied(fitted):
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict(table("pandas")), fitted.predict(table("pandas")))
    assert list(twin.feature_names_in_) == NAMES
    np.testing.assert_array_equal(twin.extend(3).posterior_.positions[:, :8], fitted.posterior_.positions)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(table("pandas"))
    np.testing.assert_array_equal(fresh.fit(table("pandas"), Y).posterior_.positions, fitted.posterior_.positions)
