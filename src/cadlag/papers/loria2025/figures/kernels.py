"""Figure 7: entrywise posterior quartiles of the last kernel matrix Σ_K at the training inputs, 1-d and 2-d."""

from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import Curves, symmetric
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import CONVERGED

_QUARTILES = {"lower": "25 %", "median": "50 %", "upper": "75 %"}


def _draw(curves: Mapping[str, Curves]) -> Any:
    canvas, axes = panels(3 * len(curves), n_columns=3, width=3.0, height=2.5)
    places = iter(axes)
    for label, found in curves.items():
        for name, quartile in _QUARTILES.items():
            place = next(places)
            picture = place.imshow(symmetric(found[name]), cmap="viridis")
            canvas.colorbar(picture, ax=place, shrink=0.85)
            place.set(title=f"{label}, {quartile}", xticks=(), yticks=())
    return canvas


FIGURE = Figure(
    "Posterior quartiles of the last kernel",
    {label: Want("kernels", CONVERGED["Dα-KP"], data) for label, data in (("1-d", "sim1d"), ("2-d", "sim2d"))},
    _draw,
)
