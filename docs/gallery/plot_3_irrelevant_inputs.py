"""
A table with irrelevant inputs
==============================

Eight inputs of which two matter: one bends the response, one makes it jump. ``feature_relevance()`` is the share of the
posterior function's variance that is lost when an input is permuted.
"""

# %%
import numpy as np
import pandas as pd

from cadlag import StableNetworkRegressor
from cadlag.plots import plot_partial_dependence, plot_relevance

rng = np.random.default_rng(1)
names = ["pressure", "dose", "age", "height", "weight", "hour", "batch", "lab"]
X = pd.DataFrame(rng.uniform(-1.0, 1.0, size=(200, 8)), columns=names)
y = 3.0 * np.sin(2.0 * X["pressure"]) + 4.0 * (X["dose"] > 0.2) + 0.5 * rng.standard_normal(200)

model = StableNetworkRegressor(random_state=0, n_draws=300, n_warmup=500, n_chains=2, bulk=False).fit(X, y)
relevance = model.feature_relevance()
print(pd.DataFrame(dict(relevance)).sort_values("relevance", ascending=False).round(3).to_string(index=False))

# %%
plot_relevance(relevance)

# %%
# What the two that matter do, averaged over the others. The jump is at 0.2, and the band says how well that is known.

plot_partial_dependence(model, "dose")

# %%
plot_partial_dependence(model, "pressure")
