"""log N(y; 0, Λ) with Λ = D^½ P D^½: the one Cholesky factorisation, the log marginal, its gradient, conditioning.

D holds the variances of the observations, P their correlations: a unit diagonal, `P_kh = w_k w_h ρ_kh` off it, where
w² is the share of the process in the variance. With `ỹ = D^-½ y`, `P = UᵀU`, `β = P⁻¹ỹ`:

    ℓ = -½ Σ log D_kk - Σ log U_kk - ½ ỹᵀβ - (n/2) log 2π.

No jitter is ever added: a matrix that cannot be factorised raises :class:`NotPositiveDefiniteError`, and the caller
rejects. Matrices are C-ordered with their lower triangle in use, which LAPACK sees as the upper triangle of a Fortran
matrix.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

Array = NDArray[np.float64]

_TILE = 32
LOG_2PI = float(np.log(2.0 * np.pi))


class NotPositiveDefiniteError(ArithmeticError):
    """The covariance could not be factorised at these scales."""


@dataclass(frozen=True)
class Observed:
    """Observations with the variances of their process and noise parts.

    Attributes
    ----------
    weight
        w = √(process variance / total variance) of each observation.
    scaled
        ỹ = y / √D.
    log_total
        log D.
    """

    weight: Array
    scaled: Array
    log_total: Array


def observe(y: Array, log_signal: Array, log_noise: Array | float) -> Observed:
    """Split the variance of each observation into process and noise, in logs."""
    return Observed(*_split(y, log_signal, np.atleast_1d(log_noise)))


@njit(cache=True, nogil=True)
def _split(y: Array, log_signal: Array, log_noise: Array) -> tuple[Array, Array, Array]:
    n, stride = len(y), 1 if len(log_noise) == len(y) else 0
    weight, scaled, log_total = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        noise = log_noise[k * stride]
        # log D = log(e^signal + e^noise), from the larger of the two
        log_total[k] = max(log_signal[k], noise) + math.log1p(math.exp(-abs(noise - log_signal[k])))
        weight[k] = math.exp(0.5 * (log_signal[k] - log_total[k]))
        scaled[k] = y[k] * math.exp(-0.5 * log_total[k])
    return weight, scaled, log_total


def factorise(matrix: Array) -> Array:
    """Cholesky factor in place."""
    factor, info = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        raise NotPositiveDefiniteError(f"leading minor {info} of a {len(matrix)}-row covariance is not positive")
    return factor


def inverse(matrix: Array) -> tuple[Array, float]:
    """Full inverse and log determinant; the matrix is overwritten."""
    if len(matrix) == 0:
        return matrix.copy(), 0.0
    factor = factorise(matrix)
    log_det = 2.0 * float(np.log(np.diagonal(factor)).sum())
    lapack.dpotri(factor, lower=0, overwrite_c=1)
    return _mirrored(matrix), log_det


@njit(cache=True, nogil=True)
def _mirrored(lower: Array) -> Array:
    """A symmetric matrix from its lower triangle, tile by tile, which stay in the cache."""
    n = len(lower)
    out = np.empty((n, n))
    for top in range(0, n, _TILE):
        for left in range(0, top + 1, _TILE):
            for k in range(top, min(top + _TILE, n)):
                for h in range(left, min(left + _TILE, k + 1)):
                    out[k, h] = lower[k, h]
                    out[h, k] = lower[k, h]
    return out


def lower_factor(matrix: Array) -> Array:
    """Lower Cholesky factor of a small matrix, which is left as it is."""
    return np.tril(factorise(np.array(matrix, dtype=float, order="C")).T)


def log_marginal(correlation: Array, data: Observed) -> float:
    """ℓ; `correlation` is overwritten by its factor."""
    factor = factorise(correlation)
    return _value(factor, data.log_total, blas.dtrsv(factor, data.scaled, lower=0, trans=1))


@njit(cache=True, nogil=True)
def _value(factor: Array, log_total: Array, z: Array) -> float:
    """ℓ from z = U⁻ᵀỹ: the same operations with and without gradient, so that both give the same bits."""
    log_det, square = 0.0, 0.0
    for k in range(len(z)):
        log_det += 0.5 * log_total[k] + math.log(factor[k, k])
        square += z[k] * z[k]
    return -log_det - 0.5 * square - 0.5 * len(z) * LOG_2PI


@dataclass(frozen=True)
class MarginalGradient:
    """ℓ and its derivatives.

    Attributes
    ----------
    value
        ℓ.
    pairs
        Derivative by each P_kh, k > h, as strict lower triangle: ββᵀ - P⁻¹; of a sparse precision what the kernels
        have made of it (:class:`cadlag.linalg.vecchia.Pulled`).
    log_signal
        Derivative by the log process variance of each observation, all other things in P equal.
    log_noise
        Derivative by the log noise variance of each observation.
    """

    value: float
    pairs: Any
    log_signal: Array
    log_noise: Array


@njit(cache=True, nogil=True, fastmath={"contract"})
def differentiate(beta: Array, scaled: Array, share: Array, weight: Array, inverse: Array) -> tuple[Array, Array]:
    """P⁻¹ <- ββᵀ - P⁻¹ below the diagonal; derivatives by log process and log noise variance.

    `share` is the diagonal of `inverse` times P: ones, unless something has been added to P before it was inverted.
    """
    n = len(beta)
    by_signal, by_noise = np.empty(n), np.empty(n)
    for k in range(n):
        row, b = inverse[k], beta[k]
        by_noise[k] = 0.5 * (1.0 - weight[k] * weight[k]) * (b * b - row[k])
        by_signal[k] = 0.5 * (b * scaled[k] - share[k]) - by_noise[k]
        for h in range(k):
            row[h] = b * beta[h] - row[h]
    return by_signal, by_noise


def log_marginal_gradient(correlation: Array, data: Observed) -> MarginalGradient:
    """ℓ with its gradient; `correlation` is overwritten by the pair derivatives."""
    factor = factorise(correlation)
    z = blas.dtrsv(factor, data.scaled, lower=0, trans=1)
    value = _value(factor, data.log_total, z)
    beta = blas.dtrsv(factor, z, lower=0)
    lapack.dpotri(factor, lower=0, overwrite_c=1)
    by_signal, by_noise = differentiate(beta, data.scaled, np.ones(len(beta)), data.weight, correlation)
    return MarginalGradient(value, correlation, by_signal, by_noise)


@dataclass(frozen=True)
class Conditioner:
    """The process given the observations: mean and covariance at new inputs.

    Attributes
    ----------
    factor
        U with P = UᵀU.
    beta
        P⁻¹ ỹ.
    weight
        w of each observation.
    """

    factor: Array
    beta: Array
    weight: Array

    def moments(self, cross: Array, log_signal: Array) -> tuple[Array, Array]:
        """Mean and variance of the process at new inputs. `cross` is overwritten."""
        mean, half = self.project(cross)
        share = 1.0 - np.einsum("nm,nm->m", half, half)
        return mean * np.exp(0.5 * log_signal), np.exp(log_signal) * np.maximum(share, 0.0)

    def joint(self, cross: Array, own: Array, log_signal: Array) -> tuple[Array, Array]:
        """Mean and full covariance of the process at new inputs. `cross` is overwritten."""
        mean, half = self.project(cross)
        sd = np.exp(0.5 * log_signal)
        return mean * sd, (own - half.T @ half) * np.outer(sd, sd)

    def project(self, cross: Array) -> tuple[Array, Array]:
        """Mean of the process over its standard deviation, and U⁻ᵀ(w∘ρ), at new inputs. `cross` is overwritten."""
        if len(self.beta) == 0:  # no data: LAPACK refuses empty matrices
            return np.zeros(len(cross)), np.zeros((0, len(cross)))
        cross *= self.weight
        mean = cross @ self.beta
        half = blas.dtrsm(1.0, self.factor, cross.T, trans_a=1, lower=0, overwrite_b=1)
        return mean, half


def condition(correlation: Array, data: Observed) -> Conditioner:
    """Prepare conditioning; `correlation` is overwritten by its factor."""
    if len(correlation) == 0:
        return Conditioner(correlation, data.scaled, data.weight)
    factor = factorise(correlation)
    beta, _ = lapack.dpotrs(factor, data.scaled, lower=0)
    return Conditioner(factor, beta, data.weight)


class LeftOut(NamedTuple):
    """y_k | y_-k ~ N(y_k - errors_k, variances_k): each row given all others; infinite variance where it has no law."""

    errors: Array
    variances: Array

    @classmethod
    def solved(cls, solution: Array, precision: Array, unit: Any = 1.0) -> "LeftOut":
        """Errors [Λ⁻¹y]_k/[Λ⁻¹]_kk and variances 1/[Λ⁻¹]_kk, times what y was divided by before."""
        known = precision > 0.0
        variances = np.divide(1.0, precision, out=np.full_like(precision, np.inf), where=known)
        return cls(unit * np.where(known, solution, 0.0) * np.where(known, variances, 0.0), unit**2 * variances)

    @property
    def log_density(self) -> Array:
        """log p(y_k | y_-k), (n,); -inf where there is none."""
        return -0.5 * (LOG_2PI + np.log(self.variances) + self.errors**2 / self.variances)


def leave_one_out(correlation: Array, data: Observed) -> LeftOut:
    """Each row given all the others, in units of y; `correlation`, symmetric (n, n), is overwritten."""
    factor = factorise(correlation)
    beta, _ = lapack.dpotrs(factor, data.scaled, lower=0)
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    return LeftOut.solved(beta, np.diagonal(inverse), np.exp(0.5 * data.log_total))


def sample_normal(rng: np.random.Generator, mean: Array, covariance: Array, n_samples: int) -> Array:
    """Joint normal draws from a covariance that may be singular, (n_samples, m)."""
    # Rounding can leave a zero eigenvalue slightly negative; this only touches draws, never a likelihood.
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return mean + rng.standard_normal((n_samples, len(mean))) @ root.T
