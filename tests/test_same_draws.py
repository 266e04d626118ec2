"""The guard of `make same-draws` can fail, and leaves no method, sampler or setting out."""

import inspect
import shutil

import numpy as np
import pytest

import cadlag
import same_draws
from cadlag.kernel_process.model import PRESETS
from cadlag.methods import METHODS
from cadlag.sampling import SAMPLERS
from draws import CASES, Fit, twin_of
from same_draws import DIFFERENT, EQUAL, NEW, ROOT, Result, compare, differences, judge, mark_of_sources

NO_MATTER = {"max_memory", "max_seconds", "progress", "point", "n_atoms", "n_jobs"}  # settings that no draw depends on
FITS = [case for case in CASES.values() if isinstance(case, Fit)]


def arrays():
    return {"positions": np.array([[0.5, -0.0], [np.nan, 3.0]]), "names": np.array(["a", "b"]), "bytes": np.arange(3)}


def with_entry(name, place, value):
    changed = arrays()
    changed[name][place] = value
    return changed


# Comparison ----------------------------------------------------------------------------------------------------------


def test_the_same_is_equal():
    assert differences(arrays(), arrays()) == ""
    assert differences({**arrays(), "more": np.zeros(2)}, arrays()) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (with_entry("positions", (0, 0), np.nextafter(0.5, 1.0)), "positions[0, 0] is 0.5000000000000001 instead of"),
        (with_entry("positions", (1, 1), 3.5), "instead of 3.0, off by 0.5; 1 of 3 arrays differ"),
        (with_entry("positions", (0, 1), 0.0), "positions[0, 1] is 0.0 instead of -0.0"),
        (with_entry("positions", (1, 0), 1.0), "positions[1, 0] is 1.0 instead of nan"),
        (with_entry("positions", (1, 1), np.nan), "positions[1, 1] is nan instead of 3.0"),
        (with_entry("names", 1, "c"), "names[1] is c instead of b"),
        (with_entry("bytes", 2, 7), "bytes[2] is 7.0 instead of 2.0"),
        ({**arrays(), "bytes": np.arange(4)}, "bytes is int64[4] instead of int64[3]"),
        ({**arrays(), "bytes": np.arange(3.0)}, "bytes is float64[3] instead of int64[3]"),
        ({**arrays(), "positions": arrays()["positions"].astype(np.float32)}, "positions is float32[2, 2] instead of"),
        ({**arrays(), "names": np.array(["a", "long"])}, "names[1] is long instead of b"),
        ({"positions": arrays()["positions"], "names": arrays()["names"]}, "bytes is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_change_is_reported(changed, said):
    assert said in differences(changed, arrays())


def test_a_case_without_result_is_not_equal():
    good, other = Result(arrays()), Result(with_entry("positions", (1, 1), 3.5))
    unknown, failed = Result({}, unknown="no such setting"), Result({}, error="ValueError")
    assert judge(good, good)[0] == EQUAL
    assert judge(good, good, twin=good)[0] == EQUAL
    assert judge(good, good, twin=other)[0] == DIFFERENT
    assert judge(good, other)[0] == DIFFERENT
    assert judge(good, unknown)[0] == NEW
    assert judge(good, unknown, twin=other)[0] == DIFFERENT
    assert judge(unknown, good)[0] == judge(unknown, unknown)[0] == DIFFERENT
    assert judge(good, failed)[0] == judge(failed, good)[0] == judge(failed, failed)[0] == DIFFERENT
    assert judge(Result({}), Result({}))[0] == DIFFERENT


# Two trees -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A copy of the sources in the place of another revision; nothing is compiled, which would take longer."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr(same_draws, "STORE", tmp_path / "store")
    monkeypatch.setattr(same_draws, "checkout", lambda revision: tmp_path / revision)
    shutil.copytree(ROOT / "src", tmp_path / "base" / "src", ignore=shutil.ignore_patterns("*.nb?", "*.jsonl"))
    return tmp_path / "base" / "src" / "cadlag"


def change(base, text):
    path = base / "__init__.py"
    path.write_text(f"{path.read_text()}\n{text}\n")


def test_a_copy_gives_the_same_draws(base, capsys):
    assert compare("base", "kernel prior, prop2") == 0
    assert "1 equal, 0 different: this tree and base" in capsys.readouterr().out


OTHER_SEEDS = """
import numpy
plain = numpy.random.default_rng
numpy.random.default_rng = lambda s=None: plain(s.spawn(1)[0] if isinstance(s, numpy.random.SeedSequence) else s)
"""


def test_other_draws_are_found_out(base, capsys):
    change(base, OTHER_SEEDS)
    assert compare("base", "kernel prior, prop2") == 1
    said = capsys.readouterr().out
    assert "0 equal, 1 different" in said
    assert "prior[0, 0] is" in said


def test_results_of_the_base_are_kept_until_they_are_wanted_fresh(base, capsys):
    assert compare("base", "kernel prior, prop2") == 0
    change(base, "raise ImportError('it was run again')")
    assert compare("base", "kernel prior, prop2") == 0
    assert "it was run again" not in capsys.readouterr().out
    assert compare("base", "kernel prior, prop2", fresh=True) == 1
    assert "no result in the base" in (said := capsys.readouterr().out)
    assert "ImportError: it was run again" in said


def test_a_method_that_the_base_lacks_is_new(base, capsys):
    change(base, "del _HOMES['StableKernelRegressor']")
    assert compare("base", "kernel prior, prop2") == 0
    assert "0 equal, 0 different, 1 new" in capsys.readouterr().out


def test_a_tree_that_changes_while_it_runs_is_not_equal(base, capsys, monkeypatch):
    marks = iter(["before", "after"])
    monkeypatch.setattr(same_draws, "mark_of_sources", lambda source: next(marks))
    assert compare("base", "kernel prior, prop2") == 1
    assert "1 equal, 0 different" in (said := capsys.readouterr().out)
    assert "was changed while it ran" in said


def test_code_is_compiled_anew_after_a_change_in_any_file(tmp_path):
    """Numba itself would go on with code that holds the old version of a function of another file."""
    (tmp_path / "inner").mkdir()
    files = [tmp_path / "caller.py", tmp_path / "inner" / "called.py"]
    marks = set()
    for text in ("1", "2"):
        for path in files:
            path.write_text(text)
            marks.add(mark_of_sources(tmp_path))
    assert len(marks) == 4
    (tmp_path / "caller.pyc").write_text("no source")
    assert mark_of_sources(tmp_path) in marks


# Cases ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_no_setting_is_left_out(method):
    settings = {name for case in FITS if getattr(cadlag, case.method) is METHODS[method] for name in case.settings}
    assert {*inspect.signature(METHODS[method]).parameters} - NO_MATTER <= settings


SAMPLED = {
    "StableKernelRegressor": {*SAMPLERS},
    "StableNetworkRegressor": {"gibbs", "tempered"},
    "NNGPRegressor": {"nuts", "ml"},
    "BayesGPRegressor": {*SAMPLERS, "tgp"},
    "ShallowStableRegressor": {"gibbs", "independence"},
}


@pytest.mark.parametrize("method", SAMPLED)
def test_no_sampler_is_left_out(method):
    assert {case.make().sampler for case in FITS if case.method == method} == SAMPLED[method]


def test_no_sampler_of_groups_and_no_preset_is_left_out():
    kernels = [case.make() for case in FITS if case.method == "StableKernelRegressor"]
    assert {model.sampler for model in kernels if model.n_groups > 1} == {*SAMPLERS}
    assert {model.preset for model in kernels} == {*PRESETS}


def test_a_twin_is_another_way_to_the_same():
    """The same settings but for workers, or the same fit in parts."""
    twins = {name: twin for name in CASES if (twin := twin_of(name)) is not None}
    assert len(twins) > 10
    for name, twin in twins.items():
        one, other = CASES[name], CASES[twin]
        assert {**one.settings, "n_jobs": None} == {**other.settings, "n_jobs": None}, name
        assert (one.method, one.data, one.asks) == (other.method, other.data, other.asks), name
        assert (one.how, one.settings.get("n_jobs")) != (other.how, other.settings.get("n_jobs")), name
