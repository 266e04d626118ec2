"""Evidence on what the printed NNGP is: one kernel map or two, its noise, and its intervals with noise or without.

The printed coverages of NNGP in ten dimensions and on UCI data are near 65 %. Intervals of the function alone, without
the noise of an observation, would give such numbers. In one and two dimensions printed errors and coverages are larger
than those of the likeliest noise; a noise that is a given share of the variance of y shows what would make them so.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cadlag import datasets
from cadlag.papers.loria2025.evidence import comparison
from cadlag.papers.loria2025.versions import PUBLISHED
from cadlag.papers.rows import Task

NAME = "evidence-nngp"
TITLE = "NNGP with one kernel map or two, 90 % intervals with the noise and without"
SHARE = "noise_share"  # of the variance of y, in place of the likeliest noise
_ONE_MAP = PUBLISHED["NNGP"].having(n_maps=1)
_COMPARISON = comparison.Comparison(
    "NNGP",
    {
        "two maps": PUBLISHED["NNGP"],
        "one map": _ONE_MAP,
        "one map, noise a quarter of the variance": replace(_ONE_MAP.having(**{SHARE: 0.25}), data=("sim1d", "sim2d")),
    },
    {"rmse": "RMSE", "coverage": "coverage (%)", "coverage_function": "without noise (%)"},
    n_seeds=20,
)
tasks, to_markdown = _COMPARISON.tasks, _COMPARISON.to_markdown


def evaluate(task: Task, load: Callable[[str, int], datasets.Dataset]) -> dict[str, float]:
    """Fit and score, with a share of the variance turned into a variance."""
    settings = dict(task.configuration)
    share = settings.pop(SHARE, None)
    if share is not None:
        noise_variance = share * float(np.var(load(task.data, task.seed).y_train))
        task = Task(task.data, task.method, {**settings, "noise_variance": noise_variance}, task.seed)
    return comparison.evaluate(task, load)
