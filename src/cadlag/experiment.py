"""Durable experiments: rows (data, method, configuration, seed, metric, value, seconds, version) that survive a kill.

A task is one fit: a method with its configuration on one replicate or split. A row file gains one line for each
finished task, so a killed run loses only the fits in flight, and the same command picks up the rest. Tables are pure
functions of the rows.

    python -m cadlag.experiment run PLAN --rows FILE [--jobs N] [--only data,...]
    python -m cadlag.experiment table --rows FILE [--by data,method] [--metrics rmse,...]

A plan is TOML, one `[[experiment]]` for each entry, or JSON, a list of such entries:

    [[experiment]]
    data = ["sim1d", "sim2d"]
    method = "kernel"
    seeds = 20                      # 0 to 19, or a list
    configuration = {alpha = 1.0}   # keyword arguments of the estimator
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import math
import numbers
import operator
import os
import sys
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from cadlag import datasets, metrics, storage
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
        self._file.append({**identity, "metrics": words, "seconds": float(seconds), "version": _version()})

    def read(self) -> list[Row]:
        """Return every row in the order of the file; none if there is no file, and a task's latest line only."""
        latest = {tuple(record[name] for name in Row._fields[:4]): record for record in self._file.read()}
        return [
            Row._make([*key, metric, float(value), record["seconds"], record["version"]])
            for key, record in latest.items()
            for metric, value in record["metrics"].items()
        ]


def _version() -> str:
    """Return the installed version of the package."""
    try:
        return version("cadlag")
    except PackageNotFoundError:
        return "unknown"


def evaluate_task(task: Task) -> dict[str, float]:
    """Fit a task's estimator and score its predictive distribution at the test inputs.

    Parameters
    ----------
    task
        What to fit.

    Returns
    -------
    dict
        The metrics of `metrics.score`, `fit_seconds`, `fit_cpu_seconds` (of this process alone: all of a fit without
        workers), `predict_seconds`, `warned` (1 after a ConvergenceWarning) and every number in the model's
        `diagnostics_` as `diag_...`.
    """
    data = datasets.load_dataset(task.data, task.seed)
    model = _estimator(task.method)(**task.configuration, random_state=task.seed)
    with warnings.catch_warnings(record=True) as caught:
        # By default Python shows a repeated warning once, and later fits would seem to have converged.
        warnings.simplefilter("always", ConvergenceWarning)
        start, cpu_start = time.perf_counter(), time.process_time()
        model.fit(data.X_train, data.y_train)
        fitted, cpu_seconds = time.perf_counter(), time.process_time() - cpu_start
        predictive = model.predict_distribution(data.X_test)
        predicted = time.perf_counter()
    return {
        **metrics.score(predictive, data.y_test),
        "fit_seconds": fitted - start,
        "fit_cpu_seconds": cpu_seconds,
        "predict_seconds": predicted - fitted,
        "warned": float(_count_unconverged(caught) > 0),
        **_diagnostics(model),
    }


def _estimator(method: str) -> Callable[..., Any]:
    """Return the estimator class of a method."""
    if method not in METHODS:
        raise ValueError(f"There is no method {method!r}; choose one of {', '.join(METHODS)}.")
    return METHODS[method]


def _count_unconverged(caught: Sequence[warnings.WarningMessage]) -> int:
    """Count the convergence warnings among those caught, and show the others after all."""
    others = [item for item in caught if not issubclass(item.category, ConvergenceWarning)]
    for item in others:
        warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    return len(caught) - len(others)


def _diagnostics(model: Any) -> dict[str, float]:
    """Return the numbers in a model's diagnostics."""
    items = dict(getattr(model, "diagnostics_", None) or {})
    return {f"diag_{name}": float(item) for name, item in items.items() if isinstance(item, numbers.Real)}


def run(
    tasks: Iterable[Task],
    path: str | os.PathLike[str],
    evaluate: Callable[[Task], Mapping[str, float]] = evaluate_task,
    n_jobs: int = 1,
    progress: bool = True,
) -> list[Row]:
    """Do the tasks that a row file does not hold yet, adding each as it finishes.

    A task that raises is reported and left undone; the others go on, and a RuntimeError at the end names the first.

    Parameters
    ----------
    tasks
        What to do; repetitions count once.
    path
        The row file.
    evaluate
        The function from task to metrics.
    n_jobs
        How many processes work at the same time.
    progress
        Whether to tell standard error about each finished task and the time left.

    Returns
    -------
    list of Row
        The rows of these tasks, from this run and earlier ones.
    """
    rows, wanted = RowFile(path), {task.key: task for task in tasks}
    done = {row[:4] for row in rows.read()}
    waiting = [task for key, task in wanted.items() if key not in done]
    # A place that cannot be written should fail now, not after the first long fit.
    with open(path, "ab"):
        pass
    work = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    outcomes = work(delayed(_attempt)(evaluate, task, i) for i, task in enumerate(waiting))
    failures, start = [], time.perf_counter()
    for n_told, (number, values, seconds, error) in enumerate(outcomes, 1):
        if values is None:
            failures.append(f"{waiting[number]}: {error.strip().splitlines()[-1]}")
        else:
            rows.append(waiting[number], values, seconds)
        if progress:
            left = (time.perf_counter() - start) / n_told * (len(waiting) - n_told)
            _tell(
                f"[{n_told}/{len(waiting)}] {waiting[number]}",
                f"failed\n{error}" if error else f"{seconds:.1f} s",
                left,
            )
    if failures:
        raise RuntimeError(f"{len(failures)} tasks failed and will be tried again by the next run, first {failures[0]}")
    return [row for row in rows.read() if row[:4] in wanted]


def _tell(place: str, outcome: str, seconds_left: float) -> None:
    """Print one line of progress; a terminal that has gone away is no reason to stop a run."""
    with suppress(OSError):
        print(f"{place}: {outcome}; about {seconds_left / 60:.1f} min left", file=sys.stderr, flush=True)


def _attempt(
    evaluate: Callable[[Task], Mapping[str, float]], task: Task, number: int
) -> tuple[int, dict[str, float] | None, float, str]:
    """Do one task: its number, its metrics or None, its seconds, and the traceback of what went wrong."""
    start = time.perf_counter()
    try:
        values, error = dict(evaluate(task)), ""
    except Exception:
        values, error = None, traceback.format_exc()
    return number, values, time.perf_counter() - start, error


def table(
    rows: Iterable[Row], by: Sequence[str] = ("data", "method"), metrics: Sequence[str] = TABLE_METRICS,
    published: Iterable[Mapping[str, str]] = (),
) -> str:  # fmt: skip
    """Lay out mean (standard deviation) over seeds as plain text, whatever the order of the rows.

    Parameters
    ----------
    rows
        What `RowFile.read` returns.
    by
        The fields of a row whose values make the lines of the table.
    metrics
        The columns.
    published
        Figures from elsewhere (data, method, metric, mean, sd), on lines of their own for the same data.

    Returns
    -------
    str
        A header and a line for each group, aligned; n is the number of seeds.
    """
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
    """Read figures from a CSV file with the columns data, method, metric, mean, sd."""
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        figures = list(reader)
    if missing := {"data", "method", "metric", "mean", "sd"} - set(reader.fieldnames or ()):
        raise ValueError(f"{path} has no column {min(missing)!r}.")
    return figures


def _cells(values: Mapping[str, Mapping[int, float]], names: Sequence[str]) -> list[str]:
    """Return the number of seeds and mean (standard deviation) of each metric of a group."""
    n_seeds = len(set().union(*values.values()))
    return [str(n_seeds), *(_mean_and_deviation(values.get(name, {}), n_seeds) for name in names)]


def _mean_and_deviation(by_seed: Mapping[int, float], n_seeds: int) -> str:
    """Return "mean (sd)", with the number of seeds where some have no value."""
    values = [by_seed[seed] for seed in sorted(by_seed)]
    if not values:
        return "-"
    deviation = f"{np.std(values, ddof=1):.2g}" if len(values) > 1 else "-"
    return f"{np.mean(values):.4g} ({deviation})" + (f" [{len(values)}]" if len(values) < n_seeds else "")


def _aligned(lines: Sequence[Sequence[str]], n_left: int) -> str:
    """Pad the cells of each column to one width, the first columns to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  ".join(c.ljust(w) if i < n_left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )


def read_plan(path: str | os.PathLike[str]) -> list[Task]:
    """Read the tasks of a `.toml` or `.json` plan, seed by seed, so that an early table shows every method."""
    with open(path, "rb") as stream:
        try:
            plan = tomllib.load(stream) if os.fspath(path).endswith(".toml") else json.load(stream)
            entries = plan["experiment"] if isinstance(plan, dict) else plan
            tasks = [task for entry in entries for task in _tasks(**entry)]
        except (TypeError, LookupError, ValueError) as error:
            raise ValueError(f"{path} is not a plan of data, method, seeds, configuration: {error}") from error
    return sorted(tasks, key=lambda task: task.seed)


def _tasks(
    *, data: str | list[str], method: str, seeds: int | list[int], configuration: Mapping[str, Any] | None = None
) -> list[Task]:
    """Return the tasks of one entry of a plan."""
    for name in (names := [data] if isinstance(data, str) else data):
        if name not in datasets.DATASETS:
            raise ValueError(f"There is no dataset {name!r}; choose one of {', '.join(datasets.DATASETS)}.")
    _estimator(method)
    numbers_of_seeds = range(seeds) if isinstance(seeds, int) else seeds
    return [Task(name, method, configuration or {}, seed) for name in names for seed in numbers_of_seeds]


def _parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(prog="python -m cadlag.experiment", description="Run experiments, print tables.")
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="do what is left of a plan")
    runner.add_argument("plan", help="a .toml or .json file")
    runner.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    runner.add_argument("--only", help="names of data, separated by commas")
    tabler = commands.add_parser("table", help="print mean (standard deviation) over seeds")
    tabler.add_argument("--by", default="data,method", help="fields of a row, separated by commas")
    tabler.add_argument("--metrics", default=",".join(TABLE_METRICS), help="columns, separated by commas")
    tabler.add_argument("--published", help="a CSV file of figures to stand beside ours")
    runner.add_argument("--rows", required=True, help="the row file")
    tabler.add_argument("--rows", required=True, action="append", help="a row file; may be given more than once")
    return parser


def _chosen(tasks: Sequence[Task], only: str | None) -> Sequence[Task]:
    """Keep the tasks on the named data."""
    names = only.split(",") if only else []
    if absent := set(names) - {task.data for task in tasks}:
        raise ValueError(f"The plan has nothing on {min(absent)!r}; correct --only.")
    return [task for task in tasks if not only or task.data in names]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1 when tasks failed, 2 on bad input."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "run":
            run(_chosen(read_plan(args.plan), args.only), args.rows, n_jobs=args.jobs)
        elif absent := [path for path in args.rows if not os.path.exists(path)]:
            raise FileNotFoundError(f"There is no row file {absent[0]}; `run` makes one.")
        else:
            rows = [row for path in args.rows for row in RowFile(path).read()]
            published = read_published(args.published) if args.published else ()
            print(table(rows, args.by.split(","), args.metrics.split(","), published))
    except (ValueError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 2
    return 0


if __name__ == "__main__":
    # Worker processes import what they run by name, and this copy is called __main__.
    sys.exit(importlib.import_module("cadlag.experiment").main())
