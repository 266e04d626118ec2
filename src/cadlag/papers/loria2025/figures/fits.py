"""Figure 2: the first 1-d replicate, all methods' predictions, and 90 % bands of those that are Bayesian."""

from collections.abc import Mapping
from typing import Any

from cadlag.datasets import simulate
from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import COLOURS, POINTS, TRUTH, name_of, panels
from cadlag.papers.loria2025.figures.wants import Figure, predictions_of

_WITHOUT_BANDS = "GP MLE"


def _draw(curves: Mapping[str, Curves]) -> Any:
    data = simulate("1d", 0)
    inputs, banded = data.X_test[:, 0], {k: v for k, v in curves.items() if k != _WITHOUT_BANDS}
    canvas, axes = panels(1 + len(banded), sharex=True, sharey=True)
    for label, found in curves.items():
        axes[0].plot(inputs, found["prediction"], color=COLOURS[label], lw=1.2, label=name_of(label))
    axes[0].set(title="predictions")
    axes[0].legend(frameon=False, fontsize=6.5, loc="upper left", handlelength=1.2)
    for place, (label, found) in zip(axes[1:], banded.items()):
        place.fill_between(inputs, found["lower"], found["upper"], color=COLOURS[label], alpha=0.25, lw=0)
        place.plot(inputs, found["prediction"], color=COLOURS[label], lw=1.2)
        place.set(title=f"{name_of(label)}, 90 % band")
    for place in axes:
        place.step(inputs, data.f_test, color=TRUTH, lw=3, where="mid", zorder=0)
        place.plot(data.X_train[:, 0], data.y_train, ".", color=POINTS, ms=3, zorder=1)
        place.margins(x=0.01)
    return canvas


FIGURE = Figure("1-d fits and bands, first replicate", predictions_of("sim1d"), _draw)
