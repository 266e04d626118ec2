"""The sparse law: against the dense one where every row asks all earlier ones, elsewhere against its own formula."""

import math

import numpy as np
import pytest

from cadlag.linalg import gaussian, low_rank, vecchia
from cadlag.linalg.low_rank import Columns

N, M = 23, 4


class Given:
    """Pairs from a matrix of ρ and from w, whose reverse mode writes down the derivatives by all pairs."""

    n_sums = 1

    def __init__(self, rho, weight):
        self.rho, self.weight = rho, weight
        self.n_totals = len(rho) ** 2

    def correlation(self):
        full = self.rho * np.outer(self.weight, self.weight)
        np.fill_diagonal(full, 1.0)
        return full

    def fill(self, members, sizes, out):
        full = self.correlation()
        for r, size in enumerate(sizes):
            own = members[r, :size]
            out[r, :size, :size] = np.tril(full[np.ix_(own, own)])

    def pull(self, members, sizes, adjoint, sums, totals):
        by_pair = totals.reshape(self.rho.shape)
        for r, size in enumerate(sizes):
            own, lower = members[r, :size], np.tril(adjoint[r, :size, :size], -1)
            by_pair[np.ix_(own, own)] += lower
            sums[r] = 0.0
            sums[r, :size, 0] = lower.sum(axis=0) + lower.sum(axis=1)


class Problem:
    def __init__(self, seed=0, n=N, noise="rows", twice=False):
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((n, 2))
        if twice:
            points[1::2] = points[:-1:2]
        self.rho = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
        self.log_signal = rng.standard_normal(n)
        self.log_noise = rng.standard_normal(n) - 1.0 if noise == "rows" else np.full(n, noise)
        self.y, self.rng, self.n = rng.standard_normal(n), rng, n
        self.columns = Columns(rng.standard_normal((n, 3)), np.array([0.5, 2.0, 0.1]))

    def observed(self, log_signal=None, log_noise=None):
        signal = self.log_signal if log_signal is None else log_signal
        data = gaussian.observe(self.y, signal, self.log_noise if log_noise is None else log_noise)
        return Given(self.rho, data.weight), data

    def sets(self, m):
        order = np.random.default_rng(9).permutation(self.n)
        neighbors = np.full((self.n, m), -1, dtype=np.int32)
        for k, i in enumerate(order):
            near = sorted(order[:k], key=lambda h: -self.rho[i, h])[:m]
            neighbors[i, : len(near)] = near
        return vecchia.Sets.of(neighbors)


def explicit_precision(P, sets):
    """Σ_i a_i a_iᵀ/d_i."""
    V = np.zeros(P.shape)
    for members, size in zip(sets.members, sets.sizes):
        i, near = members[0], members[1:size]
        b = np.linalg.solve(P[np.ix_(near, near)], P[near, i])
        a = np.zeros(len(P))
        a[i], a[near] = 1.0, -b
        V += np.outer(a, a) / (1.0 - b @ P[near, i])
    return V


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("with_columns", [False, True])
def test_with_all_earlier_rows_it_is_the_dense_law(with_columns, twice):
    problem = Problem(1, twice=twice)
    pairs, data = problem.observed()
    columns = problem.columns if with_columns else None
    sets, P = problem.sets(N - 1), pairs.correlation()
    if with_columns:
        dense = low_rank.log_marginal_gradient_with_columns(P, data, *columns)
    else:
        dense = gaussian.log_marginal_gradient(P, data)
    found = vecchia.log_marginal_gradient(pairs, sets, data, columns)
    assert found.value == pytest.approx(dense.value, abs=1e-10)
    assert vecchia.log_marginal(pairs, sets, data, columns) == found.value
    by_pair = found.pairs.totals.reshape(N, N)
    np.testing.assert_allclose(np.tril(by_pair + by_pair.T, -1), np.tril(dense.pairs, -1), atol=1e-9)
    np.testing.assert_allclose(found.log_signal, dense.log_signal, atol=1e-10)
    np.testing.assert_allclose(found.log_noise, dense.log_noise, atol=1e-10)


@pytest.mark.parametrize("with_columns", [False, True])
@pytest.mark.parametrize("m", [0, 1, M])
def test_the_value_is_that_of_its_own_precision(m, with_columns):
    problem = Problem(2)
    pairs, data = problem.observed()
    V = explicit_precision(pairs.correlation(), problem.sets(m))
    covariance = np.linalg.inv(V) * np.exp(0.5 * np.add.outer(data.log_total, data.log_total))
    columns = problem.columns if with_columns else None
    if with_columns:
        covariance += (problem.columns.Phi * problem.columns.variances) @ problem.columns.Phi.T
    square = problem.y @ np.linalg.solve(covariance, problem.y)
    expected = -0.5 * (np.linalg.slogdet(2.0 * np.pi * covariance)[1] + square)
    assert vecchia.log_marginal(pairs, problem.sets(m), data, columns) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("with_columns", [False, True])
@pytest.mark.parametrize("m", [0, 1, M])
def test_derivatives_against_differences(m, with_columns):
    problem = Problem(3)
    sets, columns, step = problem.sets(m), problem.columns if with_columns else None, 1e-5
    found = vecchia.log_marginal_gradient(*_ordered(problem.observed(), sets), columns)

    def value(log_signal=None, log_noise=None):
        return vecchia.log_marginal(*_ordered(problem.observed(log_signal, log_noise), sets), columns)

    for k, e in enumerate(step * np.eye(N)):
        up, down = value(problem.log_signal + e), value(problem.log_signal - e)
        assert found.log_signal[k] == pytest.approx((up - down) / (2.0 * step), rel=1e-7, abs=1e-8)
        up, down = value(None, problem.log_noise + e), value(None, problem.log_noise - e)
        assert found.log_noise[k] == pytest.approx((up - down) / (2.0 * step), rel=1e-7, abs=1e-8)
    by_pair = found.pairs.totals.reshape(N, N)
    weight = problem.observed()[0].weight
    nearest = [(own[0], own[1]) for own, size in zip(sets.members, sets.sizes) if size > 1]
    for k, h in [(3, 1), (9, 20), *nearest]:
        change, kept = np.zeros((N, N)), problem.rho
        change[k, h] = change[h, k] = step
        problem.rho = kept + change
        up = value()
        problem.rho = kept - change
        down = value()
        problem.rho = kept
        expected = (up - down) / (2.0 * step * weight[k] * weight[h])
        assert by_pair[k, h] + by_pair[h, k] == pytest.approx(expected, rel=1e-7, abs=1e-7)


def _ordered(observed, sets):
    pairs, data = observed
    return pairs, sets, data


def test_what_the_pairs_leave_for_each_row_is_added_up():
    problem = Problem(4)
    pairs, data = problem.observed()
    found = vecchia.log_marginal_gradient(pairs, problem.sets(M), data)
    by_pair = found.pairs.totals.reshape(N, N)
    np.testing.assert_allclose(found.pairs.sums[0], by_pair.sum(axis=0) + by_pair.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("m", [0, 1, M, N - 1])
def test_products_with_the_precision(m):
    problem = Problem(5)
    pairs, _ = problem.observed()
    precision, P = vecchia.factorise(pairs, problem.sets(m)), pairs.correlation()
    V = explicit_precision(P, problem.sets(m))
    if m == N - 1:
        np.testing.assert_allclose(V, np.linalg.inv(P), rtol=1e-9, atol=1e-9)
    U = precision.spread(np.eye(N))
    np.testing.assert_allclose(U @ U.T, V, atol=1e-10)
    np.testing.assert_allclose(precision.diagonal, np.diag(V), rtol=1e-11)
    assert precision.log_det == pytest.approx(np.linalg.slogdet(V)[1], abs=1e-10)
    for x in (problem.y, problem.columns.Phi):
        np.testing.assert_allclose(precision.apply(x), V @ x, atol=1e-10)
        np.testing.assert_allclose(precision.whiten(x), U.T @ x, atol=1e-10)
        np.testing.assert_allclose(precision.spread(x), U @ x, atol=1e-10)


@pytest.mark.parametrize("m", [0, 2, M, N - 1])
def test_leaving_a_row_out_is_deleting_it_under_the_same_law(m):
    problem = Problem(6)
    pairs, data = problem.observed()
    sets = problem.sets(m)
    found = vecchia.leave_one_out(vecchia.factorise(pairs, sets), data)
    covariance = np.linalg.inv(explicit_precision(pairs.correlation(), sets))
    covariance *= np.exp(0.5 * np.add.outer(data.log_total, data.log_total))
    for k in range(N):
        rest = np.arange(N) != k
        weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, k])
        assert found.errors[k] == pytest.approx(problem.y[k] - weights @ problem.y[rest], abs=1e-10)
        assert found.variances[k] == pytest.approx(covariance[k, k] - weights @ covariance[rest, k], rel=1e-10)


def test_conditionals_of_new_rows():
    problem = Problem(7)
    pairs, _ = problem.observed()
    P, members = pairs.correlation(), np.array([[5, 2, 9, 11], [6, 1, -1, -1], [7, -1, -1, -1]], dtype=np.int32)
    sizes = np.array([4, 2, 1], dtype=np.int32)
    a, d = vecchia.conditionals(pairs, members, sizes)
    for r, size in enumerate(sizes):
        i, near = members[r, 0], members[r, 1:size]
        b = np.linalg.solve(P[np.ix_(near, near)], P[near, i])
        np.testing.assert_allclose(a[r], np.concatenate(([1.0], -b, np.zeros(4 - size))), atol=1e-12)
        assert d[r] == pytest.approx(1.0 - b @ P[near, i], abs=1e-12)


def test_neighbours_that_others_determine_are_left_out():
    """Of two that are one row the one behind is asked; a likelihood refuses them."""
    problem = Problem(9, noise=-math.inf, twice=True)
    pairs, _ = problem.observed()
    members = np.array([[6, 0, 1, 2, 9], [6, 2, 9, 8, 1]], dtype=np.int32)  # 0 and 1, 8 and 9 are one
    sizes = np.array([5, 5], dtype=np.int32)
    a, d = vecchia.conditionals(pairs, members, sizes)
    without, left = vecchia.conditionals(pairs, np.array([[6, 1, 2, 9], [6, 2, 8, 1]], np.int32), sizes - 1)
    np.testing.assert_allclose(a, [[1.0, 0.0, *without[0, 1:]], [1.0, without[1, 1], 0.0, *without[1, 2:]]], atol=1e-9)
    np.testing.assert_allclose(d, left, atol=1e-9)
    with pytest.raises(gaussian.NotPositiveDefiniteError, match="the neighbours of row 6"):
        vecchia.conditionals(pairs, members, sizes, strict=True)


@pytest.mark.parametrize("width", [2, 3, 8, 9, 40, 67])
def test_sets_of_any_size(width):
    """The factorisation takes rows two at a time, and sums four."""
    problem = Problem(8, n=width)
    pairs, data = problem.observed()
    dense = gaussian.log_marginal(pairs.correlation(), data)
    assert vecchia.log_marginal(pairs, problem.sets(width - 1), data) == pytest.approx(dense, abs=1e-10)


@pytest.mark.parametrize("m", [1, M, N - 1])
@pytest.mark.parametrize("with_columns", [False, True])
def test_rows_that_stand_twice_without_noise_have_no_density(m, with_columns):
    problem = Problem(9, noise=-math.inf, twice=True)
    columns = problem.columns if with_columns else None
    for function in (vecchia.log_marginal, vecchia.log_marginal_gradient):
        with pytest.raises(gaussian.NotPositiveDefiniteError):
            function(*_ordered(problem.observed(), problem.sets(m)), columns)


@pytest.mark.parametrize("with_columns", [False, True])
def test_threads_do_not_change_a_bit(monkeypatch, with_columns):
    problem = Problem(10, n=90)
    columns, sets = problem.columns if with_columns else None, problem.sets(5)
    at_once = vecchia.log_marginal_gradient(*_ordered(problem.observed(), sets), columns)
    monkeypatch.setattr(vecchia, "CHUNK", 8)
    monkeypatch.setattr(vecchia, "_BLOCK", 100)
    one, *others = (
        vecchia.log_marginal_gradient(*_ordered(problem.observed(), sets), columns, n_threads)
        for n_threads in (1, 2, 3, 3)
    )
    assert one.value == pytest.approx(at_once.value, abs=1e-11)
    np.testing.assert_allclose(one.pairs.totals, at_once.pairs.totals, atol=1e-9)
    for other in others:
        assert other.value == one.value
        np.testing.assert_array_equal(other.pairs.sums, one.pairs.sums)
        np.testing.assert_array_equal(other.pairs.totals, one.pairs.totals)
        np.testing.assert_array_equal(other.log_signal, one.log_signal)
        np.testing.assert_array_equal(other.log_noise, one.log_noise)


@pytest.mark.parametrize("neighbors", [[[-1], [2]], [[-1, -1], [-1, 0]]])
def test_what_is_no_list_of_neighbours_is_refused(neighbors):
    with pytest.raises(ValueError, match="neighbours must be rows"):
        vecchia.Sets.of(np.array(neighbors, dtype=np.int32))
