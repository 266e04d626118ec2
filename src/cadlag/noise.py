"""p(z) = 2 / (π (1 + z²)), z = σ²/scale or σ/scale: the half-Cauchy prior of the noise, as a density of log σ².

And |N(0, 1)| / χ²₁, which published code takes for it.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pbdv

Array = NDArray[np.float64]

NOISE_PRIORS = ("variance", "sd")
LOG_2_OVER_PI = math.log(2.0 / math.pi)
_FAR = 30.0


def log_half_cauchy_of_log(log_z: Any) -> Any:
    """Log density of log z, z half-Cauchy(1), which has the law of -log z; in functions that numba compiles too.

    Parameters
    ----------
    log_z
        A number or an array.

    Returns
    -------
    Any
        Log density there.
    """
    return LOG_2_OVER_PI - np.abs(log_z) - np.log1p(np.exp(-2.0 * np.abs(log_z)))


def log_half_cauchy(log_v: float, scale: float, on: str) -> tuple[float, float]:
    """Log density of log σ² and its slope.

    Parameters
    ----------
    log_v
        log σ².
    scale
        Scale of the half-Cauchy law.
    on
        Whether "variance" or "sd" follows it.

    Returns
    -------
    tuple[float, float]
        Log density and derivative.
    """
    half = 1.0 if on == "variance" else 0.5
    log_z = half * log_v - math.log(scale)
    # z = (σ²)^half / scale
    return math.log(half) + float(log_half_cauchy_of_log(log_z)), -half * math.tanh(log_z)


def sample_log_half_cauchy(rng: np.random.Generator) -> float:
    """log z, z half-Cauchy(1).

    Parameters
    ----------
    rng
        Source of randomness.

    Returns
    -------
    float
        A draw.
    """
    return math.log(abs(math.tan(math.pi * (rng.random() - 0.5))) + 1e-300)


def sample_log_over_chi2(rng: np.random.Generator) -> float:
    """log z, z = |N(0, 1)| / χ²₁, which the published code of the shallow network takes for a half-Cauchy.

    Parameters
    ----------
    rng
        Source of randomness.

    Returns
    -------
    float
        A draw.
    """
    top, below = np.abs(rng.standard_normal(2)) + 1e-300
    return math.log(top) - 2.0 * math.log(below)


def log_normal_over_chi2(log_v: Array) -> Array:
    """Log density of log z, z = |N(0, 1)| / χ²₁: z f(z) = z^-½ e^(x²/4) D(x) / (2√π), x = 1/(2z).

    D is the parabolic cylinder function of order -3/2.

    Parameters
    ----------
    log_v
        log z.

    Returns
    -------
    Array
        Log density.
    """
    x = 0.5 * np.exp(-log_v)
    near, far = np.minimum(x, _FAR), np.maximum(x, _FAR)
    # D(x) = e^(-x²/4) x^(-3/2) (1 - 15/8 x^-2 + 945/128 x^-4 - ..)
    beyond = -1.5 * np.log(far) + np.log1p(-1.875 / far**2 + 7.3828125 / far**4)
    within = 0.25 * near * near + np.log(pbdv(-1.5, near)[0])
    return -0.5 * log_v + np.where(x < _FAR, within, beyond) - math.log(2.0 * math.sqrt(math.pi))
