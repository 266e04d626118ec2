"""log N(y; 0, ΦA²Φᵀ + vI) from ΦᵀΦ, Φᵀy and yᵀy: Gaussian algebra for a few columns and any number of rows.

Sums are taken row by row and nothing is reordered, so that the bits do not depend on how arrays lie in memory, nor on
whether the code was compiled now or read from the cache.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import blas, lapack

from cadlag.linalg.gaussian import LOG_2PI, Array, MarginalGradient, Observed, differentiate, factorise

_COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_COMPILED)
def log_marginal_of_sums(
    gram: Array, products: Array, square: float, n: int, variances: Array, noise: float
) -> tuple[float, Array, Array]:
    """log N(y; 0, ΦA²Φᵀ + vI) from ΦᵀΦ, Φᵀy and yᵀy alone, with B = I + AΦᵀΦA/v = LLᵀ and c = L⁻¹AΦᵀy/v."""
    m = len(variances)
    factor, half = np.zeros((m, m)), np.empty(m)
    log_det, explained = 0.0, 0.0
    for j in range(m):
        a = math.sqrt(variances[j])
        for k in range(j + 1):
            total = a * math.sqrt(variances[k]) * gram[j, k] / noise
            for i in range(k):
                total -= factor[j, i] * factor[k, i]
            factor[j, k] = total / factor[k, k] if k < j else math.sqrt(1.0 + total)
        value = a * products[j] / noise
        for i in range(j):
            value -= factor[j, i] * half[i]
        half[j] = value / factor[j, j]
        log_det += math.log(factor[j, j])
        explained += half[j] * half[j]
    value = -0.5 * n * (LOG_2PI + math.log(noise)) - log_det - 0.5 * (square / noise - explained)
    return value, factor, half


@njit(**_COMPILED)
def sums_of_columns(Phi: Array, y: Array) -> tuple[Array, Array]:
    """ΦᵀΦ and Φᵀy, row by row, so that the bits do not depend on how arrays lie in memory."""
    n, m = Phi.shape
    gram, products = np.zeros((m, m)), np.zeros(m)
    for i in range(n):
        row, value = Phi[i], y[i]
        for j in range(m):
            left = row[j]
            products[j] += left * value
            for k in range(j + 1):
                gram[j, k] += left * row[k]
    for j in range(m):
        for k in range(j):
            gram[k, j] = gram[j, k]
    return gram, products


@njit(**_COMPILED)
def solve_upper(factor: Array, right: Array) -> Array:
    """L⁻ᵀ times a vector."""
    m = len(right)
    out = right.copy()
    for j in range(m - 1, -1, -1):
        out[j] /= factor[j, j]
        for k in range(j):
            out[k] -= factor[j, k] * out[j]
    return out


@njit(**_COMPILED)
def precision_of_sums(factor: Array, variances: Array, noise: float) -> Array:
    """A(LLᵀ)⁻¹A / v, the inverse of vA⁻² + ΦᵀΦ, from the factor of :func:`log_marginal_of_sums`."""
    m = len(variances)
    half = np.zeros((m, m))  # L⁻¹A
    for j in range(m):
        half[j, j] = math.sqrt(variances[j])
        for k in range(j + 1):
            for i in range(k, j):
                half[j, k] -= factor[j, i] * half[i, k]
            half[j, k] /= factor[j, j]
    out = np.zeros((m, m))
    for j in range(m):
        for k in range(j + 1):
            total = 0.0
            for i in range(j, m):
                total += half[i, j] * half[i, k]
            out[j, k] = total / noise
            out[k, j] = out[j, k]
    return out


# Columns added to a full covariance ----------------------------------------------------------------------------------


class Columns(NamedTuple):
    """Columns Φ added to the observations, and the prior variances a_j² of their weights."""

    Phi: Array
    variances: Array


class _Whitened(NamedTuple):
    """H = U⁻ᵀD^-½Φ and z = U⁻ᵀỹ, with log N(y; 0, D^½PD^½ + ΦA²Φᵀ), L and c."""

    columns: Array
    factor: Array
    H: Array
    z: Array
    value: float
    small_factor: Array
    half: Array


def _whiten(correlation: Array, data: Observed, columns: Array, variances: Array) -> _Whitened:
    factor = factorise(correlation)
    scaled = np.asfortranarray(columns * np.exp(-0.5 * data.log_total)[:, None])
    H = blas.dtrsm(1.0, factor, scaled, trans_a=1, lower=0)
    z = blas.dtrsv(factor, data.scaled, lower=0, trans=1)
    gram, products, square = H.T @ H, H.T @ z, float(z @ z)
    value, small_factor, half = log_marginal_of_sums(gram, products, square, len(z), variances, 1.0)
    value -= 0.5 * float(data.log_total.sum()) + float(np.log(np.diagonal(factor)).sum())
    return _Whitened(scaled, factor, H, z, value, small_factor, half)


def log_marginal_with_columns(correlation: Array, data: Observed, columns: Array, variances: Array) -> float:
    """log N(y; 0, D^½PD^½ + ΦA²Φᵀ); `correlation`, P, is overwritten."""
    return _whiten(correlation, data, columns, variances).value


def log_marginal_gradient_with_columns(
    correlation: Array, data: Observed, columns: Array, variances: Array
) -> MarginalGradient:
    """Log density with columns, its derivatives by P, by which `correlation` is overwritten, and by the parts of D.

    With G = P⁻¹Φ̃ and Q = GA L⁻ᵀ the inverse of P + Φ̃A²Φ̃ᵀ is P⁻¹ - QQᵀ.
    """
    white = _whiten(correlation, data, columns, variances)
    spread = np.sqrt(variances)
    half = blas.dtrsm(1.0, white.small_factor, np.diag(spread), lower=1)  # L⁻¹A
    Q = blas.dtrsm(1.0, white.factor, white.H @ half.T, lower=0)
    weights = spread * solve_upper(white.small_factor, white.half)
    beta = blas.dtrsv(white.factor, white.z - white.H @ weights, lower=0)
    share = 1.0 - np.einsum("nm,nm->n", Q, white.columns @ half.T)
    lapack.dpotri(white.factor, lower=0, overwrite_c=1)
    blas.dsyrk(-1.0, Q, beta=1.0, c=correlation.T, lower=0, overwrite_c=1)
    unexplained = data.scaled - white.columns @ weights
    by_signal, by_noise = differentiate(beta, unexplained, share, data.weight, correlation)
    return MarginalGradient(white.value, correlation, by_signal, by_noise)
