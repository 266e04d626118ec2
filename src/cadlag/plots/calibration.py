"""F_i(y_i) is uniform where the predictive laws are calibrated: histogram, coverage curve; residuals with intervals."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from cadlag.plots.style import ACCENT, BAND, FAINT, INK, POINTS, legend, legend_above, new_axes, percent

Array = NDArray[np.float64]


def _checked(pit: ArrayLike) -> Array:
    values = np.asarray(pit, dtype=float).reshape(-1)
    if len(values) == 0 or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("pit must be numbers between 0 and 1, at least one: cadlag.metrics.pit gives them")
    return values


def plot_pit(pit: ArrayLike, n_bins: int | None = None, ax: Any = None) -> Any:
    """Histogram of F_i(y_i), with the band that 90 % of bars lie in when all is well.

    Parameters
    ----------
    pit
        Probability integral transforms, (n,), as `cadlag.metrics.pit` or `leave_one_out().pit` give them.
    n_bins
        Number of bars; from 5 to 20 by the number of rows by default.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    values = _checked(pit)
    bins = int(np.clip(len(values) // 10, 5, 20)) if n_bins is None else n_bins
    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    low, high = binom(len(values), 1.0 / bins).ppf([0.05, 0.95])
    ax = new_axes(2.6) if ax is None else ax
    ax.axhspan(low, high, color=FAINT, alpha=0.2, lw=0, label="where 90 % of bars lie if calibrated")
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=INK, edgecolor="white", lw=0.8)
    ax.axhline(len(values) / bins, color=ACCENT, lw=1.2, ls="--")
    ax.set(xlabel="probability below the response", ylabel="rows", xlim=(0.0, 1.0))
    ax.set_ylim(0.0, 1.3 * max(float(counts.max()), float(high)))
    ax.yaxis.get_major_locator().set_params(integer=True)
    legend(ax, loc="upper right")
    return ax


def coverage_curve(pit: ArrayLike, levels: ArrayLike) -> Array:
    """Share of the rows inside their central intervals: those with |F_i(y_i) - ½| <= level/2.

    Parameters
    ----------
    pit
        Probability integral transforms, (n,).
    levels
        Probabilities of the intervals, (q,).

    Returns
    -------
    Array
        (q,).
    """
    depth = 2.0 * np.abs(_checked(pit) - 0.5)
    # A row on the end of its interval is inside: rounding must not decide.
    return np.mean(depth[:, None] <= np.asarray(levels, dtype=float) + 1e-12, axis=0)


def plot_coverage(pit: ArrayLike, ax: Any = None) -> Any:
    """Share of rows inside their central intervals, against the intervals' probability.

    Parameters
    ----------
    pit
        Probability integral transforms, (n,).
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    values, levels = _checked(pit), np.linspace(0.0, 1.0, 101)
    low, high = (binom(len(values), levels).ppf(p) / len(values) for p in (0.05, 0.95))
    ax = new_axes(3.4) if ax is None else ax
    ax.fill_between(levels, low, high, color=FAINT, alpha=0.2, lw=0, label="90 % band if calibrated")
    ax.plot([0.0, 1.0], [0.0, 1.0], color=ACCENT, lw=1.2, ls="--")
    ax.plot(levels, coverage_curve(values, levels), color=INK, lw=1.8, label="this model")
    ax.set(xlabel="probability of the interval", ylabel="share of rows inside", xlim=(0, 1), ylim=(0, 1), aspect=1.0)
    legend(ax, loc="lower right")
    return ax


def plot_residuals(
    y: ArrayLike, prediction: ArrayLike, interval: ArrayLike | None = None, coverage: float = 0.9, ax: Any = None,
    bare: bool = False,
) -> Any:  # fmt: skip
    """Residuals against predictions, with bars for the intervals: rows outside theirs are marked.

    Parameters
    ----------
    y
        Responses, (n,).
    prediction
        Point predictions, (n,).
    interval
        Ends of the rows' intervals, (n, 2); None for no bars.
    coverage
        Their probability, for the legend.
    ax
        Axes to draw on.
    bare
        Whether to leave out labels and legend, as a panel of a larger picture does.

    Returns
    -------
    Any
        The axes.
    """
    point = np.asarray(prediction, dtype=float)
    residual = np.asarray(y, dtype=float) - point
    ax = new_axes() if ax is None else ax
    outside = np.zeros(len(point), dtype=bool)
    if interval is not None:
        low, high = np.asarray(interval, dtype=float).T - point
        outside = (residual < low) | (residual > high)
        ax.vlines(point, low, high, color=BAND, lw=1.2, alpha=0.8, label=f"{percent(coverage)} interval")
    ax.axhline(0.0, color=FAINT, lw=0.8)
    ax.plot(point[~outside], residual[~outside], ".", color=POINTS, ms=5, label="residual")
    if outside.any():
        ax.plot(point[outside], residual[outside], "D", color=ACCENT, ms=4, label=f"outside ({outside.sum()})")
    if not bare:
        ax.set(xlabel="prediction", ylabel="response less prediction")
        legend_above(ax, 3)
    return ax
