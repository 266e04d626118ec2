"""Tables: printed beside ours, mean (standard deviation) over replicates or splits, as pure functions of rows.

A cell of ours is the mean over all seeds that the rows hold; fewer than the paper's twenty are stated in the cell.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from cadlag import frames
from cadlag.papers.loria2025.plan import TABLES, Scale
from cadlag.papers.loria2025.versions import Version, version_of
from cadlag.papers.rows import Row

N_PRINTED = 20
PRINTED = "printed"
LABELS = {
    PRINTED: "printed",
    "published": "ours, paper's settings",
    "converged": "ours, converged",
    "best": "ours, best",
}
NAMES = {
    "sim1d": "1-d", "sim2d": "2-d", "sim10d": "10-d", "boston": "Boston", "energy": "Energy", "yacht": "Yacht",
    "rmse": "RMSE", "mae": "MAE", "coverage": "coverage", "fit_cpu_seconds": "CPU s",
}  # fmt: skip


Known = dict[tuple[str, str, str], dict[str, dict[int, float]]]


class Cell(NamedTuple):
    """One entry of a table; mean and sd are NaN where there is none, and n counts seeds."""

    table: str
    data: str
    method: str
    depth: int | None
    version: str
    metric: str
    mean: float
    sd: float
    n: int


def cells(name: str, rows: Iterable[Row], scale: Scale) -> list[Cell]:
    """Return the entries of one table: printed, and each version of ours that could be run."""
    table, known = TABLES[name], by_fit(rows)
    found = []
    for method in table.methods:
        for depth in table.depths:
            found += [cell for cell in read_printed() if cell[0] == name and cell[2:4] == (method, depth)]
            for version in table.versions:
                found += _ours(name, method, depth, version, known, scale)
    return found


def by_fit(rows: Iterable[Row]) -> Known:
    """Sort values of rows by the fit that they belong to, by metric and by seed."""
    groups: Known = {}
    for row in rows:
        groups.setdefault(row[:3], {}).setdefault(row.metric, {})[row.seed] = row.value
    return groups


def found_of(version: Version | None, data: str, known: Known, scale: Scale) -> dict[str, dict[int, float]]:
    """Return what is known of a version's fits to some data."""
    return {} if version is None else known.get(scale.key(version, data), {})


def _ours(name: str, method: str, depth: int | None, version_name: str, known: Known, scale: Scale) -> list[Cell]:
    """Return the entries of one line of ours."""
    version = version_of(version_name, method, depth)
    if version is None:
        return []
    found = []
    for data in (data for data in TABLES[name].data if data in version.data):
        for metric in TABLES[name].metrics:
            by_seed = found_of(version, data, known, scale).get(metric, {})
            values = [by_seed[seed] for seed in range(scale.n_seeds) if seed in by_seed]
            found.append(cell_of((name, data, method, depth, version_name, metric), values))
    return found


def cell_of(place: tuple[str, str, str, int | None, str, str], values: Iterable[float]) -> Cell:
    """Return an entry over seeds, coverages in percent; no deviation of fewer than two or where some are not finite."""
    numbers = np.array(list(values)) * (100 if place[-1].startswith("coverage") else 1)
    mean = float(np.mean(numbers)) if len(numbers) else math.nan
    sd = float(np.std(numbers, ddof=1)) if len(numbers) > 1 and np.all(np.isfinite(numbers)) else math.nan
    return Cell(*place, mean, sd, len(numbers))


def read_printed() -> list[Cell]:
    """Return the numbers that the paper prints."""
    text = (files("cadlag.papers.loria2025") / "printed.csv").read_text(encoding="utf-8")
    return [
        Cell(
            row["table"], row["data"], row["method"], int(row["L"]) if row["L"] else None, PRINTED, row["metric"],
            float(row["mean"] or "nan"), float(row["sd"] or "nan"), N_PRINTED,
        )
        for row in csv.DictReader(text.splitlines())
    ]  # fmt: skip


def to_csv(entries: Iterable[Cell]) -> str:
    """Lay out entries as CSV, one a line; nothing stands for no value."""
    rows = []
    for entry in entries:
        numbers = ["" if math.isnan(x) else f"{x:.6g}" for x in (entry.mean, entry.sd)]
        rows.append([*entry[:3], entry.depth or "", *entry[4:6], *numbers, entry.n])
    return frames.to_csv(Cell._fields, rows)


def markdown(head: Sequence[str], rule: str, lines: Iterable[Sequence[str]]) -> str:
    """Lay out a table below its head and the rule that aligns its columns."""
    first, *rest = (f"| {' | '.join(line)} |" for line in (head, *lines))
    return "\n".join([first, rule, *rest]) + "\n"


def to_markdown(name: str, entries: Sequence[Cell]) -> str:
    """Lay out one table as the paper does, with a line for each version of a method."""
    table = TABLES[name]
    columns = [(data, metric) for data in table.data for metric in table.metrics]
    one = len(table.metrics) == 1
    head = ["method", "", *(NAMES[data] if one else f"{NAMES[data]} {NAMES[metric]}" for data, metric in columns)]
    lines = {(entry.method, entry.depth, entry.version): {} for entry in entries}  # type: dict
    for entry in entries:
        lines[entry.method, entry.depth, entry.version][entry.data, entry.metric] = text(entry)
    body = [
        [method if depth is None else f"L = {depth}", LABELS[version], *(values.get(at, "–") for at in columns)]
        for (method, depth, version), values in lines.items()
        if version != PRINTED or any(value != "–" for value in values.values())
    ]
    return markdown(head, "| --- | --- |" + " --: |" * len(columns), body)


def text(entry: Cell) -> str:
    """Return "mean (sd)" with the sd to two digits, and the number of seeds where it is not the paper's."""
    if entry.n == 0 or (entry.version == PRINTED and math.isnan(entry.mean)):
        return "–"
    if entry.version == PRINTED:
        return f"{entry.mean:.2f} ({entry.sd:.2f})"
    if not math.isfinite(entry.mean):
        return f"not finite, n = {entry.n}"
    leading = entry.sd if entry.sd > 0 else abs(entry.mean) / 10
    decimals = min(4, max(0, 1 - math.floor(math.log10(leading)))) if leading > 0 else 2
    spread = "–" if math.isnan(entry.sd) else f"{entry.sd:.{decimals}f}"
    return f"{entry.mean:.{decimals}f} ({spread})" + (f", n = {entry.n}" if entry.n < N_PRINTED else "")


class Gap(NamedTuple):
    """A printed number, ours with the paper's settings, and their difference in standard errors of both."""

    printed: Cell
    ours: Cell
    z: float


def gaps(entries: Sequence[Cell]) -> list[Gap]:
    """Return how far ours with the paper's settings are from the printed numbers, CPU seconds left out."""
    ours = {entry[:4] + entry[5:6]: entry for entry in entries if entry.version == "published" and entry.n > 1}
    found = []
    for printed in (entry for entry in entries if entry.version == PRINTED and entry.metric != "fit_cpu_seconds"):
        own = ours.get(printed[:4] + printed[5:6])
        if own is not None and math.isfinite(own.mean) and not math.isnan(printed.mean):
            error = math.hypot(printed.sd / math.sqrt(N_PRINTED), own.sd / math.sqrt(own.n))
            found.append(Gap(printed, own, (own.mean - printed.mean) / error))
    return found
