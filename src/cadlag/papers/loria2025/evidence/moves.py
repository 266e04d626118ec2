"""Evidence on the published sampler of Dα-KP: how often each unknown moves after the warm-up, and what that is worth.

Algorithms 1-3 propose each scale from its prior and keep it where the proposal is refused. An unknown that moved in no
iteration has the value that the warm-up happened to end with, and averages over the draws do not average over it.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cadlag.papers.experiment import Load, fit_task
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import by_fit, found_of, markdown
from cadlag.papers.loria2025.versions import PUBLISHED
from cadlag.papers.rows import Row, Task

TITLE = "How often the paper's sampler moves in its 2,000 draws: median (least, most) over the fits"
N_SEEDS = {"sim1d": 5, "sim2d": 5, "sim10d": 5, "boston": 2, "energy": 3, "yacht": 5}
COLUMNS = {
    "noise_moves": "noise variance, moves",
    "noise_ess": "effective size",
    "least_moves": "slowest scale, moves",
    "least_ess": "effective size",
}
_NOISE = "noise_variance"


def tasks(scale: Scale) -> list[Task]:
    """Return the fits."""
    return [
        scale.task(PUBLISHED["Dα-KP"], data, seed)
        for data, n_seeds in N_SEEDS.items()
        for seed in range(min(n_seeds, scale.n_seeds))
    ]


def evaluate(task: Task, load: Load) -> dict[str, float]:
    """Fit, and count moves."""
    posterior = fit_task(task, load(task.data, task.seed)).posterior_
    table = posterior.summary()
    sizes = dict(zip(table["parameter"], table["ess_bulk"], strict=True))
    draws = posterior.scalars()
    slowest = min(draws.keys() - {_NOISE, "log_likelihood"}, key=lambda name: (sizes[name], name))
    return {
        "noise_moves": float(n_moves(draws[_NOISE])),
        "noise_ess": float(sizes[_NOISE]),
        "least_moves": float(n_moves(draws[slowest])),
        "least_ess": float(sizes[slowest]),
    }


def n_moves(draws: NDArray[np.float64]) -> int:
    """Return how many draws of the chains (rows) differ from the one before."""
    return int(np.count_nonzero(np.diff(draws, axis=1)))


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out the median and the range over seeds."""
    known, lines = by_fit(rows), []
    for data, n_seeds in N_SEEDS.items():
        found = found_of(PUBLISHED["Dα-KP"], data, known, scale)
        done = [seed for seed in range(min(n_seeds, scale.n_seeds)) if seed in found.get("noise_moves", {})]
        lines.append([data, str(len(done)), *(_text([found[metric][seed] for seed in done]) for metric in COLUMNS)])
    return markdown(["data", "fits", *COLUMNS.values()], "|---|--:|" + "--:|" * len(COLUMNS), lines)


def _text(values: list[float]) -> str:
    if not values:
        return "–"
    median, least, most = (
        f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in (np.median(values), min(values), max(values))
    )
    return f"{median} ({least}, {most})"
