"""NAME must be WHAT, got VALUE: what a setting may be, said once, and checked before anything is computed.

Each regressor has a table, name to `Setting`, with a row for every parameter of its constructor; `SHARED` holds the
rows that several of them have. Upper bounds are far beyond what is sensible: they keep a slip of the keyboard or a
hostile file from filling the memory.
"""

import math
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cadlag.likelihood import NOISE_PRIORS
from cadlag.stable import RESOLVED

MOST_SHOWN = 80  # characters of a value in a message
MOST_DRAWS = 10**9
MOST_LAYERS = 1000
MOST_WORKERS = 10_000

_cut = reprlib.Repr()
_cut.maxstring = _cut.maxother = _cut.maxlong = MOST_SHOWN


def shown(value: Any) -> str:
    """A value as a sentence can hold it: one line, however much there is of it."""
    if isinstance(value, int) and abs(value) >= 10**MOST_SHOWN:
        return f"an integer of about {value.bit_length() * math.log10(2.0):,.0f} digits"
    try:
        text = " ".join(_cut.repr(value).split())
    except ValueError:  # a list of integers that Python refuses to write out
        text = f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def plain(value: Any) -> Any:
    """A setting as a file can hold it."""
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else value.item()  # a longdouble is its own item
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    array = np.asarray(value)
    return array if array.dtype.kind in "biuf" else None


# Kinds of settings ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """What a setting may be.

    Attributes
    ----------
    of_run
        Whether it changes the draws of a run, so that a checkpoint belongs to one value of it.
    """

    of_run: bool = field(default=False, kw_only=True)

    def wanted(self, value: Any) -> str:
        """What the value must be, if it is not; the empty text if it is."""
        raise NotImplementedError

    def complaint(self, name: str, value: Any) -> str:
        """The sentence that refuses a value, or the empty text."""
        wanted = self.wanted(value)
        return f"{name} must be {wanted}, got {shown(value)}" if wanted else ""

    def require(self, name: str, value: Any) -> None:
        """Refuse a value that it cannot have."""
        if sentence := self.complaint(name, value):
            raise ValueError(sentence)


@dataclass(frozen=True)
class Whole(Setting):
    """An integer from `least` to `most`; True and False are none."""

    least: int
    most: int

    def wanted(self, value: Any) -> str:
        is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_integer or value < self.least:
            return f"an integer of at least {self.least}"
        return "" if value <= self.most else f"an integer of at most {self.most:,}"


@dataclass(frozen=True)
class Open(Whole):
    """An integer, or "auto" for one that is found while fitting."""

    def wanted(self, value: Any) -> str:
        if isinstance(value, str):
            return "" if value == "auto" else f'an integer of at least {self.least}, or "auto"'
        return super().wanted(value)


@dataclass(frozen=True)
class Number(Setting):
    """A number in (above, most], finite unless `most` is infinite; True and False are none."""

    above: float = 0.0
    most: float = sys.float_info.max

    def wanted(self, value: Any) -> str:
        if self.above < _as_float(value) <= self.most:
            return ""
        is_bounded = self.above != 0.0 or self.most < sys.float_info.max
        return f"a number in ({self.above:g}, {self.most:g}]" if is_bounded else "a positive number"


def _as_float(value: Any) -> float:
    """NaN for what is no number; zero for what has lost digits beside it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return 0.0 if abs(number) < sys.float_info.min else number


@dataclass(frozen=True)
class Word(Setting):
    """One of a few words."""

    words: tuple[str, ...]

    def wanted(self, value: Any) -> str:
        return "" if isinstance(value, str) and value in self.words else f"one of {', '.join(self.words)}"


@dataclass(frozen=True)
class Truth(Setting):
    """True or False, and no other value that counts as such."""

    def wanted(self, value: Any) -> str:
        return "" if isinstance(value, bool | np.bool_) else "True or False"


@dataclass(frozen=True)
class Nothing(Setting):
    """None, for what is to be learned or chosen."""

    def wanted(self, value: Any) -> str:
        return "" if value is None else "None"


@dataclass(frozen=True)
class Function(Setting):
    """Something that can be called."""

    def wanted(self, value: Any) -> str:
        return "" if callable(value) else "a callable"


@dataclass(frozen=True)
class Positives(Setting):
    """Positive, finite numbers: one alone if `alone`, or a list of at least one."""

    alone: bool = False

    def wanted(self, value: Any) -> str:
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, OverflowError):  # ragged, too deep, or too large for a number
            array = np.zeros(0)
        fits = (array.ndim == 1 and array.size > 0) or (array.ndim == 0 and self.alone)
        if fits and array.dtype.kind in "iuf" and np.all((array > 0) & np.isfinite(array)):
            return ""
        return "a positive number or a list of them" if self.alone else "a list of positive numbers"


@dataclass(frozen=True)
class Seed(Setting):
    """Whatever scikit-learn takes as random_state, and numpy's new generators."""

    most: int = 2**128 - 1  # as many bits as numpy's own entropy

    def wanted(self, value: Any) -> str:
        sources = np.random.SeedSequence | np.random.Generator | np.random.RandomState
        if value is None or isinstance(value, sources) or not Whole(0, self.most).wanted(value):
            return ""
        return "None, an integer from 0 to 2**128 - 1 or a numpy generator"


@dataclass(frozen=True)
class Either(Setting):
    """What any of several kinds admits; `words` say which."""

    words: str
    kinds: tuple[Setting, ...]

    def wanted(self, value: Any) -> str:
        return "" if any(not kind.wanted(value) for kind in self.kinds) else self.words


@dataclass(frozen=True)
class Stability(Setting):
    """The index alpha of the stable law: 2, or where the density of its scales is resolved."""

    def wanted(self, value: Any) -> str:
        if outside := Number(0.0, 2.0).wanted(value):
            return outside
        low, high = RESOLVED
        is_resolved = value == 2.0 or low <= float(value) <= high
        return "" if is_resolved else f"2 or a number from {low:g} to 2 - {2.0 - high:g}"

    def complaint(self, name: str, value: Any) -> str:
        """See :class:`Setting`."""
        if isinstance(value, str) and value == "sample":
            return f'{name}="sample" is reserved for a later version: give a number in (0, 2]'
        return super().complaint(name, value)


# Rows that several regressors have -----------------------------------------------------------------------------------

SHARED: Mapping[str, Setting] = {
    "alpha": Stability(of_run=True),
    # Not of the run: a checkpoint looks at the known noise in standard units.
    "noise_variance": Either(
        "a positive number, a list of one for each row, or None to learn it", (Nothing(), Positives(alone=True))
    ),
    "noise_prior_on": Word(NOISE_PRIORS, of_run=True),
    "n_draws": Whole(1, MOST_DRAWS),
    "n_warmup": Whole(0, MOST_DRAWS, of_run=True),
    "n_chains": Whole(1, 10_000, of_run=True),
    "n_jobs": Either(
        f"None or an integer from 1 to {MOST_WORKERS:,}, or a negative one as in joblib",
        (Nothing(), Whole(1, MOST_WORKERS), Whole(-MOST_WORKERS, -1)),
    ),
    "standardize": Either('True, False or "inputs"', (Truth(), Word(("inputs",))), of_run=True),
    "point": Word(("median", "mean")),
    "n_atoms": Whole(1, MOST_DRAWS),
    "max_memory": Either(
        "a positive number of bytes, or None for half of the machine's", (Nothing(), Number(0.0, math.inf))
    ),
    # None is what a file holds instead of a callable.
    "progress": Either("True, False, None or a callable", (Truth(), Nothing(), Function())),
    "random_state": Seed(of_run=True),
}
# Of the stable families, whose chains run until they are done.
UNTIL_DONE: Mapping[str, Setting] = {
    "n_draws": Open(1, MOST_DRAWS),
    "n_warmup": Open(0, MOST_DRAWS, of_run=True),
    "n_chains": Open(1, 10_000, of_run=True),
    "precision": Number(0.0, 1.0),
    "max_seconds": Either("a positive number of seconds, or None for no limit", (Nothing(), Number(0.0, math.inf))),
    "inference": Word(("mcmc", "fast")),
}
# What may be changed after a fit: how it is asked, or gone on with.
FREE = (
    "n_draws", "n_jobs", "point", "n_atoms", "max_memory", "progress", "random_state", "precision", "max_seconds"
)  # fmt: skip
SAMPLED = ("n_draws", "n_warmup", "n_chains", "n_jobs", "point", "n_atoms", "max_memory", "progress", "random_state")


def shared(*names: str) -> dict[str, Setting]:
    """Some of the shared rows."""
    return {name: SHARED[name] for name in names}
