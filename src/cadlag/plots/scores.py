"""Scores of methods side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cadlag.plots.style import BAND, INK, new_axes, words


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
    ax = new_axes(0.9 + 0.3 * len(rows)) if ax is None else ax
    heights = np.arange(len(rows))[::-1]
    ax.errorbar(
        [row[score] for row in rows], heights, xerr=[row[f"{score}_sd"] for row in rows], fmt="o", color=INK,
        ecolor=BAND, elinewidth=4,
    )  # fmt: skip
    ax.set(
        yticks=heights, yticklabels=[words(row["method"]) for row in rows], xlabel=f"{score}, mean and sd over folds"
    )
    return ax
