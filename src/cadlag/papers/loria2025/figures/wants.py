"""What a figure wants: named curves, each of one kind and made by one task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.plan import Scale
from cadlag.papers.loria2025.versions import BEST, PUBLISHED, Version
from cadlag.papers.rows import Task


@dataclass(frozen=True)
class Want:
    """Curves of one kind from one version on one data set, seed 0."""

    kind: str
    version: Version
    data: str

    def task(self, scale: Scale) -> Task:
        """Return the task that makes them."""
        return scale.task(self.version.method, self.version.configuration(self.data), self.data)


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes
    ----------
    title
        What it shows.
    wants
        The curves, by the label that they have in it.
    draw
        The function from those that are there, by label, to a matplotlib figure.
    """

    title: str
    wants: Mapping[str, Want]
    draw: Callable[[Mapping[str, Curves]], Any]


def predictions_of(data: str) -> dict[str, Want]:
    """Return the predictions of all six methods with the paper's settings, and of the network."""
    versions = {**PUBLISHED, "network (ours)": BEST["network"]}
    return {label: Want("predictions", version, data) for label, version in versions.items() if data in version.data}
