"""p(z) = 2 / (π (1 + z²)), z = σ²/scale or σ/scale: the half-Cauchy prior of the noise, as a density of log σ².

And |N(0, 1)| / χ²₁, which published code takes for it.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import pbdv

Array = NDArray[np.float64]

NOISE_PRIORS = ("variance", "sd")
_FAR = 30.0


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
    power = 2.0 if on == "variance" else 1.0
    # With z = σ^power / scale: density of log σ² is (power/2)·(2/π) z / (1 + z²).
    log_z = 0.5 * power * log_v - math.log(scale)
    softplus = max(2.0 * log_z, 0.0) + math.log1p(math.exp(-abs(2.0 * log_z)))
    value = math.log(power / math.pi) + log_z - softplus
    return value, 0.5 * power * (1.0 - 2.0 * math.exp(2.0 * log_z - softplus))


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


def log_half_cauchy_variance(log_v: Array) -> Array:
    """Log density of log z, z half-Cauchy(1), at many places at once.

    Parameters
    ----------
    log_v
        log z.

    Returns
    -------
    Array
        Log density.
    """
    return math.log(2.0 / math.pi) + log_v - np.logaddexp(0.0, 2.0 * log_v)


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
