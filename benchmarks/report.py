"""Figures, their targets, and the tables they are printed in."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Settings:
    """What the command line said."""

    seeds: int | None = None
    quick: bool = False

    def n_seeds(self, full: int, quick: int = 2) -> int:
        """The number of seeds asked for, or the benchmark's own."""
        return self.seeds if self.seeds is not None else self.choose(full, quick)

    def choose(self, full: Any, quick: Any) -> Any:
        """One of two settings."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Figure:
    """A measured number with the target it should meet; `bound` is ">=" where the truth may be larger still."""

    what: str
    value: float
    sense: str = ""
    target: float = math.nan
    quartiles: tuple[float, float] | None = None
    bound: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        """OK if the target is shown to be met, MISSED if not, nothing without target."""
        met = {
            "<": self.value < self.target, "<=": self.value <= self.target, ">=": self.value >= self.target, "": None,
        }[self.sense]  # fmt: skip
        return "" if met is None else "OK" if met else "MISSED"

    def cells(self) -> list[str]:
        """As a row of the table of figures."""
        spread = f"{number(self.quartiles[0])} .. {number(self.quartiles[1])}" if self.quartiles else ""
        target = f"{self.sense} {number(self.target)}" if self.sense else ""
        return [self.what, self.bound + number(self.value), spread, target, self.verdict, self.note]


@dataclass
class Report:
    """What one benchmark found."""

    name: str
    figures: list[Figure] = field(default_factory=list)
    header: Sequence[str] = ()
    rows: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Details first, then the figures with their verdicts."""
        parts = [table(self.header, self.rows)] if self.rows else []
        if self.figures:
            header = ["figure", "measured", "quartiles", "target", "verdict", "note"]
            parts.append(table(header, [figure.cells() for figure in self.figures]))
        if self.notes:
            parts.append("\n".join(f"note: {note}" for note in self.notes))
        return "\n\n".join(parts)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        figures = [
            {
                "what": f.what, "value": _plain(f.value), "quartiles": [_plain(q) for q in f.quartiles or ()],
                "bound": f.bound, "sense": f.sense, "target": _plain(f.target), "verdict": f.verdict, "note": f.note,
            }
            for f in self.figures
        ]  # fmt: skip
        rows = [dict(zip(self.header, map(_plain, row))) for row in self.rows]
        return {"name": self.name, "figures": figures, "rows": rows, "notes": self.notes}


def _plain(value: Any) -> Any:
    """A number that JSON knows; what is not finite becomes null."""
    if isinstance(value, str):
        return value
    return float(value) if math.isfinite(value) else None


def number(value: Any) -> str:
    """Three significant digits, without an exponent where one can be avoided."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "inf"
    if isinstance(value, int | np.integer):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:#.3g}".rstrip(".")


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Aligned columns: the first to the left, the others to the right, empty ones left out."""
    cells = [list(header), *([number(value) for value in row] for row in rows)]
    kept = [j for j in range(len(header)) if any(row[j] for row in cells[1:])]
    widths = {j: max(len(row[j]) for row in cells) for j in kept}
    lines = ["  ".join(row[j].rjust(widths[j]) if j else row[j].ljust(widths[j]) for j in kept) for row in cells]
    return "\n".join(line.rstrip() for line in [lines[0], "-" * len(lines[0]), *lines[1:]])


def summarise(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Median and quartiles of what is a number."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan, None
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    return float(middle), (float(low), float(high)) if len(known) > 1 else None
