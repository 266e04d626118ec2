"""Columns beside the units: the same Gaussian as by dense algebra, in the likelihood, in predictions, in every move."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cadlag.network.breaks import sample_planes
from cadlag.network.fixed import FixedColumns
from cadlag.network.model import StableNetwork
from cadlag.network.transition import Sweeps

RNG = np.random.default_rng(8)
N = 16
X = np.column_stack([np.ones(N), RNG.uniform(-2.0, 2.0, (N, 2))])
NEW = np.column_stack([np.ones(5), RNG.uniform(-2.0, 2.0, (5, 2))])
Y = RNG.standard_normal(N)


def wave(inputs):
    return np.column_stack([inputs[:, 1], np.cos(3.0 * inputs[:, 2])])


FIXED = FixedColumns(wave, np.array([0.7, 2.0]))


def network(bulk_depth):
    return StableNetwork(X, Y, 4, bulk_depth=bulk_depth, fixed=FIXED)


def covariance(model, units, left, right):
    both = np.vstack([left, right])
    units_alone = StableNetwork(model.X, model.y, model.n_units, bulk_depth=model.bulk_depth)
    Phi, a = units_alone.columns(units, both), units_alone.variances(units)
    value = (Phi * a) @ Phi.T + (wave(both) * FIXED.variances) @ wave(both).T
    if model.process is not None:
        value += model.process.covariance(model.bulk_position(units), both)
    return value[: len(left), len(left) :]


@pytest.mark.parametrize("bulk_depth", [0, 1])
def test_one_gaussian_with_the_units(bulk_depth):
    model = network(bulk_depth)
    position = model.sample_prior(np.random.default_rng(1))
    units = model.read(position)
    noise = math.exp(units.log_v)
    K = covariance(model, units, X, X) + noise * np.eye(N)
    assert model.log_likelihood_at(position, 0.0) == pytest.approx(
        multivariate_normal(np.zeros(N), K, allow_singular=True).logpdf(Y), rel=1e-8
    )
    atom, cross = model.condition(position), covariance(model, units, NEW, X)
    mean, joint = atom.joint(NEW)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(K, Y), rtol=1e-6, atol=1e-8)
    expected = covariance(model, units, NEW, NEW) - cross @ np.linalg.solve(K, cross.T)
    np.testing.assert_allclose(joint, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(atom.moments(NEW)[1], np.diagonal(expected), rtol=1e-6, atol=1e-7)
    precision = np.linalg.inv(K)
    np.testing.assert_allclose(model.leave_one_out(position).variances, 1.0 / np.diagonal(precision), rtol=1e-6)


@pytest.mark.parametrize("bulk_depth", [0, 1])
def test_sweeps_keep_them_up_to_date(bulk_depth):
    model = network(bulk_depth)
    kernel, rng = Sweeps(model, 0), np.random.default_rng(2)
    state = kernel.init(rng)
    for _ in range(5):
        state, info = kernel.step(rng, state, 0.0)
    value = model.log_target(state["position"], 0.0)
    assert info["log_target"] == pytest.approx(value, abs=1e-7)
    assert info["n_used"] <= model.n_units
    planes = sample_planes(rng, model, state["position"][None])
    assert len(planes.size) == (model.read(state["position"]).kinds == 0).sum()


def test_a_network_without_them_is_what_it_was():
    bare, none = StableNetwork(X, Y, 4), StableNetwork(X, Y, 4, fixed=FixedColumns())
    position = bare.sample_prior(np.random.default_rng(3))
    assert none.log_likelihood_at(position, 0.0) == bare.log_likelihood_at(position, 0.0)
    copied = pickle.loads(pickle.dumps(network(0)))
    assert copied.log_likelihood_at(position, 0.0) == network(0).log_likelihood_at(position, 0.0)
