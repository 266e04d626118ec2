"""One sweep over all units: each is taken out, drawn anew given the others, and put back."""

from typing import Any

import numpy as np
from numba import njit

from cadlag.network.circle import at_angle, choose_arc, circle_through, switch_angles, walk
from cadlag.network.columns import (
    COMPILED,
    SIGN,
    Array,
    Common,
    Explained,
    Members,
    Rows,
    column_of,
    from_log,
    put_in,
    take_out,
)
from cadlag.network.directions import informed_direction
from cadlag.network.images import image_of, own_image, score, squares_on_circle, take_image, turn
from cadlag.network.lattice import choose_candidate, ellipse
from cadlag.stable import density_of_log

N_SCALES = 8
N_ANGLES = 8
BOTH = 2
NOBODY = np.empty(0, dtype=np.int64)
# Numba optimises a function anew with each that calls it: what only leads to the next is written into its caller.
PART = {**COMPILED, "inline": "always"}
INFORMED, INFORMED_POLISH = 0.6, 0.2  # share of circles that go through a guess


@njit(**COMPILED)
def scale_lattice(rng: np.random.Generator, log_s: float, law: Common) -> tuple[Array, Array]:
    """Candidate log scales with the present one at a random place, and their log prior densities."""
    spacing = (0.05 + rng.random()) * 0.5 / law.half_alpha
    first = -int(rng.random() * N_SCALES)
    values = np.empty(N_SCALES)
    for k in range(N_SCALES):
        values[k] = log_s + (first + k) * spacing
    if law.half_alpha == 1.0:
        return np.zeros(1), np.zeros(1)
    return values, density_of_log(values, law.table[0], law.table[1], law.table[2])[0]


@njit(**COMPILED)
def circle_directions(
    rng: np.random.Generator, j: int, informed: float, rows: Rows, W: Array, fit: Explained
) -> tuple[Array, Any, int]:
    """e, f and the power m of cos θ in the prior along the circle."""
    q = rows.X.shape[1]
    if rng.random() < informed:
        e, f, found = circle_through(W[j], informed_direction(rng, j, rows, W, fit))
        if found:
            return e, f, q - 2
    return W[j].copy(), rng.standard_normal(q), 0


@njit(**PART)
def renew_sign_unit(
    rng: np.random.Generator, j: int, informed: float, image: Array, rows: Rows, members: Members, fit: Explained,
    law: Common, variances: Array, log_prior: Array,
) -> int:  # fmt: skip
    """New direction of a sign unit, and its image; returns the index of its scale."""
    n = len(rows.y)
    e, f, m = circle_directions(rng, j, informed, rows, members.W, fit)
    angles, signs, precision, pull = np.empty(n), np.empty(n), np.empty(n + 1), np.empty(n + 1)
    switch_angles(rows.X, rows.omega, e, f, angles, signs)
    order = np.argsort(angles)
    squares = squares_on_circle(j, e, f, order, angles, signs, image, rows, members, law)
    walk(order, signs, squares, fit, law.noise, precision, pull)
    theta, k = choose_arc(rng, angles, order, m, precision, pull, variances, log_prior)
    turn(j, at_angle(rng, theta, e, f), image, rows, members, law)
    return k


@njit(**PART)
def renew_on_lattice(
    rng: np.random.Generator, j: int, image: Array, rows: Rows, members: Members, fit: Explained, law: Common,
    variances: Array, log_prior: Array, both: bool,
) -> int:  # fmt: skip
    """New direction of a unit, kind if both are allowed, and image; returns the index of its scale."""
    directions = ellipse(rng, members.W[j], N_ANGLES)
    kinds = np.full(N_ANGLES, members.kinds[j])
    if both:
        directions = np.concatenate((directions, directions))
        kinds = np.concatenate((kinds, 1 - kinds))
    precision, pull, images = score(directions, kinds, rows, fit, law)
    c, k = choose_candidate(rng, precision, pull, variances, log_prior)
    members.W[j] = directions[c]
    members.kinds[j] = kinds[c]
    take_image(images, c, image)
    return k


@njit(**PART)
def renew(
    rng: np.random.Generator, j: int, informed: float, scaled: bool, image: Array, rows: Rows, members: Members,
    fit: Explained, law: Common, both: bool,
) -> None:  # fmt: skip
    """New direction of a unit taken out before, scale if it may be scaled, and kind if both are allowed."""
    if scaled:
        candidates, log_prior = scale_lattice(rng, members.log_s[j], law)
    else:
        candidates, log_prior = members.log_s[j : j + 1].copy(), np.zeros(1)
    variances = from_log(law.log_scale + candidates)
    if members.kinds[j] == SIGN and not both:
        k = renew_sign_unit(rng, j, informed, image, rows, members, fit, law, variances, log_prior)
    else:
        k = renew_on_lattice(rng, j, image, rows, members, fit, law, variances, log_prior, both)
    members.log_s[j] = candidates[k]


@njit(**PART)
def put_back(j: int, image: Array, rows: Rows, members: Members, fit: Explained, law: Common) -> None:
    """Put unit j in as it now is, its image being up to date."""
    column = column_of(j, rows, members, law)
    own = own_image(column, image)
    put_in(j, column, own, from_log(law.log_scale + members.log_s[j]), law.noise, rows, fit)


@njit(**COMPILED)
def visit_units(
    rng: np.random.Generator, order: np.ndarray, n_visits: int, rows: Rows, members: Members, fit: Explained,
    law: Common, activation: int,
) -> None:  # fmt: skip
    """The one entry: units in an order with all that is theirs, then visits to directions alone."""
    reach = np.cumsum(np.exp(0.5 * (members.log_s - members.log_s.max())))
    for visit in range(len(order) + n_visits):
        scaled, rounds = visit < len(order), 1
        if scaled:
            j = order[visit]
            rounds = 2 if activation == BOTH and rng.random() < 0.5 else 1
        else:
            j = min(int(np.searchsorted(reach, rng.random() * reach[-1])), len(reach) - 1)
        image = image_of(j, rows, fit)
        take_out(j, rows.y, fit)
        for both in range(rounds):
            renew(rng, j, INFORMED if scaled else INFORMED_POLISH, scaled, image, rows, members, fit, law, both == 1)
        put_back(j, image, rows, members, fit, law)


def sweep_units(
    rng: np.random.Generator, order: np.ndarray, rows: Rows, members: Members, fit: Explained, law: Common,
    activation: int,
) -> None:  # fmt: skip
    """Every unit once, in the given order; a_j² = e^(log_scale + log s_j)."""
    visit_units(rng, order, 0, rows, members, fit, law, activation)


def polish_units(
    rng: np.random.Generator, n_visits: int, rows: Rows, members: Members, fit: Explained, law: Common
) -> None:
    """Directions alone, of units drawn in proportion to a_j: scales stay, so that who is visited stays as likely."""
    visit_units(rng, NOBODY, n_visits, rows, members, fit, law, 0)
