"""y ~ N(0, Σ_ℓ w_ℓ s_ℓ λ_ℓλ_ℓᵀ + σ²I), w_ℓ = (νq_ℓ)^(2/α), s_ℓ positive α/2-stable: the shallow stable network.

The limit of M sign units with random directions and i.i.d. α-stable output weights, Loría & Bhadra's "Stable": at
the training rows only the cells matter that the units fall in, with patterns λ_ℓ and probabilities q_ℓ. The scales are
those of the published code, without the factor 2 that the characteristic function exp{-ν Σ_ℓ q_ℓ |tᵀλ_ℓ|^α} would need:
the weights here have scale 2^(-½) (ν/M)^(1/α). The same law is that of a :class:`StableNetwork` of sign units with
amplitude τ = ν^(1/α) as M grows.

A position holds log s_1 .. log s_L, unless α = 2 where all are 1, and log σ², unless it is known. What no arithmetic
can tell apart is left out of the prior: w_ℓ s_ℓ beyond 1e12 σ², an unknown σ² below 1e-10 of the mean of y².

Given the data, one draw is f(x*) | y, scales ~ N(kᵀQ⁻¹y, Σ_ℓ c_ℓ - kᵀQ⁻¹k), c_ℓ = w_ℓ s_ℓ, k the covariances at x*.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cadlag.baselines.shallow_stable.cells import Cells
from cadlag.baselines.shallow_stable.cuts import Cuts, Pieces
from cadlag.data import Scaling
from cadlag.likelihood import (
    log_half_cauchy_of_log,
    log_normal_over_chi2,
    sample_log_half_cauchy,
    sample_log_over_chi2,
)
from cadlag.linalg import gaussian
from cadlag.model import ROWS_AT_ONCE, Array, Model
from cadlag.stable import PositiveStable, positive_stable

NOISE_LAWS = ("half_cauchy", "code")
LOG_LARGEST = math.log(1e12)
LEAST_NOISE = 1e-10
_CUT_BYTES = 2**26
_MOST_REMEMBERED, _LARGEST_REMEMBERED = 16, 2**20


@dataclass(frozen=True)
class ShallowStable(Model):
    """Prior and likelihood of the shallow stable network.

    Attributes
    ----------
    X
        Inputs, (n, p).
    y
        Responses.
    cells
        The cells of the inputs.
    alpha
        Stability index.
    nu
        ν.
    noise_variance
        σ², or one for each row, or None when unknown.
    noise_prior
        Law of an unknown σ²: "half_cauchy"(1), or that of the published "code", |N(0, 1)| / χ²₁.
    """

    X: Array
    y: Array
    cells: Cells
    alpha: float = 1.0
    nu: float = 1.0
    noise_variance: float | Array | None = None
    noise_prior: str = "half_cauchy"
    _memory: dict[tuple[str, bytes], Any] = field(default_factory=dict, repr=False, compare=False)

    exact_level = 1.0

    @cached_property
    def law(self) -> PositiveStable:
        """The prior law of each scale."""
        return positive_stable(self.alpha)

    @cached_property
    def n_cells(self) -> int:
        """Number L of cells."""
        return len(self.cells.probabilities)

    @cached_property
    def n_scales(self) -> int:
        """Number of random scales."""
        return 0 if self.alpha == 2.0 else self.n_cells

    @cached_property
    def dimension(self) -> int:
        """Length of a position."""
        return self.n_scales + (self.noise_variance is None)

    @property
    def operations_to_condition(self) -> float:
        """What one draw's predictions cost at least."""
        return float(len(self.y)) ** 2 * (self.n_cells + len(self.y) / 3.0)

    @cached_property
    def log_weights(self) -> Array:
        """log w of the cells."""
        return 2.0 / self.alpha * np.log(self.nu * self.cells.probabilities)

    @cached_property
    def signs(self) -> Array:
        """λ as numbers, (L, n)."""
        return self.cells.patterns.astype(float)

    # Positions -------------------------------------------------------------------------------------------------------

    def read(self, position: Array) -> tuple[Array, float]:
        """Log scales and log σ²; a known σ² is 0 here."""
        log_s = position[: self.n_scales].copy() if self.n_scales else np.zeros(self.n_cells)
        return log_s, float(position[-1]) if self.noise_variance is None else 0.0

    def write(self, log_s: Array, log_v: float) -> Array:
        """The parts as one position."""
        return np.concatenate([log_s[: self.n_scales], [log_v] if self.noise_variance is None else []])

    def row_noise(self, log_v: float) -> Array:
        """Variance of the noise of each row."""
        known = math.exp(log_v) if self.noise_variance is None else self.noise_variance
        return np.broadcast_to(np.asarray(known, dtype=float), self.y.shape)

    def log_most(self, log_v: float) -> float:
        """Largest log w_ℓ s_ℓ beside such noise."""
        return LOG_LARGEST + (log_v if self.noise_variance is None else math.log(float(np.min(self.noise_variance))))

    @cached_property
    def log_least(self) -> float:
        """Smallest log σ²."""
        size = float(np.mean(self.y**2)) if len(self.y) else 0.0
        return math.log(LEAST_NOISE * (size or 1.0))

    def named(self, positions: Array) -> dict[str, Array]:
        """Draws by name, on their natural scale; the many scales of cells have none."""
        return {"noise_variance": np.exp(positions[..., -1])} if self.noise_variance is None else {}

    # Prior -----------------------------------------------------------------------------------------------------------

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of all unknowns."""
        sample = sample_log_half_cauchy if self.noise_prior == "half_cauchy" else sample_log_over_chi2
        log_v = max(sample(rng), self.log_least) if self.noise_variance is None else 0.0
        log_s = self.law.sample_log(rng, self.n_cells)
        return self.write(np.minimum(log_s, self.log_most(log_v) - self.log_weights), log_v)

    def log_noise_prior(self, log_v: Any) -> Any:
        """Log prior density of log σ²."""
        if self.noise_variance is not None:
            return np.zeros_like(log_v)
        density = log_half_cauchy_of_log if self.noise_prior == "half_cauchy" else log_normal_over_chi2
        return np.where(log_v < self.log_least, -np.inf, density(np.asarray(log_v)))

    def log_prior(self, position: Array) -> float:
        """Log prior density of the logarithms."""
        log_s, log_v = self.read(position)
        of_scales = float(self.law.log_density(log_s).sum()) if self.n_scales else 0.0
        return float(self.log_noise_prior(log_v)) + of_scales

    # Likelihood ------------------------------------------------------------------------------------------------------

    def covariance(self, log_s: Array) -> Array:
        """Σ_ℓ w_ℓ s_ℓ λ_ℓλ_ℓᵀ."""
        weighted = self.signs * np.exp(0.5 * (self.log_weights + log_s))[:, None]
        return weighted.T @ weighted

    def observe(self, position: Array) -> tuple[gaussian.Observed, Array]:
        """The observations in units of their standard deviations, and their correlations."""
        log_s, log_v = self.read(position)
        log_signal = log_sum(self.log_weights + log_s)
        data = gaussian.observe(self.y, np.full(len(self.y), log_signal), np.log(self.row_noise(log_v)))
        correlation = self.covariance(log_s - log_signal) * np.outer(data.weight, data.weight)
        np.fill_diagonal(correlation, 1.0)
        return data, correlation

    # Given the scales ------------------------------------------------------------------------------------------------

    def condition(self, position: Array) -> "ShallowAtom":
        """The Gaussian law of the function that one draw stands for, given the data."""
        data, correlation = self.observe(position)
        log_s, log_v = self.read(position)
        digest = hashlib.blake2b(np.ascontiguousarray(position).tobytes(), digest_size=8).digest()
        log_signal = float(np.logaddexp.reduce(self.log_weights + log_s))
        conditioner, noise = gaussian.condition(correlation, data), float(np.mean(self.row_noise(log_v)))
        return ShallowAtom(self, int.from_bytes(digest, "little"), log_s, log_signal, conditioner, noise)

    def leave_one_out(self, position: Array) -> gaussian.LeftOut:
        """Each row given the scales and all the others."""
        data, correlation = self.observe(position)
        return gaussian.leave_one_out(correlation, data)

    def cuts(self, X: Array) -> Cuts:
        """How new inputs cut the cells, remembered, for every draw asks."""
        return self._remember("cuts", X, lambda: Cuts.find(self.cells, X))

    def pieces(self, X: Array) -> Pieces:
        """How new inputs cut the cells together."""
        return self._remember("pieces", X, lambda: Pieces.find(self.cells, X))

    def _remember(self, name: str, X: Array, make: Any) -> Any:
        key = (name, X.tobytes())
        if key not in self._memory:
            if len(self._memory) >= _MOST_REMEMBERED or X.size * self.n_cells > _LARGEST_REMEMBERED:
                self._memory.clear()
            self._memory[key] = make()
        return self._memory[key]

    # Names and predictions -------------------------------------------------------------------------------------------

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the rows at which the function is watched: the scales of cells have none."""
        return self.probe_labels()

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """Draws by name, the function at a few rows among them, in the units of the data."""
        seen = self.function_at_probes(stats, response) if self.dimension else {}
        return super().draws(positions, stats, inputs, response) | seen

    def remarks(self, diagnostics: dict[str, Any]) -> list[str]:
        """A word on cells that were not enumerated."""
        if self.X.shape[1] <= 2:
            return []
        return [
            f"the cells of {self.X.shape[1]} inputs are too many to enumerate: a sample of them was used. "
            "StableNetworkRegressor fits the same prior in any dimension"
        ]

    def moments(self, positions: Array, X: Array, n_jobs: int | None = None) -> tuple[Array, Array, Array]:
        """Moments of the function given each draw, in pieces of rows, which cut the cells alike for all draws."""
        size = max(1, min(ROWS_AT_ONCE, int(_CUT_BYTES / (32 * self.n_cells))))
        of_rows = super().moments
        pieces = [of_rows(positions, X[start : start + size], 1) for start in range(0, max(len(X), 1), size)]
        means, variances, noise = zip(*pieces)
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1), noise[0]


@dataclass(frozen=True)
class ShallowAtom:
    """One draw, conditioned on the data.

    k depends on how x* cuts the cells and on how their scales divide there, which is drawn with random numbers that
    belong to the draw and the cell. So a row's law is the same in any company, and the joint law of rows is drawn with
    others.

    Attributes
    ----------
    model
        The network.
    key
        A number of its own, for random numbers.
    log_s
        Log scales of the cells.
    log_signal
        Log variance of the function.
    conditioner
        The conditional Gaussian.
    noise_variance
        Variance of the noise on a new observation (the mean of the rows' when they differ).
    """

    model: ShallowStable
    key: int
    log_s: Array
    log_signal: float
    conditioner: gaussian.Conditioner
    noise_variance: float

    def _cross(self, X: Array) -> Array:
        """Correlations of the function between new inputs and training rows."""
        shares = np.exp(self.model.log_weights + self.log_s - self.log_signal)
        return self.model.cuts(X).covariances(self.key, self.log_s, shares, self.model.signs, self.model.law)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at each row by itself."""
        return self.conditioner.moments(self._cross(X), np.full(len(X), self.log_signal))

    def mean(self, X: Array) -> Array:
        """Mean of the function alone."""
        weighted = self._cross(X) @ (self.conditioner.weight * self.conditioner.beta)
        return weighted * math.exp(0.5 * self.log_signal)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function at all rows together."""
        pieces, model = self.model.pieces(X), self.model
        log_c = model.log_weights + self.log_s - self.log_signal
        c = pieces.scales(self.key, self.log_s, log_c, model.law)
        cross = (pieces.signs.T * c) @ model.signs[pieces.parents]
        own = (pieces.signs.T * c) @ pieces.signs
        return self.conditioner.joint(cross, own, np.full(len(X), self.log_signal))


def log_sum(values: Array) -> float:
    """Log of a sum of exponentials."""
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))
