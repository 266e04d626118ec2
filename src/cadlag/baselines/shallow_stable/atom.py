"""f(x*) | y, scales ~ N(kᵀQ⁻¹y, Σ_ℓ c_ℓ - kᵀQ⁻¹k): one draw of the shallow stable network, conditioned on the data.

k depends on how x* cuts the cells and on how their scales divide there, which is drawn with random numbers that belong
to the draw and the cell. So a row's law is the same in any company, and the joint law of rows is drawn with others.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cadlag.linalg.gaussian import Array, Conditioner
from cadlag.stable import PositiveStable


class CellNetwork(Protocol):
    """What an atom asks of its model."""

    @property
    def law(self) -> PositiveStable:
        """Law of the scales."""

    @property
    def signs(self) -> Array:
        """Patterns λ of the cells."""

    @property
    def log_weights(self) -> Array:
        """log w of the cells."""

    def cuts(self, X: Array) -> Any:
        """How new inputs cut the cells."""

    def pieces(self, X: Array) -> Any:
        """How new inputs, taken together, cut the cells into pieces."""


@dataclass(frozen=True)
class ShallowAtom:
    """One draw, conditioned on the data.

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

    model: CellNetwork
    key: int
    log_s: Array
    log_signal: float
    conditioner: Conditioner
    noise_variance: float

    @classmethod
    def make(
        cls, model: CellNetwork, position: Array, log_s: Array, conditioner: Conditioner, noise_variance: float
    ) -> "ShallowAtom":
        """An atom from a position."""
        digest = hashlib.blake2b(np.ascontiguousarray(position).tobytes(), digest_size=8).digest()
        log_c = model.log_weights + log_s
        log_signal = float(np.logaddexp.reduce(log_c))
        return cls(model, int.from_bytes(digest, "little"), log_s, log_signal, conditioner, noise_variance)

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
