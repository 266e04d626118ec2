"""Vφ, φᵀVφ: images of columns under the precision V of the ground, which is white (V = I, left empty) or a full matrix.

The one file of compiled moves that asks which. Another kind of precision is another case in each of its functions.
"""

import numpy as np
from numba import njit

from cadlag.network.columns import COMPILED, Array, Explained, Rows, write


@njit(**COMPILED)
def images_of(columns: Array, V: Array) -> Array:
    """Vφ of several columns, (c, n) each."""
    return np.dot(columns, V) if len(V) > 0 else columns


@njit(**COMPILED)
def squares_in_window(
    j: int, flipping: np.ndarray, arc: int, signs: Array, rows: Rows, fit: Explained
) -> Array:  # fmt: skip
    """φᵀVφ on each arc of a window, both ways from that of unit j, as rows flip one by one; in O(W²)."""
    w, V = len(flipping), rows.V
    squares = np.full(w + 1, fit.gram[j, j])
    if len(V) == 0:
        return squares
    here = np.empty(w)
    for forward in range(2):
        value = fit.gram[j, j]
        for at in range(w):
            here[at] = fit.images[flipping[at], j]
        for taken in range(w - arc if forward else arc):
            at = arc + taken if forward else arc - 1 - taken
            i, s = flipping[at], signs[at]
            value += 4.0 * s * (s * V[i, i] - here[at])
            squares[at + 1 if forward else at] = value
            for other in range(at + 1, w) if forward else range(at):
                here[other] -= 2.0 * s * V[i, flipping[other]]
    return squares


@njit(**COMPILED)
def flip_image(j: int, flipped: np.ndarray, signs: Array, rows: Rows, fit: Explained) -> None:
    """Vφ of unit j where some rows have changed sides."""
    if len(rows.V) == 0:
        for at in range(len(flipped)):
            fit.images[flipped[at], j] = -signs[at]
        return
    image = fit.images[:, j].copy()
    for at in range(len(flipped)):
        step, row = 2.0 * signs[at], rows.V[flipped[at]]
        for k in range(len(image)):
            image[k] -= step * row[k]
    write(image, fit.images[:, j])
