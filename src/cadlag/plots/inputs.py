"""Functions of several inputs: g_j(x) = n⁻¹ Σ_i f(x_i with column j set to x), slices, surfaces, relevance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cadlag.names import input_names, plain_arrays
from cadlag.partial_dependence import partial_dependence
from cadlag.plots.fit import draw_bands
from cadlag.plots.style import BAND, COLOURS, INK, POINTS, SEQUENTIAL, legend_above, new_axes, percent, words

Array = NDArray[np.float64]

_MOST_LINES = 60  # draws of a hyperplane that are drawn
_FEW_VALUES = 6  # distinct values up to which an input is drawn at these alone
_MOST_LETTERS = 45  # of all names of categories, beyond which they are written aslant


def _column(model: Any, which: int | str) -> int:
    """Number of an input that is given by number or name."""
    names = input_names(model)
    if isinstance(which, str) and which in names:
        return names.index(which)
    if isinstance(which, int | np.integer) and 0 <= which < len(names):
        return int(which)
    raise ValueError(f"there is no input {which!r}: give one of {', '.join(names)}, or its number")


def _values(column: Array, n_grid: int) -> Array:
    """Where to draw an input: evenly over its range, or at its few values."""
    distinct = np.unique(column)
    return distinct if len(distinct) <= _FEW_VALUES else np.linspace(distinct[0], distinct[-1], n_grid)


def plot_partial_dependence(
    model: Any, column: int | str | Sequence[int | str], X: ArrayLike | None = None, coverage: float = 0.9,
    ax: Any = None, n_grid: int = 40, n_rows: int = 20, n_atoms: int = 100, random_state: Any = 0,
) -> Any:  # fmt: skip
    """The function averaged over rows, one input being given, with the exact band of that average.

    Parameters
    ----------
    model
        A fitted regressor.
    column
        The input, by number or name; several stand for the categories of one, and each is set to 1 in turn, the
        others to 0.
    X
        Rows to average over; the training rows by default.
    coverage
        Probability of the band.
    ax
        Axes to draw on.
    n_grid
        Values of the input; all of them where it has few.
    n_rows
        Rows averaged over, picked at random.
    n_atoms
        Draws used.
    random_state
        Seed of the choice of rows.

    Returns
    -------
    Any
        The axes.
    """
    rows = model.training_data()[0] if X is None else np.asarray(X, dtype=float)
    some = isinstance(column, Sequence) and not isinstance(column, str)
    chosen: Any = column if some else [column]
    columns = [_column(model, which) for which in chosen]
    where = np.arange(float(len(columns))) if some else _values(rows[:, columns[0]], n_grid)
    grid = np.eye(len(columns)) if some else where
    law = partial_dependence(model, rows, columns, grid, n_rows, n_atoms, random_state)
    ax = new_axes(2.8) if ax is None else ax
    few = some or len(where) <= _FEW_VALUES
    _draw_band(ax, where, law.interval(coverage), f"{percent(coverage)} band", few)
    ax.plot(where, law.median, "o" if few else "-", color=INK, lw=1.8, ms=5, label="median")
    names = [input_names(model)[j] for j in columns]
    if some:
        _name_categories(ax, names)
    else:
        _mark_rows(ax, rows[:, columns[0]])
        ax.set(xlabel=words(names[0]))
        ax.margins(x=0.01)
    ax.set(ylabel="average of the function")
    legend_above(ax)
    return ax


def _name_categories(ax: Any, names: list[str]) -> None:
    """Ticks for the columns of one input, without what their names begin with if that ends in "="."""
    starts = {name.partition("=")[0] for name in names}
    common = starts.pop() if len(starts) == 1 and all("=" in name for name in names) else ""
    labels = [name.removeprefix(f"{common}=") for name in names] if common else names
    turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if len("".join(labels)) > _MOST_LETTERS else {}
    ax.set_xticks(range(len(names)), labels=[words(label) for label in labels], **turned)
    ax.set(xlabel=words(common), xlim=(-0.6, len(names) - 0.4))


def _draw_band(ax: Any, where: Array, ends: Array, label: str, few: bool) -> None:
    """A band, or bars where there are few values: nothing is said of what lies between them."""
    if few:
        ax.vlines(where, *ends.T, color=BAND, lw=6, alpha=0.8, label=label)
    else:
        ax.fill_between(where, *ends.T, color=BAND, alpha=0.8, lw=0, label=label)


def _mark_rows(ax: Any, values: Array, most: int = 200) -> None:
    """Where the data are, as ticks inside the lower edge."""
    shown = np.quantile(values, np.linspace(0.0, 1.0, most)) if len(values) > most else values
    ax.plot(shown, np.full(len(shown), 0.012), "|", color=POINTS, ms=6, mew=0.6, alpha=0.6,
            transform=ax.get_xaxis_transform())  # fmt: skip


def plot_slice(
    model: Any, column: int | str, at: ArrayLike | None = None, coverage: float = 0.9, ax: Any = None, n_grid: int = 200
) -> Any:
    """Prediction along one input with all others held, with bands of the function and of a new observation.

    Parameters
    ----------
    model
        A fitted regressor.
    column
        The input that varies, by number or name.
    at
        A row that holds the others, (n_features,); the training medians by default.
    coverage
        Probability of the bands.
    ax
        Axes to draw on.
    n_grid
        Values of the input.

    Returns
    -------
    Any
        The axes.
    """
    j, X = _column(model, column), model.training_data()[0]
    where = np.linspace(X[:, j].min(), X[:, j].max(), n_grid)
    rows = _held(X, at, len(where))
    rows[:, j] = where
    ax = new_axes(2.8) if ax is None else ax
    draw_bands(ax, model, where, rows, coverage)
    others = "" if model.n_features_in_ == 1 else f"; the others {'at their medians' if at is None else 'held'}"
    ax.set(xlabel=words(input_names(model)[j]) + others, ylabel="y")
    ax.margins(x=0.01)
    legend_above(ax)
    return ax


def _held(X: Array, at: ArrayLike | None, m: int) -> Array:
    row = np.median(X, axis=0) if at is None else np.asarray(at, dtype=float).reshape(-1)
    if row.shape != X.shape[1:]:
        raise ValueError(f"at must be one row of {X.shape[1]} inputs, got {len(row)} numbers")
    return np.repeat(row[None], m, axis=0)


def plot_surface(
    X: ArrayLike, values: ArrayLike, ax: Any = None, limits: tuple[float, float] | None = None,
    names: Sequence[str] = ("x0", "x1"), label: str = "prediction",
) -> Any:  # fmt: skip
    """Values on a grid of two inputs as a heat map.

    Parameters
    ----------
    X
        All pairs of some values of the first input with some of the second, in any order, (m, 2).
    values
        One for each pair.
    ax
        Axes to draw on.
    limits
        Ends of the colour scale, so that several pictures can share it; the extreme values by default.
    names
        Of the two inputs.
    label
        Of the colour scale; empty for none.

    Returns
    -------
    Any
        The axes.
    """
    rows = np.asarray(X, dtype=float)
    (first, i), (second, j) = (np.unique(rows[:, k], return_inverse=True) for k in (0, 1))
    table = np.full((len(second), len(first)), np.nan)
    table[j, i] = np.asarray(values, dtype=float)
    if len(rows) != table.size or np.isnan(table).any():
        raise ValueError(f"plot_surface needs a full grid: {len(first)} x {len(second)} pairs, got {len(rows)} rows")
    ax = new_axes(4.2) if ax is None else ax
    low, high = (None, None) if limits is None else limits
    mesh = ax.pcolormesh(first, second, table, cmap=SEQUENTIAL, vmin=low, vmax=high, shading="nearest", rasterized=True)
    if label:
        bar = ax.figure.colorbar(mesh, ax=ax, label=label)
        bar.outline.set_visible(False)
    ax.set(xlabel=words(names[0]), ylabel=words(names[1]))
    return ax


def plot_prediction_surface(
    model: Any, columns: Sequence[int | str] = (0, 1), at: ArrayLike | None = None, ax: Any = None, n_grid: int = 60,
    kind: str = "prediction",
) -> Any:  # fmt: skip
    """Prediction of a fitted model over two of its inputs, or how uncertain the function is there.

    Parameters
    ----------
    model
        A fitted regressor.
    columns
        The two inputs, by number or name.
    at
        A row that holds the other inputs; the training medians by default.
    ax
        Axes to draw on.
    n_grid
        Values of each input.
    kind
        "prediction", or "std" for the standard deviation of the function.

    Returns
    -------
    Any
        The axes.
    """
    if kind not in ("prediction", "std"):
        raise ValueError(f'kind must be "prediction" or "std", got {kind!r}')
    (first, second), X = (_column(model, which) for which in columns), model.training_data()[0]
    u, v = np.meshgrid(*(np.linspace(X[:, j].min(), X[:, j].max(), n_grid) for j in (first, second)))
    rows = _held(X, at, u.size)
    rows[:, first], rows[:, second] = u.ravel(), v.ravel()
    with plain_arrays():
        point, std = model.predict(rows, return_std=True, kind="function")
    names = input_names(model)
    label = "prediction" if kind == "prediction" else "standard deviation of the function"
    values = point if kind == "prediction" else std
    ax = plot_surface(rows[:, [first, second]], values, ax, None, (names[first], names[second]), label)
    ax.plot(X[:, first], X[:, second], "o", color="white", mec="black", ms=3.2, mew=0.5)
    return ax


def plot_break_lines(
    model: Any, breaks: Any = None, columns: Sequence[int | str] = (0, 1), at: ArrayLike | None = None, ax: Any = None,
    least: float = 0.3,
) -> Any:  # fmt: skip
    """Where a network of several inputs jumps in the plane of two of them: posterior draws of each likely hyperplane.

    Parameters
    ----------
    model
        A fitted network.
    breaks
        What its `break_points()` gave; computed if None.
    columns
        The two inputs, by number or name.
    at
        A row that holds the other inputs; the training medians by default.
    ax
        Axes to draw on.
    least
        Probability of a jump from which a hyperplane is shown.

    Returns
    -------
    Any
        The axes.
    """
    breaks = model.break_points() if breaks is None else breaks
    if "offset" not in breaks:
        raise ValueError("with one input breaks are points: draw them with plot_breaks")
    both, X, names = [_column(model, which) for which in columns], model.training_data()[0], input_names(model)
    held = _held(X, at, 1)[0]
    held[both] = 0.0
    ax = new_axes() if ax is None else ax
    ax.plot(*X[:, both].T, ".", color=POINTS, ms=4.0, alpha=0.6)
    reach = 2.0 * float(np.hypot(*np.ptp(X[:, both], axis=0))) or 1.0
    ax.set(xlabel=words(names[both[0]]), ylabel=words(names[both[1]]), xlim=ax.get_xlim(), ylim=ax.get_ylim())
    shown = np.flatnonzero(breaks["probability"] >= least)[: len(COLOURS)]
    for colour, k in zip(COLOURS, shown):
        draws = breaks.draws[k][:: -(-len(breaks.draws[k]) // _MOST_LINES)]
        lines = _lines_in_plane(
            draws[:, 0] - draws[:, 1:] @ held, draws[:, 1:][:, both], X[:, both].mean(axis=0), reach
        )
        label = f"{breaks['size'][k]:+.3g}, probability {percent(breaks['probability'][k])}".replace("-", "−")
        ax.plot(*lines, color=colour, lw=0.7, alpha=0.25)
        ax.plot([], [], color=colour, lw=1.6, label=label)
    if len(shown):
        legend_above(ax, 2)
    return ax


def _lines_in_plane(offsets: Array, normals: Array, near: Array, reach: float) -> tuple[Array, Array]:
    """Ends of the lines n·x = offset, so far on both sides of the point of each that is nearest to a given one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        foot = near + ((offsets - normals @ near) / (normals**2).sum(axis=1))[:, None] * normals
        along = reach * normals[:, ::-1] * [-1.0, 1.0] / np.linalg.norm(normals, axis=1)[:, None]
    x, y = np.stack([foot - along, foot + along]).transpose(2, 0, 1)
    return x, y


def plot_relevance(relevance: Any, ax: Any = None, most: int = 20) -> Any:
    """Share of the function's variance that is lost when an input is permuted, the largest first.

    Parameters
    ----------
    relevance
        What `feature_relevance()` of a fitted regressor gave.
    ax
        Axes to draw on.
    most
        Inputs shown.

    Returns
    -------
    Any
        The axes.
    """
    order = np.argsort(-relevance["relevance"], kind="stable")[:most]
    middle, low, high = (relevance[name][order] for name in ("relevance", "q05", "q95"))
    rows = np.arange(len(order))[::-1]
    ax = new_axes(1.0 + 0.3 * len(order)) if ax is None else ax
    ax.hlines(rows, low, high, color=BAND, lw=6)
    ax.plot(middle, rows, "o", color=INK, ms=5.5)
    ax.set_yticks(rows, labels=[words(name) for name in relevance["input"][order]])
    ax.set(xlabel="share of the variance lost; bars 90 %", ylim=(-0.6, len(order) - 0.4))
    ax.set_xlim(0.0, max(1.0, 1.05 * float(np.max(high, initial=0.0))))
    return ax
