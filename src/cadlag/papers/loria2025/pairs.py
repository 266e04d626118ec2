"""Differences between two fits of the same replicate or split, which share its luck: far sharper than their means."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.tables import LABELS, NAMES, by_fit, read_printed
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


_TWO = Fit("published", "Dα-KP")
_PLAIN = [(Fit("published", "Dα-KP", depth), _TWO, data) for data in SIMULATIONS for depth in DEPTHS]
_DEEP = [
    (Fit("converged", "Dα-KP", depth), Fit("converged", "Dα-KP"), data) for data in SIMULATIONS for depth in DEPTHS
]
_METHODS = [
    (Fit("published", one), Fit("published", other), "sim10d")
    for one, other in (("Dα-KP", "GP MLE"), ("Dα-KP", "NNGP"), ("GP MLE", "NNGP"))
]
_CONVERGED = [(Fit("converged", "Dα-KP"), _TWO, data) for data in (*SIMULATIONS, *UCI)]
_NETWORK = [(Fit("best", "network"), Fit("best", "Dα-KP"), data) for data in (*SIMULATIONS, *UCI)]
PAIRS: list[tuple[Fit, Fit, str]] = [*_PLAIN, *_DEEP, *_METHODS, *_CONVERGED, *_NETWORK]


def to_markdown(rows: Iterable[Row], scale: Scale) -> str:
    """Lay out the pairs that have at least two replicates or splits in common."""
    known, printed = by_fit(rows), _printed()
    lines = ["| data | fit | less | printed | ours | n |", "|---|---|---|--:|--:|--:|"]
    for one, other, data in PAIRS:
        first, second = (_errors(fit, data, known, scale) for fit in (one, other))
        both = [seed for seed in range(scale.n_seeds) if seed in first and seed in second]
        if len(both) > 1:
            differences = np.array([first[seed] - second[seed] for seed in both])
            error = np.std(differences, ddof=1) / math.sqrt(len(both))
            values = f"{_gap(one, other, data, printed)} | {np.mean(differences):+.3f} ({error:.3f}) | {len(both)}"
            lines.append(f"| {NAMES[data]} | {one} | {other} | {values} |")
    return "\n".join(lines) + "\n"


def _errors(
    fit: Fit, data: str, known: Mapping[tuple[str, str, str], Mapping[str, Mapping[int, float]]], scale: Scale
) -> Mapping[int, float]:  # fmt: skip
    """Return root mean squared errors by seed."""
    version = version_of(*fit)
    return {} if version is None else known.get(scale.key(version, data), {}).get("rmse", {})


def _printed() -> dict[tuple[str, str, int | None], float]:
    """Return the printed errors by data, method and depth."""
    return {(cell.data, cell.method, cell.depth): cell.mean for cell in read_printed() if cell.metric == "rmse"}


def _gap(one: Fit, other: Fit, data: str, printed: Mapping[tuple[str, str, int | None], float]) -> str:
    """Return the difference of what is printed, or a dash."""
    if {one.version, other.version} != {"published"}:
        return "–"
    return f"{printed[data, one.method, one.depth] - printed[data, other.method, other.depth]:+.2f}"
