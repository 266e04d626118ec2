"""One sweep over all units: each is taken out, drawn anew given the others, and put back."""

from typing import Any

import numpy as np
from numba import njit

from cadlag.network.circle import (
    angle_of,
    at_angle,
    choose_arc,
    circle_through,
    signs_on_arc,
    switch_angles,
    walk,
    walk_squares,
)
from cadlag.network.columns import (
    COMPILED,
    SIGN,
    Array,
    Fit,
    Law,
    Members,
    Rows,
    carry_image,
    fill_column,
    from_log,
    put_in,
    take_out,
)
from cadlag.network.directions import informed_direction
from cadlag.network.lattice import choose_candidate, ellipse, score, score_on_bulk
from cadlag.stable import density_of_log

N_SCALES = 8
N_ANGLES = 8
BOTH = 2
INFORMED, INFORMED_POLISH = 0.6, 0.2  # share of circles that go through a guess


@njit(**COMPILED)
def scale_lattice(rng: np.random.Generator, log_s: float, law: Law) -> tuple[Array, Array]:
    """Candidate log scales with the present one at a random place, and their log prior densities."""
    spacing = (0.05 + rng.random()) * 0.5 / law.stability
    first = -int(rng.random() * N_SCALES)
    values = np.empty(N_SCALES)
    for k in range(N_SCALES):
        values[k] = log_s + (first + k) * spacing
    if law.stability == 1.0:
        return np.zeros(1), np.zeros(1)
    return values, density_of_log(values, law.table[0], law.table[1], law.table[2])[0]


@njit(**COMPILED)
def circle_directions(
    rng: np.random.Generator, j: int, informed: float, rows: Rows, W: Array, fit: Fit
) -> tuple[Array, Any, int]:
    """e, f and the power m of cos θ in the prior along the circle."""
    q = rows.X.shape[1]
    if rng.random() < informed:
        e, f, found = circle_through(W[j], informed_direction(rng, j, rows, W, fit))
        if found:
            return e, f, q - 2
    return W[j].copy(), rng.standard_normal(q), 0


@njit(**COMPILED)
def column_of(j: int, rows: Rows, members: Members, law: Law) -> Array:
    """Unit j as it now is, weighted."""
    column = np.empty(len(rows.y))
    fill_column(rows.X, rows.omega, members.W[j], members.kinds[j], law.relu_scale, column)
    return column


@njit(**COMPILED)
def squares_on_circle(
    order: np.ndarray, angles: Array, signs: Array, present: float, column: Array, image: Array, inverse: Array
) -> Array:
    """φᵀVφ of the candidate on each arc, walking from that on which the unit now is, whose image is known."""
    n, arc, squares = len(order), 0, np.empty(len(order) + 1)
    while arc < n and angles[order[arc]] <= present:
        arc += 1
    here, moved = signs_on_arc(order, signs, arc), image.copy()
    carry_image(column, here, inverse, moved)
    walk_squares(order, arc, here, moved, inverse, squares)
    return squares


@njit(**COMPILED)
def renew_sign_unit(
    rng: np.random.Generator, j: int, informed: float, rows: Rows, members: Members, fit: Fit, law: Law,
    variances: Array, log_prior: Array,
) -> int:  # fmt: skip
    """New direction of a sign unit, and its image; returns the index of its scale."""
    n, bulk = len(rows.y), len(rows.inverse) > 0
    e, f, m = circle_directions(rng, j, informed, rows, members.W, fit)
    angles, signs, precision, pull = np.empty(n), np.empty(n), np.empty(n + 1), np.empty(n + 1)
    switch_angles(rows.X, rows.omega, e, f, angles, signs)
    order = np.argsort(angles)
    if bulk:
        column, image, present = column_of(j, rows, members, law), fit.images[:, j].copy(), angle_of(members.W[j], e, f)
        squares = squares_on_circle(order, angles, signs, present, column, image, rows.inverse)
    else:
        squares = np.full(n + 1, np.sum(signs * signs))
    walk(order, signs, squares, fit, law.noise, precision, pull)
    theta, k = choose_arc(rng, angles, order, m, precision, pull, variances, log_prior)
    members.W[j] = at_angle(rng, theta, e, f)
    if bulk:
        carry_image(column, column_of(j, rows, members, law), rows.inverse, image)
        fit.images[:, j] = image
    return k


@njit(**COMPILED)
def renew_on_lattice(
    rng: np.random.Generator, j: int, rows: Rows, members: Members, fit: Fit, law: Law, variances: Array,
    log_prior: Array, both: bool,
) -> int:  # fmt: skip
    """New direction of a unit, kind if both are allowed, and image; returns the index of its scale."""
    directions = ellipse(rng, members.W[j], N_ANGLES)
    kinds = np.full(N_ANGLES, members.kinds[j])
    if both:
        directions = np.concatenate((directions, directions))
        kinds = np.concatenate((kinds, 1 - kinds))
    if len(rows.inverse) > 0:
        precision, pull, images = score_on_bulk(directions, kinds, rows, fit, law)
    else:
        precision, pull = score(directions, kinds, rows, fit, law)
    c, k = choose_candidate(rng, precision, pull, variances, log_prior)
    members.W[j] = directions[c]
    members.kinds[j] = kinds[c]
    if len(rows.inverse) > 0:
        fit.images[:, j] = images[c]
    return k


@njit(**COMPILED)
def put_back(j: int, rows: Rows, members: Members, fit: Fit, law: Law) -> None:
    """Put unit j in as it now is; with a V its image must be up to date."""
    column = column_of(j, rows, members, law)
    image = fit.images[:, j].copy() if len(rows.inverse) > 0 else column
    put_in(j, column, image, from_log(law.log_scale + members.log_s[j]), law.noise, rows, fit)


@njit(**COMPILED)
def renew_given(
    rng: np.random.Generator, j: int, informed: float, rows: Rows, members: Members, fit: Fit, law: Law,
    variances: Array, log_prior: Array, both: bool,
) -> int:  # fmt: skip
    """New direction, and kind if both are allowed, of a unit taken out before; returns the index of its scale."""
    if members.kinds[j] == SIGN and not both:
        return renew_sign_unit(rng, j, informed, rows, members, fit, law, variances, log_prior)
    return renew_on_lattice(rng, j, rows, members, fit, law, variances, log_prior, both)


@njit(**COMPILED)
def renew(
    rng: np.random.Generator, j: int, informed: float, rows: Rows, members: Members, fit: Fit, law: Law, both: bool
) -> None:
    """The same with its scale."""
    candidates, log_prior = scale_lattice(rng, members.log_s[j], law)
    variances = from_log(law.log_scale + candidates)
    k = renew_given(rng, j, informed, rows, members, fit, law, variances, log_prior, both)
    members.log_s[j] = candidates[k]


@njit(**COMPILED)
def sweep_units(
    rng: np.random.Generator, order: np.ndarray, rows: Rows, members: Members, fit: Fit, law: Law, activation: int
) -> None:
    """Every unit once, in the given order; a_j² = e^(log_scale + log s_j)."""
    for j in order:
        take_out(j, rows.y, fit)
        for both in range(2 if activation == BOTH and rng.random() < 0.5 else 1):
            renew(rng, j, INFORMED, rows, members, fit, law, both == 1)
        put_back(j, rows, members, fit, law)


@njit(**COMPILED)
def polish_units(rng: np.random.Generator, n_visits: int, rows: Rows, members: Members, fit: Fit, law: Law) -> None:
    """Directions alone, of units drawn in proportion to a_j: scales stay, so that who is visited stays as likely."""
    reach = np.cumsum(np.exp(0.5 * (members.log_s - members.log_s.max())))
    log_prior, both = np.zeros(1), n_visits < 0  # False, but no constant, for which all would be compiled once more
    for _ in range(n_visits):
        j = min(int(np.searchsorted(reach, rng.random() * reach[-1])), len(reach) - 1)
        variances = np.full(1, from_log(law.log_scale + members.log_s[j]))
        take_out(j, rows.y, fit)
        renew_given(rng, j, INFORMED_POLISH, rows, members, fit, law, variances, log_prior, both)
        put_back(j, rows, members, fit, law)
