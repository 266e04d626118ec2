"""What the paper draws of its own model: quantiles of Σ_k, features N(0, c_ℓ Σ_{ℓ-1}), -½ E log(1 - ρ²) by distance."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from numpy.typing import ArrayLike
from scipy.stats import probplot

from cadlag.plots.style import ACCENT, BAND, COLOURS, DASHES, FAINT, INK, SEQUENTIAL, legend, new_axes, percent, words


def plot_kernel_quantiles(kernels: ArrayLike, quantiles: Sequence[float] = (0.25, 0.5, 0.75), ax: Any = None) -> Any:
    """Entrywise quantiles of a kernel matrix as heat maps on one colour scale.

    Parameters
    ----------
    kernels
        Draws of the matrix, (draws, m, m), as `sample_kernels` gives them.
    quantiles
        One heat map each.
    ax
        As many axes to draw on.

    Returns
    -------
    Any
        The axes, an array.
    """
    tables = np.quantile(np.asarray(kernels, dtype=float), quantiles, axis=0)
    axes = np.atleast_1d(new_axes(2.3, len(tables), sharex=True, sharey=True) if ax is None else ax)
    if len(axes) != len(tables):
        raise ValueError(f"{len(tables)} quantiles need as many axes, got {len(axes)}")
    draw_matrices(axes, tables, [f"{percent(p)} quantile" for p in quantiles])
    return axes


def draw_matrices(axes: Any, tables: ArrayLike, titles: Sequence[str]) -> None:
    """Matrices side by side as heat maps on one colour scale.

    Parameters
    ----------
    axes
        One for each matrix.
    tables
        The matrices, (m, n, n).
    titles
        What they are.
    """
    matrices = np.asarray(tables, dtype=float)
    low, high = min(0.0, float(matrices.min())), float(matrices.max())
    for panel, table, title in zip(axes, matrices, titles):
        image = panel.imshow(table, cmap=SEQUENTIAL, vmin=low, vmax=high, interpolation="nearest")
        panel.set(xlabel="row")
        panel.set_title(title, fontsize=10)
    axes[0].set(ylabel="row")
    bar = axes[0].figure.colorbar(image, ax=list(axes), shrink=0.8)
    bar.outline.set_visible(False)


def plot_features(features: ArrayLike, row: int = 0, ax: Any = None) -> Any:
    """Draws of the first two hidden features at one row: their density, with box plots along both axes.

    Parameters
    ----------
    features
        (draws, n_features, m), as `sample_features` gives them.
    row
        Which of the m rows.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes, with those of the box plots among its children.
    """
    draws = np.asarray(features, dtype=float)
    if draws.ndim != 3 or draws.shape[1] < 2:
        raise ValueError(
            f"features must be (draws, n_features >= 2, rows), got {draws.shape}: sample_features gives it"
        )
    pair = draws[:, :2, row]
    ax = new_axes(4.2) if ax is None else ax
    reach = float(np.quantile(np.abs(pair), 0.99))
    ax.hexbin(*pair.T, gridsize=30, extent=(-reach, reach) * 2, cmap="Blues", mincnt=1, lw=0.2,
              norm=LogNorm(vmin=0.3))  # fmt: skip
    ax.set(xlabel="first feature", ylabel="second feature", xlim=(-reach, reach), ylim=(-reach, reach))
    _draw_boxes(ax, pair)
    return ax


def _draw_boxes(ax: Any, pair: Any) -> None:
    """Box plots above and to the right; what lies beyond the picture is counted, not drawn."""
    box = {"widths": 0.6, "patch_artist": True, "boxprops": {"facecolor": BAND, "edgecolor": INK},
           "medianprops": {"color": INK}, "whiskerprops": {"color": INK}, "capprops": {"color": INK},
           "flierprops": {"marker": ".", "ms": 2, "mec": FAINT}}  # fmt: skip
    above = ax.inset_axes([0.0, 1.02, 1.0, 0.12], sharex=ax)
    aside = ax.inset_axes([1.02, 0.0, 0.12, 1.0], sharey=ax)
    above.boxplot(pair[:, 0], orientation="horizontal", **box)
    aside.boxplot(pair[:, 1], **box)
    for own in (above, aside):
        own.axis("off")
    beyond = int(np.sum(np.abs(pair).max(axis=1) > ax.get_xlim()[1]))
    if beyond:
        ax.annotate(f"{beyond} of {len(pair)} draws lie beyond", (0.02, 0.02), xycoords="axes fraction", fontsize=9)


def plot_normal_quantiles(values: ArrayLike, ax: Any = None, label: str = "draws") -> Any:
    """Normal q-q plot: straight where the draws are Gaussian, bent like an S where their tails are heavier.

    Parameters
    ----------
    values
        Draws, (n,).
    ax
        Axes to draw on.
    label
        Of the vertical axis.

    Returns
    -------
    Any
        The axes.
    """
    (normal, ordered), _ = probplot(np.asarray(values, dtype=float).reshape(-1))
    ax = new_axes() if ax is None else ax
    # The line through the quartiles, which heavy tails do not tilt.
    (x1, x2), (y1, y2) = (np.quantile(part, [0.25, 0.75]) for part in (normal, ordered))
    ax.axline((x1, y1), slope=(y2 - y1) / (x2 - x1), color=ACCENT, lw=1.2, ls="--", label="line of a normal law")
    ax.plot(normal, ordered, ".", color=INK, ms=4, label=words(label))
    ax.set(xlabel="normal quantile", ylabel=words(label))
    legend(ax, loc="upper left")
    return ax


def plot_mutual_information(
    distance: ArrayLike, curves: Mapping[str, ArrayLike], errors: Mapping[str, ArrayLike] | None = None, ax: Any = None
) -> Any:
    """Conditional mutual information of the function at two inputs by their distance, a curve a model.

    Parameters
    ----------
    distance
        Between the inputs, (m,), increasing.
    curves
        Label to values, (m,), as `conditional_mutual_information` gives them.
    errors
        Label to Monte-Carlo standard errors, (m,): drawn as bands of two either side.
    ax
        Axes to draw on.

    Returns
    -------
    Any
        The axes.
    """
    where = np.asarray(distance, dtype=float)
    ax = new_axes() if ax is None else ax
    for k, (name, values) in enumerate(curves.items()):
        colour, curve = COLOURS[k % len(COLOURS)], np.asarray(values, dtype=float)
        if errors is not None and name in errors:
            reach = 2.0 * np.asarray(errors[name], dtype=float)
            ax.fill_between(where, curve - reach, curve + reach, color=colour, alpha=0.2, lw=0)
        ax.plot(where, curve, color=colour, ls=DASHES[k % len(DASHES)], lw=1.6, label=words(name))
    ax.set(xlabel="distance of the inputs", ylabel="conditional mutual information [nats]")
    ax.margins(x=0.01)
    ax.set_ylim(0.0)
    legend(ax)
    return ax
