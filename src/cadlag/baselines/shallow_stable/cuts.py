"""cov(f(x*), f(x_k)) = Σ_ℓ c_ℓ λ_ℓk (p_ℓ - (1 - p_ℓ)): how new inputs cut cells, and what of a cell's scale goes where.

c_ℓ = w_ℓ s_ℓ is what cell ℓ adds to the variance, p_ℓ the share of it that belongs to units positive at x*: 0 or 1
where x* does not cut the cell, and random given c_ℓ where it does (:mod:`~cadlag.baselines.shallow_stable.shares`). One
row needs one division of each cell it cuts; rows together cut a cell in many pieces, whose scales are drawn by halving.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from cadlag.baselines.shallow_stable.cells import Cells
from cadlag.baselines.shallow_stable.plane import Array, Index
from cadlag.baselines.shallow_stable.shares import divide
from cadlag.stable import PositiveStable

_ONE_BY_ONE, _TOGETHER = 0, 1  # parts of the seeds of a draw


@dataclass(frozen=True)
class Cuts:
    """New inputs, each by itself.

    Attributes
    ----------
    sides
        ±1 where all of a cell has the sign of its pattern, or the other, at a new input; 0 where it is cut, (m, L).
    rows
        The new input of each cut.
    cells
        The cell of each cut.
    parts
        The share in its measure that is positive.
    """

    sides: Array
    rows: Index
    cells: Index
    parts: Array

    @classmethod
    def find(cls, cells: Cells, X: Array) -> "Cuts":
        """Look where new inputs lie."""
        shares = cells.shares(X)
        cut = (shares > 0.0) & (shares < 1.0)
        rows, which = np.nonzero(cut)
        return cls(np.where(cut, 0.0, np.where(shares > 0.5, 1.0, -1.0)), rows, which, shares[cut])

    def covariances(self, key: int, log_s: Array, c: Array, signs: Array, law: PositiveStable) -> Array:
        """Covariances of the function between new inputs and training rows, with scales divided at random."""
        cross = self.sides @ (c[:, None] * signs)
        shares = divide((key, _ONE_BY_ONE), self.cells, len(c), self.parts, log_s[self.cells], law)
        _add_rows(self.rows, self.cells, (shares[0] - shares[1]) * c[self.cells], signs, cross)
        return cross


@njit(cache=True, nogil=True)
def _add_rows(rows: Index, cells: Index, values: Array, signs: Array, out: Array) -> None:
    for i in range(len(rows)):
        for k in range(signs.shape[1]):
            out[rows[i], k] += values[i] * signs[cells[i], k]


class _Level(NamedTuple):
    """Nodes of one depth that are divided: which, their first parts' shares, the nodes that follow."""

    nodes: Index
    parts: Array
    left: Index
    right: Index


@dataclass(frozen=True)
class Pieces:
    """New inputs together: the pieces of all cells, and halvings that lead from a cell to them.

    Attributes
    ----------
    signs
        Sign of each piece at the new inputs, (P, m).
    parents
        The cell that it is a piece of.
    n_nodes
        Number of nodes of the halvings; the first ones are cells.
    levels
        The halvings, from the cells down.
    leaves
        The node that is a piece.
    """

    signs: Array
    parents: Index
    n_nodes: int
    levels: tuple[_Level, ...]
    leaves: Index

    @classmethod
    def find(cls, cells: Cells, X: Array) -> "Pieces":
        """Cut all cells by all new inputs."""
        fine, n = cells.refine(X), cells.patterns.shape[1]
        number = {row.tobytes(): k for k, row in enumerate(cells.patterns)}
        parents = np.array([number.get(row.tobytes(), -1) for row in np.ascontiguousarray(fine.patterns[:, :n])])
        # Beside more points the rounding errors are others: a cell that was too small may be found now.
        order = np.argsort(parents, kind="stable")[np.sum(parents < 0) :]
        ends = np.searchsorted(parents[order], np.arange(len(cells.probabilities) + 1))
        n_nodes, levels, leaves = _halvings(ends, fine.probabilities[order])
        return cls(fine.patterns[order, n:].astype(float), parents[order], n_nodes, levels, leaves)

    def scales(self, key: int, log_s: Array, log_c: Array, law: PositiveStable) -> Array:
        """What each piece adds to the variance, drawn given the scales of the cells and what they add."""
        scales, totals = np.zeros(self.n_nodes), np.full(self.n_nodes, -np.inf)
        scales[: len(log_s)], totals[: len(log_c)] = log_s, log_c
        for depth, level in enumerate(self.levels):
            numbers = np.arange(len(level.nodes))
            here = scales[level.nodes]
            shares = divide((key, _TOGETHER, depth), numbers, len(numbers), level.parts, here, law)
            with np.errstate(divide="ignore"):
                shares = np.log(shares)
            for part, log_share, followers in zip((level.parts, 1.0 - level.parts), shares, (level.left, level.right)):
                scales[followers] = here + log_share - np.log(part) / law.index
                totals[followers] = totals[level.nodes] + log_share
        return np.exp(totals[self.leaves])


def _halvings(ends: Index, q: Array) -> tuple[int, tuple[_Level, ...], Index]:
    """A tree below each cell whose leaves are its pieces, ends[k] to ends[k + 1]: number of nodes, halvings, leaves."""
    reach = np.concatenate([[0.0], np.cumsum(q)])
    start, stop, count = ends[:-1], ends[1:], len(ends) - 1
    levels: list[_Level] = []
    nodes, leaves = np.arange(count), np.zeros(len(q), dtype=np.int64)
    while True:
        single, more = stop - start == 1, stop - start > 1
        leaves[start[single]] = nodes[single]
        nodes, start, stop = nodes[more], start[more], stop[more]
        if len(nodes) == 0:
            return count, tuple(levels), leaves
        middle = (start + stop) // 2
        left, right = count + np.arange(len(nodes)), count + len(nodes) + np.arange(len(nodes))
        count += 2 * len(nodes)
        levels.append(_Level(nodes, (reach[middle] - reach[start]) / (reach[stop] - reach[start]), left, right))
        nodes, start, stop = np.append(left, right), np.append(start, middle), np.append(middle, stop)
