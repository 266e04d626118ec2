"""r² = mean_i var_g(μ_gi) / (G s_i²): how far another seed would move the predictions, and what may be read of draws.

Independent chains have one law, so the spread of their predictive means μ_gi at inputs x_i gives the standard error of
the mean over all of them, whether they mix or not; s_i, half the central 68 % width of a new observation's law, is its
unit. Chains that meet are not independent: g counts the groups in which they meet. The x_i lie half-way between
training rows and near neighbours of theirs, for at the rows themselves chains with little noise all interpolate.

r tells spread, not what all chains lack. As long as predictions drift, the second half of the draws differs from the
first in the same direction in most chains: were there no drift, each chain's difference could as well have the other
sign. The log target may go on climbing for thousands of iterations in which predictions stay as good as they were: it
is looked at in the same way, and said, but nothing waits for it.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.posterior import ESS_LIMIT, Posterior
from cadlag.predictive import Predictive

Array = NDArray[np.float64]

N_PROBES = 200
FEWEST_GROUPS = 4  # whose spread is worth a standard error
FEWEST_CHAINS = 8  # that may be taken for an ensemble
UNLIKELY = 0.05  # probability of signs as much alike as these, without drift
CLOSE, SLOW = 0.05, 0.3  # R-hat beyond its limit that more draws may cure, where an average could do and where not
_ALL_SIGNS, _SOME_SIGNS = 10, 1024
_CENTRAL = (0.16, 0.84)

POSTERIOR, ENSEMBLE, UNFINISHED, FAST = "posterior", "ensemble", "unfinished", "fast"


def probe_inputs(X: Array) -> Array:
    """Points half-way between some rows and their nearest places, their second nearest .. in turn, two for each input.

    They are a function of the data alone, and on a grid no direction is left out.
    """
    n = len(X)
    if n < 2:
        return X.copy()
    spread = X.std(axis=0)
    scaled = X / np.where(spread > 0.0, spread, 1.0)
    rows = np.unique(np.linspace(0, n - 1, N_PROBES).round().astype(int))
    n_ways = max(2 * int((spread > 0.0).sum()), 1)
    points = X[rows]
    for k, i in enumerate(rows):
        distances = ((scaled - scaled[i]) ** 2).sum(axis=1)
        near = np.argsort(np.where(distances > 0.0, distances, np.inf), kind="stable")
        n_elsewhere = int((distances > 0.0).sum())
        if n_elsewhere:
            points[k] = 0.5 * (X[i] + X[near[min(k % n_ways, n_elsewhere - 1)]])
    return points


def half_widths(means: Array, variances: Array) -> Array:
    """Half the central 68 % width of a mixture of normal laws at each input, from those of its draws, (T, m)."""
    low, high = Predictive(means, variances).quantile(np.array(_CENTRAL)).T
    return 0.5 * (high - low)


def standard_error(means: Array, widths: Array) -> float:
    """r, from the predictive means of independent groups, (G, m)."""
    return math.sqrt(float(np.mean(means.var(axis=0, ddof=1) / widths**2)) / len(means))


def probability_of_signs(differences: Array) -> float:
    """How often signs at random make the sum of the chains' differences, (K, m), as long as it is."""
    k = len(differences)
    if k <= _ALL_SIGNS:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=k - 1))).reshape(-1, k - 1)
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_SOME_SIGNS, k - 1))
        signs[0] = 1.0
    sums = differences[0] + signs @ differences[1:]
    lengths = (sums**2).sum(axis=1)
    return float(np.mean(lengths >= lengths[0] * (1.0 - 1e-9)))


def drifts(values: Array, scale: Array | float = 1.0) -> bool:
    """Whether the second half of the draws, (K, draws, m), is elsewhere than the first, the same way in most chains."""
    half = values.shape[1] // 2
    if half == 0 or len(values) < 2:
        return False
    differences = (values[:, -half:].mean(axis=1) - values[:, :half].mean(axis=1)) / scale
    return probability_of_signs(differences) < UNLIKELY


@dataclass(frozen=True)
class Trust:
    """How far the draws of some chains can be trusted.

    Attributes
    ----------
    reproducibility
        r; NaN where there are too few independent groups to tell.
    drifting
        Whether predictions still drift.
    excess
        The worst R-hat beyond its limit; NaN where nothing was sampled.
    n_effective
        Effective draws of the parameter that has fewest.
    n_chains
        How many chains there are.
    climbing
        Whether the log target still climbs.
    """

    reproducibility: float
    drifting: bool
    excess: float
    n_effective: float
    n_chains: int
    climbing: bool = False

    @classmethod
    def of(cls, posterior: Posterior, means: Array, variances: Array, group: int) -> "Trust":
        """From draws of chains that met in groups, and predictive means and variances of some of them, (K, J, m)."""
        n_chains, _, m = means.shape
        found = posterior.diagnostics()
        excess = found["worst_rhat"] - found["rhat_limit"]
        n_effective = found["worst_ess_bulk"]
        widths, own = half_widths(means.reshape(-1, m), variances.reshape(-1, m)), means.mean(axis=1)
        apart = own.reshape(-1, group, m).mean(axis=1) if n_chains % group == 0 else own[:1]
        if len(apart) < FEWEST_GROUPS and not (excess > 0.0 or n_effective < ESS_LIMIT):
            apart = own  # chains that mix forget whom they have met
        r = standard_error(apart, widths) if len(apart) >= FEWEST_GROUPS else math.nan
        climbing = drifts(posterior.stats["log_target"][:, :, None])
        return cls(r, drifts(means, widths), excess, n_effective, n_chains, climbing)

    @classmethod
    def from_tree(cls, tree: Any) -> "Trust":
        """What a file holds of it."""
        kinds = {"reproducibility": float, "drifting": bool, "excess": float, "n_effective": float, "n_chains": int,
                 "climbing": bool}  # fmt: skip
        if not isinstance(tree, dict) or any(type(tree.get(name)) is not kind for name, kind in kinds.items()):
            raise ValueError("what it says of its chains is damaged")
        return cls(**{name: tree[name] for name in kinds})

    @property
    def agree(self) -> bool:
        """Whether R-hat of every parameter is within its limit."""
        return not self.excess > 0.0

    @property
    def mixing(self) -> bool:
        """Whether more draws may make the chains agree: they nearly do, or are not known to be worth averaging."""
        return not self.excess > (CLOSE if self.reproducibility < math.inf else SLOW)

    @property
    def enough(self) -> bool:
        """Whether every parameter has the effective draws that are wanted."""
        return not self.n_effective < ESS_LIMIT

    @property
    def missing(self) -> float:
        """How many times as many draws of each chain would be about enough; twice as many at most."""
        return 2.0 if self.enough else min(max(1.2 * ESS_LIMIT / max(self.n_effective, 1.0), 1.25), 2.0)

    def verdict(self, precision: float) -> str:
        """What the draws may be used for: "posterior", "ensemble" or "unfinished"."""
        if self.agree and self.enough:
            return POSTERIOR
        is_wide = self.n_chains >= FEWEST_CHAINS and self.reproducibility <= precision
        return ENSEMBLE if is_wide and not self.drifting else UNFINISHED
