"""Vφ, φᵀVφ: images of columns under the precision V of the ground: white, V = I, or full, or sparse, V = UUᵀ.

The one file of compiled moves that asks which. Another kind of precision is another case in each of its functions.
Column j of U has m + 1 entries, at its members, so that Uᵀφ and Ux cost O(nm), and a row that flips changes Uᵀφ in the
few places whose sets it is in.
"""

import numpy as np
from numba import njit

from cadlag.linalg.vecchia import Precision
from cadlag.network.columns import COMPILED, MANY, SIGN, Array, Explained, Rows, Under, add_multiple, dot, write
from cadlag.network.lattice import Lattice, Weighed, columns_of, part_of

WIDE = 4  # a window of more than this part of the rows is walked with whole rows of V, which need not be gathered


@njit(**COMPILED)
def image_of(column: Array, V: Under) -> Array:
    """Vφ."""
    if len(V.full) > 0:
        return np.dot(V.full, column)
    if len(V.sparse.values) == 0:
        return column
    out = np.zeros(len(column))
    spread_all(whitened(column, V.sparse), V.sparse, out)
    return out


@njit(**COMPILED)
def squares_in_window(
    j: int, flipping: np.ndarray, arc: int, signs: Array, rows: Rows, fit: Explained
) -> Array:  # fmt: skip
    """φᵀVφ on each arc of a window, both ways from that of unit j, as rows flip one by one."""
    squares = np.full(len(flipping) + 1, fit.gram[j, j])
    if len(rows.V.full) > 0:
        squares_by_rows(j, flipping, arc, signs, rows.V.full, fit, squares)
    elif len(rows.V.sparse.values) > 0:
        squares_by_sets(j, flipping, arc, signs, rows.V.sparse, fit, squares)
    return squares


@njit(**COMPILED)
def squares_by_rows(
    j: int, flipping: np.ndarray, arc: int, signs: Array, V: Array, fit: Explained, squares: Array
) -> None:  # fmt: skip
    """The same for a full V, in O(W²), or O(Wn)."""
    w = len(flipping)
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


# A sparse precision ---------------------------------------------------------------------------------------------------


@njit(**COMPILED)
def squares_by_sets(
    j: int, flipping: np.ndarray, arc: int, signs: Array, V: Precision, fit: Explained, squares: Array
) -> None:  # fmt: skip
    """The same for a sparse V, in O(Wm): what rows have changed of Uᵀφ so far is kept."""
    w, change, values, sets = len(flipping), np.zeros(len(V.values)), V.values.ravel(), V.sets
    for forward in range(2):
        value, length = fit.gram[j, j], w - arc if forward else arc
        for taken in range(length):
            at = arc + taken if forward else arc - 1 - taken
            i, s = flipping[at], signs[at]
            image, own = fit.images[i, j], 0.0
            for k in range(sets.starts[i], sets.starts[i + 1]):
                u = values[sets.places[k]]
                image += u * change[sets.columns[k]]
                own += u * u
            value += 4.0 * s * (s * own - image)
            squares[at + 1 if forward else at] = value
            add_row_to(change, -2.0 * s, i, V)
        for taken in range(length):
            i = flipping[arc + taken if forward else arc - 1 - taken]
            for k in range(sets.starts[i], sets.starts[i + 1]):
                change[sets.columns[k]] = 0.0


@njit(**COMPILED)
def whitened(column: Array, V: Precision) -> Array:
    """Uᵀφ."""
    members, sizes, out = V.sets.members, V.sets.sizes, np.empty(len(column))
    for i in range(len(column)):
        total = 0.0
        for k in range(sizes[i]):
            total += V.values[i, k] * column[members[i, k]]
        out[i] = total
    return out


@njit(**COMPILED)
def spread(i: int, x: float, V: Precision, out: Array) -> None:
    """Column i of U, x times, added."""
    for k in range(V.sets.sizes[i]):
        out[V.sets.members[i, k]] += x * V.values[i, k]


@njit(**COMPILED)
def spread_all(x: Array, V: Precision, out: Array) -> None:
    """Ux, added."""
    for i in range(len(x)):
        spread(i, x[i], V, out)


@njit(**COMPILED)
def add_row_to(change: Array, factor: float, i: int, V: Precision) -> None:
    """Uᵀφ where row i of φ is more by so much."""
    sets, values = V.sets, V.values.ravel()
    for k in range(sets.starts[i], sets.starts[i + 1]):
        change[sets.columns[k]] += factor * values[sets.places[k]]


@njit(**COMPILED)
def products_with_row(x: Array, y: Array, i: int, V: Precision) -> tuple[float, float, float]:
    """UᵀE_iᵀ times x and y, and itself, E_i the i-th row of ones and zeros."""
    sets, values = V.sets, V.values.ravel()
    of_x, of_y, own = 0.0, 0.0, 0.0
    for k in range(sets.starts[i], sets.starts[i + 1]):
        u = values[sets.places[k]]
        of_x += u * x[sets.columns[k]]
        of_y += u * y[sets.columns[k]]
        own += u * u
    return of_x, of_y, own


@njit(**COMPILED)
def entry_on(lattice: Lattice, k: int, i: int) -> float:
    """Candidate k times row i."""
    return lattice.cosines[k] * lattice.along[i] + lattice.sines[k] * lattice.across[i]


@njit(**COMPILED)
def signs_by_sets(lattice: Lattice, omega: Array, V: Precision, squares: Array) -> None:
    """φᵀVφ of steps, both ways from the present angle, as rows change sides."""
    n, present, column = len(omega), lattice.present, np.empty(len(omega))
    for i in range(n):
        column[i] = omega[i] if entry_on(lattice, present, i) >= 0.0 else -omega[i]
    at_present = whitened(column, V)
    for way in (1, -1):
        here, value, k = at_present.copy(), dot(at_present, at_present), present
        while 0 <= k < len(squares):
            for i in range(n if k != present else 0):
                side = entry_on(lattice, k, i) >= 0.0
                if side != (entry_on(lattice, k - way, i) >= 0.0):
                    step = 2.0 * omega[i] if side else -2.0 * omega[i]
                    of_here, _, own = products_with_row(here, here, i, V)
                    value += step * (2.0 * of_here + step * own)
                    add_row_to(here, step, i, V)
            squares[k] = value
            k += way


@njit(**COMPILED)
def hinges_by_sets(lattice: Lattice, omega: Array, relu_scale: float, V: Precision, squares: Array) -> None:
    """φᵀVφ of hinges: Uᵀa and Uᵀb with a and b zero where φ is, both ways, as rows come to φ > 0 and leave it."""
    n, present = len(omega), lattice.present
    a, b = np.zeros(n), np.zeros(n)
    for i in range(n):
        if entry_on(lattice, present, i) > 0.0:
            a[i], b[i] = relu_scale * omega[i] * lattice.along[i], relu_scale * omega[i] * lattice.across[i]
    first, second = whitened(a, V), whitened(b, V)
    for way in (1, -1):
        along, across, k = first.copy(), second.copy(), present
        aa, ab, bb = dot(first, first), dot(first, second), dot(second, second)
        n_left = 0
        for i in range(n):
            n_left += entry_on(lattice, present, i) > 0.0
        while 0 <= k < len(squares):
            for i in range(n if k != present else 0):
                entered = entry_on(lattice, k, i) > 0.0
                if entered != (entry_on(lattice, k - way, i) > 0.0):
                    n_left += 1 if entered else -1
                    factor = relu_scale * omega[i] if entered else -relu_scale * omega[i]
                    x, y = factor * lattice.along[i], factor * lattice.across[i]
                    of_a, of_b, own = products_with_row(along, across, i, V)
                    aa += x * (2.0 * of_a + x * own)
                    ab += y * of_a + x * (of_b + y * own)
                    bb += y * (2.0 * of_b + y * own)
                    add_row_to(along, x, i, V)
                    add_row_to(across, y, i, V)
            if n_left == 0:
                aa, ab, bb = 0.0, 0.0, 0.0
                along[:], across[:] = 0.0, 0.0
            c, s = lattice.cosines[k], lattice.sines[k]
            squares[k] = c * c * aa + 2.0 * c * s * ab + s * s * bb
            k += way


# Candidates -----------------------------------------------------------------------------------------------------------


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
    size, n, V = len(lattice.cosines), len(rows.omega), rows.V
    full, sparse = len(V.full) > 0, len(V.sparse.values) > 0
    c, step = 2 * size if both else size, max(n, 1) if full else MANY
    squares, overlaps, products, images = np.zeros(c), np.zeros((c, len(fit.C))), np.zeros(c), np.empty((0, 0))
    for start in range(0, n, step):
        stop = min(start + step, n)
        part, columns = part_of(lattice, start, stop), np.empty((c, stop - start))
        columns_of(part, own_kind, rows.omega[start:stop], relu_scale, columns[:size])
        columns_of(part, 1 - own_kind, rows.omega[start:stop], relu_scale, columns[size:])
        if full:
            squares, images = squares_on_lattice(j, own_kind, columns, lattice, V.full, rows, fit, relu_scale)
        overlaps += np.dot(columns, fit.images[start:stop])
        for k in range(c):
            products[k] += dot(columns[k], rows.pulled[start:stop])
            if not full and not sparse:
                squares[k] += dot(columns[k], columns[k])
    for first in range(0, c if sparse else 0, size):
        if (own_kind if first == 0 else 1 - own_kind) == SIGN:
            signs_by_sets(lattice, rows.omega, V.sparse, squares[first : first + size])
        else:
            hinges_by_sets(lattice, rows.omega, relu_scale, V.sparse, squares[first : first + size])
    return Weighed(squares, overlaps, products), images


@njit(**COMPILED)
def squares_on_lattice(
    j: int, own_kind: int, columns: Array, lattice: Lattice, V: Array, rows: Rows, fit: Explained, relu_scale: float
) -> tuple[Array, Array]:
    """φᵀVφ and Vφ of candidates under a full V."""
    squares, size = np.empty(len(columns)), len(lattice.cosines)
    images, both, own = np.empty(columns.shape), len(columns) > size, fit.images[:, j].copy()
    hinge = hinge_parts(lattice, columns[size:] if both and own_kind == SIGN else columns[:size], rows, relu_scale)
    if both:
        of_other, of_hinge = images_of_two(columns[size + lattice.present], hinge[2], V)
    else:
        of_other, of_hinge = own, (own if own_kind == SIGN else np.dot(V, hinge[2]))
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
    full, sparse = rows.V.full, rows.V.sparse
    if len(full) == 0 and len(sparse.values) == 0:
        for at in range(len(flipped)):
            fit.images[flipped[at], j] = -signs[at]
        return
    if len(full) == 0:
        flip_by_sets(j, flipped, signs, sparse, fit)
        return
    image = fit.images[:, j].copy()
    for at in range(len(flipped)):
        add_multiple(-2.0 * signs[at], full[flipped[at]], image)
    write(image, fit.images[:, j])


@njit(**COMPILED)
def flip_by_sets(j: int, flipped: np.ndarray, signs: Array, V: Precision, fit: Explained) -> None:
    """The same for a sparse V, in O(m²) for each row that has changed: first Uᵀφ, then what of it has changed."""
    change, sets = np.zeros(len(V.values)), V.sets
    for at in range(len(flipped)):
        add_row_to(change, -2.0 * signs[at], flipped[at], V)
    for at in range(len(flipped)):
        for k in range(sets.starts[flipped[at]], sets.starts[flipped[at] + 1]):
            column = sets.columns[k]
            if change[column] != 0.0:
                spread(column, change[column], V, fit.images[:, j])
                change[column] = 0.0
