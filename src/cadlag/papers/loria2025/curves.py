"""What figures are drawn from: arrays that a fit leaves, kept in row files as numbers called NAME_0, NAME_1, ...

Each kind of curves has a row file and a function from task to arrays, so that a run can be killed and goes on like that
of the tables. Figures are pure functions of what is stored.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from cadlag.methods import METHODS
from cadlag.papers.experiment import Load, fit_task
from cadlag.papers.rows import Row, Task

Array = NDArray[np.float64]
Curves = dict[str, Array]

QUARTILES = (0.25, 0.5, 0.75)
N_GRID = 1000
DISTANCES = np.linspace(0.05, 2.0, 40)
_MOST_DRAWS = 1000
_DIGITS = 5


def predictions(task: Task, load: Load) -> Curves:
    """Return what is observed at the test inputs, what is predicted, and the ends of 90 % intervals."""
    data = load(task.data, task.seed)
    law = fit_task(task, data).predict_distribution(data.X_test)
    lower, upper = law.interval(0.9).T
    return {"observed": data.y_test, "prediction": law.median, "lower": lower, "upper": upper}


def ablation(task: Task, load: Load) -> Curves:
    """Return quartiles of the predictive law on a fine grid of one input."""
    data = load(task.data, task.seed)
    law = fit_task(task, data).predict_distribution(grid()[:, None])
    return dict(zip(("lower", "median", "upper"), law.quantile(QUARTILES).T))


def grid() -> Array:
    """Return the inputs of `ablation`."""
    return np.linspace(-1.0, 1.0, N_GRID)


def rise(median: Array) -> float:
    """Return the distance in which a prediction on the grid makes a tenth to nine tenths of the true jump, 0 to 5."""
    x, below, above = grid(), np.flatnonzero(median < 0.5), np.flatnonzero(median > 4.5)
    if not len(below) or not len(above):
        return float(x[-1] - x[0])
    return float(x[above[0]] - x[below[-1]])


def kernels(task: Task, load: Load) -> Curves:
    """Return entrywise posterior quartiles of the last kernel matrix at the training inputs: lower triangles."""
    matrices = fit_task(task, load(task.data, task.seed)).sample_kernels(n_draws=_MOST_DRAWS)
    entries = matrices[:, *np.tril_indices(matrices.shape[1])]
    return dict(zip(("lower", "median", "upper"), np.quantile(entries, QUARTILES, axis=0)))


def symmetric(triangle: Array) -> Array:
    """Return the matrix whose lower triangle, row by row, is given."""
    n = round((np.sqrt(8 * len(triangle) + 1) - 1) / 2)
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = triangle
    return matrix + np.tril(matrix, -1).T


def chains(task: Task, load: Load) -> Curves:
    """Return draws of two features of the first hidden layer at the first training input, and traces.

    A trace is the chains one after another; `n_chains` has their number.
    """
    data = load(task.data, task.seed)
    model = fit_task(task, data)
    features = model.sample_features(1, 2, data.X_train[:1], n_draws=_MOST_DRAWS, random_state=task.seed)[:, :, 0]
    traces = {name: model.posterior_.scalars()[name] for name in ("log_likelihood", "noise_variance")}
    step = -(-traces["log_likelihood"].shape[1] // _MOST_DRAWS)
    return {
        "first": features[:, 0],
        "second": features[:, 1],
        **{name: trace[:, ::step].ravel() for name, trace in traces.items()},
        "n_chains": np.array([float(model.posterior_.n_chains)]),
    }


def information(task: Task, _load: Load) -> Curves:
    """Return the conditional mutual information of the function at 0 and at each of `DISTANCES`, under the prior."""
    settings = dict(task.configuration)
    n_samples = settings.pop("n_samples")
    model = METHODS[task.method](**settings)
    value, error = model.conditional_mutual_information(
        np.zeros((len(DISTANCES), 1)), DISTANCES[:, None], n_samples=n_samples, random_state=task.seed
    )
    return {"information": value, "error": error}


KINDS: dict[str, Callable[[Task, Load], Curves]] = {
    "predictions": predictions,
    "ablation": ablation,
    "kernels": kernels,
    "chains": chains,
    "information": information,
}


def evaluate(task: Task, kind: str, load: Load) -> dict[str, float]:
    """Compute the curves of a task, as numbers for a row file."""
    return flatten(KINDS[kind](task, load))


def flatten(arrays: Curves) -> dict[str, float]:
    """Return the numbers of arrays by name and place, rounded."""
    return {
        f"{name}_{place}": float(f"{value:.{_DIGITS}g}")
        for name, values in arrays.items()
        for place, value in enumerate(values)
    }


def gather(rows: Iterable[Row]) -> dict[tuple[str, str, str, int], Curves]:
    """Return the arrays of each task in a row file of curves: the reverse of `flatten`."""
    places: dict[tuple[str, str, str, int], dict[str, dict[int, float]]] = {}
    for row in rows:
        name, _, place = row.metric.rpartition("_")
        places.setdefault(row[:4], {}).setdefault(name, {})[int(place)] = row.value
    return {
        key: {name: np.array([values[i] for i in range(len(values))]) for name, values in arrays.items()}
        for key, arrays in places.items()
    }
