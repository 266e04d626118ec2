"""Figures 4b, 5, 8, 9 and 10: observed minus predicted against predicted at test inputs, 90 % intervals as bars."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, predictions_of

_TITLES = {
    "sim2d": "2-d residuals, first replicate", "sim10d": "10-d residuals, first replicate",
    "boston": "Boston residuals, first split", "energy": "Energy residuals, first split",
    "yacht": "Yacht residuals, first split",
}  # fmt: skip


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots import plot_residuals  # noqa: PLC0415  optional

    canvas, axes = panels(len(curves), sharex=True, sharey=True)
    for place, (label, found) in zip(axes, curves.items()):
        interval = np.column_stack([found["lower"], found["upper"]])
        plot_residuals(found["observed"], found["prediction"], interval, ax=place, bare=True)
        inside = (interval[:, 0] <= found["observed"]) & (found["observed"] <= interval[:, 1])
        place.set(title=f"{label}: {100 * np.mean(inside):.0f} % inside")
    canvas.supxlabel("prediction")
    canvas.supylabel("observed − predicted (diamonds: outside)")
    return canvas


def figure_of(data: str) -> Figure:
    """Return the figure of one data set."""
    return Figure(_TITLES[data], predictions_of(data), _draw)
