"""Λ = G^(-2/α) Σ_g c_g Σ_K(X - 1m_gᵀ; S_g) + σ²I: the kernel process with centres and groups.

In the kernel process a large scale makes the function steep at x = 0 and nowhere else. With a centre, m ~ N(0, I), it
is steep at m. With G groups of units in the last hidden layer, each with scales and, if wanted, a centre of its own, it
can be steep in G places; the factor G^(-2/α) leaves the law of the total scale as it is for one group. All scales are
independent and positive α/2-stable; at α = 2 they are 1 and only the centres are random.

The unknowns stand in the order: the log scales of group 1, .. of group G, each as in the kernel process, the centres of
group 1, .. of group G, log σ². With v_g the variances of the groups' parts, v = Σ_g v_g and a_g = √(v_g/v), the
correlations of the function are ρ = Σ_g a_g a_gᵀ∘ρ_g, so the sum keeps the normalised form. The groups are
interchangeable: what is said of one by its number means nothing, what is said of all of them does.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cadlag import kernels
from cadlag.data import Scaling
from cadlag.kernel_process.atom import Scales
from cadlag.kernel_process.model import KernelProcess
from cadlag.linalg import gaussian
from cadlag.linalg.gaussian import LOG_2PI, Array

LEAPS = 32  # for each group
STEPS = (-1.0, 0.7)  # powers of ten: how far a log scale walks
SHIFTS = (-2.5, -0.3)  # and how far a centre is shifted


@dataclass(frozen=True)
class GroupScales(Scales):
    """The scales of all groups, a row each; `log_output` is 0, as the groups' own are counted in their variances.

    Attributes
    ----------
    log_outputs
        log of G^(-2/α) c_{K+1} in each group, (G,).
    centres
        The centre of each group, 0 where a column has none: (G, p).
    """

    log_outputs: Array
    centres: Array


@dataclass(frozen=True)
class Parts:
    """What one set of inputs contributes to every entry of the sum of the groups.

    Attributes
    ----------
    layers
        The layers of each group.
    shares
        a_g = √(share of group g in the variance of the function), (G, n).
    log_variance
        log of the variance of the function, (n,).
    """

    layers: tuple[kernels.Layers, ...]
    shares: Array
    log_variance: Array


@dataclass(frozen=True)
class GroupedProcess(KernelProcess):
    """Prior, likelihood and gradient of the kernel process with centres and groups.

    Attributes
    ----------
    n_groups
        Number G of groups. More than one wants a random output scale: the preset `theorem`.
    n_centred
        How many columns of the inputs, the last ones, have a centre.
    """

    n_groups: int = 1
    n_centred: int = 0

    def __post_init__(self) -> None:
        if self.neighbors is not None:
            raise ValueError("a process with centres or groups has its covariance in full: it takes no neighbours")

    @cached_property
    def one(self) -> KernelProcess:
        """The process of one group, without centre."""
        return KernelProcess(self.X, self.y, self.alpha, self.order, self.depth, self.preset, self.likelihood)

    @cached_property
    def n_scales(self) -> int:
        """Number of random stable scales, of all groups together."""
        return self.n_groups * self.one.n_scales

    @cached_property
    def _end_of_centres(self) -> int:
        return self.n_scales + self.n_groups * self.n_centred

    @cached_property
    def dimension(self) -> int:
        """Number of unknowns."""
        return self._end_of_centres + self.likelihood.n_unknown

    def own_position(self, position: Array, group: int) -> Array:
        """The position of one group alone, as `one` reads it: its log scales, then log σ²."""
        return np.concatenate((position[self._scales_of(group)], position[self._end_of_centres :]))

    def _scales_of(self, group: int) -> slice:
        return slice(group * self.one.n_scales, (group + 1) * self.one.n_scales)

    def centres(self, positions: Array) -> Array:
        """The centres in positions, 0 where a column has none, (..., G, p)."""
        values = np.zeros((*positions.shape[:-1], self.n_groups, self.n_inputs))
        if self.n_centred:
            values[..., -self.n_centred :] = self._by_group(positions[..., self.n_scales : self._end_of_centres])
        return values

    def _by_group(self, values: Array) -> Array:
        """(..., G k) as (..., G, k)."""
        return values.reshape(*values.shape[:-1], self.n_groups, values.shape[-1] // self.n_groups)

    def scales(self, position: Array) -> GroupScales:
        """The scales and centres of all groups."""
        each = [self.one.scales(self.own_position(position, g)) for g in range(self.n_groups)]
        log_outputs = np.array([own.log_output for own in each]) - 2.0 / self.alpha * math.log(self.n_groups)
        weights, inner = np.stack([own.log_weights for own in each]), np.stack([own.log_inner for own in each])
        return GroupScales(weights, inner, 0.0, each[0].log_noise, log_outputs, self.centres(position))

    def named_parts(self, positions: Array) -> dict[str, Array]:
        """Scales and centres by name; when there are several groups, with an axis for them before their own."""
        values = self.one.named_parts(self._by_group(positions[..., : self.n_scales]))
        if self.n_centred:
            values["centers"] = self.centres(positions)[..., -self.n_centred :]
        return values if self.n_groups > 1 else {name: draws[..., 0, :] for name, draws in values.items()}

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of one group's scales, of its centre, and of the rows at which the function is watched."""
        own = super().labels(names)
        return {**own, "centers": own["input_scales"][-len(names) :], **self.probe_labels()}

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """Draws by name, in the units of the data; the function too, where groups have no names."""
        draws = super().draws(positions, stats, inputs, response)
        if "centers" in draws:
            draws["centers"] = inputs.undo(draws["centers"])
        return draws | (self.function_at_probes(stats, response) if self.n_groups > 1 else {})

    def interchangeable(self, draws: dict[str, Array]) -> frozenset[str]:
        """Draws with an axis for groups: chains may number the groups differently, so these need not agree."""
        return frozenset(name for name, values in draws.items() if values.ndim == 4)

    # Prior -----------------------------------------------------------------------------------------------------------

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of all unknowns from the prior."""
        rest = super().sample_prior(rng)
        return np.insert(rest, self.n_scales, rng.standard_normal(self.n_groups * self.n_centred))

    def log_prior_gradient(self, position: Array) -> tuple[float, Array]:
        """Log prior density and gradient."""
        value, gradient = super().log_prior_gradient(position)
        span = slice(self.n_scales, self._end_of_centres)
        centres = position[span]
        gradient[span] = -centres
        return value - 0.5 * (float(centres @ centres) + LOG_2PI * len(centres)), gradient

    # Likelihood ------------------------------------------------------------------------------------------------------

    def layers(self, scales: GroupScales, X: Array | None = None) -> Parts:
        """The recursion's diagonals and unit vectors in every group."""
        inputs = self.X if X is None else X
        each = tuple(
            kernels.layers(inputs - m, weights, inner, self.order)
            for m, weights, inner in zip(scales.centres, scales.log_weights, scales.log_inner)
        )
        logs = np.stack([part.log_variance for part in each]) + scales.log_outputs[:, None]
        total = np.logaddexp.reduce(logs, axis=0)
        return Parts(each, np.exp(0.5 * (logs - total)), total)

    def cross(self, rows: Parts, columns: Parts) -> Array:
        """Correlations of the function between two sets of inputs."""
        total = np.zeros((rows.shares.shape[1], columns.shares.shape[1]))
        for one, other, a, b in zip(rows.layers, columns.layers, rows.shares, columns.shares):
            total += kernels.cross_correlations(one, other) * np.outer(a, b)
        return total

    def _part_buffer(self, group: int) -> Array:
        return self._buffer(f"group {group}")

    def correlate(self, points: Parts, weight: Array) -> Array:
        """Σ_g ω_g ω_gᵀ∘ρ_g with ω_g = w a_g below the diagonal; the terms stay in buffers for the reverse mode."""
        total = self._buffer()
        total[:] = 0.0
        for g, (part, share) in enumerate(zip(points.layers, points.shares)):
            total += kernels.correlations(part, weight * share, self._part_buffer(g))
        np.fill_diagonal(total, 1.0)
        return total

    def _pull_back(
        self, points: Parts, data: gaussian.Observed, marginal: gaussian.MarginalGradient, gradient: Array
    ) -> None:
        """The gradient by everything but the noise."""
        moved = np.zeros((self.n_groups, self.n_inputs))
        by_scale = np.empty((self.n_groups, self.one.n_scales))
        by_variance = self._by_variances(points, marginal)
        for g, part in enumerate(points.layers):
            adjoint = self._part_buffer(g)
            adjoint[:] = marginal.pairs
            by_weight, by_inner = kernels.reverse(
                part, data.weight * points.shares[g], adjoint, by_variance[g], moved[g] if self.n_centred else None
            )
            if self.n_scales:
                by_scale[g] = self.one.by_scales(by_weight, by_inner, float(by_variance[g].sum()))
        gradient[: self.n_scales] = by_scale.ravel()
        gradient[self.n_scales : self._end_of_centres] = -moved[:, self.n_inputs - self.n_centred :].ravel()

    def _by_variances(self, points: Parts, marginal: gaussian.MarginalGradient) -> Array:
        """dℓ/d log v_gk = a_gk² (dℓ/d log v_k - ½ Σ_g R_gk) + ½ R_gk, R_gk = Σ_h dℓ/dP_kh ω_gk ω_gh ρ_gkh: (G, n)."""
        through_pairs = np.empty_like(points.shares)
        for g in range(self.n_groups):
            term = self._part_buffer(g)
            np.fill_diagonal(term, 0.0)
            through_pairs[g] = np.einsum("kh,kh->k", marginal.pairs, term) + np.einsum("kh,kh->h", marginal.pairs, term)
        squares = points.shares**2
        return squares * marginal.log_signal + 0.5 * (through_pairs - squares * through_pairs.sum(axis=0))

    # Moves between modes ---------------------------------------------------------------------------------------------

    @property
    def n_leaps(self) -> int:
        """Leaps that samplers try at a time."""
        return LEAPS * self.n_groups

    def leap(self, rng: np.random.Generator, position: Array) -> Array:
        """A proposal under which the prior is reversible: a centre moves, or scales do, or a whole group is another."""
        moves = (self._walk, self._renew, self._shift, self._exchange) if self.n_centred else (self._walk, self._renew)
        return moves[rng.integers(len(moves))](rng, position)

    def _walk(self, rng: np.random.Generator, position: Array) -> Array:
        """One log scale, or the noise, by a step of any size, accepted under the prior."""
        learned = self.likelihood.n_unknown
        if self.n_scales + learned == 0:
            return position
        proposal, j = position.copy(), rng.integers(self.n_scales + learned) - learned
        proposal[j] += 10.0 ** rng.uniform(*STEPS) * rng.standard_normal()
        gain = self.log_prior(proposal) - self.log_prior(position)
        return proposal if math.log(1.0 - rng.random()) < gain else position

    def _renew(self, rng: np.random.Generator, position: Array) -> Array:
        """A group, or only its centre, from the prior."""
        proposal, fresh, group = position.copy(), self.sample_prior(rng), int(rng.integers(self.n_groups))
        centre, scales = self._centre_of(group), self._scales_of(group)
        proposal[centre] = fresh[centre]
        if not self.n_centred or rng.random() < 0.5:
            proposal[scales] = fresh[scales]
        return proposal

    def _shift(self, rng: np.random.Generator, position: Array) -> Array:
        """A centre moves a little, by an autoregression that leaves its normal law alone."""
        proposal, centre = position.copy(), self._centre_of(int(rng.integers(self.n_groups)))
        share = 10.0 ** rng.uniform(*SHIFTS)
        noise = rng.standard_normal(self.n_centred)
        proposal[centre] = math.sqrt(1.0 - share**2) * position[centre] + share * noise
        return proposal

    def _exchange(self, rng: np.random.Generator, position: Array) -> Array:
        """Two groups exchange their centres."""
        proposal = position.copy()
        one, other = (self._centre_of(int(group)) for group in rng.integers(self.n_groups, size=2))
        proposal[one], proposal[other] = position[other], position[one]
        return proposal

    def _centre_of(self, group: int) -> slice:
        first = self.n_scales + group * self.n_centred
        return slice(first, first + self.n_centred)

    # Given the scales ------------------------------------------------------------------------------------------------

    def covariances(self, position: Array, X: Array | None = None, group: int = 0) -> Iterator[Array]:
        """Σ_0, Σ_1, .. Σ_K of one group at given inputs."""
        inputs = (self.X if X is None else X) - self.centres(position)[group]
        yield from self.one.covariances(self.own_position(position, group), inputs)

    def covariance(self, position: Array, X: Array | None = None) -> Array:
        """G^(-2/α) Σ_g c_g Σ_K, the covariance of the function at given inputs."""
        parts = []
        for g, log_output in enumerate(self.scales(position).log_outputs):
            *_, last = self.covariances(position, X, g)
            parts.append(math.exp(log_output) * last)
        return np.sum(parts, axis=0)

    def log_layer_scale(self, position: Array, layer: int, group: int = 0) -> float:
        """log c_k of one group, random or not."""
        return self.one.log_layer_scale(self.own_position(position, group), layer)
