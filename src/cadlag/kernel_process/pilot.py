"""At which scales rows are near, settled before the draws, and how many a new row asks, settled after them.

Neighbours are sought at a mode of the posterior given a random subset of the rows, with the covariance in full. How
many rows a new one asks, m*, is chosen by the predictive score of training rows given their nearest others, averaged
over a few draws: with row i first, `log p(y_i | y_N) = log N(a_iᵀỹ; 0, d_i) - ½ log D_i`, closed form for each draw.
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
from cadlag.sampling.laplace import find_modes

Asker = TypeVar("Asker", bound=Any)  # a model with neighbours, `process` the one whose rows ask

N_PILOT = 500  # rows that the pilot scales are learned from
N_SCORED, N_DRAWS = 200, 4  # rows and draws that m* is chosen by
TIMES = (1, 2, 4, 8)  # m, as multiples of which m* is tried
MOST_ASKED = 320
OPERATIONS = 5e8  # for a row's prediction, all draws together
_SEED = 7


def with_neighbors(model: Asker, n_neighbors: int) -> Asker:
    """The same model with a sparse covariance, each row asking so many."""
    return replace(model, neighbors=Neighbors.find(model.X, pilot_weights(model.process), n_neighbors))


def pilot_weights(model: KernelProcess) -> Array:
    """log weights of the inputs at a mode, given some of the rows."""
    rng = np.random.default_rng(_SEED)
    rows = np.sort(rng.permutation(len(model.y))[:N_PILOT])
    few = replace(model, X=model.X[rows], y=model.y[rows], likelihood=model.likelihood.of_rows(rows), _buffers={})
    if few.dimension == 0:
        return np.asarray(few.scales(np.empty(0)).log_weights)
    with threadpool_limits(1, user_api="blas"):
        modes = find_modes(rng, few)
    return np.asarray(few.scales(modes.places[int(np.argmax(modes.log_masses))]).log_weights)


def most_draws(n_asked: int) -> int:
    """How many draws may stand for the posterior where a new row asks so many."""
    return max(1, int(3.0 * OPERATIONS / n_asked**3))


def choose_asked(model: Any, positions: Array) -> int:
    """m*: more rows are asked where the predictive score gains more than its standard error by it."""
    assert model.neighbors is not None
    m, n = model.neighbors.sets.n_neighbors, len(model.y)
    rows = np.random.default_rng(_SEED).permutation(n)[:N_SCORED]
    counts = sorted({min(m * times, n - 1, max(m, MOST_ASKED)) for times in TIMES})
    near = model.neighbors.nearest_others(rows, counts[-1])
    used = positions[np.unique(np.linspace(0, len(positions) - 1, N_DRAWS).round().astype(int))]
    best, score = counts[0], _scores(model, used, rows, near[:, : counts[0]])
    for count in counts[1:]:
        other = _scores(model, used, rows, near[:, :count])
        gain = other - score
        if gain.mean() > gain.std() / math.sqrt(len(rows)):
            best, score = count, other
    return best


def _scores(model: Any, positions: Array, rows: NDArray[np.int64], near: vecchia.Indices) -> Array:
    """log p(y_i | y_N) of each row, averaged over draws."""
    members = np.column_stack((rows.astype(np.int32), near))
    sizes = np.full(len(rows), members.shape[1], dtype=np.int32)
    logs = [model.log_given(position, members, sizes) for position in positions]
    return np.asarray(logsumexp(logs, axis=0)) - math.log(len(positions))
