"""Intervals of the deep inverse Wishart process cover what its own prior draws, as often as they say.

The posterior is approximate, and degrees of freedom and noise are chosen by the bound, so that only a band can be asked
for. Intervals of observations would hardly miss the uncertainty of the function (noise alone covers 85 % here, and the
prior 79 %); those of the function do (the spread of its means alone covers 15 %).
"""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from cadlag import DIWPRegressor
from statistical.wishart import dense_map

N_TRAIN, N_TEST, N_REPLICATIONS = 20, 15, 30
DELTA, NOISE = 4.0, 0.3


def replicate(seed):
    """Inputs of training and test rows, the function at all of them, and observations."""
    rng = np.random.default_rng([17, seed])
    n = N_TRAIN + N_TEST
    X = rng.uniform(-2.0, 2.0, (n, 1))
    features = np.column_stack([X, np.ones(n)])
    K = dense_map(features @ features.T / 2.0)
    G = stats.invwishart(DELTA + n + 1.0, DELTA * K).rvs(random_state=rng)
    f = np.linalg.cholesky(dense_map(G)) @ rng.standard_normal(n)
    return X, f, f + NOISE * rng.standard_normal(n)


def coverage(seed):
    """Shares of test rows in the 90 % intervals of the function and of observations."""
    X, f, y = replicate(seed)
    model = DIWPRegressor(
        amplitude=False, standardize=False, n_inducing=N_TRAIN, n_steps=600, learning_rates=(0.05, 0.01), n_samples=2,
        n_atoms=200, random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:N_TRAIN], y[:N_TRAIN])
    shares = []
    for kind, at in (("function", f[N_TRAIN:]), ("observation", y[N_TRAIN:])):
        low, high = model.predict_interval(X[N_TRAIN:], 0.9, kind=kind).T
        shares.append(float(np.mean((low <= at) & (at <= high))))
    return shares


@pytest.mark.slow
def test_intervals_cover_what_the_prior_draws():
    shares = np.array([coverage(seed) for seed in range(N_REPLICATIONS)])
    error = shares.std(axis=0, ddof=1) / np.sqrt(N_REPLICATIONS)
    print(f"coverage of function and observation {shares.mean(axis=0)}, standard errors {error}")
    assert 0.80 < shares[:, 1].mean() < 0.97
    assert 0.75 < shares[:, 0].mean() < 0.97
