"""A_jj² ~ χ²(δ + γ + 1 + j), A_ij ~ N(0, 1), χ²(δ + P + 2), ξ ~ N(0, I): what is random in a draw of a layer.

Draws of χ² move with its degrees of freedom at a fixed quantile, which makes the bound differentiable by δ and γ.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln

from cadlag.linalg.gaussian import Array


class Noise(NamedTuple):
    """What is random in one draw of a layer.

    Attributes
    ----------
    A
        Upper triangular, (P, P).
    moves
        Derivative of A_jj²/2 by half of its degrees of freedom, (P,).
    squares
        χ² of each row, (n,), or of all, (1,).
    square_moves
        Derivative of half of it by half of its degrees of freedom.
    normals
        ξ of each row, (P, n), or of all, (P, 1).
    """

    A: Array
    moves: Array
    squares: Array
    square_moves: Array
    normals: Array


def draw_noise(
    rng: np.random.Generator, delta: float, gamma: float, size: int, n: int, counted: int = 1, moving: bool = True
) -> Noise:
    """Draw what is random in a layer."""
    shapes: Array = 0.5 * (delta + gamma + 1.0 + np.arange(1, size + 1, dtype=float))
    halves = rng.standard_gamma(shapes)
    A = np.triu(rng.standard_normal((size, size)), 1)
    A[np.diag_indices(size)] = np.sqrt(2.0 * halves)
    shape = 0.5 * (delta + size + 1.0 + counted)
    own = rng.standard_gamma(shape, n)
    normals = rng.standard_normal((size, n))
    if not moving:
        return Noise(A, np.zeros(size), 2.0 * own, np.zeros(n), normals)
    return Noise(A, gamma_move(shapes, halves), 2.0 * own, gamma_move(shape, own), normals)


def gamma_move(shape: float | Array, draws: Array) -> Array:
    """dz/da at a fixed quantile of the gamma law with shape a: -∂F(z; a)/∂a over the density."""
    shapes = np.broadcast_to(shape, draws.shape)
    step, change = 1e-4 * np.sqrt(shape), np.empty_like(draws)
    # By the smaller of the two tails, which keeps its digits.
    upper = draws > shapes
    for tail, sign, there in ((gammaincc, -1.0, upper), (gammainc, 1.0, ~upper)):
        near, at = np.broadcast_to(step, draws.shape)[there], shapes[there]
        change[there] = sign * (tail(at + near, draws[there]) - tail(at - near, draws[there]))
    log_density = (shape - 1.0) * np.log(draws) - draws - gammaln(shape)
    return -change / (2.0 * step) * np.exp(-log_density)
