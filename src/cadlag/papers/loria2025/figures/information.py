"""Figure 1: conditional mutual information -½ E log(1 - ρ²) of the function at 0 and d, under the prior."""

from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import DISTANCES, Curves
from cadlag.papers.loria2025.figures.style import panels
from cadlag.papers.loria2025.figures.wants import Figure, Want
from cadlag.papers.loria2025.plan import PRIOR
from cadlag.papers.loria2025.versions import Version

# The paper's one hidden layer, and its bias instead of a column of ones.
_PROCESS = {"depth": 1, "fit_intercept": False, "n_samples": 10_000}
_TICKS = (0.2, 0.5, 1, 2)


def _draw(curves: Mapping[str, Curves]) -> Any:
    canvas, (axes,) = panels(1, width=5.5, height=3.6)
    shades = _shades(len(curves))
    for shade, (label, found) in zip(shades, curves.items()):
        axes.plot(DISTANCES, found["information"], color=shade, lw=1.6, label=label)
    axes.set(yscale="log", xlabel="distance d of two inputs, 0 and d", ylabel="conditional mutual information")
    axes.set_yticks(_TICKS, labels=map(str, _TICKS))
    axes.set_yticks((), minor=True)
    axes.legend(frameon=False, fontsize=9)
    axes.margins(x=0.01)
    return canvas


def _shades(n: int) -> list[tuple[float, float, float]]:
    """Return colours from light to dark."""
    return [(0.62 - 0.5 * t, 0.77 - 0.46 * t, 0.9 - 0.43 * t) for t in (i / max(1, n - 1) for i in range(n))]


FIGURE = Figure(
    "Conditional mutual information against distance",
    {
        f"α = {alpha:g}": Want("information", Version("kernel", {"alpha": alpha, **_PROCESS}), PRIOR)
        for alpha in (0.5, 1.0, 1.5, 2.0)
    },
    _draw,
)
