"""Mean and standard deviation of one metric over the rows of one configuration."""

from collections.abc import Iterable

import numpy as np

from cadlag.papers.loria2025.tables import Cell
from cadlag.rows import Row


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
