"""What is fitted for which table: data × methods × versions × seeds, all of it data.

`FULL` is the paper's size. `QUICK` is everything made small (few seeds, few draws, few rows); its tasks never share a
row file with those of `FULL`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from cadlag import datasets
from cadlag.papers.experiment import Load
from cadlag.papers.loria2025.versions import DEPTHS, PUBLISHED, SIMULATIONS, UCI, VERSIONS, Version, version_of
from cadlag.papers.rows import Task

METHODS = (*PUBLISHED, "network")
PRIOR = "prior"  # stands for data where nothing is fitted


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes
    ----------
    title
        What it shows.
    data
        Its data sets.
    metrics
        What is printed of each.
    methods
        Its lines, or its only method where lines are depths.
    depths
        Numbers of kernel maps, None for the methods' own.
    versions
        Names in `VERSIONS`: what is fitted for it.
    """

    title: str
    data: tuple[str, ...]
    metrics: tuple[str, ...]
    methods: tuple[str, ...] = METHODS
    depths: tuple[int | None, ...] = (None,)
    versions: tuple[str, ...] = tuple(VERSIONS)


# What the network or the defaults reach does not depend on the depth that the paper varies: tables 1 and 6 have it.
_OF_THE_PAPER = ("published", "converged")
TABLES: dict[str, Table] = {
    "table-1": Table("Out-of-sample errors in the simulations", SIMULATIONS, ("rmse", "mae")),
    "table-2": Table("Errors of Dα-KP against depth", SIMULATIONS, ("rmse", "mae"), ("Dα-KP",), DEPTHS, _OF_THE_PAPER),
    "table-3": Table("Out-of-sample errors on UCI data", UCI, ("rmse", "mae")),
    "table-5": Table("CPU seconds a fit in the simulations", SIMULATIONS, ("fit_cpu_seconds",)),
    "table-6": Table("Coverage (%) of 90 % intervals in the simulations", SIMULATIONS, ("coverage",)),
    "table-7": Table("CPU seconds a fit on UCI data", UCI, ("fit_cpu_seconds",)),
    "table-8": Table("Coverage (%) of 90 % intervals on UCI data", UCI, ("coverage",)),
}


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Attributes
    ----------
    n_seeds
        Replicates or splits of each fit.
    reduce
        The task that stands for a full one.
    load
        The function from name and seed to data.
    """

    n_seeds: int
    reduce: Callable[[Task], Task]
    load: Load

    def task(self, version: Version, data: str, seed: int = 0) -> Task:
        """Return a task of this scale."""
        return self.reduce(Task(data, version.method, version.configuration(data), seed))

    def key(self, version: Version, data: str) -> tuple[str, str, str]:
        """Return what the fits of a version to some data have in common in a row file: all but the seed."""
        return self.task(version, data).key[:3]


@dataclass(frozen=True)
class Part:
    """Which fits are to be done; None is all.

    Attributes
    ----------
    data
        Names of data.
    methods
        Names in the registry.
    versions
        Names in `VERSIONS`, for tables.
    seeds
        Replicates or splits.
    """

    data: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is nobody's name; seeds have no fixed range."""
        known = {
            "data": (*SIMULATIONS, *UCI, PRIOR),
            "methods": tuple({v.method: None for versions in VERSIONS.values() for v in versions.values()}),
            "versions": tuple(VERSIONS),
        }
        for field, names in known.items():
            if unknown := sorted(set(getattr(self, field) or ()) - set(names)):
                raise ValueError(f"There is no {unknown[0]!r} among the {field}; choose from {', '.join(names)}.")

    def has(self, task: Task) -> bool:
        """Return whether a task is in this part, whatever its version."""
        pairs = ((self.data, task.data), (self.methods, task.method), (self.seeds, task.seed))
        return all(names is None or name in names for names, name in pairs)


def table_tasks(names: Collection[str], scale: Scale, versions: tuple[str, ...] | None = None) -> list[Task]:
    """Return the fits behind some tables, seed by seed, so that an early table shows every method."""
    tasks = {
        (task := scale.task(version, data, seed)).key: task
        for seed in range(scale.n_seeds)
        for table in map(TABLES.__getitem__, names)
        for name in table.versions
        if versions is None or name in versions
        for method in table.methods
        for depth in table.depths
        for data in table.data
        if (version := version_of(name, method, depth)) and data in version.data
    }
    return list(tasks.values())


_QUICK_ROWS = 60
_FEW_DRAWS = {"n_draws": 60, "n_warmup": 100, "n_chains": 2}
_FEW_ROUNDS = {"n_draws": 300, "n_warmup": 150, "n_chains": 1}
_QUICK: dict[str, dict[str, Any]] = {
    "diwp": {"n_steps": 200, "n_samples": 2, "n_inducing": 30},
    "ml_gp": {"n_starts": 2},
    "shallow_stable": {"n_draws": 80, "n_warmup": 60, "n_chains": 1},
}


def _quicker(task: Task) -> Task:
    """Return a task with so few draws that only its shape is right."""
    if task.data == PRIOR:
        return Task(task.data, task.method, {**task.configuration, "n_samples": 1000}, task.seed)
    rounds = task.configuration.get("sampler") in ("independence", "tgp")
    fewer = _QUICK.get(task.method, _FEW_ROUNDS if rounds else _FEW_DRAWS)
    return Task(task.data, task.method, {**task.configuration, **fewer}, task.seed)


def _load_some(name: str, seed: int) -> datasets.Dataset:
    """Data with at most so many training rows: the first, which in ten dimensions and on UCI data are random."""
    data = datasets.load_dataset(name, seed)
    return replace(data, X_train=data.X_train[:_QUICK_ROWS], y_train=data.y_train[:_QUICK_ROWS])


FULL = Scale(20, lambda task: task, datasets.load_dataset)
QUICK = Scale(2, _quicker, _load_some)
