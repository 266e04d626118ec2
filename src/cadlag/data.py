"""x ↦ (x - centre)/scale by mean and standard deviation, or to the unit cube, safe up to 1e150; and what is refused."""

import datetime
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cadlag.sampling.contract import Array
from cadlag.sampling.progress import warn_caller

LARGEST = 1e150
LEAST_SPREAD = 1e-152  # of a response: its square is still a normal number
_FOREIGN = (str, bytes, datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Scaling:
    """An affine map for each column.

    Attributes
    ----------
    centre
        Subtracted.
    scale
        Divided by; 1 where a column is constant.
    """

    centre: Array
    scale: Array

    @classmethod
    def learn(cls, values: Array, on: bool) -> "Scaling":
        """Mean and standard deviation (n - 1) of each column, or the identity."""
        shape = values.shape[1:]
        if not on:
            return cls(np.zeros(shape), np.ones(shape))
        # Dividing by the largest magnitude first keeps squares of huge values finite.
        size = np.abs(values).max(axis=0)
        size = np.where(size > 0.0, size, 1.0)
        shrunk = values / size
        spread = shrunk.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(shape)
        constant = (values.max(axis=0) == values.min(axis=0)) | (spread == 0.0)
        return cls(shrunk.mean(axis=0) * size, np.where(constant, 1.0, spread * size))

    @classmethod
    def to_unit_cube(cls, values: Array) -> "Scaling":
        """Least value to 0 and largest to 1 in each column; a constant column is only shifted."""
        return cls(values.min(axis=0), _range(values))

    @classmethod
    def to_unit_range(cls, values: Array) -> "Scaling":
        """To mean zero and range one."""
        size = max(float(np.abs(values).max()), np.finfo(float).tiny)
        return cls(np.asarray((values / size).mean() * size), _range(values))

    def apply(self, values: Array) -> Array:
        """Values of the data in standard units, C-ordered."""
        return np.ascontiguousarray((values - self.centre) / self.scale)

    def undo(self, values: Array) -> Array:
        """Back to the units of the data."""
        return self.centre + self.scale * values


def _range(values: Array) -> Array:
    """Largest less least of each column, 1 where they are the same."""
    width = np.ptp(values, axis=0)
    return np.where(width > 0.0, width, 1.0)


def refuse_foreign(name: str, values: Any) -> None:
    """Refuse text and dates, which a conversion to numbers would take or refuse without saying where."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = tuple(index[0] for index in np.nonzero(np.ma.getmaskarray(values)))
        raise ValueError(f"{name} is masked at {_where(place)}: fill in or leave out such rows")
    for column, part in _parts(values):
        if part.dtype.kind in "biufc":
            continue
        for place, cell in np.ndenumerate(part):
            if isinstance(cell, _FOREIGN):
                at = f"row {place[0]}, column {column!r}" if column is not None else _where(place)
                raise ValueError(
                    f"{name} holds {str(cell)!r} at {at}: turn text and dates into numbers, as OneHotEncoder does"
                )


def _parts(values: Any) -> Iterable[tuple[Any, np.ndarray]]:
    """A data frame column by column, anything else in one piece."""
    if hasattr(values, "columns"):
        return ((column, np.asarray(values[column])) for column in values.columns)
    return [(None, np.asarray(values))]


def _where(place: tuple[Any, ...], columns: Any = None) -> str:
    if columns is not None and len(place) == 2:
        return f"row {place[0]}, column {columns[place[1]]!r}"
    return ", ".join(f"{axis} {k}" for axis, k in zip(("row", "column", "layer"), place))


def warn_of_constants(X: Array, columns: Any = None) -> None:
    """Warn of inputs that have the same value in every row: they are kept, and nothing can be learned of them."""
    if len(X) < 2:
        return
    names = [j if columns is None else columns[j] for j in np.flatnonzero(np.ptp(X, axis=0) == 0.0)]
    if names:
        which = ", ".join(f"{name!r}" if isinstance(name, str) else str(name) for name in names)
        warn_caller(
            f"X has the same value in every row of column {which}: it is kept, but nothing can be learned of it"
        )


def refuse_not_finite(name: str, values: Any, columns: Any = None) -> None:
    """Refuse missing and infinite numbers by place."""
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = next(zip(*np.nonzero(~np.isfinite(array))), ())
        cell = "NaN" if np.isnan(array[place]) else str(array[place])
        raise ValueError(f"{name} holds {cell} at {_where(place, columns)}: fill such cells in or drop their rows")


class OverflowedError(ValueError):
    """A prediction beyond the largest number.

    Parameters
    ----------
    row
        Which row of X has it.
    """

    def __init__(self, row: int) -> None:
        super().__init__(f"the prediction at row {row} of X overflows: it lies too far from the training data")
        self.row = row


def refuse_overflow(means: Array, variances: Array, start: int = 0) -> None:
    """Refuse predictions that are beyond the largest number, as at inputs very far from the training data."""
    finite = np.atleast_2d(np.isfinite(means) & np.isfinite(variances)).all(axis=0)
    if not finite.all():
        raise OverflowedError(start + int(np.argmin(finite)))


def refuse_huge(name: str, values: Array, columns: Any = None) -> None:
    """Refuse magnitudes whose squares overflow."""
    if values.size and np.abs(values).max() > LARGEST:
        place = np.unravel_index(int(np.abs(values).argmax()), values.shape)
        raise ValueError(
            f"{name} holds {values[place]:.3g} at {_where(place, columns)}: rescale so that nothing exceeds {LARGEST:g}"
        )


def require_memory(n_bytes: float, what: str, advice: str, limit: float | None) -> None:
    """Refuse, before allocating, what would not fit."""
    allowed = limit if limit is not None else 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > allowed:
        raise MemoryError(
            f"{what} needs about {n_bytes / 2**30:.2g} GiB, more than the {allowed / 2**30:.2g} GiB allowed: {advice}"
        )
