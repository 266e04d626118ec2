"""Curves and figures of the paper redone: what fits leave, and pictures that are functions of it."""

import math

import numpy as np
import pytest

from cadlag.methods import METHODS
from cadlag.papers.loria2025 import curves
from cadlag.papers.loria2025.drawing import picture
from cadlag.papers.loria2025.figures import FIGURES
from cadlag.papers.loria2025.plan import FULL, QUICK
from cadlag.papers.rows import RowFile, Task


def made_up(want, rng):
    """Curves of a kind."""
    n = {"sim1d": 100, "sim2d": 81}.get(want.data, 30)
    shapes = {
        "predictions": dict.fromkeys(("observed", "prediction", "lower", "upper"), n),
        "ablation": dict.fromkeys(("lower", "median", "upper"), curves.N_GRID),
        "kernels": dict.fromkeys(("lower", "median", "upper"), 21),
        "chains": dict.fromkeys(("first", "second", "log_likelihood", "noise_variance"), 100),
        "information": dict.fromkeys(("information", "error"), len(curves.DISTANCES)),
    }[want.kind]
    arrays = {name: rng.random(size) + 0.1 for name, size in shapes.items()}
    return {**arrays, "n_chains": np.array([2.0])} if want.kind == "chains" else arrays


def test_curves_survive_a_row_file(tmp_path):
    task = Task("sim1d", "kernel", {}, 0)
    arrays = {"long_name": np.array([1.5, -2.0, math.nan] + [3.25] * 9), "b": np.array([1e-7])}
    RowFile(tmp_path / "rows.jsonl").append(task, curves.flatten(arrays), 1.0)
    (found,) = curves.gather(RowFile(tmp_path / "rows.jsonl").read()).values()
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(found[name], array, equal_nan=True)


def test_a_matrix_from_its_triangle():
    matrix = np.cov(np.random.default_rng(0).normal(size=(5, 9)))
    assert np.array_equal(curves.symmetric(matrix[np.tril_indices(5)]), matrix)


@pytest.mark.parametrize(
    ("alpha", "expected"), [(2.0, (2.31822, 0.85358, 0.42273, 0.20012)), (1.0, (2.12, 0.846, 0.474, 0.244))]
)
def test_mutual_information(alpha, expected):
    """Reference values for one hidden layer and the pair (0, d); exact at α = 2, else within Monte-Carlo error."""
    want = next(w for w in FIGURES["figure-1"].wants.values() if w.version.settings["alpha"] == alpha)
    task = want.task(FULL)
    found = curves.information(Task(task.data, task.method, {**task.configuration, "n_samples": 1000}, 0), FULL.load)
    places = [int(np.argmin(np.abs(curves.DISTANCES - d))) for d in (0.1, 0.5, 1.0, 2.0)]
    assert np.all(np.abs(found["information"][places] - expected) < 5e-4 + 4 * found["error"][places])


def test_predictions_are_those_of_the_fit():
    want = FIGURES["figure-2"].wants["GP MLE"]
    found = curves.predictions(want.task(FULL), FULL.load)
    data = FULL.load("sim1d", 0)
    model = METHODS["ml_gp"](standardize=False, random_state=0).fit(data.X_train, data.y_train)
    assert np.allclose(found["prediction"], model.predict(data.X_test))
    assert np.allclose(np.column_stack([found["lower"], found["upper"]]), model.predict_interval(data.X_test, 0.9))
    assert np.array_equal(found["observed"], data.y_test)


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_curves_of_a_kernel_process():
    task = QUICK.reduce(Task("sim1d", "kernel", {"depth": 2}, 0))
    small = Task("sim1d", "kernel", {**task.configuration, "n_draws": 20, "n_warmup": 30}, 0)
    found = {kind: curves.KINDS[kind](small, QUICK.load) for kind in ("ablation", "kernels", "chains")}
    assert all(np.isfinite(values).all() for arrays in found.values() for values in arrays.values())
    assert found["chains"]["log_likelihood"].shape == (40,)
    quartiles = found["ablation"]
    assert np.all(quartiles["lower"] < quartiles["median"])
    assert np.all(quartiles["median"] < quartiles["upper"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_traces_of_as_many_chains_as_there_are():
    task = Task("sim1d", "kernel", {"n_draws": 20, "n_warmup": 30, "max_seconds": 1e-9}, 0)
    found = curves.chains(task, QUICK.load)
    assert found["n_chains"] == [4.0]
    assert found["noise_variance"].shape == (80,)


def drawn(figure, found):
    """All numbers in the axes of a figure."""
    numbers = []
    for axes in figure.draw(found).axes:
        numbers += [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
        numbers += [path.vertices.ravel() for item in axes.collections for path in item.get_paths()]
        numbers += [np.ravel(item.get_array()) for item in axes.collections if item.get_array() is not None]
        numbers += [np.asarray(image.get_array()).ravel() for image in axes.images]
    return np.concatenate(numbers)


# One figure of each kind.
@pytest.mark.parametrize("name", {figure.drawing: name for name, figure in FIGURES.items()}.values())
def test_figures_are_functions_of_curves(name):
    figure, rng = FIGURES[name], np.random.default_rng(1)
    found = {label: made_up(want, rng) for label, want in figure.wants.items()}
    *_, label = found
    other = {**found, label: {k: v if k == "n_chains" else 1.3 * v for k, v in found[label].items()}}
    first, changed = drawn(figure, found), drawn(figure, other)
    assert changed.shape != first.shape or not np.allclose(changed, first)
    assert 0 < len(drawn(figure, {label: found[label]})) <= len(first)


def test_rise_of_a_straight_line():
    assert curves.rise(2.5 + 10 * curves.grid()) == pytest.approx(0.4, abs=2 * 2 / curves.N_GRID)


@pytest.mark.parametrize("level", [0.2, 2.5, 4.8])
def test_a_prediction_that_does_not_rise_takes_the_whole_grid(level):
    assert curves.rise(np.full(curves.N_GRID, level)) == 2.0


def test_pictures_are_files_of_their_curves():
    figure = FIGURES["figure-1"]
    found = {label: made_up(want, np.random.default_rng(2)) for label, want in figure.wants.items()}
    assert picture(figure, found).startswith(b"\x89PNG")
    assert picture(figure, found) == picture(figure, found)
