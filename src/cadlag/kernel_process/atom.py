"""ψ(x*) | y, scales ~ N(μ*, V*): one draw of the kernel process, conditioned on the data."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cadlag.linalg import gaussian
from cadlag.linalg.gaussian import Array

Points = Any  # what a process carries for a set of inputs, `log_variance` among it: kernels.Layers, or several of them


@dataclass(frozen=True)
class Scales:
    """The scales at one position, as the recursion wants them.

    Attributes
    ----------
    log_weights
        log(c_1 s_j / d₁), (p,).
    log_inner
        log c_2 .. log c_K.
    log_output
        log c_{K+1}.
    log_noise
        log σ², one number or one for each row.
    """

    log_weights: Array
    log_inner: Array
    log_output: float
    log_noise: float | Array


class Process(Protocol):
    """What an atom asks of its process."""

    def layers(self, scales: Any, X: Array | None = None) -> Points:
        """The recursion at given scales and inputs."""

    def cross(self, rows: Points, columns: Points) -> Array:
        """Correlations of the function between two sets of inputs."""


@dataclass(frozen=True)
class Atom:
    """One draw, conditioned on the data.

    Attributes
    ----------
    model
        The process.
    scales
        Its scales.
    points
        Layers of the training inputs.
    conditioner
        The conditional Gaussian.
    """

    model: Process
    scales: Scales
    points: Points
    conditioner: gaussian.Conditioner

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on a new observation (the mean of the rows' when they differ)."""
        return float(np.mean(np.exp(self.scales.log_noise)))

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function, (m,) each."""
        new = self.model.layers(self.scales, X)
        cross = self.model.cross(new, self.points)
        return self.conditioner.moments(cross, new.log_variance + self.scales.log_output)

    def mean(self, X: Array) -> Array:
        """Mean of the function alone, which needs no solve, (m,)."""
        new = self.model.layers(self.scales, X)
        cross = self.model.cross(new, self.points)
        weighted = cross @ (self.conditioner.weight * self.conditioner.beta)
        return weighted * np.exp(0.5 * (new.log_variance + self.scales.log_output))

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function."""
        new = self.model.layers(self.scales, X)
        cross = self.model.cross(new, self.points)
        own = self.model.cross(new, new)
        return self.conditioner.joint(cross, own, new.log_variance + self.scales.log_output)
