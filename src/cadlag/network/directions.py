"""f for the circle of a sign unit: a guess made of the data, the other units and fresh randomness, never of the unit.

Whatever f is, the circle through w_j and f needs no Hastings correction, since f does not depend on w_j or s_j.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.circle import combined, scaled
from cadlag.network.columns import COMPILED, MANY, Array, Explained, Rows, dot

N_NEWTON = 4
ENOUGH = 300  # rows to guess from


@njit(**COMPILED)
def add(x: Array, out: Array) -> None:
    """Out + x into out."""
    for k in range(len(x)):
        out[k] += x[k]


@njit(**COMPILED)
def ridge_matrix(ridge: float, q: int) -> Array:
    """The normal matrix of no rows."""
    normal = np.zeros((q, q))
    for k in range(q):
        normal[k, k] = ridge
    return normal


@njit(**COMPILED)
def informed_direction(rng: np.random.Generator, j: int, rows: Rows, W: Array, fit: Explained) -> Array:
    """A direction; zero where nothing came of it."""
    X = rows.X
    (n, q), m = X.shape, len(W)
    f = np.zeros(q)
    which = rng.random()
    if which < 0.25:
        return least_squares(rng, rows, fit)
    if which < 0.5:
        return logistic(rng, rows, fit, without_some(rng, fit) if rng.random() < 0.5 else mean_weights(fit))
    if which < 0.65:
        f[int(rng.random() * q)] = 1.0
    elif which < 0.85 and m > 1:
        other = int(rng.random() * (m - 1))
        add(W[other + 1 if other >= j else other], f)
        if rng.random() < 0.5:
            other = int(rng.random() * (m - 1))
            add(W[other + 1 if other >= j else other], f)
    elif n > 0:
        add(X[int(rng.random() * n)], f)
    return f


@njit(**COMPILED)
def some_columns(rng: np.random.Generator, q: int) -> Array:
    """Ones, or ones and zeros at random after the first."""
    use = np.ones(q)
    if rng.random() < 0.5:
        for k in range(1, q):
            use[k] = 1.0 if rng.random() < 0.5 else 0.0
    return use


@njit(**COMPILED)
def add_row(row: Array, use: Array, curvature: float, slope: float, normal: Array, right: Array) -> None:
    """One row's part of the lower triangle of the normal matrix, and of the right-hand side."""
    for k in range(len(row)):
        scaled = curvature * row[k] * use[k]
        right[k] += slope * row[k] * use[k]
        for h in range(k + 1):
            normal[k, h] += scaled * row[h] * use[h]


@njit(**COMPILED)
def solve_lower(normal: Array, right: Array) -> Array:
    """The solution, from the lower triangle, which is overwritten; zero where there is none."""
    q = len(right)
    for k in range(q):
        for h in range(k + 1):
            total = normal[k, h]
            for i in range(h):
                total -= normal[k, i] * normal[h, i]
            if h < k:
                normal[k, h] = total / normal[h, h]
            elif total > 0.0 and total < math.inf:
                normal[k, k] = math.sqrt(total)
            else:
                return np.zeros(q)
        for i in range(k):
            right[k] -= normal[k, i] * right[i]
        right[k] /= normal[k, k]
    for k in range(q - 1, -1, -1):
        for i in range(k + 1, q):
            right[k] -= normal[i, k] * right[i]
        right[k] /= normal[k, k]
    return right


@njit(**COMPILED)
def some_rows(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """A share of the rows, at random, and hardly more than are enough for a guess."""
    chance, rows, count = min(share, ENOUGH / max(n, 1)), np.empty(n, dtype=np.int64), 0
    for i in range(n):
        if rng.random() < chance:
            rows[count] = i
            count += 1
    return rows[:count]


@njit(**COMPILED)
def least_squares(rng: np.random.Generator, rows: Rows, fit: Explained) -> Array:
    """Ridge regression of the residual, or its sign, on random rows and columns."""
    n, q = rows.X.shape
    use = some_columns(rng, q)
    share, signs = rng.random(), rng.random() < 0.5
    taken = some_rows(rng, n, share)
    residual = residual_at(taken, mean_weights(fit), rows, fit)
    normal, right = ridge_matrix(1e-3 * (len(taken) + 1), q), np.zeros(q)
    for k in range(len(taken)):
        slope = residual[k]
        if signs:
            slope = 1.0 if slope >= 0.0 else -1.0
        add_row(rows.X[taken[k]], use, 1.0, slope, normal, right)
    return solve_lower(normal, right)


@njit(**COMPILED)
def logistic(rng: np.random.Generator, rows: Rows, fit: Explained, weights: Array) -> Array:
    """A few Newton steps of logistic regression of the residual's sign, weighted by its size, with a random ridge."""
    n, q = rows.X.shape
    use, taken, size = some_columns(rng, q), some_rows(rng, n, 1.0), 1e-300
    residual = residual_at(taken, weights, rows, fit)
    for k in range(len(taken)):
        size += abs(residual[k]) / len(taken)
    ridge = (len(taken) + 1) * math.exp(-2.0 - 7.0 * rng.random())
    beta = np.zeros(q)
    for _ in range(N_NEWTON):
        normal, right = ridge_matrix(ridge, q), scaled(-ridge, beta)
        for k in range(len(taken)):
            row = rows.X[taken[k]]
            z = dot(row, beta)
            side = 1.0 if residual[k] >= 0.0 else -1.0
            p = 1.0 / (1.0 + math.exp(min(side * z, 500.0)))
            weight = abs(residual[k]) / size
            add_row(row, use, weight * p * (1.0 - p), weight * side * p, normal, right)
        add(solve_lower(normal, right), beta)
    return beta


@njit(**COMPILED)
def mean_weights(fit: Explained) -> Array:
    """CΦᵀVy, of the units that are in."""
    return np.dot(fit.C, fit.products)


@njit(**COMPILED)
def without_some(rng: np.random.Generator, fit: Explained) -> Array:
    """The mean weights but for those of a few other units."""
    m, weights = len(fit.C), mean_weights(fit)
    for k in range(m):
        if rng.random() * m < 3.0:
            weights[k] = 0.0
    return weights


@njit(**COMPILED)
def residual_at(taken: np.ndarray, weights: Array, rows: Rows, fit: Explained) -> Array:
    """Vy less VΦ times some weights, at some rows."""
    if len(fit.images) <= MANY:
        explained = np.dot(fit.images, weights)[taken]
    else:
        explained = np.dot(fit.images[taken], weights)
    return combined(1.0, rows.pulled[taken], -1.0, explained)
