"""f(x) | draw ~ N(k_tᵀL M⁻¹v, k_tt - k_tᵀL M⁻¹Lᵀk_t): the deep inverse Wishart process at new rows, draw by draw.

A draw is the noise of its Gram matrices at the inducing inputs, and one χ² and one ξ a layer by which any new row is
added: all rows share them, so that a row's law does not depend on the others that are asked. Among several rows the
joint law is drawn, the first of them with the same χ² and ξ.
"""

from collections.abc import Iterator

import numpy as np

from cadlag.baselines.diwp.bound import ground, input_gram, layer_values, propagate
from cadlag.baselines.diwp.gram import ReluMap
from cadlag.baselines.diwp.layer import Layer
from cadlag.baselines.diwp.noise import Noise, draw_noise
from cadlag.baselines.diwp.output import Output, Parameters
from cadlag.linalg.gaussian import Array

_CHUNK_ROWS = 1024


class Atoms:
    """Draws of the Gram matrices, and the function given each of them.

    Parameters
    ----------
    parameters
        As fitted.
    counted
        Rows that the degrees of freedom of a row count.
    """

    def __init__(self, parameters: Parameters, counted: int = 1) -> None:
        self.parameters, self.counted = parameters, counted
        self.size, self.n_layers = len(parameters["inducing"]), len(parameters["V"])
        self.values = [layer_values(parameters, k) for k in range(self.n_layers)]

    # Positions: a draw as a vector -----------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Positions of independent draws, (count, d)."""
        upper = np.triu_indices(self.size)
        rows = []
        for _ in range(count):
            noises = [draw_noise(rng, one.delta, one.gamma, self.size, 1, self.counted, False) for one in self.values]
            parts = [part for noise in noises for part in (noise.A[upper], noise.squares, noise.normals[:, 0])]
            rows.append(np.concatenate(parts) if parts else np.zeros(0))
        return np.stack(rows)

    def noises(self, position: Array) -> list[Noise]:
        """The noise of each layer."""
        upper = np.triu_indices(self.size)
        found = []
        for part in position.reshape(self.n_layers, -1) if self.n_layers else ():
            A = np.zeros((self.size, self.size))
            A[upper], square, normals = np.split(part, [len(upper[0]), len(upper[0]) + 1])
            found.append(Noise(A, np.zeros(self.size), square, np.zeros(1), normals[:, None]))
        return found

    def log_ratios(self, positions: Array) -> Array:
        """log P - log Q of each draw's Gram matrices, (T,)."""
        first, shared = ground(self.parameters, np.zeros((0, self.parameters["inducing"].shape[1])))
        totals = []
        for position in positions:
            noises = self.noises(position)
            draws, _ = propagate(self.parameters, first, shared, noises)
            totals.append(sum(draw.layer.log_ratio(noise.A) for draw, noise in zip(draws, noises)))
        return np.array(totals, dtype=float)

    # The function at new rows ----------------------------------------------------------------------------------------

    def moments(self, positions: Array, X: Array) -> tuple[Array, Array]:
        """Means and variances of the function at each row, (T, m) each."""
        means, variances = np.empty((len(positions), len(X))), np.empty((len(positions), len(X)))
        for start in range(0, len(X), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            first, shared = ground(self.parameters, X[rows])
            for t, position in enumerate(positions):
                _, maps = propagate(self.parameters, first, shared, self.noises(position))
                output = Output(self.parameters, maps[-1].kernel)
                means[t, rows], variances[t, rows] = output.means, output.variances
        return means, variances

    def joint(self, positions: Array, rngs: list[np.random.Generator], X: Array) -> Iterator[tuple[Array, Array]]:
        """Mean and covariance of the function at all rows."""
        first = ReluMap.of(input_gram(self.parameters, X, joint=True))
        for position, rng in zip(positions, rngs):
            kernel = first.kernel
            for noise, values in zip(self.noises(position), self.values):
                A, normals = self._rows_noise(rng, noise, values.delta, len(X))
                kernel = ReluMap.of(Layer(kernel, values).draw_jointly(noise, A, normals)).kernel
            output = Output(self.parameters, kernel)
            yield output.means, output.covariance

    def _rows_noise(self, rng: np.random.Generator, noise: Noise, delta: float, m: int) -> tuple[Array, Array]:
        A = np.triu(rng.standard_normal((m, m)), 1)
        A[np.diag_indices(m)] = np.sqrt(rng.chisquare(delta + self.size + self.counted + np.arange(1, m + 1)))
        normals = rng.standard_normal((self.size, m))
        A[0, 0], normals[:, 0] = np.sqrt(noise.squares[0]), noise.normals[:, 0]
        return A, normals
