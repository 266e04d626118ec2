"""Λ = D^½(cK̃ + vI)D^½, K̃ = D^-½KD^-½ = QΛQᵀ: the Gaussian process of a wide network with finite-variance weights.

K = G_L comes from G_0 = x̃x̃ᵀ/ν₀, x̃ = (1, x), ν₀ = I + 1, by G_l = √(AB) J_1(θ)/π, which preserves the diagonal: the
ReLU maps of Aitchison, Yang & Ober (2021). D is one, or what is known of the noise row by row. K has no unknowns, so
that one eigendecomposition serves all amplitudes c and noise variances v, with z = QᵀD^-½y:

    ℓ = -½ Σ log D_kk - ½ Σ log(cλ_i + v) - ½ Σ z_i²/(cλ_i + v) - (n/2) log 2π.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from cadlag import kernels
from cadlag.likelihood import Gaussian, log_half_cauchy, sample_log_half_cauchy
from cadlag.linalg.gaussian import LOG_2PI, LeftOut
from cadlag.model import Array, Model
from cadlag.sampling.ladder import PowerLadder

_LOG_C = 600.0  # of the inner layers: at e^600 the bias of a layer, which these maps do not have, is nothing
_STARTS = (-6.0, -3.0, -1.0)  # log σ² from which the maximum is sought
_BOUNDS = (-30.0, 30.0)


@dataclass(frozen=True)
class NNGP(PowerLadder, Model):
    """Prior and likelihood of amplitude and noise.

    Attributes
    ----------
    X
        Inputs, (n, I), without the constant.
    y
        Responses, (n,).
    n_maps
        Number L of kernel maps.
    amplitude
        c, or None when unknown: √c is half-Cauchy(1) then.
    noise_variance
        σ², or one for each row, or None when unknown.
    noise_prior_on
        Whether the half-Cauchy(1) prior is on the "variance" or the "sd" of the noise.
    """

    X: Array
    y: Array
    n_maps: int = 2
    amplitude: float | None = None
    noise_variance: float | Array | None = None
    noise_prior_on: str = "variance"

    @property
    def dimension(self) -> int:
        """Number of unknowns: log c, log σ²."""
        return (self.amplitude is None) + (self.noise_variance is None)

    @property
    def operations_to_condition(self) -> float:
        """What one draw's predictions cost at least."""
        return 2.0 * len(self.y) ** 2

    def read(self, position: Array) -> tuple[float, float]:
        """log c and log v."""
        log_c = float(position[0]) if self.amplitude is None else math.log(self.amplitude)
        return log_c, float(position[-1]) if self.noise_variance is None else 0.0

    def named(self, positions: Array) -> dict[str, Array]:
        """Draws by name: `amplitude`, `noise_variance`, those that are unknown."""
        values = {}
        if self.amplitude is None:
            values["amplitude"] = np.exp(positions[..., 0])
        if self.noise_variance is None:
            values["noise_variance"] = np.exp(positions[..., -1])
        return values

    # The kernel ------------------------------------------------------------------------------------------------------

    def points(self, X: Array) -> tuple[Any, Array]:
        """What kernel entries are made of, and the standard deviation √G_kk at each row."""
        layers = kernels.layers(X, np.zeros(self.n_inputs), np.full(self.n_maps - 1, _LOG_C), 1)
        return layers, np.sqrt((1.0 + (X * X).sum(axis=1)) / (1 + self.n_inputs))

    def cross(self, X: Array, Z: Array | None = None) -> Array:
        """K between two sets of inputs, the second the training inputs by default."""
        (rows, sd_rows), (columns, sd_columns) = self.points(X), self.points(self.X if Z is None else Z)
        return kernels.cross_correlations(rows, columns) * np.outer(sd_rows, sd_columns)

    @cached_property
    def weight(self) -> Array:
        """D^-½: one over the standard deviation of the noise where it is known."""
        known = 1.0 if self.noise_variance is None else self.noise_variance
        return np.broadcast_to(1.0 / np.sqrt(known), len(self.y))

    @cached_property
    def spectrum(self) -> tuple[Array, Array, Array]:
        """Eigenvalues λ ≥ 0 and vectors Q of the weighted kernel matrix, and z = Qᵀ(weighted y)."""
        K = self.cross(self.X) * np.outer(self.weight, self.weight)
        values, vectors = np.linalg.eigh(K) if len(K) else (np.empty(0), K)
        return np.maximum(values, 0.0), vectors, vectors.T @ (self.weight * self.y)

    # Prior and likelihood --------------------------------------------------------------------------------------------

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of the unknowns."""
        position = [2.0 * sample_log_half_cauchy(rng)] if self.amplitude is None else []
        if self.noise_variance is None:
            position.append(Gaussian(prior_on=self.noise_prior_on).sample(rng))
        return np.array(position)

    def log_prior(self, position: Array) -> float:
        """Log prior density of the logarithms."""
        return self.log_prior_gradient(position)[0]

    def log_prior_gradient(self, position: Array) -> tuple[float, Array]:
        """Log prior density and its gradient."""
        parts = []
        if self.amplitude is None:
            parts.append(log_half_cauchy(float(position[0]), 1.0, "sd"))
        if self.noise_variance is None:
            parts.append(log_half_cauchy(float(position[-1]), 1.0, self.noise_prior_on))
        return sum(value for value, _ in parts), np.array([slope for _, slope in parts])

    def log_likelihood(self, position: Array) -> float:
        """ℓ, -inf where it cannot be evaluated."""
        return self.log_likelihood_gradient(position)[0]

    def log_likelihood_gradient(self, position: Array) -> tuple[float, Array]:
        """ℓ with its gradient by the unknowns."""
        (log_c, log_v), (values, _, z) = self.read(position), self.spectrum
        if max(log_c, log_v) > 600.0 or log_v < -600.0:
            return -math.inf, np.zeros(self.dimension)
        signal, noise = math.exp(log_c) * values, math.exp(log_v)
        total = signal + noise
        share = z * z / total
        value = float(np.log(self.weight).sum()) - 0.5 * float(np.sum(np.log(total) + share + LOG_2PI))
        slope = 0.5 * (share - 1.0) / total
        by_both = {"amplitude": float(slope @ signal), "noise_variance": noise * float(slope.sum())}
        return value, np.array([part for name, part in by_both.items() if getattr(self, name) is None])

    def maximise(self, _rng: np.random.Generator) -> tuple[Array, dict[str, float]]:
        """The unknowns at which the likelihood is largest, from a few fixed starts, and what the search said."""
        if self.dimension == 0:
            return np.empty(0), {"log_likelihood": self.log_likelihood(np.empty(0)), "converged": 1.0}
        found = [self._climb(start) for start in _STARTS]
        best = min(found, key=lambda result: float(result.fun))
        inside = bool(np.all(np.abs(best.x) < _BOUNDS[1] - 1e-6))
        return best.x, {"log_likelihood": -float(best.fun), "converged": float(best.success and inside)}

    def _climb(self, start: float) -> Any:
        first = np.array(([0.0] if self.amplitude is None else []) + ([start] if self.noise_variance is None else []))
        return minimize(
            lambda x: tuple(-part for part in self.log_likelihood_gradient(x)), first, jac=True, method="L-BFGS-B",
            bounds=[_BOUNDS] * self.dimension, options={"ftol": 1e-14, "gtol": 1e-8},
        )  # fmt: skip

    # Given the unknowns ----------------------------------------------------------------------------------------------

    def condition(self, position: Array) -> "NNGPAtom":
        """The process given the data at one position."""
        return NNGPAtom(self, *(math.exp(log_part) for log_part in self.read(position)))

    def leave_one_out(self, position: Array) -> LeftOut:
        """Each row given the position and all the others."""
        (log_c, log_v), (values, vectors, z) = self.read(position), self.spectrum
        total = math.exp(log_c) * values + math.exp(log_v)
        return LeftOut.solved(vectors @ (z / total), (vectors**2 / total).sum(axis=1), 1.0 / self.weight)


@dataclass(frozen=True)
class NNGPAtom:
    """One position, conditioned on the data.

    Attributes
    ----------
    model
        The process.
    c
        Its amplitude.
    v
        Variance of the noise over D.
    """

    model: NNGP
    c: float
    v: float

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on a new observation (the mean of the rows' when they differ)."""
        known = self.model.noise_variance
        return self.v if known is None else float(np.mean(known))

    def _project(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean of the function, (m,), c D^-½K Q between new inputs and the data, (m, n), and cλ + v."""
        values, vectors, z = self.model.spectrum
        projected, total = self.c * ((self.model.cross(X) * self.model.weight) @ vectors), self.c * values + self.v
        return projected @ (z / total), projected, total

    def mean(self, X: Array) -> Array:
        """Mean of the function, (m,)."""
        return self._project(X)[0]

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function, (m,) each."""
        mean, projected, total = self._project(X)
        own = self.c * self.model.points(X)[1] ** 2
        return mean, np.maximum(own - (projected**2 / total).sum(axis=1), 0.0)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of the function."""
        mean, projected, total = self._project(X)
        return mean, self.c * self.model.cross(X, X) - (projected / total) @ projected.T
