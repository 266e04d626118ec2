"""The joint law of a small network's unknowns and data, and what single moves make of it (Gandy & Scott's pairs)."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cadlag.gaussian import sample_normal
from cadlag.models.network import sweep
from cadlag.models.network.columns import SIGN, Fit, Law, Members, Rows
from cadlag.models.network.inputs import move_input_scales
from cadlag.models.network.kernel import WITH_MANY, Sweeps
from cadlag.models.network.model import StableNetwork
from cadlag.samplers.tempering import Tempered

Array = NDArray[np.float64]


def small_network(activation: str, alpha: float, n: int = 8, n_inputs: int = 2, **options: object) -> StableNetwork:
    """Eight rows of two inputs, three units."""
    X = np.column_stack([np.ones(n), np.random.default_rng(7).uniform(-2.0, 2.0, (n, n_inputs))])
    return StableNetwork(X, np.zeros(n), n_units=3, alpha=alpha, activation=activation, **options)


def sample_function(rng: np.random.Generator, model: StableNetwork, position: Array, X: Array | None = None) -> Array:
    """The function at the rows, or at other inputs, given the units."""
    units = model.read(position)
    y = model.columns(units, X) @ (np.sqrt(model.variances(units)) * rng.standard_normal(model.n_units))
    if model.process is not None:
        at = model.bulk_position(units)
        y += sample_normal(rng, np.zeros(len(y)), model.process.covariance(at, X), 1)[0]
    return y


def sample_data(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
    """Responses given the units."""
    noise = np.sqrt(model.row_noise(model.read(position), 0.0)) * rng.standard_normal(len(model.X))
    return sample_function(rng, model, position) + noise


def bounded(model: StableNetwork, position: Array) -> Array:
    """Unknowns sent through their prior distribution functions, and how well they fit; with squares and products."""
    units = model.read(position)
    u = stats.norm.cdf(units.W).ravel()
    u_radius = stats.chi2.cdf((units.W**2).sum(axis=1), units.W.shape[1])
    u_scale = model.law.cdf(units.log_s) if model.stable else np.full(model.n_units, 0.5)
    z = math.exp(0.5 * model.noise_power * units.log_v) / model.noise_scale
    u_rest = 2.0 / math.pi * np.arctan([math.exp(units.log_tau), z])
    white = -0.5 * len(model.y) * (1.0 + math.log(float(np.mean(model.y**2))))
    u_inputs = model.law.cdf(np.concatenate([units.log_inputs, units.log_bulk])) if model.stable else np.zeros(0)
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


def paired(model: StableNetwork, advance: Callable[..., Array], n_replications: int, seed: int) -> Array:
    """z-scores of the mean change of each bounded function."""
    rng = np.random.default_rng(seed)
    changes = []
    for _ in range(n_replications):
        before = model.sample_prior(rng)
        given = replace(model, y=sample_data(rng, model, before))
        changes.append(bounded(given, advance(rng, given, before)) - bounded(given, before))
    table = np.array(changes)
    spread = table.std(axis=0, ddof=1)
    return np.sqrt(len(table)) * table.mean(axis=0) / np.where(spread > 0.0, spread, np.inf)


def sweeps(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
    """Everything, three times."""
    kernel = Sweeps(model, 0)
    state = kernel.start_from(position)
    if "bulk" in state:
        state["bulk"]["step_size"] = 0.4
    for _ in range(3):
        state, _ = kernel.step(rng, state, 0.0)
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


def one_move(name: str) -> Callable[..., Array]:
    """A single kind of move, everything else held."""

    def advance(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
        units, kernel = model.read(position), Sweeps(model, 0)
        ground = model.ground(units, 0.0)
        sums = ground.sums(model.weighted(units, ground))
        if name == "inputs":
            return model.write(move_input_scales(rng, model, units, ground, sums)[0])
        if name == "scales":
            return model.write(kernel._walk(rng, units, sums, ground, 0.0))
        if name == "bulk":
            state = {**kernel.start_from(position)["bulk"], "step_size": 0.4}
            return model.write(kernel._move_bulk(rng, units, state, 0.0)[0])
        rows, members, fit, law = kernel.prepare(units, ground)
        if name == "polish":
            sweep.polish_units(rng, 6, rows, members, fit, law)
        elif name in ("circle", "lattice"):
            visit_alone(rng, name == "circle", rows, members, fit, law)
        return model.write(units)

    return advance


def visit_alone(rng: np.random.Generator, circle: bool, rows: Rows, members: Members, fit: Fit, law: Law) -> None:
    """Each unit by one of the two ways of drawing it, where that way is open to it."""
    for j in [*range(len(members.W))] * 3:
        if circle and members.kinds[j] != SIGN:
            continue
        sweep.take_out(j, rows.y, fit)
        sweep.renew(rng, j, 0.8, rows, members, fit, law, not circle)
        sweep.put_back(j, rows, members, fit, law)


MOVES = {
    "polish": {}, "circle": {"activation": "sign"}, "lattice": {}, "scales": {}, "inputs": {"input_scales": True},
    "bulk": {"bulk_depth": 1},
}  # fmt: skip
