"""
Change points in the Nile flows
===============================

A hundred years of the Nile's yearly flow at Aswan. The flow fell around 1898, and the question is when, by how much,
and how sure one can be of either.
"""

# %%
# One input, a hundred rows: the network with its defaults. Units that jump and units that bend are both allowed, and
# the kernel process takes what is smooth.

import matplotlib.pyplot as plt

from cadlag import StableNetworkRegressor
from cadlag.datasets import load_nile
from cadlag.plots import plot_breaks, plot_fit

years, flow = load_nile()
model = StableNetworkRegressor(random_state=0, n_draws=500, n_warmup=500, n_chains=2).fit(years[:, None], flow)

# %%
# ``break_points()`` gives for each interval between neighbouring years the posterior probability of a jump larger than
# one standard deviation of the noise, and its size.

breaks = model.break_points()
likely = breaks["probability"] > 0.05
for lower, upper, probability, size in zip(
    breaks["lower"][likely], breaks["upper"][likely], breaks["probability"][likely], breaks["size"][likely]
):
    print(f"between {lower:.0f} and {upper:.0f}: probability {probability:.2f}, size {size:.0f}")
print("90 % interval of the year:", breaks.interval(0.9))

# %%
# The dark band is where the function is, the light band where new observations would be.

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), height_ratios=[2, 1], layout="constrained", sharex=True)
plot_fit(model, ax=above, breaks=breaks)
plot_breaks(breaks, ax=below)
above.set(ylabel="flow, 10⁸ m³", xlabel="")
below.set(xlabel="year")

# %%
# Year and size are uncertain together, and both take into account that the flow on either side was not known to be
# constant: in some draws part of the fall is a slope. A model that is told of one jump between two levels is surer.
