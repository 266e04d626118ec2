"""Moves on s, τ and σ² that need only ΦᵀΦ, Φᵀy and yᵀy: exchanges, random walks, shifts of τ against scales."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from cadlag.likelihood import log_half_cauchy_of_log
from cadlag.linalg.low_rank import log_marginal_of_sums
from cadlag.network.columns import COMPILED, Array, from_log, write
from cadlag.stable import density_of_log

N_WALKS = 12
LOG_LEAST = math.log(1e-10)  # of σ²: responses that units fit exactly would send it to zero, and the arithmetic astray


class Priors(NamedTuple):
    """What is random, and how: log of a_j²/(τ²s_j), the table of the density of log s, half-Cauchy σ^power / scale.

    And what is not: the prior variances of the columns beside the units.
    """

    log_factor: float
    stable: bool
    table: tuple[float, float, Array]
    tau_known: bool
    noise_known: bool
    noise_power: float
    noise_scale: float
    fixed: Array


log_half_cauchy = njit(**COMPILED)(log_half_cauchy_of_log)


@njit(**COMPILED)
def all_variances(log_scale: float, log_s: Array, fixed: Array) -> Array:
    """a_j² = e^(log_scale + log s_j) of the units, then those of the columns beside them."""
    m, out = len(log_s), np.empty(len(log_s) + len(fixed))
    for j in range(len(out)):
        out[j] = from_log(log_scale + log_s[j]) if j < m else fixed[j - m]
    return out


@njit(**COMPILED)
def width(rng: np.random.Generator) -> float:
    """A step on a logarithm, of many sizes."""
    return rng.standard_normal() * math.exp(-4.0 * rng.random() + 0.7)


@njit(**COMPILED)
def exchange_scales(
    rng: np.random.Generator, log_s: Array, log_scale: float, noise: float, fixed: Array, gram: Array, products: Array,
    square: float, n: int, value: float,
) -> float:  # fmt: skip
    """Swap the scales of random pairs; returns the log likelihood."""
    m = len(log_s)
    for _ in range(m if m > 1 else 0):
        i = int(rng.random() * m)
        j = int(rng.random() * (m - 1))
        j = j + 1 if j >= i else j
        log_s[i], log_s[j] = log_s[j], log_s[i]
        variances = all_variances(log_scale, log_s, fixed)
        proposed = log_marginal_of_sums(gram, products, square, n, variances, noise)[0]
        if math.log(1.0 - rng.random()) < proposed - value:
            value = proposed
        else:
            log_s[i], log_s[j] = log_s[j], log_s[i]
    return value


@njit(**COMPILED)
def shift_largest(
    rng: np.random.Generator, log_s: Array, log_tau: float, noise: float, priors: Priors, gram: Array,
    products: Array, square: float, n: int, value: float,
) -> tuple[float, float]:  # fmt: skip
    """τ → τe^c with s → s e^(-2c) for the r largest, whose a_j stay; refused where they would not be the largest."""
    m, (intercept, rate, table) = len(log_s), priors.table
    r, step = min(int((m + 1.0) ** rng.random()), m), width(rng)
    order, shifted, before, after = np.argsort(log_s), log_s.copy(), np.empty(r), np.empty(r)
    for index in range(r):
        j = order[m - 1 - index]
        shifted[j] -= 2.0 * step
        before[index], after[index] = log_s[j], shifted[j]
    if r < m and after[r - 1] <= log_s[order[m - 1 - r]]:
        return log_tau, value
    prior = log_half_cauchy(log_tau + step) - log_half_cauchy(log_tau)
    prior += np.sum(density_of_log(after, intercept, rate, table)[0])
    prior -= np.sum(density_of_log(before, intercept, rate, table)[0])
    proposed = value
    if r < m:
        variances = all_variances(2.0 * (log_tau + step) + priors.log_factor, shifted, priors.fixed)
        proposed = log_marginal_of_sums(gram, products, square, n, variances, noise)[0]
    if math.log(1.0 - rng.random()) < proposed - value + prior:
        write(shifted, log_s)
        return log_tau + step, proposed
    return log_tau, value


@njit(**COMPILED)
def walk_noise(
    rng: np.random.Generator, variances: Array, log_v: float, extra: float, priors: Priors, gram: Array,
    products: Array, square: float, n: int, value: float,
) -> tuple[float, float]:  # fmt: skip
    """A step of log σ²; returns it and the log likelihood."""
    log_new, power = log_v + width(rng), 0.5 * priors.noise_power
    proposed = log_marginal_of_sums(gram, products, square, n, variances, from_log(log_new) + extra)[0]
    shift = math.log(priors.noise_scale)
    prior = log_half_cauchy(power * log_new - shift) - log_half_cauchy(power * log_v - shift)
    accepted = log_new > LOG_LEAST and math.log(1.0 - rng.random()) < proposed - value + prior
    return (log_new, proposed) if accepted else (log_v, value)


@njit(**COMPILED)
def walk_tau(
    rng: np.random.Generator, log_s: Array, log_tau: float, noise: float, priors: Priors, gram: Array,
    products: Array, square: float, n: int, value: float,
) -> tuple[float, float]:  # fmt: skip
    """A step of log τ; returns it and the log likelihood."""
    log_new = log_tau + width(rng)
    variances = all_variances(2.0 * log_new + priors.log_factor, log_s, priors.fixed)
    proposed = log_marginal_of_sums(gram, products, square, n, variances, noise)[0]
    prior = log_half_cauchy(log_new) - log_half_cauchy(log_tau)
    return (log_new, proposed) if math.log(1.0 - rng.random()) < proposed - value + prior else (log_tau, value)


@njit(**COMPILED)
def walk_scales(
    rng: np.random.Generator, log_s: Array, log_tau: float, log_v: float, extra: float, priors: Priors, gram: Array,
    products: Array, square: float, n: int,
) -> tuple[float, float]:  # fmt: skip
    """Exchange, then walk, a_j² = τ² e^log_factor s_j, noise e^log_v + extra; returns log τ, log σ²."""
    noise = from_log(log_v) + extra
    variances = all_variances(2.0 * log_tau + priors.log_factor, log_s, priors.fixed)
    value = log_marginal_of_sums(gram, products, square, n, variances, noise)[0]
    if priors.stable:
        value = exchange_scales(
            rng, log_s, 2.0 * log_tau + priors.log_factor, noise, priors.fixed, gram, products, square, n, value
        )  # fmt: skip
    for _ in range(N_WALKS):
        if not priors.noise_known:
            variances = all_variances(2.0 * log_tau + priors.log_factor, log_s, priors.fixed)
            log_v, value = walk_noise(rng, variances, log_v, extra, priors, gram, products, square, n, value)
            noise = from_log(log_v) + extra
        if not priors.tau_known:
            log_tau, value = walk_tau(rng, log_s, log_tau, noise, priors, gram, products, square, n, value)
            if priors.stable:
                log_tau, value = shift_largest(
                    rng, log_s, log_tau, noise, priors, gram, products, square, n, value
                )  # fmt: skip
    return log_tau, log_v
