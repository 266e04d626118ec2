"""Evidence on what a replicate in ten dimensions is: twenty new samples, or twenty splits of a single one.

The paper speaks of splits. If one sample of 600 rows was divided again and again, the mean over the divisions keeps
what is peculiar to the sample, and the printed standard deviation does not show it. So some samples are divided several
times each: how much do their means differ?
"""

from collections.abc import Iterable

import numpy as np

from cadlag import datasets
from cadlag.metrics import rmse
from cadlag.papers.experiment import Load, fit_task
from cadlag.papers.loria2025.curves import Array
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import markdown, read_printed, text
from cadlag.papers.loria2025.versions import PUBLISHED
from cadlag.papers.rows import Row, Task

TITLE = "Errors in ten dimensions when one sample is divided again and again, six times or (Dα-KP) twice"
DATA = "sim10d"
N_SAMPLES, N_SPLITS = 8, 6
METHODS = {"Dα-KP": 2, "GP MLE": N_SPLITS, "NNGP": N_SPLITS}  # how many splits of each sample
DIFFERENCES = (("Dα-KP", "GP MLE"), ("GP MLE", "NNGP"))
_FIRST = 100  # samples that no table has


def tasks(scale: Scale) -> list[Task]:
    """Return the fits; the seed of one is its sample times `N_SPLITS`, plus its split."""
    return [
        _task(method, sample, split, scale)
        for sample in range(_n_samples(scale))
        for method, n_splits in METHODS.items()
        for split in range(min(n_splits, scale.n_seeds))
    ]


def _task(method: str, sample: int, split: int, scale: Scale) -> Task:
    return scale.task(PUBLISHED[method], DATA, sample * N_SPLITS + split)


def _n_samples(scale: Scale) -> int:
    return min(N_SAMPLES, scale.n_seeds)


def evaluate(task: Task, load: Load) -> dict[str, float]:
    """Fit to one split of one sample."""
    data = divided(load(task.data, _FIRST + task.seed // N_SPLITS), task.seed % N_SPLITS)
    return {"rmse": rmse(data.y_test, fit_task(task, data).predict(data.X_test))}


def divided(data: datasets.Dataset, split: int) -> datasets.Dataset:
    """Put training and test rows together and divide them at random, as many in each as before."""
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    order = np.random.default_rng(split).permutation(len(y))
    train, test = np.split(order, [len(data.y_train)])
    return datasets.Dataset(data.name, X[train], y[train], X[test], y[test], None, data.feature_names)


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out mean (standard deviation) over splits, sample by sample, and then over the samples' means."""
    errors = _errors(rows, scale)
    columns = errors | {f"{one} less {other}": errors[one] - errors[other] for one, other in DIFFERENCES}
    lines = [
        [str(sample), *(_text(values[sample]) for values in columns.values())] for sample in range(_n_samples(scale))
    ]
    lines.append(["means of the samples", *(_text(_means(values)) for values in columns.values())])
    cells = (cell for cell in read_printed() if (cell.data, cell.metric, cell.depth) == (DATA, "rmse", None))
    printed = {cell.method: cell for cell in cells}
    gaps = [f"{printed[one].mean - printed[other].mean:.2f}" for one, other in DIFFERENCES]
    lines.append(["printed", *(text(printed[method]) for method in METHODS), *gaps])
    return markdown(["sample", *columns], "|---|" + "--:|" * len(columns), lines)


def _errors(rows: Iterable[Row], scale: Scale) -> dict[str, Array]:
    """Root mean squared errors of each method by sample and split; NaN where there is no row."""
    known = {row[:4]: row.value for row in rows if row.metric == "rmse"}
    samples, splits = range(_n_samples(scale)), range(N_SPLITS)
    return {
        method: np.array([[known.get(_task(method, i, j, scale).key, np.nan) for j in splits] for i in samples])
        for method in METHODS
    }


def _means(values: Array) -> Array:
    """Return the mean of each sample over the splits that it has; NaN where it has none."""
    return np.array([row[~np.isnan(row)].mean() if not np.all(np.isnan(row)) else np.nan for row in values])


def _text(values: Array) -> str:
    known = values[~np.isnan(values)]
    return f"{known.mean():.2f} ({known.std(ddof=1):.2f})" if len(known) > 1 else "–"
