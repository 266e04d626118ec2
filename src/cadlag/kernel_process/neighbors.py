"""N(i): the nearest earlier rows under the process's own correlation, |û_i - û_h| at pilot scales.

û = (1, √w∘x)/√A are the first layer's unit vectors, whose angles decide every correlation of the process. The order is
random, from a fixed seed, so that neighbours are a function of the rows, the pilot scales and m. They are found in
k-d trees over prefixes of the order that double: O(n m log n). Any neighbours are valid, so that among many rows near
ones do.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cadlag import kernels
from cadlag.linalg.gaussian import Array
from cadlag.linalg.vecchia import Indices, Sets
from cadlag.sampling.contract import Forgetful

_SEED = 20
_FIRST = 256  # rows in the first prefix
_EXACT, _SLACK = 20_000, 0.5  # rows among which the very nearest are found; of more, any at most half as far again
_TRIES = 5  # a row that has found fewer earlier rows then keeps those


@dataclass(frozen=True)
class Neighbors(Forgetful):
    """Whom each row asks, and which rows a new one asks.

    Attributes
    ----------
    X
        The rows, (n, p).
    log_weights
        Pilot log weights of the inputs, (p,).
    sets
        S_i.
    n_asked
        How many rows a new row asks.
    n_threads
        Threads that share the rows; results do not depend on it.
    """

    X: Array
    log_weights: Array
    sets: Sets
    n_asked: int
    n_threads: int = 1
    _asked: dict[bytes, Indices] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def find(cls, X: Array, log_weights: Array, n_neighbors: int, n_asked: int | None = None) -> Self:
        """The nearest earlier rows of each; a new row asks as many unless more are wanted."""
        sets = Sets.of(nearest_earlier(directions(X, log_weights), n_neighbors))
        return cls(X, log_weights, sets, n_asked or n_neighbors)

    def of_rows(self, rows: NDArray[np.int_]) -> Self:
        """Those among some of the rows."""
        return self.find(self.X[rows], self.log_weights, self.sets.n_neighbors, self.n_asked)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(directions(self.X, self.log_weights))

    def asked(self, X: Array) -> Indices:
        """The rows nearest to each new input, nearest first, (m, n_asked)."""
        key = X.tobytes()
        found = self._asked.get(key)
        if found is None:
            found = self.nearest(X, self.n_asked)
            self._asked.clear()  # draws ask one after the other, of the same inputs
            self._asked[key] = found
        return found

    def nearest(self, X: Array, count: int) -> Indices:
        """So many rows nearest to each input, nearest first."""
        wanted = np.arange(1, min(count, len(self.X)) + 1)
        return np.asarray(self._tree.query(directions(X, self.log_weights), wanted)[1], dtype=np.int32)

    def nearest_others(self, rows: NDArray[np.int64], count: int) -> Indices:
        """So many other rows nearest to each of some rows, nearest first."""
        near = self.nearest(self.X[rows], count + 1)
        last = np.argsort(near == rows[:, None], axis=1, kind="stable")  # itself, or what is farthest
        return np.take_along_axis(near, last, axis=1)[:, :-1]


def directions(X: Array, log_weights: Array) -> Array:
    """û of some inputs, a row each."""
    return np.ascontiguousarray(kernels.layers(X, log_weights, np.empty(0), 1).unit.T)


def nearest_earlier(places: Array, m: int) -> Indices:
    """The m nearest of the rows that come earlier in a random order, nearest first, -1 where there are fewer."""
    n = len(places)
    order = np.random.default_rng(_SEED).permutation(n)
    found, first = np.full((n, min(m, n - 1)), -1, dtype=np.int32), 0
    stop = _FIRST
    while first < n:
        stop = min(stop, n)
        prefix = order[:stop]
        found[order[first:stop]] = _among(places[prefix], first, found.shape[1], prefix)
        first, stop = stop, 2 * stop
    return found


def _among(places: Array, first: int, m: int, rows: NDArray[np.int64]) -> Indices:
    """Of one prefix, for its rows from `first` on; equal places are one, of whose rows the latest come first."""
    distinct, which = np.unique(places, axis=0, return_inverse=True)
    which = which.ravel()
    members, starts = np.argsort(which, kind="stable"), np.searchsorted(np.sort(which), np.arange(len(distinct) + 1))
    tree, stop = cKDTree(distinct), len(places)
    slack = 0.0 if len(distinct) <= _EXACT else _SLACK
    out, left, count = np.full((stop - first, m), -1, dtype=np.int32), np.arange(first, stop), 2 * m + 2
    for _ in range(_TRIES if m else 0):
        count = min(count, len(distinct))
        near = np.asarray(tree.query(places[left], np.arange(1, count + 1), eps=slack)[1])
        found, sizes = _earlier(near, members, starts, left, m)
        out[left - first] = np.where(found >= 0, rows[found], -1)
        left, count = left[sizes < np.minimum(left, m)], 2 * count
        if len(left) == 0:
            break
    return out


@njit(cache=True, nogil=True)
def _earlier(
    near: NDArray[np.int64], members: NDArray[np.int64], starts: NDArray[np.int64], left: NDArray[np.int64], m: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first m earlier rows at the nearest places, the latest of a place first; and how many there are."""
    out, sizes = np.full((len(left), m), -1), np.zeros(len(left), dtype=np.int64)
    for r in range(len(left)):
        for place in near[r]:
            k = starts[place + 1] - 1
            while k >= starts[place] and sizes[r] < m:
                if members[k] < left[r]:
                    out[r, sizes[r]] = members[k]
                    sizes[r] += 1
                k -= 1
    return out, sizes
