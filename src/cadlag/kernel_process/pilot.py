"""At which scales rows are near, settled before the draws, and how many a new row asks, settled after them.

Neighbours are sought first at a mode of the posterior given a random subset of the rows, with the covariance in full,
then again where a few steps from there lead given all rows with these neighbours; those are kept by which training rows
are best predicted from their nearest others. So is chosen after the draws how many rows a new one asks, m*, with scores
averaged over a few of them. With row i first they have a closed form:

    log p(y_i | y_N) = log N(a_iᵀỹ; 0, d_i) - ½ log D_i.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from cadlag.kernel_process.model import KernelProcess
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.linalg import vecchia
from cadlag.linalg.gaussian import LOG_2PI, Array
from cadlag.sampling.laplace import ascend, find_modes, prior_spread

Process = TypeVar("Process", bound=KernelProcess)

N_PILOT = 500  # rows that the first scales are learned from
N_SEARCHES, N_STEPS = 3, 40  # for neighbours, and steps with each of them
N_SCORED, N_DRAWS = 500, 2  # rows and draws that m* is chosen by
MOST_ASKED = 320  # to which m is doubled
LEAST_GAIN = 0.01  # of the score, which twice as many rows must be worth
OPERATIONS = 5e8  # for a row's prediction, all draws together
_SEED = 7


def with_neighbors(model: Process, n_neighbors: int) -> Process:
    """The same process with a sparse covariance, each row asking so many."""
    if model.dimension == 0:
        return _near(model, np.empty(0), n_neighbors)
    rng = np.random.default_rng(_SEED)
    with threadpool_limits(1, user_api="blas"):
        found = list(_searched(rng, model, n_neighbors))
    return max(found, key=lambda pair: pair[0])[1]


def _searched(rng: np.random.Generator, model: Process, n_neighbors: int) -> Iterator[tuple[float, Process]]:
    """Neighbours near where the last ones have led, with the predictive score that they lead to."""
    position, spread = _mode_of_some(rng, model), prior_spread(rng, model)
    rows = _some_rows(model)
    for _ in range(N_SEARCHES):
        sparse = _near(model, position, n_neighbors)
        position = spread * ascend(sparse, position, spread, N_STEPS)
        assert sparse.neighbors is not None
        near = sparse.neighbors.nearest_others(rows, n_neighbors)
        yield float(_scores(sparse, position[None], rows, near).mean()), sparse


def _some_rows(model: KernelProcess) -> NDArray[np.int64]:
    """Rows that are predicted from others."""
    return np.random.default_rng(_SEED).permutation(len(model.y))[:N_SCORED]


def _mode_of_some(rng: np.random.Generator, model: KernelProcess) -> Array:
    """A mode given some of the rows."""
    rows = np.sort(rng.permutation(len(model.y))[:N_PILOT])
    few = replace(model, X=model.X[rows], y=model.y[rows], likelihood=model.likelihood.of_rows(rows), _buffers={})
    modes = find_modes(rng, few)
    return np.asarray(modes.places[int(np.argmax(modes.log_masses))])


def _near(model: Process, position: Array, n_neighbors: int) -> Process:
    """With neighbours that are near at a position."""
    return replace(model, neighbors=Neighbors.find(model.X, model.scales(position).log_weights, n_neighbors))


def most_draws(n_asked: int) -> int:
    """How many draws may stand for the posterior where a new row asks so many."""
    return max(1, int(3.0 * OPERATIONS / n_asked**3))


def choose_asked(model: KernelProcess, positions: Array) -> int:
    """m*: more rows are asked where the predictive score gains by it, and more than its standard error."""
    assert model.neighbors is not None
    m, n = model.neighbors.sets.n_neighbors, len(model.y)
    rows = _some_rows(model)
    counts = _doubled(m, min(n - 1, max(m, MOST_ASKED)))
    near = model.neighbors.nearest_others(rows, counts[-1])
    used = positions[np.unique(np.linspace(0, len(positions) - 1, N_DRAWS).round().astype(int))]
    best, score = counts[0], _scores(model, used, rows, near[:, : counts[0]])
    for count in counts[1:]:
        other = _scores(model, used, rows, near[:, :count])
        gain = other - score
        if gain.mean() > max(gain.std() / math.sqrt(len(rows)), LEAST_GAIN):
            best, score = count, other
    return best


def _doubled(first: int, most: int) -> list[int]:
    """first, 2 first, 4 first, .. up to the most."""
    counts = [min(first, most)]
    while counts[-1] < most:
        counts.append(min(2 * counts[-1], most))
    return counts


def _scores(model: KernelProcess, positions: Array, rows: NDArray[np.int64], near: vecchia.Indices) -> Array:
    """log p(y_i | y_N) of each row, averaged over draws."""
    members = np.column_stack((rows.astype(np.int32), near))
    sizes = np.full(len(rows), members.shape[1], dtype=np.int32)
    logs = []
    for position in positions:
        points, data = model.observed(position)
        a, d = vecchia.conditionals(model.local(points, data.weight), members, sizes)
        errors, variances = (a * data.scaled[members]).sum(axis=1), np.maximum(d, np.finfo(float).tiny)
        logs.append(-0.5 * (LOG_2PI + np.log(variances) + errors**2 / variances + data.log_total[rows]))
    return np.asarray(logsumexp(logs, axis=0)) - math.log(len(positions))
