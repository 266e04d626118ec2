"""One sweep over all units: each is taken out, drawn anew given the others, and put back."""

from typing import Any

import numpy as np
from numba import njit

from cadlag.models.network.circle import at_angle, choose_arc, circle_through, switch_angles, walk
from cadlag.models.network.columns import COMPILED, SIGN, Array, fill_column, from_log, put_in, take_out
from cadlag.models.network.directions import informed_direction
from cadlag.models.network.joint import renew_with_others
from cadlag.models.network.lattice import choose_candidate, ellipse, fill_columns, score
from cadlag.stable import _density_kernel

N_SCALES = 8
N_ANGLES = 8
BOTH = 2
INFORMED, INFORMED_POLISH = 0.6, 0.2  # share of circles that go through a guess
TOGETHER = 0.15  # share of the visits to a sign unit that move others' scales along with it


@njit(**COMPILED)
def scale_lattice(rng: np.random.Generator, log_s: float, index: float, law: tuple) -> tuple[Array, Array]:
    """Candidate log scales with the present one at a random place, and their log prior densities."""
    spacing = (0.05 + rng.random()) * 0.5 / index
    first = -int(rng.random() * N_SCALES)
    values = np.empty(N_SCALES)
    for k in range(N_SCALES):
        values[k] = log_s + (first + k) * spacing
    if index == 1.0:
        return np.zeros(1), np.zeros(1)
    return values, _density_kernel(values, law[0], law[1], law[2])[0]


@njit(**COMPILED)
def circle_directions(
    rng: np.random.Generator, j: int, informed: float, X: Array, y: Array, W: Array, Phi: Array, P: Array,
    residual: Array,
) -> tuple[Array, Any, int]:  # fmt: skip
    """e, f and the power m of cos θ in the prior along the circle."""
    q = X.shape[1]
    if rng.random() < informed:
        e, f, found = circle_through(W[j], informed_direction(rng, j, X, y, W, Phi, P, residual))
        if found:
            return e, f, q - 2
    return W[j].copy(), rng.standard_normal(q), 0


@njit(**COMPILED)
def renew_sign_unit(
    rng: np.random.Generator, j: int, informed: float, X: Array, y: Array, omega: Array, W: Array, Phi: Array,
    P: Array, residual: Array, noise: float, variances: Array, log_prior: Array, work: Array,
) -> int:  # fmt: skip
    """New direction of a sign unit; returns the index of its scale."""
    n = len(X)
    e, f, m = circle_directions(rng, j, informed, X, y, W, Phi, P, residual)
    angles, signs, precision, pull = work[0, :n], work[1, :n], work[2], work[3]
    switch_angles(X, omega, e, f, angles, signs)
    order = np.argsort(angles)
    walk(order, signs, Phi, P, residual, noise, precision, pull)
    theta, k = choose_arc(rng, angles, order, m, precision, pull, variances, log_prior)
    W[j] = at_angle(rng, theta, e, f)
    return k


@njit(**COMPILED)
def renew_on_lattice(
    rng: np.random.Generator, j: int, X: Array, omega: Array, W: Array, kinds: np.ndarray, Phi: Array, P: Array,
    residual: Array, noise: float, variances: Array, log_prior: Array, relu_scale: float, both: bool,
) -> int:  # fmt: skip
    """New direction of a unit, and kind if both are allowed; returns the index of its scale."""
    directions = ellipse(rng, W[j], N_ANGLES)
    candidate_kinds = np.full(N_ANGLES, kinds[j])
    if both:
        directions = np.concatenate((directions, directions))
        candidate_kinds = np.concatenate((candidate_kinds, 1 - candidate_kinds))
    columns = fill_columns(X, omega, directions, candidate_kinds, relu_scale)
    precision, pull = score(columns, Phi, P, residual, noise)
    c, k = choose_candidate(rng, precision, pull, variances, log_prior)
    W[j] = directions[c]
    kinds[j] = candidate_kinds[c]
    return k


@njit(**COMPILED)
def sweep_units(
    rng: np.random.Generator, X: Array, y: Array, omega: Array, W: Array, log_s: Array, kinds: np.ndarray,
    log_scale: float, noise: float, index: float, law: tuple, relu_scale: float, activation: int, Phi: Array,
    P: Array, C: Array, residual: Array, gram: Array, gy: Array, work: Array,
) -> None:  # fmt: skip
    """Every unit once, in random order; a_j² = e^(log_scale + log s_j)."""
    n = len(y)
    for j in rng.permutation(len(W)):
        take_out(j, P, C, residual, y)
        candidates, log_prior = scale_lattice(rng, log_s[j], index, law)
        variances = from_log(log_scale + candidates)
        k = -1
        if kinds[j] == SIGN:
            together = index < 1.0 and len(W) > 1 and n > 0 and rng.random() < TOGETHER
            if not together or not renew_with_others(
                rng, j, X, omega, W, log_s, kinds, log_scale, noise, index, law, candidates, log_prior, y, Phi, P, C,
                residual, gram, work,
            ):  # fmt: skip
                k = renew_sign_unit(
                    rng, j, INFORMED, X, y, omega, W, Phi, P, residual, noise, variances, log_prior, work
                )
        else:
            k = renew_on_lattice(
                rng, j, X, omega, W, kinds, Phi, P, residual, noise, variances, log_prior, relu_scale, False
            )  # fmt: skip
        if k >= 0:
            log_s[j] = candidates[k]
        if activation == BOTH and rng.random() < 0.5:
            candidates, log_prior = scale_lattice(rng, log_s[j], index, law)
            variances = from_log(log_scale + candidates)
            k = renew_on_lattice(
                rng, j, X, omega, W, kinds, Phi, P, residual, noise, variances, log_prior, relu_scale, True
            )  # fmt: skip
            log_s[j] = candidates[k]
        renew_column(
            j, X, y, omega, W, kinds, from_log(log_scale + log_s[j]), noise, relu_scale, Phi, P, C, residual, gram, gy,
            work,
        )  # fmt: skip


@njit(**COMPILED)
def renew_column(
    j: int, X: Array, y: Array, omega: Array, W: Array, kinds: np.ndarray, variance: float, noise: float,
    relu_scale: float, Phi: Array, P: Array, C: Array, residual: Array, gram: Array, gy: Array, work: Array,
) -> None:  # fmt: skip
    """Put unit j in as it now is."""
    n, column = len(y), work[4, : len(y)]
    fill_column(X, omega, W[j], kinds[j], relu_scale, column)
    put_in(j, column, variance, noise, Phi, P, C, residual, gram, work[5, :n])
    total = 0.0
    for i in range(n):
        total += column[i] * y[i]
    gy[j] = total


@njit(**COMPILED)
def polish_units(
    rng: np.random.Generator, n_visits: int, X: Array, y: Array, omega: Array, W: Array, log_s: Array,
    kinds: np.ndarray, log_scale: float, noise: float, relu_scale: float, Phi: Array, P: Array, C: Array,
    residual: Array, gram: Array, gy: Array, work: Array,
) -> None:  # fmt: skip
    """Directions alone, of units drawn in proportion to a_j: scales stay, so that who is visited stays as likely."""
    reach = np.cumsum(np.exp(0.5 * (log_s - log_s.max())))
    log_prior = np.zeros(1)
    for _ in range(n_visits):
        j = min(int(np.searchsorted(reach, rng.random() * reach[-1])), len(W) - 1)
        variances = np.full(1, from_log(log_scale + log_s[j]))
        take_out(j, P, C, residual, y)
        if kinds[j] == SIGN:
            renew_sign_unit(
                rng, j, INFORMED_POLISH, X, y, omega, W, Phi, P, residual, noise, variances, log_prior, work
            )
        else:
            renew_on_lattice(
                rng, j, X, omega, W, kinds, Phi, P, residual, noise, variances, log_prior, relu_scale, False
            )  # fmt: skip
        renew_column(
            j, X, y, omega, W, kinds, variances[0], noise, relu_scale, Phi, P, C, residual, gram, gy, work
        )  # fmt: skip
