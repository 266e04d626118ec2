"""ψ(x*) | y, scales ~ N(μ*, V*): one draw of the kernel process, conditioned on the data."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cadlag.kernel_process.neighbors import Neighbors
from cadlag.linalg import gaussian, vecchia
from cadlag.linalg.gaussian import Array

AT_ONCE = 512  # rows of P
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
    """What an atom and a covariance ask of their process."""

    @property
    def form(self) -> Any:
        """How the covariance of the observations is held."""

    def layers(self, scales: Any, X: Array | None = None) -> Points:
        """The recursion at given scales and inputs."""

    def cross(self, rows: Points, columns: Points) -> Array:
        """Correlations of the function between two sets of inputs."""

    def correlate(self, points: Points, weight: Array) -> Array:
        """The lower triangle of the correlations of the observations."""

    def local(self, points: Points, weight: Array) -> Any:
        """These correlations within sets of rows."""


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


class Asked(NamedTuple):
    """New inputs and their neighbours: layers, N(x*), b*, d*, log variance of the function."""

    points: Points
    rows: NDArray[np.int32]
    b: Array
    d: Array
    log_signal: Array


@dataclass(frozen=True)
class LocalAtom:
    """One draw, conditioned on the data row by row: a new row asks its nearest training rows, whoever else is new.

    Attributes
    ----------
    model
        The process.
    scales
        Its scales.
    points
        Layers of the training inputs.
    data
        The observations.
    neighbors
        Which rows a new one asks.
    """

    model: Process
    scales: Scales
    points: Points
    data: gaussian.Observed
    neighbors: Neighbors

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on a new observation (the mean of the rows' when they differ)."""
        return float(np.mean(np.exp(self.scales.log_noise)))

    def given_neighbors(self, X: Array) -> "Asked":
        """What new inputs make of their neighbours."""
        new, rows = self.model.layers(self.scales, X), self.neighbors.asked(X)
        n, (m, count) = len(self.data.scaled), rows.shape
        pairs = self.model.local(self.points, self.data.weight).beside(self.model.local(new, np.ones(m)))
        members = np.column_stack((np.arange(n, n + m, dtype=np.int32), rows))
        sizes = np.full(m, count + 1, dtype=np.int32)
        coefficients, variances = vecchia.conditionals(pairs, members, sizes, self.neighbors.n_threads)
        log_signal = new.log_variance + self.scales.log_output
        return Asked(new, rows, -coefficients[:, 1:], np.maximum(variances, 0.0), log_signal)

    def mean_of(self, asked: "Asked") -> Array:
        """Mean of the function at new inputs."""
        return (asked.b * self.data.scaled[asked.rows]).sum(axis=1) * np.exp(0.5 * asked.log_signal)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function, (m,) each."""
        asked = self.given_neighbors(X)
        return self.mean_of(asked), np.exp(asked.log_signal) * asked.d

    def mean(self, X: Array) -> Array:
        """Mean of the function alone, (m,)."""
        return self.moments(X)[0]

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function: f_s - b_sᵀỹ and f_t - b_tᵀỹ under the process itself."""
        asked = self.given_neighbors(X)
        rows, places = np.unique(asked.rows, return_inverse=True)
        B, points = np.zeros((len(X), len(rows))), self.model.layers(self.scales, self.neighbors.X[rows])
        np.put_along_axis(B, places.reshape(asked.rows.shape), asked.b, axis=1)
        cross = self.model.cross(asked.points, points) * self.data.weight[rows]
        both = cross @ B.T
        own = self.model.cross(asked.points, asked.points) - both - both.T + self._through(B, rows, points)
        np.fill_diagonal(own, asked.d)
        sd = np.exp(0.5 * asked.log_signal)
        return self.mean_of(asked), own * np.outer(sd, sd)

    def _through(self, B: Array, rows: NDArray[np.int32], points: Points) -> Array:
        """BPBᵀ, with as much of P as rows are asked, some of them at a time."""
        total, weight = np.zeros((len(B), len(B))), self.data.weight[rows]
        for start in range(0, len(rows), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            here = self.model.layers(self.scales, self.neighbors.X[rows[some]])
            part = self.model.cross(here, points) * np.outer(weight[some], weight)
            own = np.arange(len(part))
            part[own, own + start] = 1.0
            total += B[:, some] @ (part @ B.T)
        return 0.5 * (total + total.T)
