"""p(z) = 2 / (π (1 + z²)), z = σ²/scale or σ/scale: the half-Cauchy prior of the noise, as a density of log σ²."""

import math

NOISE_PRIORS = ("variance", "sd")


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
