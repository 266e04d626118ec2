"""The function of one input: prediction, bands, several methods together; and where a function jumps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cadlag.names import input_names, plain_arrays
from cadlag.network.break_tables import BreakPoints
from cadlag.plots.style import (
    ACCENT,
    BAND,
    COLOURS,
    DASHES,
    INK,
    POINTS,
    legend,
    legend_above,
    new_axes,
    percent,
    words,
)

_MOST_PLANES = 8
_LEAST_LIKELY = 0.05  # probability of a jump below which a hyperplane is not shown


def plot_fit(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    grid: ArrayLike | None = None,
    coverage: float = 0.9,
    ax: Any = None,
    breaks: Any = None,
) -> Any:
    """Prediction of a model with one input: point, band of new observations, band of the function, data.

    Parameters
    ----------
    model
        A fitted regressor.
    X
        Inputs of the data, (n, 1) or (n,); None for the training data with their responses.
    y
        Responses to show; None for none.
    grid
        Where to predict; 400 points over the range of X by default.
    coverage
        Probability of the bands.
    ax
        Axes to draw on.
    breaks
        What `break_points()` gave, to mark where the largest jump is; None for no mark.

    Returns
    -------
    Any
        The axes.
    """
    if model.n_features_in_ != 1:
        raise ValueError(f"plot_fit draws models of one input, this one has {model.n_features_in_}: use plot_slice")
    if X is None:
        X, y = model.training_data()
    ax = new_axes() if ax is None else ax
    x = np.asarray(X, dtype=float).reshape(-1)
    where = np.linspace(x.min(), x.max(), 400) if grid is None else np.asarray(grid, dtype=float).reshape(-1)
    draw_bands(ax, model, where, where[:, None], coverage)
    if y is not None:
        ax.plot(x, np.asarray(y, dtype=float), ".", color=POINTS, ms=4.5, label="data", zorder=3)
    if breaks is not None:
        _mark_break(ax, breaks, coverage)
    ax.set(xlabel=words(input_names(model)[0]), ylabel="y")
    ax.margins(x=0.01)
    legend_above(ax)
    return ax


def draw_bands(ax: Any, model: Any, where: Any, rows: Any, coverage: float) -> None:
    """Point prediction and both bands at the rows, against `where`."""
    with plain_arrays():
        observation = model.predict_interval(rows, coverage)
        function = model.predict_interval(rows, coverage, kind="function")
        point = model.predict(rows)
    share = percent(coverage)
    ax.fill_between(where, *observation.T, color=BAND, alpha=0.4, lw=0, label=f"{share} band, new observation")
    ax.fill_between(where, *function.T, color=BAND, lw=0, label=f"{share} band, function")
    ax.plot(where, point, color=INK, lw=1.8, label="prediction")


def _mark_break(ax: Any, breaks: Any, coverage: float) -> None:
    low, high = breaks.interval(coverage)
    ax.axvspan(low, high, color=ACCENT, alpha=0.16, lw=0, zorder=0, label=f"largest jump, {percent(coverage)}")


def plot_fits(
    x: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    intervals: Mapping[str, ArrayLike] | None = None,
    data: tuple[ArrayLike, ArrayLike] | None = None,
    ax: Any = None,
    colours: Sequence[str] = COLOURS,
    bare: bool = False,
) -> Any:
    """Predictions of several methods of one input together, with their bands where given.

    Parameters
    ----------
    x
        Where they were made, (m,), increasing.
    predictions
        Name of a method to its point predictions, (m,).
    intervals
        Name of a method to the ends of its intervals, (m, 2).
    data
        Inputs and responses to show as points.
    ax
        Axes to draw on.
    colours
        Of the methods, in their order.
    bare
        Whether to leave out labels and legend, as a panel of a larger picture does.

    Returns
    -------
    Any
        The axes.
    """
    ax = new_axes() if ax is None else ax
    where, bands = np.asarray(x, dtype=float).reshape(-1), intervals or {}
    opacity = 0.16 if len(bands) > 1 else 0.25
    if data is not None:
        ax.plot(np.ravel(data[0]), np.ravel(data[1]), ".", color=POINTS, ms=4.0, alpha=0.6, label="data")
    for k, (name, values) in enumerate(predictions.items()):
        colour = colours[k % len(colours)]
        if name in bands:
            ax.fill_between(where, *np.asarray(bands[name], dtype=float).T, color=colour, alpha=opacity, lw=0)
        style = DASHES[k % len(DASHES)]
        ax.plot(where, np.asarray(values, dtype=float), color=colour, ls=style, lw=1.6, label=words(name))
    ax.margins(x=0.01)
    if not bare:
        ax.set(xlabel="x", ylabel="y")
        legend_above(ax, 3)
    return ax


def plot_breaks(breaks: Any, ax: Any = None, names: Sequence[str] | None = None) -> Any:
    """Where a network jumps: probability of a jump in each interval, or across the likeliest hyperplanes.

    Parameters
    ----------
    breaks
        What `break_points()` of a fitted network gave.
    ax
        Axes to draw on.
    names
        Labels of hyperplanes; made from their coefficients by default.

    Returns
    -------
    Any
        The axes.
    """
    if isinstance(breaks, BreakPoints):
        return _draw_points(breaks, new_axes(2.4) if ax is None else ax)
    shown = min(max(int(np.sum(breaks["probability"] >= _LEAST_LIKELY)), 1), _MOST_PLANES, len(breaks["offset"]))
    ax = new_axes(1.2 + 0.32 * shown) if ax is None else ax
    labels = [_equation(breaks, k) for k in range(shown)] if names is None else [words(name, 60) for name in names]
    return _draw_planes(breaks, ax, labels[:shown])


def _draw_points(breaks: Any, ax: Any) -> Any:
    lower, upper = breaks["lower"], breaks["upper"]
    ax.bar(lower, breaks["probability"], upper - lower, align="edge", color=INK, lw=0)
    _mark_break(ax, breaks, 0.9)
    ax.set(ylabel=f"P(jump > {breaks.min_size:.3g})", ylim=(0.0, 1.0))
    ax.margins(x=0.01)
    legend(ax)
    return ax


def _draw_planes(breaks: Any, ax: Any, labels: list[str]) -> Any:
    rows, probability = np.arange(len(labels))[::-1], breaks["probability"][: len(labels)]
    ax.barh(rows, probability, color=INK, height=0.7)
    for row, p, size in zip(rows, probability, breaks["size"]):
        inside = p > 0.5
        ax.annotate(f"{size:+.3g}", (p, row), xytext=(-4 if inside else 4, 0), textcoords="offset points", va="center",
                    ha="right" if inside else "left", color="white" if inside else POINTS, fontsize=9)  # fmt: skip
    ax.set_yticks(rows, labels=labels)
    ax.set(xlim=(0.0, 1.0), xlabel=f"P(jump > {breaks.min_size:.3g})")
    return ax


def _equation(breaks: Any, k: int, most: int = 2) -> str:
    """A hyperplane in words: its largest coefficients."""
    names = list(breaks)[-breaks.normals.shape[1] :]
    normal = breaks.normals[k]
    largest = sorted(np.argsort(-np.abs(normal))[:most])
    terms = " ".join(f"{normal[j]:+.2g}·{words(names[j], 12)}" for j in largest)
    rest = " + …" if len(normal) > most else ""
    return f"{terms}{rest} = {breaks['offset'][k]:.2g}".replace("-", "−").removeprefix("+")
