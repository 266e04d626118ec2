"""Jumps off the origin: every method on every scenario, scored near the jumps and away from them.

    python -m benchmarks.jumps --rows FILE [--seeds N] [--methods a,b] [--scenarios a,b] [--jobs N] [--quick] [--table]

Scenarios are in `jump_data`, methods in `rivals`. Scores are against noisy responses: rmse of the predictive mean,
crps, and share and mean width of central 90 % intervals at the test inputs near a jump, within one cell, and away from
all. Places, on the line: the mean distance of a jump from the nearest place found, the share of jumps with one within a
cell, how many were found, and whether the network's 90 % interval of the only jump contains it. Seconds are wall clock
of fit and prediction on one core. Last, the network's CRPS beside that of the best other method of each scenario, over
the replicates that both have: near it where it is above by at most 5 % or two standard errors of the paired difference,
a rule that stood before any result. A killed run is resumed by the same command; rows made by an older version of a
method are not made anew.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.jump_data import SCENARIOS, Problem, make_problem
from benchmarks.rivals import METHODS, Fit
from cadlag import metrics
from cadlag.papers import experiment
from cadlag.papers.rows import Row, RowFile, Task, table

N_SEEDS = 20
PREDICTED = (
    "rmse", "crps", "crps_near", "coverage_near", "coverage_away", "width_near", "width_away", "rhat", "seconds",
)  # fmt: skip
PLACED = ("place_error", "place_recall", "n_places", "interval_covers", "interval_width", "seconds")
NEAR, FEWEST = 0.05, 3  # of the best method's CRPS; replicates that tell anything
_RANGE = 2.0  # error of a jump where no place was found at all: the length of the line


def predictive_scores(fit: Fit, problem: Problem) -> dict[str, float]:
    """Of the law at the test inputs."""
    if fit.law is None:
        return {}
    y, crps, (low, high) = problem.y_test, fit.law.crps(problem.y_test), fit.law.interval(0.9).T
    scores = {"rmse": metrics.rmse(y, fit.law.mean), "crps": float(crps.mean())}
    for where, rows in (("near", problem.near), ("away", ~problem.near)):
        if not rows.any():
            continue
        scores |= {
            f"rmse_{where}": metrics.rmse(y[rows], fit.law.mean[rows]),
            f"crps_{where}": float(crps[rows].mean()),
            f"coverage_{where}": metrics.coverage(y[rows], low[rows], high[rows]),
            f"width_{where}": metrics.interval_width(low[rows], high[rows]),
        }
    return scores


def place_scores(fit: Fit, problem: Problem) -> dict[str, float]:
    """Of the places of the jumps on the line."""
    scores: dict[str, float] = {}
    if fit.places is not None:
        gaps = np.abs(problem.places[:, None] - fit.places).min(axis=1, initial=_RANGE)
        recall = float((gaps <= problem.cell).mean())
        scores = {"place_error": float(gaps.mean()), "place_recall": recall, "n_places": float(len(fit.places))}
    if fit.interval is not None:
        low, high = fit.interval
        scores |= {"interval_covers": float(low <= problem.places[0] <= high), "interval_width": high - low}
    return scores


def evaluate(task: Task) -> dict[str, float]:
    """All scores of one method on one replicate."""
    problem, method = make_problem(task.data, task.seed), METHODS[task.method]
    with threadpool_limits(1):
        method.prepare(problem, task.configuration)
        started = time.perf_counter()
        fit = method.fit(problem, task.seed, task.configuration)
        seconds = time.perf_counter() - started
        return {**predictive_scores(fit, problem), **place_scores(fit, problem), **fit.notes, "seconds": seconds}


def make_tasks(scenarios: Sequence[str], methods: Sequence[str], n_seeds: int, quick: bool = False) -> list[Task]:
    """What is to be done, seed by seed; methods that give places alone only where there are any."""
    return [
        Task(scenario, name, METHODS[name].quick if quick else METHODS[name].settings, seed)
        for seed in range(n_seeds)
        for scenario in scenarios
        for name in methods
        if SCENARIOS[scenario].has_places or not METHODS[name].places_only
    ]


def tables(rows: Iterable[Row]) -> str:
    """Mean (standard deviation) over seeds: predictions, then places."""
    known = list(rows)
    parts = []
    for title, columns in (("Predictions", PREDICTED), ("Places of the jumps", PLACED)):
        groups = {row[:2] for row in known if row.metric == columns[0]}
        if chosen := [row for row in known if row[:2] in groups]:
            parts.append(f"{title}\n\n{table(chosen, metrics=columns)}")
    return "\n\n".join(parts)


def _crps(rows: Iterable[Row]) -> dict[tuple[str, str], dict[int, float]]:
    """By scenario and method, of each replicate."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row.metric == "crps":
            found.setdefault((row.data, row.method), {})[row.seed] = row.value
    return found


def beside_the_best(rows: Iterable[Row], own: str = "network") -> str:
    """A line a scenario: the best method, the CRPS of both, their ratio, and whether the network is near."""
    crps, lines, n_near = _crps(rows), [], 0
    scenarios = [name for name in SCENARIOS if (name, own) in crps]
    for name in scenarios:
        mine = crps[name, own]
        others = {method: values for (data, method), values in crps.items() if data == name and method != own}
        common = {method: sorted(mine.keys() & values.keys()) for method, values in others.items()}
        excess = {
            method: np.array([mine[seed] - others[method][seed] for seed in seeds])
            for method, seeds in common.items()
            if len(seeds) >= FEWEST
        }
        if not excess:
            continue
        best = max(excess, key=lambda method: float(excess[method].mean()))
        difference, n = excess[best], len(excess[best])
        theirs = float(np.mean([others[best][seed] for seed in common[best]]))
        error = float(difference.std(ddof=1)) / n**0.5
        near = difference.mean() <= max(NEAR * theirs, 2.0 * error)
        n_near += near
        lines.append(
            f"{name:10}{best:16}{n:3}{theirs + difference.mean():9.4f}{theirs:9.4f}"
            f"{1.0 + difference.mean() / theirs:8.3f}{difference.mean():9.4f} ({error:.4f})"
            f"  {'near or ahead' if near else 'BEHIND'}"
        )
    head = "data      best other        n  network    other   ratio  difference (standard error)"
    return "\n".join([head, *lines, f"near or ahead in {n_near} of {len(lines)}"])


def _names(text: str, known: Iterable[str], noun: str) -> list[str]:
    """The names in a list with commas, all of them known."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no {noun} {', '.join(unknown)}; choose from {', '.join(known)}")
    return names


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jumps", description="Jumps off the origin.")
    parser.add_argument("--rows", required=True, help="the file that gains a line for each finished fit")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="replicates of each scenario")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of %(default)s")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="some of %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    parser.add_argument("--quick", action="store_true", help="short runs that rehearse but do not measure")
    parser.add_argument("--table", action="store_true", help="print the tables of what is there, and run nothing")
    arguments = parser.parse_args(argv)
    try:
        arguments.methods = _names(arguments.methods, METHODS, "method")
        arguments.scenarios = _names(arguments.scenarios, SCENARIOS, "scenario")
    except ValueError as error:
        parser.error(str(error))
    return arguments


def _present(methods: Sequence[str]) -> list[str]:
    """The methods that can be run here; says why not of the others."""
    reasons = {name: METHODS[name].missing() for name in methods}
    for name, reason in reasons.items():
        if reason:
            print(f"{name} is skipped: {reason}")
    return [name for name, reason in reasons.items() if not reason]


def _run(arguments: Any) -> int:
    """Do what is left; 1 if some of it failed."""
    tasks = make_tasks(arguments.scenarios, _present(arguments.methods), arguments.seeds, arguments.quick)
    try:
        experiment.run(tasks, arguments.rows, evaluate, arguments.jobs)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is left, and print the tables."""
    arguments = _arguments(argv)
    code = 0 if arguments.table else _run(arguments)
    asked = {task.key for task in make_tasks(arguments.scenarios, arguments.methods, arguments.seeds, arguments.quick)}
    rows = [row for row in RowFile(arguments.rows).read() if row[:4] in asked]
    print(f"{tables(rows)}\n\n{beside_the_best(rows)}")
    return code


if __name__ == "__main__":
    # Worker processes import what they run by name, and this copy is called __main__.
    sys.exit(importlib.import_module("benchmarks.jumps").main())
