"""Rows (data, method, configuration, seed, metric, value, seconds, version) that survive a kill, and tables of them.

A row file gains one line for each finished task. Tables are pure functions of the rows.
"""

import ast
import csv
import hashlib
import json
import math
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cadlag import __version__, storage
from cadlag.methods import METHODS

TABLE_METRICS = (
    "rmse", "mae", "crps", "coverage", "width", "diag_worst_rhat", "diag_worst_ess_bulk", "warned", "fit_cpu_seconds",
)  # fmt: skip


class Row(NamedTuple):
    """One metric of one finished task; `configuration` is the canonical JSON of the estimator's keyword arguments."""

    data: str
    method: str
    configuration: str
    seed: int
    metric: str
    value: float
    seconds: float
    version: str


@dataclass(frozen=True)
class Task:
    """One fit to be done; equal when data, method, seed and the canonical JSON of the configuration are.

    Parameters
    ----------
    data
        A name that `datasets.load_dataset` knows.
    method
        A name in `methods.METHODS`.
    configuration
        Keyword arguments of the estimator, without `random_state`.
    seed
        The replicate or split, and the estimator's `random_state`.
    """

    data: str
    method: str
    configuration: Mapping[str, Any] = field(compare=False)
    seed: int
    canonical: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Fix the canonical form of configuration and seed."""
        object.__setattr__(self, "seed", operator.index(self.seed))
        object.__setattr__(self, "canonical", _canonical(self.configuration))

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells this task from others in a row file."""
        return self.data, self.method, self.canonical, self.seed

    def __str__(self) -> str:
        """Return the words that progress and errors use."""
        return f"{self.data} {self.method} {self.canonical} seed {self.seed}"


def _canonical(configuration: Mapping[str, Any]) -> str:
    """Return the one JSON text of a configuration."""
    try:
        return json.dumps(dict(configuration), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The configuration {configuration!r} is not plain JSON ({error}); use strings, numbers, lists and dicts."
        ) from error


class RowFile:
    """The rows of finished tasks, one line a task, which several processes may extend at the same time.

    Parameters
    ----------
    path
        The file; the first append creates it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = storage.RecordFile(path)

    def append(self, task: Task, values: Mapping[str, float], seconds: float) -> None:
        """Add the metrics (at least one) of a task that took so many seconds: all of them or, on failure, none."""
        # JSON has no number that is not finite, so those are written as words.
        words = {name: float(x) if math.isfinite(x) else repr(float(x)) for name, x in values.items()}
        identity = dict(zip(Row._fields, task.key))
        self._file.append({**identity, "metrics": words, "seconds": float(seconds), "version": version_of(task.method)})

    def read(self) -> list[Row]:
        """Return every row in the order of the file; none if there is no file, and a task's latest line only."""
        latest = {key_of(record, self._file.path): record for record in self._file.read()}
        return [
            Row._make([*key, metric, float(value), record["seconds"], record["version"]])
            for key, record in latest.items()
            for metric, value in record["metrics"].items()
        ]


def key_of(record: Mapping[str, Any], path: str) -> tuple[Any, ...]:
    """Return what tells the fit of a record from others, or say that its file holds something else."""
    if missing := {*Row._fields[:4], "metrics", "seconds", "version"} - record.keys():
        raise ValueError(f"{path} holds no rows of fits, which have {min(missing)!r}; choose another file.")
    return tuple(record[name] for name in Row._fields[:4])


@cache
def version_of(method: str) -> str:
    """Return the version, and a mark of the sources that a method runs through, which a row is made by."""
    digest = hashlib.sha256()
    for path in sources_of(method):
        digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"


def sources_of(method: str) -> list[Path]:
    """Return the files of the package that a method imports, at any remove."""
    root = Path(__file__).parents[1]
    if method not in METHODS:
        return sorted(root.rglob("*.py"))
    found: set[Path] = set()
    waiting = [METHODS[method].__module__]
    while waiting:
        module = waiting.pop()
        path = root.parent / Path(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if path.exists() and path not in found:
            found.add(path)
            waiting += _imports(path)
    return sorted(found)


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, and names from packages that may be modules too."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("cadlag."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cadlag":
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def table(
    rows: Iterable[Row], by: Sequence[str] = ("data", "method"), metrics: Sequence[str] = TABLE_METRICS,
    published: Iterable[Mapping[str, str]] = (),
) -> str:  # fmt: skip
    """Lay out mean (standard deviation) over seeds as plain text, whatever the order of the rows."""
    if unknown := set(by) - set(Row._fields):
        raise ValueError(f"A row has no field {min(unknown)!r}; choose from {', '.join(Row._fields)}.")
    groups: dict[tuple[str, ...], dict[str, dict[int, float]]] = {}
    for row in rows:
        group = tuple(str(getattr(row, name)) for name in by)
        values = groups.setdefault(group, {}).setdefault(row.metric, {})
        if row.seed in values:
            raise ValueError(f"{' '.join(group)} has seed {row.seed} more than once; add 'configuration' to `by`.")
        values[row.seed] = row.value
    lines = {group: _cells(values, metrics) for group, values in groups.items()}
    known = {dict(zip(by, group)).get("data") for group in groups}
    for figure in published:
        if figure["data"] in known and figure["metric"] in metrics:
            group = tuple({**figure, "method": f"{figure['method']}, published"}.get(name, "") for name in by)
            cells = lines.setdefault(group, ["-"] * (1 + len(metrics)))
            cells[1 + list(metrics).index(figure["metric"])] = f"{figure['mean']} ({figure['sd'] or '-'})"
    return _aligned([(*by, "n", *metrics), *((*group, *lines[group]) for group in sorted(lines))], n_left=len(by))


def read_published(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read figures as a paper prints them, such as those in papers/loria2025/printed.csv."""
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        figures = list(reader)
    if missing := {"data", "method", "metric", "mean", "sd"} - set(reader.fieldnames or ()):
        raise ValueError(f"{path} has no column {min(missing)!r}.")
    try:
        return [_in_our_units(figure) for figure in figures if figure["mean"]]
    except ValueError as error:
        raise ValueError(f"{path} has a coverage that is no number: {error}.") from error


def _in_our_units(figure: Mapping[str, str]) -> dict[str, str]:
    """Return a printed figure with coverage as a share, and its depth in the method's name."""
    method = f"{figure['method']}, L = {depth}" if (depth := figure.get("L")) else figure["method"]
    is_percent = figure["metric"] == "coverage"
    numbers = {k: f"{float(figure[k]) / 100:.4g}" for k in ("mean", "sd") if is_percent and figure[k]}
    return {**figure, "method": method, **numbers}


def _cells(values: Mapping[str, Mapping[int, float]], names: Sequence[str]) -> list[str]:
    """Return the number of seeds and mean (standard deviation) of each metric of a group."""
    n_seeds = len(set().union(*values.values()))
    return [str(n_seeds), *(_mean_and_deviation(values.get(name, {}), n_seeds) for name in names)]


def _mean_and_deviation(by_seed: Mapping[int, float], n_seeds: int) -> str:
    """Return "mean (sd)", with the number of seeds where some have no value."""
    values = [by_seed[seed] for seed in sorted(by_seed)]
    if not values:
        return "-"
    with np.errstate(invalid="ignore"):  # an R-hat may be infinite
        deviation = f"{np.std(values, ddof=1):.2g}" if len(values) > 1 else "-"
    return f"{np.mean(values):.4g} ({deviation})" + (f" [{len(values)}]" if len(values) < n_seeds else "")


def _aligned(lines: Sequence[Sequence[str]], n_left: int) -> str:
    """Pad the cells of each column to one width, the first columns to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  ".join(c.ljust(w) if i < n_left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )
