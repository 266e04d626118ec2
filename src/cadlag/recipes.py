"""x = (numbers, days since 1970, a column of 0 and 1 for each category): how a table becomes numeric columns.

A recipe is learned from the training table and kept beside the model, so that new tables are read in the same way:
columns by name, dates by the same form, categories by the same list. A category that the recipe does not know is
refused like a missing value, since no column of the model stands for it.
"""

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cadlag.frames import Frame, Kind, forms_of, listed, reader_of, recognise, shown

Array = NDArray[np.float64]

MOST_CATEGORIES = 50
MOST_INSISTED = 1000  # a column of 0 and 1 each
LARGEST = 1e150  # whose square is still a number
_DAY_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)


@dataclass(frozen=True)
class Input:
    """One column of a table.

    Attributes
    ----------
    name
        Its name.
    kind
        "number", "boolean", "date" or "category".
    form
        Format of dates, or "," for a comma before decimals.
    categories
        What is known, in order.
    """

    name: str
    kind: str
    form: str = ""
    categories: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the numeric columns that it becomes: two categories need one."""
        if self.kind != "category":
            return [self.name]
        return [f"{self.name}={category}" for category in self._shown()]

    def _shown(self) -> tuple[str, ...]:
        return self.categories[1:] if len(self.categories) == 2 else self.categories

    def encode(self, frame: Frame) -> Array:
        """Numbers for every row, (rows, columns), NaN where the cell is missing; one that cannot be read is refused."""
        cells = frame.cells(self.name)
        if self.kind == "category":
            rows = {text: [float(text == category) for category in self._shown()] for text in set(cells)}
            blank = [np.nan] * len(self._shown())
            return np.array([rows[cell] if cell in self.categories else blank for cell in cells])
        read = reader_of(Kind(self.kind, self.form))
        known = {cell: read(cell) if cell else np.nan for cell in set(cells)}
        values = [known[cell] for cell in cells]
        for row, value in enumerate(values):
            if value is None or np.isinf(value):
                remedy = f"not a {self.kind}: correct it"
            elif abs(value) > LARGEST:
                remedy = f"too large a number: rescale the column so that nothing exceeds {LARGEST:g}"
            else:
                continue
            raise ValueError(f"{frame.where(row, self.name)} holds {shown(cells[row])}, {remedy}")
        return np.array(values, dtype=np.float64)[:, None]

    def text(self, value: float) -> str:
        """A number of its first column as a user wrote it."""
        if self.kind != "date":
            return f"{value:.6g}"
        if self.form != "iso" and "%H" not in self.form:
            return str(np.datetime64(round(value), "D"))
        return str(np.datetime64(round(value * 86400), "s"))

    @classmethod
    def from_tree(cls, tree: Any) -> Self:
        """From a file; anything but what `vars` gave is a ValueError."""
        fields = (tree["name"], tree["kind"], tree["form"], *tree["categories"])
        if not all(isinstance(value, str) for value in fields) or tree["form"] not in forms_of(tree["kind"]):
            raise ValueError("the recipe of a column is damaged")
        return cls(tree["name"], tree["kind"], tree["form"], tuple(tree["categories"]))


class Numbers(NamedTuple):
    """A table by a recipe.

    Attributes
    ----------
    X
        Inputs, (n, columns).
    y
        The target, (n,), or None where the table does not have it.
    rows
        Which rows of the table these are, (n,).
    notes
        What a user should know.
    """

    X: Array
    y: Array | None
    rows: NDArray[np.intp]
    notes: list[str]


@dataclass(frozen=True)
class Recipe:
    """How tables are read.

    Attributes
    ----------
    target
        The column that is predicted.
    inputs
        The columns that it is predicted from.
    """

    target: Input
    inputs: tuple[Input, ...]

    @property
    def columns(self) -> list[str]:
        """Names of the numeric columns."""
        return [name for column in self.inputs for name in column.columns]

    @property
    def categories(self) -> dict[str, list[str]]:
        """The numeric columns of each category."""
        return {column.name: column.columns for column in self.inputs if column.kind == "category"}

    @classmethod
    def learn(
        cls, frame: Frame, target: str, ignore: Collection[str] = (), categories: Collection[str] = ()
    ) -> tuple[Self, list[str]]:
        """Recognise the columns of a training table."""
        for name in (target, *categories):
            frame.cells(name)
        _refuse_contrary(frame, target, ignore, categories)
        notes: list[str] = []
        out, forced = {target, *ignore}, {*categories, *frame.categories}
        found = [_learn_input(frame, name, name in forced, notes) for name in frame.columns if name not in out]
        inputs = tuple(column for column in found if column is not None)
        if not inputs:
            raise ValueError(f"{frame.path} has no column to predict {target!r} from: give at least one that varies")
        recipe = cls(_learn_target(frame, target, notes), inputs)
        recipe._refuse_colliding(frame.path)
        return recipe, notes

    def _refuse_colliding(self, path: str) -> None:
        """Refuse columns that would go by one name: what is said of one would be said of the other."""
        owners: dict[str, Input] = {}
        for column in self.inputs:
            for name in column.columns:
                other = owners.setdefault(name, column)
                if other is not column:
                    raise ValueError(
                        f"{path}: the columns {other.name!r} and {column.name!r} both become {name!r}, as a category "
                        "is named by column and value: rename one of them"
                    )

    def encode(self, frame: Frame, with_target: bool = False, drop_missing: bool = False) -> Numbers:
        """Read a table."""
        notes: list[str] = []
        columns = [*self.inputs, *([self.target] if with_target else [])]
        values = [column.encode(frame) for column in columns]
        holes = np.column_stack([np.isnan(block).any(axis=1) for block in values])
        if holes.any():
            self._mind_holes(frame, columns, holes, drop_missing, notes)
        rows = np.flatnonzero(~holes.any(axis=1))
        X = np.column_stack(values[: len(self.inputs)])[rows]
        return Numbers(X, values[-1][rows, 0] if with_target else None, rows, notes)

    def remarks(self, frame: Frame) -> list[str]:
        """How a new table differs from the training table in its columns."""
        names = dict.fromkeys(column.name for column in self.inputs)
        order = [name for name in frame.columns if name in names]
        unused = [name for name in frame.columns if name not in names and name != self.target.name]
        notes = ["the columns stand in another order and are taken by name"] if order != list(names) else []
        return notes + ([f"not used: {_list(unused)}"] if unused else [])

    def _mind_holes(
        self, frame: Frame, columns: Sequence[Input], holes: NDArray[np.bool_], drop: bool, notes: list[str]
    ) -> None:
        row = int(np.flatnonzero(holes.any(axis=1))[0])
        column = columns[int(np.flatnonzero(holes[row])[0])]
        cell, count = frame.columns[column.name][row], int(holes.any(axis=1).sum())
        known = f" (known: {_list(column.categories)})" if cell else ""
        what = f"holds the category {shown(cell)}, which the model never saw{known}" if cell else "is missing"
        if not drop:
            others = f"; {count} rows are like this" if count > 1 else ""
            raise ValueError(
                f"{frame.where(row, column.name)} {what}{others}: correct it, or leave such rows out with "
                "--drop-missing"
            )
        notes.append(f"rows left out: {count} of {frame.n_rows}, the first since {column.name!r} {what}")
        if count == frame.n_rows:
            raise ValueError(f"{frame.path}: every row has a missing value or an unknown category")

    def to_tree(self) -> dict[str, Any]:
        """A recipe as a model's file holds it."""
        return {"target": _tree(self.target), "inputs": [_tree(column) for column in self.inputs]}

    @classmethod
    def from_tree(cls, tree: Any) -> Self:
        """A recipe from a model's file."""
        try:
            recipe = cls(Input.from_tree(tree["target"]), tuple(Input.from_tree(column) for column in tree["inputs"]))
            recipe._refuse_colliding("the recipe")
            return recipe
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the recipe in the model file is damaged: {error}") from error

    @classmethod
    def of_model(cls, model: Any) -> Self | None:
        """The recipe that a fitted regressor carries."""
        if getattr(model, "recipe_", None) is None:
            return None
        recipe = cls.from_tree(model.recipe_)
        if recipe.columns != list(getattr(model, "feature_names_in_", ())):
            raise ValueError("the recipe in the model file does not fit its model: fit again")
        return recipe

    @classmethod
    def of_numbers(cls, names: Sequence[str], target: str = "") -> Self:
        """The recipe of a table of numbers, for models that were fitted to arrays."""
        return cls(Input(target, "number"), tuple(Input(name, "number") for name in names))


def _tree(column: Input) -> dict[str, Any]:
    return {**vars(column), "categories": list(column.categories)}


def _list(names: Sequence[str]) -> str:
    return listed([shown(name) for name in names], 8)


def _refuse_contrary(frame: Frame, target: str, ignore: Collection[str], categories: Collection[str]) -> None:
    """Refuse options that exclude each other, and columns to leave out that are not there."""
    for name in ignore:
        if name not in frame.columns:
            frame.cells(name)
        if name == target or name in categories:
            other = "--target" if name == target else "--category"
            raise ValueError(f"{frame.path}: column {name!r} is given with --ignore and with {other}: choose one")
    if target in categories:
        raise ValueError(f"{frame.path}: column {target!r} is given with --category and with --target: choose one")


def _learn_target(frame: Frame, name: str, notes: list[str]) -> Input:
    kind = recognise(frame, name)
    if not any(frame.cells(name)):
        raise ValueError(f"{frame.path}: the target {name!r} is empty: give a column of numbers to predict")
    if kind.kind not in ("number", "boolean"):
        what = "dates" if kind.kind == "date" else "text"
        raise ValueError(f"{frame.path}: the target {name!r} is {what}: give a column of numbers to predict")
    target = Input(name, *kind)
    if not _varies(target, frame):
        raise ValueError(f"{frame.path}: the target {name!r} does not vary: give a column with at least two values")
    notes += _remarks_on_form(frame, target)
    return target


def _varies(column: Input, frame: Frame) -> bool:
    values = column.encode(frame)
    return len(np.unique(values[~np.isnan(values)])) > 1


def _remarks_on_form(frame: Frame, column: Input) -> list[str]:
    """How a column that is no category was read, where that could be a mistake."""
    if column.kind == "date":
        return [f"column {column.name!r} holds dates, taken as days"]
    if column.form == ",":
        return [f"column {column.name!r} is read with a comma before decimals"]
    if column.kind == "number" and all(_DAY_DIGITS.fullmatch(cell) for cell in frame.cells(column.name) if cell):
        return [f"column {column.name!r} is read as numbers; if they are dates, write them as YYYY-MM-DD"]
    return []


def _learn_input(frame: Frame, name: str, forced: bool, notes: list[str]) -> Input | None:
    """The recipe of a column, or None where it says nothing."""
    cells = frame.cells(name)
    texts = [text for text in dict.fromkeys(cells) if text]
    same = "the same in every row" if "" not in cells else "the same in every row that has it" if texts else "empty"
    if len(texts) < 2:
        notes.append(f"column {name!r} is {same} and is left out")
        return None
    kind = Kind("category") if forced else recognise(frame, name)
    if kind.kind != "category":
        column = Input(name, *kind)
        if not _varies(column, frame):  # as 1 and 1.0 do not
            notes.append(f"column {name!r} is {same} and is left out")
            return None
        notes += _remarks_on_form(frame, column)
        return column
    if len(texts) > (MOST_INSISTED if forced else min(MOST_CATEGORIES, max(2, frame.n_rows // 2))):
        word = shlex.quote(name)
        insist = f", or insist with --category {word}" if len(texts) <= MOST_INSISTED else ""
        raise ValueError(
            f"{frame.path}, column {name!r} has {len(texts)} different texts in {frame.n_rows} rows: leave it out with "
            f"--ignore {word}{insist}"
        )
    notes.append(f"column {name!r} holds {len(texts)} categories ({_list(sorted(texts))}): a column of 0 and 1 each")
    return Input(name, "category", "", tuple(sorted(texts)))
