"""Figure 7: entrywise posterior quartiles of the last kernel matrix Σ_K at the training inputs, 1-d and 2-d."""

from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import Curves, symmetric
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import CONVERGED

_QUARTILES = {"lower": "25 %", "median": "50 %", "upper": "75 %"}


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots.kernels import draw_matrices  # noqa: PLC0415  optional

    canvas, axes = panels(3 * len(curves), n_columns=3, width=3.0, height=2.6)
    for k, (label, found) in enumerate(curves.items()):
        tables = [symmetric(found[name]) for name in _QUARTILES]
        draw_matrices(axes[3 * k : 3 * k + 3], tables, [f"{label}, {quartile}" for quartile in _QUARTILES.values()])
    return canvas


FIGURE = Figure(
    "Posterior quartiles of the last kernel",
    {label: Want("kernels", CONVERGED["Dα-KP"], data) for label, data in (("1-d", "sim1d"), ("2-d", "sim2d"))},
    _draw,
)
