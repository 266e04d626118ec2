"""q = (1/2π) ∫ [p_upper/√(1 + p_upper²) - p_lower/√(1 + p_lower²)] dφ: cells of points in the plane, exactly.

The direction φ of b is uniform and the threshold t = -a/|b| has distribution function ½(1 + t/√(1 + t²)). For each φ
the projections p_k = x_k·(cos φ, sin φ) stand in an order, which changes only at the angles orthogonal to some
x_i - x_j, and a unit's cell is given by the gap of the order that holds its t. With x_k = r_k(cos ω_k, sin ω_k),

    ∫ p_k/√(1 + p_k²) dφ = H_k(φ) = arcsin(κ_k sin(φ - ω_k)),    κ_k = r_k/√(1 + r_k²).

A *slice* is a range of φ over which a cell's gap is between the same two points. φ runs over [0, π): the other half
turn is the same units with the other sign. Beyond the first and the last point p/√(1 + p²) is -1 and 1: these two
gaps make the cell of the constant pattern.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Signs = NDArray[np.int8]
Index = NDArray[np.int64]
Names = NDArray[np.uint64]

SAME_ANGLE = 1e-12
NOBODY = -1  # the point beyond the first and the last
WHOLE = 1e-12  # a share nearer to none or all than this is a rounding error
COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


class Plane(NamedTuple):
    """Slices of cells: their points, cell, range of φ, points below and above, side of the first point, measure."""

    points: Array
    cell: Index
    start: Array
    end: Array
    lower: Index
    upper: Index
    first_above: NDArray[np.bool_]
    measure: Array


@njit(**COMPILED)
def _area(x: Array, k: int, sign: float, start: float, end: float) -> float:
    """H_k(end) - H_k(start); of nobody, ± the range."""
    if k == NOBODY:
        return sign * (end - start)
    r, omega = math.hypot(x[k, 0], x[k, 1]), math.atan2(x[k, 1], x[k, 0])
    kappa = r / math.hypot(1.0, r)
    return math.asin(kappa * math.sin(end - omega)) - math.asin(kappa * math.sin(start - omega))


@njit(**COMPILED)
def _critical_angles(x: Array) -> Array:
    """Where two projections change places, in [0, π), with 0 first and π last; equal ones, as on grids, once."""
    n = len(x)
    angles = np.empty(n * (n - 1) // 2 + 2)
    angles[0], angles[1] = 0.0, math.pi
    count = 2
    for i in range(n):
        for j in range(i):
            angles[count] = math.atan2(x[i, 0] - x[j, 0], x[j, 1] - x[i, 1]) % math.pi
            count += 1
    angles.sort()
    distinct = [0.0]
    for angle in angles:
        if angle - distinct[-1] > SAME_ANGLE and math.pi - angle > SAME_ANGLE:
            distinct.append(angle)
    distinct.append(math.pi)
    return np.array(distinct)


@njit(**COMPILED)
def _find_gaps(order: Index, keys: Names, names: Names, gaps: Index) -> None:
    """The gaps in an order: name of the points on the other side than the first, neighbours, side of the gap."""
    n, below, above = len(order), np.uint64(0), True
    everybody = np.uint64(0)
    for key in keys:
        everybody ^= key
    for i in range(n + 1):
        if i > 0:
            below ^= keys[order[i - 1]]
            above = above and order[i - 1] != 0
        names[i] = below if above else below ^ everybody
        gaps[i, 0] = order[i - 1] if i > 0 else NOBODY
        gaps[i, 1] = order[i] if i < n else NOBODY
        gaps[i, 2] = above


@njit(**COMPILED)
def _slices(x: Array, angles: Array, keys: Names) -> list[tuple[int, int, int, int, float, float]]:
    """All slices: name of the cell, points below and above, side of the first point, range."""
    n = len(x)
    names, gaps, starts = np.zeros(n + 1, dtype=np.uint64), np.zeros((n + 1, 3), dtype=np.int64), np.zeros(n + 1)
    new_names, new_gaps = names.copy(), gaps.copy()
    found = [(names[0], gaps[0, 0], gaps[0, 1], gaps[0, 2], 0.0, 0.0)]
    for e in range(len(angles) - 1):
        middle = 0.5 * (angles[e] + angles[e + 1])
        order = np.argsort(x[:, 0] * math.cos(middle) + x[:, 1] * math.sin(middle))
        _find_gaps(order, keys, new_names, new_gaps)
        for i in range(n + 1):
            if e > 0:
                if names[i] == new_names[i] and (gaps[i] == new_gaps[i]).all():
                    continue
                found.append((names[i], gaps[i, 0], gaps[i, 1], gaps[i, 2], starts[i], angles[e]))
            names[i], starts[i] = new_names[i], angles[e]
            gaps[i] = new_gaps[i]
    for i in range(n + 1):
        found.append((names[i], gaps[i, 0], gaps[i, 1], gaps[i, 2], starts[i], angles[-1]))
    return found[1:]


@njit(**COMPILED)
def _measures(x: Array, start: Array, end: Array, lower: Index, upper: Index) -> Array:
    out = np.empty(len(start))
    for b in range(len(start)):
        high = _area(x, upper[b], 1.0, start[b], end[b])
        out[b] = (high - _area(x, lower[b], -1.0, start[b], end[b])) / (2.0 * math.pi)
    return out


def divide_plane(x: Array, least: float) -> tuple[Plane, Signs, Array]:
    """Cells of distinct points."""
    keys = np.random.default_rng(0).integers(1, 2**64, len(x), dtype=np.uint64)  # names of sets, by exclusive or
    names, *rest = zip(*_slices(x, _critical_angles(x), keys))
    lower, upper, above = (np.array(values, dtype=np.int64) for values in rest[:3])
    start, end = np.array(rest[3]), np.array(rest[4])
    measure = _measures(x, start, end, lower, upper)
    _, first, cell = np.unique(np.array(names, dtype=np.uint64), return_index=True, return_inverse=True)
    probabilities = np.bincount(cell, measure).astype(float)
    kept = probabilities > least
    one, use = first[kept], kept[cell]
    patterns = _patterns(x, 0.5 * (start + end)[one], lower[one], upper[one], above[one] > 0)
    slices = start[use], end[use], lower[use], upper[use], above[use] > 0, measure[use]
    return Plane(x, (np.cumsum(kept) - 1)[cell[use]], *slices), patterns, probabilities[kept]


def _patterns(x: Array, angle: Array, lower: Index, upper: Index, first_above: NDArray[np.bool_]) -> Signs:
    """Which side of a gap every point is on, the first one's being positive."""
    projections = np.outer(np.cos(angle), x[:, 0]) + np.outer(np.sin(angle), x[:, 1])
    rows = np.arange(len(angle))
    high = projections[rows, upper] - 1.0  # beyond the first point
    low = np.where(lower == NOBODY, high, projections[rows, lower])
    high = np.where(upper == NOBODY, low + 2.0, projections[rows, upper])
    above = projections > 0.5 * (low + high)[:, None]
    return np.where(above == first_above[:, None], 1, -1).astype(np.int8)


@njit(**COMPILED)
def _gap(dx: float, dy: float, angle: float) -> float:
    return dx * math.cos(angle) + dy * math.sin(angle)


@njit(**COMPILED)
def _below_part(x: Array, own: Array, plane: Plane, b: int) -> float:
    """Measure of the units of a slice whose threshold is below the new point."""
    points, start, end = plane.points, plane.start[b], plane.end[b]
    ends, count = np.full(4, end), 1
    ends[0] = start
    for side in range(2):
        other = plane.upper[b] if side == 0 else plane.lower[b]
        if other == NOBODY:
            continue
        dx, dy = x[0] - points[other, 0], x[1] - points[other, 1]
        first, last = _gap(dx, dy, start), _gap(dx, dy, end)
        if side == 0 and first >= 0.0 and last >= 0.0:
            return plane.measure[b]
        if side == 1 and first <= 0.0 and last <= 0.0:
            return 0.0
        if first * last < 0.0:
            ends[count] = min(max(math.atan2(dx, -dy) % math.pi, start), end)  # where the projections are equal
            count += 1
    if count == 3 and ends[1] > ends[2]:
        ends[1], ends[2] = ends[2], ends[1]
    return _sum_of_pieces(x, own, plane, b, ends[: count + 1])


@njit(**COMPILED)
def _sum_of_pieces(x: Array, own: Array, plane: Plane, b: int, ends: Array) -> float:
    """A sum piece by piece: in each the new point is above, within or below the gap."""
    points, lower, upper = plane.points, plane.lower[b], plane.upper[b]
    total = 0.0
    for piece in range(len(ends) - 1):
        one, two = ends[piece], ends[piece + 1]
        middle = 0.5 * (one + two)
        if lower != NOBODY and _gap(x[0] - points[lower, 0], x[1] - points[lower, 1], middle) <= 0.0:
            continue
        below = _area(points, lower, -1.0, one, two)
        if upper != NOBODY and _gap(x[0] - points[upper, 0], x[1] - points[upper, 1], middle) >= 0.0:
            total += _area(points, upper, 1.0, one, two) - below
        else:
            total += _area(own, 0, 1.0, one, two) - below
    return total / (2.0 * math.pi)


@njit(**COMPILED)
def shares_in_plane(X: Array, plane: Plane, probabilities: Array) -> Array:
    """Part of each cell in which a unit is positive at a new input, (m, L)."""
    out = np.zeros((len(X), len(probabilities)))
    for i in range(len(X)):
        own = X[i : i + 1]
        for b in range(len(plane.cell)):
            part = _below_part(X[i], own, plane, b)
            out[i, plane.cell[b]] += part if plane.first_above[b] else plane.measure[b] - part
        for k in range(len(probabilities)):
            share = out[i, k] / probabilities[k]
            out[i, k] = 0.0 if share < WHOLE else 1.0 if share > 1.0 - WHOLE else share
    return out
