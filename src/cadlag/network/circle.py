"""w(θ) = cos θ·e + sin θ·f: an exact Gibbs draw over every dichotomy that a sign unit makes on a great circle.

Along θ in [-π/2, π/2) each row changes sides once, at θ_i = atan2(-x̃_i·e, x̃_i·f) mod π. Walking the sorted angles, the
precision S and the pull t of the candidate column change by one row at a time. An arc is drawn with
probability proportional to its mass under the prior, cos^m θ dθ, times the likelihood summed over a lattice of scales.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.columns import COMPILED, Array, Explained, gain
from cadlag.sampling.choice import pick

HALF_PI = 0.5 * math.pi


@njit(**COMPILED)
def circle_through(direction: Array, guess: Array) -> tuple[Array, Array, bool]:
    """Unit vectors e, of the direction less its part along the guess, and f, of the guess; and whether both exist."""
    size = math.sqrt(np.sum(guess * guess))
    if not (size > 0.0 and size < math.inf):
        return direction, guess, False
    f = guess / size
    e = direction - np.sum(direction * f) * f
    length = math.sqrt(np.sum(e * e))
    return (e / length, f, True) if length > 0.0 else (direction, guess, False)


@njit(**COMPILED)
def at_angle(rng: np.random.Generator, theta: float, e: Array, f: Array) -> Array:
    """w(θ) with a length drawn afresh, which a sign unit does not feel."""
    direction = math.cos(theta) * e + math.sin(theta) * f
    length = math.sqrt(np.sum(direction * direction))
    scaled: Array = direction * (math.sqrt(rng.chisquare(len(e))) / length)
    return scaled


@njit(**COMPILED)
def angle_of(direction: Array, e: Array, f: Array) -> float:
    """θ in [-π/2, π/2] of a direction in the plane of e and f, on the side of e."""
    ee, ff, ef = np.sum(e * e), np.sum(f * f), np.sum(e * f)
    we, wf = np.sum(direction * e), np.sum(direction * f)
    return math.atan2(wf * ee - we * ef, max(we * ff - wf * ef, 0.0))


@njit(**COMPILED)
def switch_angles(X: Array, omega: Array, e: Array, f: Array, angles: Array, signs: Array) -> None:
    """Where each row changes sides, and the candidate's entry at θ = -π/2."""
    n, q = X.shape
    for i in range(n):
        a, b = 0.0, 0.0
        for k in range(q):
            a += X[i, k] * e[k]
            b += X[i, k] * f[k]
        if b == 0.0:
            angles[i] = -HALF_PI
            signs[i] = -omega[i] if a >= 0.0 else omega[i]
        else:
            angles[i] = math.atan(-a / b)
            signs[i] = -omega[i] if b > 0.0 else omega[i]


@njit(**COMPILED)
def signs_on_arc(order: np.ndarray, signs: Array, arc: int) -> Array:
    """The candidate on an arc, from that at θ = -π/2."""
    out = signs.copy()
    for i in order[:arc]:
        out[i] = -signs[i]
    return out


@njit(**COMPILED)
def walk(
    order: np.ndarray, signs: Array, squares: Array, fit: Explained, noise: float, precision: Array, pull: Array
) -> None:
    """S and t of the candidate on each of the n + 1 arcs, given its φᵀVφ; `signs` ends at θ = π/2. In O(nM)."""
    images, P, residual = fit.images, fit.P, fit.residual
    n, m = P.shape
    u, t, used = np.zeros(m), 0.0, 0.0
    for i in range(n):
        t += signs[i] * residual[i]
        for k in range(m):
            u[k] += P[i, k] * signs[i]
    for i in range(n):
        fitted = 0.0
        for k in range(m):
            fitted += images[i, k] * u[k]
        used += signs[i] * fitted
    precision[0], pull[0] = max(squares[0] - used, 0.0) / noise, t / noise
    for step in range(n):
        i = order[step]
        s = signs[i]
        leverage, along = 0.0, 0.0
        for k in range(m):
            along += images[i, k] * u[k]
            leverage += images[i, k] * P[i, k]
            u[k] -= 2.0 * s * P[i, k]
        used += 4.0 * s * (s * leverage - along)
        t -= 2.0 * s * residual[i]
        signs[i] = -s
        precision[step + 1], pull[step + 1] = max(squares[step + 1] - used, 0.0) / noise, t / noise


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
def draw_angle(rng: np.random.Generator, low: float, high: float, m: int) -> float:
    """θ in [low, high] with density ∝ cos^m θ, by bisection of its integral."""
    start = cosine_integral(low, m)
    wanted = start + rng.random() * (cosine_integral(high, m) - start)
    left, right = low, high
    for _ in range(60):
        middle = 0.5 * (left + right)
        if cosine_integral(middle, m) < wanted:
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


@njit(**COMPILED)
def draw_angle_in(rng: np.random.Generator, arc: int, angles: Array, order: np.ndarray, m: int) -> float:
    """θ on one of the n + 1 arcs."""
    low = angles[order[arc - 1]] if arc > 0 else -HALF_PI
    high = angles[order[arc]] if arc < len(order) else HALF_PI
    return draw_angle(rng, low, high, m)


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
    angles: Array, order: np.ndarray, m: int, precision: Array, pull: Array, variances: Array, priors: Array,
    log_total: Array, bound: Array,
) -> float:  # fmt: skip
    """Log weight of each arc, summed over scales; returns the largest. Below e^-40 of it, arcs are not looked at."""
    n, widest, prior_sum = len(order), variances[-1], priors.sum()
    best = -math.inf
    before = cosine_integral(-HALF_PI, m)
    for arc in range(n + 1):
        after = cosine_integral(angles[order[arc]] if arc < n else HALF_PI, m)
        mass = after - before
        before = after
        bound[arc] = -math.inf
        if mass > 0.0:
            spread = 1.0 + widest * precision[arc]
            bound[arc] = math.log(mass) + 0.5 * pull[arc] * pull[arc] * widest / spread
            best = max(best, bound[arc] + math.log(priors[-1] / math.sqrt(spread) + 1e-300))
    largest = -math.inf
    for arc in range(n + 1):
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
    rng: np.random.Generator, angles: Array, order: np.ndarray, m: int, precision: Array, pull: Array,
    variances: Array, log_prior: Array,
) -> tuple[float, int]:  # fmt: skip
    """(θ, index of the scale), from arc mass × prior of the scale × likelihood; variances in increasing order."""
    n = len(order)
    log_total, bound = np.empty(n + 1), np.empty(n + 1)
    priors = np.exp(log_prior - log_prior.max())
    largest = weigh_arcs(angles, order, m, precision, pull, variances, priors, log_total, bound)
    arc = pick(rng, log_total, largest)
    weights = np.empty(len(variances))
    for k in range(len(variances)):
        weights[k] = log_prior[k] + gain(variances[k], precision[arc], pull[arc])
    k = pick(rng, weights, weights.max())
    return draw_angle_in(rng, arc, angles, order, m), k
