"""w_k = cos θ_k·w + sin θ_k·f, θ_k = (k - k₀)δ: a Gibbs draw over a lattice of angles on the ellipse through w.

f ~ N(0, I), δ random, k₀ uniform: the lattice is as likely to be proposed from each of its points, and a joint rotation
of (w, f) leaves their law alone, so a candidate's weight is its likelihood. It serves units of either kind, can change
the kind, and needs of the data only sums over rows.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.circle import combined
from cadlag.network.columns import COMPILED, Array, Explained, Rows, dot, gain, write
from cadlag.sampling.choice import pick


@njit(**COMPILED)
def ellipse(rng: np.random.Generator, direction: Array, n_angles: int) -> Array:
    """Candidate directions, the present one among them, (n_angles, q)."""
    q = len(direction)
    other = rng.standard_normal(q)
    widest = 2.0 * math.pi / n_angles
    spacing = widest if rng.random() < 0.25 else widest * math.exp(-5.0 * rng.random())
    first = -int(rng.random() * n_angles)
    out = np.empty((n_angles, q))
    for k in range(n_angles):
        c, s = math.cos((first + k) * spacing), math.sin((first + k) * spacing)
        write(direction if first + k == 0 else combined(c, direction, s, other), out[k])
    return out


@njit(**COMPILED)
def score(columns: Array, images: Array, rows: Rows, fit: Explained, noise: float) -> tuple[Array, Array, Array]:
    """S and t of each candidate, (c,), and ΦᵀVφ of each, (c, M)."""
    overlaps, weights = np.dot(columns, fit.images), np.dot(fit.C, fit.products)
    reach, precision, pull = np.dot(overlaps, fit.C), np.empty(len(columns)), np.empty(len(columns))
    for c in range(len(columns)):
        precision[c] = max(dot(columns[c], images[c]) - dot(reach[c], overlaps[c]), 0.0) / noise
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
