"""How far another seed moves the predictions, whether chains drift, and what is said of both."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from cadlag.posterior import Posterior
from cadlag.trust import (
    ENSEMBLE,
    POSTERIOR,
    UNFINISHED,
    Trust,
    drifts,
    half_widths,
    probability_of_signs,
    probe_inputs,
    standard_error,
)


def test_width_of_one_normal_law():
    widths = half_widths(np.zeros((5, 3)), np.broadcast_to([1.0, 4.0, 0.25], (5, 3)))
    np.testing.assert_allclose(widths, norm.ppf(0.84) * np.array([1.0, 2.0, 0.5]), rtol=1e-6)


@pytest.mark.parametrize("n_groups", [4, 9])
def test_standard_error_is_what_other_seeds_show(n_groups):
    """Its mean square over many ensembles is the variance of their means, in units of the widths."""
    rng, spread, widths = np.random.default_rng(n_groups), np.array([0.5, 2.0, 1.0]), np.array([1.0, 3.0, 0.7])
    ensembles = spread * rng.standard_normal((4000, n_groups, 3))
    told = np.mean([standard_error(groups, widths) ** 2 for groups in ensembles])
    true = np.mean(ensembles.mean(axis=1).var(axis=0) / widths**2)
    assert told == pytest.approx(true, rel=0.05)
    assert told == pytest.approx(np.mean(spread**2 / widths**2) / n_groups, rel=0.05)


def test_probability_of_signs_by_hand():
    """Of the four ways to sign two more chains after 1, 2, 3 only one makes a sum as long as all together."""
    assert probability_of_signs(np.array([[1.0], [2.0], [3.0]])) == 0.25
    assert probability_of_signs(np.array([[1.0], [-2.0], [3.0]])) == 0.75  # sums 2, 6, -4 and 0
    assert probability_of_signs(np.ones((20, 2))) == 1.0 / 1024.0


def test_chains_without_drift_are_rarely_said_to_drift():
    """Their halves differ, but not all the same way: at most one in twenty, autocorrelated or not."""
    rng = np.random.default_rng(5)
    steps = rng.standard_normal((400, 8, 40, 3))
    assert np.mean([drifts(values) for values in steps]) == pytest.approx(0.05, abs=0.03)
    assert np.mean([drifts(values) for values in np.cumsum(steps, axis=2)]) == pytest.approx(0.05, abs=0.03)


def test_chains_that_climb_are_said_to_drift():
    climbing = np.random.default_rng(6).standard_normal((8, 40, 1)) + np.linspace(0.0, 3.0, 40)[:, None]
    assert drifts(climbing) and drifts(-climbing)
    climbing[::2] *= -1.0
    assert not drifts(climbing)


def test_probes_are_between_neighbours_and_of_the_data_alone():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 5.0]])
    np.testing.assert_array_equal(probe_inputs(X), [[1.0, 0.5], [1.0, 3.0], [1.0, 0.5], [1.0, 3.0]])
    many = np.random.default_rng(0).standard_normal((1000, 3))
    assert probe_inputs(many).shape == (200, 3)
    np.testing.assert_array_equal(probe_inputs(np.ones((5, 2))), np.ones((5, 2)))


def test_probes_of_a_grid_lie_in_all_directions():
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    offsets = {tuple(offset) for offset in probe_inputs(grid) - grid}
    assert {(0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.0, -0.5)} <= offsets


def test_neighbours_are_near_whatever_the_units():
    X = np.array([[0.0, 0.0], [1.0, 90.0], [2.0, 1.0], [40.0, 1.0]])
    scaled = X * [1.0, 1e6]
    np.testing.assert_allclose(probe_inputs(scaled), probe_inputs(X) * [1.0, 1e6])


def trust_of(shifts, n_draws=200, group=1, noise=1.0, climb=0.0, drift=0.0):
    """From chains whose function and only parameter are shifted."""
    rng, n_chains = np.random.default_rng(11), len(shifts)
    parameter = noise * rng.standard_normal((n_chains, n_draws)) + np.asarray(shifts)[:, None]
    stats = {"log_target": rng.standard_normal((n_chains, n_draws)) + np.linspace(0.0, climb, n_draws)}
    posterior = Posterior(np.zeros((n_chains, n_draws, 1)), stats, {"a": parameter})
    means = 0.1 * rng.standard_normal((n_chains, 20, 5)) + np.asarray(shifts)[:, None, None]
    means += np.linspace(0.0, drift, 20)[:, None]
    return Trust.of(posterior, means, np.ones((n_chains, 20, 5)), group)


def test_chains_of_one_law_are_a_posterior():
    found = trust_of(np.zeros(8))
    assert found.agree and found.enough and found.reproducibility < 0.05
    assert found.verdict(0.2) == POSTERIOR


def test_chains_apart_are_an_ensemble_where_their_mean_is_precise():
    shifts = 0.3 * np.random.default_rng(2).standard_normal(12)
    found = trust_of(shifts, noise=0.01)
    assert not found.agree
    scale = 0.5 * np.ptp(norm.ppf([0.16, 0.84])) * math.sqrt(1.0 + shifts.var())
    assert found.reproducibility == pytest.approx(shifts.std(ddof=1) / math.sqrt(12) / scale, rel=0.15)
    assert found.verdict(0.2) == ENSEMBLE
    assert found.verdict(found.reproducibility / 1.01) == UNFINISHED


def test_predictions_that_drift_are_no_ensemble_and_a_log_target_that_climbs_is_said():
    shifts = 0.3 * np.random.default_rng(2).standard_normal(12)
    still, climbing, drifting = (trust_of(shifts, noise=0.01, **how) for how in ({}, {"climb": 3.0}, {"drift": 1.0}))
    assert [found.verdict(0.2) for found in (still, climbing, drifting)] == [ENSEMBLE, ENSEMBLE, UNFINISHED]
    assert [found.climbing for found in (still, climbing, drifting)] == [False, True, False]


def test_few_chains_are_no_ensemble():
    assert trust_of([0.0, 0.1, -0.1, 0.05], noise=0.001).verdict(1.0) == UNFINISHED


def test_chains_that_meet_count_once():
    """Pairs that share their shift: the standard error is that of half as many chains."""
    shifts = np.repeat(np.random.default_rng(3).standard_normal(6), 2)
    apart, met = trust_of(shifts, noise=0.01), trust_of(shifts, group=2, noise=0.01)
    assert met.reproducibility == pytest.approx(apart.reproducibility * math.sqrt(11.0 / 5.0), rel=0.02)
    assert math.isnan(trust_of(shifts, group=12, noise=0.01).reproducibility)
    assert trust_of(np.zeros(8), group=8).reproducibility < 0.05  # chains that mix forget whom they have met


def test_trust_round_trips_as_a_tree():
    found = trust_of(np.zeros(8))
    assert Trust.from_tree(vars(found)) == found
    for name, value in (("reproducibility", "1"), ("drifting", 1), ("n_effective", 400), ("n_chains", 8.0),
                        ("climbing", None)):  # fmt: skip
        with pytest.raises(ValueError, match="damaged"):
            Trust.from_tree({**vars(found), name: value})
