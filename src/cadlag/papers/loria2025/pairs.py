"""Differences between two fits of the same replicate or split, which share its luck: far sharper than their means."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import LABELS, NAMES, by_fit, found_of, markdown, read_printed
from cadlag.papers.loria2025.versions import DEPTHS, SIMULATIONS, UCI, version_of
from cadlag.papers.rows import Row

TITLE = "RMSE of one fit less that of another on the same replicates or splits: mean (standard error)"


class Fit(NamedTuple):
    """A line of a table: a version's name, a method as printed, and a depth if it is not the version's own."""

    version: str
    method: str
    depth: int | None = None

    def __str__(self) -> str:
        """Return the words that the table uses."""
        name = self.method if self.depth is None else f"L = {self.depth}"
        return f"{name} ({LABELS[self.version].removeprefix('ours, ')})"


_DEEP = [
    (Fit(version, "Dα-KP", depth), Fit(version, "Dα-KP"), data)
    for version in ("published", "converged")
    for data in SIMULATIONS
    for depth in DEPTHS
]
_METHODS = [
    (Fit("published", one), Fit("published", other), "sim10d")
    for one, other in (("Dα-KP", "GP MLE"), ("Dα-KP", "NNGP"), ("GP MLE", "NNGP"))
]
_CONVERGED = [(Fit("converged", "Dα-KP"), Fit("published", "Dα-KP"), data) for data in (*SIMULATIONS, *UCI)]
_NETWORK = [(Fit("best", "network"), Fit("best", "Dα-KP"), data) for data in (*SIMULATIONS, *UCI)]
PAIRS: list[tuple[Fit, Fit, str]] = [*_DEEP, *_METHODS, *_CONVERGED, *_NETWORK]


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out the pairs that have at least two replicates or splits in common."""
    known, lines = by_fit(rows), []
    printed = {(cell.data, *cell[2:4]): cell.mean for cell in read_printed() if cell.metric == "rmse"}
    for one, other, data in PAIRS:
        first, second = (found_of(version_of(*fit), data, known, scale).get("rmse", {}) for fit in (one, other))
        both = [seed for seed in range(scale.n_seeds) if seed in first and seed in second]
        if len(both) > 1:
            differences = np.array([first[seed] - second[seed] for seed in both])
            error = np.std(differences, ddof=1) / math.sqrt(len(both))
            ours = f"{np.mean(differences):+.3f} ({error:.3f})"
            is_printed = one.version == other.version == "published"
            gap = f"{printed[data, *one[1:]] - printed[data, *other[1:]]:+.2f}" if is_printed else "–"
            lines.append([NAMES[data], str(one), str(other), gap, ours, str(len(both))])
    return markdown(["data", "fit", "less", "printed", "ours", "n"], "|---|---|---|--:|--:|--:|", lines)
