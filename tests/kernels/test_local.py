"""Correlations within sets of rows are those of the whole matrix, and so is what is pulled back through them."""

import numpy as np
import pytest

from cadlag import kernels
from cadlag.linalg.vecchia import Sets, add_up

N = 17
RNG = np.random.default_rng(4)
X = RNG.standard_normal((N, 6))
X[5], X[6] = X[2], X[3] + 1e-9
WEIGHT = RNG.uniform(0.3, 0.99, N)
CASES = [(order, depth) for order in (0, 1, 2, 3) for depth in (1, 2, 3)]


def points_of(order, depth, inputs=X):
    return kernels.layers(inputs, np.linspace(-1.0, 1.0, 6), np.linspace(0.5, -0.5, depth - 1), order)


def some_sets():
    members = np.array([[3, 9, 1, 12, 2], [5, 2, 7, -1, -1], [0, -1, -1, -1, -1]], dtype=np.int32)
    return members, np.array([5, 3, 1], dtype=np.int32)


def check_fill(pairs, expected):
    members, sizes = some_sets()
    out = np.full((4, 5, 5), np.nan)  # a block may be larger than what is in it
    pairs.fill(members, sizes, out)
    for r, size in enumerate(sizes):
        own = members[r, :size]
        part = expected[np.ix_(own, own)]
        np.testing.assert_allclose(np.tril(out[r, :size, :size]), np.tril(part), atol=4e-16, rtol=1e-14)


def symmetric(lower):
    return np.tril(lower, -1) + np.tril(lower, -1).T + np.eye(len(lower))


@pytest.mark.parametrize(("order", "depth"), CASES)
def test_correlations_of_one_order(order, depth):
    points = points_of(order, depth)
    check_fill(kernels.LocalPairs.of(points, WEIGHT), symmetric(kernels.correlations(points, WEIGHT)))


def test_correlations_of_both_orders():
    unit, shares = points_of(1, 1).unit, RNG.uniform(0.2, 0.7, (2, N))
    lower = kernels.correlations_of_both(unit, shares, np.zeros((N, N)))
    check_fill(kernels.LocalPairsOfBoth.of(unit, shares), symmetric(lower))


@pytest.mark.parametrize(("order", "depth"), CASES)
def test_rows_beside_others(order, depth):
    """Training rows with weights, and new rows."""
    first, second = points_of(order, depth, X[:10]), points_of(order, depth, X[10:])
    together = kernels.LocalPairs.of(points_of(order, depth), WEIGHT)
    parts = kernels.LocalPairs.of(first, WEIGHT[:10]).beside(kernels.LocalPairs.of(second, WEIGHT[10:]))
    np.testing.assert_array_equal(parts.features, together.features)


def pulled(pairs, adjoints):
    """What a few overlapping sets leave, from the derivatives by their pairs."""
    neighbors = np.full((N, 6), -1, dtype=np.int32)
    for i in range(N):
        near = np.random.default_rng(i).permutation(i)[:6]
        neighbors[i, : len(near)] = near
    sets, dense = Sets.of(neighbors), np.zeros((N, N))
    for r, (members, size) in enumerate(zip(sets.members, sets.sizes)):
        dense[np.ix_(members[:size], members[:size])] += np.tril(adjoints[r, :size, :size], -1)
    sums, totals = np.full((N, 7, pairs.n_sums), np.nan), np.zeros(pairs.n_totals)
    pairs.pull(sets.members, sets.sizes, adjoints.copy(), sums, totals)
    by_row = np.zeros((pairs.n_sums, N))
    add_up(sets.members, sets.sizes, sums, by_row)
    return (by_row, totals), np.tril(dense + dense.T, -1)


@pytest.mark.parametrize(("order", "depth"), CASES)
def test_reverse_mode_of_one_order(order, depth):
    points, by_variance = points_of(order, depth), RNG.standard_normal(N)
    found, dense = pulled(kernels.LocalPairs.of(points, WEIGHT), RNG.standard_normal((N, 7, 7)))
    expected = kernels.reverse(points, WEIGHT, dense, by_variance)
    for ours, theirs in zip(kernels.reverse(points, WEIGHT, found, by_variance), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)


def test_reverse_mode_of_both_orders():
    unit, shares = points_of(1, 1).unit, RNG.uniform(0.2, 0.7, (2, N))
    adjoints = RNG.standard_normal((N, 7, 7))
    adjoints[6:, :, :] *= 0.5
    found, dense = pulled(kernels.LocalPairsOfBoth.of(unit, shares), adjoints)
    expected = kernels.reverse_of_both(unit, shares, dense)
    for ours, theirs in zip(kernels.reverse_of_both(unit, shares, found), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)
