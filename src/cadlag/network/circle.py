"""w(θ) = cos θ·e + sin θ·f: great circles of directions, and a draw over the arcs into which rows divide a part of one.

A sign unit divides the rows alike all along an arc. An arc is drawn with probability proportional to its mass under the
prior, |cos θ|^m dθ, times the likelihood summed over a lattice of scales; then θ within it. Directions w and -w divide
the rows alike, so that half a circle is all of it.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.columns import COMPILED, Array, dot, gain
from cadlag.sampling.choice import pick

HALF_PI = 0.5 * math.pi


@njit(**COMPILED)
def scaled(factor: float, x: Array) -> Array:
    """A multiple of a direction."""
    out = np.empty(len(x))
    for k in range(len(x)):
        out[k] = factor * x[k]
    return out


@njit(**COMPILED)
def combined(a: float, x: Array, b: float, y: Array) -> Array:
    """ax + by."""
    out = np.empty(len(x))
    for k in range(len(x)):
        out[k] = a * x[k] + b * y[k]
    return out


@njit(**COMPILED)
def circle_through(direction: Array, guess: Array) -> tuple[Array, Array, bool]:
    """Unit vectors e, of the direction less its part along the guess, and f, of the guess; and whether both exist."""
    size = math.sqrt(dot(guess, guess))
    if not (size > 0.0 and size < math.inf):
        return direction, guess, False
    f = scaled(1.0 / size, guess)
    e = combined(1.0, direction, -dot(direction, f), f)
    length = math.sqrt(dot(e, e))
    return (scaled(1.0 / length, e), f, True) if length > 0.0 else (direction, guess, False)


@njit(**COMPILED)
def at_angle(rng: np.random.Generator, theta: float, e: Array, f: Array) -> Array:
    """w(θ) with a length drawn afresh, which a sign unit does not feel."""
    direction = combined(math.cos(theta), e, math.sin(theta), f)
    return scaled(math.sqrt(rng.chisquare(len(e))) / math.sqrt(dot(direction, direction)), direction)


@njit(**COMPILED)
def angle_of(direction: Array, e: Array, f: Array) -> float:
    """θ in [-π/2, π/2] of a direction in the plane of e and f, on the side of e."""
    ee, ff, ef = dot(e, e), dot(f, f), dot(e, f)
    we, wf = dot(direction, e), dot(direction, f)
    return math.atan2(wf * ee - we * ef, max(we * ff - wf * ef, 0.0))


@njit(**COMPILED)
def cosine_integral(theta: float, m: int) -> float:
    """∫_0^θ cos^m, by the reduction formula."""
    c, s = math.cos(theta), math.sin(theta)
    value = theta if m % 2 == 0 else s
    k = 2 if m % 2 == 0 else 3
    power = c if m % 2 == 0 else c * c
    while k <= m:
        value = power * s / k + (k - 1.0) / k * value
        power *= c * c
        k += 2
    return value


@njit(**COMPILED)
def arc_mass(theta: float, m: int) -> float:
    """∫_0^θ |cos|^m, for any θ."""
    if m == 0:
        return theta
    turns = math.floor(theta / math.pi + 0.5)
    whole = 2.0 * cosine_integral(HALF_PI, m)
    return turns * whole + cosine_integral(theta - turns * math.pi, m)


@njit(**COMPILED)
def draw_angle(rng: np.random.Generator, low: float, high: float, m: int) -> float:
    """θ in [low, high] with density ∝ |cos θ|^m, by bisection of its integral."""
    start = arc_mass(low, m)
    wanted = start + rng.random() * (arc_mass(high, m) - start)
    left, right = low, high
    for _ in range(60):
        middle = 0.5 * (left + right)
        if arc_mass(middle, m) < wanted:
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


@njit(**COMPILED)
def sum_of_gains(variances: Array, priors: Array, precision: float, half_square: float, top: float) -> float:
    """Σ_k prior_k e^(gain(a_k²) - top)."""
    total = 0.0
    for k in range(len(variances)):
        shrink = 1.0 / (1.0 + variances[k] * precision)
        total += priors[k] * math.sqrt(shrink) * math.exp(half_square * variances[k] * shrink - top)
    return total


@njit(**COMPILED)
def bound_arcs(ends: Array, precision: Array, pull: Array, widest: float, bound: Array) -> int:
    """Above the log weight of each arc but for the prior of scales: |cos|^m is at most 1; returns the likeliest arc."""
    likeliest = 0
    for arc in range(len(bound)):
        span = ends[arc + 1] - ends[arc]
        bound[arc] = -math.inf
        if span > 0.0:
            bound[arc] = math.log(span) + 0.5 * pull[arc] * pull[arc] * widest / (1.0 + widest * precision[arc])
            if bound[arc] > bound[likeliest]:
                likeliest = arc
    return likeliest


@njit(**COMPILED)
def log_weight(
    low: float, high: float, m: int, precision: float, pull: float, variances: Array, priors: Array
) -> float:  # fmt: skip
    """Log of an arc's mass times the likelihood summed over scales."""
    mass = arc_mass(high, m) - arc_mass(low, m)
    if not mass > 0.0:
        return -math.inf
    half_square = 0.5 * pull * pull
    top = half_square * variances[-1] / (1.0 + variances[-1] * precision)
    total = sum_of_gains(variances, priors, precision, half_square, top)
    return math.log(mass) + top + math.log(total) if total > 0.0 else -math.inf


@njit(**COMPILED)
def weigh_arcs(
    ends: Array, m: int, precision: Array, pull: Array, variances: Array, priors: Array, log_total: Array
) -> float:
    """Log weight of each arc between ends, summed over scales, unless below e^-40 of the largest, which is returned."""
    bound, prior_sum = np.empty(len(log_total)), 0.0
    for k in range(len(priors)):
        prior_sum += priors[k]
    reach = math.log(prior_sum) + 40.0
    first = bound_arcs(ends, precision, pull, variances[-1], bound)
    largest = log_weight(ends[first], ends[first + 1], m, precision[first], pull[first], variances, priors)
    for arc in range(len(log_total)):
        log_total[arc] = -math.inf
        if bound[arc] + reach > largest:
            log_total[arc] = log_weight(ends[arc], ends[arc + 1], m, precision[arc], pull[arc], variances, priors)
            largest = max(largest, log_total[arc])
    return largest


@njit(**COMPILED)
def choose_arc(
    rng: np.random.Generator, ends: Array, m: int, precision: Array, pull: Array, variances: Array, log_prior: Array
) -> tuple[int, int]:
    """(arc, index of the scale), from arc mass × prior of the scale × likelihood; variances in increasing order."""
    n_arcs = len(ends) - 1
    log_total = np.empty(n_arcs)
    priors, top = np.empty(len(log_prior)), log_prior.max()
    for k in range(len(log_prior)):
        priors[k] = math.exp(log_prior[k] - top)
    largest = weigh_arcs(ends, m, precision, pull, variances, priors, log_total)
    arc = pick(rng, log_total, largest)
    weights = np.empty(len(variances))
    for k in range(len(variances)):
        weights[k] = log_prior[k] + gain(variances[k], precision[arc], pull[arc])
    return arc, pick(rng, weights, weights.max())
