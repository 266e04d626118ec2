"""No two things that are told apart go by one name: inputs, draws, rows of tables."""

import numpy as np
import pandas as pd
import pytest

from cadlag import load
from cadlag.methods import METHODS
from cadlag.names import distinct, grouped_columns, labels_beside
from cadlag.plots import plot_breaks
from cadlag.report import write_report
from cadlag.storage import read_tree, write_tree
from cadlag.verdict import facts, gather, verdict

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(3)
X = RNG.standard_normal((14, 2))
Y = np.sign(X[:, 0]) + 0.1 * RNG.standard_normal(14)
SMALL = {
    "kernel": {"centers": True}, "network": {"bulk": True, "input_scales": True, "n_units": 3}, "bayes_gp": {},
    "ml_gp": {"n_starts": 1}, "shallow_stable": {}, "nngp": {},
    "diwp": {"n_steps": 3, "n_atoms": 2, "n_inducing": 5},
}  # fmt: skip


def regressor(method):
    known = METHODS[method]().get_params()
    few = {"n_draws": 6, "n_warmup": 4, "n_chains": 1, "random_state": 0, **SMALL[method]}
    return METHODS[method](**{name: value for name, value in few.items() if name in known})


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"]),
        ([], []),
    ],
)
def test_distinct(names, labels):
    assert distinct(names) == labels


def test_a_name_of_the_models_own_gives_way():
    assert labels_beside("intercept", ["x"]) == ["intercept", "x"]
    assert labels_beside("intercept", ["intercept", "(intercept)"]) == ["((intercept))", "intercept", "(intercept)"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("names", [("intercept", "amplitude"), ("row 0", "layer 1"), ("c2", "noise_variance")])
def test_no_column_hides_a_draw(method, names):
    """What a column is called decides how draws are labelled, not how many there are nor how they are judged."""
    plain = regressor(method).fit(pd.DataFrame(X, columns=["first", "second"]), Y)
    odd = regressor(method).fit(pd.DataFrame(X, columns=names), Y)
    expected, found = plain.posterior_.summary(), odd.posterior_.summary()
    assert len(set(found["parameter"])) == len(found["parameter"]) == len(expected["parameter"])
    for column in ("median", "rhat", "ess_bulk"):
        np.testing.assert_array_equal(found[column], expected[column])
    for parameter, labels in odd.posterior_.labels.items():
        assert len(set(labels)) == len(labels), parameter


def test_planes_are_told_by_every_input():
    names = ["size", "normal of size"]
    model = regressor("network").fit(pd.DataFrame(X, columns=names), Y)
    planes = model.break_points(min_size=1e-9)
    assert planes.normals.shape[1] == 2
    for j, name in enumerate(["normal of size", "normal of size (2)"]):
        np.testing.assert_array_equal(planes[name], planes.normals[:, j])


@pytest.mark.parametrize("names", [("lower", "upper"), ("probability", "share"), ("crossing", "rise")])
def test_inputs_called_like_a_column_of_the_table_of_breaks(names, tmp_path):
    """They were taken for the sign that there is one input; verdict, figures and page must not mind."""
    X = np.random.default_rng(1).standard_normal((40, 2))
    y = 5.0 * (X[:, 0] > 0) + 0.1 * X[:, 1]
    model = regressor("network").set_params(n_draws=40, n_warmup=60).fit(pd.DataFrame(X, columns=names), y)
    evidence = gather(model)
    assert verdict(evidence)
    likely = facts(evidence)["breaks"]["likely"]
    assert likely
    for row, k in zip(likely, np.argsort(-evidence.breaks["probability"], kind="stable")):
        for j, name in enumerate(names):
            label = name if names[0] == "lower" else f"normal of {name}"
            assert row[label] == evidence.breaks.normals[k, j]
    write_report(model, tmp_path / "page.html")
    plot_breaks(evidence.breaks)


@pytest.mark.parametrize("method", ["kernel", "diwp"])
def test_two_inputs_of_one_name_are_refused(method):
    with pytest.raises(ValueError, match="X has two inputs of the name 'a': rename one"):
        regressor(method).fit(pd.DataFrame(X, columns=["a", "a"]), Y)
    model = regressor(method).fit(X, Y)
    with pytest.raises(ValueError, match="two inputs of the name 'b'"):
        model.name_inputs(["b", "b"])


def test_a_file_that_names_two_inputs_alike_is_read_and_told_apart(tmp_path):
    """Such files were written before they were refused."""
    path = tmp_path / "old.cadlag"
    regressor("kernel").fit(pd.DataFrame(X, columns=["a", "b"]), Y).save(path)
    write_tree(path, read_tree(path, "model") | {"feature_names": ["intercept", "intercept"]}, "model")
    labels = load(path).posterior_.labels["input_scales"]
    assert labels == ["(intercept)", "intercept", "intercept (2)"]


def test_a_group_does_not_go_by_the_name_of_another_input():
    assert grouped_columns(["a", "b", "c"], {"a": ["a", "c"]}) == [("a", [0, 2]), ("b", [1])]
    with pytest.raises(ValueError, match="groups\\['b'\\] has the name of an input that is not in it"):
        grouped_columns(["a", "b", "c"], {"b": ["a", "c"]})


def test_many_inputs_in_groups_are_no_long_wait():
    names = [f"c{j}" for j in range(50_000)]
    groups = {f"g{j}": [f"c{j}", f"c{j + 1}"] for j in range(0, 50_000, 2)}
    assert len(grouped_columns(names, groups)) == 25_000
