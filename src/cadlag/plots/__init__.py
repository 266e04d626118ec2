"""Pictures: every function draws on given axes or makes its own, and returns the axes."""

from cadlag.plots.calibration import plot_coverage, plot_pit, plot_residuals
from cadlag.plots.chains import plot_bound, plot_ranks, plot_trace
from cadlag.plots.fit import plot_breaks, plot_fit, plot_fits
from cadlag.plots.inputs import (
    plot_break_lines,
    plot_partial_dependence,
    plot_prediction_surface,
    plot_relevance,
    plot_slice,
    plot_surface,
)
from cadlag.plots.kernels import plot_features, plot_kernel_quantiles, plot_mutual_information, plot_normal_quantiles
from cadlag.plots.scores import plot_comparison

__all__ = [
    "plot_bound",
    "plot_break_lines",
    "plot_breaks",
    "plot_comparison",
    "plot_coverage",
    "plot_features",
    "plot_fit",
    "plot_fits",
    "plot_kernel_quantiles",
    "plot_mutual_information",
    "plot_normal_quantiles",
    "plot_partial_dependence",
    "plot_pit",
    "plot_prediction_surface",
    "plot_ranks",
    "plot_relevance",
    "plot_residuals",
    "plot_slice",
    "plot_surface",
    "plot_trace",
]
