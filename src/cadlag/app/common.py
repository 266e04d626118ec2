"""What the commands share: how they speak, how they read a training table, where they may write.

A user's mistake is a ValueError or an OSError whose message is all that is shown.
"""

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from cadlag.app.terminal import readable
from cadlag.frames import read_frame, suggest
from cadlag.methods import METHODS
from cadlag.recipes import Numbers, Recipe
from cadlag.settings import shown
from cadlag.storage import is_replaced, place_of
from cadlag.verdict import CAUTION, GOOD, NOTE

_MOST_NOTES = 20
_BAR_WIDTH = 20
_OPTIONS = {
    "n_draws": "--draws", "n_warmup": "--warmup", "n_chains": "--chains", "max_seconds": "--max-seconds",
    "precision": "--precision", "inference": "--fast",
}  # fmt: skip
_UNTIL_DONE = ("max_seconds", "precision", "inference")  # which a method must have that is asked for them
_MARKS = {GOOD: ("+", "bold green"), CAUTION: ("!", "bold yellow"), NOTE: ("-", "bold")}


class Stream:
    """A stream whose reader may leave or whose disk may be full: the work goes on without it, for it ends in files.

    Parameters
    ----------
    stream
        Standard output or standard error.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's own."""
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write, or drop what nobody takes."""
        self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, where there is still somebody."""
        self._try(self.stream.flush)

    def _try(self, action: Callable[[], Any]) -> None:
        """Remember the first failure, and leave Python nothing to complain about when it closes the stream."""
        if self.failure is not None:
            return
        try:
            action()
        except OSError as error:
            self.failure = error
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())


class Talk:
    """Results on standard output, all else on standard error; with JSON, standard output is one JSON text.

    Parameters
    ----------
    as_json
        Whether results are for a script.
    """

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.err = Console(file=cast(Any, Stream(sys.stderr)), soft_wrap=True, highlight=False)
        self._stdout = Stream(sys.stdout)
        wide = None if sys.stdout.isatty() else 120  # a pipe has no width, and a table shall not be cut
        words = Console(file=cast(Any, self._stdout), soft_wrap=True, highlight=False, width=wide)
        self.out = self.err if as_json else words
        self.notes: list[str] = []

    def note(self, *texts: str) -> None:
        """What the command did by itself; beyond a screenful only JSON has all of it."""
        self.notes += texts
        for text in texts[:_MOST_NOTES]:
            self.err.print(Text.assemble(("note: ", "yellow"), readable(text)))
        if len(texts) > _MOST_NOTES:
            self.err.print(Text(f"and {len(texts) - _MOST_NOTES} more notes, which --json lists", "yellow"))

    def say(self, text: str, style: str = "") -> None:
        """A line of the result."""
        self.out.print(Text(readable(text), style=style))

    def find(self, tone: str, text: str) -> None:
        """A finding, its tone as a mark and a colour."""
        mark, style = _MARKS[tone]
        self.out.print(Text.assemble((f"{mark} ", style), readable(text)))

    def end(self, result: dict[str, Any]) -> None:
        """The result for a script, and a complaint of a standard output that took none, unless its reader left."""
        if self.as_json:
            print(json.dumps(_as_json({**result, "notes": self.notes}), indent=1))
        failure = self._stdout.failure
        if failure is not None and not isinstance(failure, BrokenPipeError):
            raise OSError(f"standard output took no words ({failure.strerror}); the files are complete")

    @contextmanager
    def bar(self, label: str, warmup: Callable[[], int] = lambda: 0) -> Iterator[Any]:
        """A progress bar on a terminal, lines elsewhere; gives the callable that estimators report to."""
        columns = (
            TextColumn("{task.description}"), BarColumn(_BAR_WIDTH), TaskProgressColumn(), TimeRemainingColumn(),
            TextColumn("{task.fields[words]}", markup=False, table_column=Column()),  # one that may wrap
        )  # fmt: skip
        with Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal) as progress:
            yield Bar(progress, label, warmup, self._remark)

    def _remark(self, text: str) -> None:
        """A line on the way, where no bar shows it."""
        if not self.err.is_terminal:
            self.err.print(Text(readable(text)))


class Bar:
    """What an estimator reports to: how far it has come, what it does, and what it has found so far.

    Parameters
    ----------
    progress
        Where the bar is drawn.
    label
        What is being done.
    warmup
        Iterations of the first round in which places are found, known once it runs; 0 where there are none.
    remark
        What takes a sentence where there is no bar.
    """

    def __init__(
        self, progress: Progress, label: str, warmup: Callable[[], int], remark: Callable[[str], None]
    ) -> None:
        self.progress, self.label, self.warmup, self.remark = progress, label, warmup, remark
        self.found = ""
        self.task = progress.add_task(label, total=None, words="")

    def __call__(self, reached: Sequence[int], total: int, divergences: int, seconds: float) -> None:
        """How far the chains have come."""
        words = self._doing(min(reached))
        self.progress.update(self.task, completed=sum(reached), total=total * len(reached), words=words)

    def say(self, text: str) -> None:
        """What has been found so far, and what is done about it."""
        self.found = text
        self.progress.update(self.task, words=text)
        self.remark(f"{self.label}: {text}")

    def _doing(self, reached: int) -> str:
        """What the iterations are for: known of the first round, told of later ones."""
        n_warmup = 0 if self.found else self.warmup()
        if not n_warmup:
            return self.found
        return "finding places" if reached < n_warmup else "sampling"


def _as_json(value: Any) -> Any:
    """Standard JSON has no number that is not finite."""
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_place(path: Path, *sources: Path) -> None:
    """Refuse, before any work, a result that could not be written, or would take the place of what it is made from."""
    place = place_of(str(path))
    folder = Path(place).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no directory {folder} for {path.name}: make it, or give another path")
    if path.is_dir():
        raise PermissionError(f"{path} cannot be written: it is a directory; give the path of a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written: it is closed to you; make it writable, or give another path")
    if is_replaced(place):
        _try_to_write(folder, path)
    if any(source.exists() and path.exists() and path.samefile(source) for source in sources):
        raise ValueError(f"{path} is the file that is read: give another path")


def _try_to_write(folder: Path, path: Path) -> None:
    """Make a file and remove it: what permissions say is not all, with disks that are read-only, full or gone."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"{path} cannot be written ({error.strerror}): its directory is closed to you, full or gone"
        ) from error


@dataclass(frozen=True)
class Run:
    """How chains are run; None for what is left to the estimators.

    Attributes
    ----------
    seed
        Seed.
    jobs
        Workers; None for one a chain, as far as there are processors.
    draws, warmup, chains, max_seconds, precision
        As in the estimators.
    resume
        A directory that makes the run durable.
    more
        Further settings of the estimators, by name.
    fast
        Whether a first look is enough.
    """

    seed: int = 0
    jobs: int | None = None
    draws: int | None = None
    warmup: int | None = None
    chains: int | None = None
    resume: Path | None = None
    more: dict[str, Any] = field(default_factory=dict)
    fast: bool = False
    max_seconds: float | None = None
    precision: float | None = None

    def check(self, methods: Sequence[str]) -> None:
        """Refuse a setting that none of the methods has, and a value that none of those can take."""
        kinds = [METHODS[method] for method in methods if method in METHODS]
        self._check_options(kinds)
        known = sorted({name for kind in kinds for name in kind._settings})
        for name in self.more:
            if name not in known:
                raise ValueError(f"there is no setting {shown(name)} of {' or '.join(methods)}: {suggest(name, known)}")
        for name, value in self.settings().items():
            refused = [kind._settings[name].complaint(name, value) for kind in kinds if name in kind._settings]
            if refused and all(refused):
                raise ValueError(refused[0])
        if len(kinds) == 1:  # what a method asks of several settings together
            kinds[0](**{name: value for name, value in self.settings().items() if name in known})._check_settings()

    def _check_options(self, kinds: Sequence[Any]) -> None:
        """Refuse an option that none of the methods understands, or that another one makes void."""
        given = self._given()
        for name in _UNTIL_DONE:
            if name in given and not any(name in kind._settings for kind in kinds):
                able = " and ".join(method for method, kind in METHODS.items() if name in kind._settings)
                raise ValueError(f"{_OPTIONS[name]} is for {able}: leave it out, or ask for one of them")
        void = [_OPTIONS[name] for name in given if name != "inference"] + ["--resume"] * (self.resume is not None)
        if self.fast and void and all("inference" in kind._settings for kind in kinds):
            raise ValueError(f"--fast and {void[0]} exclude each other: a first look has numbers of its own")

    def _given(self) -> dict[str, Any]:
        """Settings that have an option of their own, where it was given."""
        values = {
            "n_draws": self.draws, "n_warmup": self.warmup, "n_chains": self.chains, "max_seconds": self.max_seconds,
            "precision": self.precision, "inference": "fast" if self.fast else None,
        }  # fmt: skip
        return {name: value for name, value in values.items() if value is not None}

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of an estimator."""
        processors = os.cpu_count() or 1
        jobs = min(self.chains or processors, processors) if self.jobs is None else self.jobs
        return {"random_state": self.seed, "n_jobs": jobs, **self._given(), **self.more}


_AS_JSON = {"True": "true", "False": "false", "None": "null"}  # as one writes them in Python


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE as a setting: numbers, true, false, null and lists as in JSON, all else as text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--set takes NAME=VALUE, such as --set alpha=1.5, got {shown(pair)}")
        try:
            found[name] = json.loads(_AS_JSON.get(text, text))
        except (ValueError, RecursionError):  # a word, or an integer or a list beyond what Python reads
            found[name] = text
    return found


def read_table(
    path: Path, target: str, ignore: Sequence[str], category: Sequence[str], drop: bool, talk: Talk
) -> tuple[Recipe, Numbers]:
    """A training table as numbers."""
    frame = read_frame(path)
    talk.note(*frame.notes)
    recipe, notes = Recipe.learn(frame, target, ignore, category)
    numbers = recipe.encode(frame, with_target=True, drop_missing=drop)
    if len(numbers.rows) < frame.n_rows:  # what is only in rows left out has not been learned from
        kept = frame.take(numbers.rows.tolist())
        recipe, notes = Recipe.learn(kept, target, ignore, category)
        numbers = recipe.encode(kept, with_target=True)._replace(rows=numbers.rows, notes=numbers.notes)
    talk.note(*notes, *numbers.notes)
    return recipe, numbers


def need(module: str, extra: str) -> Any:
    """Import a module that has optional dependencies."""
    try:
        return import_module(module)
    except ImportError as error:
        # A module of ours says by itself what to install.
        said = str(error) if error.name is None else f"this needs {error.name}: pip install 'cadlag[{extra}]'"
        raise ValueError(said) from None
