"""w_k = cos θ_k·w + sin θ_k·f, θ_k = (k - k₀)δ: a Gibbs draw over a lattice of angles on the ellipse through w.

f ~ N(0, I), δ random, k₀ uniform: the lattice is as likely to be proposed from each of its points, and a joint rotation
of (w, f) leaves their law alone, so a candidate's weight is its likelihood. It serves units of either kind, can change
the kind, and needs of the data only sums over rows.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from cadlag.network.circle import combined
from cadlag.network.columns import COMPILED, SIGN, Array, Explained, Rows, dot, gain, products, write
from cadlag.sampling.choice import pick


class Lattice(NamedTuple):
    """Candidates cos θ_k·direction + sin θ_k·other, the present one, with θ = 0, among them; both at the rows, too."""

    direction: Array
    other: Array
    cosines: Array
    sines: Array
    present: int
    along: Array
    across: Array


@njit(**COMPILED)
def ellipse(rng: np.random.Generator, direction: Array, n_angles: int, XT: Array) -> Lattice:
    """A lattice of angles with random spacing, and the present one at a random place."""
    other = rng.standard_normal(len(direction))
    widest = 2.0 * math.pi / n_angles
    spacing = widest if rng.random() < 0.25 else widest * math.exp(-5.0 * rng.random())
    present = int(rng.random() * n_angles)
    cosines, sines = np.empty(n_angles), np.empty(n_angles)
    for k in range(n_angles):
        cosines[k], sines[k] = math.cos((k - present) * spacing), math.sin((k - present) * spacing)
    return Lattice(direction.copy(), other, cosines, sines, present, products(XT, direction), products(XT, other))


@njit(**COMPILED)
def candidate(lattice: Lattice, k: int) -> Array:
    """A direction; the present one as it is, to the bit."""
    return combined(lattice.cosines[k], lattice.direction, lattice.sines[k], lattice.other)


@njit(**COMPILED)
def columns_of(lattice: Lattice, kind: int, omega: Array, relu_scale: float, out: Array) -> None:
    """The candidates of a kind at every row."""
    along, across = lattice.along, lattice.across
    for k in range(len(out)):
        c, s, column = lattice.cosines[k], lattice.sines[k], out[k]
        for i in range(len(column)):
            z = c * along[i] + s * across[i]
            if kind == SIGN:
                column[i] = omega[i] if z >= 0.0 else -omega[i]
            else:
                column[i] = omega[i] * (relu_scale * max(z, 0.0))


@njit(**COMPILED)
def score(columns: Array, squares: Array, rows: Rows, fit: Explained, noise: float) -> tuple[Array, Array, Array]:
    """S and t of each candidate, (c,), and ΦᵀVφ of each, (c, M), from φᵀVφ."""
    overlaps, weights = np.dot(columns, fit.images), np.dot(fit.C, fit.products)
    reach, precision, pull = np.dot(overlaps, fit.C), np.empty(len(columns)), np.empty(len(columns))
    for c in range(len(columns)):
        precision[c] = max(squares[c] - dot(reach[c], overlaps[c]), 0.0) / noise
        pull[c] = (dot(columns[c], rows.pulled) - dot(overlaps[c], weights)) / noise
    return precision, pull, overlaps


@njit(**COMPILED)
def record(j: int, column: Array, image: Array, overlaps: Array, rows: Rows, fit: Explained) -> None:
    """Image and sums of unit j, whose column is another."""
    write(image, fit.images[:, j])
    write(overlaps, fit.gram[j])
    fit.gram[j, j] = dot(column, image)
    write(fit.gram[j], fit.gram[:, j])
    fit.products[j] = dot(column, rows.pulled)


@njit(**COMPILED)
def choose_candidate(
    rng: np.random.Generator, precision: Array, pull: Array, variances: Array, log_prior: Array
) -> tuple[int, int]:
    """(candidate, index of the scale), from likelihood × prior of the scale."""
    c, n_scales = len(precision), len(variances)
    weights = np.empty(c * n_scales)
    for i in range(c):
        for k in range(n_scales):
            weights[i * n_scales + k] = log_prior[k] + gain(variances[k], precision[i], pull[i])
    chosen = pick(rng, weights, weights.max())
    return chosen // n_scales, chosen % n_scales
