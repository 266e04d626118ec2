"""The joint law of a small network's unknowns and data, and what single moves make of it (Gandy & Scott's pairs)."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cadlag.kernel_process.neighbors import Neighbors
from cadlag.kernel_process.rough import ROUGH, SMOOTH
from cadlag.linalg.gaussian import sample_normal
from cadlag.linalg.low_rank import log_marginal_of_sums
from cadlag.network import inputs, scales, sweep
from cadlag.network.atom import Units
from cadlag.network.columns import near_of
from cadlag.network.ground import Ground, Sums
from cadlag.network.model import StableNetwork
from cadlag.network.transition import WITH_MANY, Sweeps
from cadlag.sampling.tempering import Tempered

Array = NDArray[np.float64]


def small_network(activation: str, alpha: float, n: int = 8, n_inputs: int = 2, **options: object) -> StableNetwork:
    """Eight rows of two inputs, three units; with so many neighbours of each row, where the bulk is to be sparse."""
    X = np.column_stack([np.ones(n), np.random.default_rng(7).uniform(-2.0, 2.0, (n, n_inputs))])
    if (m := options.pop("n_neighbors", None)) is not None:
        options["neighbors"] = Neighbors.find(X, np.zeros(n_inputs + 1), m, m + 1)
    return StableNetwork(X, np.zeros(n), n_units=3, alpha=alpha, activation=activation, **options)


def sample_function(rng: np.random.Generator, model: StableNetwork, position: Array, X: Array | None = None) -> Array:
    """The function at the rows, or at other inputs, given the units."""
    units = model.read(position)
    y = model.columns(units, X) @ (np.sqrt(model.variances(units)) * rng.standard_normal(len(model.variances(units))))
    if model.process is not None:
        at = model.bulk_position(units)
        y += sample_normal(rng, np.zeros(len(y)), model.process.covariance(at, X), 1)[0]
    return y


def sample_data(rng: np.random.Generator, model: StableNetwork, position: Array, level: float = 0.0) -> Array:
    """Responses given the units, with a floor under the noise."""
    if model.neighbors is not None:
        return sample_sparse(rng, model, model.read(position), level)
    noise = np.sqrt(model.row_noise(model.read(position), level)) * rng.standard_normal(len(model.X))
    return sample_function(rng, model, position) + noise


def sample_sparse(rng: np.random.Generator, model: StableNetwork, units: Units, level: float) -> Array:
    """Responses whose bulk and noise have a sparse precision: there is no function behind them."""
    ground, weights = model.ground(units, level), np.sqrt(model.variances(units)) * rng.standard_normal(model.n_units)
    factor = np.linalg.cholesky(ground.V.apply(np.eye(len(model.y))))
    return model.columns(units) @ weights + np.linalg.solve(factor.T, rng.standard_normal(len(factor))) / ground.omega


def bounded(model: StableNetwork, position: Array) -> Array:
    """Unknowns sent through their prior distribution functions, and how well they fit; with squares and products."""
    units = model.read(position)
    u = stats.norm.cdf(units.W).ravel()
    u_radius = stats.chi2.cdf((units.W**2).sum(axis=1), units.W.shape[1])
    u_scale = model.law.cdf(units.log_s) if model.stable else np.full(model.n_units, 0.5)
    z = math.exp(0.5 * model.likelihood.power * units.log_v) / model.likelihood.scale
    u_rest = 2.0 / math.pi * np.arctan([math.exp(units.log_tau), z])
    white = -0.5 * len(model.y) * (1.0 + math.log(float(np.mean(model.y**2))))
    u_inputs = np.concatenate([model.law.cdf(units.log_inputs) if model.stable else np.zeros(0), of_bulk(model, units)])
    fit = math.tanh((model.log_likelihood_at(position, 0.0) - white) / 3.0)
    centred = np.concatenate([u, u_radius, u_scale, u_inputs, u_rest, units.kinds.astype(float)]) - 0.5
    largest = np.argmax(units.log_s)
    extra = [
        fit,
        centred[-1] * fit,
        u_scale.max(),
        u_scale.min(),
        *np.tanh(units.W[largest]),
        float(units.kinds[largest]),
    ]
    return np.concatenate([centred, np.abs(centred), centred * fit, extra])


def of_bulk(model: StableNetwork, units: Units) -> Array:
    """The scales of the bulk sent through their prior distribution functions."""
    if not model.rough:
        return model.law.cdf(units.log_bulk) if model.stable else np.zeros(0)
    stable, amplitudes = np.split(units.log_bulk, [len(units.log_bulk) - 2])
    return np.append(model.law.cdf(stable), 2.0 / math.pi * np.arctan(np.exp(0.5 * amplitudes) / [SMOOTH, ROUGH]))


def paired(
    model: StableNetwork, advance: Callable[..., Array], n_replications: int, seed: int, level: float = 0.0
) -> Array:  # fmt: skip
    """z-scores of the mean change of each bounded function, where data have a floor under their noise."""
    rng = np.random.default_rng(seed)
    changes = []
    for _ in range(n_replications):
        before = model.sample_prior(rng)
        given = replace(model, y=sample_data(rng, model, before, level))
        changes.append(bounded(given, advance(rng, given, before)) - bounded(given, before))
    table = np.array(changes)
    spread = table.std(axis=0, ddof=1)
    return np.sqrt(len(table)) * table.mean(axis=0) / np.where(spread > 0.0, spread, np.inf)


def sweeps(rng: np.random.Generator, model: StableNetwork, position: Array, level: float = 0.0) -> Array:
    """Everything, three times, under a floor."""
    kernel = Sweeps(model, 0)
    state = kernel.start_from(position)
    if "bulk" in state:
        state["bulk"]["step_size"] = 0.4
    for _ in range(3):
        state, _ = kernel.step(rng, state, level)
    return state["position"]


def rare_bulk(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
    """Four sweeps at the pace of many rows: the bulk moves in the first and in the last."""
    kernel = Sweeps(model, 0)
    kernel._pace = WITH_MANY
    state = kernel.start_from(position)
    state["bulk"]["step_size"] = 0.4
    for _ in range(4):
        state, _ = kernel.step(rng, state, 0.0)
    return state["position"]


def exchanged(n_rounds: int) -> Callable[..., Array]:
    """Replica exchange with a floor so high that its replica has the prior for its law: once alone, or with sweeps."""

    def advance(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
        kernel = Tempered(model, 0, (0.0, 1e6), Sweeps)
        starts = position, model.sample_prior(rng)
        rungs = [rung.start_from(at) for rung, at in zip(kernel.kernels, starts)]
        if not n_rounds:
            kernel._exchange(rng, rungs, 0)
        state = {"position": rungs[0]["position"], "rungs": rungs, "iteration": 0}
        for _ in range(n_rounds):
            state, _ = kernel.step(rng, state, 0.0)
        return state["position"]

    return advance


class Held(NamedTuple):
    """What a single move is given."""

    model: StableNetwork
    kernel: Sweeps
    units: Units
    ground: Ground
    sums: Sums


Move = Callable[[np.random.Generator, Held], Units]


def visits(informed: float, both: bool, width: float = math.pi, many: bool = False) -> Move:
    """Each unit thrice, as that way of drawing it is open to it; lattices with a change of kind if both are allowed.

    As it is with many rows, only those that are near are looked at.
    """

    def move(rng: np.random.Generator, held: Held) -> Units:
        model, kernel, units, ground, _ = held
        rows, members, fit, law = kernel.prepare(units, ground)
        if many:
            members = members._replace(near=near_of(rows.X, units.W, many=0))
        habits = sweep.Habits(informed, 0.0, width, 0.0, True, float(both), int(both))
        sweep.visit_units(rng, np.array([*range(model.n_units)] * 3), rows, members, fit, law, habits)
        return units

    return move


def polish(rng: np.random.Generator, held: Held) -> Units:
    """Directions alone."""
    sweep.polish_units(rng, 6, *held.kernel.prepare(held.units, held.ground))
    return held.units


def all_scales(rng: np.random.Generator, held: Held) -> Units:
    """Every move of the sums."""
    return held.kernel._walk(rng, held.model, held.units, held.sums, held.ground, 0.0)


def scale_move(which: str) -> Move:
    """One of the moves that need only the sums, a few times."""

    def move(rng: np.random.Generator, held: Held) -> Units:
        model, _, units, ground, sums = held
        priors = model.priors()
        given = sums.gram, sums.products, ground.square, len(model.y)
        for _ in range(4):
            noise, variances, s = math.exp(units.log_v), model.variances(units), units.log_s
            value = log_marginal_of_sums(*given, variances, noise)[0]
            if which == "exchange":
                scales.exchange_scales(
                    rng, s, 2.0 * units.log_tau + model.log_factor, noise, priors.fixed, *given, value
                )
            elif which == "noise":
                log_v, _value = scales.walk_noise(rng, variances, units.log_v, 0.0, priors, *given, value)
                units = units._replace(log_v=log_v)
            else:
                walk = {"amplitude": scales.walk_tau, "shift": scales.shift_largest}[which]
                log_tau, _value = walk(rng, s, units.log_tau, noise, priors, *given, value)
                units = units._replace(log_tau=log_tau)
        return units

    return move


def held_inputs(rng: np.random.Generator, held: Held) -> Units:
    """Input scales against directions."""
    return inputs.hold_directions(rng, held.model, held.units)


def all_inputs(rng: np.random.Generator, held: Held) -> Units:
    """Input scales, directions held and not."""
    return inputs.move_input_scales(rng, held.model, held.units, held.ground, held.sums)[0]


def free_inputs(rng: np.random.Generator, held: Held) -> Units:
    """Input scales, the units' own weights held."""
    return inputs.free_scales(rng, held.model, held.units, held.ground, held.sums)[0]


def bulk(rng: np.random.Generator, held: Held) -> Units:
    """A trajectory of the bulk."""
    state = {**held.kernel.start_from(held.model.write(held.units))["bulk"], "step_size": 0.4}
    return held.kernel._move_bulk(rng, held.units, state, 0.0)[0]


SPARSE = {"bulk_depth": 1, "n_neighbors": 2}
SIGNS, RELUS, INPUTS, BULK = {"activation": "sign"}, {"activation": "relu"}, {"input_scales": True}, {"bulk_depth": 1}

# Settings of small_network and the move.
MOVES: dict[str, tuple[dict[str, Any], Move]] = {
    "polish": ({}, polish),
    "circle": (SIGNS, visits(0.8, False)),
    "circle, any": (SIGNS, visits(0.0, False)),
    "circle, informed": (SIGNS, visits(1.0, False)),
    "circle, bulk": ({**SIGNS, **BULK}, visits(0.8, False)),
    **{f"window of {width}": (SIGNS, visits(0.8, False, width)) for width in (2.0, 0.3, 0.02)},
    "window of 0.5, many rows": (SIGNS, visits(0.8, False, 0.5, many=True)),
    "window of 0.7, bulk": ({**SIGNS, **BULK}, visits(0.8, False, 0.7)),
    "lattice": ({}, visits(0.0, True)),
    "lattice, ReLU": (RELUS, visits(0.0, False)),
    "lattice, bulk": (BULK, visits(0.0, True)),
    "window of 0.7, sparse bulk": ({**SIGNS, **SPARSE}, visits(0.8, False, 0.7)),
    "circle, sparse bulk": ({**SIGNS, **SPARSE}, visits(0.8, False)),
    "lattice, sparse bulk": (SPARSE, visits(0.0, True)),
    "scales": ({}, all_scales),
    **{name: ({}, scale_move(name)) for name in ("exchange", "noise", "amplitude", "shift")},
    "inputs": (INPUTS, all_inputs),
    "inputs, held": (INPUTS, held_inputs),
    "inputs, free": (INPUTS, free_inputs),
    "bulk": (BULK, bulk),
    "bulk, rough": ({**BULK, "rough": True}, bulk),
    "bulk, sparse": ({**SPARSE, "rough": True}, bulk),
}


def one_move(name: str) -> Callable[..., Array]:
    """A single kind of move, everything else held."""

    def advance(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
        units, kernel = model.read(position), Sweeps(model, 0)
        ground = model.ground(units, 0.0)
        sums = ground.sums(model.weighted(units, ground))
        return model.write(MOVES[name][1](rng, Held(model, kernel, units, ground, sums)))

    return advance
