"""f(x*) = φ(x*)ᵀAg, g | y ~ N(L⁻ᵀc, B⁻¹): one draw of the network, conditioned on the data."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array = NDArray[np.float64]


class Units(NamedTuple):
    """A position, read."""

    W: Array
    log_s: Array
    kinds: NDArray[np.int64]
    log_inputs: Array
    log_tau: float
    log_v: float


class Maker(Protocol):
    """What an atom asks of its network."""

    def columns(self, units: Units, X: Array | None = None) -> Array:
        """Φ at given inputs."""


@dataclass(frozen=True)
class NetworkAtom:
    """One draw, conditioned on the data.

    Attributes
    ----------
    model
        The network.
    units
        Its units.
    spread
        a_j.
    factor
        L.
    half
        c.
    noise_variance
        Variance of the noise on a new observation (the mean of the rows' when they differ).
    """

    model: Maker
    units: Units
    spread: Array
    factor: Array
    half: Array
    noise_variance: float

    def weights(self) -> Array:
        """Mean output weights, A L⁻ᵀc."""
        return self.spread * np.asarray(solve_triangular(self.factor, self.half, lower=True, trans="T"))

    def sample_weights(self, rng: np.random.Generator) -> Array:
        """Output weights, A g."""
        noisy = self.half + rng.standard_normal(len(self.half))
        return self.spread * np.asarray(solve_triangular(self.factor, noisy, lower=True, trans="T"))

    def _half_columns(self, X: Array) -> Array:
        """L⁻¹Aφ(x*), (M, m)."""
        columns = self.model.columns(self.units, X) * self.spread
        return np.asarray(solve_triangular(self.factor, columns.T, lower=True))

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at new inputs, a column of ones first."""
        H = self._half_columns(X)
        return H.T @ self.half, (H * H).sum(axis=0)

    def mean(self, X: Array) -> Array:
        """Mean of the function alone."""
        return self.model.columns(self.units, X) @ self.weights()

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function."""
        H = self._half_columns(X)
        return H.T @ self.half, H.T @ H
