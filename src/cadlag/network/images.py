"""Vφ, φᵀVφ: images of columns under the precision V of the ground, which is white (V = I, left empty) or a full matrix.

The one file of compiled moves that asks which. Another kind of precision is another case in the functions below that
are called from elsewhere: `image_of`, `own_image`, `take_image`, `turn`, `squares_on_circle`, `score`.
"""

import numpy as np
from numba import njit

from cadlag.network.circle import angle_of, signs_on_arc
from cadlag.network.columns import COMPILED, Array, Common, Explained, Members, Rows, column_of, entry, fill_column


@njit(**COMPILED)
def image_of(j: int, rows: Rows, fit: Explained) -> Array:
    """Vφ of unit j as it was put in; empty where it is φ itself."""
    return fit.images[:, j].copy() if len(rows.V) > 0 else np.empty(0)


@njit(**COMPILED)
def own_image(column: Array, image: Array) -> Array:
    """The image of a column, which is the column itself where none was kept."""
    return image if len(image) > 0 else column


@njit(**COMPILED)
def take_image(images: Array, c: int, image: Array) -> None:
    """Overwrite an image by that of a candidate, where images are kept."""
    if len(image) > 0:
        image[:] = images[c]


@njit(**COMPILED)
def turn(j: int, direction: Array, image: Array, rows: Rows, members: Members, law: Common) -> None:
    """Give a unit another direction, and its image with it."""
    if len(rows.V) == 0:
        members.W[j] = direction
        return
    before = column_of(j, rows, members, law)
    members.W[j] = direction
    carry_image(before, column_of(j, rows, members, law), rows.V, image)


@njit(**COMPILED)
def carry_image(before: Array, after: Array, V: Array, image: Array) -> None:
    """Vφ of one column made that of another, row by row where few entries differ."""
    n, n_changed = len(before), 0
    for i in range(n):
        n_changed += before[i] != after[i]
    if 2 * n_changed > n:
        image[:] = np.dot(V, after)
        return
    for i in range(n):
        change = after[i] - before[i]
        if change != 0.0:
            for k in range(n):
                image[k] += change * V[i, k]


@njit(**COMPILED)
def squares_on_circle(
    j: int, e: Array, f: Array, order: np.ndarray, angles: Array, signs: Array, image: Array, rows: Rows,
    members: Members, law: Common,
) -> Array:  # fmt: skip
    """φᵀVφ of the candidate on each of the n + 1 arcs, walking from that of unit j, whose image is known."""
    n, arc = len(order), 0
    if len(rows.V) == 0:
        return np.full(n + 1, np.sum(signs * signs))
    present = angle_of(members.W[j], e, f)
    while arc < n and angles[order[arc]] <= present:
        arc += 1
    here, moved, squares = signs_on_arc(order, signs, arc), image.copy(), np.empty(n + 1)
    carry_image(column_of(j, rows, members, law), here, rows.V, moved)
    walk_squares(order, arc, here, moved, rows.V, squares)
    return squares


@njit(**COMPILED)
def walk_squares(order: np.ndarray, arc: int, column: Array, image: Array, V: Array, squares: Array) -> None:
    """φᵀVφ on each of the n + 1 arcs, both ways from the one on which φ and Vφ are known; in O(n²)."""
    n, here = len(order), 0.0
    for i in range(n):
        here += column[i] * image[i]
    squares[arc] = here
    for forward in range(2):
        value, moving = here, image.copy()
        for taken in range(n - arc if forward else arc):
            at = arc + taken if forward else arc - 1 - taken
            i = order[at]
            s = column[i]
            value += 4.0 * s * (s * V[i, i] - moving[i])
            squares[at + 1 if forward else at] = value
            for k in range(n):
                moving[k] -= 2.0 * s * V[i, k]


@njit(**COMPILED)
def score(directions: Array, kinds: np.ndarray, rows: Rows, fit: Explained, law: Common) -> tuple[Array, Array, Array]:
    """S and t of each candidate, and its image, (c, n), which is empty where it is the column itself."""
    if len(rows.V) > 0:
        return score_on_bulk(directions, kinds, rows, fit, law)
    precision, pull = score_on_white(directions, kinds, rows, fit, law)
    return precision, pull, np.empty((0, 0))


@njit(**COMPILED)
def score_on_white(
    directions: Array, kinds: np.ndarray, rows: Rows, fit: Explained, law: Common
) -> tuple[Array, Array]:
    """S and t of each candidate where V = I, row by row."""
    images, P, residual = fit.images, fit.P, fit.residual
    (n, m), c = P.shape, len(directions)
    projected, overlap = np.zeros((m, c)), np.zeros((m, c))
    precision, pull, here = np.zeros(c), np.zeros(c), np.empty(c)
    for i in range(n):
        for k in range(c):
            here[k] = entry(rows.X[i], directions[k], kinds[k], law.relu_scale) * rows.omega[i]
            precision[k] += here[k] * here[k]
            pull[k] += here[k] * residual[i]
        for j in range(m):
            for k in range(c):
                projected[j, k] += P[i, j] * here[k]
                overlap[j, k] += images[i, j] * here[k]
    for k in range(c):
        for j in range(m):
            precision[k] -= overlap[j, k] * projected[j, k]
        precision[k] = max(precision[k], 0.0) / law.noise
        pull[k] /= law.noise
    return precision, pull


@njit(**COMPILED)
def score_on_bulk(
    directions: Array, kinds: np.ndarray, rows: Rows, fit: Explained, law: Common
) -> tuple[Array, Array, Array]:
    """S and t of each candidate, and the images Vφ, (c, n)."""
    c = len(directions)
    columns = np.empty((c, len(rows.y)))
    for k in range(c):
        fill_column(rows.X, rows.omega, directions[k], kinds[k], law.relu_scale, columns[k])
    image = np.dot(columns, rows.V)
    precision = (columns * image).sum(axis=1) - (np.dot(columns, fit.images) * np.dot(columns, fit.P)).sum(axis=1)
    return np.maximum(precision, 0.0) / law.noise, np.dot(columns, fit.residual) / law.noise, image
