"""Value and gradient of the likelihood beside `dpotrf` and `dpotri`, from 100 to 3000 rows.

Slopes are local: log of seconds by log of rows, from the size before. Two kernel maps, 8 random inputs and intercept.
"""

import math

import numpy as np

from benchmarks.data import noise
from benchmarks.report import Report, Settings
from benchmarks.timing import alternate, likelihood_tasks, ordinary_position
from cadlag.kernel_process.model import KernelProcess

SIZES = (100, 200, 400, 730, 1000, 1500, 2000, 3000)
_TASKS = ("value", "gradient", "dpotrf", "dpotrf+dpotri")


def run(settings: Settings) -> Report:
    """Measure."""
    report = Report("scaling", notes=["milliseconds are medians; no target"])
    report.header = ["rows", *(f"{name} ms" for name in _TASKS), "value/dpotrf", "gradient/both",
                     *(f"slope {name}" for name in _TASKS)]  # fmt: skip
    last: tuple[int, dict[str, float]] | None = None
    for n in settings.choose(SIZES, SIZES[:4]):
        medians = _measure(n, settings)
        slopes = [math.nan if last is None else _slope(last, n, medians, name) for name in _TASKS]
        report.rows.append([
            n, *(1e3 * medians[name] for name in _TASKS), medians["value"] / medians["dpotrf"],
            medians["gradient"] / medians["dpotrf+dpotri"], *slopes,
        ])  # fmt: skip
        last = n, medians
    return report


def _measure(n: int, settings: Settings) -> dict[str, float]:
    X, y = noise(n)
    model = KernelProcess(X, y, depth=2)
    n_rounds = int(np.clip(settings.choose(60_000, 6_000) // n, 9, 200))
    seconds = alternate(likelihood_tasks(model, ordinary_position(model)), n_rounds)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def _slope(last: tuple[int, dict[str, float]], n: int, medians: dict[str, float], name: str) -> float:
    return math.log(medians[name] / last[1][name]) / math.log(n / last[0])
