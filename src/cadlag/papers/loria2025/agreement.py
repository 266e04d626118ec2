"""Which fits are the posterior's: for every line of the tables, fits that warned and their worst R-hat.

The error of a fit whose chains sit in different places is an error of predictions all the same, but not the model's.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from cadlag.papers.loria2025.plan import TABLES, Scale
from cadlag.papers.loria2025.tables import LABELS, NAMES, by_fit, found_of, markdown
from cadlag.papers.loria2025.versions import SIMULATIONS, UCI, VERSIONS, version_of
from cadlag.papers.rows import Row

TITLE = "Fits that warned that their chains do not agree (or searches did not end), and the median of the worst R-hat"
_DATA = (*SIMULATIONS, *UCI)
_RHAT = "diag_worst_rhat"


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out how many fits warned."""
    known, lines = by_fit(rows), []
    depths = [(method, depth) for table in TABLES.values() for method in table.methods for depth in table.depths]
    for method, depth in dict.fromkeys(depths):
        for name in VERSIONS:
            version = version_of(name, method, depth)
            cells = [_cell(found_of(version, data, known, scale), range(scale.n_seeds)) for data in _DATA]
            if any(cell != "–" for cell in cells):
                label = method if depth is None else f"{method}, L = {depth}"
                lines.append([label, LABELS[name], *cells])
    return markdown(["method", "", *(NAMES[data] for data in _DATA)], "|---|---|" + "--:|" * len(_DATA), lines)


def _cell(metrics: Mapping[str, Mapping[int, float]], seeds: Iterable[int]) -> str:
    """Return "3 of 20 (1.02)", without R-hat where it was a search, or a dash where there is no fit."""
    warned, worst = (metrics.get(name, {}) for name in ("warned", _RHAT))
    if not (done := [seed for seed in seeds if seed in warned]):
        return "–"
    count = f"{sum(warned[seed] > 0 for seed in done)} of {len(done)}"
    rhat = np.array([worst.get(seed, np.nan) for seed in done])
    return count if np.all(np.isnan(rhat)) else f"{count} ({np.nanmedian(rhat):.2f})"
