"""The part of README.md that rows decide: every table, and where ours are far from the printed numbers.

It stands between two marks; what is written by hand around them stays.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from cadlag import storage
from cadlag.papers.loria2025 import agreement, pairs, tables
from cadlag.papers.loria2025.evidence import EVIDENCE
from cadlag.papers.loria2025.plan import FULL, TABLES
from cadlag.papers.rows import Row

START, END = "<!-- tables: written by the command, do not edit -->", "<!-- end of the tables -->"
_FAR = 2.0


def update(path: Path, rows: Iterable[Row], of_evidence: Mapping[str, Iterable[Row]] | None = None) -> None:
    """Write the tables into a file anew."""
    before, found, rest = path.read_text(encoding="utf-8").partition(START)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"{path} has no lines {START!r} and {END!r}; put them where the tables should stand.")
    content = f"{before}{START}\n\n{text(list(rows), of_evidence)}\n{END}{after}"
    with storage.replacing(str(path)) as stream:
        stream.write(content.encode())


def text(rows: list[Row], of_evidence: Mapping[str, Iterable[Row]] | None = None) -> str:
    """Return all tables and the list of differences, as Markdown."""
    entries = {name: tables.cells(name, rows, FULL) for name in TABLES}
    parts = [f"### {title(name)}\n\n{tables.to_markdown(name, entries[name])}" for name in TABLES]
    gaps = [gap for name in TABLES for gap in tables.gaps(entries[name])]
    found = of_evidence or {}
    shown = [
        f"### {module.TITLE}\n\n{module.to_markdown(found.get(name, ()), FULL)}" for name, module in EVIDENCE.items()
    ]
    own = [f"### {module.TITLE}\n\n{module.to_markdown(rows, FULL)}" for module in (agreement, pairs)]
    return "\n".join([*parts, *own, _differences(gaps), *shown])


def title(name: str) -> str:
    """Return the heading of a table."""
    return f"{name.capitalize().replace('-', ' ')}: {TABLES[name].title}"


def _differences(gaps: list[tables.Gap]) -> str:
    """List what is more than two standard errors away."""
    far = sorted((gap for gap in gaps if abs(gap.z) > _FAR), key=lambda gap: -abs(gap.z))
    head = (
        f"### Ours with the paper's settings against the printed numbers\n\n{len(gaps)} numbers can be compared, "
        f"{len(gaps) - len(far)} within {_FAR:g} standard errors (of both). The others:\n\n"
        "| table | data | method | metric | printed | ours | standard errors |\n|---|---|---|---|--:|--:|--:|\n"
    )
    return head + "".join(
        f"| {printed.table} | {printed.data} | {printed.method if printed.depth is None else f'L = {printed.depth}'} | "
        f"{printed.metric} | {tables.text(printed)} | {tables.text(ours)} | {z:+.1f} |\n"
        for printed, ours, z in far
    )
