"""K_kh = √(G_kk G_hh) [sin θ + (π - θ) cos θ]/π, cos θ = G_kh/√(G_kk G_hh): Gram matrices and their ReLU kernel.

The kernel of infinitely many ReLU units as a function of the Gram matrix of their inputs. Each map has its reverse
beside it, which takes the derivative by what the map gave and returns the derivative by what it took.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from cadlag.kernels.arc_cosine import activate_with_slope
from cadlag.linalg.gaussian import Array

EPSILON = 1e-6  # added to the diagonal by each kernel map: part of the published kernel


class Gram(NamedTuple):
    """The parts of a Gram matrix, or of the derivative by one, that are carried from layer to layer.

    Attributes
    ----------
    ii
        Among inducing inputs, (P, P).
    it
        Between them and the rows, (P, n).
    tt
        Of each row with itself, (n,); of all rows with each other, (n, n), where a joint law is asked.
    """

    ii: Array
    it: Array
    tt: Array


# Triangular matrices -------------------------------------------------------------------------------------------------


def solve(triangle: Array, right: Array, lower: bool = True, transposed: bool = False) -> Array:
    """T⁻¹B, or T⁻ᵀB, for C-ordered matrices, which BLAS sees as their transposes."""
    return blas.dtrsm(1.0, triangle.T, right.T, side=1, lower=not lower, trans_a=transposed).T


def reverse_factor(root: Array, adjoint: Array) -> Array:
    """Derivative by a symmetric matrix from that by its Cholesky factor."""
    product = np.tril(root.T @ np.tril(adjoint))
    product[np.diag_indices(len(root))] *= 0.5
    half = solve(root, product + product.T, transposed=True)
    return 0.5 * solve(root, np.ascontiguousarray(half.T), transposed=True)


# Kernel --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReluMap:
    """K(G) between rows that are known by their Gram matrix, for infinitely many ReLU units, and its reverse.

    Attributes
    ----------
    kernel
        K(G): the diagonal is that of G with ε added.
    lengths
        √(G_kk + ε) of inducing inputs and of rows.
    slopes
        dK_kh/dG_kh = 1 - θ/π of `ii` and `it`.
    sines
        sin θ/π = dK_kh/d(√G_kk √G_hh) of `ii` and `it`.
    """

    kernel: Gram
    lengths: tuple[Array, Array]
    slopes: tuple[Array, Array]
    sines: tuple[Array, Array]

    @classmethod
    def of(cls, gram: Gram, epsilon: float = EPSILON) -> "ReluMap":
        """Map a Gram matrix."""
        joint = gram.tt.ndim == 2
        own = np.diagonal(gram.ii) + epsilon
        rows = (np.diagonal(gram.tt) if joint else gram.tt) + epsilon
        lengths = np.sqrt(own), np.sqrt(rows)
        ii, slope, sine = _mapped(gram.ii, lengths[0], lengths[0])
        np.fill_diagonal(ii, own)
        np.fill_diagonal(sine, 0.0)
        it, slope_it, sine_it = _mapped(gram.it, *lengths)
        tt = rows
        if joint:
            tt = _mapped(gram.tt, lengths[1], lengths[1])[0]
            np.fill_diagonal(tt, rows)
        return cls(Gram(ii, it, tt), lengths, (slope, slope_it), (sine, sine_it))

    def reverse(self, adjoint: Gram) -> Gram:
        """Derivative by G from that by K(G)."""
        own, rows = self.lengths
        ii, it = adjoint.ii * self.slopes[0], adjoint.it * self.slopes[1]
        inner, cross = adjoint.ii * self.sines[0], adjoint.it * self.sines[1]
        by_own = inner @ own + own @ inner + cross @ rows
        np.fill_diagonal(ii, np.diagonal(adjoint.ii) + 0.5 * by_own / own)
        return Gram(ii, it, adjoint.tt + 0.5 * (own @ cross) / rows)


def _mapped(products: Array, left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Kernel, slope and sine at each pair."""
    lengths = np.outer(left, right)
    cosine = products / lengths
    rho, slope = np.empty_like(cosine), np.empty_like(cosine)
    activate_with_slope(1, cosine.ravel(), rho.ravel(), slope.ravel(), cosine.size)
    return lengths * rho, slope, rho - slope * cosine
