"""Every move of the network leaves the joint law of unknowns and data alone."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cadlag.likelihood import Gaussian
from cadlag.network.fixed import FixedColumns
from statistical.network_checks import MOVES, exchanged, one_move, paired, rare_bulk, small_network, sweeps

Array = NDArray[np.float64]
LARGEST_Z = 4.75  # about sixty functions for each of a dozen cases: |z| < 4.75 fails by chance once in six hundred runs


@pytest.mark.parametrize("name", MOVES)
def test_each_move_leaves_the_joint_law_alone(name: str) -> None:
    model = small_network(**{"activation": "auto", "alpha": 1.2, **MOVES[name][0]})
    z = paired(model, one_move(name), 2000, 15)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.parametrize("alpha", [0.7, *(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (1.0, 1.6, 2.0))])
@pytest.mark.parametrize(
    "activation", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("sign", "relu")), "auto"]
)
def test_sweeps_leave_the_joint_law_alone(activation: str, alpha: float) -> None:
    z = paired(small_network(activation, alpha), sweeps, 1500, 11)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.slow
def test_known_amplitude_and_noise() -> None:
    model = small_network("auto", 1.0, amplitude=0.8, likelihood=Gaussian(0.3))
    z = paired(model, sweeps, 1500, 12)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["sign", "auto"])
def test_input_scales(activation: str) -> None:
    z = paired(small_network(activation, 1.0, input_scales=True), sweeps, 1500, 13)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.slow
def test_known_noise_of_each_row() -> None:
    model = small_network("auto", 1.0, likelihood=Gaussian(np.linspace(0.05, 1.0, 8)))
    z = paired(model, sweeps, 1500, 14)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.parametrize("options", [{}, pytest.param({"bulk_depth": 1}, marks=pytest.mark.slow)])
def test_columns_beside_the_units(options: dict[str, Any]) -> None:
    model = small_network("auto", 1.0, fixed=FixedColumns(wave, np.array([0.7, 2.0])), **options)
    z = paired(model, sweeps, 800, 17)
    assert np.abs(z).max() < LARGEST_Z


def wave(X: Array) -> Array:
    """A slope and a wave."""
    return np.column_stack([X[:, 1], np.cos(3.0 * X[:, 2])])


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("known", [None, pytest.param(np.linspace(0.05, 1.0, 8), marks=pytest.mark.slow)])
def test_units_and_bulk(known: Array | None, rough: bool) -> None:
    z = paired(small_network("auto", 1.0, likelihood=Gaussian(known), bulk_depth=1, rough=rough), sweeps, 800, 16)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.parametrize("n_neighbors", [2, pytest.param(0, marks=pytest.mark.slow)])
def test_units_and_sparse_bulk(n_neighbors: int) -> None:
    z = paired(small_network("auto", 1.0, bulk_depth=1, rough=True, n_neighbors=n_neighbors), sweeps, 800, 16)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.parametrize("options", [{}, {"bulk_depth": 1}, {"likelihood": Gaussian(np.linspace(0.05, 1.0, 8))}])
def test_sweeps_under_a_floor(options: dict[str, Any]) -> None:
    """The replicas between the posterior and the highest floor."""
    model = small_network("auto", 1.0, **options)
    z = paired(model, partial(sweeps, level=0.7), 1500, 19, level=0.7)
    assert np.abs(z).max() < LARGEST_Z


def test_the_check_sees_a_floor() -> None:
    """It can fail: data with a floor under their noise, moves without one."""
    z = paired(small_network("auto", 1.0), sweeps, 1500, 19, level=0.7)
    assert np.abs(z).max() > LARGEST_Z


@pytest.mark.slow
def test_bulk_in_some_sweeps_only() -> None:
    z = paired(small_network("auto", 1.0, bulk_depth=1, rough=True), rare_bulk, 800, 17)
    assert np.abs(z).max() < LARGEST_Z


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"bulk_depth": 1}])
@pytest.mark.parametrize(("n_rounds", "n_replications"), [(0, 20_000), (3, 1500)])
def test_replica_exchange(n_rounds: int, n_replications: int, options: dict[str, int]) -> None:
    z = paired(small_network("auto", 1.0, **options), exchanged(n_rounds), n_replications, 18)
    assert np.abs(z).max() < LARGEST_Z
