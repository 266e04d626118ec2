"""d_i ~ ½Gamma(1, 20) + ½Gamma(10, 10), g ~ Exp(1), σ² ~ IG(a₀/2, g₀/2), a₀ - 2 ~ Exp(0.2), g₀ ~ Exp(10): by rates.

g and g₀ exceed 1e-10, so that the posterior stays proper where the linear mean fits exactly.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammaln

from cadlag.linalg.gaussian import Array

OFFSET = 1e-10
LEAST_A0 = 2.0
A0_RATE, G0_RATE = 0.2, 10.0
RANGE_SHAPES, RANGE_RATES = np.array([1.0, 10.0]), np.array([20.0, 10.0])
_LOG_CONSTANTS = RANGE_SHAPES * np.log(RANGE_RATES) - gammaln(RANGE_SHAPES) - math.log(2.0)


class Values(NamedTuple):
    """The unknowns at one position."""

    ranges: Array
    nugget: float
    variance: float
    a0: float
    g0: float


def log_range_prior(ranges: Array) -> float:
    """Log density of the ranges."""
    terms = _range_terms(ranges)
    return float(np.logaddexp(terms[:, 0], terms[:, 1]).sum())


def _range_terms(ranges: Array) -> Array:
    """Log of each half of the mixture, (k, 2)."""
    column = ranges[:, None]
    return _LOG_CONSTANTS + np.log(column) * (RANGE_SHAPES - 1.0) - column * RANGE_RATES


def log_nugget_prior(nugget: float) -> float:
    """Log density of the nugget."""
    return -(nugget - OFFSET)


def log_variance_prior(variance: float, a0: float, g0: float) -> float:
    """Log density of σ² under IG(a₀/2, g₀/2)."""
    shape, scale = 0.5 * a0, 0.5 * g0
    return shape * math.log(scale) - math.lgamma(shape) - (shape + 1.0) * math.log(variance) - scale / variance


def log_density(at: Values) -> float:
    """Log prior density of all unknowns."""
    hyper = math.log(A0_RATE * G0_RATE) - A0_RATE * (at.a0 - LEAST_A0) - G0_RATE * (at.g0 - OFFSET)
    given = log_variance_prior(at.variance, at.a0, at.g0)
    return log_range_prior(at.ranges) + log_nugget_prior(at.nugget) + given + hyper


def gradient_by_logs(at: Values) -> Array:
    """Derivatives of the log density by log d, log(g - 1e-10), log σ², log(a₀ - 2) and log(g₀ - 1e-10)."""
    terms = _range_terms(at.ranges)
    second = expit(terms[:, 1] - terms[:, 0])
    slopes = RANGE_SHAPES - 1.0 - np.outer(at.ranges, RANGE_RATES)
    half = 0.5 * at.a0
    by_a0 = 0.5 * (math.log(0.5 * at.g0) - float(digamma(half)) - math.log(at.variance)) - A0_RATE
    by_g0 = half / at.g0 - 0.5 / at.variance - G0_RATE
    rest = [
        OFFSET - at.nugget, 0.5 * at.g0 / at.variance - half - 1.0,
        by_a0 * (at.a0 - LEAST_A0), by_g0 * (at.g0 - OFFSET),
    ]  # fmt: skip
    return np.concatenate([slopes[:, 0] + second * (slopes[:, 1] - slopes[:, 0]), rest])


def sample_values(rng: np.random.Generator, n_ranges: int) -> Values:
    """One draw from the prior."""
    kind = rng.integers(2, size=n_ranges)
    ranges = rng.standard_gamma(RANGE_SHAPES[kind]) / RANGE_RATES[kind]
    nugget, a0 = OFFSET + rng.exponential(), LEAST_A0 + rng.exponential(1.0 / A0_RATE)
    g0 = OFFSET + rng.exponential(1.0 / G0_RATE)
    return Values(ranges, nugget, 0.5 * g0 / rng.standard_gamma(0.5 * a0), a0, g0)
