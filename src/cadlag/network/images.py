"""Vφ, φᵀVφ: images of columns under the precision V of the ground, which is white (V = I, left empty) or a full matrix.

The one file of compiled moves that asks which. Another kind of precision is another case in each of its functions.
"""

import numpy as np
from numba import njit

from cadlag.network.columns import COMPILED, MANY, SIGN, Array, Explained, Rows, add_multiple, dot, write
from cadlag.network.lattice import Lattice, Weighed, columns_of, part_of

WIDE = 4  # a window of more than this part of the rows is walked with whole rows of V, which need not be gathered


@njit(**COMPILED)
def image_of(column: Array, V: Array) -> Array:
    """Vφ."""
    return np.dot(V, column) if len(V) > 0 else column


@njit(**COMPILED)
def squares_in_window(
    j: int, flipping: np.ndarray, arc: int, signs: Array, rows: Rows, fit: Explained
) -> Array:  # fmt: skip
    """φᵀVφ on each arc of a window, both ways from that of unit j, as rows flip one by one; in O(W²), or O(Wn)."""
    w, V = len(flipping), rows.V
    squares = np.full(w + 1, fit.gram[j, j])
    if len(V) == 0:
        return squares
    wide, here = len(V) < WIDE * w, np.empty(len(V))
    for forward in range(2):
        value = fit.gram[j, j]
        if wide:
            write(fit.images[:, j], here)
        else:
            for at in range(w):
                here[at] = fit.images[flipping[at], j]
        for taken in range(w - arc if forward else arc):
            at = arc + taken if forward else arc - 1 - taken
            i, s = flipping[at], signs[at]
            value += 4.0 * s * (s * V[i, i] - here[i if wide else at])
            squares[at + 1 if forward else at] = value
            if wide:
                add_multiple(-2.0 * s, V[i], here)
            else:
                for other in range(at + 1, w) if forward else range(at):
                    here[other] -= 2.0 * s * V[i, flipping[other]]
    return squares


@njit(**COMPILED)
def images_of_two(x: Array, y: Array, V: Array) -> tuple[Array, Array]:
    """Vx and Vy in one pass over V, which is the dearer part of either: its rows, which are its columns, added up."""
    n, of_x, of_y = len(x), np.zeros(len(x)), np.zeros(len(x))
    for i in range(0, n - n % 4, 4):
        a, b, c, d = V[i], V[i + 1], V[i + 2], V[i + 3]
        xa, xb, xc, xd = x[i], x[i + 1], x[i + 2], x[i + 3]
        ya, yb, yc, yd = y[i], y[i + 1], y[i + 2], y[i + 3]
        for k in range(n):
            of_x[k] += (xa * a[k] + xb * b[k]) + (xc * c[k] + xd * d[k])
            of_y[k] += (ya * a[k] + yb * b[k]) + (yc * c[k] + yd * d[k])
    for i in range(n - n % 4, n):
        add_multiple(x[i], V[i], of_x)
        add_multiple(y[i], V[i], of_y)
    return of_x, of_y


@njit(**COMPILED)
def weigh_candidates(
    j: int, own_kind: int, both: bool, lattice: Lattice, rows: Rows, fit: Explained, relu_scale: float
) -> tuple[Weighed, Array]:
    """What is needed of candidates, first of unit j's own kind, then of the other if both; and Vφ where V is full."""
    size, n = len(lattice.cosines), len(rows.omega)
    c, step = 2 * size if both else size, max(n, 1) if len(rows.V) > 0 else MANY
    squares, overlaps, products, images = np.zeros(c), np.zeros((c, len(fit.C))), np.zeros(c), np.empty((0, 0))
    for start in range(0, n, step):
        stop = min(start + step, n)
        part, columns = part_of(lattice, start, stop), np.empty((c, stop - start))
        columns_of(part, own_kind, rows.omega[start:stop], relu_scale, columns[:size])
        columns_of(part, 1 - own_kind, rows.omega[start:stop], relu_scale, columns[size:])
        if len(rows.V) > 0:
            squares, images = squares_on_lattice(j, own_kind, columns, lattice, rows, fit, relu_scale)
        overlaps += np.dot(columns, fit.images[start:stop])
        for k in range(c):
            products[k] += dot(columns[k], rows.pulled[start:stop])
            if len(rows.V) == 0:
                squares[k] += dot(columns[k], columns[k])
    return Weighed(squares, overlaps, products), images


@njit(**COMPILED)
def squares_on_lattice(
    j: int, own_kind: int, columns: Array, lattice: Lattice, rows: Rows, fit: Explained, relu_scale: float
) -> tuple[Array, Array]:
    """φᵀVφ and Vφ of candidates under a full V."""
    squares, size, V = np.empty(len(columns)), len(lattice.cosines), rows.V
    images, both, own = np.empty(columns.shape), len(columns) > size, fit.images[:, j].copy()
    hinge = hinge_parts(lattice, columns[size:] if both and own_kind == SIGN else columns[:size], rows, relu_scale)
    if both:
        of_other, of_hinge = images_of_two(columns[size + lattice.present], hinge[2], V)
    else:
        of_other, of_hinge = own, (own if own_kind == SIGN else image_of(hinge[2], V))
    for first in range(0, len(columns), size):
        kind, image = (own_kind, own) if first == 0 else (1 - own_kind, of_other)
        part = slice(first, first + size)
        if kind == SIGN:
            follow_signs(columns[part], lattice, image, V, squares[part], images[part])
        else:
            follow_hinges(columns[part], lattice, image, of_hinge, hinge, V, squares[part], images[part])
    return squares, images


@njit(**COMPILED)
def follow_signs(columns: Array, lattice: Lattice, image: Array, V: Array, squares: Array, images: Array) -> None:
    """Both ways from the present angle, as rows change sides."""
    present = lattice.present
    for way in (1, -1):
        value, here, k = dot(columns[present], image), image.copy(), present
        while 0 <= k < len(columns):
            for i in range(len(here) if k != present else 0):
                s = columns[k - way, i]
                if s != columns[k, i]:
                    value += 4.0 * s * (s * V[i, i] - here[i])
                    add_multiple(-2.0 * s, V[i], here)
            squares[k] = value
            write(here, images[k])
            k += way


@njit(**COMPILED)
def hinge_parts(lattice: Lattice, columns: Array, rows: Rows, relu_scale: float) -> tuple[Array, Array, Array]:
    """a and b, of which φ = cos θ·a + sin θ·b where φ > 0, and b where that is so at the present angle."""
    n, present = len(rows.omega), lattice.present
    a, b, counted = np.empty(n), np.empty(n), np.zeros(n)
    for i in range(n):
        factor = relu_scale * rows.omega[i]
        a[i], b[i] = factor * lattice.along[i], factor * lattice.across[i]
        if columns[present, i] > 0.0:
            counted[i] = b[i]
    return a, b, counted


@njit(**COMPILED)
def follow_hinges(
    columns: Array, lattice: Lattice, image: Array, of_hinge: Array, hinge: tuple[Array, Array, Array], V: Array,
    squares: Array, images: Array,
) -> None:  # fmt: skip
    """Both ways from the present angle, as rows come to φ > 0 and leave it.

    Kept are Va, Vb and aᵀVa, aᵀVb, bᵀVb, with a and b zero on the other rows; where none are left, so is all of them.
    """
    present, (a, b, counted) = lattice.present, hinge
    for way in (1, -1):
        along, across, k = image.copy(), of_hinge.copy(), present
        aa, ab, bb = dot(columns[present], along), dot(counted, along), dot(counted, across)
        n_left = 0
        for i in range(len(a)):
            n_left += columns[present, i] > 0.0
        while 0 <= k < len(columns):
            for i in range(len(a) if k != present else 0):
                entered, was = columns[k, i] > 0.0, columns[k - way, i] > 0.0
                if entered != was:
                    n_left += 1 if entered else -1
                    x, y, own = a[i] if entered else -a[i], b[i] if entered else -b[i], V[i, i]
                    aa += x * (2.0 * along[i] + x * own)
                    ab += y * along[i] + x * (across[i] + y * own)
                    bb += y * (2.0 * across[i] + y * own)
                    add_multiple(x, V[i], along)
                    add_multiple(y, V[i], across)
            if n_left == 0:
                aa, ab, bb = 0.0, 0.0, 0.0
                along[:], across[:] = 0.0, 0.0
            c, s = lattice.cosines[k], lattice.sines[k]
            squares[k] = c * c * aa + 2.0 * c * s * ab + s * s * bb
            for i in range(len(a)):
                images[k, i] = c * along[i] + s * across[i]
            k += way


@njit(**COMPILED)
def flip_image(j: int, flipped: np.ndarray, signs: Array, rows: Rows, fit: Explained) -> None:
    """Vφ of unit j where some rows have changed sides."""
    if len(rows.V) == 0:
        for at in range(len(flipped)):
            fit.images[flipped[at], j] = -signs[at]
        return
    image = fit.images[:, j].copy()
    for at in range(len(flipped)):
        add_multiple(-2.0 * signs[at], rows.V[flipped[at]], image)
    write(image, fit.images[:, j])
