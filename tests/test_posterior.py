"""Draws by name: thinning, labels, R-hat and effective sizes, what is complained about, and the way to ArviZ."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from cadlag.posterior import Posterior, Table


def posterior(draws, labels=None, pointwise=None, **stats):
    """A posterior whose positions are the logarithms of its draws."""
    flat = [values if values.ndim == 3 else values[..., None] for values in draws.values()]
    positions = np.log(np.concatenate(flat, axis=2))
    return Posterior(positions, stats, draws, labels or {}, pointwise)


def independent(seed=0, shape=(4, 500)):
    return np.exp(np.random.default_rng(seed).standard_normal(shape))


@pytest.fixture(scope="module")
def good():
    draws = {"scales": independent(1, (4, 500, 2)), "noise": independent(2)}
    stats = {"log_likelihood": -independent(3), "diverging": np.zeros((4, 500)), "accept": np.full((4, 500), 0.75)}
    return posterior(
        draws, {"scales": ["a", "b"], "absent": ["c"]}, lambda x: x[:, :, :1] - 2.0 * x[:, :, 1:2], **stats
    )


# Table ---------------------------------------------------------------------------------------------------------------


def test_table_is_a_mapping_that_prints():
    table = Table({"name": ["one", "two"], "value": [1.23456, 1e-20]})
    assert list(table) == ["name", "value"]
    assert len(table) == 2
    np.testing.assert_array_equal(table["value"], [1.23456, 1e-20])
    assert repr(table).splitlines() == ["name  value", " one  1.235", " two  1e-20"]
    frame = table.to_pandas()
    assert list(frame.columns) == ["name", "value"]
    assert frame.shape == (2, 2)


# Draws ---------------------------------------------------------------------------------------------------------------


def test_draws_by_name(good):
    assert (good.n_chains, good.n_draws) == (4, 500)
    assert good["scales"].shape == (4, 500, 2)
    np.testing.assert_allclose(np.exp(good.positions[..., 2]), good["noise"], rtol=1e-14)
    with pytest.raises(KeyError):
        good["nothing"]


def test_atoms_are_evenly_spaced(good):
    flat = good.positions.reshape(2000, 3)
    np.testing.assert_array_equal(good.atoms(), flat)
    np.testing.assert_array_equal(good.atoms(2000), flat)
    np.testing.assert_array_equal(good.atoms(5000), flat)
    np.testing.assert_array_equal(good.atoms(2), flat[[0, -1]])
    places = [int(np.flatnonzero((flat == atom).all(axis=1))[0]) for atom in good.atoms(100)]
    assert len(places) == 100
    assert set(np.diff(places)) <= {20, 21}


def test_no_unknowns_at_all():
    """Nothing sampled: every draw is the same empty position, and there is nothing to diagnose or to complain about."""
    empty = Posterior(np.empty((2, 7, 0)), {"log_likelihood": np.ones((2, 7))}, {})
    assert empty.atoms().shape == (14, 0)
    assert empty.atoms(3).shape == (3, 0)
    assert empty.scalars() == {}
    assert len(empty.summary()["parameter"]) == 0
    assert np.isnan(empty.diagnostics()["worst_rhat"])
    assert empty.complaint() is None


# Diagnostics ---------------------------------------------------------------------------------------------------------


def test_summary(good):
    table = good.summary()
    assert list(table["parameter"]) == ["scales[a]", "scales[b]", "noise", "log_likelihood"]
    values = good["scales"][..., 1]
    row = 1
    np.testing.assert_allclose(
        [table[key][row] for key in ("q05", "median", "q95")], np.quantile(values, [0.05, 0.5, 0.95])
    )
    assert table["rhat"][row] == pytest.approx(float(array_stats.rhat(values)))
    assert table["ess_bulk"][row] == pytest.approx(float(array_stats.ess(values, method="bulk")))
    assert np.all(table["rhat"] < 1.01)
    assert np.all(np.abs(table["ess_bulk"] / 2000 - 1.0) < 0.25)


def test_tail_size_is_that_of_the_tails():
    """Draws of a sign that is fresh and a size that is not: the middle mixes well, what is beyond 5 % badly."""
    rng = np.random.default_rng(11)
    log_size = np.zeros((4, 500))
    for k in range(1, 500):
        log_size[:, k] = 0.98 * log_size[:, k - 1] + 0.2 * rng.standard_normal(4)
    values = rng.standard_normal((4, 500)) * np.exp(log_size)
    table = Posterior(values[..., None], {}, {"x": values}).summary()
    tails = [array_stats.ess(values <= np.quantile(values, p), method="mean") for p in (0.05, 0.95)]
    assert table["ess_tail"][0] == pytest.approx(float(min(tails)), rel=0.3)
    assert table["ess_tail"][0] < 0.3 * table["ess_bulk"][0]


def test_independent_draws_raise_no_complaint(good):
    found = good.diagnostics()
    assert good.complaint() is None
    assert (found["n_chains"], found["n_draws"], found["n_divergences"]) == (4, 500, 0)
    assert found["mean_accept"] == 0.75
    assert found["worst_rhat"] == max(good.summary()["rhat"])
    assert found["worst_ess_tail"] == min(good.summary()["ess_tail"])


def test_complaint_names_the_parameter():
    """One chain that stands apart, in one entry of a vector."""
    scales = independent(4, (4, 500, 2))
    scales[3, :, 1] *= 3.0
    apart = posterior({"scales": scales, "noise": independent(5)}, {"scales": ["a", "b"]})
    assert apart.diagnostics()["worst_rhat_parameter"] == "scales[b]"
    assert apart.diagnostics()["worst_rhat"] > 1.1
    complaint = apart.complaint()
    assert "R-hat of scales[b] is" in complaint
    assert "bulk ESS of scales[b] is" in complaint
    assert "extend" in complaint


def test_complaint_begins_at_the_limit_that_it_names():
    """Chains a little apart, by more and more: a complaint wherever R-hat is above 1.01 + K/ESS, and nowhere else."""
    draws, seen = np.random.default_rng(3).standard_normal((4, 1000)), []
    for shift in (0.0, 0.1, 0.15, 0.2, 0.3):
        values = np.exp(draws + shift * np.arange(4)[:, None])
        found = posterior({"noise": values})
        known, said = found.diagnostics(), found.complaint() or ""
        limit = 1.01 + 4 / max(known["worst_ess_bulk"], 100.0)
        assert known["rhat_limit"] == pytest.approx(limit, abs=1e-12)
        assert ("R-hat of noise" in said) == (known["worst_rhat"] > limit)
        assert f"(wanted at most {limit:.3f})" in said or known["worst_rhat"] <= limit
        seen.append(known["worst_rhat"] - limit)
    assert seen[0] < 0.0 < seen[-1] < 0.1


def test_complaint_about_few_independent_draws():
    few = posterior({"noise": independent(6, (2, 30))})
    assert "bulk ESS of noise" in few.complaint()


@pytest.mark.parametrize("n_chains", [1, 2])
def test_complaint_about_chains_that_never_moved(n_chains):
    stuck = posterior({"noise": np.full((n_chains, 50), 2.0)})
    assert "R-hat of noise is inf" in stuck.complaint()
    assert stuck.diagnostics()["worst_ess_bulk"] == 1.0
    apart = posterior({"noise": np.repeat(np.arange(1.0, 1.0 + n_chains)[:, None], 50, axis=1)})
    assert "R-hat of noise is inf" in apart.complaint()


def test_complaint_about_too_short_a_run():
    short = posterior({"noise": independent(7, (4, 3))})
    assert np.isnan(short.diagnostics()["worst_rhat"])
    assert "3 draws a chain are too few" in short.complaint()


def test_one_chain_is_compared_with_itself():
    steady, drifting = independent(8, (1, 600)), independent(9, (1, 600)) * np.linspace(1.0, 20.0, 600)
    assert posterior({"noise": steady}).diagnostics()["worst_rhat"] < 1.02
    assert posterior({"noise": drifting}).diagnostics()["worst_rhat"] > 1.2


def test_failures_are_counted():
    counts = np.array([[0.0, 2.0, np.nan, 1.0, 0.0]])
    found = posterior({"noise": independent(1, (1, 5))}, n_failures=counts, diverging=counts > 0).diagnostics()
    assert (found["n_failures"], found["n_divergences"]) == (3, 2)


# ArviZ ---------------------------------------------------------------------------------------------------------------


def test_to_arviz(good):
    tree = good.to_arviz()
    assert all(name in tree for name in ("posterior", "sample_stats", "log_likelihood"))
    scales = tree["posterior"]["scales"]
    assert scales.dims == ("chain", "draw", "scales_entry")
    assert list(scales.coords["scales_entry"].values) == ["a", "b"]
    np.testing.assert_array_equal(scales.values, good["scales"])
    np.testing.assert_array_equal(tree["posterior"]["noise"].values, good["noise"])
    assert tree["sample_stats"]["diverging"].dtype == bool
    assert not tree["sample_stats"]["diverging"].values.any()
    expected = good.positions[:, :, :1] - 2.0 * good.positions[:, :, 1:2]
    np.testing.assert_array_equal(tree["log_likelihood"]["y"].values, expected)


def test_to_arviz_without_likelihood():
    assert "log_likelihood" not in posterior({"noise": independent(1, (2, 9))}).to_arviz()
