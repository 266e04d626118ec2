"""y_i | f_i ~ N(f_i, σ²u_i): the likelihood, with a half-Cauchy prior on σ² or σ where it is unknown.

What a model asks of a likelihood is how many numbers at the end of a position are its own, their prior, and the
variance of the noise in each row. Responses that are no Gaussian become pseudo-data z_i with relative variances u_i:
`given(z, u)` of a model is the model of these, so that y and noise may change from one iteration to the next.

The half-Cauchy is p(z) = 2 / (π (1 + z²)), z = σ²/scale or σ/scale;
published code takes |N(0, 1)| / χ²₁ for it.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pbdv

Array = NDArray[np.float64]

NOISE_PRIORS = ("variance", "sd")
LOG_2_OVER_PI = math.log(2.0 / math.pi)
_FAR = 30.0


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise, the same in all rows or not, known or not.

    Attributes
    ----------
    known
        None when unknown, else σ², or one for each row.
    prior_on
        Whether the half-Cauchy prior is on the "variance" or the "sd".
    scale
        Scale of that half-Cauchy.
    relative
        u of each row beside one σ², or None for ones.
    """

    known: float | Array | None = None
    prior_on: str = "variance"
    scale: float = 1.0
    relative: Array | None = None

    def given(self, relative: Array | None) -> "Gaussian":
        """This likelihood with other relative variances."""
        return replace(self, relative=relative)

    def of_rows(self, rows: NDArray[np.int64]) -> "Gaussian":
        """This likelihood for some of the rows."""
        known = self.known[rows] if isinstance(self.known, np.ndarray) else self.known
        return replace(self, known=known, relative=None if self.relative is None else self.relative[rows])

    @property
    def n_unknown(self) -> int:
        """How many numbers at the end of a position are its own: log σ², or none."""
        return int(self.known is None)

    @property
    def power(self) -> float:
        """Power of σ that is half-Cauchy."""
        return 2.0 if self.prior_on == "variance" else 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """A log σ² from its prior."""
        return 2.0 / self.power * (math.log(self.scale) + sample_log_half_cauchy(rng))

    def log_prior(self, log_v: float) -> tuple[float, float]:
        """Log prior density of log σ², and its slope."""
        return log_half_cauchy(log_v, self.scale, self.prior_on)

    @cached_property
    def rows(self) -> Array | None:
        """What σ² is multiplied by in each row, known variances that differ among them; None for ones."""
        if isinstance(self.known, np.ndarray):
            return self.known * self._relative
        return self.relative

    @property
    def _relative(self) -> float | Array:
        return 1.0 if self.relative is None else self.relative

    @cached_property
    def log_known(self) -> float | None:
        """log σ² where it is known; 0 where it is known row by row."""
        if self.known is None:
            return None
        return 0.0 if isinstance(self.known, np.ndarray) else math.log(self.known)

    @cached_property
    def _log_known_noise(self) -> float | Array:
        return np.log(np.asarray(self.known, dtype=float))

    def log_noise(self, position: Array) -> float | Array:
        """Log variance of the noise, one number or one for each row."""
        log_v = position[-1] if self.known is None else self._log_known_noise
        return log_v if self.relative is None else log_v + np.log(self.relative)

    def row_variances(self, variance: float, n: int) -> Array:
        """Variance of the noise in each of n rows, σ² being given where it is unknown."""
        return np.broadcast_to((variance if self.known is None else self.known) * self._relative, n)

    def by_log_variance(self, by_log_noise: Array, position: Array, floor: float) -> float:
        """Derivative by log σ², from those by the log variance of each row, a floor having been added to it."""
        if floor <= 0.0:
            return float(by_log_noise.sum())
        if self.relative is not None:
            return float((by_log_noise / (1.0 + floor * floor * np.exp(-self.log_noise(position)))).sum())
        return float(by_log_noise.sum()) / (1.0 + floor * floor * math.exp(-float(position[-1])))

    def new_variance(self, variance: float) -> float:
        """Variance of the noise on a new observation, σ² being given: the mean of the rows' where they differ."""
        return variance if self.rows is None else variance * float(np.mean(self.rows))


GAUSSIAN = Gaussian()


def log_half_cauchy_of_log(log_z: Any) -> Any:
    """Log density of log z, z half-Cauchy(1), which has the law of -log z; in functions that numba compiles too."""
    return LOG_2_OVER_PI - np.abs(log_z) - np.log1p(np.exp(-2.0 * np.abs(log_z)))


def log_half_cauchy(log_v: float, scale: float, on: str) -> tuple[float, float]:
    """Log density of log σ² and its slope."""
    half = 1.0 if on == "variance" else 0.5
    log_z = half * log_v - math.log(scale)
    # z = (σ²)^half / scale
    return math.log(half) + float(log_half_cauchy_of_log(log_z)), -half * math.tanh(log_z)


def sample_log_half_cauchy(rng: np.random.Generator) -> float:
    """log z, z half-Cauchy(1)."""
    return math.log(abs(math.tan(math.pi * (rng.random() - 0.5))) + 1e-300)


def sample_log_over_chi2(rng: np.random.Generator) -> float:
    """log z, z = |N(0, 1)| / χ²₁, which the published code of the shallow network takes for a half-Cauchy."""
    top, below = np.abs(rng.standard_normal(2)) + 1e-300
    return math.log(top) - 2.0 * math.log(below)


def log_normal_over_chi2(log_v: Array) -> Array:
    """Log density of log z, z = |N(0, 1)| / χ²₁: z f(z) = z^-½ e^(x²/4) D(x) / (2√π), x = 1/(2z).

    D is the parabolic cylinder function of order -3/2.
    """
    x = 0.5 * np.exp(-log_v)
    near, far = np.minimum(x, _FAR), np.maximum(x, _FAR)
    # D(x) = e^(-x²/4) x^(-3/2) (1 - 15/8 x^-2 + 945/128 x^-4 - ..)
    beyond = -1.5 * np.log(far) + np.log1p(-1.875 / far**2 + 7.3828125 / far**4)
    within = 0.25 * near * near + np.log(pbdv(-1.5, near)[0])
    return -0.5 * log_v + np.where(x < _FAR, within, beyond) - math.log(2.0 * math.sqrt(math.pi))
