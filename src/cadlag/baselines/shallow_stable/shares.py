"""p(S₁/T | T), T = S₁ + S₂, S₁ = r^(1/a) S', S₂ = (1-r)^(1/a) S'', S' and S'' positive a-stable: how a sum divides.

When a new input cuts a cell in parts of measure rq and (1-r)q, the scale of the cell, in units of q^(1/a), is such a
sum T, which is positive a-stable itself. Given T, the share p = S₁/T has density ∝ f₁(pT) f₂((1-p)T).

At a = ½ this is a normal law in disguise: ζ = (p - r)/√(p(1-p)) has |ζ| = √(2T)|Z|, Z standard normal, and of the two
shares with that |ζ| each is taken with probability r(1-r)/(p + r - 2rp); these add to one. The distribution function is
Φ(ζ/√(2T)) + (1-2r) exp(r(1-r)/T) Φ(-η/√(2T)), η = (p + r - 2rp)/√(p(1-p)). At a = 1 the share is r. Between, the
smaller of S₁ and S₂ is proposed from its own law and accepted by the density of the larger, T/2 at least, relative to
its maximum there: exact, and rarely in more than ten trials unless T is deep in its left tail.

Random numbers belong to (draw, cell), whatever new inputs are asked for: the share is a function of r for each of them.
"""

import math
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from cadlag.baselines.shallow_stable.plane import COMPILED, Array, Index
from cadlag.baselines.shallow_stable.sweep import Table, density
from cadlag.stable import PositiveStable, kanter

N_TRIALS = 8  # in a block of random numbers
MOST_BLOCKS = 400  # a sum so small that none of their trials succeeds has a share of r but for a few per cent


def divide(seed: tuple[int, ...], cells: Index, n_cells: int, r: Array, log_total: Array, law: PositiveStable) -> Array:
    """The shares of two parts in the scales of cells."""
    if law.index == 1.0 or len(r) == 0:
        return np.array([r, 1.0 - r])
    if law.index == 0.5:
        uniforms = np.random.default_rng((*seed, 0)).random((n_cells, 3))
        return _divide_levy(cells, r, log_total, uniforms)
    out, pending = np.array([r, 1.0 - r]), np.arange(len(r))
    mode = _log_mode(law)
    for block in range(MOST_BLOCKS):
        uniforms = np.random.default_rng((*seed, block)).random((n_cells, 4 * N_TRIALS))
        done = _try_to_divide(
            pending, cells, r, log_total, uniforms, law.index, law.taylor, law.density_table, mode, out
        )  # fmt: skip
        pending = pending[~done]
        if len(pending) == 0:
            break
    return out


@lru_cache(maxsize=256)
def _log_mode(law: PositiveStable) -> float:
    """Where the density of S is largest."""
    ends = tuple(law.quantile([1e-6, 0.9]))
    return float(minimize_scalar(lambda x: float(x - law.log_density(x)), bounds=ends, method="bounded").x)


@njit(**COMPILED)
def _divide_levy(cells: Index, r: Array, log_total: Array, uniforms: Array) -> Array:
    """The two roots of (p - r)² = c p (1 - p), c = 2TZ², and one of them; neither p nor 1 - p loses digits."""
    out = np.empty((2, len(r)))
    for i in range(len(r)):
        u, part, rest = uniforms[cells[i]], r[i], 1.0 - r[i]
        z = -2.0 * math.log1p(-u[0]) * math.cos(2.0 * math.pi * u[1]) ** 2
        c = min(2.0 * math.exp(log_total[i]) * z, 1e300)
        root = math.sqrt(c) * math.sqrt(c + 4.0 * part * rest)
        high = (part + 0.5 * (c + root)) / (1.0 + c)
        low = part / (1.0 + c) * (part / high)
        not_low = (rest + 0.5 * (c + root)) / (1.0 + c)
        not_high = rest / (1.0 + c) * (rest / not_low)
        takes_low = u[2] * (low * rest + part * not_low) < part * rest
        out[0, i], out[1, i] = (low, not_low) if takes_low else (high, not_high)
    return out


@njit(**COMPILED)
def _log_density(log_s: float, log_unit: float, table: Table) -> float:
    """Log density of S times a unit, at e^log_s, up to a constant."""
    return density(log_s - log_unit, table) - log_s


@njit(**COMPILED)
def _try_to_divide(
    pending: Index, cells: Index, r: Array, log_total: Array, uniforms: Array, index: float, taylor: Array,
    table: Table, mode: float, out: Array,
) -> NDArray[np.bool_]:  # fmt: skip
    """A block of trials for each sum that is not yet divided; returns which now are."""
    done = np.zeros(len(pending), dtype=np.bool_)
    for k in range(len(pending)):
        i = pending[k]
        units = math.log(r[i]) / index, math.log1p(-r[i]) / index
        log_t, half = log_total[i], log_total[i] - math.log(2.0)
        # the larger part's largest density, where the first is the smaller one and where the second is
        top_2 = _log_density(min(max(mode + units[1], half), log_t), units[1], table)
        top_1 = _log_density(min(max(mode + units[0], half), log_t), units[0], table)
        first = 1.0 / (1.0 + math.exp(top_1 - top_2))
        u = uniforms[cells[i]].reshape(N_TRIALS, 4)
        fresh = kanter(math.pi * np.maximum(u[:, 1], 1e-16), np.maximum(-np.log1p(-u[:, 2]), 1e-18), index, taylor)
        for trial in range(N_TRIALS):
            smaller = 0 if u[trial, 0] < first else 1
            log_small = fresh[trial] + units[smaller]
            if log_small >= half:
                continue
            share = math.exp(log_small - log_t)
            density = _log_density(log_t + math.log1p(-share), units[1 - smaller], table)
            if math.log(1.0 - u[trial, 3]) < density - (top_2 if smaller == 0 else top_1):
                out[smaller, i], out[1 - smaller, i] = share, 1.0 - share
                done[k] = True
                break
    return done
