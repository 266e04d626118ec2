"""
A step across an oblique line
=============================

Trees split along the axes, and Gaussian processes smooth. Here the function jumps by 5 across the line x0 + x1 = 0.3.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from cadlag import MLGPRegressor, StableNetworkRegressor
from cadlag.plots import plot_break_lines, plot_breaks, plot_prediction_surface

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(150, 2))
y = 5.0 * (X.sum(axis=1) > 0.3) + 0.5 * rng.standard_normal(150)

network = StableNetworkRegressor(random_state=0, n_draws=300, n_warmup=500, n_chains=2, bulk=False).fit(X, y)
process = MLGPRegressor(random_state=0).fit(X, y)

# %%
# The Gaussian process spreads the step over the distance that it has to; the network keeps it sharp.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, model, title in zip(axes, (network, process), ("network", "Gaussian process")):
    plot_prediction_surface(model, ax=ax)
    ax.set_title(title)

# %%
# How far each is from the truth, away from the noise, at new inputs:

X_new = rng.uniform(-1.0, 1.0, size=(2000, 2))
truth = 5.0 * (X_new.sum(axis=1) > 0.3)
for model in (network, process):
    error = np.sqrt(np.mean((model.predict(X_new) - truth) ** 2))
    print(f"{type(model).__name__}: RMSE against the function {error:.2f}")

# %%
# With several inputs ``break_points()`` is a table of hyperplanes, told apart by how they divide the rows.

breaks = network.break_points()
plot_breaks(breaks)

# %%
# Posterior draws of the likely ones, in the plane of the inputs:

plot_break_lines(network, breaks)
