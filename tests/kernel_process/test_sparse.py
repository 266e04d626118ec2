"""The kernel process with neighbours: likelihood, gradient, prediction and rows left out."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from cadlag.kernel_process.groups import GroupedProcess
from cadlag.kernel_process.model import KernelProcess
from cadlag.kernel_process.neighbors import _SEED, Neighbors, directions, nearest_earlier
from cadlag.kernel_process.rough import RoughProcess
from cadlag.likelihood import Gaussian
from cadlag.linalg import vecchia
from cadlag.linalg.low_rank import Columns

N = 31
RNG = np.random.default_rng(17)
X = np.column_stack([np.ones(N), RNG.uniform(-2.0, 2.0, (N, 2))])
X[4], X[9] = X[11], X[2]
Y = np.sin(2.0 * X[:, 1]) + 0.3 * RNG.standard_normal(N)
NEW = np.column_stack([np.ones(9), RNG.uniform(-2.0, 2.0, (9, 2))])
UNITS = Columns(np.sign(X @ RNG.standard_normal((3, 4))), np.array([0.3, 0.5, 1.0, 0.1]))
PROCESSES = [(KernelProcess, {"order": order, "depth": depth}) for order in (0, 1, 2) for depth in (1, 2, 3)]
PROCESSES.append((RoughProcess, {}))
NOISE = [Gaussian(), Gaussian(0.3), Gaussian(np.linspace(0.1, 1.0, N)), Gaussian(relative=np.linspace(0.5, 2.0, N))]


def neighbors(m, asked=8, rows=X):
    return Neighbors.find(rows, np.array([0.0, 0.5, -0.5]), m, asked)


def position_of(model, seed=5):
    """Where the noise is not lost beside the function, as it is at high orders, whose variances are huge."""
    at = np.clip(0.3 * model.sample_prior(np.random.default_rng(seed)), -2.0, 1.0)
    at[3 : model.n_scales] -= 1.0 if model.order < 2 else 4.0
    return at


@pytest.mark.parametrize("columns", [None, UNITS])
@pytest.mark.parametrize("likelihood", NOISE)
@pytest.mark.parametrize(("process", "settings"), PROCESSES)
def test_with_all_earlier_rows_it_is_the_dense_process(process, settings, likelihood, columns):
    dense = process(X, Y, likelihood=likelihood, **settings)
    model = process(X, Y, likelihood=likelihood, neighbors=neighbors(N - 1), **settings)
    at = position_of(dense)
    expected, by_position = dense.log_likelihood_gradient(at, 0.1, columns)
    value, gradient = model.log_likelihood_gradient(at, 0.1, columns)
    assert value == pytest.approx(expected, abs=1e-10)
    assert model.log_likelihood(at, 0.1, columns) == value
    np.testing.assert_allclose(gradient, by_position, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("columns", [None, UNITS])
@pytest.mark.parametrize("likelihood", NOISE)
@pytest.mark.parametrize(("process", "settings"), PROCESSES)
def test_gradients_with_neighbours_against_differences(process, settings, likelihood, columns):
    model = process(X, Y, likelihood=likelihood, neighbors=neighbors(5), **settings)
    at = position_of(model)
    _, gradient = model.log_likelihood_gradient(at, 0.1, columns)
    for k, e in enumerate(1e-5 * np.eye(model.dimension)):
        up, down = model.log_likelihood(at + e, 0.1, columns), model.log_likelihood(at - e, 0.1, columns)
        assert gradient[k] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("process", "settings"), PROCESSES)
def test_rows_that_stand_twice_without_noise_have_no_density(process, settings):
    model = process(X, Y, likelihood=Gaussian(1e-300), neighbors=neighbors(5), **settings)
    at = position_of(model)
    assert model.log_likelihood(at) == -math.inf
    value, gradient = model.log_likelihood_gradient(at)
    assert value == -math.inf
    np.testing.assert_array_equal(gradient, 0.0)


@pytest.mark.parametrize("likelihood", NOISE)
@pytest.mark.parametrize(("process", "settings"), PROCESSES)
def test_rows_that_ask_all_others_are_predicted_as_by_the_dense_process(process, settings, likelihood):
    dense = process(X, Y, likelihood=likelihood, **settings)
    model = process(X, Y, likelihood=likelihood, neighbors=neighbors(5, N), **settings)
    at = position_of(dense)
    for found, expected in zip(model.condition(at).moments(NEW), dense.condition(at).moments(NEW)):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(model.condition(at).mean(NEW), dense.condition(at).mean(NEW), atol=1e-9)
    for found, expected in zip(model.condition(at).joint(NEW), dense.condition(at).joint(NEW)):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert model.condition(at).noise_variance == dense.condition(at).noise_variance


@pytest.mark.parametrize(("process", "settings"), PROCESSES)
def test_a_row_is_predicted_alike_in_any_company(process, settings):
    model = process(X, Y, neighbors=neighbors(5), **settings)
    atom = model.condition(position_of(model))
    mean, variance = atom.moments(NEW)
    for k in range(len(NEW)):
        one, own = atom.moments(NEW[k : k + 1])
        assert (one[0], own[0]) == (mean[k], variance[k])
    many = np.repeat(NEW, 200, axis=0)  # more than a block
    np.testing.assert_array_equal(atom.moments(many)[0], np.repeat(mean, 200))


@pytest.mark.parametrize(("process", "settings"), [PROCESSES[3], PROCESSES[9]])
def test_a_prediction_is_that_given_its_neighbours_alone(process, settings):
    model = process(X, Y, neighbors=neighbors(5, 6), **settings)
    at = position_of(model)
    mean, variance = model.condition(at).moments(NEW)
    for k, near in enumerate(model.neighbors.asked(NEW)):
        few = process(X[near], Y[near], **settings).condition(at)
        expected = few.moments(NEW[k : k + 1])
        assert mean[k] == pytest.approx(expected[0][0], abs=1e-10)
        assert variance[k] == pytest.approx(expected[1][0], abs=1e-10)


@pytest.mark.parametrize(("process", "settings"), [PROCESSES[0], PROCESSES[4], PROCESSES[9]])
def test_the_joint_law_is_that_of_the_errors(process, settings):
    """Under the process itself, whatever the rows ask: Cov(f_s - b_sᵀy, f_t - b_tᵀy)."""
    model = process(X, Y, neighbors=neighbors(5, 6), **settings)
    at = position_of(model)
    atom = model.condition(at)
    mean, covariance = atom.joint(NEW)
    alone, variance = atom.moments(NEW)
    np.testing.assert_allclose(mean, alone, atol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), variance, atol=1e-10)
    prior = model.covariance(at, np.vstack([NEW, X]))
    prior[9:, 9:] += np.diag(np.broadcast_to(np.exp(model.scales(at).log_noise), N))
    A = np.hstack([np.eye(9), np.zeros((9, N))])
    for k, near in enumerate(model.neighbors.asked(NEW)):
        A[k, 9 + near] = -np.linalg.solve(prior[np.ix_(9 + near, 9 + near)], prior[9 + near, k])
    np.testing.assert_allclose(covariance, A @ prior @ A.T, atol=1e-9)


def test_rows_left_out():
    """By the precision; where every row asks all earlier ones it is the dense process that leaves them out."""
    dense, model = KernelProcess(X, Y), KernelProcess(X, Y, neighbors=neighbors(N - 1))
    at = position_of(dense)
    for found, expected in zip(model.leave_one_out(at), dense.leave_one_out(at)):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_groups_take_no_neighbours():
    with pytest.raises(ValueError, match="it takes no neighbours"):
        GroupedProcess(X, Y, neighbors=neighbors(3), n_centred=2)


def test_threads_of_a_process_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(vecchia, "CHUNK", 8)
    model = RoughProcess(X, Y, neighbors=neighbors(5))
    other = RoughProcess(X, Y, neighbors=replace(neighbors(5), n_threads=2))
    at = position_of(model)
    for columns in (None, UNITS):
        value, gradient = model.log_likelihood_gradient(at, 0.0, columns)
        again, same = other.log_likelihood_gradient(at, 0.0, columns)
        assert value == again
        np.testing.assert_array_equal(gradient, same)
    np.testing.assert_array_equal(model.condition(at).moments(NEW), other.condition(at).moments(NEW))


# Neighbours -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 300, 1100])
def test_neighbours_are_the_nearest_earlier_rows(n):
    places = np.random.default_rng(n).standard_normal((n, 3))
    found = nearest_earlier(places, 7)
    order = np.random.default_rng(20).permutation(n)
    assert found.shape == (n, min(7, n - 1))
    for rank, i in enumerate(order):
        earlier = order[:rank]
        expected = earlier[np.argsort(((places[earlier] - places[i]) ** 2).sum(axis=1))][:7]
        np.testing.assert_array_equal(found[i, : len(expected)], expected)
        np.testing.assert_array_equal(found[i, len(expected) :], -1)


def test_neighbours_of_rows_that_are_many_times_the_same():
    """Ties are broken alike every time, and the order stays one."""
    places = np.repeat(np.random.default_rng(1).standard_normal((3, 2)), 400, axis=0)
    found = nearest_earlier(places, 5)
    np.testing.assert_array_equal(found, nearest_earlier(places.copy(), 5))
    rank = np.empty(1200, dtype=int)
    rank[np.random.default_rng(20).permutation(1200)] = np.arange(1200)
    row, column = np.nonzero(found >= 0)
    assert (rank[found[row, column]] < rank[row]).all()
    assert (found >= 0).sum() > 0.95 * found.size


def test_a_row_asks_itself_first_or_not_at_all():
    own, rows = neighbors(5), np.arange(N)
    distance = np.linalg.norm(X[own.asked(X)[:, 0]] - X, axis=1)
    np.testing.assert_allclose(distance, 0.0, atol=1e-12)
    for count in (1, 4, N - 1):
        others = own.nearest_others(rows, count)
        assert others.shape == (N, count)
        assert not (others == rows[:, None]).any()
    np.testing.assert_array_equal(np.sort(others, axis=1), [np.delete(rows, i) for i in rows])
    places = directions(X, own.log_weights)
    distances = np.linalg.norm(places[others] - places[:, None], axis=2)
    assert (np.diff(distances, axis=1) >= -1e-12).all()


def test_what_is_remembered_belongs_to_one_number_of_rows():
    own = neighbors(5, 6)
    own.asked(NEW)
    assert replace(own, n_asked=9).asked(NEW).shape == (9, 9)


def test_what_is_remembered_does_not_travel():
    own = neighbors(5)
    own.asked(NEW)
    back = pickle.loads(pickle.dumps(own))
    assert not back._asked
    np.testing.assert_array_equal(back.sets.members, own.sets.members)


@pytest.mark.parametrize("n_binary", [1, 3])
def test_rows_at_few_places_are_not_short_of_neighbours(n_binary):
    """Each asks as many as there are earlier ones, up to m."""
    n, m = 2000, 30
    places = np.random.default_rng(5).integers(2, size=(n, n_binary)).astype(float)
    found = nearest_earlier(places, m)
    order = np.empty(n, dtype=int)
    order[np.random.default_rng(_SEED).permutation(n)] = np.arange(n)
    assert ((found >= 0).sum(axis=1) == np.minimum(order, m)).all()
    for i in (3, 500, 1999):
        asked = found[i][found[i] >= 0]
        assert (order[asked] < order[i]).all() and len(set(asked)) == len(asked)
