"""What is not a regression problem is refused in one sentence that says where; what is one, however odd, is solved."""

import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cadlag import StableKernelRegressor
from cadlag.kernel_process.model import KernelProcess

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

N = 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2))
Y = np.sign(X[:, 0]) + 0.1 * RNG.standard_normal(N)
LETTERS = list("abc" * 4)
DAYS = np.datetime64("2020-01-01") + np.arange(N)


def regressor(**settings):
    return StableKernelRegressor(**{"n_draws": 10, "n_warmup": 20, "n_chains": 1, "random_state": 0, **settings})


def put(array, place, value):
    changed = np.array(array)
    changed[place] = value
    return changed


def mixed(cell):
    return put(X.astype(object), (2, 1), cell)


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(X, Y)


def learned(model):
    return sorted(name for name in vars(model) if name.endswith("_"))


def refuse(model, X, y, error, *words):
    """fit raises, says all the words, and leaves the model as it was."""
    before = dict(vars(model))
    with pytest.raises(error) as caught:
        model.fit(X, y)
    for word in words:
        assert word in str(caught.value)
    assert vars(model) == before
    return str(caught.value)


def one_sentence(message):
    return "\n" not in message and len(message) < 200 and not re.search(r"[.!?]\s+[A-Z]", message)


# Refused by fit ------------------------------------------------------------------------------------------------------

OURS = {
    "NaN": (put(X, (3, 1), np.nan), Y, "X holds NaN at row 3, column 1"),
    "infinity": (put(X, (4, 0), np.inf), Y, "X holds inf at row 4, column 0"),
    "negative infinity": (put(X, (4, 0), -np.inf), Y, "X holds -inf at row 4, column 0"),
    "NaN in a frame": (pd.DataFrame(put(X, (3, 1), np.nan), columns=["a", "b"]), Y, "X holds NaN at row 3, column 'b'"),
    "missing integer": (
        pd.DataFrame({"a": X[:, 0], "b": pd.array([None] + [1] * (N - 1), dtype="Int64")}), Y,
        "X holds NaN at row 0, column 'b'",
    ),
    "null in polars": (pl.DataFrame({"a": X[:, 0], "b": [1.0, None] + [1.0] * (N - 2)}), Y, "row 1, column 'b'"),
    "NaN in y": (X, put(Y, 5, np.nan), "y holds NaN at row 5"),
    "infinity in y": (X, put(Y, 6, -np.inf), "y holds -inf at row 6"),
    "NaN in a list": (X, [*Y[:-1], float("nan")], "y holds NaN at row 11"),
    "a word among numbers": (mixed("red"), Y, "X holds 'red' at row 2, column 1"),
    "a number as text": (X.astype(str), Y, "at row 0, column 0"),
    "text column": (pd.DataFrame({"a": X[:, 0], "b": LETTERS}), Y, "X holds 'a' at row 0, column 'b'"),
    "category": (pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(LETTERS)}), Y, "X holds 'a' at row 0, column 'b'"),
    "text in polars": (pl.DataFrame({"a": X[:, 0], "b": LETTERS}), Y, "X holds 'a' at row 0, column 'b'"),
    "dates": (DAYS[:, None], Y, "X holds '2020-01-01' at row 0, column 0"),
    "dates in a frame": (pd.DataFrame({"a": X[:, 0], "b": DAYS}), Y, "at row 0, column 'b'"),
    "dates in polars": (pl.DataFrame({"a": X[:, 0], "b": DAYS}), Y, "at row 0, column 'b'"),
    "durations": ((DAYS - DAYS[0])[:, None], Y, "at row 0, column 0"),
    "text in y": (X, LETTERS, "y holds 'a' at row 0"),
    "dates in y": (X, DAYS, "y holds '2020-01-01' at row 0"),
    "huge X": (put(X, (7, 1), -1e200), Y, "X holds -1e+200 at row 7, column 1"),
    "huge X in a frame": (pd.DataFrame(put(X, (7, 1), 1e151), columns=["a", "b"]), Y, "at row 7, column 'b'"),
    "huge y": (X, put(Y, 8, 1e200), "y holds 1e+200 at row 8"),
    "masked": (np.ma.array(X, mask=put(np.zeros(X.shape, bool), (3, 1), True)), Y, "X is masked at row 3, column 1"),
    "masked y": (X, np.ma.array(Y, mask=np.arange(N) == 4), "y is masked at row 4"),
    "None in y": (X, [*Y[:-1], None], "y holds NaN at row 11"),
    "tiny y": (X, 1e-200 * Y, "y has a standard deviation of"),
}  # fmt: skip

# Where scikit-learn prescribes the message, its words are kept.
THEIRS = {
    "wrong length": (X, Y[:5], ValueError, "inconsistent numbers of samples: [12, 5]"),
    "no rows": (X[:0], Y[:0], ValueError, "0 sample(s)"),
    "no columns": (X[:, :0], Y, ValueError, "0 feature(s)"),
    "one dimension": (X[:, 0], Y, ValueError, "Expected 2D array, got 1D array"),
    "three dimensions": (X[None], Y, ValueError, "Found array with dim 3"),
    "two responses": (X, np.column_stack([Y, Y]), ValueError, "y should be a 1d array"),
    "no response": (X, None, ValueError, "y"),
    "complex": (X + 1j, Y, ValueError, "Complex data not supported"),
    "complex y": (X, Y + 1j, ValueError, "Complex data not supported"),
    "sparse": (csr_array(X), Y, TypeError, "Sparse data was passed"),
    "a dict in a cell": (mixed({"a": 1}), Y, TypeError, "argument must be a string or a real number"),
    "ragged": ([[1.0, 2.0], [3.0]], Y[:2], ValueError, "inhomogeneous"),
}


@pytest.mark.parametrize("case", OURS)
def test_refused_with_its_place(case):
    inputs, responses, words = OURS[case]
    message = refuse(regressor(), inputs, responses, ValueError, words)
    assert one_sentence(message)


@pytest.mark.parametrize("case", THEIRS)
def test_refused_in_the_words_of_scikit_learn(case):
    inputs, responses, error, words = THEIRS[case]
    refuse(regressor(), inputs, responses, error, words)


@pytest.mark.parametrize("case", ["NaN", "NaN in a frame", "text in polars", "huge X", "huge y", "tiny y"])
def test_failed_fit_leaves_a_fitted_model_as_it_was(fitted, case):
    inputs, responses, words = OURS[case]
    before = fitted.predict(X)
    refuse(fitted, inputs, responses, ValueError, words)
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_failed_fit_leaves_a_new_model_unfitted():
    model = regressor(noise_variance=[1.0, 2.0])
    refuse(model, X, Y, ValueError, "noise_variance must be one number or one for each of the 12 rows, got (2,)")
    assert learned(model) == []
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_failure_of_the_sampler_is_about_the_data(monkeypatch):
    """A likelihood that no prior draw makes finite."""
    monkeypatch.setattr(KernelProcess, "log_likelihood", lambda *_: -math.inf)
    model = regressor()
    message = refuse(model, X, Y, ValueError, "these data cannot be fitted as they are", "standardize")
    assert one_sentence(message)
    assert learned(model) == []


# Settings ------------------------------------------------------------------------------------------------------------

SETTINGS = {
    "alpha": [0.0, -1.0, 2.1, np.nan, np.inf, "big", None, True, 1j, np.array([1.0, 1.5]), "sample"],
    "order": [-1, 1.0, True, None, "1"],
    "depth": [0, -2, 1.5, False],
    "n_draws": [0, 10.0, True],
    "n_warmup": [-1, 2.5],
    "n_chains": [0, 1.0],
    "n_atoms": [0, None],
    "preset": ["lemma", None, 1],
    "noise_prior_on": ["precision"],
    "sampler": ["gibbs", None],
    "point": ["mode", None],
    "noise_variance": [-1.0, 0.0, np.nan, np.inf, "big", [1.0, -1.0], 1j, np.full((N, 2), 1.0), np.ones(N + 1), []],
    "random_state": [-1, "seed"],
}


@pytest.mark.parametrize(
    ("name", "value"), [pytest.param(k, v, id=f"{k}={v!r:.20}") for k, values in SETTINGS.items() for v in values]
)
def test_setting_is_refused(name, value):
    model = regressor(**{name: value})
    message = refuse(model, X, Y, ValueError, name)
    assert one_sentence(message)
    assert learned(model) == []


def test_alpha_sample_is_reserved():
    refuse(regressor(alpha="sample"), X, Y, ValueError, 'alpha="sample" is reserved for a later version')


@pytest.mark.parametrize(("noise_variance", "unit"), [(1e-30, 1e149), (1e300, 1e-20)])
def test_noise_out_of_proportion(noise_variance, unit):
    words = "noise_variance is out of all proportion to y"
    refuse(regressor(noise_variance=noise_variance), X, unit * Y, ValueError, words)


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_numpy_integers_are_integers(integer, tmp_path):
    settings = {"n_draws": integer(5), "n_warmup": integer(4), "n_chains": integer(1), "order": integer(1)}
    model = regressor(depth=integer(1), alpha=np.float32(1.0), **settings).fit(X, Y, checkpoint=tmp_path / "run.d")
    plain = regressor(n_draws=5, n_warmup=4).fit(X, Y)
    model.save(tmp_path / "model.cadlag")
    np.testing.assert_array_equal(model.extend(integer(3)).predict(X), plain.extend(3).predict(X))


# Questions to a fitted model -----------------------------------------------------------------------------------------

QUESTIONS = {
    "kind": (lambda m: m.predict(X, kind="mean"), "kind must be"),
    "kind of quantiles": (lambda m: m.predict_quantiles(X, kind="f"), "kind must be"),
    "kind of interval": (lambda m: m.predict_interval(X, kind="f"), "kind must be"),
    "kind of distribution": (lambda m: m.predict_distribution(X, kind="f"), "kind must be"),
    "kind of draws": (lambda m: m.sample_y(X, kind="f"), "kind must be"),
    "kind of prior draws": (lambda m: m.sample_prior(X, kind="f"), "kind must be"),
    "std and cov": (lambda m: m.predict(X, return_std=True, return_cov=True), "return_std and return_cov"),
    "quantile": (lambda m: m.predict_quantiles(X, [0.5, 1.5]), "quantiles must be probabilities"),
    "quantile that is NaN": (lambda m: m.predict_quantiles(X, np.nan), "quantiles must be probabilities"),
    "no coverage": (lambda m: m.predict_interval(X, coverage=0.0), "coverage must lie strictly between 0 and 1"),
    "all coverage": (lambda m: m.predict_interval(X, coverage=1.0), "coverage must lie strictly between 0 and 1"),
    "no samples": (lambda m: m.sample_y(X, n_samples=0), "n_samples must be an integer"),
    "half a sample": (lambda m: m.sample_y(X, n_samples=0.5), "n_samples must be an integer"),
    "extension": (lambda m: m.extend(0), "n_draws must be an integer"),
    "layer": (lambda m: m.sample_kernels(2), "layer must be an integer between 0 and depth = 1"),
    "half a layer": (lambda m: m.sample_kernels(0.5), "layer must be an integer"),
    "no kernels": (lambda m: m.sample_kernels(n_draws=0), "n_draws must be an integer"),
    "output layer": (lambda m: m.sample_features(2), "for the output use sample_y"),
    "input layer": (lambda m: m.sample_features(0), "hidden layers run from 1 to depth = 1"),
    "NaN": (lambda m: m.predict(put(X, (1, 0), np.nan)), "X holds NaN at row 1, column 0"),
    "infinity": (lambda m: m.sample_y(put(X, (1, 0), np.inf)), "X holds inf at row 1, column 0"),
    "text": (lambda m: m.predict(mixed("red")), "X holds 'red' at row 2, column 1"),
    "huge": (lambda m: m.predict(put(X, (1, 0), 1e200)), "X holds 1e+200 at row 1, column 0"),
    "too few columns": (lambda m: m.predict(X[:, :1]), "X has 1 features, but StableKernelRegressor is expecting 2"),
    "pairs": (lambda m: m.conditional_mutual_information(X, X[1:]), "X1 and X2 must have the same shape"),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_question_is_refused(fitted, case):
    ask, words = QUESTIONS[case]
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        ask(fitted)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.predict(X), lambda m: m.predict_quantiles(X), lambda m: m.predict_interval(X),
        lambda m: m.predict_distribution(X), lambda m: m.sample_y(X), lambda m: m.extend(1), lambda m: m.save("x"),
        lambda m: m.feature_relevance(), lambda m: m.sample_kernels(), lambda m: m.sample_features(),
    ],
)  # fmt: skip
def test_questions_before_fit(ask):
    with pytest.raises(NotFittedError):
        ask(regressor())


@pytest.mark.parametrize("method", ["sample_prior", "conditional_mutual_information"])
def test_prior_tools_are_strict(method):
    model = regressor()
    ask = (lambda x: model.sample_prior(x)) if method == "sample_prior" else (lambda x: getattr(model, method)(x, x))
    for bad in (X[:, 0], put(X, (0, 0), np.nan), X[None], X[:0]):
        with pytest.raises(ValueError, match=r"array|NaN"):
            ask(bad)


def test_columns_of_a_frame_are_checked():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = regressor().fit(frame, Y)
    for other in (frame[["b", "a"]], frame[["a"]], frame.rename(columns={"a": "c"}), frame.assign(c=1.0)):
        for wrong in (other, pl.DataFrame(other.to_dict("list"))):
            with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
                model.predict(wrong)


def test_overflow_is_refused_with_its_row():
    """x²⁷ is what this prior extrapolates to."""
    model = regressor(order=3, depth=3, alpha=2.0, noise_variance=0.1, n_draws=2, n_warmup=0).fit(X, Y)
    far = put(X, (9, 0), 1e100)
    for ask in (model.predict, model.sample_y, lambda x: model.predict(x, return_cov=True)):
        with pytest.raises(ValueError, match="the prediction at row 9 of X overflows"):
            ask(far)


# Odd, and solved -----------------------------------------------------------------------------------------------------

TO_LIMIT = 1e150 / np.abs(X).max(), 1e150 / np.abs(Y).max()
SOLVED = {
    "one row": (X[:1], Y[:1], {}),
    "two rows": (X[:2], Y[:2], {}),
    "one row, no unknowns": (X[:1], Y[:1], {"alpha": 2.0, "noise_variance": 0.5}),
    "one row, learned noise": (X[:1], Y[:1], {"alpha": 2.0}),
    "more columns than rows": (np.hstack([X[:3], X[3:6], X[6:9]]), Y[:3], {}),
    "constant column": (put(X, (slice(None), 1), 3.0), Y, {}),
    "constant huge column": (put(X, (slice(None), 1), -1e150), Y, {}),
    "only constants": (np.ones((N, 2)), Y, {}),
    "only constants, no intercept": (np.zeros((N, 1)), Y, {"fit_intercept": False}),
    "constant y": (X, np.full(N, 7.0), {}),
    "constant huge y": (X, np.full(N, 7e149), {}),
    "y is zero, raw": (X, np.zeros(N), {"standardize": False}),
    "duplicates": (np.vstack([X, X]), np.tile(Y, 2), {}),
    "conflicting duplicates": (np.vstack([X, X]), np.concatenate([Y, -Y]), {}),
    "conflicting duplicates, steps": (np.vstack([X, X]), np.concatenate([Y, -Y]), {"order": 0}),
    "conflicting duplicates, known noise": (np.vstack([X, X]), np.concatenate([Y, -Y]), {"noise_variance": 0.1}),
    "large X": (TO_LIMIT[0] * X, Y, {}),
    "large y": (X, TO_LIMIT[1] * Y, {}),
    "large X and y": (TO_LIMIT[0] * X, TO_LIMIT[1] * Y, {}),
    "small X": (1e-150 * X, Y, {}),
    "small y": (X, 1e-150 * Y, {}),
    "small X and y": (1e-150 * X, 1e-150 * Y, {}),
    "small against large columns": (X * np.array([1e-150, TO_LIMIT[0]]), Y, {}),
    "large X, raw": (TO_LIMIT[0] * X, Y, {"standardize": False}),
    "small X, raw": (1e-150 * X, Y, {"standardize": False}),
    "small y, raw": (X, 1e-150 * Y, {"standardize": False}),
    "lists": (X.tolist(), Y.tolist(), {}),
    "objects": (X.astype(object), Y.astype(object), {}),
    "booleans": (X > 0, Y > 0, {}),
}


@pytest.mark.parametrize("case", SOLVED)
def test_solved(case):
    inputs, responses, settings = SOLVED[case]
    model = regressor(**settings).fit(inputs, responses)
    point, std = model.predict(inputs, return_std=True)
    assert point.shape == (len(responses),)
    assert np.isfinite(point).all()
    assert np.isfinite(std).all()
    assert (std > 0.0).all()
    size = np.abs(np.asarray(responses, dtype=float)).max()
    assert np.abs(point).max() <= 10.0 * max(size, 1e-150)
    assert np.isfinite(model.predict_interval(inputs)).all()
    assert np.isfinite(model.sample_y(inputs, 3)).all()


def test_constant_columns_are_named():
    frame = pd.DataFrame({"depth": X[:, 0], "site": 3.0, "year": 1.0})
    with pytest.warns(UserWarning, match="same value in every row of column 'site', 'year'"):
        regressor().fit(frame, Y)
    with pytest.warns(UserWarning, match="of column 1: it is kept"):
        regressor().fit(put(X, (slice(None), 1), 3.0), Y)


def test_constant_response_is_predicted():
    """At the training rows and far away."""
    model = regressor().fit(X, np.full(N, 7.0))
    point, std = model.predict(np.vstack([X, 3.0 * X]), return_std=True)
    np.testing.assert_allclose(point, 7.0, atol=1e-6)
    assert np.all(std[:N] < 0.1)


def test_conflicting_duplicates_are_averaged():
    """Two rows at one place weigh as much as their mean with half the noise."""
    settings = {"alpha": 2.0, "standardize": False}
    twice, apart = np.repeat(X, 2, axis=0), np.repeat(Y, 2) + np.tile([1.0, -1.0], N)
    model = regressor(noise_variance=0.01, **settings).fit(twice, apart)
    mean = regressor(noise_variance=0.005, **settings).fit(X, Y)
    np.testing.assert_allclose(model.predict(3.0 * X), mean.predict(3.0 * X), atol=1e-10)


def test_duplicates_that_agree_are_interpolated():
    model = regressor(n_warmup=60).fit(np.vstack([X, X, X]), np.tile(Y, 3))
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-3)


def test_response_as_a_column_warns():
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        model = regressor().fit(X, Y[:, None])
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))


def test_far_inputs_are_answered(fitted):
    """A ReLU prior extrapolates in proportion, up to the largest inputs allowed."""
    far = fitted.predict(TO_LIMIT[0] * X)
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far, 1e10 * fitted.predict(1e-10 * TO_LIMIT[0] * X), rtol=1e-6)
