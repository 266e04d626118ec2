"""One page about a fitted model: verdict in words, fit, breaks, relevance, calibration, residuals, chains, settings."""

from cadlag.report.page import write_report

__all__ = ["write_report"]
