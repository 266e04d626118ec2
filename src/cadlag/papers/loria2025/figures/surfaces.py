"""Figure 4a: predictions over the 9 × 9 test grid of the first 2-d replicate, a panel a method, and the truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.datasets import simulate
from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, predictions_of


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots import plot_surface  # noqa: PLC0415  optional

    data = simulate("2d", 0)
    surfaces = {"truth": np.asarray(data.f_test), **{label: found["prediction"] for label, found in curves.items()}}
    canvas, axes = panels(len(surfaces), sharex=True, sharey=True)
    for place, (title, values) in zip(axes, surfaces.items()):
        plot_surface(data.X_test, values, place, (-1.0, 11.0), names=("", ""), label="")
        place.set(title=title, xticks=(-1, 0, 1), yticks=(-1, 0, 1), aspect=1.0)
    canvas.colorbar(axes[0].collections[0], ax=axes, shrink=0.8)
    return canvas


FIGURE = Figure("2-d predictions, first replicate", predictions_of("sim2d"), _draw)
