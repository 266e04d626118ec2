"""Pictures: every function draws on given axes or makes its own, and returns the axes."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike

INK, BAND, POINTS = "#1f4e79", "#9ec3e6", "#444444"
_MOST_PLANES = 8


def plot_fit(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    grid: ArrayLike | None = None,
    coverage: float = 0.9,
    ax: Any = None,
) -> Any:
    """Prediction of a model with one input: point, band of new observations, band of the function, data.

    Parameters
    ----------
    model
        A fitted regressor.
    X
        Inputs of the data, (n, 1) or (n,).
    y
        Responses to show; None for none.
    grid
        Where to predict; 400 points over the range of X by default.
    coverage
        Probability of the bands.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    ax = plt.subplots(figsize=(8, 4.5), layout="constrained")[1] if ax is None else ax
    x = np.asarray(X, dtype=float).reshape(-1)
    where = np.linspace(x.min(), x.max(), 400) if grid is None else np.asarray(grid, dtype=float).reshape(-1)
    observation = model.predict_interval(where[:, None], coverage)
    function = model.predict_interval(where[:, None], coverage, kind="function")
    percent = f"{100 * coverage:.0f} %"
    ax.fill_between(where, *observation.T, color=BAND, alpha=0.45, lw=0, label=f"{percent} band of a new observation")
    ax.fill_between(where, *function.T, color=BAND, lw=0, label=f"{percent} band of the function")
    ax.plot(where, model.predict(where[:, None]), color=INK, lw=1.8, label="prediction")
    if y is not None:
        ax.plot(x, np.asarray(y, dtype=float), ".", color=POINTS, ms=5, label="data")
    ax.margins(x=0.01)
    ax.legend(frameon=False, fontsize=9)
    return ax


def plot_trace(posterior: Any, name: str = "log_likelihood", ax: Any = None) -> Any:
    """Draws of one quantity, a line a chain.

    Parameters
    ----------
    posterior
        The posterior of a fitted regressor.
    name
        A scalar that `posterior.summary()` lists.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    scalars = posterior.scalars()
    if name not in scalars:
        raise ValueError(f"{name!r} is not among {', '.join(scalars)}")
    ax = plt.subplots(figsize=(8, 3), layout="constrained")[1] if ax is None else ax
    for chain in scalars[name]:
        ax.plot(chain, lw=0.6, alpha=0.8)
    ax.set(xlabel="draw", ylabel=name)
    ax.margins(x=0.0)
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
    ax = plt.subplots(figsize=(8, 3), layout="constrained")[1] if ax is None else ax
    if "lower" in breaks:
        lower, upper = breaks["lower"], breaks["upper"]
        ax.bar(lower, breaks["probability"], upper - lower, align="edge", color=INK, lw=0)
        low, high = breaks.interval(0.9)
        ax.axvspan(low, high, color=BAND, alpha=0.45, lw=0, zorder=0, label="90 % interval of the largest jump")
        ax.set(ylabel=f"P(jump > {breaks.min_size:.3g})", ylim=(0.0, 1.0))
        ax.margins(x=0.01)
        ax.legend(frameon=False, fontsize=9)
        return ax
    shown = min(len(breaks["offset"]), _MOST_PLANES)
    labels = [_equation(breaks, k) for k in range(shown)] if names is None else list(names)[:shown]
    rows, probability = np.arange(shown)[::-1], breaks["probability"][:shown]
    ax.barh(rows, probability, color=INK)
    for row, p, size in zip(rows, probability, breaks["size"]):
        inside = p > 0.5
        ax.annotate(f"{size:+.3g}", (p, row), xytext=(-4 if inside else 4, 0), textcoords="offset points", va="center",
                    ha="right" if inside else "left", color="white" if inside else POINTS)  # fmt: skip
    ax.set(yticks=rows, yticklabels=labels, xlim=(0.0, 1.0), xlabel=f"P(jump > {breaks.min_size:.3g}); its median size")
    return ax


def _equation(breaks: Any, k: int, most: int = 3) -> str:
    """A hyperplane in words: its largest coefficients."""
    names = list(breaks)[-breaks.normals.shape[1] :]
    normal = breaks.normals[k]
    largest = sorted(np.argsort(-np.abs(normal))[:most])
    terms = " ".join(f"{normal[j]:+.2g} {names[j]}" for j in largest)
    rest = " + .." if len(normal) > most else ""
    return f"{terms}{rest} = {breaks['offset'][k]:.2g}"


def plot_comparison(rows: Sequence[Mapping[str, Any]], score: str = "crps", ax: Any = None) -> Any:
    """Scores of methods on the same folds: means, and standard deviations over the folds.

    Parameters
    ----------
    rows
        What `cadlag.compare.summarise` gave.
    score
        Which score.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    ax = plt.subplots(figsize=(7, 0.6 + 0.4 * len(rows)), layout="constrained")[1] if ax is None else ax
    heights = np.arange(len(rows))[::-1]
    ax.errorbar(
        [row[score] for row in rows], heights, xerr=[row[f"{score}_sd"] for row in rows], fmt="o", color=INK,
        ecolor=BAND, elinewidth=4,
    )  # fmt: skip
    ax.set(yticks=heights, yticklabels=[row["method"] for row in rows], xlabel=f"{score}, mean and sd over folds")
    return ax
