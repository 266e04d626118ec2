"""The paper redone: fits that are not in the rows yet, then tables (Markdown and CSV) and figures (PNG) from the rows.

The package holds the rows of the fits made so far, so tables and figures come at once. What is fitted again goes to row
files of its own: `OUT/rows` starts as a copy of the package's, `OUT/again` and `OUT/quick/rows` start empty. Tables and
figures of a quick run are in `OUT/quick`, where nobody takes them for the paper's size.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cadlag import storage
from cadlag.papers.experiment import FailedTasksError, evaluate_task, run
from cadlag.papers.loria2025 import curves, readme, tables
from cadlag.papers.loria2025.evidence import EVIDENCE
from cadlag.papers.loria2025.figures import FIGURES
from cadlag.papers.loria2025.plan import FULL, PRIOR, QUICK, TABLES, Part, Scale, table_tasks
from cadlag.papers.rows import Row, RowFile, Task, key_of

FITS = ("none", "missing", "again")
TABLE_ROWS = "tables"


def reproduce(
    out: str | os.PathLike[str], only: Sequence[str] | None = None, quick: bool = False, n_jobs: int = 1,
    rows: str | os.PathLike[str] | None = None, fits: str = "none", part: Part | None = None, progress: bool = True,
) -> list[str]:  # fmt: skip
    """Make the paper's tables and figures in a directory."""
    names, scale = chosen(only), QUICK if quick else FULL
    _check(fits, quick, n_jobs)
    waiting = wanted(names, scale, part or Part()) if quick or fits != "none" else {}
    if waiting and not any(waiting.values()):
        raise ValueError(f"No fit of {', '.join(names)} is in the part that was chosen; choose more data or seeds.")
    folder = _made(folder_of(out, quick))
    source = Path(rows) if rows is not None else _row_folder(folder, quick, fits)
    if not waiting and not source.is_dir():
        raise FileNotFoundError(f"There is no directory of row files {source}; give another one.")
    complaints, waiting = _without_absent_data(waiting, scale)
    failures: list[str] = []
    # Pictures need not wait for the fits of tables, which are many.
    for kind in sorted(waiting, key=lambda kind: kind == TABLE_ROWS):
        if kind == TABLE_ROWS:
            complaints += _write_figures(names, scale, source, folder)
        failures += _do_fits(kind, waiting[kind], scale, source, n_jobs, progress)
    _write_tables(names, scale, source, folder)
    if not waiting:
        complaints += [*_write_figures(names, scale, source, folder), *_undone(names, scale, source)]
    if progress:
        for complaint in complaints:
            print(complaint, file=sys.stderr)
    if failures:
        raise FailedTasksError(" ".join(failures))
    return complaints


def folder_of(out: str | os.PathLike[str], quick: bool) -> Path:
    """Return the directory of a run's tables and figures."""
    return Path(out) / "quick" if quick else Path(out)


def _check(fits: str, quick: bool, n_jobs: int) -> None:
    """Refuse settings that make no sense, before anything is written."""
    if fits not in FITS:
        raise ValueError(f"fits must be one of {', '.join(FITS)}, got {fits!r}.")
    if quick and fits != "none":
        raise ValueError("A quick run does all its fits itself: leave out either --quick or --missing and --again.")
    if n_jobs < 1:
        raise ValueError(f"The number of jobs must be at least 1, got {n_jobs}.")


def _made(folder: Path) -> Path:
    """Return a directory that can be written to, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made a directory ({error.strerror}); choose another one.") from error
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} is closed to you; choose another directory.")
    return folder


def chosen(only: Sequence[str] | None) -> list[str]:
    """Return the names of tables and figures, or say which there are."""
    known = [*TABLES, *FIGURES, *EVIDENCE]
    if only is not None and not only:
        raise ValueError(f"Nothing is chosen to be redone; choose from {', '.join(known)}, or leave the choice out.")
    if unknown := sorted(set(only or ()) - set(known)):
        raise ValueError(f"There is no {unknown[0]!r} to be redone; choose from {', '.join(known)}.")
    return [name for name in known if not only or name in only]


def _undone(names: Sequence[str], scale: Scale, source: Path) -> list[str]:
    """Say how many fits of the tables and of evidence the rows lack, if any."""
    complaints = []
    for kind, tasks in wanted(names, scale, Part()).items():
        if kind in (TABLE_ROWS, *EVIDENCE):
            done = {row[:4] for row in read_rows(source, kind)}
            n_done = sum(task.key in done for task in tasks)
            if n_done < len(tasks):
                complaints.append(f"{n_done} of {len(tasks)} fits of {kind} are in {source}.")
    return complaints


def _row_folder(out: Path, quick: bool, fits: str) -> Path:
    """Return the directory of row files: the package's, or one of this run, which gains what the package has."""
    if quick or fits == "again":
        return out / ("rows" if quick else "again")
    package, own = Path(str(files(__package__))) / "rows", out / "rows"
    if fits == "missing" and not own.exists():
        _copy_folder(package, own)
    if not own.exists():
        return package
    for path in sorted(package.glob("*.jsonl")):
        _copy_lacking([path], own / path.name, corrected=True)
    return own


def _copy_folder(source: Path, path: Path) -> None:
    """Copy a directory, aside first: a copy that is cut short would look like rows never made."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        shutil.copytree(source, aside)
        aside.rename(path)
    except OSError as error:
        if not path.is_dir():  # else another process was faster
            raise OSError(
                f"The rows of the package cannot be copied to {path}; free some space on its disk."
            ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def wanted(names: Sequence[str], scale: Scale, part: Part) -> dict[str, list[Task]]:
    """Return the fits behind tables and figures, by row file."""
    found = {TABLE_ROWS: table_tasks([name for name in names if name in TABLES], scale, part.versions)}
    for name in names:
        if name in FIGURES:
            for want in FIGURES[name].wants.values():
                found.setdefault(want.kind, []).append(want.task(scale))
    found |= {name: EVIDENCE[name].tasks(scale) for name in names if name in EVIDENCE}
    return {kind: [task for task in tasks if part.has(task)] for kind, tasks in found.items()}


def _without_absent_data(waiting: dict[str, list[Task]], scale: Scale) -> tuple[list[str], dict[str, list[Task]]]:
    """Drop the fits to data that cannot be had; return why they cannot, and the rest."""
    absent = {}
    for name in sorted({task.data for tasks in waiting.values() for task in tasks} - {PRIOR}):
        try:
            scale.load(name, 0)
        except FileNotFoundError as error:
            absent[name] = f"Left out what needs {name}: {error}"
    rest = {kind: [task for task in tasks if task.data not in absent] for kind, tasks in waiting.items()}
    return list(absent.values()), rest


def _do_fits(kind: str, tasks: Sequence[Task], scale: Scale, source: Path, n_jobs: int, progress: bool) -> list[str]:
    """Do the fits that a row file lacks; return what went wrong."""
    source.mkdir(parents=True, exist_ok=True)
    fixed = {TABLE_ROWS: evaluate_task, **{name: module.evaluate for name, module in EVIDENCE.items()}}
    evaluate = partial(fixed.get(kind) or partial(curves.evaluate, kind=kind), load=scale.load)
    try:
        run(tasks, source / f"{kind}.jsonl", evaluate, n_jobs, progress)
    except FailedTasksError as error:
        return [str(error)]
    return []


def take(sources: Sequence[str | os.PathLike[str]], rows: str | os.PathLike[str]) -> int:
    """Copy what other row files hold of the paper's tables, and the given directory does not, into it."""
    for source in sources:
        if not Path(source).is_file():
            raise FileNotFoundError(f"There is no row file {source}; give another one.")
    Path(rows).mkdir(parents=True, exist_ok=True)
    return _copy_lacking(sources, Path(rows) / f"{TABLE_ROWS}.jsonl", {task.key for task in table_tasks(TABLES, FULL)})


def _copy_lacking(
    sources: Iterable[str | os.PathLike[str]], path: Path, planned: set[tuple[Any, ...]] | None = None,
    corrected: bool = False,
) -> int:  # fmt: skip
    """Add to a row file what others hold and it does not (or, corrected, otherwise), of the planned fits or all."""
    target = storage.RecordFile(path)
    # A fit may have been made twice, and the latest counts, as in any row file.
    known = {key_of(record, target.path): record for record in target.read()}
    found = {key_of(record, str(source)): record for source in sources for record in storage.RecordFile(source).read()}
    lacking = [
        key
        for key, record in found.items()
        if (planned is None or key in planned) and (key not in known or (corrected and known[key] != record))
    ]
    for key in lacking:
        target.append(found[key])
    return len(lacking)


def read_rows(source: Path, kind: str) -> list[Row]:
    """Return the rows of one file in a directory of them."""
    return RowFile(source / f"{kind}.jsonl").read()


def _write_tables(names: Sequence[str], scale: Scale, source: Path, out: Path) -> None:
    """Write NAME.md and NAME.csv for each table."""
    rows = read_rows(source, TABLE_ROWS)
    for name in (name for name in names if name in TABLES):
        entries = tables.cells(name, rows, scale)
        _write(out / f"{name}.md", f"# {readme.title(name)}\n\n{tables.to_markdown(name, entries)}".encode())
        _write(out / f"{name}.csv", tables.to_csv(entries).encode())
    for name in (name for name in names if name in EVIDENCE):
        found = EVIDENCE[name].to_markdown(read_rows(source, name), scale)
        _write(out / f"{name}.md", f"# {EVIDENCE[name].TITLE}\n\n{found}".encode())


def _write_figures(names: Iterable[str], scale: Scale, source: Path, out: Path) -> list[str]:
    """Write NAME.png for each figure that there are curves for; return which had none."""
    names = [name for name in names if name in FIGURES]
    if names and find_spec("matplotlib") is None:
        return ["Figures need matplotlib: pip install 'cadlag[plot]'."]
    from cadlag.papers.loria2025.drawing import picture  # noqa: PLC0415  optional

    kinds = {want.kind for name in names for want in FIGURES[name].wants.values()}
    known = {kind: curves.gather(read_rows(source, kind)) for kind in kinds}
    complaints = []
    for name in names:
        found = {
            label: known[want.kind][key]
            for label, want in FIGURES[name].wants.items()
            if (key := want.task(scale).key) in known[want.kind]
        }
        if missing := FIGURES[name].wants.keys() - found.keys():
            complaints.append(f"{name} is without {', '.join(sorted(missing))}: no such curves in {source}.")
        if found:
            _write(out / f"{name}.png", picture(FIGURES[name], found))
    return complaints


def _write(path: Path, content: bytes) -> None:
    """Write a file that is complete or absent."""
    with storage.replacing(str(path)) as stream:
        stream.write(content)
