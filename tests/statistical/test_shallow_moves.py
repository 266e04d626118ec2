"""Every move of the shallow stable network leaves the joint law of unknowns and data alone; coverage; the network."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.typing import NDArray

from cadlag import ShallowStableRegressor, StableNetworkRegressor
from cadlag.baselines.shallow_stable.cells import find_cells
from cadlag.baselines.shallow_stable.model import ShallowStable
from cadlag.baselines.shallow_stable.transition import CellSweeps, PublishedMoves, Spectrum
from cadlag.linalg.gaussian import log_marginal, sample_normal

Array = NDArray[np.float64]
LARGEST_Z = 4.5  # some fifty functions for each of eight cases: fails by chance less than once in three hundred runs
LINE = np.random.default_rng(7).uniform(-2.0, 2.0, (6, 1))
PLANE = np.random.default_rng(8).uniform(-2.0, 2.0, (5, 2))


def small(X: Array, **settings: object) -> ShallowStable:
    """Six points of a line or five of the plane."""
    return ShallowStable(X, np.zeros(len(X)), find_cells(np.random.default_rng(0), X), **settings)


def sample_data(rng: np.random.Generator, model: ShallowStable, position: Array) -> Array:
    """Responses given the scales and the noise."""
    log_s, log_v = model.read(position)
    weights = np.exp(0.5 * (model.log_weights + log_s)) * rng.standard_normal(model.n_cells)
    return weights @ model.signs + np.sqrt(model.row_noise(log_v)) * rng.standard_normal(len(model.y))


def bounded(model: ShallowStable, position: Array) -> Array:
    """Unknowns sent through distribution functions, and how well they fit; with distances from the middle, products."""
    log_s, log_v = model.read(position)
    u = np.append(model.law.cdf(log_s), 2.0 / math.pi * math.atan(math.exp(log_v))) - 0.5
    white = -0.5 * len(model.y) * (1.0 + math.log(float(np.mean(model.y**2))))
    data, correlation = model.observe(position)
    fit = math.tanh((log_marginal(correlation, data) - white) / 3.0)
    top = int(np.argmax(model.log_weights + log_s))
    extra = [fit, u[:-1].max(), u[:-1].min(), float(top == 0), float(top == 2), u[0] * u[1], u[0] * u[-1]]
    return np.concatenate([u, np.abs(u), u * fit, extra])


def paired(model: ShallowStable, advance: Callable[..., Array], n_replications: int, seed: int) -> float:
    """Largest |z| of the mean change of the bounded functions (Gandy & Scott's pairs)."""
    rng = np.random.default_rng(seed)
    changes = []
    for _ in range(n_replications):
        before = model.sample_prior(rng)
        given = replace(model, y=sample_data(rng, model, before), _memory={})
        changes.append(bounded(given, advance(rng, given, before)) - bounded(given, before))
    table = np.array(changes)
    spread = table.std(axis=0, ddof=1)
    assert np.mean(spread > 0.0) > 0.2
    return float(np.abs(np.sqrt(len(table)) * table.mean(axis=0) / np.where(spread > 0.0, spread, np.inf)).max())


def steps(kernel: type) -> Callable[..., Array]:
    """Everything, three times."""

    def advance(rng: np.random.Generator, model: ShallowStable, position: Array) -> Array:
        moves, state = kernel(model, 0), {"position": position}
        for _ in range(3):
            state, _ = moves.step(rng, state, 1.0)
        return state["position"]

    return advance


def one_move(name: str) -> Callable[..., Array]:
    """A single kind of move."""

    def advance(rng: np.random.Generator, model: ShallowStable, position: Array) -> Array:
        moves, (log_s, log_v) = CellSweeps(model, 0), model.read(position)
        if name == "walk":
            log_s, log_v = moves.walk(rng, log_s, log_v, Spectrum(model, log_s))
        else:
            getattr(moves, name)(rng, log_s, log_v)
        return model.write(log_s, log_v)

    return advance


@pytest.mark.parametrize("name", ["renew_scales", "exchange_scales", "walk"])
def test_each_move_leaves_the_joint_law_alone(name: str) -> None:
    assert paired(small(PLANE, alpha=1.2), one_move(name), 600, 15) < LARGEST_Z


@pytest.mark.parametrize(
    ("X", "settings"),
    [
        (LINE, {"alpha": 0.8}),
        pytest.param(
            LINE, {"alpha": 1.6, "noise_variance": np.linspace(0.05, 1.0, 6), "nu": 2.0}, marks=pytest.mark.slow
        ),
        pytest.param(PLANE, {"noise_prior": "code"}, marks=pytest.mark.slow),
        (LINE, {"noise_variance": 1e-7}),
    ],
)
def test_sweeps_leave_the_joint_law_alone(X: Array, settings: dict[str, object]) -> None:
    assert paired(small(X, **settings), steps(CellSweeps), 250, 11) < LARGEST_Z


def test_published_moves_leave_the_joint_law_alone() -> None:
    assert paired(small(LINE), steps(PublishedMoves), 500, 12) < LARGEST_Z


# Coverage ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n_inputs", "alpha"), [(1, 1.0), (2, 1.5)])
def test_intervals_cover_what_the_prior_draws(n_inputs: int, alpha: float) -> None:
    """The function, and observations, at new inputs, jointly drawn with the data from the prior."""
    rng = np.random.default_rng([41, n_inputs])
    covered: list[list[float]] = []
    for replication in range(50):
        X = rng.uniform(-2.0, 2.0, (14, n_inputs))
        model = ShallowStable(X, np.zeros(14), find_cells(rng, X), alpha)
        log_s, log_v = model.read(model.sample_prior(rng))
        f = sample_normal(rng, np.zeros(14), model.covariance(log_s), 1)[0]
        y = f + math.exp(0.5 * log_v) * rng.standard_normal(14)
        fitted = ShallowStableRegressor(
            alpha=alpha, standardize=False, n_draws=250, n_warmup=100, n_chains=1, random_state=replication
        ).fit(X[:10], y[:10])
        hits = []
        for kind, at in (("function", f), ("observation", y)):
            low, high = fitted.predict_interval(X[10:], 0.9, kind=kind).T
            hits += [float(np.mean((low <= at[10:]) & (at[10:] <= high)))]
        covered.append(hits)
    mean, error = np.mean(covered, axis=0), np.std(covered, axis=0, ddof=1) / math.sqrt(len(covered))
    print(f"{n_inputs} inputs, alpha {alpha}: coverage of function and observation {mean}, standard errors {error}")
    assert np.all(np.abs(mean - 0.9) < 3.5 * error + 0.005)


# The same prior by sampled units -------------------------------------------------------------------------------------

AGREEMENT = {"standardize": False, "n_chains": 2}


def scene(n_inputs: int) -> tuple[Array, Array, Array]:
    """Fifteen rows with a jump, and new inputs."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.5, 1.5, (15, n_inputs))
    y = 1.5 * (X @ np.array([1.0, 0.5])[:n_inputs] > 0.2) - 1.0 + 0.3 * rng.standard_normal(15)
    return X, y, rng.uniform(-2.0, 2.0, (25, n_inputs))


def summary(model: object, new: Array) -> tuple[Array, Array, Array, float]:
    """Mean and standard deviation of the function, log noise, effective number of draws."""
    law = model.predict_distribution(new, kind="function")
    log_noise = np.log(model.posterior_["noise_variance"])
    return law.mean, law.std, log_noise, float(array_stats.ess(log_noise))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains do not agree yet")
@pytest.mark.parametrize(("n_inputs", "n_units", "n_draws"), [(1, 100, 200), (2, 100, 200), (1, 200, 80)])
def test_network_of_many_units_agrees(n_inputs: int, n_units: int, n_draws: int) -> None:
    """With τ = ν^(1/α), and scales s, not 2s: the network's own convention."""
    X, y, new = scene(n_inputs)
    alpha, nu = 1.0, 1.5
    shallow = ShallowStableRegressor(
        alpha=alpha, nu=nu, n_draws=1500, n_warmup=200, n_atoms=3000, random_state=1, **AGREEMENT
    ).fit(X, y)
    network = StableNetworkRegressor(
        alpha=alpha, amplitude=nu ** (1.0 / alpha), bulk=False, activation="sign", n_units=n_units, n_draws=n_draws,
        n_warmup=80, n_atoms=2 * n_draws, random_state=2, **AGREEMENT,
    ).fit(X, y)  # fmt: skip
    one, other = summary(shallow, new), summary(network, new)
    gap = np.sqrt(np.mean((one[0] - other[0]) ** 2) / np.mean(one[1] ** 2))
    ratio = np.exp(np.mean(np.log(other[1] / one[1])))
    z = (one[2].mean() - other[2].mean()) / math.sqrt(one[2].var() / one[3] + other[2].var() / other[3])
    print(f"{n_inputs} inputs, {n_units} units: means differ by {gap:.3f} sd, sds by {ratio:.3f}, noise z {z:.2f}")
    print(f"effective draws {one[3]:.0f} and {other[3]:.0f}, {network.diagnostics_['worst_ess_bulk']:.0f} at worst")
    assert gap < 3.0 / math.sqrt(min(other[3], network.diagnostics_["worst_ess_bulk"]))
    assert abs(z) < 3.5
    assert abs(math.log(ratio)) < 0.1
