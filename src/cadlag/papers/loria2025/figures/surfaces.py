"""Figure 4a: predictions over the 9 × 9 test grid of the first 2-d replicate, a panel a method, and the truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.datasets import simulate
from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import name_of, panels
from cadlag.papers.loria2025.figures.wants import Figure, predictions_of


def _draw(curves: Mapping[str, Curves]) -> Any:
    surfaces = {
        "truth": np.asarray(simulate("2d", 0).f_test),
        **{name_of(k): v["prediction"] for k, v in curves.items()},
    }
    canvas, axes = panels(len(surfaces), sharex=True, sharey=True)
    # The outer cells are centred at ±1, half a cell inside the picture's edge.
    edge = 1 + 1 / 8
    for place, (title, values) in zip(axes, surfaces.items()):
        picture = place.imshow(
            values.reshape(9, 9), origin="lower", extent=(-edge, edge, -edge, edge), vmin=-1, vmax=11, cmap="viridis"
        )
        place.set(title=title, xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    canvas.colorbar(picture, ax=axes, shrink=0.8)
    return canvas


FIGURE = Figure("2-d predictions, first replicate", predictions_of("sim2d"), _draw)
