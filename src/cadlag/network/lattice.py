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
from cadlag.network.columns import COMPILED, MANY, SIGN, Array, Explained, dot, gain, products, write
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


class Weighed(NamedTuple):
    """φᵀVφ, ΦᵀVφ and φᵀVy of candidates: (c,), (c, M), (c,)."""

    squares: Array
    overlaps: Array
    products: Array


@njit(**COMPILED)
def ellipse(rng: np.random.Generator, direction: Array, n_angles: int, XT: Array) -> Lattice:
    """A lattice of angles with random spacing, and the present one at a random place."""
    other = rng.standard_normal(len(direction))
    widest = 2.0 * math.pi / n_angles
    finest = 5.0 + max(math.log(XT.shape[1] / MANY), 0.0)
    spacing = widest if rng.random() < 0.25 else widest * math.exp(-finest * rng.random())
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
def part_of(lattice: Lattice, start: int, stop: int) -> Lattice:
    """The candidates at some of the rows."""
    along, across = lattice.along[start:stop], lattice.across[start:stop]
    return Lattice(
        lattice.direction, lattice.other, lattice.cosines, lattice.sines, lattice.present, along, across
    )  # fmt: skip


@njit(**COMPILED)
def column_of(lattice: Lattice, k: int, kind: int, omega: Array, relu_scale: float) -> Array:
    """One candidate at every row."""
    out = np.empty((1, len(omega)))
    cosines, sines = lattice.cosines[k : k + 1], lattice.sines[k : k + 1]
    one = Lattice(lattice.direction, lattice.other, cosines, sines, 0, lattice.along, lattice.across)
    columns_of(one, kind, omega, relu_scale, out)
    return out[0]


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
def score(weighed: Weighed, fit: Explained, noise: float) -> tuple[Array, Array]:
    """S and t of each candidate, (c,)."""
    overlaps, weights = weighed.overlaps, np.dot(fit.C, fit.products)
    reach, precision, pull = np.dot(overlaps, fit.C), np.empty(len(overlaps)), np.empty(len(overlaps))
    for c in range(len(overlaps)):
        precision[c] = max(weighed.squares[c] - dot(reach[c], overlaps[c]), 0.0) / noise
        pull[c] = (weighed.products[c] - dot(overlaps[c], weights)) / noise
    return precision, pull


@njit(**COMPILED)
def record(j: int, c: int, column: Array, image: Array, weighed: Weighed, fit: Explained) -> None:
    """Image and sums of unit j, whose column is another, candidate c."""
    write(image, fit.images[:, j])
    write(weighed.overlaps[c], fit.gram[j])
    fit.gram[j, j] = dot(column, image)
    write(fit.gram[j], fit.gram[:, j])
    fit.products[j] = weighed.products[c]


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
