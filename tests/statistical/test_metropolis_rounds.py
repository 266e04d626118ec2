"""Rounds of tgp's chain keep the joint law of unknowns and data, with data and without; planted bugs do not.

β has a flat prior, so that the data have no law of their own; but the posterior does not change when a linear function
is added to them, so β = 0 stands for any; functions of the data that the tests look at must not change either.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammainc, gammaincc

from cadlag.baselines.bayes_gp import rounds
from cadlag.baselines.bayes_gp.model import LinearMeanProcess
from cadlag.baselines.bayes_gp.rounds import MetropolisRounds
from cadlag.linalg.gaussian import sample_normal

CASES = {"nothing": (0, "expsep"), "expsep": (7, "expsep"), "exp": (7, "exp"), "matern": (7, "matern")}


def small(n, correlation):
    return LinearMeanProcess(np.random.default_rng(3).uniform(size=(n, 2)), np.zeros(n), correlation)


def with_data(rng, model, position):
    """Responses given the unknowns, about a mean of zero."""
    at = model.values(position)
    K = np.tril(model.covariance(at.ranges, at.nugget))
    K = at.variance * (K + np.tril(K, -1).T)
    return replace(model, y=sample_normal(rng, np.zeros(len(K)), K, 1)[0]) if len(K) else model


def white(model):
    """What independent noise would fit of what a linear function leaves, which is all that the posterior knows."""
    if len(model.y) == 0:
        return 0.0
    rest = model.y - model.F @ np.linalg.lstsq(model.F, model.y, rcond=None)[0]
    return -0.5 * model.n_free * (1.0 + math.log(float(rest @ rest) / model.n_free))


def bounded(model, position):
    """Unknowns through their prior distribution functions, how well they fit; squares and products."""
    at = model.values(position)
    u = [
        *(0.5 * (gammainc(1.0, 20.0 * at.ranges) + gammainc(10.0, 10.0 * at.ranges))), -math.expm1(-at.nugget),
        gammaincc(0.5 * at.a0, 0.5 * at.g0 / at.variance),
        -math.expm1(-0.2 * (at.a0 - 2.0)), -math.expm1(-10.0 * at.g0),
    ]  # fmt: skip
    centred = np.array(u) - 0.5
    fit = math.tanh((model.log_likelihood(position) - white(model)) / 3.0)
    return np.concatenate([centred, np.abs(centred), centred * fit, centred[:-1] * centred[1:], [fit]])


def z_scores(model, n_replications, seed=0, rounds=4):
    rng, changes = np.random.default_rng(seed), []
    for _ in range(n_replications):
        before = model.sample_prior(rng)
        given = with_data(rng, model, before)
        after = MetropolisRounds(given, rounds=rounds).step(rng, {"position": before}, 1.0)[0]["position"]
        changes.append(bounded(given, after) - bounded(given, before))
    table = np.array(changes)
    spread = table.std(axis=0, ddof=1)
    return np.sqrt(len(table)) * table.mean(axis=0) / np.where(spread > 0.0, spread, np.inf)


@pytest.mark.parametrize(("case", "n_replications", "rounds"), [("nothing", 1500, 25), ("expsep", 700, 4)])
def test_the_joint_law_stays(case, n_replications, rounds):
    """With nothing, as many as show every planted bug."""
    z = z_scores(small(*CASES[case]), n_replications, rounds=rounds)
    assert np.count_nonzero(z) >= (24 if CASES[case][0] else 17)
    assert np.abs(z).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_joint_law_stays_by_more_draws(case):
    z = z_scores(small(*CASES[case]), 3000, seed=1)
    assert np.abs(z).max() < 4.5
    assert np.mean(z**2) < 2.5


def no_proposal_ratio(patch):
    """The two directions of a move taken for equally likely."""
    log_range = rounds.log_range_prior
    patch.setattr(rounds, "log_range_prior", lambda d: log_range(d) + float(np.log(d).sum()))


def no_nugget_ratio(patch):
    """The same for the nugget."""
    log_nugget = rounds.log_nugget_prior
    patch.setattr(rounds, "log_nugget_prior", lambda g: log_nugget(g) + math.log(g))


def no_degrees_lost(patch):
    """n where n - m should be."""
    patch.setattr(LinearMeanProcess, "n_free", property(lambda self: len(self.y)))


def wrong_hyperprior(patch):
    patch.setattr(rounds, "G0_RATE", 0.1)


BUGS = {
    "no proposal ratio": (no_proposal_ratio, "nothing", 800),
    "no nugget ratio": (no_nugget_ratio, "nothing", 1500),
    "no degrees lost": (no_degrees_lost, "expsep", 300),
    "wrong hyperprior": (wrong_hyperprior, "nothing", 800),
}
LATER = ("no proposal ratio", "no nugget ratio", "wrong hyperprior")


@pytest.mark.parametrize("bug", [pytest.param(bug, marks=pytest.mark.slow if bug in LATER else ()) for bug in BUGS])
def test_planted_bugs_are_seen(bug, monkeypatch):
    plant, case, n_replications = BUGS[bug]
    plant(monkeypatch)
    assert np.abs(z_scores(small(*CASES[case]), n_replications, rounds=25)).max() > 5.5


@pytest.mark.slow
def test_a_long_chain_without_data_is_the_prior():
    """4.8.4: the mixture of ranges, Exp(1) for the nugget and Exp(1/5) for a0 - 2, by their distribution functions.

    A range needs a thousand rounds from one half of its prior to the other, so errors are those of means of batches.
    """
    model = small(0, "expsep")
    kernel, rng = MetropolisRounds(model, rounds=50), np.random.default_rng(2)
    state, positions = kernel.init(rng), []
    for _ in range(3000):
        state, _ = kernel.step(rng, state, 1.0)
        positions.append(state["position"])
    draws = {name: values[0] for name, values in model.named(np.array([positions])).items()}
    halves = [stats.gamma(1.0, scale=1 / 20), stats.gamma(10.0, scale=1 / 10)]
    shares = [np.mean([half.cdf(draws["ranges"][:, j]) for half in halves], axis=0) for j in range(2)]
    shares += [stats.expon.cdf(draws["nugget"]), stats.expon(scale=5.0).cdf(draws["a0"] - 2.0)]
    for share in shares:
        for power in (1, 2, 3):
            batches = (share**power).reshape(20, -1).mean(axis=1)
            z = (batches.mean() - 1 / (power + 1)) / (batches.std(ddof=1) / np.sqrt(len(batches)))
            print(f"z {z:.2f}, standard error {batches.std(ddof=1) / np.sqrt(len(batches)):.3f}")
            assert abs(z) < 4.5
