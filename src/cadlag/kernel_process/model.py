"""Λ = c_{K+1} Σ_K(X; S, c) + σ²I, y ~ N(0, Λ), all scales positive α/2-stable: the deep α-stable kernel process.

The unknowns are sampled as logarithms, in the order log s_1..log s_p, the random log c's, log σ². Three presets say
which c's are random (table 1.4 of the specification of Loría & Bhadra, 2025):

    theorem          c_2 .. c_{K+1} random, c_1 = 1, d₁ = 1
    prop2            c_2 .. c_K random, c_1 = c_{K+1} = 1, d₁ = 1
    published_code   c_1 .. c_K random, c_{K+1} = 1, d₁ = number of columns

Noise and its prior are the likelihood's. Level β of the target is prior × likelihood^β; 1 is the posterior.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cadlag import kernels
from cadlag.kernel_process.atom import Points, Scales
from cadlag.kernel_process.covariance import DENSE, Dense, Sparse
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.likelihood import GAUSSIAN, Gaussian
from cadlag.linalg import gaussian, vecchia
from cadlag.linalg.gaussian import Array
from cadlag.linalg.low_rank import Columns
from cadlag.model import Model
from cadlag.names import distinct, labels_beside
from cadlag.posterior import Posterior
from cadlag.sampling.ladder import PowerLadder
from cadlag.stable import PositiveStable, positive_stable

PRESETS = {"theorem": (2, 1), "prop2": (2, 0), "published_code": (1, 0)}  # random c's: the first, how far beyond K
LOG_CAP = 690.0  # e^690 is finite; scales beyond it are not told apart by any data


@dataclass(frozen=True)
class KernelProcess(PowerLadder, Model):
    """Prior, likelihood and gradient of the deep kernel process.

    Attributes
    ----------
    X
        Inputs, an intercept column included where wanted, (n, p).
    y
        Responses, (n,).
    alpha
        Stability index α in (0, 2]; at 2 all scales are 1.
    order
        Order δ of the activation.
    depth
        Number K of kernel maps.
    preset
        Which scales are random.
    likelihood
        The law of responses given the function.
    neighbors
        Whom each row asks, where the covariance is that of Vecchia; None for the full one.
    """

    X: Array
    y: Array
    alpha: float = 1.0
    order: int = 1
    depth: int = 1
    preset: str = "theorem"
    likelihood: Gaussian = GAUSSIAN
    neighbors: Neighbors | None = None
    _buffers: dict[tuple[str, int], Array] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def law(self) -> PositiveStable:
        """The prior law of each scale."""
        return positive_stable(self.alpha)

    @cached_property
    def random_layers(self) -> tuple[int, ...]:
        """The indices k of the random c_k."""
        first, beyond = PRESETS[self.preset]
        return tuple(range(first, self.depth + beyond + 1))

    @cached_property
    def n_scales(self) -> int:
        """Number of random stable scales; none when α = 2."""
        return 0 if self.alpha == 2.0 else self.n_inputs + len(self.random_layers)

    @cached_property
    def dimension(self) -> int:
        """Number of unknowns."""
        return self.n_scales + self.likelihood.n_unknown

    @property
    def operations_to_condition(self) -> float:
        """What one draw's predictions cost at least."""
        return self.form.operations(len(self.y))

    @property
    def process(self) -> "KernelProcess":
        """The process whose rows may ask few others: itself."""
        return self

    @cached_property
    def form(self) -> Dense | Sparse:
        """How the covariance of the observations is held."""
        return DENSE if self.neighbors is None else Sparse(self.neighbors)

    @property
    def noise_variance(self) -> float | Array | None:
        """The noise variance where it is known, one number or one for each row; None where it is sampled."""
        return self.likelihood.known

    def scales(self, position: Array) -> Scales:
        """Every scale at a position, the fixed ones included."""
        p = self.n_inputs
        log_c = np.zeros(self.depth + 1)
        if self.n_scales:
            log_c[self._layer_slice] = position[p : self.n_scales]
            log_weights = position[:p] + (log_c[0] - self._log_divisor)
            np.minimum(log_weights, LOG_CAP, out=log_weights)
        else:
            log_weights = np.full(p, -self._log_divisor)
        return Scales(log_weights, log_c[1:-1], log_c[-1], self.likelihood.log_noise(position))

    @cached_property
    def _layer_slice(self) -> slice:
        """Where the random c's stand among c_1..c_{K+1}."""
        first = self.random_layers[0] - 1 if self.random_layers else 0
        return slice(first, first + len(self.random_layers))

    @cached_property
    def _log_divisor(self) -> float:
        """log d₁."""
        return math.log(self.n_inputs) if self.preset == "published_code" else 0.0

    def named(self, positions: Array) -> dict[str, Array]:
        """Draws by name, on their natural scale."""
        noise = {"noise_variance": np.exp(positions[..., -1])} if self.likelihood.n_unknown else {}
        return self.named_parts(positions) | noise

    def named_parts(self, positions: Array) -> dict[str, Array]:
        """The same without the noise."""
        p, values = self.n_inputs, {}
        if self.n_scales:
            values["input_scales"] = np.exp(positions[..., :p])
            if self.random_layers:
                values["layer_scales"] = np.exp(positions[..., p : self.n_scales])
        return values

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the inputs' scales, the intercept's first where there is one, and of the layers'."""
        own = labels_beside("intercept", names) if self.n_inputs > len(names) else distinct(names)
        return {"input_scales": own, "layer_scales": [f"c{k}" for k in self.random_layers]}

    # Prior -----------------------------------------------------------------------------------------------------------

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of all unknowns from the prior."""
        log_s = self.sample_scales(rng)
        return np.append(log_s, self.likelihood.sample(rng)) if self.likelihood.n_unknown else log_s

    def sample_scales(self, rng: np.random.Generator) -> Array:
        """The logarithms of all random scales from their prior."""
        return self.law.sample_log(rng, self.n_scales)

    def prior_of_scales(self, log_scales: Array) -> tuple[float, Array]:
        """Log prior density of the logarithms of the scales, and its gradient."""
        if len(log_scales) == 0:  # at α = 2 the law is a point mass
            return 0.0, np.empty(0)
        values, slopes = self.law.log_density_and_slope(log_scales)
        return float(values.sum()), slopes

    def log_prior(self, position: Array) -> float:
        """Log prior density of the logarithms."""
        return self.log_prior_gradient(position)[0]

    def log_prior_gradient(self, position: Array) -> tuple[float, Array]:
        """Log prior density and gradient."""
        gradient = np.zeros(self.dimension)
        value, gradient[: self.n_scales] = self.prior_of_scales(position[: self.n_scales])
        if self.likelihood.n_unknown:
            log_density, gradient[-1] = self.likelihood.log_prior(float(position[-1]))
            value += log_density
        return value, gradient

    # Likelihood ------------------------------------------------------------------------------------------------------

    def layers(self, scales: Any, X: Array | None = None) -> Points:
        """The recursion's diagonals and unit vectors."""
        inputs = self.X if X is None else X
        return kernels.layers(inputs, scales.log_weights, scales.log_inner, self.order)

    def cross(self, rows: Points, columns: Points) -> Array:
        """Correlations of the function between two sets of inputs, (m, n)."""
        return kernels.cross_correlations(rows, columns)

    def _buffer(self, name: str = "correlation") -> Array:
        key = (name, threading.get_ident())  # threads may share a model, not a buffer
        if key not in self._buffers:
            self._buffers[key] = np.zeros((len(self.y), len(self.y)))
        return self._buffers[key]

    def correlate(self, points: Points, weight: Array) -> Array:
        """The lower triangle of the correlations of the observations, in a buffer."""
        return kernels.correlations(points, weight, self._buffer())

    def local(self, points: Points, weight: Array) -> Any:
        """Correlations of the observations within sets of rows."""
        return kernels.LocalPairs.of(points, weight)

    def _observe(self, scales: Scales, floor: float = 0.0) -> tuple[Points, gaussian.Observed]:
        points = self.layers(scales)
        log_noise = np.logaddexp(scales.log_noise, 2.0 * math.log(floor)) if floor > 0.0 else scales.log_noise
        return points, gaussian.observe(self.y, points.log_variance + scales.log_output, log_noise)

    def observe(self, position: Array, floor: float = 0.0) -> tuple[Points, gaussian.Observed]:
        """The layers, and the observations in units of their standard deviations."""
        return self._observe(self.scales(position), floor)

    def log_likelihood(self, position: Array, floor: float = 0.0, columns: Columns | None = None) -> float:
        """log p(y | scales, noise), -inf where the covariance cannot be factorised; columns may be added to it."""
        if len(self.y) == 0:
            return 0.0
        try:
            value = self.form.log_marginal(self, *self._observe(self.scales(position), floor), columns)
        except gaussian.NotPositiveDefiniteError:
            return -math.inf
        return value if math.isfinite(value) else -math.inf

    def log_likelihood_gradient(
        self, position: Array, floor: float = 0.0, columns: Columns | None = None
    ) -> tuple[float, Array]:
        """Log likelihood and its gradient (zero where it is -inf)."""
        failed = -math.inf, np.zeros(self.dimension)
        if len(self.y) == 0:
            return 0.0, np.zeros(self.dimension)
        points, data = self._observe(self.scales(position), floor)
        try:
            found = self.form.log_marginal_gradient(self, points, data, columns)
        except gaussian.NotPositiveDefiniteError:
            return failed
        gradient = np.zeros(self.dimension)
        self._pull_back(points, data, found, gradient)
        if self.likelihood.n_unknown:
            gradient[-1] = self.likelihood.by_log_variance(found.log_noise, position, floor)
        return (found.value, gradient) if np.isfinite(found.value + gradient.sum()) else failed

    def _pull_back(
        self, points: Points, data: gaussian.Observed, marginal: gaussian.MarginalGradient, gradient: Array
    ) -> None:
        """The gradient by everything but the noise."""
        by_weight, by_inner = kernels.reverse(points, data.weight, marginal.pairs, marginal.log_signal)
        if self.n_scales:
            gradient[: self.n_scales] = self.by_scales(by_weight, by_inner, float(marginal.log_signal.sum()))

    def by_scales(self, by_weight: Array, by_inner: Array, by_output: float) -> Array:
        """Derivatives by the random log s's and log c's."""
        by_layer = np.concatenate(([by_weight.sum()], by_inner, [by_output]))
        return np.concatenate((by_weight, by_layer[self._layer_slice]))

    # Hidden layers ---------------------------------------------------------------------------------------------------

    def covariances(self, position: Array, X: Array | None = None) -> Iterator[Array]:
        """Σ_0, Σ_1, .. Σ_K at given inputs."""
        scales = self.scales(position)
        inputs = self.X if X is None else X
        log_c1 = self.log_layer_scale(position, 1)
        yield (inputs * np.exp(scales.log_weights - log_c1)) @ inputs.T
        for k in range(1, self.depth + 1):
            points = kernels.layers(inputs, scales.log_weights, scales.log_inner[: k - 1], self.order)
            lower = np.tril(kernels.correlations(points, np.ones(len(inputs))))
            sd = np.exp(0.5 * points.log_variance)
            yield (lower + np.tril(lower, -1).T) * np.outer(sd, sd)

    def covariance(self, position: Array, X: Array | None = None) -> Array:
        """c_{K+1} Σ_K, the covariance of the function at given inputs."""
        *_, last = self.covariances(position, X)
        return math.exp(self.scales(position).log_output) * last

    def information(self, position: Array) -> Array:
        """Mutual information -½ log(1 - ρ²) of the function at row i and at row m + i of 2m rows."""
        m, scales = len(self.X) // 2, self.scales(position)
        values = np.empty(m)
        for i in range(m):
            pair = [self.layers(scales, self.X[k : k + 1]) for k in (i, m + i)]
            rho = float(self.cross(*pair)[0, 0])
            values[i] = -0.5 * math.log(max(1.0 - rho * rho, 1e-16))
        return values

    def log_layer_scale(self, position: Array, layer: int) -> float:
        """log c_layer, random or not."""
        scales = self.scales(position)
        first = float(position[self.n_inputs]) if self.n_scales and 1 in self.random_layers else 0.0
        return float(np.concatenate(([first], scales.log_inner, [scales.log_output]))[layer - 1])

    # Given the scales ------------------------------------------------------------------------------------------------

    def diagnostics(self, posterior: Posterior) -> dict[str, Any]:
        """How far the draws can be trusted, and how many rows each row asks, and a new one."""
        found = super().diagnostics(posterior)
        if self.neighbors is None:
            return found
        return found | {"n_neighbors": self.neighbors.sets.n_neighbors, "n_asked": self.neighbors.n_asked}

    def condition(self, position: Array) -> Any:
        """The Gaussian process that one draw stands for, given the data."""
        return self.condition_observed(position)[0]

    def condition_observed(self, position: Array) -> tuple[Any, gaussian.Observed]:
        """The Gaussian process that one draw stands for, and the observations that it was conditioned on."""
        scales = self.scales(position)
        points, data = self._observe(scales)
        return self.form.condition(self, scales, points, data), data

    def log_given(self, position: Array, members: vecchia.Indices, sizes: vecchia.Indices) -> Array:
        """log p(y_i | scales, y_N) of the first row i of each set given the others."""
        points, data = self.observe(position)
        a, d = vecchia.conditionals(self.local(points, data.weight), members, sizes)
        return vecchia.log_density_of_first((a * data.scaled[members]).sum(axis=1), d, data.log_total[members[:, 0]])

    def leave_one_out(self, position: Array) -> gaussian.LeftOut:
        """Each row given the scales and all the others."""
        return self.form.leave_one_out(self, *self._observe(self.scales(position)))
