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
    from cadlag.plots import plot_mutual_information  # noqa: PLC0415  optional

    canvas, (axes,) = panels(1, width=5.5, height=3.6)
    values, errors = ({label: found[name] for label, found in curves.items()} for name in ("information", "error"))
    plot_mutual_information(DISTANCES, values, errors, axes)
    # Rates of decay are slopes on a logarithmic axis.
    axes.autoscale(axis="y")
    axes.set_yscale("log")
    axes.set_yticks(_TICKS, labels=map(str, _TICKS))
    axes.minorticks_off()
    return canvas


FIGURE = Figure(
    "Conditional mutual information against distance",
    {
        f"α = {alpha:g}": Want("information", Version("kernel", {"alpha": alpha, **_PROCESS}), PRIOR)
        for alpha in (0.5, 1.0, 1.5, 2.0)
    },
    _draw,
)
