"""Figure 11: the log likelihood over iterations on Boston of the paper's sampler and of ours, and the noise."""

from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import CONVERGED, PUBLISHED

_QUANTITIES = {"log_likelihood": "log likelihood", "noise_variance": "noise variance"}


def _draw(curves: Mapping[str, Curves]) -> Any:
    from cadlag.plots import plot_trace  # noqa: PLC0415  optional

    canvas, axes = panels(2 * len(curves), n_columns=len(curves), width=4.2, height=2.1, sharey="row")
    pairs = ((name, label) for name in _QUANTITIES for label in curves)
    for place, (name, label) in zip(axes, pairs):
        draws = curves[label][name].reshape(int(curves[label]["n_chains"][0]), -1)
        plot_trace(draws, _QUANTITIES[name], ax=place)
        place.set(title=label, xlabel="draw (of a long chain every k-th)")
        place.label_outer()
    return canvas


FIGURE = Figure(
    "Traces on Boston, first split",
    {
        "paper's sampler": Want("chains", PUBLISHED["Dα-KP"], "boston"),
        "NUTS with jumps": Want("chains", CONVERGED["Dα-KP"], "boston"),
    },
    _draw,
)
