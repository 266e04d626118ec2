"""Figures 3, 12 and 13: two features of the first hidden layer at the first training input, under the posterior.

A pair a draw: scatter with box plots at its margins, and normal q-q plots, whose ends bend where tails are heavy.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import COLOURS, empty
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import CONVERGED

_TITLES = {"boston": "Features on Boston", "energy": "Features on Energy", "yacht": "Features on Yacht"}
_COLOUR = COLOURS["Dα-KP"]


def _draw(curves: Mapping[str, Curves]) -> Any:
    (found,) = curves.values()
    canvas = empty(10, 3.6)
    left, middle, right = canvas.subfigures(1, 3, width_ratios=(1.15, 1, 1))
    _scatter(left, found["first"], found["second"])
    for part, name in ((middle, "first"), (right, "second")):
        _normal_plot(part.subplots(), found[name], f"{name} feature")
    return canvas


def _scatter(part: Any, first: Any, second: Any) -> None:
    """Draw pairs, with box plots at the margins."""
    grid = part.subplots(2, 2, width_ratios=(1, 6), height_ratios=(6, 1))
    centre = grid[0, 1]
    # A few draws are so far out that the others would be one spot; box plots and q-q plots show them all.
    limits = [np.quantile(np.abs(values), 0.95) for values in (first, second)]
    inside = (np.abs(first) < limits[0]) & (np.abs(second) < limits[1])
    centre.plot(first[inside], second[inside], ".", color=_COLOUR, ms=6, alpha=0.45, mew=0)
    centre.set(xlim=(-limits[0], limits[0]), ylim=(-limits[1], limits[1]), title="features, outer 5 % cut off")
    centre.set(xticklabels=(), yticklabels=())
    for place, values, limit, upright in ((grid[0, 0], second, limits[1], True), (grid[1, 1], first, limits[0], False)):
        direction = "vertical" if upright else "horizontal"
        place.boxplot(values, orientation=direction, widths=0.6, flierprops={"ms": 1, "alpha": 0.3})
        place.set(**({"ylim": (-limit, limit), "xticks": ()} if upright else {"xlim": (-limit, limit), "yticks": ()}))
    grid[1, 0].set_axis_off()


def _normal_plot(axes: Any, values: Any, title: str) -> None:
    """Draw sorted values against normal quantiles, and the line through the quartiles."""
    ordered = np.sort(values)
    normal = ndtri((np.arange(len(ordered)) + 0.5) / len(ordered))
    slope = np.subtract(*np.quantile(ordered, (0.75, 0.25))) / np.subtract(*ndtri((0.75, 0.25)))
    axes.plot(normal, np.median(ordered) + slope * normal, color="#888888", lw=0.8)
    axes.plot(normal, ordered, ".", color=_COLOUR, ms=3)
    axes.set(title=f"{title}: normal q-q plot", xlabel="normal quantile", ylabel="draw")


def figure_of(data: str) -> Figure:
    """Return the figure of one data set."""
    return Figure(_TITLES[data], {data: Want("chains", CONVERGED["Dα-KP"], data)}, _draw)
