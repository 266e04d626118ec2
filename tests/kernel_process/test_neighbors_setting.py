"""`neighbors=` of the regressor: what is chosen, what is kept in files, what is said and refused."""

from dataclasses import replace

import numpy as np
import pytest

from cadlag import StableKernelRegressor, load
from cadlag.kernel_process import asking, pilot
from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian
from cadlag.storage import read_tree, write_tree

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(8)
X = RNG.uniform(-2.0, 2.0, (80, 2))
Y = np.sin(3.0 * X[:, 0]) + 0.2 * RNG.standard_normal(80)
NEW = RNG.uniform(-2.0, 2.0, (15, 2))
SHORT = {"n_draws": 15, "n_warmup": 30, "n_chains": 2, "random_state": 3}


@pytest.fixture(scope="module")
def fitted():
    return StableKernelRegressor(neighbors=6, **SHORT).fit(X, Y)


def test_auto_is_the_full_covariance_for_few_rows(monkeypatch):
    few = StableKernelRegressor(**SHORT).fit(X, Y)
    assert few.model_.neighbors is None
    assert "n_neighbors" not in few.diagnostics_
    monkeypatch.setattr(asking, "DENSE_UP_TO", 79)
    many = StableKernelRegressor(**SHORT).fit(X, Y)
    assert many.diagnostics_["n_neighbors"] == StableKernelRegressor._neighbors_asked
    centred = StableKernelRegressor(centers=True, **SHORT).fit(X, Y)
    assert centred.model_.neighbors is None


def test_it_learns_what_the_full_covariance_learns(fitted):
    dense = StableKernelRegressor(neighbors=None, **SHORT).fit(X, Y)
    few, all_of_them = fitted.predict(NEW), dense.predict(NEW)
    assert np.corrcoef(few, all_of_them)[0, 1] > 0.95
    assert fitted.diagnostics_["n_neighbors"] == 6
    assert fitted.diagnostics_["n_asked"] in (6, 12, 24, 48, 79)


def test_file_round_trip(fitted, tmp_path):
    path = tmp_path / "model.cadlag"
    fitted.save(path)
    back = load(path)
    np.testing.assert_array_equal(back.predict(NEW, return_cov=True)[1], fitted.predict(NEW, return_cov=True)[1])
    np.testing.assert_array_equal(back.model_.neighbors.sets.members, fitted.model_.neighbors.sets.members)
    assert back.diagnostics_ == fitted.diagnostics_
    further = fitted.extend(5).posterior_.positions  # the fixture's own goes on too: last use of its draws as they were
    np.testing.assert_array_equal(back.extend(5).posterior_.positions, further)


def test_a_file_from_before_has_its_covariance_in_full(monkeypatch, tmp_path):
    path = tmp_path / "model.cadlag"
    StableKernelRegressor(neighbors=None, **SHORT).fit(X, Y).save(path)
    tree = read_tree(path, "model")
    del tree["neighbors"], tree["settings"]["neighbors"]
    write_tree(path, tree, "model")
    monkeypatch.setattr(asking, "DENSE_UP_TO", 10)
    assert load(path).model_.neighbors is None


@pytest.mark.parametrize(
    "change", [{"n_asked": 0}, {"n_asked": "x"}, {"n_neighbors": 10**9}, {"log_weights": np.zeros(1)}]
)
def test_a_damaged_file_is_refused(fitted, tmp_path, change):
    path = tmp_path / "model.cadlag"
    fitted.save(path)
    tree = read_tree(path, "model")
    tree["neighbors"].update(change)
    write_tree(path, tree, "model")
    with pytest.raises(ValueError, match="is not a complete model file"):
        load(path)


@pytest.mark.parametrize("settings", [{"centers": True}, {"n_groups": 2}])
def test_groups_and_centres_take_no_neighbours(settings):
    with pytest.raises(ValueError, match="neighbors go with one group without a centre"):
        StableKernelRegressor(neighbors=5, **settings, **SHORT).fit(X, Y)


def test_memory_is_linear_in_the_rows():
    model = StableKernelRegressor(neighbors=20)
    model._asks, model.n_features_in_ = 20, 3
    assert model._memory(200_000).n_bytes == 2.0 * model._memory(100_000).n_bytes < 1e9


def test_what_does_not_fit_is_refused_with_its_remedy():
    with pytest.raises(MemoryError, match=r"A fit to 80 rows that ask 6 others .* use fewer neighbors"):
        StableKernelRegressor(neighbors=6, max_memory=1e4, **SHORT).fit(X, Y)


def test_a_checkpoint_belongs_to_one_number_of_neighbours(tmp_path):
    StableKernelRegressor(neighbors=6, **SHORT).fit(X, Y, checkpoint=tmp_path)
    again = StableKernelRegressor(neighbors=6, **SHORT).fit(X, Y, checkpoint=tmp_path)
    assert again.posterior_.positions.shape == (2, 15, 5)
    for other in (5, None):
        with pytest.raises(ValueError, match="checkpoint"):
            StableKernelRegressor(neighbors=other, **SHORT).fit(X, Y, checkpoint=tmp_path)


def test_data_without_noise_are_predicted():
    """Where rows determine each other, those that tell nothing more are not asked."""
    rows = np.linspace(-1.0, 1.0, 120)[:, None]
    model = StableKernelRegressor(neighbors=8, noise_variance=1e-13, **SHORT).fit(rows, rows[:, 0] ** 2)
    new = np.array([[0.05], [-0.71]])
    np.testing.assert_allclose(model.predict(new), new[:, 0] ** 2, atol=1e-2)


def test_known_noise_of_each_row_goes_with_the_rows(monkeypatch):
    monkeypatch.setattr(pilot, "N_PILOT", 20)
    known = Gaussian(np.linspace(0.01, 0.5, 80))
    model = pilot.with_neighbors(KernelProcess(X, Y, likelihood=known), 5)
    again = pilot.with_neighbors(KernelProcess(X, Y, likelihood=known), 5)
    np.testing.assert_array_equal(model.neighbors.log_weights, again.neighbors.log_weights)
    np.testing.assert_array_equal(model.neighbors.sets.members, again.neighbors.sets.members)


def test_neighbours_are_near_in_what_matters_to_all_rows():
    """A slow wave along one input, which few rows show, beside one that says nothing."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1.0, 1.0, (1500, 2))
    wave = np.sin(25.0 * rows[:, 0]) + 0.1 * rng.standard_normal(1500)
    model = pilot.with_neighbors(KernelProcess(rows, wave), 10)
    asked = model.neighbors.nearest_others(np.arange(300), 10)
    gaps = np.abs(rows[asked] - rows[:300, None]).mean(axis=(0, 1))
    assert gaps[0] < 0.2 * gaps[1]


def test_more_rows_are_asked_where_they_tell_more():
    """Noise about a line: the more rows the better. Where the function is nothing they tell nothing."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([np.ones(400), rng.uniform(-1.0, 1.0, 400)])
    noisy = rows[:, 1] + rng.standard_normal(400)
    at = np.array([[0.0, 0.0, 0.0, 0.0]])
    model = pilot.with_neighbors(KernelProcess(rows, noisy), 4)
    assert pilot.choose_asked(model, at) > 8
    at[0, 2] = -20.0
    assert pilot.choose_asked(model, at) == 4


def test_draws_are_fewer_where_each_costs_more():
    assert pilot.most_draws(20) > 1000
    assert 1 <= pilot.most_draws(320) < 100


def test_nothing_unknown_is_no_obstacle():
    """At α = 2 with known noise a position has no numbers."""
    settings = {"alpha": 2.0, "noise_variance": 0.04, "n_draws": 2, "n_warmup": 0, "n_chains": 1}
    sparse, dense = (StableKernelRegressor(neighbors=m, **settings).fit(X, Y) for m in (79, None))
    np.testing.assert_allclose(sparse.predict(NEW), dense.predict(NEW), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_a_new_row_asks_all_of_few_rows(n):
    """With as many neighbours as there are rows predictions are those of the full covariance."""
    settings = {"alpha": 2.0, "noise_variance": 0.04, "n_draws": 2, "n_warmup": 0, "n_chains": 1}
    sparse, dense = (StableKernelRegressor(neighbors=m, **settings).fit(X[:n], Y[:n]) for m in (20, None))
    np.testing.assert_allclose(
        sparse.predict(NEW, return_std=True), dense.predict(NEW, return_std=True), rtol=1e-6, atol=1e-8
    )


def test_rows_that_cannot_be_fitted_are_refused_in_one_sentence():
    twice = np.repeat(X[:20], 2, axis=0)
    with pytest.raises(ValueError, match="these data cannot be fitted as they are"):
        StableKernelRegressor(noise_variance=1e-300, neighbors=4, **SHORT).fit(twice, RNG.standard_normal(40))


def test_a_checkpoint_belongs_to_its_neighbours(fitted):
    """Whose search may change from one version to the next."""
    before, found = fitted._fingerprint(), fitted.model_.neighbors
    members = found.sets.members.copy()
    members[70, 1:] = np.arange(members.shape[1] - 1)
    moved = fitted.__class__(neighbors=6, **SHORT)
    moved.__dict__ |= fitted.__dict__
    moved.model_ = replace(fitted.model_, neighbors=replace(found, sets=found.sets._replace(members=members)))
    assert moved._fingerprint() != before
    moved.model_ = fitted.model_
    assert moved._fingerprint() == before
