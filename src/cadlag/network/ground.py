"""N(0, W⁻¹(vV⁻¹)W⁻¹), W = diag ω: what the units are added to, white noise or noise with the kernel process.

White noise has V = I and ω ≠ 1 only where the noise is known row by row. With the bulk, ω² is one over the variance of
each row, v = 1, and V is the inverse of the rows' correlations, in full or sparse.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadlag.kernel_process.model import KernelProcess
from cadlag.linalg.low_rank import log_marginal_of_sums, sums_of_columns
from cadlag.network.columns import NOT_SPARSE, WHITE, Under

Array = NDArray[np.float64]


class Sums(NamedTuple):
    """VΦ, ΦᵀVΦ and ΦᵀVωy, of weighted columns."""

    images: Array
    gram: Array
    products: Array


class Ground(NamedTuple):
    """Gaussian law that units are added to: weights ω, precision V, variance v; noise alone, or with the bulk.

    Attributes
    ----------
    omega
        Weight of each row.
    response
        ωy.
    V
        The precision.
    pulled
        Vωy.
    noise
        v.
    square
        (ωy)ᵀV(ωy).
    log_weight
        Σ log ω + ½ log|V|.
    """

    omega: Array
    response: Array
    V: Under
    pulled: Array
    noise: float
    square: float
    log_weight: float

    def sums(self, Phi: Array) -> Sums:
        """What the likelihood needs of weighted columns; the images are the columns themselves where V = I."""
        if self.V is WHITE:
            return Sums(Phi, *sums_of_columns(Phi, self.response))
        images = self.V.apply(Phi)
        return Sums(images, Phi.T @ images, images.T @ self.response)

    @property
    def diagonal(self) -> Array:
        """The diagonal of V."""
        return self.V.diagonal(len(self.omega))

    def log_marginal(self, sums: Sums, variances: Array) -> tuple[float, Array, Array]:
        """log p(y | units), L and c of :func:`cadlag.linalg.low_rank.log_marginal_of_sums`."""
        value, factor, half = log_marginal_of_sums(
            sums.gram, sums.products, self.square, len(self.response), variances, self.noise
        )
        return value + self.log_weight, factor, half


def ground_with_bulk(process: KernelProcess, position: Array, floor: float) -> Ground:
    """The kernel process and the noise at a position of the process; raises where they cannot be factorised."""
    points, data = process.observe(position, floor)
    found, log_det = process.form.precision(process, points, data)
    V = Under(found, NOT_SPARSE) if isinstance(found, np.ndarray) else Under(WHITE.full, found)
    omega, pulled = np.exp(-0.5 * data.log_total), V.apply(data.scaled)
    log_weight = float(np.log(omega).sum()) + 0.5 * log_det
    return Ground(omega, data.scaled, V, pulled, 1.0, float(data.scaled @ pulled), log_weight)
