"""Import and first fit in fresh processes, against the imports of the dependencies alone.

`import cadlag` must be nearly free; the estimator may cost little more than those of numpy, scipy, numba, scikit-learn,
joblib, threadpoolctl and arviz-stats that it loads, imported in one go; no drawing library may come along; and a second
process that fits must find every compiled loop in the cache that the first one wrote.
"""

import tempfile

import numpy as np

from benchmarks.report import Figure, Report, Settings, summarise
from benchmarks.timing import fresh_process

IMPORT_TARGET, ESTIMATOR_TARGET = 0.2, 1.3
_TIMED = """
import json, sys, time
started = time.perf_counter()
{code}
print(json.dumps([time.perf_counter() - started, "matplotlib" in sys.modules]))
"""
_IMPORTS = {
    "import cadlag": "import cadlag",
    "from cadlag import StableKernelRegressor": "from cadlag import StableKernelRegressor",
}
_ALONE = "dependencies in one go"
_DEPENDENCIES = (
    "numpy", "scipy.linalg", "numba", "sklearn.base", "sklearn.utils", "sklearn.utils.validation",
    "sklearn.exceptions", "joblib", "threadpoolctl", "arviz_stats.base",
)  # fmt: skip
_LOADED = """
import json, sys
from cadlag import StableKernelRegressor
print(json.dumps([name for name in {names!r} if name in sys.modules]))
"""
_FIT = """
import json, sys, time, warnings
import numpy as np
from numba.core.dispatcher import Dispatcher
from cadlag import StableKernelRegressor
warnings.simplefilter("ignore")
x = np.linspace(-1.0, 1.0, 12)[:, None]
started = time.perf_counter()
model = StableKernelRegressor(depth=2, n_warmup=50, n_draws=20, n_chains=2, random_state=0)
model.fit(x, 5.0 * (x[:, 0] > 0.0))
model.predict_interval(x)
seconds = time.perf_counter() - started
modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "cadlag"]
loops = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}.values()
count = lambda which: sum(sum(getattr(f.stats, which).values()) for f in loops)
missed = sorted(f.__name__ for f in loops if sum(f.stats.cache_misses.values()))
print(json.dumps([seconds, count("cache_hits"), count("cache_misses"), missed]))
"""


def run(settings: Settings) -> Report:
    """Measure."""
    report = Report("startup", header=["in a fresh process", "lower quartile s", "median s", "upper quartile s"])
    loaded = fresh_process(_LOADED.format(names=_DEPENDENCIES))
    imports = {**_IMPORTS, _ALONE: f"import {', '.join(loaded)}"}
    seconds, drawn = _time_imports(imports, settings.choose(7, 3))
    report.notes.append(f"the estimator loads {', '.join(loaded)}, and these are what it is compared with")
    for name, values in seconds.items():
        median, quartiles = summarise(values)
        low, high = quartiles or (median, median)
        report.rows.append([name, low, median, high])
    alone, estimator, dependencies = (seconds[name] for name in imports)
    report.figures.append(Figure("import cadlag, seconds", *_spread(alone, "<", IMPORT_TARGET)))
    ratios = estimator / dependencies
    report.figures.append(Figure("estimator / its dependencies", *_spread(ratios, "<=", ESTIMATOR_TARGET)))
    blame = "the dependencies alone import it too" if drawn[_ALONE] else ""
    came_along = float(sum(drawn[name] for name in _IMPORTS))
    report.figures.append(Figure("imports that load matplotlib", came_along, "<=", 0.0, note=blame))
    _fit_twice(report)
    return report


def _spread(values: np.ndarray, sense: str, target: float) -> tuple:
    median, quartiles = summarise(values)
    return median, sense, target, quartiles


def _time_imports(imports: dict[str, str], n_rounds: int) -> tuple[dict[str, np.ndarray], dict[str, bool]]:
    """Seconds of each import in turn, a first round not counted; and with which of them matplotlib came along."""
    seconds: dict[str, list[float]] = {name: [] for name in imports}
    drawn: dict[str, bool] = {}
    for _ in range(n_rounds + 1):
        for name, code in imports.items():
            taken, drawn[name] = fresh_process(_TIMED.format(code=code))
            seconds[name].append(taken)
    return {name: np.array(values[1:]) for name, values in seconds.items()}, drawn


def _fit_twice(report: Report) -> None:
    """The same fit in two processes that share an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        first, second = (fresh_process(_FIT, NUMBA_CACHE_DIR=cache) for _ in range(2))
    for label, (seconds, _, _, _) in (("first fit, compiling", first), ("second fit, cached", second)):
        report.rows.append([label, seconds, seconds, seconds])
    note = f"{first[2]} in the first, {second[1]} found by the second"
    missed = f"; compiled again: {', '.join(second[3])}" if second[3] else ""
    report.figures.append(
        Figure("loops compiled by the second process", float(second[2]), "<=", 0.0, note=note + missed)
    )
    if not first[2] or not second[1]:
        report.notes.append("the count of compiled loops is not to be trusted: none were seen in the first process")
