"""At which scales rows are near, settled before the draws, and how many a new row asks, settled after them.

Neighbours are sought first at a mode of the posterior given a random subset of the rows, with the covariance in full,
then again where a few steps from there lead given all rows with these neighbours; those are kept by which training rows
are best predicted from their nearest others. So is chosen after the draws how many rows a new one asks, m*, with scores
averaged over a few of them. With row i first they have a closed form:

    log p(y_i | y_N) = log N(a_iᵀỹ; 0, d_i) - ½ log D_i.
"""

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from cadlag.kernel_process.model import KernelProcess
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.linalg import vecchia
from cadlag.linalg.gaussian import Array
from cadlag.sampling.laplace import ascend, find_modes, prior_spread

Asker = TypeVar("Asker", bound=Any)  # a model with neighbours, `process` the one whose rows ask

N_PILOT = 500  # rows that the first scales are learned from
N_SEARCHES, N_STEPS = 3, 40  # for neighbours, and steps with each of them
N_SCORED, N_DRAWS = 500, 2  # rows and draws that m* is chosen by
MOST_ASKED = 320  # to which m is doubled
LEAST_GAIN = 0.01  # of the score, which twice as many rows must be worth
OPERATIONS = 5e8  # for a row's prediction, all draws together
_SEED = 7


def with_neighbors(model: Asker, n_neighbors: int) -> Asker:
    """The same model with a sparse covariance, each row asking so many.

    Where the process is not all of the model there is one search: what units will leave to it is not known yet.
    """
    process: KernelProcess = model.process
    if process.dimension == 0:
        found = _near(process, np.empty(0), n_neighbors)
    else:
        rng = np.random.default_rng(_SEED)
        with threadpool_limits(1, user_api="blas"):
            start = _mode_of_some(rng, process)
            found = (
                _searched(rng, process, start, n_neighbors) if process is model else _near(process, start, n_neighbors)
            )
    return replace(model, neighbors=found)


def _searched(rng: np.random.Generator, process: KernelProcess, position: Array, n_neighbors: int) -> Neighbors:
    """Neighbours near where the last ones have led, those of the best predictive score among a few."""
    spread, rows, tried = prior_spread(rng, process), _some_rows(process), []
    for _ in range(N_SEARCHES):
        found = _near(process, position, n_neighbors)
        sparse = replace(process, neighbors=found)
        position = spread * ascend(sparse, position, spread, N_STEPS)
        near = found.nearest_others(rows, n_neighbors)
        tried.append((float(_scores(sparse, position[None], rows, near).mean()), found))
    return max(tried, key=lambda pair: pair[0])[1]


def _some_rows(model: Any) -> NDArray[np.int64]:
    """Rows that are predicted from others."""
    return np.random.default_rng(_SEED).permutation(len(model.y))[:N_SCORED]


def _mode_of_some(rng: np.random.Generator, model: KernelProcess) -> Array:
    """A mode given some of the rows."""
    rows = np.sort(rng.permutation(len(model.y))[:N_PILOT])
    few = replace(model, X=model.X[rows], y=model.y[rows], likelihood=model.likelihood.of_rows(rows), _buffers={})
    modes = find_modes(rng, few)
    return np.asarray(modes.places[int(np.argmax(modes.log_masses))])


def _near(process: KernelProcess, position: Array, n_neighbors: int) -> Neighbors:
    """Neighbours that are near at a position."""
    return Neighbors.find(process.X, process.scales(position).log_weights, n_neighbors)


def most_draws(n_asked: int) -> int:
    """How many draws may stand for the posterior where a new row asks so many."""
    return max(1, int(3.0 * OPERATIONS / n_asked**3))


def choose_asked(model: Any, positions: Array) -> int:
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
    return n if best == n - 1 else best  # a new row has all of them for others


def _doubled(first: int, most: int) -> list[int]:
    """first, 2 first, 4 first, .. up to the most."""
    counts = [min(first, most)]
    while counts[-1] < most:
        counts.append(min(2 * counts[-1], most))
    return counts


def _scores(model: Any, positions: Array, rows: NDArray[np.int64], near: vecchia.Indices) -> Array:
    """log p(y_i | y_N) of each row, averaged over draws."""
    members = np.column_stack((rows.astype(np.int32), near))
    sizes = np.full(len(rows), members.shape[1], dtype=np.int32)
    logs = [model.log_given(position, members, sizes) for position in positions]
    return np.asarray(logsumexp(logs, axis=0)) - math.log(len(positions))
