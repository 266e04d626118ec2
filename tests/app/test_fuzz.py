"""A few mutated tables and model files of every method through the command; `make fuzz` runs many."""

import numpy as np
import pytest

from cadlag.methods import METHODS, load
from cadlag.storage import read_tree, write_tree
from fuzz import complaint, model_case, prepare, quote_case, run_cases, table_case

pytestmark = pytest.mark.filterwarnings("ignore")

METHODS_FUZZED = ("nngp", *(name for name in METHODS if name != "nngp"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("fuzz")
    prepare(place, METHODS_FUZZED)
    return place


def test_tables(folder):
    assert run_cases(table_case, range(60), 0, folder, ("nngp",)) == []


def test_quotes(tmp_path):
    assert run_cases(quote_case, range(500), 0, tmp_path, ()) == []


def test_models(folder):
    assert run_cases(model_case, range(56), 0, folder, METHODS_FUZZED) == []


def arrays(node, path=()):
    """Places of the arrays in a tree."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        if isinstance(inner, np.ndarray) and path[:1] != ("chains",):
            yield (*path, key)
        yield from arrays(inner, (*path, key))


CHANGES = (
    lambda array: array[..., None],
    lambda array: array.repeat(2, axis=-1) if array.ndim else array,
    lambda array: array[..., :-1] if array.ndim else array,
    lambda array: array[:0] if array.ndim else array,
    lambda array: array.astype(str),
)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_that_do_not_fit_are_refused(method, folder, tmp_path):
    """Compiled code looks at no bounds: such a file could end the process, or worse, predict."""
    good, bad = folder / f"{method}.cadlag", tmp_path / "bad.cadlag"
    places = list(arrays(read_tree(good, "model")))
    stats = [place for place in places if place[0] == "stats"][2:]  # all of them are checked alike
    places = [place for place in places if place not in stats]
    assert ("positions",) in places
    assert ("input_scaling", "scale") in places
    tried = 0
    for place in places:
        if place[0] in ("settings", "trace"):  # settings are checked one by one, and a trace may have any length
            continue
        for change in CHANGES:
            tree = read_tree(good, "model")
            node = tree
            for key in place[:-1]:
                node = node[key]
            before = node[place[-1]]
            after = node[place[-1]] = change(before)
            if (after.shape, after.dtype) == (before.shape, before.dtype):
                continue
            tried += 1
            write_tree(bad, tree, "model")
            with pytest.raises(ValueError, match="is not a complete model file"):
                load(bad)
    assert tried > 20


def test_a_setting_that_is_no_number_is_refused(folder, tmp_path):
    tree = read_tree(folder / "nngp.cadlag", "model")
    write_tree(tmp_path / "bad.cadlag", {**tree, "settings": {**tree["settings"], "max_memory": [1]}}, "model")
    assert complaint("predict", tmp_path / "bad.cadlag", folder / "good.csv") == ""


def test_the_test_can_fail(tmp_path, monkeypatch):
    def broken(*arguments):
        raise TypeError("a bug")

    monkeypatch.setattr("cadlag.app.predicting.read_frame", broken)
    monkeypatch.setattr("cadlag.app.predicting.load", lambda path: None)
    assert "TypeError: a bug" in complaint("predict", tmp_path / "a", tmp_path / "b")
