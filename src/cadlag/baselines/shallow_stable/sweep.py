"""log p(y | c + d) - log p(y | c) = -½ log(1 + dS) + ½ dt²/(1 + dS), S = λᵀQ⁻¹λ, t = λᵀQ⁻¹y: one scale at a time.

Q = Σ_ℓ c_ℓ λ_ℓλ_ℓᵀ + noise, c_ℓ = w_ℓ s_ℓ. Changing one c_ℓ changes Q⁻¹ by a matrix of rank one, exchanging two by one
of rank two; both cost O(n²). What a cell adds is lost to rounding where it is removed from a Q⁻¹ that it dominates
(1 - cS is tiny): such moves stop, and the caller inverts anew.
"""

import math

import numpy as np
from numba import njit

from cadlag.baselines.shallow_stable.plane import COMPILED, Array, Index, Signs
from cadlag.sampling.choice import pick
from cadlag.stable import density_of_log

Table = tuple[float, float, Array]

N_SCALES = 12
LEAST_LEFT = 1e-7  # 1 - cS below which a cell cannot be taken out of Q⁻¹
LEAST_FACTOR = 1e-12  # 1 + dS below which the published move inverts anew
MOST_FACTOR = 1e8  # of |Q| in an exchange, either way


@njit(**COMPILED)
def look(sign: Signs, inverse: Array, beta: Array, image: Array) -> tuple[float, float]:
    """Q⁻¹λ into `image`; returns S and t."""
    n = len(image)
    image[:] = 0.0
    for k in range(n):
        row = inverse[k]
        if sign[k] > 0:
            for h in range(n):
                image[h] += row[h]
        else:
            for h in range(n):
                image[h] -= row[h]
    square, pull = 0.0, 0.0
    for k in range(n):
        square += sign[k] * image[k]
        pull += sign[k] * beta[k]
    return square, pull


@njit(**COMPILED)
def change(step: float, square: float, pull: float, image: Array, inverse: Array, beta: Array) -> None:
    """Q⁻¹ and Q⁻¹y after c has grown by a step."""
    factor = step / (1.0 + step * square)
    for k in range(len(image)):
        row, left = inverse[k], factor * image[k]
        for h in range(len(image)):
            row[h] -= left * image[h]
        beta[k] -= left * pull


@njit(**COMPILED)
def gain(step: float, square: float, pull: float) -> float:
    """Log likelihood with a step of a cell's scale, less that without."""
    return 0.5 * (step * pull * pull / (1.0 + step * square) - math.log1p(step * square))


@njit(**COMPILED)
def density(log_s: float, table: Table) -> float:
    """Log density of one log s."""
    return density_of_log(np.full(1, log_s), table[0], table[1], table[2])[0][0]


@njit(**COMPILED)
def draw_scale(
    rng: np.random.Generator, log_s: float, log_w: float, square: float, pull: float, index: float, table: Table,
    log_most: float,
) -> float:  # fmt: skip
    """One of a random lattice of log scales, given S and t without the cell."""
    spacing = 0.05 / index * 20.0 ** rng.random()
    first = -int(rng.random() * N_SCALES)
    values = log_s + spacing * (first + np.arange(N_SCALES))
    score = density_of_log(values, table[0], table[1], table[2])[0]
    for k in range(N_SCALES):
        if values[k] + log_w > log_most:
            score[k] = -math.inf
        else:
            score[k] += gain(math.exp(values[k] + log_w), square, pull)
    largest = score.max()
    return values[pick(rng, score, largest)] if largest > -math.inf else log_s


@njit(**COMPILED)
def renew(
    rng: np.random.Generator, cell: int, present: float, signs: Signs, log_w: Array, log_s: Array, inverse: Array,
    beta: Array, image: Array, index: float, table: Table, log_most: float,
) -> bool:  # fmt: skip
    """Draw the scale of a cell of which `present` is in Q; False where it cannot be taken out."""
    square, pull = look(signs[cell], inverse, beta, image)
    left = 1.0 - present * square
    if left < LEAST_LEFT:
        return False
    drawn = draw_scale(rng, log_s[cell], log_w[cell], square / left, pull / left, index, table, log_most)
    log_s[cell] = drawn
    step = math.exp(drawn + log_w[cell]) - present
    if step != 0.0:
        change(step, square, pull, image, inverse, beta)
    return True


@njit(**COMPILED)
def sweep(
    rng: np.random.Generator, order: Index, start: int, signs: Signs, log_w: Array, log_s: Array, inverse: Array,
    beta: Array, index: float, table: Table, log_most: float,
) -> int:  # fmt: skip
    """Every cell once, from a place in the order; returns where it had to stop."""
    image = np.empty(len(beta))
    for k in range(start, len(order)):
        cell = order[k]
        present = math.exp(log_w[cell] + log_s[cell])
        if not renew(rng, cell, present, signs, log_w, log_s, inverse, beta, image, index, table, log_most):
            return k
    return len(order)


# Exchanges -----------------------------------------------------------------------------------------------------------


@njit(**COMPILED)
def partner(rng: np.random.Generator, cell: int, first: Index, neighbours: Index) -> tuple[int, float]:
    """Another cell, and the log ratio of the probabilities of choosing one from the other."""
    n_cells, degree = len(first) - 1, first[cell + 1] - first[cell]
    if rng.random() < 0.5:
        other = int(rng.random() * (n_cells - 1))
        return other + (other >= cell), 0.0
    if degree == 0:
        return cell, 0.0
    other = neighbours[first[cell] + int(rng.random() * degree)]
    return other, math.log(degree / (first[other + 1] - first[other]))


@njit(**COMPILED)
def try_exchange(
    rng: np.random.Generator, i: int, j: int, log_ratio: float, signs: Signs, log_w: Array, log_s: Array,
    inverse: Array, beta: Array, images: Array, table: Table,
) -> bool:  # fmt: skip
    """Exchange c_i and c_j, by Metropolis-Hastings."""
    a_ii, t_i = look(signs[i], inverse, beta, images[0])
    a_jj, t_j = look(signs[j], inverse, beta, images[1])
    a_ij = 0.0
    for k in range(len(beta)):
        a_ij += signs[i, k] * images[1, k]
    one, two = log_w[i] + log_s[i], log_w[j] + log_s[j]
    d = math.exp(two) - math.exp(one)
    factor = (1.0 + d * a_ii) * (1.0 - d * a_jj) + d * d * a_ij * a_ij
    if not 1.0 / MOST_FACTOR < factor < MOST_FACTOR:
        return False
    x_i = ((1.0 - d * a_jj) * t_i + d * a_ij * t_j) / factor
    x_j = ((1.0 + d * a_ii) * t_j - d * a_ij * t_i) / factor
    value = log_ratio + 0.5 * (d * (t_i * x_i - t_j * x_j) - math.log(factor))
    value += density(two - log_w[i], table) + density(one - log_w[j], table)
    value -= density(log_s[i], table) + density(log_s[j], table)
    if math.log(1.0 - rng.random()) >= value:
        return False
    log_s[i], log_s[j] = two - log_w[i], one - log_w[j]
    mix_ii, mix_jj, mix_ij = d * (1.0 - d * a_jj) / factor, -d * (1.0 + d * a_ii) / factor, d * d * a_ij / factor
    for k in range(len(beta)):
        row, u, v = inverse[k], images[0, k], images[1, k]
        left, right = mix_ii * u + mix_ij * v, mix_ij * u + mix_jj * v
        for h in range(len(beta)):
            row[h] -= left * images[0, h] + right * images[1, h]
        beta[k] -= d * (u * x_i - v * x_j)
    return True


@njit(**COMPILED)
def exchange(
    rng: np.random.Generator, n_trials: int, first: Index, neighbours: Index, signs: Signs, log_w: Array,
    log_s: Array, inverse: Array, beta: Array, table: Table,
) -> int:  # fmt: skip
    """Exchange what two cells add, the first chosen by rank, which an exchange moves along; returns how often."""
    n_cells, images, accepted = len(log_s), np.empty((2, len(beta))), 0
    ranked = np.argsort(-(log_w + log_s))
    rank_of = np.argsort(ranked)
    for _ in range(n_trials):
        i = ranked[min(int((n_cells + 1.0) ** rng.random()), n_cells) - 1]
        j, log_ratio = partner(rng, i, first, neighbours)
        if j != i and try_exchange(rng, i, j, log_ratio, signs, log_w, log_s, inverse, beta, images, table):
            ranked[rank_of[i]], ranked[rank_of[j]] = j, i
            rank_of[i], rank_of[j] = rank_of[j], rank_of[i]
            accepted += 1
    return accepted


# The published move --------------------------------------------------------------------------------------------------


@njit(**COMPILED)
def sweep_as_published(
    rng: np.random.Generator, start: int, fresh: Array, signs: Signs, log_w: Array, log_s: Array, inverse: Array,
    beta: Array, log_most: float, renewed: bool,
) -> tuple[int, int]:  # fmt: skip
    """Accept or reject each fresh scale in turn; returns where Q⁻¹ has to be computed anew, and how many accepted."""
    image, accepted = np.empty(len(beta)), 0
    for cell in range(start, len(log_s)):
        if fresh[cell] + log_w[cell] > log_most:
            continue
        square, pull = look(signs[cell], inverse, beta, image)
        step = math.exp(fresh[cell] + log_w[cell]) - math.exp(log_s[cell] + log_w[cell])
        if 1.0 + step * square <= LEAST_FACTOR:
            if renewed and cell == start:
                continue
            return cell, accepted
        if math.log(1.0 - rng.random()) < gain(step, square, pull):
            log_s[cell] = fresh[cell]
            change(step, square, pull, image, inverse, beta)
            accepted += 1
    return len(log_s), accepted
