"""A table file = columns of text, each of which is recognised as numbers, truth values, dates or categories.

A table is CSV (comma, semicolon, tab or bar between cells, names in the first line) or Parquet. Whatever is wrong with
one is a ValueError that names the file, the row, the column and the remedy.
"""

import base64
import binascii
import csv
import difflib
import io
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cadlag.storage import replacing

Array = NDArray[np.float64]

MISSING = frozenset(("", "?", "-", ".", "NA", "N/A", "n/a", "na", "#N/A", "NaN", "nan", "NAN", "NULL", "null"))

_EMPTY = "{} is empty: give a table with names in its first line"
_DELIMITERS = ",;\t|"
# A digit can be taken in one way only, or a long cell would be tried in all of them.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.ASCII | re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", re.ASCII)
_DRESSED = re.compile(r"[$€£]? ?[+-]?\d[\d,.' ]* ?[%€$£]?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?", re.ASCII)
_QUOTED = re.compile(r'(?:^|(?<=[,;\t| \r\n]))"(?:[^"]|"")*+"(?=[,;\t| \r\n]|$)')
_BOOLEANS = {"true": 1.0, "false": 0.0, "True": 1.0, "False": 0.0, "TRUE": 1.0, "FALSE": 0.0, "1": 1.0, "0": 0.0}
_DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m")
_DATE_FORMS = ("iso", *(day + time for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_SHOWN = 60
_FEW = 100  # texts, none of which is of a kind, before all are asked
_MOST_GUESSES, _LONGEST_GUESS = 10_000, 200  # what is compared with a name that is not there
_HEAD = 2**21  # characters in which the first line ends
_MANY = 0.5  # share of cells that look like numbers or dates beyond which the others are taken for mistakes


@dataclass(frozen=True)
class Frame:
    """A table as text.

    Attributes
    ----------
    path
        The file, for messages.
    columns
        Name to cells; a missing one is the empty text.
    lines
        The line of the file on which each row ends; empty for Parquet.
    comma
        Whether a comma may stand before decimals.
    notes
        What a user should know of the reading.
    categories
        Columns that are categories, whatever they look like.
    unreadable
        Columns that hold no text, with the reason.
    """

    path: str
    columns: dict[str, list[str]]
    lines: list[int] = field(default_factory=list, repr=False)
    comma: bool = False
    notes: list[str] = field(default_factory=list)
    categories: frozenset[str] = frozenset()
    unreadable: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), []))

    def where(self, row: int, column: str) -> str:
        """A place in words."""
        line = f" (line {self.lines[row]})" if self.lines else ""
        return f"{self.path}, row {row + 1}{line}, column {column!r}"

    def take(self, rows: Sequence[int]) -> "Frame":
        """Some of the rows, by their numbers from 0."""
        columns = {name: [cells[i] for i in rows] for name, cells in self.columns.items()}
        return replace(self, columns=columns, lines=[self.lines[i] for i in rows] if self.lines else [])

    def cells(self, column: str) -> list[str]:
        """The cells of a column, which must be there."""
        if column not in self.columns:
            raise ValueError(f"{self.path} has no column {column!r}: {suggest(column, self.columns)}")
        if column in self.unreadable:
            raise ValueError(f"{self.path}, column {column!r} {self.unreadable[column]}, or leave it out")
        return self.columns[column]


def suggest(word: str, known: Iterable[str], most: int = 12) -> str:
    """What a user may have meant."""
    names = list(known)
    by_small = {name.lower(): name for name in reversed(names[:_MOST_GUESSES]) if len(name) <= _LONGEST_GUESS}
    close = difflib.get_close_matches(word.lower()[:_LONGEST_GUESS], by_small, n=1)
    meant = f"did you mean {by_small[close[0]]!r}? " if close else ""
    return f"{meant}There {'is' if len(names) == 1 else 'are'} {listed([repr(name) for name in names], most)}"


def listed(words: Sequence[str], most: int) -> str:
    """The first of some words with commas between, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def shown(cell: str) -> str:
    """A cell in quotes for a message, a long one cut."""
    return repr(cell) if len(cell) <= _LONGEST_SHOWN else f"{cell[:_LONGEST_SHOWN]!r}..."


# Files ---------------------------------------------------------------------------------------------------------------


def read_frame(path: str | PathLike[str]) -> Frame:
    """Read a table."""
    name = fspath(path)
    if not Path(name).exists():
        raise FileNotFoundError(f"there is no file {name}: check the path")
    if not Path(name).is_file():
        raise ValueError(f"{name} is a directory or a device: give the path of a CSV or Parquet file")
    data = Path(name).read_bytes()
    frame = _read_parquet(name, data) if data[:4] == b"PAR1" else _read_csv(name, data)
    if not frame.columns or frame.n_rows == 0:
        raise ValueError(f"{name} has no rows of data")
    return frame


def read_names(path: str | PathLike[str]) -> list[str]:
    """The names of a table's columns, from its beginning alone: for those who wait at a prompt."""
    with open(path, "rb") as stream:
        head = stream.read(_HEAD)
    if head[:4] == b"PAR1":
        from pyarrow import parquet  # noqa: PLC0415  optional

        return list(parquet.ParquetFile(path).schema_arrow.names)
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n")]
    text = _decode(fspath(path), whole, [])
    return next(cells for cells, _ in _records(fspath(path), text, _delimiter(text)) if any(cells))


def _read_csv(path: str, data: bytes) -> Frame:
    notes: list[str] = []
    text = _decode(path, data, notes)
    delimiter = _delimiter(text)
    rows: list[list[str]] = []
    lines = []
    for cells, line in _records(path, text, delimiter):
        # A line without cells is none; one of empty cells is a row, or predictions would lose their places.
        if any(cells) or (rows and len(cells) == len(rows[0])):
            rows.append(cells)
            lines.append(line)
    if not rows:
        raise ValueError(_EMPTY.format(path))
    names, lines = rows.pop(0), lines[1:]
    _check_names(path, names)
    for row, (cells, line) in enumerate(zip(rows, lines)):
        if len(cells) != len(names):
            raise ValueError(
                f"{path}, row {row + 1} (line {line}) has {len(cells)} cells and the first line {len(names)} names: "
                "correct it, or check the quotes"
            )
    columns = {name: [_present(cells[j]) for cells in rows] for j, name in enumerate(names)}
    return Frame(path, _without_index(columns, notes), lines, delimiter != ",", notes)


def _delimiter(text: str) -> str:
    """The mark that stands most often in the first line, outside of quoted cells."""
    bare = _QUOTED.sub("", text[:_HEAD])
    first = next((line for line in io.StringIO(bare, newline=None) if line.strip()), "")
    return max(_DELIMITERS, key=first.count)


def _records(path: str, text: str, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Cells of each record without the space around them, and the line on which it ends."""
    source = _Lines(text)
    form: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True}
    reader = csv.reader(source, **form)
    start = 0
    try:
        for cells in reader:
            if source.ended or reader.line_num > start + 1:
                _refuse_swallowed(path, start + 1, source, cells, form)
            yield [cell.strip() for cell in cells], reader.line_num
            start = reader.line_num
            source.taken.clear()
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not a table ({error})") from None


class _Lines:
    """The lines of a text, which remembers those of the present record and whether its end was asked for."""

    def __init__(self, text: str) -> None:
        self.stream, self.taken, self.ended = io.StringIO(text, newline=""), list[str](), False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self.stream.readline()
        if not line:
            self.ended = True
            raise StopIteration
        self.taken.append(line)
        return line


def _refuse_swallowed(path: str, line: int, source: _Lines, cells: list[str], form: dict[str, Any]) -> None:
    """Refuse a record over several lines whose quote was never closed, or by a later row's quote only."""
    remedy = "close it, double it within a quoted cell, or leave it out"
    if source.ended:
        raise ValueError(
            f"{path}, line {line} has a quote that is never closed, so that all that follows is one cell: {remedy}"
        )
    try:
        list(csv.reader(source.taken, strict=True, **form))
        wrong = any(_holds_rows(cell, j, len(cells), form["delimiter"]) for j, cell in enumerate(cells))
    except csv.Error:
        wrong = True
    if wrong:
        last = line + len(source.taken) - 1
        raise ValueError(
            f"{path}, line {line} has a quote that is closed only on line {last}, with rows in between: {remedy}"
        )


def _holds_rows(cell: str, j: int, n: int, delimiter: str) -> bool:
    """Whether the lines of cell j of n are cut like the rest of its row, whole rows and the start of another.

    With three columns or more whole rows will do, for the quote may end elsewhere than it began; lines of prose in a
    table of two columns have a comma often enough.
    """
    lines = re.split("\r\n|\r|\n", cell)
    if len(lines) < 2 or n < 2:
        return False
    first, *inner, last = [line.count(delimiter) for line in lines]
    whole = first == n - 1 - j and all(count == n - 1 for count in inner)
    return whole and (last == j or (n > 2 and len(inner) > 0))


def _decode(path: str, data: bytes, notes: list[str]) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        notes.append(f"{path} is read as UTF-16")
        data = data.decode("utf-16", errors="replace").encode("utf-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
        notes.append(f"{path} is not UTF-8 and is read as Windows-1252")
    if "\0" in text or "\ufffd" in text:
        raise ValueError(f"{path} is not a table: give a CSV file in UTF-8, or a Parquet file")
    if not text.strip():
        raise ValueError(_EMPTY.format(path))
    return text


def _present(cell: str) -> str:
    return "" if cell in MISSING else cell


def _check_names(path: str, names: Sequence[str]) -> None:
    if all(_NUMBER.fullmatch(name) for name in names):
        raise ValueError(f"{path} has numbers in its first line: put the names of the columns there")
    _check_unique(path, names)


def _check_unique(path: str, names: Sequence[str]) -> None:
    count = Counter(names)
    if twice := [name for name, times in count.items() if name and times > 1]:
        raise ValueError(f"{path} has two columns of the name {twice[0]!r}: rename one")
    if count[""] > 1:
        raise ValueError(f"{path} has {count['']} columns without a name: name them")


def _without_index(columns: dict[str, list[str]], notes: list[str]) -> dict[str, list[str]]:
    """Without the row labels that R and pandas write, as a column with no name of its own."""
    unnamed = [name for name in columns if name in ("", "Unnamed: 0") or name.startswith("__index_level_")]
    if unnamed and len(columns) > 1:
        notes.append("the column without a name is left out, as row labels")
    return {name: cells for name, cells in columns.items() if name not in unnamed}


def _read_parquet(path: str, data: bytes) -> Frame:
    try:
        import pyarrow  # noqa: PLC0415  optional
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ValueError(f"{path} is Parquet, which needs pyarrow: pip install 'cadlag[parquet]'") from None
    notes: list[str] = []
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        names = file.schema_arrow.names
        _check_unique(path, names)
        table = file.read()
        frame = Frame(path, {}, notes=notes, categories=_coded(file))
        for name in names:
            frame.columns[name] = _texts(frame, name, table.column(name))
    except (OSError, KeyError, binascii.Error, pyarrow.ArrowException) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise ValueError(f"{path} is a damaged Parquet file ({reason}): write it again") from None
    return replace(frame, columns=_without_index(frame.columns, notes))


def _coded(file: Any) -> frozenset[str]:
    """The columns that were written as codes of categories, which reading alone turns into the numbers behind them."""
    from pyarrow import ipc, py_buffer, types  # noqa: PLC0415  optional

    written = (file.metadata.metadata or {}).get(b"ARROW:schema")
    schema = file.schema_arrow if written is None else ipc.read_schema(py_buffer(base64.b64decode(written)))
    return frozenset(name for name in schema.names if types.is_dictionary(schema.field(name).type))


def _texts(frame: Frame, name: str, column: Any) -> list[str]:
    """The cells of a Parquet column; what cannot be text is remembered, and refused where the column is asked for."""
    try:
        values = column.to_pylist()
        if any(isinstance(value, timedelta) for value in values):
            frame.notes.append(f"column {name!r} holds durations, taken as days")
        return [_cell(value) for value in values]
    except (ValueError, OverflowError) as error:
        frame.unreadable[name] = str(error)
        return [""] * len(column)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, timedelta):
        return repr(value / timedelta(days=1))
    if isinstance(value, time):
        raise ValueError("holds times of day: give hours as numbers")
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if isinstance(value, list | dict | bytes):
        raise ValueError(f"holds a {type(value).__name__}: give numbers, dates or text")
    return _present(str(value).strip())


def write_csv(path: str | PathLike[str], header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table to a file that is complete or absent."""
    with replacing(str(path)) as stream:
        stream.write(to_csv(header, rows).encode("utf-8"))


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if cell != cell else cell for cell in row] for row in rows])
    return text.getvalue()


# What a column is ----------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """What was recognised: the kind, and the form of its cells (a date's format, or a comma before decimals)."""

    kind: str
    form: str = ""


def forms_of(kind: str) -> tuple[str, ...]:
    """The forms that cells of a kind may have; none for what is no kind."""
    forms = {"number": ("", ","), "boolean": ("",), "category": ("",), "date": (*_DATE_FORMS, "day")}
    return forms.get(kind, ())


def reader_of(kind: Kind) -> Callable[[str], float | None]:
    """The reader of one cell of a kind that is not a category: a number, or None for a text that is none."""
    if kind.kind == "number":
        return _comma_number if kind.form == "," else _number
    if kind.kind == "boolean":
        return _BOOLEANS.get
    return lambda text: _days(text, kind.form)


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _comma_number(text: str) -> float | None:
    """A point in such a column would divide thousands, or be another's decimal point: neither is guessed."""
    if _COMMA_NUMBER.fullmatch(text):
        return float(text.replace(",", "."))
    return None if "." in text else _number(text)


def _days(text: str, form: str) -> float | None:
    """Days since the start of 1970; a time without a zone is taken for UTC."""
    try:
        if form not in ("iso", "day"):
            moment = datetime.strptime(text, form)
        elif _ISO.fullmatch(text):
            moment = datetime.fromisoformat(text)
        else:
            return None
        aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return (aware - _EPOCH).total_seconds() / 86400.0
    except (ValueError, OverflowError):
        return None


def _share(kind: Kind, texts: Sequence[str]) -> float:
    """The share of texts that are of a kind."""
    read = reader_of(kind)
    return sum(read(text) is not None for text in texts) / max(len(texts), 1)


def recognise(frame: Frame, column: str) -> Kind:
    """What the cells of a column are; a column of numbers or dates with a few other texts is refused."""
    cells = frame.cells(column)
    texts = list(dict.fromkeys(cell for cell in cells if cell))
    candidates = [Kind("number"), *([Kind("number", ",")] if frame.comma else []), Kind("boolean")]
    candidates += [Kind("date", form) for form in _DATE_FORMS]
    shares: list[float] = []
    few = texts[:: max(1, len(texts) // _FEW)]
    for kind in candidates:
        shares.append(_share(kind, few) and _share(kind, texts))
        if shares[-1] == 1.0 and kind.kind != "date":  # dates are looked at in every form, slowly
            break
    fits = [kind for kind, share in zip(candidates, shares) if share == 1.0]
    if len(fits) > 1 and fits[0].kind == "date":  # only day and month can change places
        raise ValueError(
            f"{frame.path}, column {column!r}: day and month cannot be told apart in {shown(texts[0])}: "
            "write dates as YYYY-MM-DD"
        )
    if fits:
        whole = fits[0] == Kind("date", "iso") and all(len(text) == 10 or text.endswith("T00:00:00") for text in texts)
        return Kind("date", "day") if whole else fits[0]
    best = int(np.argmax(shares))
    if shares[best] < _MANY:
        if texts and all(_DRESSED.fullmatch(text) for text in texts):
            raise ValueError(
                f"{frame.path}, column {column!r} holds numbers such as {shown(texts[0])}: write them plainly, as "
                f"1234.5, or take the column for categories (--category {shlex.quote(column)})"
            )
        return Kind("category")
    row = next(i for i, cell in enumerate(cells) if cell and reader_of(candidates[best])(cell) is None)
    raise ValueError(
        f"{frame.where(row, column)} holds {shown(cells[row])} among {candidates[best].kind}s: correct it, leave it "
        f"empty, or take the column for categories (--category {shlex.quote(column)}) or out (--ignore "
        f"{shlex.quote(column)})"
    )
