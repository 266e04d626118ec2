"""w_k = cos θ_k·w + sin θ_k·f, θ_k = (k - k₀)δ: a Gibbs draw over a lattice of angles on the ellipse through w.

f ~ N(0, I), δ random, k₀ uniform: the lattice is as likely to be proposed from each of its points, and a joint rotation
of (w, f) leaves their law alone, so a candidate's weight is its likelihood. It serves units of either kind, can change
the kind, and needs of the data only sums over rows.
"""

import math

import numpy as np
from numba import njit

from cadlag.network.circle import pick
from cadlag.network.columns import COMPILED, Array, Fit, Law, Rows, entry, fill_column, gain


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
def score(directions: Array, kinds: np.ndarray, rows: Rows, fit: Fit, law: Law) -> tuple[Array, Array]:
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
def score_on_bulk(directions: Array, kinds: np.ndarray, rows: Rows, fit: Fit, law: Law) -> tuple[Array, Array, Array]:
    """S and t of each candidate, and the images Vφ, (c, n)."""
    c = len(directions)
    columns = np.empty((c, len(rows.y)))
    for k in range(c):
        fill_column(rows.X, rows.omega, directions[k], kinds[k], law.relu_scale, columns[k])
    image = np.dot(columns, rows.inverse)
    precision = (columns * image).sum(axis=1) - (np.dot(columns, fit.images) * np.dot(columns, fit.P)).sum(axis=1)
    return np.maximum(precision, 0.0) / law.noise, np.dot(columns, fit.residual) / law.noise, image


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
