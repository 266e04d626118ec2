"""One look for all figures, that of `cadlag.plots`: panels in a grid."""

import io
from collections.abc import Mapping
from typing import Any

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.figures.wants import Figure


def picture(figure: Figure, found: Mapping[str, Curves]) -> bytes:
    """Draw a figure."""
    import matplotlib as mpl  # noqa: PLC0415  optional

    from cadlag.plots.style import STYLE  # noqa: PLC0415  optional

    out = io.BytesIO()
    with mpl.rc_context(STYLE):
        # The date and version of the library stay out, so that equal curves give equal files.
        figure.draw(found).savefig(out, dpi=130, metadata={"Software": None})
    return out.getvalue()


def panels(
    n: int, n_columns: int | None = None, width: float = 2.6, height: float = 2.3, **shared: Any
) -> tuple[Any, list]:
    """Return a canvas and n axes in a grid on it."""
    from cadlag.plots.style import new_axes  # noqa: PLC0415  optional

    n_columns = min(n, n_columns or min((4, 3), key=lambda columns: -n % columns))
    n_rows = -(-n // n_columns)
    grid = new_axes(height * n_rows, n_columns, True, n_rows, width * n_columns, squeeze=False, **shared)
    for axes in grid.flat[n:]:
        axes.set_axis_off()
    # With shared axes only the last row is labelled, and some of its places may be empty.
    for axes in grid.flat[max(0, n - n_columns) : n]:
        axes.tick_params(labelbottom=True)
    return grid[0, 0].figure, list(grid.flat[:n])
