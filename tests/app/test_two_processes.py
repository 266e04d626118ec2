"""A model file written by one process gives the same predictions in another, to the last bit."""

import subprocess
import sys

import numpy as np
import pytest

from cadlag.methods import METHODS

QUIET = "ignore::sklearn.exceptions.ConvergenceWarning"
SHORT = {"n_draws": 20, "n_warmup": 20, "n_chains": 2}
TINY = {
    "ml_gp": {"n_starts": 1}, "diwp": {"n_steps": 5, "n_atoms": 3, "n_inducing": 6},
    **{name: SHORT for name in ("network", "kernel", "nngp", "bayes_gp", "shallow_stable")},
}  # fmt: skip
READER = """
import sys
import numpy as np
from cadlag import load
model, X = load(sys.argv[1]), np.load(sys.argv[2])
np.save(sys.argv[3], np.column_stack([model.predict(X), model.predict_interval(X)]))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("method", METHODS)
def test_another_process_predicts_the_same(method, tmp_path):
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1.0, 1.0, (30, 2)), rng.uniform(-1.0, 1.0, (50, 2))
    model = METHODS[method](**TINY[method], random_state=0).fit(X, 3.0 * (X[:, 0] > 0.0) + rng.normal(0.0, 0.3, 30))
    model.save(tmp_path / "model.cadlag")
    np.save(tmp_path / "new.npy", new)
    paths = [str(tmp_path / name) for name in ("model.cadlag", "new.npy", "there.npy")]
    subprocess.run([sys.executable, "-c", READER, *paths], check=True)
    here = np.column_stack([model.predict(new), model.predict_interval(new)])
    np.testing.assert_array_equal(np.load(paths[2]), here)
