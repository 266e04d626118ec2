"""Compile what the tests run, half of it in each of two processes, so that their workers find it in numba's cache.

    python -m tests.compiled

Two workers that start with nothing would each compile all of it.
"""

import subprocess
import sys
import warnings

import numpy as np

from cadlag import metrics
from cadlag.methods import METHODS
from cadlag.stable import positive_stable

X = np.linspace(-1.0, 1.0, 12)[:, None]
Y = 3.0 * (X[:, 0] > 0.2) + np.random.default_rng(0).normal(0.0, 0.3, 12)
PLANE = np.column_stack([X, X**2])
FEW = {"n_chains": 1, "n_warmup": 12, "n_draws": 8, "random_state": 0}


def network() -> None:
    """The network's sweeps, with and without bulk."""
    for settings in ({}, {"bulk": False, "input_scales": True}):
        METHODS["network"](**settings, **FEW).fit(X, Y).predict(X)


def others() -> None:
    """Recursions of the orders, cells, scores, the stable law."""
    model = METHODS["kernel"](**FEW).fit(X, Y)
    law = model.predict_distribution(X)
    metrics.score(law, Y)
    law.quantile([0.1, 0.9])
    for settings in ({"order": 0, "depth": 2}, {"order": 2}, {"n_groups": 2, "centers": True}, {"sampler": "tempered"}):
        METHODS["kernel"](**settings, **FEW).fit(X, Y).predict(X)
    for inputs in (X, PLANE):
        METHODS["shallow_stable"](**FEW).fit(inputs, Y).predict(inputs)
    METHODS["bayes_gp"](**FEW).fit(X, Y).predict(X)
    stable = positive_stable(1.2)
    stable.quantile(stable.cdf(np.array([0.5, 2.0])))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        {"network": network, "others": others}[sys.argv[1]]()
    else:
        parts = [subprocess.Popen([sys.executable, "-m", "tests.compiled", part]) for part in ("network", "others")]
        sys.exit(max(part.wait() for part in parts))
