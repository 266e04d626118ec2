"""Durable experiments: a plan of fits, of which a killed run loses only those in flight.

A task is one fit: a method with its configuration on one replicate or split. Its metrics become rows, and the same
command picks up what is left.

    python -m cadlag.papers.experiment run PLAN --rows FILE [--jobs N] [--only data,...]
    python -m cadlag.papers.experiment table --rows FILE [--by data,method] [--metrics rmse,...] [--seeds N]

A plan is TOML, one `[[experiment]]` for each entry, or JSON, a list of such entries:

    [[experiment]]
    data = ["sim1d", "sim2d"]
    method = "kernel"
    seeds = 20                      # 0 to 19, or a list
    configuration = {alpha = 1.0}   # keyword arguments of the estimator
"""

import argparse
import importlib
import json
import numbers
import os
import sys
import threading
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import BrokenProcessPool
from sklearn.exceptions import ConvergenceWarning

from cadlag import datasets, metrics
from cadlag.methods import METHODS, whole_fits
from cadlag.papers.rows import TABLE_METRICS, Row, RowFile, Task, read_published, table
from cadlag.trust import ENSEMBLE, POSTERIOR, UNFINISHED

Load = Callable[[str, int], datasets.Dataset]

_VERDICTS = (POSTERIOR, ENSEMBLE, UNFINISHED)
_SECONDS_BETWEEN_LOOKS = 1.0


def evaluate_task(task: Task, load: Load = datasets.load_dataset) -> dict[str, float]:
    """Fit a task's estimator and score its predictive distribution at the test inputs."""
    data = load(task.data, task.seed)
    with warnings.catch_warnings(record=True) as caught:
        # By default Python shows a repeated warning once, and later fits would seem to have converged.
        warnings.simplefilter("always", ConvergenceWarning)
        start, cpu_start = time.perf_counter(), time.process_time()
        model = fit_task(task, data)
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


def fit_task(task: Task, data: datasets.Dataset) -> Any:
    """Return a task's estimator, fitted; its test inputs are given to an estimator whose settings ask for them."""
    model = datasets.lookup(METHODS, task.method, "method")(**task.configuration, random_state=task.seed)
    seen_beforehand = {"X_test": data.X_test} if getattr(model, "wants_test_inputs", False) else {}
    with whole_fits():
        return model.fit(data.X_train, data.y_train, **seen_beforehand)


def _count_unconverged(caught: Sequence[warnings.WarningMessage]) -> int:
    """Count the convergence warnings among those caught, and show the others after all."""
    others = [item for item in caught if not issubclass(item.category, ConvergenceWarning)]
    for item in others:
        warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    return len(caught) - len(others)


def _diagnostics(model: Any) -> dict[str, float]:
    """Return the numbers in a model's diagnostics; a verdict as one for each that there is, 1 for its own."""
    items = dict(getattr(model, "diagnostics_", None) or {})
    if "verdict" in items:
        items |= {f"verdict_{name}": items["verdict"] == name for name in _VERDICTS}
    return {f"diag_{name}": float(item) for name, item in items.items() if isinstance(item, numbers.Real)}


class FailedTasksError(RuntimeError):
    """Some tasks of a run raised or lost their process; what the others found is in the row file."""


def run(
    tasks: Iterable[Task],
    path: str | os.PathLike[str],
    evaluate: Callable[[Task], Mapping[str, float]] = evaluate_task,
    n_jobs: int = 1,
    progress: bool = True,
) -> list[Row]:
    """Do the tasks that a row file does not hold yet, adding each as it finishes.

    A task that raises is reported and left undone; the others go on, and FailedTasksError at the end names the first.
    """
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1, got {n_jobs}.")
    rows, wanted = RowFile(path), {task.key: task for task in tasks}
    done = {row[:4] for row in rows.read()}
    waiting = [task for key, task in wanted.items() if key not in done]
    if waiting:
        # A place that cannot be written should fail now, not after the first long fit.
        with open(path, "ab"):
            pass
    # No task is handed out before a process is free for it: a killed run should not leave more behind than it must.
    work = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch=n_jobs, return_as="generator_unordered")
    outcomes = work(delayed(_attempt)(evaluate, task, i, os.getpid()) for i, task in enumerate(waiting))
    failures, start = [], time.perf_counter()
    for n_told, (number, values, seconds, error) in enumerate(_until_a_worker_dies(outcomes), 1):
        if values is None:
            failures.append(f"{waiting[number]}: {error.strip().splitlines()[-1]}")
        else:
            rows.append(waiting[number], values, seconds)
        if progress:
            left = (time.perf_counter() - start) / n_told * (len(waiting) - n_told)
            outcome = f"failed\n{error}" if error else f"{seconds:.1f} s"
            _tell(f"[{n_told}/{len(waiting)}] {waiting[number]}: {outcome}; about {left / 60:.1f} min left")
    if failures:
        raise FailedTasksError(
            f"{len(failures)} tasks failed and will be tried again by the next run, first {failures[0]}"
        )
    return [row for row in rows.read() if row[:4] in wanted]


def _tell(line: str) -> None:
    """Print one line of progress; a terminal that has gone away is no reason to stop a run."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


Outcome = tuple[int, dict[str, float] | None, float, str]


def _until_a_worker_dies(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Pass outcomes on; what joblib raises when a process is gone becomes a sentence."""
    try:
        yield from outcomes
    except BrokenProcessPool as error:
        raise FailedTasksError(
            "A process that was fitting has died, perhaps for want of memory; the fits in flight are lost, and the "
            "same command goes on, with fewer --jobs if it was memory."
        ) from error


def _attempt(evaluate: Callable[[Task], Mapping[str, float]], task: Task, number: int, boss: int) -> Outcome:
    """Do one task: its number, its metrics or None, its seconds, and the traceback of what went wrong."""
    if os.getpid() != boss:
        _end_with(boss)
    start = time.perf_counter()
    try:
        values, error = dict(evaluate(task)), ""
    except Exception:
        values, error = None, traceback.format_exc()
    return number, values, time.perf_counter() - start, error


@cache
def _end_with(boss: int) -> None:
    """Let this worker end when the process that wants its results is gone, not when its fit is done."""

    def watch() -> None:
        while os.getppid() == boss:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    if sys.platform != "win32" and os.getppid() == boss:
        threading.Thread(target=watch, daemon=True).start()


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
        datasets.lookup(datasets.DATASETS, name, "dataset")
    datasets.lookup(METHODS, method, "method")
    numbers_of_seeds = range(seeds) if isinstance(seeds, int) else seeds
    return [Task(name, method, configuration or {}, seed) for name in names for seed in numbers_of_seeds]


def _parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m cadlag.papers.experiment", description="Run experiments, print tables."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="do what is left of a plan")
    runner.add_argument("plan", help="a .toml or .json file")
    runner.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    runner.add_argument("--only", help="names of data, separated by commas")
    tabler = commands.add_parser("table", help="print mean (standard deviation) over seeds")
    tabler.add_argument("--by", default="data,method", help="fields of a row, separated by commas")
    tabler.add_argument("--metrics", default=",".join(TABLE_METRICS), help="columns, separated by commas")
    tabler.add_argument(
        "--seeds", type=int, help="only the first so many seeds or splits, for means over the same ones"
    )
    tabler.add_argument("--published", help="a CSV file of printed figures to stand beside ours")
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
            rows = [row for row in rows if args.seeds is None or row.seed < args.seeds]
            published = read_published(args.published) if args.published else ()
            print(table(rows, args.by.split(","), args.metrics.split(","), published))
    except (ValueError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 2
    return 0


if __name__ == "__main__":
    # Worker processes import what they run by name, and this copy is called __main__.
    sys.exit(importlib.import_module("cadlag.papers.experiment").main())
