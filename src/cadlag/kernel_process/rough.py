"""Λ = c_1 Σ^(1)(X; S) + c_0 Σ^(0)(X; S) + σ²I: a kernel process of order 1 with a rough part, of order 0, beside it.

Both share the scales S of the inputs, which are positive α/2-stable. The amplitudes √c_1 and √c_0 are half-Cauchy, so
that either part can be absent, as with a stable c it cannot, whose law leaves nothing near zero; √c_0 with a small
scale: a function is rough where the data say so. The unknowns stand in the order log s_1..log s_p, log c_1, log c_0,
log σ². With v_g the variances of the parts and a_g = √(v_g / Σ_g v_g) the correlations are Σ_g a_g a_gᵀ∘ρ_g.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cadlag import kernels
from cadlag.kernel_process.atom import Scales
from cadlag.kernel_process.model import LOG_CAP, KernelProcess
from cadlag.likelihood import log_half_cauchy, sample_log_half_cauchy
from cadlag.linalg import gaussian
from cadlag.linalg.gaussian import Array

SMOOTH, ROUGH = 1.0, 0.02  # scales of √c_1 and √c_0, in units of the model's response


@dataclass(frozen=True)
class RoughScales(Scales):
    """The scales of both parts; `log_output` is 0, as the parts' own are counted in their variances.

    Attributes
    ----------
    log_outputs
        log c_1, log c_0.
    """

    log_outputs: Array


class RoughPoints(NamedTuple):
    """What one set of inputs contributes to every kernel entry.

    Attributes
    ----------
    unit
        First-layer unit vectors as columns, (p + 1, n).
    shares
        a_1 and a_0, (2, n).
    log_variance
        log of the variance of the function, (n,).
    """

    unit: Array
    shares: Array
    log_variance: Array


@dataclass(frozen=True)
class RoughProcess(KernelProcess):
    """Prior, likelihood and gradient of the kernel process of one kernel map with a rough part."""

    def __post_init__(self) -> None:
        if (self.order, self.depth) != (1, 1):
            raise ValueError(f"a rough part goes with order 1 and depth 1, got {self.order} and {self.depth}")

    @cached_property
    def n_weights(self) -> int:
        """Number of random scales of the inputs; none when α = 2."""
        return 0 if self.alpha == 2.0 else self.n_inputs

    @cached_property
    def n_scales(self) -> int:
        """Number of random scales, the squares of the amplitudes among them."""
        return self.n_weights + 2

    def scales(self, position: Array) -> RoughScales:
        """The scales of both parts."""
        learned = self.n_weights
        weights = np.minimum(position[:learned], LOG_CAP) if learned else np.zeros(self.n_inputs)
        return RoughScales(weights, np.empty(0), 0.0, self.likelihood.log_noise(position), position[learned:][:2])

    # Prior -----------------------------------------------------------------------------------------------------------

    def sample_scales(self, rng: np.random.Generator) -> Array:
        """The logarithms of all random scales from their prior."""
        own = [2.0 * (math.log(scale) + sample_log_half_cauchy(rng)) for scale in (SMOOTH, ROUGH)]
        return np.concatenate([self.law.sample_log(rng, self.n_weights), own])

    def prior_of_scales(self, log_scales: Array) -> tuple[float, Array]:
        """Log prior density of the logarithms of the scales, and its gradient."""
        slopes, learned = np.empty(len(log_scales)), self.n_weights
        value, slopes[:learned] = super().prior_of_scales(log_scales[:learned])
        for k, scale in ((learned, SMOOTH), (learned + 1, ROUGH)):
            own, slopes[k] = log_half_cauchy(float(log_scales[k]), scale, "sd")
            value += own
        return value, slopes

    # Likelihood ------------------------------------------------------------------------------------------------------

    def layers(self, scales: RoughScales, X: Array | None = None) -> RoughPoints:
        """Unit vectors, shares and variances of one set of inputs."""
        points = kernels.layers(self.X if X is None else X, scales.log_weights, scales.log_inner, 1)
        smooth, rough = scales.log_outputs
        logs = np.stack([points.log_variance + smooth, np.full(len(points.log_variance), rough)])
        total = np.logaddexp(logs[0], logs[1])
        return RoughPoints(points.unit, np.exp(0.5 * (logs - total)), total)

    def cross(self, rows: RoughPoints, columns: RoughPoints) -> Array:
        """Correlations of the function between two sets of inputs, (m, n)."""
        return kernels.cross_correlations_of_both(rows.unit, rows.shares, columns.unit, columns.shares)

    def correlate(self, points: RoughPoints, weight: Array) -> Array:
        """The lower triangle of the correlations of the observations, in a buffer."""
        return kernels.correlations_of_both(points.unit, weight * points.shares, self._buffer())

    def local(self, points: RoughPoints, weight: Array) -> kernels.LocalPairsOfBoth:
        """Correlations of the observations within sets of rows."""
        return kernels.LocalPairsOfBoth.of(points.unit, weight * points.shares)

    def _pull_back(
        self, points: RoughPoints, data: gaussian.Observed, marginal: gaussian.MarginalGradient, gradient: Array
    ) -> None:
        """The gradient by everything but the noise.

        dℓ/d log v_gk = a_gk² (dℓ/d log v_k - ½ Σ_g R_gk) + ½ R_gk, R_gk what part g contributes to the pairs of row k.
        """
        unit, learned = points.unit, self.n_weights
        total, pulled, through = kernels.reverse_of_both(unit, data.weight * points.shares, marginal.pairs)
        squares = points.shares**2
        by_variance = squares * marginal.log_signal + 0.5 * (through - squares * through.sum(axis=0))
        by_weight = total + (unit[1:] ** 2) @ (by_variance[0] - 0.5 * pulled)
        gradient[:learned] = by_weight[:learned]
        gradient[learned : self.n_scales] = by_variance.sum(axis=1)

    def covariance(self, position: Array, X: Array | None = None) -> Array:
        """c_1 Σ^(1) + c_0 Σ^(0) at given inputs."""
        points = self.layers(self.scales(position), X)
        sd = np.exp(0.5 * points.log_variance)
        return self.cross(points, points) * np.outer(sd, sd)
