"""b̂ = (FᵀK⁻¹F)⁻¹FᵀK⁻¹y, λ = min_β (y - Fβ)ᵀK⁻¹(y - Fβ): a linear mean under a covariance, with flat coefficients.

With K = UᵀU, A = U⁻ᵀF = QR and z = U⁻ᵀy: b̂ = R⁻¹Qᵀz, e = z - QQᵀz, λ = eᵀe, and log|V_b| = -2 Σ log|R_jj| where
V_b = (FᵀK⁻¹F)⁻¹. As λ is a sum of squares it is never negative.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack, qr

from cadlag.linalg.gaussian import Array, factorise

_SAME = 1e-8  # of the largest entry: what a column must have left that is no sum of others


@dataclass(frozen=True)
class Regression:
    """The regression on F, and what conditioning on y needs.

    Attributes
    ----------
    factor
        U.
    q
        Q, (n, m).
    r
        R, (m, m).
    coefficients
        b̂, (m,).
    residual
        e = U⁻ᵀ(y - Fb̂), (n,).
    square
        λ.
    log_det
        log|K|.
    log_det_coefficients
        log|V_b|.
    """

    factor: Array
    q: Array
    r: Array
    coefficients: Array
    residual: Array
    square: float
    log_det: float
    log_det_coefficients: float

    @property
    def errors(self) -> Array:
        """K⁻¹(y - Fb̂), (n,)."""
        return self.unwhiten(self.residual[:, None])[:, 0]

    def unwhiten(self, columns: Array) -> Array:
        """U⁻¹ times columns: K⁻¹ is this after :func:`whiten`, (n, k)."""
        return blas.dtrsm(1.0, self.factor, columns, lower=0) if columns.size else columns

    def inverse(self) -> Array:
        """K⁻¹ in full."""
        inverse, _ = lapack.dpotri(self.factor, lower=0)
        return np.ascontiguousarray(inverse.T)

    def projected_inverse(self) -> Array:
        """P = K⁻¹ - K⁻¹F V_b FᵀK⁻¹ = K⁻¹ - (U⁻¹Q)(U⁻¹Q)ᵀ."""
        if len(self.residual) == 0:
            return np.zeros((0, 0))
        inverse, _ = lapack.dpotri(self.factor, lower=0)
        return blas.dsyrk(-1.0, self.unwhiten(self.q), 1.0, inverse, lower=0, overwrite_c=1).T

    def scaled_by_coefficients(self, rows: Array) -> Array:
        """hᵀR⁻¹ of each row h, whose square is hᵀV_b h, (k, m)."""
        return blas.dtrsm(1.0, self.r, rows, side=1, lower=0) if rows.size else rows


def whiten(factor: Array, columns: Array) -> Array:
    """U⁻ᵀ times columns, (n, k)."""
    return blas.dtrsm(1.0, factor, columns, trans_a=1, lower=0) if columns.size else columns


def regress(K: Array, F: Array, y: Array) -> Regression:
    """Generalised least squares of y on F. `K` is overwritten."""
    m = F.shape[1]
    if len(y) == 0:
        none = np.zeros(0)
        return Regression(K, F, np.zeros((m, m)), np.zeros(m), none, 0.0, 0.0, 0.0)
    factor = factorise(K)
    white = whiten(factor, np.column_stack([F, y]))
    q, r = np.linalg.qr(white[:, :m])
    along = q.T @ white[:, m]
    residual = white[:, m] - q @ along
    log_det = 2.0 * float(np.log(np.diagonal(factor)).sum())
    log_det_coefficients = -2.0 * float(np.log(np.abs(np.diagonal(r))).sum())
    coefficients = blas.dtrsv(r, along, lower=0) if m else along
    return Regression(factor, q, r, coefficients, residual, float(residual @ residual), log_det, log_det_coefficients)


def independent_columns(X: Array) -> NDArray[np.int_]:
    """Columns of X that, beside a column of ones, are no linear combination of others: by pivoted QR."""
    if X.size == 0:
        return np.zeros(0, dtype=int)
    # Centred first, so that the column of ones is always kept.
    r, order = qr(X - X.mean(axis=0), mode="r", pivoting=True)
    # Centred columns of n rows have rank n - 1 at most, whatever rounding says.
    left = np.abs(np.diagonal(r))[: len(X) - 1]
    return np.sort(order[: int(np.sum(left > _SAME * np.abs(X).max()))])
