"""Every move of the network leaves the joint law of unknowns and data alone (Gandy & Scott's pairs)."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cadlag.models.network.columns import explain, take_out
from cadlag.models.network.inputs import move_input_scales
from cadlag.models.network.joint import renew_with_others
from cadlag.models.network.kernel import Sweeps
from cadlag.models.network.model import StableNetwork
from cadlag.models.network.sweep import polish_units, renew_column, scale_lattice

Array = NDArray[np.float64]
LARGEST_Z = 4.75  # about sixty functions for each of a dozen cases: |z| < 4.75 fails by chance once in six hundred runs


def small_network(activation: str, alpha: float, n: int = 8, **options: object) -> StableNetwork:
    """Eight rows of two inputs, three units."""
    X = np.column_stack([np.ones(n), np.random.default_rng(7).uniform(-2.0, 2.0, (n, 2))])
    return StableNetwork(X, np.zeros(n), n_units=3, alpha=alpha, activation=activation, **options)


def sample_data(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
    """Responses given the units."""
    units = model.read(position)
    weights = np.sqrt(model.variances(units)) * rng.standard_normal(model.n_units)
    noise = math.sqrt(model.noise(units, 0.0)) * rng.standard_normal(len(model.X))
    return (model.columns(units) @ weights + noise) / model.omega


def bounded(model: StableNetwork, position: Array) -> Array:
    """Unknowns sent through their prior distribution functions, and how well they fit; with squares and products."""
    units = model.read(position)
    u = stats.norm.cdf(units.W).ravel()
    u_radius = stats.chi2.cdf((units.W**2).sum(axis=1), units.W.shape[1])
    u_scale = model.law.cdf(units.log_s) if model.stable else np.full(model.n_units, 0.5)
    z = math.exp(0.5 * model.noise_power * units.log_v) / model.noise_scale
    u_rest = 2.0 / math.pi * np.arctan([math.exp(units.log_tau), z])
    white = -0.5 * len(model.y) * (1.0 + math.log(float(np.mean(model.y**2))))
    u_inputs = model.law.cdf(units.log_inputs) if model.n_input_scales else np.zeros(0)
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
    kernel, state = Sweeps(model, 0), {"position": position, "iteration": 0}
    for _ in range(3):
        state, _ = kernel.step(rng, state, 0.0)
    return state["position"]


def one_move(name: str) -> Callable[..., Array]:
    """A single kind of move, everything else held."""

    def advance(rng: np.random.Generator, model: StableNetwork, position: Array) -> Array:
        units = model.read(position)
        Phi = model.columns(units)
        sums = model.sums(Phi)
        if name == "inputs":
            return model.write(move_input_scales(rng, model, units, Phi, sums, 0.0)[0])
        if name == "scales":
            return model.write(Sweeps(model, 0)._walk(rng, units, sums, 0.0))
        noise, (gram, products) = model.noise(units, 0.0), sums
        P, C, residual = explain(Phi, model.response, gram, products, model.square, model.variances(units), noise)
        log_scale, work = 2.0 * units.log_tau + model.log_factor, np.empty((6, len(model.y) + 1))
        unit_by_unit = (model.response, model.omega, units.W, units.log_s, units.kinds, log_scale, noise)
        if name == "polish":
            polish_units(rng, 6, model.X, *unit_by_unit, model.relu_scale, Phi, P, C, residual, gram, products, work)
            return model.write(units)
        for j in np.flatnonzero(units.kinds == 0):
            take_out(j, P, C, residual, model.response)
            candidates, log_prior = scale_lattice(rng, units.log_s[j], model.law.index, model.density_table)
            renew_with_others(
                rng, j, model.X, model.omega, units.W, units.log_s, units.kinds, log_scale, noise, model.law.index,
                model.density_table, candidates, log_prior, model.response, Phi, P, C, residual, gram, work,
            )  # fmt: skip
            variance = math.exp(log_scale + units.log_s[j])
            renew_column(
                j, model.X, model.response, model.omega, units.W, units.kinds, variance, noise, model.relu_scale, Phi,
                P, C, residual, gram, products, work,
            )  # fmt: skip
        return model.write(units)

    return advance


@pytest.mark.parametrize("name", ["polish", "together", "scales", "inputs"])
def test_each_move_leaves_the_joint_law_alone(name: str) -> None:
    model = small_network("sign" if name == "together" else "auto", 1.2, input_scales=name == "inputs")
    z = paired(model, one_move(name), 2000, 15)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.parametrize("alpha", [0.7, *(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (1.0, 1.6)), 2.0])
@pytest.mark.parametrize("activation", ["sign", "relu", "auto"])
def test_sweeps_leave_the_joint_law_alone(activation: str, alpha: float) -> None:
    z = paired(small_network(activation, alpha), sweeps, 1500, 11)
    assert np.abs(z).max() < LARGEST_Z


def test_known_amplitude_and_noise() -> None:
    model = small_network("auto", 1.0, amplitude=0.8, noise_variance=0.3)
    z = paired(model, sweeps, 1500, 12)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.parametrize("activation", ["sign", "auto"])
def test_input_scales(activation: str) -> None:
    z = paired(small_network(activation, 1.0, input_scales=True), sweeps, 1500, 13)
    assert np.abs(z).max() < LARGEST_Z


def test_known_noise_of_each_row() -> None:
    model = small_network("auto", 1.0, noise_variance=np.linspace(0.05, 1.0, 8))
    z = paired(model, sweeps, 1500, 14)
    assert np.abs(z).max() < LARGEST_Z
