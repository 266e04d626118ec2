"""Evidence on what a replicate in ten dimensions is: twenty new samples, or twenty splits of a single one.

The paper speaks of splits. If one sample of 600 rows was divided again and again, the mean over the divisions keeps
what is peculiar to the sample, and the printed standard deviation does not show it. So some samples are divided several
times each: how much do their means differ?
"""

from collections.abc import Callable, Iterable

import numpy as np

from cadlag import datasets
from cadlag.experiment import fit_task
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import read_printed, text
from cadlag.papers.loria2025.versions import PUBLISHED
from cadlag.rows import Row, Task

NAME = "evidence-splits"
TITLE = "Errors in ten dimensions when one sample is divided again and again"
DATA = "sim10d"
METHODS = ("GP MLE", "NNGP")
N_SAMPLES, N_SPLITS = 8, 6
_FIRST = 100  # samples that no table has
_DIFFERENCE = f"{METHODS[0]} less {METHODS[1]}"


def tasks(scale: Scale) -> list[Task]:
    """Return the fits; the seed of one is its sample times `N_SPLITS`, plus its split."""
    return [
        scale.task(PUBLISHED[method].method, PUBLISHED[method].configuration(DATA), DATA, sample * N_SPLITS + split)
        for sample in range(min(N_SAMPLES, scale.n_seeds))
        for split in range(min(N_SPLITS, scale.n_seeds))
        for method in METHODS
    ]


def evaluate(task: Task, load: Callable[[str, int], datasets.Dataset]) -> dict[str, float]:
    """Fit to one split of one sample.

    Parameters
    ----------
    task
        What to fit.
    load
        The function from name and seed to data.

    Returns
    -------
    dict
        `rmse`.
    """
    data = divided(load(task.data, _FIRST + task.seed // N_SPLITS), task.seed % N_SPLITS)
    error = fit_task(task, data).predict(data.X_test) - data.y_test
    return {"rmse": float(np.sqrt(np.mean(error**2)))}


def divided(data: datasets.Dataset, split: int) -> datasets.Dataset:
    """Put training and test rows together and divide them at random, as many in each as before.

    Parameters
    ----------
    data
        A sample.
    split
        Which division.

    Returns
    -------
    Dataset
        The same rows.
    """
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    order = np.random.default_rng(split).permutation(len(y))
    train, test = np.split(order, [len(data.y_train)])
    return datasets.Dataset(data.name, X[train], y[train], X[test], y[test], None, data.feature_names)


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out mean (standard deviation) over splits, sample by sample, and then over the samples' means.

    Parameters
    ----------
    rows
        Rows of `tasks`.
    scale
        What the tasks were reduced by.

    Returns
    -------
    str
        Markdown.
    """
    errors = _errors(rows, scale)
    columns = {method: errors[i] for i, method in enumerate(METHODS)} | {_DIFFERENCE: errors[0] - errors[1]}
    lines = [f"| sample | {' | '.join(columns)} |", "|---|" + "--:|" * len(columns)]
    for sample in range(errors.shape[1]):
        lines.append(_line(str(sample), [values[sample] for values in columns.values()]))
    lines.append(_line("means of the samples", [values.mean(axis=1) for values in columns.values()]))
    printed = {cell.method: cell for cell in read_printed() if (cell.data, cell.metric) == (DATA, "rmse")}
    gap = printed[METHODS[0]].mean - printed[METHODS[1]].mean
    lines.append(f"| printed | {' | '.join(text(printed[method]) for method in METHODS)} | {gap:.2f} |")
    return "\n".join(lines) + "\n"


def _errors(rows: Iterable[Row], scale: Scale) -> np.ndarray:
    """Root mean squared errors by method, sample and split; NaN where there is no row."""
    known = {row[:4]: row.value for row in rows if row.metric == "rmse"}
    values = np.array([known.get(task.key, np.nan) for task in tasks(scale)])
    shape = (min(N_SAMPLES, scale.n_seeds), min(N_SPLITS, scale.n_seeds), len(METHODS))
    return values.reshape(shape).transpose(2, 0, 1)


def _line(name: str, columns: Iterable[np.ndarray]) -> str:
    cells = (f"{values.mean():.2f} ({values.std(ddof=1):.2f})" for values in columns)
    return f"| {name} | {' | '.join(cells)} |"
