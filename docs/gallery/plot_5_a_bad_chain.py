"""
Diagnosing a bad chain
======================

The published sampler of the kernel process proposes scales from their prior. With little noise almost all proposals are
refused; the chains then stand still, each in its own place. This is what that looks like, and what to do.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

from cadlag import StableKernelRegressor
from cadlag.plots import plot_ranks, plot_trace

rng = np.random.default_rng(3)
X = rng.uniform(-1.0, 1.0, size=(120, 3))
y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.standard_normal(120)
settings = {"n_draws": 500, "n_warmup": 500, "n_chains": 4, "random_state": 0}

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    bad = StableKernelRegressor(sampler="independence", **settings).fit(X, y)
good = StableKernelRegressor(**settings).fit(X, y)

# %%
# A fit that has not converged says so when it ends.

for warning in told:
    print(warning.message)
for name, model in (("independence", bad), ("nuts", good)):
    found = model.diagnostics_
    print(f"{name}: worst R-hat {found['worst_rhat']:.3f}, smallest effective size {found['worst_ess_bulk']:.0f}")

# %%
# Chains that agree look alike, and each spends as much time at every rank as the others.

figure, axes = plt.subplots(2, 2, figsize=(10, 6), layout="constrained")
for column, (name, model) in enumerate((("independence", bad), ("nuts", good))):
    plot_trace(model.posterior_, ax=axes[0, column])
    plot_ranks(model.posterior_, ax=axes[1, column])
    axes[0, column].set_title(name)

# %%
# What to do about a warning: use the default sampler; draw more (``model.extend(n_draws=2000)`` continues the chains
# bit for bit); and if chains settle in different places however long they run, predict with more of them and do not
# read meaning into single draws.
