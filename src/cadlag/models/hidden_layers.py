"""Σ_0, Σ_1, .. Σ_K and what is said of them: the hidden layers of the kernel process, given its scales."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag import kernels
from cadlag.models.atom import Points, Scales

Array = NDArray[np.float64]


class HiddenLayers:
    """Kernel matrices of every layer, for a process that knows its scales."""

    X: Array
    order: int
    depth: int
    constant: float

    @property
    def n_inputs(self) -> int:
        """Number of columns."""
        raise NotImplementedError

    @property
    def n_scales(self) -> int:
        """Number of random scales."""
        raise NotImplementedError

    @property
    def random_layers(self) -> tuple[int, ...]:
        """The indices k of the random c_k."""
        raise NotImplementedError

    def scales(self, position: Array) -> Scales:
        """Read a position."""
        raise NotImplementedError

    def layers(self, scales: Any, X: Array | None = None) -> Points:
        """The recursion at given scales and inputs."""
        raise NotImplementedError

    def cross(self, rows: Points, columns: Points) -> Array:
        """Correlations of the function between two sets of inputs."""
        raise NotImplementedError

    def covariances(self, position: Array, X: Array | None = None) -> Iterator[Array]:
        """Σ_0, Σ_1, .. Σ_K at given inputs.

        Parameters
        ----------
        position
            A draw.
        X
            Inputs with intercept; the training inputs by default.

        Yields
        ------
        Array
            Full symmetric matrices.
        """
        scales = self.scales(position)
        inputs = self.X if X is None else X
        log_c1 = self.log_layer_scale(position, 1)
        yield (inputs * np.exp(scales.log_weights - log_c1)) @ inputs.T
        for k in range(1, self.depth + 1):
            points = kernels.layers(inputs, scales.log_weights, scales.log_inner[: k - 1], self.order, self.constant)
            lower = np.tril(kernels.correlations(points, np.ones(len(inputs))))
            sd = np.exp(0.5 * points.log_variance)
            yield (lower + np.tril(lower, -1).T) * np.outer(sd, sd)

    def covariance(self, position: Array, X: Array | None = None) -> Array:
        """c_{K+1} Σ_K, the covariance of the function at given inputs.

        Parameters
        ----------
        position
            A draw.
        X
            Inputs with intercept; the training inputs by default.

        Returns
        -------
        Array
            Full symmetric matrix.
        """
        *_, last = self.covariances(position, X)
        return math.exp(self.scales(position).log_output) * last

    def information(self, position: Array) -> Array:
        """Mutual information -½ log(1 - ρ²) of the function at row i and at row m + i of 2m rows.

        Parameters
        ----------
        position
            Scales.

        Returns
        -------
        Array
            (m,).
        """
        m, scales = len(self.X) // 2, self.scales(position)
        values = np.empty(m)
        for i in range(m):
            pair = [self.layers(scales, self.X[k : k + 1]) for k in (i, m + i)]
            rho = float(self.cross(*pair)[0, 0])
            values[i] = -0.5 * math.log(max(1.0 - rho * rho, 1e-16))
        return values

    def log_layer_scale(self, position: Array, layer: int) -> float:
        """log c_layer, random or not.

        Parameters
        ----------
        position
            A draw.
        layer
            k in 1..K+1.

        Returns
        -------
        float
            Its logarithm.
        """
        scales = self.scales(position)
        first = float(position[self.n_inputs]) if self.n_scales and 1 in self.random_layers else 0.0
        return float(np.concatenate(([first], scales.log_inner, [scales.log_output]))[layer - 1])
