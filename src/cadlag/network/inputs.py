"""Moves of the input scales S, which all units share.

With u_jk = v_jk √S_k held fixed the likelihood does not change, so that S_k moves by its prior and those of the v_jk;
with v_jk held fixed all columns change, and with them the likelihood. Both are made, for each is slow where the other
is fast.
"""

import math

import numpy as np

from cadlag.network.atom import Units
from cadlag.network.ground import Ground, Sums
from cadlag.network.model import StableNetwork

N_HELD = 4
N_FREE = 2


def _step(rng: np.random.Generator) -> float:
    """A step on a logarithm, of many sizes."""
    return float(rng.standard_normal()) * math.exp(-4.0 * rng.random() + 1.0)


def _with_scale(units: Units, k: int, log_scale: float) -> Units:
    log_inputs = units.log_inputs.copy()
    log_inputs[k] = log_scale
    return units._replace(log_inputs=log_inputs)


def hold_directions(rng: np.random.Generator, model: StableNetwork, units: Units) -> Units:
    """Each S_k a few times, u_jk held; Jacobian (S_k / S_k')^(M/2)."""
    m, units = model.n_units, units.copy()
    for k in [*range(model.n_input_scales)] * N_HELD:
        step, squares = _step(rng), float((units.W[:, k + 1] ** 2).sum())
        now = float(units.log_inputs[k])
        before, after = model.law.log_density(np.array([now, now + step]))
        ratio = after - before - 0.5 * squares * math.expm1(min(-step, 700.0)) - 0.5 * m * step
        if math.log(1.0 - rng.random()) < ratio:
            units = _with_scale(units, k, now + step)
            units.W[:, k + 1] *= math.exp(-0.5 * step)
    return units


def free_scales(
    rng: np.random.Generator, model: StableNetwork, units: Units, ground: Ground, sums: Sums
) -> tuple[Units, Sums]:
    """A few input scales S_k by a random walk while all v_jk stay, so that columns and likelihood change."""
    variances = model.variances(units)
    value = ground.log_marginal(sums, variances)[0]
    for k in rng.integers(model.n_input_scales, size=N_FREE):
        now = float(units.log_inputs[k])
        proposal = _with_scale(units, k, now + _step(rng))
        before, after = model.law.log_density(np.array([now, proposal.log_inputs[k]]))
        proposed_sums = ground.sums(model.weighted(proposal, ground))
        proposed = ground.log_marginal(proposed_sums, variances)[0]
        if math.log(1.0 - rng.random()) < proposed - value + after - before:
            units, sums, value = proposal, proposed_sums, proposed
    return units, sums


def move_input_scales(
    rng: np.random.Generator, model: StableNetwork, units: Units, ground: Ground, sums: Sums
) -> tuple[Units, Sums]:
    """Both kinds of moves of the input scales; returns the units and what the likelihood needs of them."""
    return free_scales(rng, model, hold_directions(rng, model, units), ground, sums)
