"""Value and gradient of the likelihood where each row asks its neighbours, beside the full covariance.

Targets are ratios: a gradient takes three times as long as a value, four times where units are integrated out. The
first rows say from how many rows on neighbours are cheaper (`DENSE_UP_TO` of the regressor is larger, as the full
covariance is the exact law). Eight random inputs and intercept; the network's bulk is the process of both orders.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.data import noise
from benchmarks.report import Figure, Report, Settings
from benchmarks.timing import alternate, ordinary_position, seconds_of
from cadlag.kernel_process.estimator import N_NEIGHBORS
from cadlag.kernel_process.model import KernelProcess
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.kernel_process.rough import RoughProcess
from cadlag.linalg.low_rank import Columns

FEW, MANY, COUNTS, N_UNITS = (250, 500, 1000, 2000), 7373, (20, 40, 80), 20
CASES = {
    "order 1": (KernelProcess, {}),
    "order 1, depth 2": (KernelProcess, {"depth": 2}),
    "order 2": (KernelProcess, {"order": 2}),
    "order 0": (KernelProcess, {"order": 0}),
    "both orders": (RoughProcess, {}),
}


def run(settings: Settings) -> Report:
    """Measure."""
    report = Report("neighbors", notes=["milliseconds are least ones of a few"])
    report.header = ["process", "rows", "neighbours", "value ms", "gradient ms", "of units: value", "gradient",
                     "gradient/value", "of units", "dense gradient ms"]  # fmt: skip
    for n in settings.choose(FEW, FEW[:1]):
        for name in ("order 1", "both orders"):
            report.rows.append(_row(name, n, N_NEIGHBORS, settings, dense=True))
    n = settings.choose(MANY, 500)
    for name in CASES:
        for m in COUNTS if name in ("order 1", "both orders") else COUNTS[:1]:
            report.rows.append(_row(name, n, m, settings, dense=False))
            report.figures += _figures(f"{name}, {m} neighbours", report.rows[-1])
    return report


def _figures(what: str, row: list) -> list[Figure]:
    return [
        Figure(f"gradient/value, {what}", row[7], "<=", 3.0),
        Figure(f"gradient/value of units, {what}", row[8], "<=", 4.0),
    ]


def _row(name: str, n: int, m: int, settings: Settings, dense: bool) -> list:
    X, y = noise(n)
    kind, options = CASES[name]
    model = kind(X, y, neighbors=Neighbors.find(X, np.zeros(X.shape[1]), m), **options)
    rng = np.random.default_rng(0)
    units = Columns(np.sign(rng.standard_normal((n, N_UNITS))), rng.uniform(0.1, 1.0, N_UNITS))
    at, full = ordinary_position(model), kind(X, y, **options)
    tasks: dict[str, Callable[[], object]] = {
        "value": lambda: model.log_likelihood(at),
        "gradient": lambda: model.log_likelihood_gradient(at),
        "units value": lambda: model.log_likelihood(at, 0.0, units),
        "units gradient": lambda: model.log_likelihood_gradient(at, 0.0, units),
    }
    if dense:
        tasks["dense"] = lambda: full.log_likelihood_gradient(at)
    timed = {task: (lambda call=call: seconds_of(call)) for task, call in tasks.items()}
    least = {task: float(values.min()) for task, values in alternate(timed, settings.choose(7, 2)).items()}
    value, gradient, with_units, its_gradient, *rest = least.values()
    milliseconds = [1e3 * seconds for seconds in (value, gradient, with_units, its_gradient)]
    dense_ms = 1e3 * rest[0] if rest else float("nan")
    return [name, n, m, *milliseconds, gradient / value, its_gradient / with_units, dense_ms]
