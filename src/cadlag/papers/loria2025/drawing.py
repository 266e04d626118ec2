"""Stored curves -> pictures, a function a kind of figure, in the one style of `cadlag.plots`: panels in a grid."""

import io
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np

from cadlag import plots
from cadlag.datasets import simulate
from cadlag.metrics import coverage
from cadlag.papers.loria2025.curves import DISTANCES, Array, Curves, grid, rise, symmetric
from cadlag.papers.loria2025.figures import Figure
from cadlag.papers.loria2025.versions import ALPHAS
from cadlag.plots.kernels import draw_matrices
from cadlag.plots.style import COLOURS, FAINT, STYLE, new_axes

_QUARTILES = {"lower": "25 %", "median": "50 %", "upper": "75 %"}
_QUANTITIES = {"log_likelihood": "log likelihood", "noise_variance": "noise variance"}
_TICKS = (0.2, 0.5, 1, 2)
_WITHOUT_BANDS = "GP MLE"


def picture(figure: Figure, found: Mapping[str, Curves]) -> bytes:
    """Draw a figure."""
    out = io.BytesIO()
    with mpl.rc_context(STYLE):
        # The date and version of the library stay out, so that equal curves give equal files.
        figure.draw(found).savefig(out, dpi=130, metadata={"Software": None})
    return out.getvalue()


def panels(
    n: int, n_columns: int | None = None, width: float = 2.6, height: float = 2.3, **shared: Any
) -> tuple[Any, list]:
    """Return a canvas and n axes in a grid on it."""
    n_columns = min(n, n_columns or min((4, 3), key=lambda columns: -n % columns))
    n_rows = -(-n // n_columns)
    axes_of = new_axes(height * n_rows, n_columns, True, n_rows, width * n_columns, squeeze=False, **shared)
    for axes in axes_of.flat[n:]:
        axes.set_axis_off()
    # With shared axes only the last row is labelled, and some of its places may be empty.
    for axes in axes_of.flat[max(0, n - n_columns) : n]:
        axes.tick_params(labelbottom=True)
    return axes_of[0, 0].figure, list(axes_of.flat[:n])


def _band(found: Curves) -> Array:
    """Return the ends of intervals, (m, 2)."""
    return np.column_stack([found["lower"], found["upper"]])


def information(curves: Mapping[str, Curves]) -> Any:
    """Figure 1: conditional mutual information -½ E log(1 - ρ²) of the function at 0 and d, under the prior."""
    canvas, (axes,) = panels(1, width=5.5, height=3.6)
    values, errors = ({label: found[name] for label, found in curves.items()} for name in ("information", "error"))
    plots.plot_mutual_information(DISTANCES, values, errors, axes)
    # Rates of decay are slopes on a logarithmic axis.
    axes.autoscale(axis="y")
    axes.set_yscale("log")
    axes.set_yticks(_TICKS, labels=map(str, _TICKS))
    axes.minorticks_off()
    return canvas


def fits(curves: Mapping[str, Curves]) -> Any:
    """Figure 2: the first 1-d replicate, all methods' predictions, and 90 % bands of those that are Bayesian."""
    data = simulate("1d", 0)
    inputs, points = data.X_test[:, 0], (data.X_train, data.y_train)
    banded = {k: colour for k, colour in zip(curves, COLOURS) if k != _WITHOUT_BANDS}
    canvas, axes = panels(1 + len(banded), width=2.9, sharex=True, sharey=True)
    plots.plot_fits(inputs, {k: found["prediction"] for k, found in curves.items()}, None, points, axes[0], bare=True)
    axes[0].set(title="predictions")
    canvas.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside right center")
    for place, (label, colour) in zip(axes[1:], banded.items()):
        point, band = {label: curves[label]["prediction"]}, {label: _band(curves[label])}
        plots.plot_fits(inputs, point, band, points, place, [colour], bare=True)
        place.set(title=f"{label}, 90 % band")
    for place in axes:
        place.step(inputs, data.f_test, color=FAINT, alpha=0.5, lw=3, where="mid", zorder=0)
    return canvas


def features(curves: Mapping[str, Curves]) -> Any:
    """Figures 3, 12 and 13: two features of the first hidden layer at the first training input, under the posterior.

    A pair a draw: density with box plots at its margins, and normal q-q plots, whose ends bend where tails are heavy.
    """
    (found,) = curves.values()
    canvas, (left, *others) = panels(3, width=3.4, height=3.6)
    plots.plot_features(np.stack([found["first"], found["second"]], axis=1)[:, :, None], ax=left)
    for place, name in zip(others, ("first", "second")):
        plots.plot_normal_quantiles(found[name], place, f"{name} feature")
    return canvas


def surfaces(curves: Mapping[str, Curves]) -> Any:
    """Figure 4a: predictions over the 9 × 9 test grid of the first 2-d replicate, a panel a method, and the truth."""
    data = simulate("2d", 0)
    shown = {"truth": np.asarray(data.f_test), **{label: found["prediction"] for label, found in curves.items()}}
    canvas, axes = panels(len(shown), sharex=True, sharey=True)
    for place, (title, values) in zip(axes, shown.items()):
        plots.plot_surface(data.X_test, values, place, (-1.0, 11.0), names=("", ""), label="")
        place.set(title=title, xticks=(-1, 0, 1), yticks=(-1, 0, 1), aspect=1.0)
    canvas.colorbar(axes[0].collections[0], ax=axes, shrink=0.8)
    return canvas


def residuals(curves: Mapping[str, Curves]) -> Any:
    """Figures 4b, 5, 8, 9 and 10: observed minus predicted against predicted at test inputs, 90 % intervals as bars."""
    canvas, axes = panels(len(curves), sharex=True, sharey=True)
    for place, (label, found) in zip(axes, curves.items()):
        plots.plot_residuals(found["observed"], found["prediction"], _band(found), ax=place, bare=True)
        inside = coverage(found["observed"], found["lower"], found["upper"])
        place.set(title=f"{label}: {100 * inside:.0f} % inside")
    canvas.supxlabel("prediction")
    canvas.supylabel("observed − predicted (diamonds: outside)")
    return canvas


def ablation(curves: Mapping[str, Curves]) -> Any:
    """Figure 6: the first 1-d replicate with several α: median and 25-75 % band of the predictive law on a fine grid.

    Above with the paper's sampler, below with chains that agree.
    """
    data = simulate("1d", 0)
    canvas, axes = panels(len(curves), n_columns=len(ALPHAS), width=2.3, sharex=True, sharey=True)
    for place, (label, found) in zip(axes, curves.items()):
        point, band = {label: found["median"]}, {label: _band(found)}
        plots.plot_fits(grid(), point, band, (data.X_train, data.y_train), place, bare=True)
        place.set_title(f"{label}\n10 to 90 % of the rise in {rise(found['median']):.3f}", fontsize=8)
    return canvas


def kernels(curves: Mapping[str, Curves]) -> Any:
    """Figure 7: entrywise posterior quartiles of the last kernel matrix Σ_K at the training inputs, 1-d and 2-d."""
    canvas, axes = panels(3 * len(curves), n_columns=3, width=3.0, height=2.6)
    for k, (label, found) in enumerate(curves.items()):
        tables = [symmetric(found[name]) for name in _QUARTILES]
        draw_matrices(axes[3 * k : 3 * k + 3], tables, [f"{label}, {quartile}" for quartile in _QUARTILES.values()])
    return canvas


def traces(curves: Mapping[str, Curves]) -> Any:
    """Figure 11: the log likelihood over iterations on Boston of the paper's sampler and of ours, and the noise."""
    canvas, axes = panels(2 * len(curves), n_columns=len(curves), width=4.2, height=2.1, sharey="row")
    pairs = ((name, label) for name in _QUANTITIES for label in curves)
    for place, (name, label) in zip(axes, pairs):
        draws = curves[label][name].reshape(int(curves[label]["n_chains"][0]), -1)
        plots.plot_trace(draws, _QUANTITIES[name], ax=place)
        place.set(title=label, xlabel="draw (of a long chain every k-th)")
        place.label_outer()
    return canvas
