"""One line on the terminal: draws done, divergences, time left."""

import sys
from collections.abc import Sequence
from typing import TextIO


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


def _duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    return f"{whole}s" if whole < 90 else f"{whole // 60}m{whole % 60:02d}s"
