"""Figure 2: the first 1-d replicate, all methods' predictions, and 90 % bands of those that are Bayesian."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cadlag.datasets import simulate
from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, predictions_of

_WITHOUT_BANDS = "GP MLE"


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots import plot_fits  # noqa: PLC0415  optional
    from cadlag.plots.style import COLOURS, FAINT  # noqa: PLC0415  optional

    data = simulate("1d", 0)
    inputs, points = data.X_test[:, 0], (data.X_train, data.y_train)
    banded = {k: colour for k, colour in zip(curves, COLOURS) if k != _WITHOUT_BANDS}
    canvas, axes = panels(1 + len(banded), width=2.9, sharex=True, sharey=True)
    plot_fits(inputs, {k: found["prediction"] for k, found in curves.items()}, None, points, axes[0], bare=True)
    axes[0].set(title="predictions")
    canvas.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside right center")
    for place, (label, colour) in zip(axes[1:], banded.items()):
        found = curves[label]
        band = np.column_stack([found["lower"], found["upper"]])
        plot_fits(inputs, {label: found["prediction"]}, {label: band}, points, place, [colour], bare=True)
        place.set(title=f"{label}, 90 % band")
    for place in axes:
        place.step(inputs, data.f_test, color=FAINT, alpha=0.5, lw=3, where="mid", zorder=0)
    return canvas


FIGURE = Figure("1-d fits and bands, first replicate", predictions_of("sim1d"), _draw)
