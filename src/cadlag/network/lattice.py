"""w_k = cos θ_k·w + sin θ_k·f, θ_k = (k - k₀)δ: a Gibbs draw over a lattice of angles on the ellipse through w.

f ~ N(0, I), δ random, k₀ uniform: the lattice is as likely to be proposed from each of its points, and a joint rotation
of (w, f) leaves their law alone, so a candidate's weight is its likelihood. It serves units of either kind, can change
the kind, and needs of the data only sums over rows.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.columns import COMPILED, Array, Explained, Rows, gain
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
        for i in range(q):
            out[k, i] = c * direction[i] + s * other[i]
    out[-first] = direction
    return out


@njit(**COMPILED)
def score(columns: Array, images: Array, rows: Rows, fit: Explained, noise: float) -> tuple[Array, Array, Array]:
    """S and t of each candidate, (c,), and ΦᵀVφ of each, (c, M)."""
    overlaps, weights = np.dot(columns, fit.images), np.dot(fit.C, fit.products)
    squares = (columns * images).sum(axis=1)
    precision = squares - (np.dot(overlaps, fit.C) * overlaps).sum(axis=1)
    pull = np.dot(columns, rows.pulled) - np.dot(overlaps, weights)
    return np.maximum(precision, 0.0) / noise, pull / noise, overlaps


@njit(**COMPILED)
def record(j: int, column: Array, image: Array, overlaps: Array, rows: Rows, fit: Explained) -> None:
    """Image and sums of unit j, whose column is another."""
    fit.images[:, j] = image
    fit.gram[j] = overlaps
    fit.gram[j, j] = np.dot(column, image)
    fit.gram[:, j] = fit.gram[j]
    fit.products[j] = np.dot(column, rows.pulled)


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
