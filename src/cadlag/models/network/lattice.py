"""w_k = cos θ_k·w + sin θ_k·f, θ_k = (k - k₀)δ: a Gibbs draw over a lattice of angles on the ellipse through w.

f ~ N(0, I), δ random, k₀ uniform: the lattice is as likely to be proposed from each of its points, and a joint rotation
of (w, f) leaves their law alone, so a candidate's weight is its likelihood. It serves units of either kind, can change
the kind, and needs of the data only sums over rows.
"""

import math

import numpy as np
from numba import njit

from cadlag.models.network.circle import pick
from cadlag.models.network.columns import COMPILED, Array, fill_column, gain


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
def score(candidates: Array, Phi: Array, P: Array, residual: Array, noise: float) -> tuple[Array, Array]:
    """S and t of each candidate column, (n, c)."""
    (n, c), m = candidates.shape, P.shape[1]
    projected, overlap = np.zeros((m, c)), np.zeros((m, c))
    precision, pull = np.zeros(c), np.zeros(c)
    for i in range(n):
        for j in range(m):
            for k in range(c):
                projected[j, k] += P[i, j] * candidates[i, k]
                overlap[j, k] += Phi[i, j] * candidates[i, k]
        for k in range(c):
            precision[k] += candidates[i, k] * candidates[i, k]
            pull[k] += candidates[i, k] * residual[i]
    for k in range(c):
        for j in range(m):
            precision[k] -= overlap[j, k] * projected[j, k]
        precision[k] = max(precision[k], 0.0) / noise
        pull[k] /= noise
    return precision, pull


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


@njit(**COMPILED)
def fill_columns(X: Array, omega: Array, directions: Array, kinds: np.ndarray, relu_scale: float) -> Array:
    """Columns of several candidates, (n, c)."""
    c = len(directions)
    out, column = np.empty((len(X), c)), np.empty(len(X))
    for k in range(c):
        fill_column(X, omega, directions[k], kinds[k], relu_scale, column)
        out[:, k] = column
    return out
