"""y ~ N(0, ΦA²Φᵀ + cΣ_K + σ²I), a_j = τ M^(-1/α) √s_j: prior and likelihood of the stable network, and one draw of it.

A position is one flat vector: the units (b_j, v_j) row by row, log s, kinds, the log scales S of the inputs where they
are random, those of the bulk cΣ_K, a kernel process, where there is one, log τ, log σ². A unit sees b_j + v_jᵀS^½x.
Level d of the target is the posterior with σ² + d² in place of σ² (without bulk, known variances that differ by row are
raised in proportion); 0 is the posterior. An unknown σ² is at least 1e-10, which binds only where the units fit the
responses exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cadlag.data import Scaling
from cadlag.kernel_process.atom import Atom
from cadlag.kernel_process.model import KernelProcess
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.kernel_process.rough import RoughProcess
from cadlag.likelihood import GAUSSIAN, Gaussian, sample_log_half_cauchy
from cadlag.linalg.gaussian import LeftOut, NotPositiveDefiniteError
from cadlag.linalg.low_rank import solve_upper
from cadlag.linalg.vecchia import Indices, conditionals, log_density_of_first
from cadlag.model import Model
from cadlag.names import labels_beside
from cadlag.network.atom import Bulk, LocalBulk, NetworkAtom, Units
from cadlag.network.columns import RELU, SIGN, WHITE, fill_columns, from_log
from cadlag.network.fixed import NONE, FixedColumns
from cadlag.network.ground import Ground, Sums, ground_with_bulk
from cadlag.network.scales import LOG_LEAST, Priors, all_variances, log_half_cauchy
from cadlag.posterior import Posterior
from cadlag.stable import PositiveStable, positive_stable

Array = NDArray[np.float64]
MOST_IN_USE = 0.8  # of the units, beyond which more may be needed
ACTIVATIONS = ("sign", "relu", "auto")


@dataclass(frozen=True)
class StableNetwork(Model):
    """Prior and likelihood of the i.i.d. stable network.

    Attributes
    ----------
    X
        Inputs with a column of ones first, (n, q).
    y
        Responses.
    n_units
        M.
    alpha
        Stability index.
    activation
        "sign", "relu" or "auto".
    amplitude
        τ, or None when unknown.
    input_scales
        Whether the inputs have positive stable scales, shared by the units.
    likelihood
        The law of responses given the function.
    bulk_depth
        Number of kernel maps of the bulk; 0 for units alone.
    bulk_order
        Order of its activation.
    rough
        Whether the bulk has a part of order 0 beside it.
    fixed
        Columns beside the units.
    neighbors
        Whom each row asks, where the bulk is sparse; None for a bulk in full.
    hinge_scale
        κ, or None for that of these rows.
    """

    X: Array
    y: Array
    n_units: int = 20
    alpha: float = 1.0
    activation: str = "auto"
    amplitude: float | None = None
    input_scales: bool = False
    likelihood: Gaussian = GAUSSIAN
    bulk_depth: int = 0
    bulk_order: int = 1
    rough: bool = False
    fixed: FixedColumns = NONE
    neighbors: Neighbors | None = None
    hinge_scale: float | None = None

    exact_level = 0.0

    @cached_property
    def law(self) -> PositiveStable:
        """The prior law of each scale."""
        return positive_stable(self.alpha)

    @cached_property
    def density_table(self) -> tuple[float, float, Array]:
        """What the compiled log density of log s is made of."""
        return self.law.density_table if self.stable else (0.0, 1.0, np.zeros((1, 4)))

    @cached_property
    def process(self) -> KernelProcess | None:
        """The kernel process that is the bulk, or None."""
        if self.bulk_depth == 0:
            return None
        kind = RoughProcess if self.rough else KernelProcess
        return kind(
            self.X, self.y, self.alpha, self.bulk_order, self.bulk_depth, likelihood=self.likelihood,
            neighbors=self.neighbors,
        )  # fmt: skip

    @cached_property
    def stable(self) -> bool:
        """Whether the scales are random."""
        return self.alpha < 2.0

    @cached_property
    def dimension(self) -> int:
        """Length of a position."""
        return self.n_units * (self.X.shape[1] + 2) + self.n_input_scales + self.n_bulk_scales + 2

    @cached_property
    def n_input_scales(self) -> int:
        """Number of random input scales."""
        return self.n_inputs - 1 if self.input_scales and self.stable else 0

    @cached_property
    def n_bulk_scales(self) -> int:
        """Number of random scales of the bulk."""
        return self.process.n_scales if self.process is not None else 0

    @cached_property
    def omega(self) -> Array:
        """Weight of each row: one over the noise's standard deviation, as far as that differs by row."""
        rows = self.likelihood.rows
        return np.ones(len(self.y)) if rows is None else 1.0 / np.sqrt(rows)

    @cached_property
    def response(self) -> Array:
        """y in units of the rows' noise."""
        return self.y * self.omega

    @cached_property
    def square(self) -> float:
        """yᵀy."""
        return math.fsum(self.response**2)

    @property
    def noise_variance(self) -> float | Array | None:
        """The noise variance where it is known, one number or one for each row; None where it is sampled."""
        return self.likelihood.known

    @property
    def operations_to_condition(self) -> float:
        """What one draw's predictions cost at least."""
        n = float(len(self.y))
        return n * self.n_units**2 + (0.0 if self.process is None else self.process.operations_to_condition)

    @cached_property
    def log_factor(self) -> float:
        """log M^(-2/α)."""
        return -2.0 / self.alpha * math.log(self.n_units)

    @cached_property
    def relu_scale(self) -> float:
        """κ: a ReLU column has mean square ½(1 + |x|²) under the prior."""
        if self.hinge_scale is not None:
            return self.hinge_scale
        if len(self.X) == 0:
            return math.sqrt(2.0)
        return math.sqrt(2.0 * len(self.X) / math.fsum((self.X**2).ravel()))

    def of_rows(self, rows: NDArray[np.int_]) -> "StableNetwork":
        """The network given some of the rows; a position means the same."""
        likelihood, neighbors = self.likelihood.of_rows(rows), self.neighbors and self.neighbors.of_rows(rows)
        part = replace(self, X=self.X[rows], y=self.y[rows], likelihood=likelihood, neighbors=neighbors)
        return replace(part, hinge_scale=self.relu_scale)

    def read(self, position: Array) -> Units:
        """A position by parts, copied."""
        m, q = self.n_units, self.X.shape[1]
        sizes = np.cumsum([m * q, m, m, self.n_input_scales, self.n_bulk_scales])
        W, log_s, kinds, log_inputs, log_bulk, (log_tau, log_v) = np.split(position, sizes)
        return Units(
            W.reshape(m, q).copy(), log_s.copy(), kinds.astype(np.int64), log_inputs.copy(), log_bulk.copy(),
            float(log_tau), float(log_v),
        )  # fmt: skip

    def write(self, units: Units) -> Array:
        """The parts as one position."""
        kinds = units.kinds.astype(float)
        scales = units.log_inputs, units.log_bulk
        return np.concatenate([units.W.ravel(), units.log_s, kinds, *scales, [units.log_tau, units.log_v]])

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw of all unknowns."""
        m, q = self.n_units, self.X.shape[1]
        kinds = {"sign": np.full(m, SIGN), "relu": np.full(m, RELU), "auto": rng.integers(2, size=m)}[self.activation]
        W, log_s = rng.standard_normal((m, q)), self.law.sample_log(rng, m)
        log_inputs = self.law.sample_log(rng, self.n_input_scales)
        log_bulk = np.empty(0) if self.process is None else self.process.sample_scales(rng)
        log_tau = sample_log_half_cauchy(rng)
        log_v = self.likelihood.sample(rng)
        known_tau, known_v = self.amplitude, self.likelihood.log_known
        return self.write(Units(
            W, log_s, kinds, log_inputs, log_bulk, log_tau if known_tau is None else math.log(known_tau),
            max(log_v, LOG_LEAST) if known_v is None else known_v,
        ))  # fmt: skip

    def priors(self, alone: bool = True) -> Priors:
        """What the compiled moves of scales, amplitude and noise know; without the noise unless the units are alone."""
        return Priors(
            self.log_factor, self.stable, self.density_table, self.amplitude is not None,
            not (alone and self.likelihood.n_unknown), self.likelihood.power, self.likelihood.scale,
            self.fixed.variances,
        )  # fmt: skip

    def log_prior(self, position: Array) -> float:
        """Log prior density up to a constant."""
        units = self.read(position)
        value = -0.5 * float((units.W**2).sum())
        if self.stable:
            value += float(self.law.log_density(np.concatenate([units.log_s, units.log_inputs])).sum())
        if self.process is not None:
            value += self.process.prior_of_scales(units.log_bulk)[0]
        if self.amplitude is None:
            value += log_half_cauchy(units.log_tau)
        if self.likelihood.n_unknown:
            value += log_half_cauchy(0.5 * self.likelihood.power * units.log_v - math.log(self.likelihood.scale))
        return value

    def columns(self, units: Units, X: Array | None = None) -> Array:
        """Φ without weights of rows, those of the units first, at the training rows or at new ones."""
        inputs = self.scaled(units, X)
        own = fill_columns(inputs, np.ones(len(inputs)), units.W, units.kinds, self.relu_scale)
        if len(self.fixed.variances) == 0:
            return own
        return np.concatenate([own, self.fixed.at(self.X if X is None else X)], axis=1)

    def scaled(self, units: Units, X: Array | None = None) -> Array:
        """Inputs times the roots of their scales."""
        inputs = self.X if X is None else X
        return inputs * np.exp(0.5 * np.append(0.0, units.log_inputs)) if self.n_input_scales else inputs

    def variances(self, units: Units) -> Array:
        """a_j² of the units, then those of the fixed columns."""
        return all_variances(2.0 * units.log_tau + self.log_factor, units.log_s, self.fixed.variances)

    def noise(self, units: Units, level: float) -> float:
        """Noise variance with the floor d = level, in units of the rows' weights."""
        return float(from_log(units.log_v)) + self.floor_variance(level)

    def row_noise(self, units: Units, level: float) -> Array:
        """Variance of the noise of each training row, with the floor."""
        if self.process is None:
            return self.noise(units, level) / self.omega**2
        return self.likelihood.row_variances(float(from_log(units.log_v)), len(self.y)) + level * level

    def floor_variance(self, level: float) -> float:
        """d² of the noise floor, over the mean of the rows' relative variances, to be added to σ²."""
        rows = self.likelihood.rows
        return level * level / (1.0 if rows is None else float(np.mean(rows)))

    def bulk_position(self, units: Units) -> Array:
        """Position of the bulk's process."""
        return np.append(units.log_bulk, units.log_v) if self.likelihood.n_unknown else units.log_bulk

    def ground(self, units: Units, level: float) -> Ground:
        """What the units are added to: noise with a floor, and the bulk."""
        if self.process is None:
            noise = self.noise(units, level)
            return Ground(self.omega, self.response, WHITE, self.response, noise, self.square, self.log_weight)
        return ground_with_bulk(self.process, self.bulk_position(units), level)

    def log_likelihood_at(self, position: Array, level: float) -> float:
        """log p(y | units) with a noise floor."""
        try:
            return self._marginal(self.read(position), level)[1][0]
        except NotPositiveDefiniteError:
            return -math.inf

    def _marginal(self, units: Units, level: float) -> tuple[Ground, tuple[float, Array, Array], Sums]:
        """The ground, log p(y | units) with L and c, and what it needs of the columns."""
        ground = self.ground(units, level)
        sums = ground.sums(self.weighted(units, ground))
        return ground, ground.log_marginal(sums, self.variances(units)), sums

    def weighted(self, units: Units, ground: Ground) -> Array:
        """Φ at the training rows, with their weights."""
        own = fill_columns(self.scaled(units), ground.omega, units.W, units.kinds, self.relu_scale)
        if len(self.fixed.variances) == 0:
            return own
        return np.concatenate([own, ground.omega[:, None] * self.fixed.at(self.X)], axis=1)

    @cached_property
    def log_weight(self) -> float:
        """Log density of y less that of the weighted response."""
        return float(np.log(self.omega).sum())

    def log_target(self, position: Array, level: float) -> float:
        """log prior + log likelihood."""
        return self.log_prior(position) + self.log_likelihood_at(position, level)

    # Given the units -------------------------------------------------------------------------------------------------

    def condition(self, position: Array) -> NetworkAtom:
        """The Gaussian law of the function that one draw stands for, given the data."""
        units = self.read(position)
        variances, noise = self.variances(units), self.new_noise(units)
        if self.process is None:
            _, (_, factor, half), _ = self._marginal(units, 0.0)
            return NetworkAtom(self, units, np.sqrt(variances), factor, half, noise)
        at, Phi = self.bulk_position(units), self.columns(units)
        atom, data = self.process.condition_observed(at)
        given = Bulk.given if isinstance(atom, Atom) else LocalBulk.given
        bulk, factor, half = given(atom, data, Phi, variances)
        return NetworkAtom(self, units, np.sqrt(variances), factor, half, noise, bulk)

    def new_noise(self, units: Units) -> float:
        """Variance of the noise on a new observation."""
        return self.likelihood.new_variance(float(from_log(units.log_v)))

    def log_given(self, position: Array, members: Indices, sizes: Indices) -> Array:
        """log p(y_i | units, y_N) of the first row i of each set given the others, weights as all rows have them."""
        assert self.process is not None
        units = self.read(position)
        points, data = self.process.observe(self.bulk_position(units))
        _, (_, factor, half), _ = self._marginal(units, 0.0)
        spread = np.sqrt(self.variances(units))
        columns = self.columns(units) * np.exp(-0.5 * data.log_total)[:, None]
        a, d = conditionals(self.process.local(points, data.weight), members, sizes)
        left = (data.scaled - columns @ (spread * solve_upper(factor, half)))[members]
        H = solve_triangular(factor, (np.einsum("mk,mkj->mj", a, columns[members]) * spread).T, lower=True)
        return log_density_of_first((a * left).sum(axis=1), d + (H * H).sum(axis=0), data.log_total[members[:, 0]])

    def leave_one_out(self, position: Array) -> LeftOut:
        """Each row given the units and all the others."""
        units = self.read(position)
        ground, (_, factor, half), sums = self._marginal(units, 0.0)
        H = solve_triangular(factor, (sums.images * np.sqrt(self.variances(units))).T, lower=True) / ground.noise
        precision = ground.diagonal / ground.noise - (H * H).sum(axis=0)
        return LeftOut.solved(ground.pulled / ground.noise - H.T @ half, precision, 1.0 / ground.omega)

    def named(self, positions: Array) -> dict[str, Array]:
        """Draws by name, on their natural scale; units have no names, for they are interchangeable."""
        values: dict[str, Array] = {}
        if self.n_input_scales:
            last = -2 - self.n_bulk_scales
            values["input_scales"] = np.exp(positions[..., last - self.n_input_scales : last])
        if self.n_bulk_scales:
            values["bulk_scales"] = np.exp(positions[..., -2 - self.n_bulk_scales : -2])
        if self.amplitude is None:
            values["amplitude"] = np.exp(positions[..., -2])
        if self.likelihood.n_unknown:
            values["noise_variance"] = np.exp(positions[..., -1])
        return values

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the scales of inputs and bulk, the intercept's first and the amplitude's last."""
        own = labels_beside("intercept", names)
        amplitude, *others = labels_beside("amplitude", own)
        bulk = [*others, amplitude]
        if self.rough:
            roughness, *rest = labels_beside("roughness", bulk)
            bulk = [*rest, roughness]
        return {"input_scales": own[1:], "bulk_scales": bulk[len(bulk) - self.n_bulk_scales :], **self.probe_labels()}

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """Draws by name, the function at a few rows among them, in the units of the data."""
        return super().draws(positions, stats, inputs, response) | self.function_at_probes(stats, response)

    def diagnostics(self, posterior: Posterior) -> dict[str, Any]:
        """Diagnostics of the chains, and how many units help."""
        found = {**posterior.diagnostics(), "units_in_use": float(np.median(posterior.stats["n_used"]))}
        if self.neighbors is not None:
            found |= {"n_neighbors": self.neighbors.sets.n_neighbors, "n_asked": self.neighbors.n_asked}
        return found

    def remarks(self, diagnostics: dict[str, Any]) -> list[str]:
        """A word on too few units."""
        used, m = diagnostics["units_in_use"], self.n_units
        if used <= MOST_IN_USE * m:
            return []
        return [f"{used:.0f} of the {m} units are in use: the function may need more, fit with n_units={2 * m}"]
