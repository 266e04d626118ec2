"""R's tgp against the exact posterior, where its chains move most slowly: 2-d, Matérn correlation.

`tgp_long_chains.csv` (`python -m benchmarks.tgp_reference --long-chains`) has states of two chains of 50,000 rounds
each, in which the logarithm of the nugget has but 50 to 90 effective draws. The exact posterior is by quadrature over
range and nugget, and over a₀ and g₀ given them, σ² being integrated; independent draws of it have no error of mixing.
R's errors come from effective sizes, or from batches of 5,000 rounds.
"""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.special import gammaln, logsumexp

from cadlag import BayesGPRegressor
from cadlag.baselines.bayes_gp.prior import A0_RATE, G0_RATE, LEAST_A0, Values, log_nugget_prior, log_range_prior
from cadlag.datasets import simulate
from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.predictive import Predictive

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The chains do not agree yet")]

LIMIT = 4.5
N_DRAWS, N_BATCHES = 3000, 10
LOG_RANGES, LOG_NUGGETS = np.linspace(-4.5, -0.5, 60), np.linspace(-10.5, 2.0, 50)
LOG_A0, LOG_G0 = np.linspace(-7.0, 4.5, 100), np.linspace(-11.5, 1.0, 100)


def model_of(**settings):
    """The model on R's data, mapped to the unit cube as R does."""
    data = simulate("2d", 0)
    new = data.X_test[:81:4]
    fitted = BayesGPRegressor(
        "loria_bhadra", scale_over="train_and_test", sampler="tgp", n_draws=1, n_warmup=0, n_chains=1, random_state=0,
        **settings,
    ).fit(data.X_train, data.y_train, X_test=new)  # fmt: skip
    return fitted.model_, fitted.input_scaling_.apply(new)


@cache
def chains():
    """Natural unknowns of R's chains, (2, 500, 5)."""
    with (Path(__file__).parent / "tgp_long_chains.csv").open() as file:
        rows = [[float(row[name]) for name in ("d", "nug", "s2", "a0", "g0")] for row in csv.DictReader(file)]
    return np.array(rows).reshape(2, -1, 5)


def hyperparameters(model, square):
    """Log density of a₀ and g₀ on their lattice given λ, σ² integrated."""
    a0, g0 = (LEAST_A0 + np.exp(LOG_A0))[:, None], np.exp(LOG_G0)
    prior = LOG_A0[:, None] + LOG_G0 - A0_RATE * (a0 - LEAST_A0) - G0_RATE * g0
    shape = 0.5 * (a0 + model.n_free)
    return (
        prior + 0.5 * a0 * np.log(0.5 * g0) - gammaln(0.5 * a0) + gammaln(shape) - shape * np.log(0.5 * (g0 + square))
    )


def log_posterior(model, log_range, log_nugget):
    """Log density at a place of the lattice of range and nugget, and λ there."""
    at = Values(np.exp([log_range]), np.exp(log_nugget), 1.0, 5.0, 1.0)
    try:
        fit = model.fit(at)
    except NotPositiveDefiniteError:
        return -np.inf, np.nan
    prior = log_range_prior(at.ranges) + log_nugget_prior(at.nugget) + log_range + log_nugget
    determinants = 0.5 * (fit.log_det_coefficients - fit.log_det)
    return prior + determinants + logsumexp(hyperparameters(model, fit.square)), fit.square


def pick(rng, log_density, count=None):
    """Places of a table, drawn by their density."""
    weights = np.exp(log_density - log_density.max()).ravel()
    return np.unravel_index(rng.choice(weights.size, count, p=weights / weights.sum()), log_density.shape)


def within(rng, lattice, place):
    """A natural value from the cell about a place."""
    return float(np.exp(lattice[place] + (rng.random() - 0.5) * (lattice[1] - lattice[0])))


def exact_draws(model, count=N_DRAWS):
    """Independent draws of the posterior, natural unknowns in R's order."""
    rng = np.random.default_rng(0)
    table = np.array([[log_posterior(model, d, g) for g in LOG_NUGGETS] for d in LOG_RANGES])
    density, squares = table[..., 0], table[..., 1]
    found = []
    for i, j in zip(*pick(rng, density, count)):
        a, g = pick(rng, hyperparameters(model, squares[i, j]))
        a0, g0 = LEAST_A0 + within(rng, LOG_A0, a), within(rng, LOG_G0, g)
        variance = 0.5 * (g0 + squares[i, j]) / rng.standard_gamma(0.5 * (a0 + model.n_free))
        found.append([within(rng, LOG_RANGES, i), within(rng, LOG_NUGGETS, j), variance, a0, g0])
    return np.array(found)


def logs(unknowns):
    return np.log(unknowns - np.array([0.0, 0.0, 0.0, LEAST_A0, 0.0]))


def z_of_unknowns(draws):
    """Of the means of the logarithms."""
    theirs, ours = logs(chains()), logs(draws)
    sizes = np.array([float(array_stats.ess(theirs[..., k])) for k in range(5)])
    error = np.sqrt(theirs.var(axis=(0, 1)) / sizes + ours.var(axis=0) / len(ours))
    print("effective draws of R's chains", sizes.round())
    return (theirs.mean(axis=(0, 1)) - ours.mean(axis=0)) / error


def statistics(model, new, unknowns):
    """Mean and 5, 50, 95 % quantiles of new observations given draws of the unknowns."""
    atoms = [model.condition(model.position(Values(row[:1], *row[1:]))) for row in unknowns]
    means, variances = np.stack([atom.moments(new) for atom in atoms], axis=1)
    law = Predictive(means, variances + np.array([[atom.noise_variance] for atom in atoms]))
    return np.column_stack([law.mean, law.quantile([0.05, 0.5, 0.95])])


def z_of_predictions(model, new, draws):
    """Of each statistic at each test row."""
    centres, errors = [], []
    for sample, batches in ((chains().reshape(-1, 5), 2 * N_BATCHES), (draws, 2 * N_BATCHES)):
        parts = np.array([statistics(model, new, part) for part in np.split(sample, batches)])
        centres.append(statistics(model, new, sample))
        errors.append(parts.std(axis=0, ddof=1) / np.sqrt(batches))
    widths = [centre[:, 3] - centre[:, 1] for centre in centres]
    print(f"width of intervals, R's over exact: {np.mean(widths[0] / widths[1]):.3f}")
    return (centres[0] - centres[1]) / np.hypot(*errors)


def test_long_chains_have_the_exact_law():
    model, new = model_of()
    draws = exact_draws(model)
    unknowns, predictions = z_of_unknowns(draws), z_of_predictions(model, new, draws)
    worst = np.abs(predictions).max(axis=0)
    print(f"z of log d, g, s2, a0 - 2, g0: {unknowns.round(2)}; of predictions: {worst.round(2)}")
    assert np.abs(unknowns).max() < LIMIT
    assert np.abs(predictions).max() < LIMIT


def test_another_smoothness_is_told_apart():
    assert np.abs(z_of_unknowns(exact_draws(model_of(nu=2.5)[0], 1000))).max() > 2.0 * LIMIT
