"""Sweeps over the units as a transition kernel; warm-up by a falling noise floor."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cadlag.linalg.low_rank import precision_of_sums, solve_upper
from cadlag.network.atom import Units
from cadlag.network.bulk import GivenUnits
from cadlag.network.columns import MANY, SIGN, Common, Explained, Members, Rows, inverse_of_sums, near_of
from cadlag.network.ground import Ground, Sums
from cadlag.network.inputs import move_input_scales
from cadlag.network.model import StableNetwork
from cadlag.network.scales import walk_scales
from cadlag.network.sweep import polish_units, sweep_units
from cadlag.sampling.contract import Apart, Array, Info, State
from cadlag.sampling.nuts import Nuts
from cadlag.sampling.probes import as_info, probe_rows
from cadlag.sampling.tempering import Tempered

FLOORS = (0.35, 0.1, 0.004)  # of y's standard deviation: at first, after the slow fall, after the fast one
TIMES = (0.12, 0.55, 0.8)  # of warm-up, when each fall begins or ends; no floor after the last
UNITS_ALONE = 0.4  # of warm-up, before the bulk joins the units
POLISH, POLISH_IN_WARMUP, POLISH_WITH_BULK = 2, 6, 1  # visits to a direction alone, for each visit to all of a unit
LADDER = (0.0, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.35)  # floors of the replicas that are exchanged, likewise
NOISE_STEP = 0.1  # first guess of the posterior standard deviation of log σ²
FEW_ROWS = 100
FIRST_ROWS = 2048  # of many, to begin warm-up with


class Pace(NamedTuple):
    """Doublings of a trajectory of the bulk's scales, and sweeps for each trajectory, at first and while it adapts."""

    depth: int
    every: int
    learns_every: int


WITH_FEW_ROWS, WITH_MANY = Pace(3, 1, 1), Pace(2, 5, 3)  # the bulk is the dearer part with many


def floor_at(iteration: int, n_warmup: int) -> float:
    """The noise floor: high, falling slowly while units find their places, then fast, geometrically, then none."""
    t = iteration / max(n_warmup, 1)
    if t >= TIMES[-1]:
        return 0.0
    return float(np.exp(np.interp(t, TIMES, np.log(FLOORS))))


def rows_at(iteration: int, n_warmup: int, n: int) -> int:
    """How many of many rows are looked at: twice as many after each of equal parts of warm-up, all in the end."""
    end = TIMES[-1] * n_warmup
    if n <= MANY or iteration >= end:
        return n
    n_doublings = math.ceil(math.log2(n / FIRST_ROWS))
    return -(-n // 2 ** (n_doublings - int(iteration / end * (n_doublings + 1))))


def size_of(y: Array) -> float:
    """The standard deviation, which floors are in units of, and one where there is none."""
    return (float(np.std(y)) if len(y) else 0.0) or 1.0


def gains_of_units(weights: Array, C: Array, variances: Array, noise: float) -> Array:
    """Log likelihood less that without unit j, for each j, from its mean weight and its entry of C."""
    own = noise * np.diagonal(C)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = 0.5 * (np.log(own / variances) + weights**2 / own)
    return np.where(own > 0.0, gains, 0.0)


class Sweeps(Apart):
    """Gibbs sweeps over units, scales and bulk.

    Parameters
    ----------
    target
        The network.
    n_warmup
        Iterations that adapt, four fifths of them with a noise floor.
    """

    def __init__(self, target: StableNetwork, n_warmup: int) -> None:
        self.target, self.n_warmup = target, n_warmup
        self._probes = probe_rows(len(target.y))
        self._known: tuple[Any, Ground] | None = None
        self._size = size_of(target.y)
        self._pace = WITH_FEW_ROWS if target.process is None or len(target.y) <= FEW_ROWS else WITH_MANY
        self._no_floor = math.ceil(TIMES[-1] * n_warmup)  # the iteration from which there is none
        self._bulk_from = math.ceil(UNITS_ALONE * n_warmup)
        self._models: dict[tuple[bool, int], StableNetwork] = {}

    def init(self, rng: np.random.Generator) -> State:
        """A prior draw with moderate scales and noise."""
        model = self.target
        units = model.read(model.sample_prior(rng))
        units = units._replace(
            log_tau=units.log_tau if model.amplitude is not None else 0.0,
            log_v=math.log(0.1) if model.likelihood.n_unknown else units.log_v,
            log_inputs=np.zeros_like(units.log_inputs),
            log_bulk=np.zeros_like(units.log_bulk),
        )
        return self.start_from(model.write(units))

    def start_from(self, position: Array) -> State:
        """A state at a given position, with nothing learned yet."""
        state: State = {"position": position, "iteration": 0}
        if self.target.process is not None:
            units = self.target.read(position)
            state["bulk"] = self._bulk_kernel(units).start_from(self.target.bulk_position(units))
        return state

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """The bulk, a sweep over the units, then the scales."""
        iteration = state["iteration"]
        warming, since = iteration < self.n_warmup, self._since_bulk(iteration)
        floor = max(level, self._size * floor_at(iteration - since, self.n_warmup)) if warming else level
        model = self._model_at(iteration)
        units, moved = self.target.read(state["position"]), {}
        info = {"n_gradients": 0.0, "n_failures": 0.0, "accept": math.nan}
        if self.target.process is not None:
            moved["bulk"] = state["bulk"]
            if iteration == self._no_floor:
                moved["bulk"] = self._learn_anew(units, state["bulk"])
            if model.process is not None and since == 0:
                units, moved["bulk"], info = self._move_bulk(rng, units, moved["bulk"], floor, iteration)
        ground = self._ground(model, units, floor)
        visits = POLISH_IN_WARMUP if warming else POLISH
        visits = (POLISH_WITH_BULK if model.process is not None else visits) * model.n_units
        units, sums = self._sweep(rng, units, ground, visits, model)
        units = self._walk(rng, model, units, sums, ground, floor)
        if model.process is None:
            ground = ground._replace(noise=model.noise(units, floor))
        if model.n_input_scales:
            units, sums = move_input_scales(rng, model, units, ground, sums)
        position = self.target.write(units)
        value, probes = self._look(model, units, ground, sums, floor)
        info |= {"log_target": value + self.target.log_prior(position), "floor": floor,
                 "n_sign": float((units.kinds == SIGN).sum()), **probes}  # fmt: skip
        return {"position": position, "iteration": iteration + 1, **moved}, info

    def _model_at(self, iteration: int) -> StableNetwork:
        """The network, without its bulk as long as the units find their places alone, of some of many rows at first."""
        n = len(self.target.y)
        key = iteration < self._bulk_from, rows_at(iteration, self.n_warmup, n)
        if key not in self._models:
            model = replace(self.target, bulk_depth=0) if key[0] else self.target
            some = np.random.default_rng(n).permutation(n)[: key[1]]
            self._models[key] = model if key[1] == n else model.of_rows(np.sort(some))
        return self._models[key]

    def _since_bulk(self, iteration: int) -> int:
        """Sweeps since the last trajectory of the bulk; one begins each part of warm-up and what follows it."""
        if iteration < self._bulk_from:
            return 0
        if iteration >= self.n_warmup:
            return (iteration - self.n_warmup) % self._pace.every
        if iteration >= self._no_floor:
            return (iteration - self._no_floor) % self._pace.learns_every
        return (iteration - self._bulk_from) % self._pace.every

    def _ground(self, model: StableNetwork, units: Units, floor: float) -> Ground:
        """What the units are added to, remembered while bulk, noise and floor stay as they are."""
        if model.process is None:
            return model.ground(units, floor)
        key = (self.target.bulk_position(units).tobytes(), floor, len(model.y))
        if self._known is None or self._known[0] != key:
            self._known = (key, model.ground(units, floor))
        return self._known[1]

    # The bulk --------------------------------------------------------------------------------------------------------

    def _bulk_kernel(self, units: Units, iteration: int = 0) -> Nuts:
        """NUTS, which adapts under the floor, and anew without it, when the noise is known so much better."""
        model, start = self._model_at(max(iteration, self._bulk_from)), self._no_floor
        assert model.process is not None
        given = GivenUnits(model.process, model.columns(units), model.variances(units))
        pace = self._pace
        before = start - min(self._bulk_from, start)
        n_sweeps, every = (self.n_warmup - start, pace.learns_every) if iteration >= start else (before, pace.every)
        return Nuts(given, -(-n_sweeps // every), max_depth=pace.depth)

    def _learn_anew(self, units: Units, state: State) -> State:
        """Restart the bulk's NUTS when the floor has gone: the metric so far, the noise's axis shortened."""
        factor = state["factor"].copy()
        if self.target.likelihood.n_unknown:
            factor[-1] *= NOISE_STEP / np.linalg.norm(factor[-1])
        return self._bulk_kernel(units).start_from(self.target.bulk_position(units), factor)

    def _move_bulk(
        self, rng: np.random.Generator, units: Units, state: State, floor: float, iteration: int = 0
    ) -> tuple[Units, State, dict[str, float]]:
        """A trajectory of the bulk's scales and the noise, given the units."""
        at = self.target.bulk_position(units)
        state, info = self._bulk_kernel(units, iteration).step(rng, {**state, "position": at}, floor)
        log_bulk, rest = np.split(state["position"], [len(units.log_bulk)])
        moved = units._replace(log_bulk=log_bulk, log_v=float(rest[0]) if len(rest) else units.log_v)
        return moved, state, {name: info[name] for name in ("n_gradients", "n_failures", "accept")}

    # Units and scales ------------------------------------------------------------------------------------------------

    def prepare(
        self, units: Units, ground: Ground, model: StableNetwork | None = None
    ) -> tuple[Rows, Members, Explained, Common]:  # fmt: skip
        """What the compiled moves work on. `units` is overwritten."""
        model = model or self.target
        sums = ground.sums(model.weighted(units, ground))
        C = inverse_of_sums(sums.gram, model.variances(units), ground.noise)
        inputs = model.scaled(units)
        rows = Rows(inputs, np.ascontiguousarray(inputs.T), ground.omega, ground.V, ground.pulled)
        log_scale = 2.0 * units.log_tau + model.log_factor
        law = Common(log_scale, ground.noise, model.law.index, model.relu_scale, model.density_table)
        return rows, Members(units.W, units.log_s, units.kinds, near_of(inputs, units.W)), Explained(*sums, C), law

    def _sweep(
        self, rng: np.random.Generator, units: Units, ground: Ground, n_visits: int, model: StableNetwork | None = None
    ) -> tuple[Units, Sums]:  # fmt: skip
        """Every unit once, then visits to directions alone."""
        units = units.copy()
        rows, members, fit, law = self.prepare(units, ground, model)
        sweep_units(rng, rows, members, fit, law, self.target.activation == "auto")
        polish_units(rng, n_visits, rows, members, fit, law)
        return units, Sums(fit.images, fit.gram, fit.products)

    def _walk(
        self, rng: np.random.Generator, model: StableNetwork, units: Units, sums: Sums, ground: Ground, floor: float
    ) -> Units:
        """Moves of scales, amplitude and noise that need only the sums; with a bulk the noise is not among them."""
        units, alone = units.copy(), model.process is None
        log_v, extra = (units.log_v, model.floor_variance(floor)) if alone else (0.0, 0.0)
        log_tau, log_v = walk_scales(
            rng, units.log_s, units.log_tau, log_v, extra, model.priors(alone), sums.gram, sums.products, ground.square,
            len(model.y),
        )  # fmt: skip
        return units._replace(log_tau=log_tau, log_v=log_v if alone else units.log_v)

    def _look(
        self, model: StableNetwork, units: Units, ground: Ground, sums: Sums, floor: float
    ) -> tuple[float, dict[str, float]]:
        """The log likelihood; the function's mean at a few rows: y less the mean of its noise; how many units help."""
        rows, variances = self._probes, model.variances(units)
        value, factor, half = ground.log_marginal(sums, variances)
        weights = np.sqrt(variances) * solve_upper(factor, half)
        used = gains_of_units(weights, precision_of_sums(factor, variances, ground.noise), variances, ground.noise)
        if len(model.y) < len(self.target.y):  # the rows that are watched may not be among those looked at
            at = np.full(len(rows), math.nan)
        else:
            left = (ground.pulled[rows] - sums.images[rows] @ weights) * ground.omega[rows] / ground.noise
            at = model.y[rows] - model.row_noise(units, floor)[rows] * left
        return value, {**as_info(at), "n_used": float((used[: model.n_units] > 0.0).sum())}


class ExchangedSweeps(Tempered):
    """Replicas under different noise floors that exchange their positions.

    Parameters
    ----------
    target
        The network.
    n_warmup
        Iterations with a falling floor besides.
    """

    def __init__(self, target: StableNetwork, n_warmup: int) -> None:
        super().__init__(target, n_warmup, tuple(size_of(target.y) * level for level in LADDER), Sweeps)
