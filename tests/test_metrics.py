"""Scores against numbers worked out by hand, and against calibrated data."""

import numpy as np
import pytest
from scipy import stats

from cadlag import metrics
from cadlag.predictive import Predictive

Y = np.array([0.0, 1.0, 2.0, 3.0])


def test_point_scores() -> None:
    prediction = [0.0, 2.0, 0.0, 3.0]
    assert metrics.rmse(Y, prediction) == pytest.approx(np.sqrt(5 / 4))
    assert metrics.mae(Y, prediction) == pytest.approx(3 / 4)


def test_interval_scores_count_the_ends() -> None:
    lower, upper = [0.0, 1.5, 1.0, 3.5], [1.0, 2.0, 2.0, 4.0]
    assert metrics.coverage(Y, lower, upper) == 0.5
    assert metrics.interval_width(lower, upper) == pytest.approx(0.75)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((4, 1)), 0.0])
def test_nothing_is_broadcast(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="one length"):
        metrics.rmse(Y, bad)
    with pytest.raises(ValueError, match="one length"):
        metrics.mae(bad, Y)
    with pytest.raises(ValueError, match="one length"):
        metrics.coverage(Y, bad, Y)


def test_nothing_to_score() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        metrics.rmse([], [])


def standard(n: int) -> Predictive:
    return Predictive(np.zeros((1, n)), np.ones((1, n)))


def test_probabilistic_scores_of_a_normal() -> None:
    law = standard(4)
    crps = Y * (2 * stats.norm.cdf(Y) - 1) + 2 * stats.norm.pdf(Y) - 1 / np.sqrt(np.pi)
    assert metrics.mean_crps(law, Y) == pytest.approx(crps.mean(), rel=1e-12)
    assert metrics.log_score(law, Y) == pytest.approx(stats.norm.logpdf(Y).mean(), rel=1e-12)
    np.testing.assert_allclose(metrics.pit(law, Y), stats.norm.cdf(Y), rtol=1e-13)


def test_pit_is_uniform_exactly_when_calibrated() -> None:
    rng = np.random.default_rng(11)
    atoms, chosen = rng.normal(size=(5, 2000)), rng.integers(5, size=2000)
    y = atoms[chosen, np.arange(2000)] + rng.standard_normal(2000)
    pits = [metrics.pit(Predictive(atoms, np.full(atoms.shape, v)), y) for v in (1.0, 0.3)]
    assert stats.kstest(pits[0], "uniform").pvalue > 0.01
    assert stats.kstest(pits[1], "uniform").pvalue < 1e-4


def test_score_collects_every_score() -> None:
    rng = np.random.default_rng(12)
    law = Predictive(rng.exponential(size=(30, 4)), rng.uniform(0.1, 1.0, size=(30, 4)))
    lower, upper = law.interval(0.5).T
    expected = {
        "rmse": metrics.rmse(Y, law.mean),
        "mae": metrics.mae(Y, law.mean),
        "crps": metrics.mean_crps(law, Y),
        "log_score": metrics.log_score(law, Y),
        "coverage": metrics.coverage(Y, lower, upper),
        "width": metrics.interval_width(lower, upper),
    }
    assert metrics.score(law, Y, point="mean", coverage=0.5) == expected
    assert metrics.score(law, Y)["rmse"] == metrics.rmse(Y, law.median)
    assert metrics.score(law, Y)["width"] == metrics.interval_width(*law.interval(0.9).T)
    assert all(type(value) is float for value in expected.values())


def test_score_of_noise_has_nominal_coverage() -> None:
    y = np.random.default_rng(13).standard_normal(4000)
    scores = metrics.score(standard(4000), y, coverage=0.8)
    assert scores["coverage"] == pytest.approx(0.8, abs=0.02)
    assert scores["width"] == pytest.approx(2 * stats.norm.ppf(0.9), rel=1e-12)
    assert scores["crps"] == pytest.approx(1 / np.sqrt(np.pi), abs=0.02)


def test_score_refuses_an_unknown_point() -> None:
    with pytest.raises(ValueError, match="median"):
        metrics.score(standard(4), Y, point="mode")
