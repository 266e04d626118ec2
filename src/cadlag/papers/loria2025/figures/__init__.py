"""The figures of the paper, a file each or a file for those of one kind; all are pure functions of stored curves.

A `Figure` has a title, the curves that it wants (kind, version, data) and a function that draws what is there of them.
"""

from cadlag.papers.loria2025.figures import (
    ablation,
    features,
    fits,
    information,
    kernels,
    residuals,
    surfaces,
    trace,
)
from cadlag.papers.loria2025.figures.wants import Figure

FIGURES: dict[str, Figure] = {
    "figure-1": information.FIGURE,
    "figure-2": fits.FIGURE,
    "figure-3": features.figure_of("energy"),
    "figure-4a": surfaces.FIGURE,
    "figure-4b": residuals.figure_of("sim2d"),
    "figure-5": residuals.figure_of("sim10d"),
    "figure-6": ablation.FIGURE,
    "figure-7": kernels.FIGURE,
    "figure-8": residuals.figure_of("boston"),
    "figure-9": residuals.figure_of("energy"),
    "figure-10": residuals.figure_of("yacht"),
    "figure-11": trace.FIGURE,
    "figure-12": features.figure_of("boston"),
    "figure-13": features.figure_of("yacht"),
}

__all__ = ["FIGURES", "Figure"]
