"""Evidence on what α does in one dimension: the model's doing, or that of a sampler that hardly moves near α = 2.

Figure 6 of the paper shows one replicate. Here are all of them, with the paper's sampler and with chains that agree.
"""

from collections.abc import Iterable

import numpy as np

from cadlag.metrics import coverage, rmse
from cadlag.papers.experiment import Load, fit_task
from cadlag.papers.loria2025.curves import grid, rise
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import by_fit, found_of, markdown
from cadlag.papers.loria2025.versions import ALPHAS, CONVERGED, PUBLISHED
from cadlag.papers.rows import Row, Task
from cadlag.posterior import RHAT_LIMIT

TITLE = "Dα-KP in one dimension against α: mean (standard deviation) over the fits, and the median (largest) R-hat"
DATA = "sim1d"
SAMPLERS = {"paper's": PUBLISHED["Dα-KP"], "converged": CONVERGED["Dα-KP"]}
COLUMNS = {"rmse": "RMSE", "coverage": "coverage (%)", "rise": "10 to 90 % of the jump in", "band": "25-75 % band"}
_UNITS = {"coverage": 100.0}
_RHAT = "worst_rhat"


def tasks(scale: Scale) -> list[Task]:
    """Return the fits, seed by seed, so that an early table shows every α."""
    return [
        scale.task(version.having(alpha=alpha), DATA, seed)
        for seed in range(scale.n_seeds)
        for alpha in ALPHAS
        for version in SAMPLERS.values()
    ]


def evaluate(task: Task, load: Load) -> dict[str, float]:
    """Fit, score at the test inputs, and measure the jump and the band on a fine grid."""
    data = load(task.data, task.seed)
    model = fit_task(task, data)
    at_test, fine = (model.predict_distribution(X) for X in (data.X_test, grid()[:, None]))
    lower, upper = fine.quantile((0.25, 0.75)).T
    return {
        "rmse": rmse(data.y_test, at_test.median),
        "coverage": coverage(data.y_test, *at_test.interval(0.9).T),
        "rise": rise(fine.median),
        "band": float(np.mean(upper - lower)),
        _RHAT: float(model.diagnostics_[_RHAT]),
    }


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out both samplers for every α."""
    known, lines = by_fit(rows), []
    for alpha in ALPHAS:
        for label, version in SAMPLERS.items():
            found = found_of(version.having(alpha=alpha), DATA, known, scale)
            values = {metric: list(found.get(metric, {}).values()) for metric in (*COLUMNS, _RHAT)}
            cells = [_text(values[name], _UNITS.get(name, 1.0)) for name in COLUMNS]
            rhat = values[_RHAT]
            spread = f"{np.median(rhat):.3f} ({max(rhat):.3f})" if rhat else "–"
            above = str(sum(r > RHAT_LIMIT for r in rhat)) if rhat else "–"
            lines.append([f"{alpha:g}", label, str(len(rhat)), *cells, spread, above])
    head = ["α", "sampler", "fits", *COLUMNS.values(), "R-hat", f"above {RHAT_LIMIT:g}"]
    return markdown(head, "|--:|---|--:|" + "--:|" * (len(COLUMNS) + 2), lines)


def _text(values: list[float], unit: float) -> str:
    if not values:
        return "–"
    deviation = f"{unit * np.std(values, ddof=1):.2g}" if len(values) > 1 else "–"
    return f"{unit * np.mean(values):.3g} ({deviation})"
