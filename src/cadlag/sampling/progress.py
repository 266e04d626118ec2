"""What a run says: one line on the terminal (draws done, divergences, time left), and warnings."""

import inspect
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO


class TextProgress:
    """Rewrites one line of a stream; on anything but a terminal it writes only the last one.

    Parameters
    ----------
    stream
        Where to; standard error by default.
    label
        What is being run.
    """

    def __init__(self, stream: TextIO | None = None, label: str = "sampling") -> None:
        self.stream, self.label = stream or sys.stderr, label

    def __call__(self, reached: Sequence[int], total: int, divergences: int, seconds: float) -> None:
        """Report a round.

        Parameters
        ----------
        reached
            Iterations done by each chain.
        total
            Iterations wanted.
        divergences
            Divergent trajectories so far.
        seconds
            Time since the start.
        """
        share = sum(reached) / (total * len(reached))
        left = seconds * (1.0 - share) / share if share > 0 else 0.0
        bar = "#" * int(24 * share)
        line = (
            f"{self.label} [{bar:<24}] {min(reached)}/{total} iterations x {len(reached)} chains, "
            f"{divergences} divergences, {_duration(seconds)} gone, {_duration(left)} left"
        )
        finished = min(reached) >= total
        if self.stream.isatty():
            self.stream.write("\r\033[K" + line + ("\n" if finished else ""))
        elif finished:
            self.stream.write(line + "\n")
        self.stream.flush()

    def say(self, text: str) -> None:
        """A line of its own about what has been found so far.

        Parameters
        ----------
        text
            What.
        """
        self.stream.write(f"{self.label}: {text}\n")
        self.stream.flush()


def _duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    return f"{whole}s" if whole < 90 else f"{whole // 60}m{whole % 60:02d}s"


def reporter(progress: Any, label: str) -> Any:
    """Whom to tell of each round: the callable given, a line on the terminal for True, nobody for False."""
    return progress if callable(progress) else TextProgress(label=label) if progress else None


def tell(report: Any, text: str) -> None:
    """A line to whoever is told of each round, if they listen to words."""
    if hasattr(report, "say"):
        report.say(text)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the line outside the library that asked for what has happened."""
    level, frame = 2, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cadlag":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
