"""Figures 4b, 5, 8, 9 and 10: observed minus predicted against predicted at test inputs, 90 % intervals as bars."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import COLOURS, name_of, panels
from cadlag.papers.loria2025.figures.wants import Figure, predictions_of

_TITLES = {
    "sim2d": "2-d residuals, first replicate", "sim10d": "10-d residuals, first replicate",
    "boston": "Boston residuals, first split", "energy": "Energy residuals, first split",
    "yacht": "Yacht residuals, first split",
}  # fmt: skip


def _draw(curves: Mapping[str, Curves]) -> Any:
    canvas, axes = panels(len(curves), sharex=True, sharey=True)
    for place, (label, found) in zip(axes, curves.items()):
        point, colour = found["prediction"], COLOURS[label]
        inside = (found["lower"] <= found["observed"]) & (found["observed"] <= found["upper"])
        place.vlines(point, found["lower"] - point, found["upper"] - point, color=colour, lw=0.7, alpha=0.35)
        for chosen, marker, size in ((inside, ".", 3.5), (~inside, "x", 4)):
            place.plot(point[chosen], (found["observed"] - point)[chosen], marker, color=colour, ms=size)
        place.axhline(0.0, color="#888888", lw=0.6, zorder=0)
        place.set(title=f"{name_of(label)}: {100 * np.mean(inside):.0f} % inside")
    canvas.supxlabel("prediction", fontsize=9)
    canvas.supylabel("observed − predicted (× outside)", fontsize=9)
    return canvas


def figure_of(data: str) -> Figure:
    """Return the figure of one data set."""
    return Figure(_TITLES[data], predictions_of(data), _draw)
