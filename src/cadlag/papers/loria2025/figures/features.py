"""Figures 3, 12 and 13: two features of the first hidden layer at the first training input, under the posterior.

A pair a draw: density with box plots at its margins, and normal q-q plots, whose ends bend where tails are heavy.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import CONVERGED

_TITLES = {"boston": "Features on Boston", "energy": "Features on Energy", "yacht": "Features on Yacht"}


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots import plot_features, plot_normal_quantiles  # noqa: PLC0415  optional

    (found,) = curves.values()
    canvas, (left, *others) = panels(3, width=3.4, height=3.6)
    plot_features(np.stack([found["first"], found["second"]], axis=1)[:, :, None], ax=left)
    for place, name in zip(others, ("first", "second")):
        plot_normal_quantiles(found[name], place, f"{name} feature")
    return canvas


def figure_of(data: str) -> Figure:
    """Return the figure of one data set."""
    return Figure(_TITLES[data], {data: Want("chains", CONVERGED["Dα-KP"], data)}, _draw)
