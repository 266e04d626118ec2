"""Direction of one sign unit and scales of others, drawn together: what frees a unit whose errors others repair.

A main unit that puts a few rows on the wrong side is held there by units that isolate these rows and lift them back:
neither can change alone. So the direction of unit j, along the circle through those rows, and a common shift of the log
scales of one or two other units, on a lattice, are drawn from their joint conditional law. The rows are those that the
others' directions set apart; directions of the others do not change, so the circle is the same on the way back.
"""

import math

import numpy as np
from numba import njit

from cadlag.models.network.circle import at_angle, circle_through, draw_angle_in, pick, switch_angles, walk, weigh_arcs
from cadlag.models.network.columns import COMPILED, SIGN, Array, from_log, gain, overlaps, put_in, take_out, unexplained
from cadlag.stable import _density_kernel

N_SHIFTS = 6


@njit(**COMPILED)
def choose_others(rng: np.random.Generator, j: int, kinds: np.ndarray) -> np.ndarray:
    """One or two other units, all of them sign units; none if the draw fell on another kind."""
    m = len(kinds)
    n_others = 1 if rng.random() < 0.5 or m < 3 else 2
    others = np.empty(n_others, dtype=np.int64)
    first = int(rng.random() * (m - 1))
    others[0] = first + 1 if first >= j else first
    if n_others == 2:
        second = int(rng.random() * (m - 2))
        for taken in (min(j, others[0]), max(j, others[0])):
            second = second + 1 if second >= taken else second
        others[1] = second
    for k in others:
        if kinds[k] != SIGN:
            return np.empty(0, dtype=np.int64)
    return others


@njit(**COMPILED)
def rows_set_apart(rng: np.random.Generator, others: np.ndarray, X: Array, Phi: Array) -> Array:
    """The sum of the rows on the smaller side of the others' product, or one of them."""
    n, q = X.shape
    side = np.empty(n)
    balance = 0
    for i in range(n):
        product = 1.0
        for k in others:
            product = product if Phi[i, k] >= 0.0 else -product
        side[i] = product
        balance += 1 if product > 0.0 else -1
    smaller = -1.0 if balance > 0 else 1.0
    count = 0
    for i in range(n):
        count += 1 if side[i] == smaller else 0
    only = int(rng.random() * count) if rng.random() < 0.5 else -1
    f, seen = np.zeros(q), 0
    for i in range(n):
        if side[i] == smaller:
            if only < 0 or seen == only:
                for k in range(q):
                    f[k] += X[i, k]
            seen += 1
    return f


@njit(**COMPILED)
def put_back(
    others: np.ndarray, variances: Array, noise: float, Phi: Array, P: Array, C: Array, residual: Array, gram: Array,
    work: Array,
) -> float:  # fmt: skip
    """Put units back whose columns are still in Φ; returns the gain in log likelihood."""
    total = 0.0
    for index in range(len(others)):
        k = others[index]
        column = Phi[:, k].copy()
        projected, _ = overlaps(column, Phi, P)
        precision = max(unexplained(column, projected, Phi, work), 0.0) / noise
        pull = np.sum(column * residual) / noise
        total += gain(variances[index], precision, pull)
        put_in(k, column, variances[index], noise, Phi, P, C, residual, gram, work)
    return total


@njit(**COMPILED)
def renew_with_others(
    rng: np.random.Generator, j: int, X: Array, omega: Array, W: Array, log_s: Array, kinds: np.ndarray,
    log_scale: float, noise: float, index: float, law: tuple, candidates: Array, log_prior: Array, y: Array,
    Phi: Array, P: Array, C: Array, residual: Array, gram: Array, work: Array,
) -> bool:  # fmt: skip
    """New direction and scale of unit j, taken out before, with a shift of others' scales; False if not made."""
    n, q = X.shape
    others = choose_others(rng, j, kinds)
    if len(others) == 0:
        return False
    e, f, found = circle_through(W[j], rows_set_apart(rng, others, X, Phi))
    if not found:
        return False
    for k in others:
        take_out(k, P, C, residual, y)
    P0, C0, residual0 = P.copy(), C.copy(), residual.copy()
    spacing = (0.5 + rng.random()) / index
    first = -int(rng.random() * N_SHIFTS)
    angles, start = work[0, :n], work[1, :n].copy()
    switch_angles(X, omega, e, f, angles, start)
    order = np.argsort(angles)
    variances, priors = from_log(log_scale + candidates), np.exp(log_prior - log_prior.max())
    precision, pull = np.empty((N_SHIFTS, n + 1)), np.empty((N_SHIFTS, n + 1))
    log_total, weights = np.empty((N_SHIFTS, n + 1)), np.empty(N_SHIFTS)
    for v in range(N_SHIFTS):
        P[:], C[:], residual[:] = P0, C0, residual0
        shifted = log_s[others] + (first + v) * spacing
        value = np.sum(_density_kernel(shifted, law[0], law[1], law[2])[0])
        value += put_back(others, from_log(log_scale + shifted), noise, Phi, P, C, residual, gram, work[5, :n])
        signs = start.copy()
        walk(order, signs, Phi, P, residual, noise, precision[v], pull[v])
        largest = weigh_arcs(angles, order, q - 2, precision[v], pull[v], variances, priors, log_total[v], work[4])
        weights[v] = value + largest + math.log(np.sum(np.exp(log_total[v] - largest)))
    v = pick(rng, weights, weights.max())
    arc = pick(rng, log_total[v], log_total[v].max())
    for_scale = np.empty(len(variances))
    for k in range(len(variances)):
        for_scale[k] = log_prior[k] + gain(variances[k], precision[v, arc], pull[v, arc])
    log_s[j] = candidates[pick(rng, for_scale, for_scale.max())]
    theta = draw_angle_in(rng, arc, angles, order, q - 2)
    W[j] = at_angle(rng, theta, e, f)
    P[:], C[:], residual[:] = P0, C0, residual0
    log_s[others] = log_s[others] + (first + v) * spacing
    put_back(others, from_log(log_scale + log_s[others]), noise, Phi, P, C, residual, gram, work[5, :n])
    return True
