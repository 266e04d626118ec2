"""`neighbors=` of the network: what is chosen, kept in files and predicted; rows left out; runs that go on."""

import numpy as np
import pytest

from cadlag import StableNetworkRegressor, load
from cadlag.kernel_process import asking
from cadlag.linalg.vecchia import Sets, conditionals
from cadlag.network import estimator
from cadlag.storage import read_tree, write_tree

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(8)
X = RNG.uniform(-2.0, 2.0, (90, 2))
Y = 2.0 * (X[:, 0] + X[:, 1] > 0.3) + np.sin(3.0 * X[:, 0]) + 0.2 * RNG.standard_normal(90)
NEW = RNG.uniform(-2.0, 2.0, (15, 2))
SHORT = {"n_draws": 15, "n_warmup": 40, "n_chains": 2, "n_units": 6, "random_state": 3}


@pytest.fixture(scope="module")
def fitted():
    return StableNetworkRegressor(neighbors=8, **SHORT).fit(X, Y)


def test_auto_has_a_bulk_at_any_number_of_rows_and_neighbours_beyond_some(monkeypatch):
    few = StableNetworkRegressor(**SHORT).fit(X, Y)
    assert few.model_.bulk_depth == 1 and few.model_.neighbors is None
    monkeypatch.setattr(asking, "DENSE_UP_TO", 89)
    many = StableNetworkRegressor(**SHORT).fit(X, Y)
    assert many.model_.bulk_depth == 1
    assert many.diagnostics_["n_neighbors"] == StableNetworkRegressor._neighbors_asked
    alone = StableNetworkRegressor(bulk=False, **SHORT).fit(X, Y)
    assert alone.model_.neighbors is None and alone.model_.bulk_depth == 0


def test_many_rows_have_more_units(monkeypatch):
    own = {name: value for name, value in SHORT.items() if name != "n_units"} | {"bulk": False}
    assert StableNetworkRegressor(**own).fit(X, Y).model_.n_units == estimator.N_UNITS
    monkeypatch.setattr(estimator, "MANY_ROWS", 89)
    assert StableNetworkRegressor(**own).fit(X, Y).model_.n_units == estimator.N_UNITS_OF_MANY


def test_it_learns_what_the_full_covariance_learns(fitted):
    dense = StableNetworkRegressor(neighbors=None, **SHORT).fit(X, Y)
    assert np.corrcoef(fitted.predict(NEW), dense.predict(NEW))[0, 1] > 0.9


def test_file_round_trip_and_going_on(tmp_path):
    model, path = StableNetworkRegressor(neighbors=8, **SHORT).fit(X, Y), tmp_path / "model.cadlag"
    model.save(path)
    back = load(path)
    np.testing.assert_array_equal(back.predict(NEW, return_cov=True)[1], model.predict(NEW, return_cov=True)[1])
    assert back.diagnostics_ == model.diagnostics_
    np.testing.assert_array_equal(back.extend(5).posterior_.positions, model.extend(5).posterior_.positions)
    np.testing.assert_array_equal(
        StableNetworkRegressor(neighbors=8, **{**SHORT, "n_draws": 20}).fit(X, Y).posterior_.positions,
        model.posterior_.positions,
    )


def test_a_file_from_before_keeps_its_bulk_in_full(monkeypatch, tmp_path):
    path = tmp_path / "model.cadlag"
    StableNetworkRegressor(neighbors=None, **SHORT).fit(X, Y).save(path)
    tree = read_tree(path, "model")
    del tree["neighbors"], tree["settings"]["neighbors"]
    write_tree(path, tree, "model")
    monkeypatch.setattr(asking, "DENSE_UP_TO", 10)
    assert load(path).model_.neighbors is None


def test_a_row_is_predicted_the_same_in_any_company(fitted):
    together = fitted.predict(NEW, return_std=True)
    for k in range(len(NEW)):
        alone = fitted.predict(NEW[k : k + 1], return_std=True)
        np.testing.assert_allclose([alone[0][0], alone[1][0]], [together[0][k], together[1][k]], rtol=1e-12)


def test_workers_do_not_show(fitted):
    other = StableNetworkRegressor(neighbors=8, n_jobs=2, **SHORT).fit(X, Y)
    np.testing.assert_array_equal(other.posterior_.positions, fitted.posterior_.positions)


def test_the_law_of_a_row_given_others_is_that_of_a_row_of_the_sets(fitted):
    """Given its own set, weights known from all rows: against the conditional written out."""
    model, position = fitted.model_, fitted.posterior_.positions[0, -1]
    sets = model.neighbors.sets
    found = model.log_given(position, sets.members[60:64], sets.sizes[60:64])
    units = model.read(position)
    Phi, n = model.columns(units), len(Y)
    ground = model.ground(units, 0.0)
    V = ground.omega[:, None] * ground.V.apply(np.eye(n)) * ground.omega
    covariance = np.linalg.inv(np.diag(1.0 / model.variances(units)) + Phi.T @ V @ Phi)
    weights = covariance @ Phi.T @ V @ model.y
    points, data = model.process.observe(model.bulk_position(units))
    a, d = conditionals(model.process.local(points, data.weight), sets.members, sets.sizes)
    sd = np.exp(0.5 * data.log_total)
    for k, i in enumerate(range(60, 64)):
        rows, own = sets.members[i, : sets.sizes[i]], a[i, : sets.sizes[i]] / sd[sets.members[i, : sets.sizes[i]]]
        error, column = own @ (model.y - Phi @ weights)[rows], Phi[rows].T @ own
        variance = d[i] + column @ covariance @ column
        expected = -0.5 * (np.log(2.0 * np.pi * variance) + error**2 / variance + data.log_total[i])
        assert found[k] == pytest.approx(expected, rel=1e-7)


def test_rows_left_out_by_the_inverse_and_by_leaving_them_out(fitted):
    """Closed form for each draw, against the dense law of that V."""
    model, position = fitted.model_, fitted.posterior_.positions[0, -1]
    units, found = model.read(position), model.leave_one_out(position)
    ground, Phi = model.ground(units, 0.0), model.columns(units)
    V = ground.omega[:, None] * ground.V.apply(np.eye(len(Y))) * ground.omega
    total = np.linalg.inv(np.linalg.inv(V) + (Phi * model.variances(units)) @ Phi.T)
    np.testing.assert_allclose(found.variances, 1.0 / np.diag(total), rtol=1e-6)
    np.testing.assert_allclose(found.errors, total @ model.y / np.diag(total), rtol=1e-5, atol=1e-8)


def test_sets_are_found_again_among_some_of_the_rows(fitted):
    some = np.arange(0, 90, 3)
    part = fitted.model_.of_rows(some)
    assert isinstance(part.neighbors.sets, Sets) and len(part.neighbors.sets.members) == len(some)


def test_neighbours_without_a_bulk_are_refused():
    with pytest.raises(ValueError, match="neighbors are those of the bulk"):
        StableNetworkRegressor(bulk=False, neighbors=5, **SHORT).fit(X, Y)
