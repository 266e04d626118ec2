"""Evidence on what the printed DIWP is: whether scales and shifts of inputs were learned, intervals without noise.

The code of Aitchison, Yang & Ober (2021) learns them on UCI data; the paper does not say. Two draws a step instead of
ten, so that several fits can be made.
"""

from collections.abc import Callable, Iterable

from cadlag import datasets
from cadlag.papers.loria2025.evidence.cells import cell_of, fitted_scores
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import read_printed, text
from cadlag.papers.loria2025.versions import PUBLISHED, UCI
from cadlag.rows import Row, Task

NAME = "evidence-diwp"
TITLE = "DIWP with two draws a step, with learned scales and shifts of the inputs and without"
N_SPLITS = 2
DATA = ("sim10d", *UCI)
_METRICS = {"rmse": "RMSE", "mae": "MAE", "coverage": "coverage (%)", "coverage_function": "without noise (%)"}
_FEW = PUBLISHED["DIWP"].having(n_samples=2)
_VERSIONS = {"inputs as they are": _FEW, "scales and shifts learned": _FEW.having(learn_inputs=True)}


def tasks(scale: Scale) -> list[Task]:
    """Return the fits."""
    return [
        scale.task(version.method, version.configuration(data), data, seed)
        for seed in range(min(N_SPLITS, scale.n_seeds))
        for version in _VERSIONS.values()
        for data in DATA
    ]


def evaluate(task: Task, load: Callable[[str, int], datasets.Dataset]) -> dict[str, float]:
    """Fit, and score errors and intervals.

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
    return fitted_scores(task, load(task.data, task.seed))


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out mean (standard deviation) over splits beside the printed numbers.

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
    printed = {(cell.data, cell.metric): cell for cell in read_printed() if cell.method == "DIWP"}
    lines = ["| data | " + " | ".join(["", *_METRICS.values()]) + " |", "|---|---|" + "--:|" * len(_METRICS)]
    for data in DATA:
        known = [text(printed[data, metric]) if (data, metric) in printed else "–" for metric in _METRICS]
        lines.append(f"| {data} | printed | {' | '.join(known)} |")
        for label, version in _VERSIONS.items():
            key = scale.task(version.method, version.configuration(data), data).key[:3]
            cells = [text(cell_of(rows, key, "DIWP", metric)) for metric in _METRICS]
            lines.append(f"| {data} | ours, {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
