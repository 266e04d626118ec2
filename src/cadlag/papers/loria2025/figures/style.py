"""One look for all figures: a colour a method, panels in a grid, thin lines."""

import io
from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.wants import Figure

COLOURS = {
    "Dα-KP": "#1f4e79", "DIWP": "#c55a11", "GP Bayes": "#7a5195", "GP MLE": "#b8860b", "NNGP": "#c0392b",
    "Stable": "#2e7d32", "network": "#111111",
}  # fmt: skip
NAMES = {"network": "network (ours)"}
POINTS, TRUTH = "#999999", "#cccccc"
SETTINGS = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}


def picture(figure: Figure, found: Mapping[str, Curves]) -> bytes:
    """Draw a figure.

    Parameters
    ----------
    figure
        What to draw.
    found
        Curves by label, at least one.

    Returns
    -------
    bytes
        A PNG file.
    """
    import matplotlib as mpl  # noqa: PLC0415  optional

    out = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        # The date and version of the library stay out, so that equal curves give equal files.
        figure.draw(found).savefig(out, dpi=130, metadata={"Software": None})
    return out.getvalue()


def panels(
    n: int, n_columns: int | None = None, width: float = 2.6, height: float = 2.3, **shared: Any
) -> tuple[Any, list]:
    """Return a canvas and n axes in a grid on it.

    Parameters
    ----------
    n
        Number of axes.
    n_columns
        At most so many beside each other; None for three or four, whichever leaves fewer gaps.
    width
        Of one, in inches.
    height
        Of one, in inches.
    **shared
        Passed to `subplots`.

    Returns
    -------
    canvas
        A matplotlib figure that no window belongs to.
    axes
        In reading order.
    """
    n_columns = min(n, n_columns or min((4, 3), key=lambda columns: -n % columns))
    n_rows = -(-n // n_columns)
    canvas = empty(width * n_columns, height * n_rows)
    grid = canvas.subplots(n_rows, n_columns, squeeze=False, **shared)
    for axes in grid.flat[n:]:
        axes.set_axis_off()
    # With shared axes only the last row is labelled, and some of its places may be empty.
    for axes in grid.flat[max(0, n - n_columns) : n]:
        axes.tick_params(labelbottom=True)
    return canvas, list(grid.flat[:n])


def empty(width: float, height: float) -> Any:
    """Return an empty canvas, in inches, that no window belongs to."""
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415  optional

    return Canvas(figsize=(width, height), layout="constrained")


def name_of(label: str) -> str:
    """Return how a method is called in figures."""
    return NAMES.get(label, label)
