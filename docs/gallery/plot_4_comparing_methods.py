"""
Comparing methods on your own table
===================================

The same folds for every method, and scores of the whole predictive law, not of its middle only. ``cadlag compare`` does
this from the command line.
"""

# %%
import numpy as np

from cadlag.compare import compare, summarise
from cadlag.plots import plot_comparison

rng = np.random.default_rng(2)
X = np.sort(rng.uniform(-1.0, 1.0, size=90))[:, None]
y = np.where(X[:, 0] > 0.25, 4.0, 0.0) + np.sin(3.0 * X[:, 0]) + 0.4 * rng.standard_normal(90)

methods = ["network", "kernel", "nngp", "ml_gp", "random_forest"]
settings = {"n_draws": 200, "n_warmup": 300, "n_chains": 2}
rows = summarise(list(compare(X, y, methods, n_folds=3, seed=0, settings=settings)))

print(f"{'method':15}{'RMSE':>8}{'CRPS':>8}{'coverage':>10}{'width':>8}{'seconds':>9}")
for row in rows:
    print(
        f"{row['method']:15}{row['rmse']:8.3f}{row['crps']:8.3f}{row['coverage']:10.2f}{row['width']:8.2f}{row['seconds']:9.1f}"
    )

# %%
# CRPS is in the unit of the response; smaller is better. A method whose intervals cover much less than 90 % is too sure
# of itself, one that covers more gives more width than it needs.

plot_comparison(rows, score="crps")
