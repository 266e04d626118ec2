"""Figure 11: the log likelihood over iterations on Boston of the paper's sampler and of ours, and the noise."""

from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.versions import CONVERGED, PUBLISHED

_QUANTITIES = {"log_likelihood": "log likelihood", "noise_variance": "noise variance"}


def _draw(curves: Mapping[str, Curves]) -> Any:
    canvas, axes = panels(2 * len(curves), n_columns=len(curves), width=4.2, height=2.1, sharey="row")
    places = iter(axes)
    for name, words in _QUANTITIES.items():
        for label, found in curves.items():
            place = next(places)
            for chain in found[name].reshape(int(found["n_chains"][0]), -1):
                place.plot(chain, lw=0.5, alpha=0.8)
            place.set(title=f"{label}: {words}")
            place.margins(x=0.0)
    canvas.supxlabel("draw (of a long chain every k-th)", fontsize=9)
    return canvas


FIGURE = Figure(
    "Traces on Boston, first split",
    {
        "paper's sampler": Want("chains", PUBLISHED["Dα-KP"], "boston"),
        "NUTS with jumps": Want("chains", CONVERGED["Dα-KP"], "boston"),
    },
    _draw,
)
