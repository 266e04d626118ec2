"""Some versions of one method beside what is printed of it: errors, and intervals with the noise and without."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cadlag import datasets
from cadlag.metrics import coverage, mae, rmse
from cadlag.papers.experiment import fit_task
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import Cell, read_printed, text
from cadlag.papers.loria2025.versions import Version
from cadlag.papers.rows import Row, Task


@dataclass(frozen=True)
class Comparison:
    """What is fitted, and its table.

    Attributes
    ----------
    method
        The method as printed.
    versions
        By label, each with its data.
    metrics
        Columns of the table, by name.
    n_seeds
        Replicates or splits of each fit.
    depths
        Numbers of kernel maps, None for the versions' own.
    """

    method: str
    versions: Mapping[str, Version]
    metrics: Mapping[str, str]
    n_seeds: int
    depths: tuple[int | None, ...] = (None,)

    def tasks(self, scale: Scale) -> list[Task]:
        """Return the fits."""
        return [
            scale.task(version.method, version.at(depth).configuration(data), data, seed)
            for seed in range(min(self.n_seeds, scale.n_seeds))
            for depth in self.depths
            for version in self.versions.values()
            for data in version.data
        ]

    def to_markdown(self, rows: Iterable[Row], scale: Scale) -> str:
        """Lay out mean (standard deviation) over seeds beside the printed numbers."""
        rows = list(rows)
        lines = [
            "| data | " + " | ".join(["", *self.metrics.values()]) + " |",
            "|---|---|" + "--:|" * len(self.metrics),
        ]
        for data in dict.fromkeys(data for version in self.versions.values() for data in version.data):
            for depth in self.depths:
                name = data if depth is None else f"{data}, L = {depth}"
                found = self._block(rows, data, depth, scale)
                lines += [f"| {name} | {label} | {' | '.join(values)} |" for label, values in found.items()]
        return "\n".join(lines) + "\n"

    def _block(self, rows: list[Row], data: str, depth: int | None, scale: Scale) -> dict[str, list[str]]:
        """Return what is printed for one data set and depth, and each version of ours, by label."""
        cells = (cell for cell in read_printed() if cell[1:4] == (data, self.method, depth))
        printed = {cell.metric: text(cell) for cell in cells}
        found = {"printed": [printed.get(metric, "–") for metric in self.metrics]}
        for label, version in self.versions.items():
            if data in version.data:
                key = scale.key(version.at(depth), data)
                found[f"ours, {label}"] = [text(self._cell(rows, key, metric)) for metric in self.metrics]
        return found

    def _cell(self, rows: Iterable[Row], key: tuple[str, str, str], metric: str) -> Cell:
        """Return mean and deviation of one metric, coverages in percent."""
        values = np.array([row.value for row in rows if row[:3] == key and row.metric == metric])
        values = values * (100 if metric.startswith("coverage") else 1)
        mean = float(np.mean(values)) if len(values) else float("nan")
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        return Cell("", key[0], self.method, None, "", metric, mean, deviation, len(values))


def evaluate(task: Task, load: Callable[[str, int], datasets.Dataset]) -> dict[str, float]:
    """Fit, and count the observations in intervals of observations and of the function."""
    data = load(task.data, task.seed)
    model = fit_task(task, data)
    point = model.predict(data.X_test)
    kinds = {"coverage": "observation", "coverage_function": "function"}
    intervals = {name: model.predict_interval(data.X_test, 0.9, kind=kind).T for name, kind in kinds.items()}
    return {
        "rmse": rmse(data.y_test, point),
        "mae": mae(data.y_test, point),
        **{name: coverage(data.y_test, *ends) for name, ends in intervals.items()},
    }
