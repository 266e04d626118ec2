"""The published R code as one more chain: its likelihoods, its predictive curves, its posterior.

Reads `r_code` in the directory that CADLAG_REFERENCE names.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import norm

from cadlag.kernel_process.model import KernelProcess
from cadlag.predictive import Predictive
from cadlag.sampling.chains import Plan, Store, new_chains, run

FOLDER = Path(os.environ.get("CADLAG_REFERENCE", "nowhere")) / "r_code"
DATA_SETS = ("sim1d_0", "sim1d_1", "sim2d_0")
BURN_IN = 1000

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no reference runs of the R code: set CADLAG_REFERENCE to the directory that has r_code"
)


def read(name, part):
    """Columns of one file by name."""
    table = np.genfromtxt(FOLDER / f"{name}_{part}.csv", delimiter=",", names=True)
    return {column: np.ascontiguousarray(table[column]) for column in table.dtype.names}


def design(table):
    """The intercept column first, then the inputs."""
    columns = [values for column, values in table.items() if column.startswith("x")]
    return np.stack([np.ones(len(columns[0])), *columns], axis=1)


class Reference:
    """One run of R and our model of the same data."""

    def __init__(self, name):
        train, test = read(name, "train"), read(name, "test")
        trace = read(name, "trace")
        self.prediction = read(name, "pred")
        self.new = design(test)
        self.log_likelihood = trace["loglik"]
        scales = [trace[column] for column in trace if column.startswith(("S0_", "s_layer"))]
        self.positions = np.log(np.stack([*scales, trace["offset"]], axis=1))
        self.model = KernelProcess(design(train), train["y"], preset="published_code", depth=2)


@pytest.fixture(scope="module", params=DATA_SETS)
def reference(request):
    return Reference(request.param)


def test_every_likelihood(reference):
    """All 3,000 rows to 1e-7.

    R updates the diagonal of its covariance by increments, which a huge draw of the noise would spoil; the noise it
    kept never exceeds 4, so no row needs an allowance for that.
    """
    assert len(reference.positions) == 3000
    assert reference.positions.shape[1] == reference.model.dimension
    assert np.exp(reference.positions[:, -1]).max() < 4.0
    ours = np.array([reference.model.log_likelihood(position) for position in reference.positions])
    assert np.abs(ours - reference.log_likelihood).max() < 1e-7


def test_predictive_curves(reference):
    """Median, mean and quantiles of R's draws against the mixture over R's own scales.

    R drew one y* from each of its T = 2,000 states; given the states the draws are independent, however slowly the
    chain moves. At an input with components F_t the share of draws below the mixture's quantile q has variance
    T⁻² Σ F_t(q)(1 - F_t(q)), so R's quantile has that variance over f(q)², and R's mean has variance T⁻² Σ s_t². (R's
    type 7 interpolation moves a quantile by less than one spacing of draws, 1/(T f), a tenth of that error at most.)
    Of about 100 inputs and four curves none may be off by 4.5 standard errors, and their mean square must be near one.
    """
    means, variances = [], []
    for position in reference.positions[BURN_IN:]:
        atom = reference.model.condition(position)
        mean, variance = atom.moments(reference.new)
        means.append(mean)
        variances.append(variance + atom.noise_variance)
    mixture = Predictive(means, variances)
    count = mixture.n_atoms
    assert count == 2000
    scores = {"mean": (reference.prediction["mean"] - mixture.mean) / np.sqrt(mixture.variances.mean(axis=0) / count)}
    for column, level in (("q05", 0.05), ("median", 0.5), ("q95", 0.95)):
        q = mixture.quantile(level)
        F = norm.cdf((q - mixture.means) / np.sqrt(mixture.variances))
        error = np.sqrt((F * (1.0 - F)).mean(axis=0) / count) / mixture.pdf(q)
        scores[column] = (reference.prediction[column] - q) / error
    for column, z in scores.items():
        assert np.abs(z).max() < 4.5, column
        assert 0.6 < np.mean(z**2) < 1.5, column


@pytest.mark.parametrize(("sampler", "n_warmup", "n_draws"), [("independence", 700, 1500), ("nuts", 300, 500)])
def test_same_posterior(reference, sampler, n_warmup, n_draws):
    """Two chains of ours and R's: rank R-hat of the log likelihood, and its means within 4 standard errors.

    R's chain has an effective size of about 100 for the likelihood, so the bound on R-hat is 1.05, and 1.1 in two
    dimensions.
    """
    store, total = Store(2), n_warmup + n_draws
    run(reference.model, Plan(sampler, n_warmup), new_chains(np.random.SeedSequence(0), 2), total, store)
    stats = [[block.stats["log_likelihood"] for block in blocks] for blocks in store.blocks]
    ours = np.stack([np.concatenate(blocks)[n_warmup:] for blocks in stats])
    kept = np.linspace(BURN_IN, 2999, n_draws).astype(int)
    theirs = reference.log_likelihood[kept][None]
    limit = 1.05 if reference.new.shape[1] == 2 else 1.1
    assert array_stats.rhat(np.concatenate([ours, theirs]), method="rank") < limit
    log_noise = np.stack([store.history(c, total)[n_warmup:, -1] for c in range(2)])
    assert array_stats.rhat(np.concatenate([log_noise, reference.positions[kept, -1][None]]), method="rank") < limit
    full = reference.log_likelihood[BURN_IN:][None]
    error = np.sqrt(sum(draws.var() / array_stats.ess(draws, method="mean") for draws in (ours, full)))
    assert abs(ours.mean() - full.mean()) < 4.0 * error
