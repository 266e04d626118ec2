"""What the evidence on two methods has in common: scores of a fit, and their mean over the rows of a configuration."""

from collections.abc import Iterable

import numpy as np

from cadlag import datasets
from cadlag.experiment import fit_task
from cadlag.metrics import coverage, mae, rmse
from cadlag.papers.loria2025.tables import Cell
from cadlag.rows import Row, Task


def fitted_scores(task: Task, data: datasets.Dataset) -> dict[str, float]:
    """Fit, and count the observations in intervals of observations and of the function.

    Parameters
    ----------
    task
        What to fit.
    data
        Training and test rows.

    Returns
    -------
    dict
        `rmse`, `mae`, `coverage` and `coverage_function`, as shares.
    """
    model = fit_task(task, data)
    point = model.predict(data.X_test)
    kinds = {"coverage": "observation", "coverage_function": "function"}
    intervals = {name: model.predict_interval(data.X_test, 0.9, kind=kind).T for name, kind in kinds.items()}
    return {
        "rmse": rmse(data.y_test, point),
        "mae": mae(data.y_test, point),
        **{name: coverage(data.y_test, *ends) for name, ends in intervals.items()},
    }


def cell_of(rows: Iterable[Row], key: tuple[str, str, str], method: str, metric: str) -> Cell:
    """Return what rows of one data set, method and configuration have of a metric, coverages in percent.

    Parameters
    ----------
    rows
        Rows of any tasks.
    key
        Data, method and configuration of a row.
    method
        The method as printed.
    metric
        Name of the metric.

    Returns
    -------
    Cell
        With NaN where no row is.
    """
    values = np.array([row.value for row in rows if row[:3] == key and row.metric == metric])
    values = values * (100 if metric.startswith("coverage") else 1)
    mean = float(np.mean(values)) if len(values) else float("nan")
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Cell("", key[0], method, None, "", metric, mean, deviation, len(values))
