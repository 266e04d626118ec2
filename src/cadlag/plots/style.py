"""One quiet style: few colours that the colour-blind tell apart, text that can be read on a phone and in print.

Names of columns are a user's own words, which drawing must neither read as formulas nor choke on: see `words`.
"""

from collections.abc import Callable
from typing import Any

try:
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError:
    raise ImportError("pictures need matplotlib: pip install 'cadlag[plot]'") from None

INK, BAND, POINTS, ACCENT, FAINT = "#1f4e79", "#9ec3e6", "#444444", "#d55e00", "#8a8a8a"
# Okabe & Ito's, the darker ones first so that thin lines show on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), "-")
SEQUENTIAL = "viridis"

STYLE = {
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10.0,
    "figure.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "axes.formatter.useoffset": False,
    "svg.hashsalt": "cadlag",
}
WIDTH = 4.8  # inches: text of 10 points stays at 10 pixels when the picture is as wide as a phone
_LONGEST = 28


def new_axes(
    height: float = 3.4, n_columns: int = 1, own: bool = False, n_rows: int = 1, width: float = WIDTH, **options: Any
) -> Any:
    """Axes of the house's size and style.

    Parameters
    ----------
    height
        In inches.
    n_columns
        Panels side by side.
    own
        True for a figure that pyplot does not know of, and that nobody has to close.
    n_rows
        Panels one above another.
    width
        In inches.
    **options
        For `subplots`.

    Returns
    -------
    Any
        Axes, or an array of them.
    """
    size = (width, height)
    with plt.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained") if own else plt.figure(figsize=size, layout="constrained")
        return figure.subplots(n_rows, n_columns, **options)


def words(text: Any, longest: int = _LONGEST) -> str:
    """A user's own words as drawing takes them: no formulas, no control characters, not longer than fits.

    Parameters
    ----------
    text
        A name.
    longest
        Number of characters beyond which the middle is left out.

    Returns
    -------
    str
        What to draw.
    """
    shown = "".join(letter if letter.isprintable() else "�" for letter in str(text))
    if len(shown) > longest:
        half = (longest - 1) // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    # A legend leaves out what begins with an underscore.
    shown = f"\u2009{shown}" if shown.startswith("_") else shown
    return shown.replace("$", r"\$")


def write_values(ax: Any, text: Callable[[float], str]) -> None:
    """Few and whole values along the axis of the input, each in words of its own, such as dates."""
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter(lambda value, _: text(value))


def legend(ax: Any, **options: Any) -> None:
    """A legend without a frame, inside the picture."""
    ax.legend(frameon=False, fontsize=9, **options)


def legend_above(ax: Any, n_columns: int = 2) -> None:
    """A legend above the picture, where it hides nothing."""
    ax.legend(frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=n_columns,
              borderaxespad=0.3, columnspacing=1.4, handletextpad=0.6)  # fmt: skip


def percent(share: float) -> str:
    """90 % for 0.9.

    Parameters
    ----------
    share
        A probability.

    Returns
    -------
    str
        To at most one digit after the point.
    """
    return f"{100 * share:.3g} %"
