"""Methods on the same folds: who is fitted to what, how rivals come by their spread, and the table by hand."""

import numpy as np
import pytest

from cadlag import compare as comparison
from cadlag.compare import RIVALS, SCORES, Fold, compare, summarise
from cadlag.predictive import Predictive


@pytest.fixture
def seen(monkeypatch):
    """Two rivals that write down what they are given: rows are known by their only input."""
    given = {"one": [], "two": []}

    def maker(name):
        def fit(X, y, seed):
            np.testing.assert_array_equal(y, 10.0 * X[:, 0])

            def law(new):
                given[name].append((set(X[:, 0]), set(new[:, 0])))
                return Predictive(np.zeros((1, len(new))), np.ones((1, len(new))))

            return law

        return fit

    for name in given:
        monkeypatch.setitem(RIVALS, name, maker(name))
    return given


def test_no_method_sees_the_rows_that_it_is_scored_on(seen):
    rows = np.arange(11.0)
    folds = list(compare(rows[:, None], 10.0 * rows, ["one", "two"], n_folds=3, n_repeats=2, seed=4))
    assert [fold.fold for fold in folds] == [k for k in range(6) for _ in range(2)]
    assert seen["one"] == seen["two"]
    for fitted, asked in seen["one"]:
        assert fitted | asked == set(rows)
        assert not fitted & asked
    for repetition in (seen["one"][:3], seen["one"][3:]):
        assert sorted(row for _, asked in repetition for row in asked) == list(rows)
    assert seen["one"][:3] != seen["one"][3:]


def test_scores_are_those_of_the_rows_left_out(seen):
    """Responses 0 to 100 about laws N(0, 1): errors are the responses themselves."""
    rows = np.arange(11.0)
    folds = list(compare(rows[:, None], 10.0 * rows, ["one"], n_folds=11))
    found = sorted(fold.scores["rmse"] for fold in folds)
    np.testing.assert_allclose(found, 10.0 * rows, atol=1e-12)


@pytest.mark.parametrize("name", ["sklearn_gp", "random_forest", "boosting"])
def test_spread_of_a_rival_is_that_of_rows_it_has_not_seen(name):
    """Nothing but noise, which a forest and boosting fit all the same: what they leave of it is no measure of it."""
    rng = np.random.default_rng(0)
    X, y, new = rng.uniform(size=(150, 2)), 3.0 * rng.standard_normal(150), rng.uniform(size=(400, 2))
    law, fresh = RIVALS[name](X, y, 0)(new), 3.0 * rng.standard_normal(400)
    low, high = law.interval(0.9).T
    assert np.mean((fresh >= low) & (fresh <= high)) == pytest.approx(0.9, abs=0.06)
    assert np.median(law.std) == pytest.approx(3.0, rel=0.2)


def test_summary_by_hand():
    """Mean and standard deviation with n - 1; the smallest CRPS first, whatever its place; failures do not count."""
    values = {"worse": [1.0, 2.0, 6.0], "better": [2.0, 3.0]}
    folds = [Fold(name, k, dict.fromkeys(SCORES, v)) for name, series in values.items() for k, v in enumerate(series)]
    folds += [Fold("failed", 0, {}, "no"), Fold("single", 0, dict.fromkeys(SCORES, 9.0))]
    rows = summarise(folds)
    assert [(row["method"], row["folds"]) for row in rows] == [("better", 2), ("worse", 3), ("single", 1)]
    for key in SCORES:
        assert [row[key] for row in rows] == pytest.approx([2.5, 3.0, 9.0])
        assert [row[f"{key}_sd"] for row in rows] == pytest.approx([np.sqrt(0.5), np.sqrt(7.0), 0.0])


def test_settings_go_to_the_methods_that_have_them(monkeypatch):
    made = []

    class Method:
        def get_params(self):
            return {"n_draws": 1, "random_state": None}

        def set_params(self, **settings):
            made.append(settings)

        def fit(self, X, y):
            return self

        predict_distribution = None

    monkeypatch.setitem(comparison.METHODS, "stub", Method)
    comparison.fit_law("stub", np.zeros((2, 1)), np.zeros(2), 7, {"n_draws": 30, "n_units": 5})
    assert made == [{"n_draws": 30, "random_state": 7}]
