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
def weigh_arcs(
    ends: Array, m: int, precision: Array, pull: Array, variances: Array, priors: Array, log_total: Array, bound: Array
) -> float:
    """Log weight of each arc between ends, summed over scales, unless below e^-40 of the largest, which is returned."""
    n_arcs, widest, prior_sum, best = len(ends) - 1, variances[-1], 0.0, -math.inf
    for k in range(len(priors)):
        prior_sum += priors[k]
    before = arc_mass(ends[0], m)
    for arc in range(n_arcs):
        after = arc_mass(ends[arc + 1], m)
        mass = after - before
        before = after
        bound[arc] = -math.inf
        if mass > 0.0:
            spread = 1.0 + widest * precision[arc]
            bound[arc] = math.log(mass) + 0.5 * pull[arc] * pull[arc] * widest / spread
            best = max(best, bound[arc] + math.log(priors[-1] / math.sqrt(spread) + 1e-300))
    largest = -math.inf
    for arc in range(n_arcs):
        log_total[arc] = -math.inf
        if bound[arc] > -math.inf and bound[arc] + math.log(prior_sum) > best - 40.0:
            half_square = 0.5 * pull[arc] * pull[arc]
            top = half_square * widest / (1.0 + widest * precision[arc])
            total = sum_of_gains(variances, priors, precision[arc], half_square, top)
            if total > 0.0:
                log_total[arc] = bound[arc] + math.log(total)
                largest = max(largest, log_total[arc])
    return largest


@njit(**COMPILED)
def choose_arc(
    rng: np.random.Generator, ends: Array, m: int, precision: Array, pull: Array, variances: Array, log_prior: Array
) -> tuple[int, int]:
    """(arc, index of the scale), from arc mass × prior of the scale × likelihood; variances in increasing order."""
    n_arcs = len(ends) - 1
    log_total, bound = np.empty(n_arcs), np.empty(n_arcs)
    priors, top = np.empty(len(log_prior)), log_prior.max()
    for k in range(len(log_prior)):
        priors[k] = math.exp(log_prior[k] - top)
    largest = weigh_arcs(ends, m, precision, pull, variances, priors, log_total, bound)
    arc = pick(rng, log_total, largest)
    weights = np.empty(len(variances))
    for k in range(len(variances)):
        weights[k] = log_prior[k] + gain(variances[k], precision[arc], pull[arc])
    return arc, pick(rng, weights, weights.max())
