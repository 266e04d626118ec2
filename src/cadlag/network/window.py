"""θ in [θ₀ - uw, θ₀ + (1 - u)w], u ~ U(0, 1): an exact Gibbs draw over the dichotomies in a window on a great circle.

Whatever θ of the window is the present one, the same window is proposed with the same density, as long as the width w
does not depend on where the unit is; w = π is the whole half circle. A row flips inside if and only if its sign differs
at the two ends. The precision S = (φᵀVφ - hᵀCh)/v, h = ΦᵀVφ, and the pull t = (φᵀVy - hᵀCΦᵀVy)/v follow from h, which
each row that flips changes by its row of VΦ. So a visit costs what it flips, and one pass over the inputs.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.circle import combined
from cadlag.network.columns import (
    COMPILED,
    SIGN,
    Array,
    Explained,
    Members,
    Near,
    Rows,
    add_multiple,
    dot,
    entry,
    products,
    products_at,
    write,
)
from cadlag.network.images import flip_image

GATHERED = 512  # rows at once
SLACK = 1e-6  # above what rounding to single precision leaves of a sine


@njit(**COMPILED)
def start_of_window(rng: np.random.Generator, present: float, width: float) -> float:
    """Where a window begins that has the present angle at a uniform place."""
    return present - rng.random() * width


@njit(**COMPILED)
def sine_between(unit: Array, direction: Array) -> float:
    """Sine of the angle from a unit vector to a direction, 1 where it is obtuse."""
    along, square = dot(unit, direction), 0.0
    for k in range(len(unit)):
        gap = direction[k] - along * unit[k]
        square += gap * gap
    return math.sqrt(square / dot(direction, direction)) if along > 0.0 else 1.0


@njit(**COMPILED)
def rows_in_reach(j: int, e: Array, f: Array, low: float, high: float, near: Near) -> np.ndarray:
    """Rows that may flip between two angles less than π apart: no direction between is farther than both ends."""
    one = sine_between(near.directions[j], combined(math.cos(low), e, math.sin(low), f))
    other = sine_between(near.directions[j], combined(math.cos(high), e, math.sin(high), f))
    reach, sines, count = np.float32(SLACK + (1.0 + SLACK) * max(one, other)), near.sines[j], 0
    for i in range(len(sines)):
        count += sines[i] <= reach
    found, count = np.empty(count, dtype=np.int64), 0
    for i in range(len(sines)):
        if sines[i] <= reach:
            found[count] = i
            count += 1
    return found


@njit(**COMPILED)
def crossings(
    j: int, e: Array, f: Array, low: float, high: float, rows: Rows, near: Near
) -> tuple[np.ndarray, Array]:  # fmt: skip
    """The rows that flip between two angles, in the order in which they do, and where, from low to high."""
    some = len(near.sines) > 0 and high - low < math.pi
    if some:
        looked_at = rows_in_reach(j, e, f, low, high, near)
        along, across = products_at(rows.X, looked_at, e), products_at(rows.X, looked_at, f)
    else:
        looked_at, along, across = np.empty(0, dtype=np.int64), products(rows.XT, e), products(rows.XT, f)
    n, count = len(along), 0
    flipped, angles = np.empty(n, dtype=np.int64), np.empty(n)
    c_low, s_low, c_high, s_high = math.cos(low), math.sin(low), math.cos(high), math.sin(high)
    for i in range(n):
        a, b = along[i], across[i]
        if (c_low * a + s_low * b >= 0.0) != (c_high * a + s_high * b >= 0.0):
            theta = math.atan2(-a, b)
            flipped[count] = looked_at[i] if some else i
            angles[count] = min(theta + math.pi * math.ceil((low - theta) / math.pi), high)
            count += 1
    order, flipping, ends = np.argsort(angles[:count]), np.empty(count, dtype=np.int64), np.empty(count + 2)
    ends[0], ends[count + 1] = low, high
    for at in range(count):
        flipping[at], ends[at + 1] = flipped[order[at]], angles[order[at]]
    return flipping, ends


@njit(**COMPILED)
def arc_of(theta: float, ends: Array) -> int:
    """The arc that an angle lies on."""
    arc = 0
    while arc < len(ends) - 2 and ends[arc + 1] <= theta:
        arc += 1
    return arc


@njit(**COMPILED)
def signs_of(j: int, flipping: np.ndarray, rows: Rows, members: Members) -> Array:
    """The entries of a sign unit as it is, at some rows."""
    signs = np.empty(len(flipping))
    for at in range(len(flipping)):
        i = flipping[at]
        signs[at] = rows.omega[i] * entry(rows.X[i], members.W[j], SIGN, 1.0)
    return signs


@njit(**COMPILED)
def walk(
    j: int, flipping: np.ndarray, arc: int, signs: Array, squares: Array, rows: Rows, fit: Explained, noise: float
) -> tuple[Array, Array]:
    """S and t of the candidate on each arc, both ways from that of unit j, which has been taken out."""
    w, m = len(flipping), len(fit.C)
    block = max(min(w, GATHERED), 1)
    overlaps, reach, drawn = np.empty((block, m)), np.empty((block, m)), np.empty(block)
    weights, precision, pull = np.dot(fit.C, fit.products), np.empty(w + 1), np.empty(w + 1)
    for forward in range(2):
        h, own, length = fit.gram[j].copy(), fit.products[j], w - arc if forward else arc
        precision[arc] = max(squares[arc] - dot(h, np.dot(fit.C, h)), 0.0) / noise
        pull[arc] = (own - dot(h, weights)) / noise
        for start in range(0, length, block):
            size = min(block, length - start)
            for k in range(size):
                at = arc + start + k if forward else arc - 1 - start - k
                own -= 2.0 * signs[at] * rows.pulled[flipping[at]]
                add_multiple(-2.0 * signs[at], fit.images[flipping[at]], h)
                write(h, overlaps[k])
                drawn[k] = own
            np.dot(overlaps[:size], fit.C, reach[:size])
            for k in range(size):
                at = arc + start + k + 1 if forward else arc - 1 - start - k
                precision[at] = max(squares[at] - dot(overlaps[k], reach[k]), 0.0) / noise
                pull[at] = (drawn[k] - dot(overlaps[k], weights)) / noise
    return precision, pull


@njit(**COMPILED)
def flip(j: int, flipped: np.ndarray, signs: Array, square: float, rows: Rows, fit: Explained) -> None:
    """Image and sums of unit j where some rows have changed sides."""
    gram, products, m = fit.gram, fit.products, len(fit.C)
    for at in range(len(flipped)):
        i, step = flipped[at], 2.0 * signs[at]
        products[j] -= step * rows.pulled[i]
        for k in range(m):
            gram[j, k] -= step * fit.images[i, k]
    gram[j, j] = square
    write(gram[j], gram[:, j])
    flip_image(j, flipped, signs, rows, fit)
