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

SAME_ANGLE = 1e-12
NOBODY = -1  # the point beyond the first and the last
WHOLE = 1e-12  # a share nearer to none or all than this is a rounding error
_COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


class Plane(NamedTuple):
    """Slices of cells: their points, cell, range of φ, points below and above, side of the first point, measure."""

    points: Array
    cell: NDArray[np.int64]
    start: Array
    end: Array
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    first_above: NDArray[np.bool_]
    measure: Array


@njit(**_COMPILED)
def _area(x: Array, k: int, sign: float, start: float, end: float) -> float:
    """H_k(end) - H_k(start); of nobody, ± the range."""
    if k == NOBODY:
        return sign * (end - start)
    r, omega = math.hypot(x[k, 0], x[k, 1]), math.atan2(x[k, 1], x[k, 0])
    kappa = r / math.hypot(1.0, r)
    return math.asin(kappa * math.sin(end - omega)) - math.asin(kappa * math.sin(start - omega))


@njit(**_COMPILED)
def _critical_angles(x: Array) -> Array:
    """Where two projections change places, in [0, π), with 0 first and π last."""
    n = len(x)
    angles = np.empty(n * (n - 1) // 2 + 2)
    angles[0], angles[1] = 0.0, math.pi
    count = 2
    for i in range(n):
        for j in range(i):
            angles[count] = math.atan2(x[i, 0] - x[j, 0], x[j, 1] - x[i, 1]) % math.pi
            count += 1
    angles.sort()
    kept = angles[:1].copy()
    distinct = [kept[0]]
    for angle in angles[1:]:
        if angle - distinct[-1] > SAME_ANGLE:
            distinct.append(angle)
    distinct[-1] = math.pi
    return np.array(distinct)


@njit(**_COMPILED)
def _slices(x: Array, angles: Array, keys: NDArray[np.uint64]) -> tuple:  # type: ignore[type-arg]
    """All slices: name of the cell (of the points on the other side than the first), range, neighbours, side."""
    n = len(x)
    everybody = np.uint64(0)
    for key in keys:
        everybody ^= key
    names, sides = [keys[0]], [True]
    starts, ends, lowers, uppers = [0.0], [0.0], [0], [0]
    open_name, open_start = np.zeros(n + 1, dtype=np.uint64), np.zeros(n + 1)
    open_lower, open_upper = np.full(n + 1, NOBODY), np.full(n + 1, NOBODY)
    open_side = np.ones(n + 1, dtype=np.bool_)
    for e in range(len(angles) - 1):
        middle = 0.5 * (angles[e] + angles[e + 1])
        order = np.argsort(x[:, 0] * math.cos(middle) + x[:, 1] * math.sin(middle))
        name, above = np.uint64(0), True
        for i in range(n + 1):
            if i > 0:
                name ^= keys[order[i - 1]]
                above = above and order[i - 1] != 0
            canonical = name if above else name ^ everybody
            lower = order[i - 1] if i > 0 else NOBODY
            upper = order[i] if i < n else NOBODY
            same = open_name[i] == canonical and open_lower[i] == lower and open_upper[i] == upper
            if e > 0 and same and open_side[i] == above:
                continue
            if e > 0:
                names.append(open_name[i])
                starts.append(open_start[i])
                ends.append(angles[e])
                lowers.append(open_lower[i])
                uppers.append(open_upper[i])
                sides.append(open_side[i])
            open_name[i], open_lower[i], open_upper[i] = canonical, lower, upper
            open_side[i], open_start[i] = above, angles[e]
    for i in range(n + 1):
        names.append(open_name[i])
        starts.append(open_start[i])
        ends.append(angles[-1])
        lowers.append(open_lower[i])
        uppers.append(open_upper[i])
        sides.append(open_side[i])
    return (
        np.array(names)[1:], np.array(starts)[1:], np.array(ends)[1:], np.array(lowers)[1:], np.array(uppers)[1:],
        np.array(sides)[1:],
    )  # fmt: skip


@njit(**_COMPILED)
def _measures(x: Array, start: Array, end: Array, lower: Array, upper: Array) -> Array:
    out = np.empty(len(start))
    for b in range(len(start)):
        high = _area(x, upper[b], 1.0, start[b], end[b])
        out[b] = (high - _area(x, lower[b], -1.0, start[b], end[b])) / (2.0 * math.pi)
    return out


def divide_plane(x: Array, least: float) -> tuple[Plane, Signs, Array]:
    """Cells of distinct points.

    Parameters
    ----------
    x
        The points, (n, 2).
    least
        Cells of a smaller probability are left out.

    Returns
    -------
    tuple[Plane, Signs, Array]
        Slices, patterns (L, n), probabilities (L,).
    """
    keys = np.random.default_rng(0).integers(1, 2**64, len(x), dtype=np.uint64)  # names of sets, by exclusive or
    names, start, end, lower, upper, above = _slices(x, _critical_angles(x), keys)
    measure = _measures(x, start, end, lower, upper)
    _, first, cell = np.unique(names, return_index=True, return_inverse=True)
    probabilities = np.bincount(cell, measure)
    kept = probabilities > least
    index = np.cumsum(kept) - 1
    use = kept[cell]
    slices = (index[cell[use]], start[use], end[use], lower[use], upper[use], above[use], measure[use])
    middle = 0.5 * (start + end)[first[kept]]
    patterns = _patterns(x, middle, lower[first[kept]], upper[first[kept]], above[first[kept]])
    return Plane(x, *slices), patterns, probabilities[kept]


def _patterns(x: Array, middle: Array, lower: Array, upper: Array, first_above: Array) -> Signs:
    """Which side of a gap every point is on, the first one's being positive."""
    projections = np.outer(np.cos(middle), x[:, 0]) + np.outer(np.sin(middle), x[:, 1])
    rows = np.arange(len(middle))
    low = np.where(lower == NOBODY, -np.inf, projections[rows, lower])
    high = np.where(upper == NOBODY, np.inf, projections[rows, upper])
    above = projections > np.where(np.isinf(low), high - 1.0, np.where(np.isinf(high), low + 1.0, 0.5 * (low + high)))[:, None]
    return np.where(above == first_above[:, None], 1, -1).astype(np.int8)


@njit(**_COMPILED)
def _gap(dx: float, dy: float, angle: float) -> float:
    return dx * math.cos(angle) + dy * math.sin(angle)


@njit(**_COMPILED)
def _crossing(dx: float, dy: float, start: float, end: float) -> float:
    """Where in a range of at most a half turn, at whose ends they differ, two projections are equal."""
    angle = math.atan2(dx, -dy) % math.pi
    return min(max(angle, start), end)


@njit(**_COMPILED)
def _below_part(x: Array, own: Array, plane: Plane, b: int) -> float:
    """Measure of the units of a slice whose threshold is below the new point."""
    points, start, end, lower, upper = plane.points, plane.start[b], plane.end[b], plane.lower[b], plane.upper[b]
    ends = np.array([start, end, end, end])
    count = 1
    over_lower, over_upper = lower == NOBODY, False
    if upper != NOBODY:
        dx, dy = x[0] - points[upper, 0], x[1] - points[upper, 1]
        first, last = _gap(dx, dy, start), _gap(dx, dy, end)
        over_upper = first >= 0.0 and last >= 0.0
        if over_upper:
            return plane.measure[b]
        if first * last < 0.0:
            ends[count] = _crossing(dx, dy, start, end)
            count += 1
    if lower != NOBODY:
        dx, dy = x[0] - points[lower, 0], x[1] - points[lower, 1]
        first, last = _gap(dx, dy, start), _gap(dx, dy, end)
        over_lower = first > 0.0 and last > 0.0
        if first <= 0.0 and last <= 0.0:
            return 0.0
        if first * last < 0.0:
            ends[count] = _crossing(dx, dy, start, end)
            count += 1
    if count == 3 and ends[1] > ends[2]:
        ends[1], ends[2] = ends[2], ends[1]
    return _sum_of_pieces(x, own, plane, b, ends, count, over_lower)


@njit(**_COMPILED)
def _sum_of_pieces(x: Array, own: Array, plane: Plane, b: int, ends: Array, count: int, over_lower: bool) -> float:
    """The same, piece by piece: in each the new point is above, within or below the gap."""
    points, lower, upper = plane.points, plane.lower[b], plane.upper[b]
    total = 0.0
    for piece in range(count):
        one, two = ends[piece], ends[piece + 1] if piece + 1 < count else plane.end[b]
        middle = 0.5 * (one + two)
        if not over_lower and _gap(x[0] - points[lower, 0], x[1] - points[lower, 1], middle) <= 0.0:
            continue
        below = _area(points, lower, -1.0, one, two)
        if upper != NOBODY and _gap(x[0] - points[upper, 0], x[1] - points[upper, 1], middle) >= 0.0:
            total += _area(points, upper, 1.0, one, two) - below
        else:
            total += _area(own, 0, 1.0, one, two) - below
    return total / (2.0 * math.pi)


@njit(**_COMPILED)
def shares_in_plane(X: Array, plane: Plane, probabilities: Array) -> Array:
    """Part of each cell in which a unit is positive at a new input.

    Parameters
    ----------
    X
        New inputs, (m, 2).
    plane
        The slices.
    probabilities
        q of the cells.

    Returns
    -------
    Array
        (m, L).
    """
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
