"""What a setting may be is said once; any other value is one sentence, at once, wherever it comes from."""

import inspect
import math
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from cadlag import NNGPRegressor
from cadlag.app.cli import app
from cadlag.app.common import Run, parse_settings
from cadlag.methods import METHODS, load
from cadlag.partial_dependence import partial_dependence
from cadlag.settings import MOST_SHOWN, Number, Positives, Stability, Whole, shown
from cadlag.storage import read_tree, write_tree

ROWS = [(method, name) for method, kind in METHODS.items() for name in kind._settings]
X = np.linspace(0.0, 1.0, 6)[:, None]
Y = np.sin(3.0 * X[:, 0])


class Strange:
    """Neither a number nor a word, and longer than a line."""

    def __repr__(self):
        return "strange\n" * 1000


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


# No setting of any method can be one of these.
NEVER = {
    "word": "abc", "empty word": "", "long word": "a" * 10**6, "empty list": [], "list of words": ["a"],
    "ragged list": [[1.0], [2.0, 3.0]], "deep list": deep(500), "long list": [-1.0] * 10**6, "dict": {"a": 1},
    "object": Strange(), "NaN": math.nan, "minus infinity": -math.inf, "complex": 1j, "bytes": b"1",
    "huge integer": 10**400, "integer that cannot be written": -(10**5000), "list of such": [10**5000],
    "matrix": np.ones((2, 2)), "array of NaN": np.array([1.0, np.nan]), "array of words": np.array(["a", "b"]),
    "class of objects": np.array([Strange()]), "not a time": np.datetime64("NaT"),
}  # fmt: skip
# These may be right for some.
SOMETIMES = [
    None, True, False, np.True_, 0, 1, -1, 7, 10**9, 10**12, -(10**12), 2**200, 0.0, 0.5, 1.0, -0.5, 1e300, 5e-324,
    math.inf, "auto", "inputs", "sample", [1.0], [0.0], (1.0, 2.0), np.ones(3), np.int64(3), np.uint8(0),
    np.float32(0.5), np.float64(math.nan), np.array(1.0), print,
]  # fmt: skip


def sentence(error):
    """The message, if it is one short sentence."""
    said = str(error)
    assert "\n" not in said
    assert len(said) < 300
    assert not re.search(r"[.!?]\s+[A-Z]", said.replace("...", ""))
    return said


def refusal(ask, name):
    """What is said within a second, which names the setting."""
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"\b{name}\b") as caught:
        ask()
    assert time.process_time() - start < 1.0
    assert caught.type is ValueError
    return sentence(caught.value)


# The tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_has_a_row_and_every_row_a_parameter(method):
    signature = inspect.signature(METHODS[method].__init__).parameters
    assert set(METHODS[method]._settings) == set(signature) - {"self"}


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_is_documented_in_its_order(method):
    """Also where a dataclass writes the constructor, which pydoclint does not read."""
    section = inspect.getdoc(METHODS[method]).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\w+$", section, re.M) == list(inspect.signature(METHODS[method]).parameters)


@pytest.mark.parametrize("method", METHODS)
def test_every_default_passes(method):
    METHODS[method]()._check_settings()


@pytest.mark.parametrize(("method", "name"), ROWS)
def test_fit_refuses_what_no_setting_can_be(method, name):
    """Before it looks at the data, which there are none of."""
    for value in NEVER.values():
        model = METHODS[method](**{name: value})
        said = refusal(lambda model=model: model.fit(None, None), name)
        assert said.startswith(f"{name} must be ")
        assert "got " in said


@pytest.mark.parametrize(("method", "name"), ROWS)
def test_fit_refuses_what_the_row_refuses_and_no_more(method, name):
    row = METHODS[method]._settings[name]
    for value in SOMETIMES:
        model = METHODS[method](**{name: value})
        if row.complaint(name, value):
            assert refusal(lambda model=model: model.fit(None, None), name) == row.complaint(name, value)
        else:
            model._check_settings()


@pytest.mark.parametrize(("method", "name"), [row for row in ROWS if row[1] != "max_memory"])  # the reader's own
def test_a_file_is_refused_before_anything_is_made_of_it(method, name, tmp_path):
    """Of the file there is nothing but the setting."""
    path = tmp_path / "bad.cadlag"
    for value in ("abc", [], {"a": 1}, math.nan, 10**400, -(10**30), np.ones((2, 2))):
        write_tree(path, {"method": method, "settings": {name: value}}, "model")
        said = refusal(lambda: load(path), name)
        assert f"bad.cadlag is not a complete model file: {name} must be" in said


# The kinds -----------------------------------------------------------------------------------------------------------

REFUSED = [
    ("kernel", "n_jobs", "abc", "None or an integer from 1 to 10,000, or a negative one as in joblib, got 'abc'"),
    ("kernel", "n_jobs", 0, "got 0"),
    ("kernel", "fit_intercept", None, "True or False, got None"),
    ("kernel", "fit_intercept", 1, "True or False, got 1"),
    ("kernel", "standardize", 1, 'True, False or "inputs", got 1'),
    ("kernel", "alpha", math.inf, "a number in (0, 2], got inf"),
    ("kernel", "alpha", 1e-300, "2 or a number from 1e-06 to 2 - 1e-06, got 1e-300"),
    ("kernel", "alpha", np.float32(1e-6), "2 or a number from 1e-06 to 2 - 1e-06, got "),
    ("kernel", "alpha", math.nextafter(2.0, 0.0), "2 or a number from 1e-06 to 2 - 1e-06, got 1.99999"),
    ("kernel", "n_draws", 1e300, "an integer of at least 1, got 1e+300"),
    ("kernel", "n_draws", 10**9 + 1, "an integer of at most 1,000,000,000, got 1000000001"),
    ("kernel", "n_chains", 10**12, "an integer of at most 10,000, got 1000000000000"),
    ("kernel", "depth", 10**9, "an integer of at most 1,000, got 1000000000"),
    ("kernel", "order", 101, "an integer of at most 100, got 101"),
    ("kernel", "n_groups", 10**9, "an integer of at most 100, got 1000000000"),
    ("kernel", "max_memory", "abc", "a positive number of bytes, or None for half of the machine's, got 'abc'"),
    ("kernel", "max_memory", 0, "got 0"),
    ("kernel", "max_memory", math.nan, "got nan"),
    ("kernel", "progress", "abc", "True, False, None or a callable, got 'abc'"),
    ("kernel", "random_state", -1, "None, an integer from 0 to 2**128 - 1 or a numpy generator, got -1"),
    ("kernel", "random_state", True, "got True"),
    ("kernel", "random_state", 10**5000, "got an integer of about 5,000 digits"),
    ("kernel", "noise_variance", [], "a positive number, a list of one for each row, or None to learn it, got []"),
    ("kernel", "noise_variance", [1.0, 0.0], "got [1.0, 0.0]"),
    ("network", "n_units", 10**9, "an integer of at most 10,000, got 1000000000"),
    ("network", "amplitude", "abc", "a positive number, or None to learn it, got 'abc'"),
    ("network", "amplitude", True, "a positive number, or None to learn it, got True"),
    ("network", "amplitude", 10**400, "got an integer of about 400 digits"),
    ("nngp", "amplitude", "abc", "True, False or a positive number, got 'abc'"),
    ("nngp", "n_maps", 10**9, "an integer of at most 1,000, got 1000000000"),
    ("ml_gp", "n_starts", 10**12, "an integer of at most 1,000,000, got 1000000000000"),
    ("ml_gp", "nugget", math.inf, "a positive number, got inf"),
    ("ml_gp", "standardize", "no", 'True, False or "inputs", got '),
    ("bayes_gp", "thin", 10**12, "an integer of at most 1,000,000, got 1000000000000"),
    ("bayes_gp", "nu", 51, "a number in (0, 50], got 51"),
    ("bayes_gp", "correlation", "rbf", "None or one of expsep, exp, matern, got 'rbf'"),
    ("shallow_stable", "nu", 5e-324, "a positive number, got 5e-324"),
    ("diwp", "n_steps", 10**12, "an integer of at most 100,000,000, got 1000000000000"),
    ("diwp", "n_inducing", 10**12, "an integer of at most 1,000,000, got 1000000000000"),
    ("diwp", "batch_size", 0, "an integer from 1 to 1,000,000,000, or None for all rows, got 0"),
    ("diwp", "learning_rates", [0.1, math.inf], "a list of positive numbers, got [0.1, inf]"),
    ("diwp", "learning_rates", 0.1, "a list of positive numbers, got 0.1"),
    ("diwp", "noise_variance", [0.1], "one positive number, or None to learn it, got [0.1]"),
]


@pytest.mark.parametrize(
    ("method", "name", "value", "words"),
    [pytest.param(*row, id=f"{row[0]}-{row[1]}-{i}") for i, row in enumerate(REFUSED)],
)
def test_what_is_said(method, name, value, words):
    said = refusal(lambda: METHODS[method](**{name: value}).fit(X, Y), name)
    assert said.startswith(f"{name} must be ")
    assert words in said


ADMITTED = [
    ("kernel", "alpha", [1, 2, 2.0, 1e-6, np.float32(0.5), np.int64(1), 2.0 - 1e-6]),
    ("kernel", "depth", [1, 1000, np.uint8(3)]),
    ("kernel", "order", [0, 100]),
    ("kernel", "fit_intercept", [True, np.False_]),
    ("kernel", "standardize", [True, np.False_, "inputs", np.str_("inputs")]),
    ("kernel", "noise_variance", [None, 1, 0.1, np.float64(2.0), [1.0, 2.0], (1, 2), np.ones(3, dtype=np.int8)]),
    ("kernel", "n_jobs", [None, 1, -1, -2, np.int64(2), 10_000]),
    ("kernel", "max_memory", [None, 1, 1e9, math.inf, np.float64(1e6)]),
    ("kernel", "progress", [True, False, None, print, np.True_]),
    (
        "kernel", "random_state",
        [None, 0, np.int64(3), 2**128 - 1, np.random.SeedSequence(1), np.random.default_rng(1),
         np.random.RandomState(1)],
    ),
    ("nngp", "amplitude", [True, np.False_, 1, 2.5]),
    ("network", "bulk", ["auto", True, np.False_]),
    ("bayes_gp", "m0r1", [None, True, np.False_]),
    ("diwp", "learning_rates", [[0.1], (1, 2), np.array([0.1, 0.2])]),
    ("diwp", "batch_size", [None, 1, np.int32(5)]),
]  # fmt: skip


@pytest.mark.parametrize(("method", "name", "values"), ADMITTED)
def test_what_is_right_passes(method, name, values):
    for value in values:
        METHODS[method](**{name: value})._check_settings()


def test_alpha_sample_is_reserved():
    assert Stability().complaint("alpha", "sample") == (
        'alpha="sample" is reserved for a later version: give a number in (0, 2]'
    )


def test_settings_are_refused_together():
    with pytest.raises(ValueError, match=r'n_groups > 1 needs .*: use preset "theorem", got \'prop2\''):
        METHODS["kernel"](n_groups=2, preset="prop2").fit(None, None)


@pytest.mark.parametrize("value", NEVER.values(), ids=list(NEVER))
def test_a_value_is_shown_in_a_line(value):
    text = shown(value)
    assert 0 < len(text) <= MOST_SHOWN
    assert "\n" not in text


def test_short_values_are_shown_whole():
    for value in (1, -2.5, "a\nb", None, True, [1, "a"], {"a": 1}, 10**79, math.nan):
        assert shown(value) == repr(value)


@pytest.mark.parametrize("kind", [Whole(0, 1), Number(), Positives()])
def test_a_kind_is_not_of_the_run_unless_it_says_so(kind):
    assert not kind.of_run


# Where else settings are used ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return NNGPRegressor(sampler="ml", random_state=0).fit(X, Y)


QUESTIONS = {
    "predict": lambda m: m.predict(X),
    "predict_quantiles": lambda m: m.predict_quantiles(X),
    "predict_interval": lambda m: m.predict_interval(X),
    "predict_distribution": lambda m: m.predict_distribution(X),
    "sample_y": lambda m: m.sample_y(X),
    "leave_one_out": lambda m: m.leave_one_out(),
    "feature_relevance": lambda m: m.feature_relevance(),
    "partial_dependence": lambda m: partial_dependence(m, X, 0, X[:2]),
    "extend": lambda m: m.extend(2),
    "save": lambda m: m.save("no such folder/model.cadlag"),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("name", "value"), [("point", "mode"), ("max_memory", "abc"), ("n_atoms", 1.5), ("n_jobs", "two")]
)
def test_a_setting_that_is_changed_after_fit_is_checked(fitted, question, name, value):
    before = fitted.get_params()[name]
    try:
        fitted.set_params(**{name: value})
        assert refusal(lambda: QUESTIONS[question](fitted), name).startswith(f"{name} must be ")
    finally:
        fitted.set_params(**{name: before})


def test_seeds_of_questions_are_checked(fitted):
    for seed in (-1, True, "a", 2**128):
        assert "random_state must be" in refusal(
            lambda seed=seed: fitted.sample_y(X, random_state=seed), "random_state"
        )
    for count in (0, True, 1.5, 10**400):
        assert "n_samples must be" in refusal(lambda count=count: fitted.sample_y(X, count), "n_samples")


def test_numpy_truth_is_truth(capfd):
    learned = NNGPRegressor(amplitude=np.True_, n_draws=3, n_warmup=3, n_chains=1, progress=np.True_, random_state=0)
    assert "amplitude" in learned.fit(X, Y).posterior_.draws
    assert "6" in capfd.readouterr().err
    known = NNGPRegressor(amplitude=np.False_, sampler="ml").fit(X, Y)
    np.testing.assert_array_equal(known.predict(X), NNGPRegressor(amplitude=False, sampler="ml").fit(X, Y).predict(X))


def test_small_numpy_integers_do_not_overflow():
    short = {"n_chains": 1, "random_state": 0, "amplitude": False}
    model = NNGPRegressor(n_draws=np.uint8(200), n_warmup=np.uint8(100), **short).fit(X, Y)
    assert model.posterior_.n_draws == 200
    rates = [METHODS["diwp"](n_steps=steps)._model(X, Y).rates for steps in (np.uint8(200), 200)]
    np.testing.assert_array_equal(*rates)


def test_memory_for_draws_and_steps_is_asked_for_beforehand():
    for settings in ({"n_atoms": 10**9}, {"n_steps": 10**8}):
        with pytest.raises(MemoryError, match="use a smaller batch_size, n_inducing, n_atoms or n_steps"):
            METHODS["diwp"](**settings, max_memory=1e9).fit(X, Y)


# The command ---------------------------------------------------------------------------------------------------------

TYPED = [
    ("kernel", "n_jobs=abc", "n_jobs must be None or an integer"),
    ("kernel", "fit_intercept=null", "fit_intercept must be True or False, got None"),
    ("kernel", "alpha=Infinity", "alpha must be a number in (0, 2], got inf"),
    ("kernel", "alpha=NaN", "alpha must be a number in (0, 2], got nan"),
    ("kernel", "alpha=sample", 'alpha="sample" is reserved'),
    ("kernel", "n_draws=1e300", "n_draws must be an integer of at least 1, got 1e+300"),
    ("kernel", "n_chains=1000000000000", "n_chains must be an integer of at most 10,000"),
    ("kernel", "max_memory=abc", "max_memory must be a positive number of bytes"),
    ("kernel", "progress=abc", "progress must be True, False, None or a callable, got 'abc'"),
    ("kernel", "random_state=-1", "random_state must be None, an integer from 0"),
    ("kernel", "noise_variance=[]", "noise_variance must be a positive number"),
    ("kernel", "noise_variance=[[1],[2,3]]", "noise_variance must be a positive number"),
    ("kernel", "depth=1000000000", "depth must be an integer of at most 1,000"),
    ("kernel", "depth=" + "9" * 40_000, "depth must be an integer of at least 1, got '9999"),
    ("kernel", "depth=" + "[" * 100_000, "depth must be an integer of at least 1, got '[[["),
    ("kernel", "depth=" + "9" * 400, "depth must be an integer of at most 1,000, got an integer of about 400 digits"),
    ("kernel", "sampler=gibbs", "sampler must be one of nuts"),
    ("auto", "alpha=true", "alpha must be a number in (0, 2], got True"),
    ("network", "bulk=maybe", 'bulk must be True, False, "smooth" or "auto", got'),
    ("nngp", "amplitude=abc", "amplitude must be True, False or a positive number"),
    ("ml_gp", "nugget={}", "nugget must be a positive number, got {}"),
    ("bayes_gp", "thin=0", "thin must be an integer of at least 1, got 0"),
    ("shallow_stable", "nu=-1", "nu must be a positive number, got -1"),
    ("diwp", 'learning_rates=["a"]', "learning_rates must be a list of positive numbers, got ['a']"),
]


def told(*arguments):
    """The one sentence of a command that a user's mistake ends."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2
    said = result.stderr.strip()
    assert said.startswith("error: ")
    return sentence(said)


@pytest.mark.parametrize(
    ("method", "pair", "words"), [pytest.param(*row, id=f"{row[0]} {row[1]:.20}") for row in TYPED]
)
def test_the_command_refuses_a_setting_before_it_reads_the_table(method, pair, words):
    """Which there is none of."""
    start = time.process_time()
    assert words in told("fit", "no table.csv", "--target", "y", "--method", method, "--set", pair)
    assert time.process_time() - start < 1.0


def test_the_command_checks_options_and_settings_together():
    fit = "fit", "no table.csv", "--target", "y", "--method", "kernel"
    assert "n_jobs must be" in told(*fit, "--jobs", 0)
    assert "n_draws must be an integer of at most" in told(*fit, "--draws", 10**12)
    assert 'use preset "theorem"' in told(*fit, "--set", "n_groups=2", "--set", "preset=prop2")
    assert "there is no setting 'aaaaaa" in told(*fit, "--set", "a" * 10_000 + "=1")
    assert "--set takes NAME=VALUE" in told(*fit, "--set", "-" * 10_000)
    assert "no table.csv" in told(*fit, "--set", "alpha=1.5", "--set", "noise_variance=[0.1, 0.2]")


def test_of_several_methods_one_must_take_a_setting():
    """The others are left out of a comparison, with what they say."""
    Run(more={"sampler": "tempered"}).check(("network", "nngp"))
    with pytest.raises(ValueError, match="sampler must be one of"):
        Run(more={"sampler": "no such"}).check(("network", "nngp"))
    with pytest.raises(ValueError, match="alpha must be a number"):
        Run(more={"alpha": 5}).check(("nngp", "network"))


def test_values_are_read_as_json():
    pairs = ["a=Infinity", "b=null", "c=None", "d=[1, [2]]", "e=1e300", "f=abc", "g=True", "h=", "i=" + "9" * 400]
    read = parse_settings(pairs)
    assert read == {"a": math.inf, "b": None, "c": None, "d": [1, [2]], "e": 1e300, "f": "abc", "g": True, "h": "",
                    "i": 10**400 - 1}  # fmt: skip


# Checkpoints of earlier versions -------------------------------------------------------------------------------------

OF_RUN = {
    "kernel": "alpha depth order preset fit_intercept centers n_groups noise_prior_on sampler standardize",
    "network": "alpha n_units activation bulk input_scales amplitude noise_prior_on sampler standardize",
    "nngp": "n_maps amplitude noise_prior_on sampler standardize",
    "bayes_gp": "preset correlation nu m0r1 sampler thin",
    "shallow_stable": "alpha nu noise_prior sampler emulate_published standardize",
}
FINGERPRINTS = {
    "kernel": "44295f00581bfb47db0c7acb6787a4538e2d370fbc28534b259f5ee1488ce9ec",
    "network": "b0acc2e25584618ba15d6ee96021d17a9185f0ee5bf9590b3e0d25e44c6aa53b",
    "nngp": "da3c9981ffd47c5da41f89077b4bd51ff369b496c0b7adfeef6fa79cfc78bad2",
    "bayes_gp": "c705720ac682594dfce6e8b79fcd65c7033edb452c8ccc06157cd94948e55a2b",
    "shallow_stable": "99613f392fda18cebe02406535709cd9b834d5be738d23c1bc9720e3675aaed4",
}


@pytest.mark.parametrize("method", OF_RUN)
def test_a_checkpoint_belongs_to_the_settings_that_it_always_belonged_to(method):
    names = {name for name, setting in METHODS[method]._settings.items() if setting.of_run}
    assert names == {*OF_RUN[method].split(), "n_warmup", "n_chains", "random_state"}


@pytest.mark.parametrize("method", OF_RUN)
def test_fingerprints_are_those_of_earlier_versions(method):
    model = METHODS[method](n_chains=np.int64(2), random_state=3, n_draws=7)
    if model.n_warmup == "auto":  # which there was not
        model.n_warmup = 1000
    if method == "network":
        model.n_units = 20
    model.model_ = SimpleNamespace(X=np.array([[1.0, 0.5], [1.0, -2.0]]), y=np.array([0.25, 4.0]), noise_variance=None)
    assert model._fingerprint() == FINGERPRINTS[method]


CHANGED = {
    "alpha": 1.5, "order": 0, "depth": 2, "fit_intercept": False, "noise_variance": 0.5,
    "n_units": 4, "bulk": False, "activation": "sign", "n_maps": 3, "standardize": False, "n_chains": 2, "n_warmup": 3,
    "nu": 2.0,
}  # fmt: skip
ASKED = {"n_jobs": 2, "max_memory": 1e9, "progress": False, "random_state": 5}
QUICK = {"n_draws": 4, "n_warmup": 4, "n_chains": 1, "random_state": 0, "n_steps": 3, "n_inducing": 4, "n_starts": 1}


def small(method):
    known = METHODS[method]._settings
    return METHODS[method](**{name: value for name, value in QUICK.items() if name in known})


# After the fit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_draws_depend_on_is_not_changed_under_a_fitted_model(method, tmp_path):
    """Nor written beside draws that it did not make; what concerns only how it is asked may be changed."""
    model = small(method).fit(X, Y)
    before = model.predict(X)
    other = {name: value for name, value in CHANGED.items() if name in model._settings}
    assert other
    for name, value in other.items():
        now = getattr(model, name)
        model.set_params(**{name: value})
        for question in (lambda: model.predict(X), lambda: model.save(tmp_path / "m.cadlag")):
            with pytest.raises(ValueError, match=f"^{name} was .* when the model was fitted and is .*: set it back"):
                question()
        assert not (tmp_path / "m.cadlag").exists()
        model.set_params(**{name: now})
    model.set_params(**{name: value for name, value in ASKED.items() if name in model._settings})
    np.testing.assert_array_equal(model.predict(X), before)
    model.save(tmp_path / "m.cadlag")
    np.testing.assert_array_equal(load(tmp_path / "m.cadlag").predict(X), before)


def test_files_of_settings_that_were_once_taken_are_read(tmp_path):
    """Version 0.1 took 1 for True, True for a seed and 0 workers."""
    path = tmp_path / "old.cadlag"
    model = small("kernel").fit(X, Y)
    model.save(path)
    tree = read_tree(path, "model")
    tree["settings"] |= {"standardize": 1, "fit_intercept": 1, "centers": 0, "random_state": True, "n_jobs": 0}
    write_tree(path, tree, "model")
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
