"""q_ℓ = P(sign(a + bᵀx_k) = ±λ_ℓk for all k), (a, b) ~ N(0, I): how one sign unit divides the points, and how often.

A cell is a set of units (a, b) that divide the training points alike, up to a global sign; its pattern λ_ℓ is ±1 at
each row and +1 at the first. Only the direction of (a, b) matters, and no sign of it: cells are pieces of the
projective space, of measure q_ℓ. In one dimension a unit is its threshold -a/b, Cauchy: cells are the arcs between
neighbouring atan x,

    q_i = (atan x_(i+1) - atan x_(i)) / π,    q_N = 1 - (atan x_(N) - atan x_(1)) / π,

the last one, of the constant pattern, reaching around through infinity. In two dimensions they are polygons
(:mod:`~cadlag.baselines.shallow_stable.plane`), in more they are found by simulation.

A new input x* cuts a cell where some of its units are positive at x* and some are not; `shares` is the part of the
cell's measure where they are.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from cadlag.baselines.shallow_stable.plane import Array, Index, Plane, Signs, divide_plane, shares_in_plane

LEAST_PROBABILITY = 1e-14  # a cell that is smaller is a rounding error
MOST_CELLS, MOST_UNITS = 400, 2**14  # of a simulation


@dataclass(frozen=True)
class Cells:
    """The cells of some points.

    Attributes
    ----------
    X
        The points, (n, p).
    patterns
        λ, (L, n).
    probabilities
        q, (L,).
    """

    X: Array
    patterns: Signs
    probabilities: Array

    def shares(self, X: Array) -> Array:
        """Part of each cell in which a unit is positive at a new input, (m, L)."""
        raise NotImplementedError

    def refine(self, X: Array) -> "Cells":
        """The cells of the points and more of them, in this order."""
        raise NotImplementedError


# One dimension -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineCells(Cells):
    """Cells of points on a line: arcs of thresholds.

    Attributes
    ----------
    knots
        The distinct points, in order.
    starts
        The cell is the arc that starts at this knot, (L,).
    """

    knots: Array
    starts: Index

    def shares(self, X: Array) -> Array:
        """Part of each arc on which a unit is positive at a new input."""
        x, i, last = X[:, :1], self.starts[None, :], len(self.knots) - 1
        left, right = self.knots[i], self.knots[np.minimum(i + 1, last)]
        length = _angle(left, right)
        with np.errstate(invalid="ignore", divide="ignore"):
            below = _angle(np.clip(x, left, right), right) / length  # thresholds beyond x*: x* sides with what is below
        first_below = self.knots[i] >= self.X[0, 0]  # the first row is below the thresholds, and positive
        shares = np.where(first_below, below, 1.0 - below)
        return np.where(i == last, self._constant_shares(x), shares)

    def _constant_shares(self, x: Array) -> Array:
        """Shares of the arc through infinity: thresholds beyond the outermost point, where x* is unlike the others."""
        low, high = self.knots[:1], self.knots[-1:]
        beyond = _angle(high, np.maximum(x, high)) + _angle(np.minimum(x, low), low)
        return 1.0 - beyond / (math.pi - _angle(low, high))

    def refine(self, X: Array) -> "LineCells":
        """Arcs between these points and more of them."""
        return cells_on_a_line(np.vstack([self.X, X]))


def _angle(left: Array, right: Array) -> Array:
    """Atan right - atan left for left ≤ right, to full relative accuracy."""
    return np.arctan2(right - left, 1.0 + left * right)


def cells_on_a_line(X: Array, emulate_published: bool = False) -> LineCells:
    """The arcs between neighbours, and the one around them."""
    knots, place = np.unique(X[:, 0], return_inverse=True)
    starts = np.arange(len(knots))
    patterns = np.where(place[None, :] <= starts[:, None], 1, -1).astype(np.int8)
    patterns *= patterns[:, :1]
    inner = _angle(knots[:-1], knots[1:]) / math.pi
    probabilities = np.append(inner, 1.0 - _angle(knots[:1], knots[-1:]) / math.pi)
    if emulate_published:
        probabilities = _published(X[:, 0])[np.searchsorted(np.sort(X[:, 0]), knots, side="right") - 1]
    kept = probabilities > LEAST_PROBABILITY
    return LineCells(X, patterns[kept], probabilities[kept], knots, starts[kept])


def _published(x: Array) -> Array:
    """Probability of "the first i in order versus the rest", i = 1..n, as the published code attaches it."""
    ordered = np.sort(x)
    around = 1.0 + _angle(ordered[:1], ordered[-1:]) / math.pi
    return np.append(_angle(ordered[:-1], ordered[1:]) / math.pi, around)[rankdata(x).astype(int) - 1]


# Two dimensions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlaneCells(Cells):
    """Cells of points in the plane: polygons in slices.

    Attributes
    ----------
    plane
        The slices.
    """

    plane: Plane

    def shares(self, X: Array) -> Array:
        """Part of each polygon in which a unit is positive at a new input."""
        return shares_in_plane(np.ascontiguousarray(X), self.plane, self.probabilities)

    def refine(self, X: Array) -> "PlaneCells":
        """Polygons of these points and more of them."""
        return cells_in_the_plane(np.vstack([self.X, X]))


def cells_in_the_plane(X: Array) -> PlaneCells:
    """All ways to divide points by a line, with exact probabilities."""
    _, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
    # Kept in the order of the rows, so that the first point is the first row.
    order = np.argsort(first)
    rank = np.argsort(order)
    distinct = np.ascontiguousarray(X[first[order]])
    plane, patterns, probabilities = divide_plane(distinct, LEAST_PROBABILITY)
    return PlaneCells(X, patterns[:, rank[place.ravel()]], probabilities, plane)


# More ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimulatedCells(Cells):
    """Cells of points in any dimension, as far as simulated units show them; q is the share of the units.

    Attributes
    ----------
    units
        (a, b) row by row, all positive at the first point.
    members
        The cell that each unit is in.
    """

    units: Array
    members: Index

    def shares(self, X: Array) -> Array:
        """Part of each cell's units that are positive at a new input."""
        counts = np.bincount(self.members, minlength=len(self.patterns))
        positive = (np.bincount(self.members, _signs(self.units, x[None])[:, 0] > 0, len(counts)) for x in X)
        return np.array([sums / counts for sums in positive]).reshape(len(X), len(counts))

    def refine(self, X: Array) -> "SimulatedCells":
        """Units told apart by more points than before."""
        return _tell_apart(np.vstack([self.X, X]), self.units)


def _signs(units: Array, X: Array) -> Signs:
    return np.where(units[:, :1] + units[:, 1:] @ X.T > 0.0, 1, -1).astype(np.int8)


def _tell_apart(X: Array, units: Array) -> SimulatedCells:
    signs = _signs(units, X)
    _, first, members, counts = np.unique(
        np.packbits(signs > 0, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return SimulatedCells(X, signs[first], counts / len(units), units, members.ravel())


def cells_by_simulation(rng: np.random.Generator, X: Array) -> SimulatedCells:
    """The cells of units drawn until there are many of either."""
    units, size = np.empty((0, X.shape[1] + 1)), MOST_CELLS // 2
    while True:
        fresh = rng.standard_normal((size, X.shape[1] + 1))
        units = np.vstack([units, fresh * _signs(fresh, X[:1])])
        cells = _tell_apart(X, units)
        if len(cells.probabilities) > MOST_CELLS // 2 or len(units) >= MOST_UNITS:
            return cells
        size = len(units)  # twice as many units have at most twice as many cells


def find_cells(rng: np.random.Generator, X: Array, emulate_published: bool = False) -> Cells:
    """The cells of some points, exact in one and two dimensions."""
    if X.shape[1] == 1:
        return cells_on_a_line(X, emulate_published)
    return cells_in_the_plane(X) if X.shape[1] == 2 else cells_by_simulation(rng, X)


def find_neighbours(patterns: Signs) -> tuple[Index, Index]:
    """Pairs of cells whose patterns differ at one point, up to sign."""
    distinct = np.unique(patterns, axis=1)
    distinct = distinct * distinct[:, :1]
    keys = np.random.default_rng(0).integers(1, 2**64, distinct.shape[1], dtype=np.uint64)  # names by exclusive or
    names = np.bitwise_xor.reduce(np.where(distinct < 0, keys, np.uint64(0)), axis=1)
    flipped = names[:, None] ^ keys
    flipped[:, 0] ^= np.bitwise_xor.reduce(keys)  # the first point's sign is kept, all others change instead
    order = np.argsort(names)
    place = np.minimum(np.searchsorted(names[order], flipped), len(names) - 1)
    found = names[order][place] == flipped
    first = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
    return first, order[place[found]]
