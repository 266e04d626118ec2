"""Figure 6: the first 1-d replicate with several α: median and 25-75 % band of the predictive law on a fine grid.

Above with the paper's sampler, below with chains that agree.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.datasets import simulate
from cadlag.papers.loria2025.curves import Curves, grid, rise
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import ALPHAS, CONVERGED, PUBLISHED

_SAMPLERS = {"paper's sampler": PUBLISHED["Dα-KP"], "converged": CONVERGED["Dα-KP"]}


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots import plot_fits  # noqa: PLC0415  optional

    data = simulate("1d", 0)
    canvas, axes = panels(len(curves), n_columns=len(ALPHAS), width=2.3, sharex=True, sharey=True)
    for place, (label, found) in zip(axes, curves.items()):
        band = np.column_stack([found["lower"], found["upper"]])
        plot_fits(grid(), {label: found["median"]}, {label: band}, (data.X_train, data.y_train), place, bare=True)
        place.set_title(f"{label}\n10 to 90 % of the rise in {rise(found['median']):.3f}", fontsize=8)
    return canvas


FIGURE = Figure(
    "Ablation in α, 1-d",
    {
        f"α = {alpha:g}, {name}": Want("ablation", version.having(alpha=alpha), "sim1d")
        for name, version in _SAMPLERS.items()
        for alpha in ALPHAS
    },
    _draw,
)
