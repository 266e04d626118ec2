"""Do the chains agree? Draws in order, and the ranks of each chain's draws among all draws, which should be even."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, rankdata

from cadlag.plots.style import COLOURS, FAINT, INK, new_axes, words

Array = NDArray[np.float64]

_MOST_POINTS = 2000  # of a line: more are not seen


def _scalar(posterior: Any, name: str) -> Array:
    if isinstance(posterior, np.ndarray):
        return posterior
    scalars = posterior.scalars()
    if name not in scalars:
        raise ValueError(f"{name!r} is not among {', '.join(scalars)}")
    return np.asarray(scalars[name])


def plot_trace(posterior: Any, name: str = "log_likelihood", ax: Any = None) -> Any:
    """Draws of one quantity, a line a chain.

    Parameters
    ----------
    posterior
        The posterior of a fitted regressor, or draws of one quantity, (chains, draws).
    name
        A scalar that `posterior.summary()` lists, or what the draws are called.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    values = _scalar(posterior, name)
    ax = new_axes(2.2) if ax is None else ax
    shown = np.unique(np.linspace(0, values.shape[1] - 1, min(values.shape[1], _MOST_POINTS)).astype(int))
    for c, chain in enumerate(values):
        ax.plot(shown, chain[shown], lw=0.6, alpha=0.85, color=COLOURS[c % len(COLOURS)], label=f"chain {c}")
    if np.all(values > 0.0) and values.max() > 100.0 * values.min():
        ax.set_yscale("log")
    ax.set(xlabel="draw", ylabel=words(name))
    ax.margins(x=0.0)
    return ax


def plot_ranks(posterior: Any, name: str = "log_likelihood", n_bins: int = 20, ax: Any = None) -> Any:
    """How the draws of each chain rank among those of all: level where chains agree, with a 90 % band.

    The band is that of independent draws; chains that move slowly leave it more often.

    Parameters
    ----------
    posterior
        The posterior of a fitted regressor, or draws of one quantity, (chains, draws).
    name
        A scalar that `posterior.summary()` lists, or what the draws are called.
    n_bins
        Number of bins of the ranks.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    values = _scalar(posterior, name)
    ranks = (rankdata(values).reshape(values.shape) - 0.5) / values.size
    bins = min(n_bins, max(values.shape[1] // 5, 1))
    low, high = binom(values.shape[1], 1.0 / bins).ppf([0.05, 0.95])
    ax = new_axes(2.2) if ax is None else ax
    ax.axhspan(low, high, color=FAINT, alpha=0.2, lw=0)
    for c, chain in enumerate(ranks):
        counts, edges = np.histogram(chain, bins=bins, range=(0.0, 1.0))
        ax.stairs(counts, edges, color=COLOURS[c % len(COLOURS)], lw=1.4, baseline=None, label=f"chain {c}")
    ax.set(xlabel=f"rank of {words(name)}", ylabel="draws", xlim=(0.0, 1.0))
    ax.set_ylim(0.0)
    return ax


def plot_bound(trace: Array, ax: Any = None) -> Any:
    """The evidence bound of a variational fit at each step.

    Parameters
    ----------
    trace
        The bound per datum, NaN where a step failed.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    values = np.asarray(trace, dtype=float)
    ax = new_axes(2.4) if ax is None else ax
    shown = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_POINTS)).astype(int))
    ax.plot(shown, values[shown], lw=0.7, color=INK)
    known = values[np.isfinite(values)]
    if len(known):
        # The first steps are far below: what matters is whether the last ones still rise.
        ax.set_ylim(np.quantile(known, 0.05), known.max())
    ax.set(xlabel="step", ylabel="bound per row")
    ax.margins(x=0.0)
    return ax
