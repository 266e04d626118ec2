"""One sweep over all units: each is taken out, drawn anew given the others, and put back."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from cadlag.network.circle import angle_of, at_angle, choose_arc, circle_through, draw_angle
from cadlag.network.columns import (
    COMPILED,
    MANY,
    SIGN,
    Array,
    Common,
    Explained,
    Members,
    Rows,
    from_log,
    put_in,
    take_out,
    write,
)
from cadlag.network.directions import informed_direction
from cadlag.network.images import image_of, squares_in_window, weigh_candidates
from cadlag.network.lattice import candidate, choose_candidate, column_of, ellipse, record, score
from cadlag.network.window import arc_of, crossings, flip, signs_of, start_of_window, walk
from cadlag.stable import density_of_log

N_SCALES = 8
N_ANGLES = 8
# Numba optimises a function anew with each that calls it: what only leads to the next is written into its caller.
PART = {**COMPILED, "inline": "always"}


class Habits(NamedTuple):
    """How a visit is made.

    Attributes
    ----------
    informed
        Share of circles that go through a guess.
    whole
        Share of windows that are half a circle.
    widest
        Widest of the others.
    decades
        How far below it they reach.
    scaled
        Whether the unit's scale is drawn along.
    again
        Share of visits with a second round, in which the kind may change.
    first
        1 where the first round is left out.
    """

    informed: float
    whole: float
    widest: float
    decades: float
    scaled: bool
    again: float = 0.0
    first: int = 0


SWEEP = Habits(0.6, 0.5, math.pi, 4.0, True)
POLISH = Habits(0.2, 0.15, math.pi, 4.0, False)


def with_rows(habits: Habits, n: int) -> Habits:
    """The same visits where rows are many: windows in which no more rows flip than in those of fewer rows."""
    share = min(1.0, MANY / max(n, 1))
    return habits._replace(whole=share * habits.whole, widest=share * habits.widest)


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
    rng: np.random.Generator, j: int, informed: float, width: float, rows: Rows, members: Members, fit: Explained,
    law: Common, variances: Array, log_prior: Array,
) -> int:  # fmt: skip
    """New direction of a sign unit in a window of a circle; returns the index of its scale."""
    e, f, m = circle_directions(rng, j, informed, rows, members.W, fit)
    present = angle_of(members.W[j], e, f)
    low = start_of_window(rng, present, width)
    flipping, ends = crossings(j, e, f, low, low + width, rows, members.near)
    arc, signs = arc_of(present, ends), signs_of(j, flipping, rows, members)
    squares = squares_in_window(j, flipping, arc, signs, rows, fit)
    precision, pull = walk(j, flipping, arc, signs, squares, rows, fit, law.noise)
    chosen, k = choose_arc(rng, ends, m, precision, pull, variances, log_prior)
    write(at_angle(rng, draw_angle(rng, ends[chosen], ends[chosen + 1], m), e, f), members.W[j])
    first, last = min(arc, chosen), max(arc, chosen)
    flip(j, flipping[first:last], signs[first:last], squares[chosen], rows, fit)
    return k


@njit(**PART)
def renew_on_lattice(
    rng: np.random.Generator, j: int, rows: Rows, members: Members, fit: Explained, law: Common, variances: Array,
    log_prior: Array, both: bool,
) -> int:  # fmt: skip
    """New direction of a unit, and kind if both are allowed; returns the index of its scale."""
    lattice, kind = ellipse(rng, members.W[j], N_ANGLES, rows.XT), members.kinds[j]
    weighed, images = weigh_candidates(j, kind, both, lattice, rows, fit, law.relu_scale)
    precision, pull = score(weighed, fit, law.noise)
    c, k = choose_candidate(rng, precision, pull, variances, log_prior)
    if c != lattice.present:
        write(candidate(lattice, c % N_ANGLES), members.W[j])
        members.kinds[j] = kind if c < N_ANGLES else 1 - kind
        column = column_of(lattice, c % N_ANGLES, members.kinds[j], rows.omega, law.relu_scale)
        record(j, c, column, images[c] if len(images) > 0 else image_of(column, rows.V), weighed, fit)
    return k


@njit(**PART)
def renew(
    rng: np.random.Generator, j: int, informed: float, width: float, scaled: bool, rows: Rows, members: Members,
    fit: Explained, law: Common, both: bool,
) -> None:  # fmt: skip
    """New direction of a unit taken out before, scale if it may be scaled, and kind if both are allowed."""
    if scaled:
        candidates, log_prior = scale_lattice(rng, members.log_s[j], law)
    else:
        candidates, log_prior = members.log_s[j : j + 1].copy(), np.zeros(1)
    variances = np.empty(len(candidates))
    for k in range(len(candidates)):
        variances[k] = from_log(law.log_scale + candidates[k])
    if members.kinds[j] == SIGN and not both:
        k = renew_sign_unit(rng, j, informed, width, rows, members, fit, law, variances, log_prior)
    else:
        k = renew_on_lattice(rng, j, rows, members, fit, law, variances, log_prior, both)
    members.log_s[j] = candidates[k]


@njit(**COMPILED)
def draw_width(rng: np.random.Generator, habits: Habits) -> float:
    """Width of a window: half a circle, or anything down to some decades below the widest."""
    return math.pi if rng.random() < habits.whole else habits.widest * 10.0 ** (-habits.decades * rng.random())


@njit(**COMPILED)
def visit_units(
    rng: np.random.Generator, order: np.ndarray, rows: Rows, members: Members, fit: Explained, law: Common,
    habits: Habits,
) -> None:  # fmt: skip
    """Units in an order, each taken out, drawn anew given the others, and put back: the one entry to compiled code."""
    for j in order:
        take_out(j, fit)
        for both in range(habits.first, 2 if rng.random() < habits.again else 1):
            width = draw_width(rng, habits)
            renew(rng, j, habits.informed, width, habits.scaled, rows, members, fit, law, both == 1)
        put_in(j, from_log(law.log_scale + members.log_s[j]), law.noise, fit)


def sweep_units(
    rng: np.random.Generator, rows: Rows, members: Members, fit: Explained, law: Common, changing: bool
) -> None:
    """Every unit once, in random order, with its scale, and with its kind where that may change."""
    habits = with_rows(SWEEP._replace(again=0.5 if changing else 0.0), len(rows.X))
    visit_units(rng, rng.permutation(len(members.W)), rows, members, fit, law, habits)


def polish_units(
    rng: np.random.Generator, n_visits: int, rows: Rows, members: Members, fit: Explained, law: Common
) -> None:
    """Directions alone, of units drawn in proportion to a_j: scales stay, so that who is visited stays as likely."""
    reach = np.cumsum(np.exp(0.5 * (members.log_s - members.log_s.max())))
    order = np.minimum(np.searchsorted(reach, rng.random(n_visits) * reach[-1]), len(reach) - 1)
    visit_units(rng, order, rows, members, fit, law, with_rows(POLISH, len(rows.X)))
