"""Evidence on what the printed NNGP is: one kernel map or two, its noise, and its intervals with noise or without.

The printed coverages of NNGP in ten dimensions and on UCI data are near 65 %. Intervals of the function alone, without
the noise of an observation, would give such numbers. In one and two dimensions printed errors and coverages are larger
than those of the likeliest noise; a noise that is a given share of the variance of y shows what would make them so.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from cadlag import datasets
from cadlag.papers.loria2025.evidence.cells import cell_of, fitted_scores
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import read_printed, text
from cadlag.papers.loria2025.versions import PUBLISHED, SIMULATIONS, UCI
from cadlag.rows import Row, Task

NAME = "evidence-nngp"
TITLE = "NNGP with one kernel map or two, 90 % intervals with the noise and without"
SHARE = "noise_share"  # of the variance of y, in place of the likeliest noise
_ONE_MAP = PUBLISHED["NNGP"].having(n_maps=1)
_VERSIONS = {
    "two maps": PUBLISHED["NNGP"],
    "one map": _ONE_MAP,
    "one map, noise a quarter of the variance": replace(_ONE_MAP.having(**{SHARE: 0.25}), data=("sim1d", "sim2d")),
}
_METRICS = {"rmse": "RMSE", "coverage": "coverage (%)", "coverage_function": "without noise (%)"}


def tasks(scale: Scale) -> list[Task]:
    """Return the fits."""
    return [
        scale.task(version.method, version.configuration(data), data, seed)
        for seed in range(scale.n_seeds)
        for version in _VERSIONS.values()
        for data in version.data
    ]


def evaluate(task: Task, load: Callable[[str, int], datasets.Dataset]) -> dict[str, float]:
    """Fit, and count the observations in intervals of observations and of the function.

    Parameters
    ----------
    task
        What to fit.
    load
        The function from name and seed to data.

    Returns
    -------
    dict
        `rmse`, `mae`, `coverage` and `coverage_function`, as shares.
    """
    data = load(task.data, task.seed)
    return fitted_scores(_with_noise(task, data.y_train), data)


def _with_noise(task: Task, y: np.ndarray) -> Task:
    """The task with a share of the variance turned into a variance."""
    settings = dict(task.configuration)
    share = settings.pop(SHARE, None)
    return (
        task
        if share is None
        else Task(task.data, task.method, {**settings, "noise_variance": share * float(np.var(y))}, task.seed)
    )


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out mean (standard deviation) over seeds beside the printed numbers.

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
    rows = list(rows)
    printed = {cell[1:3] + cell[5:6]: cell for cell in read_printed() if cell.depth is None}
    lines = ["| data | " + " | ".join(["", *_METRICS.values()]) + " |", "|---|---|" + "--:|" * len(_METRICS)]
    for data in (*SIMULATIONS, *UCI):
        known = [printed[data, "NNGP", metric] for metric in ("rmse", "coverage")]
        lines.append(f"| {data} | printed | {text(known[0])} | {text(known[1])} | – |")
        for label, version in ((label, version) for label, version in _VERSIONS.items() if data in version.data):
            key = scale.task(version.method, version.configuration(data), data).key[:3]
            cells = [text(cell_of(rows, key, "NNGP", metric)) for metric in _METRICS]
            lines.append(f"| {data} | ours, {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
