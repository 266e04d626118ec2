"""Vφ, φᵀVφ: images of columns under the precision V of the ground, which is white (V = I, left empty) or a full matrix.

The one file of compiled moves that asks which. Another kind of precision is another case in each of its functions.
"""

import numpy as np
from numba import njit

from cadlag.network.columns import COMPILED, SIGN, Array, Explained, Rows, add_multiple, dot, write
from cadlag.network.lattice import Lattice

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
def squares_on_lattice(
    j: int, own_kind: int, columns: Array, lattice: Lattice, rows: Rows, fit: Explained, relu_scale: float
) -> Array:
    """φᵀVφ of candidates, first of unit j's own kind, then of the other kind if columns go on."""
    squares, size = np.empty(len(columns)), len(lattice.cosines)
    if len(rows.V) == 0:
        for c in range(len(columns)):
            squares[c] = dot(columns[c], columns[c])
        return squares
    for first in range(0, len(columns), size):
        part, kind = columns[first : first + size], own_kind if first == 0 else 1 - own_kind
        image = fit.images[:, j].copy() if first == 0 else image_of(part[lattice.present], rows.V)
        if kind == SIGN:
            squares_of_signs(part, lattice, image, rows.V, squares[first : first + size])
        else:
            squares_of_hinges(part, lattice, image, rows, relu_scale, squares[first : first + size])
    return squares


@njit(**COMPILED)
def squares_of_signs(columns: Array, lattice: Lattice, image: Array, V: Array, squares: Array) -> None:
    """Both ways from the present angle, as rows change sides."""
    present = lattice.present
    squares[present] = dot(columns[present], image)
    for way in (1, -1):
        value, here, k = squares[present], image.copy(), present + way
        while 0 <= k < len(columns):
            for i in range(len(here)):
                s = columns[k - way, i]
                if s != columns[k, i]:
                    value += 4.0 * s * (s * V[i, i] - here[i])
                    add_multiple(-2.0 * s, V[i], here)
            squares[k] = value
            k += way


@njit(**COMPILED)
def squares_of_hinges(
    columns: Array, lattice: Lattice, image: Array, rows: Rows, relu_scale: float, squares: Array
) -> None:
    """Both ways from the present angle: φ = cos θ·a + sin θ·b on the rows with φ > 0, few of which change.

    Kept are Va, Vb and aᵀVa, aᵀVb, bᵀVb, with a and b zero on the other rows.
    """
    present, V, n = lattice.present, rows.V, len(image)
    a, b, counted = np.empty(n), np.empty(n), np.zeros(n)
    for i in range(n):
        factor = relu_scale * rows.omega[i]
        a[i], b[i] = factor * lattice.along[i], factor * lattice.across[i]
        if columns[present, i] > 0.0:
            counted[i] = b[i]
    image_of_b = np.dot(V, counted)
    for way in (1, -1):
        along, across, k = image.copy(), image_of_b.copy(), present
        aa, ab, bb = dot(columns[present], along), dot(counted, along), dot(counted, across)
        while 0 <= k < len(columns):
            for i in range(n if k != present else 0):
                entered, was = columns[k, i] > 0.0, columns[k - way, i] > 0.0
                if entered != was:
                    x, y, own = a[i] if entered else -a[i], b[i] if entered else -b[i], V[i, i]
                    aa += x * (2.0 * along[i] + x * own)
                    ab += y * along[i] + x * (across[i] + y * own)
                    bb += y * (2.0 * across[i] + y * own)
                    add_multiple(x, V[i], along)
                    add_multiple(y, V[i], across)
            c, s = lattice.cosines[k], lattice.sines[k]
            squares[k] = c * c * aa + 2.0 * c * s * ab + s * s * bb
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
