"""f_t ~ N(a² u_tᵀM⁻¹v, a² k_tt - a⁴ u_tᵀM⁻¹u_t), M = I + a² LᵀK_ii L, v = Lᵀu, U = LᵀK_it: the function given G_L.

That is Q(f_i | G) ∝ N(f_i; 0, a² K_ii) N(u; f_i, (LLᵀ)⁻¹) for P inducing inputs, and the rows from f_i by the prior;

    KL(Q(f_i) || P(f_i)) = ½ [vᵀM⁻¹v + log|M| - |M⁻¹v|² - P + tr M⁻¹].

The bound needs only the sum of the variances of the rows, which is a² Σ k_tt - a⁴ tr(L M⁻¹Lᵀ K_it K_itᵀ): of all its
products of matrices two have as many columns as there are rows.
"""

from functools import cached_property
from typing import Any

import numpy as np

from cadlag.baselines.diwp.gram import Gram, solve
from cadlag.linalg.gaussian import Array, lower_factor

Parameters = dict[str, Array]

SMALLEST = 1e-12  # of a variance that rounding could make negative


class Output:
    """The function at each row given the last kernel.

    Parameters
    ----------
    parameters
        With `targets` u, `factor` and `log_factor` (of L) and, if it is learned, `log_amplitude`.
    kernel
        K(G_L); with `tt` in full the joint law is made.
    """

    def __init__(self, parameters: Parameters, kernel: Gram) -> None:
        self.parameters, self.kernel = parameters, kernel
        self.variance = float(np.exp(2.0 * parameters.get("log_amplitude", np.zeros(()))))
        factor = parameters["factor"]
        self.size = len(factor)
        self.scale = float(np.exp(parameters["log_factor"]) / np.diagonal(factor).mean())
        self.L = self.scale * factor
        self.v = self.L.T @ parameters["targets"]
        self.kernel_L = kernel.ii @ self.L
        self.M = self.variance * self.L.T @ self.kernel_L
        self.M[np.diag_indices(self.size)] += 1.0
        self.root = lower_factor(self.M)
        self.inverse_root = solve(self.root, np.eye(self.size))
        self.w = self.inverse_root.T @ (self.inverse_root @ self.v)
        self.means = self.variance * (self.L @ self.w) @ kernel.it

    # Rows ------------------------------------------------------------------------------------------------------------

    @cached_property
    def image(self) -> Array:
        """M^-½ LᵀK_it."""
        return (self.inverse_root @ self.L.T) @ self.kernel.it

    @property
    def variances(self) -> Array:
        """Variance of the function at each row."""
        lost = self.variance**2 * np.einsum("ij,ij->j", self.image, self.image)
        return np.maximum(self.variance * self.kernel.tt - lost, SMALLEST)

    @property
    def covariance(self) -> Array:
        """Covariance of the function at all rows, for a kernel with `tt` in full."""
        return self.variance * self.kernel.tt - self.variance**2 * self.image.T @ self.image

    # All rows together ------------------------------------------------------------------------------------------------

    @cached_property
    def moment(self) -> Array:
        """K_it K_itᵀ."""
        return self.kernel.it @ self.kernel.it.T

    @cached_property
    def inverse(self) -> Array:
        """M⁻¹."""
        return self.inverse_root.T @ self.inverse_root

    @cached_property
    def gain(self) -> Array:
        """L M⁻¹Lᵀ."""
        return self.L @ self.inverse @ self.L.T

    @cached_property
    def lost(self) -> float:
        """What the pseudo-targets take off the sum of the variances."""
        return self.variance**2 * float((self.gain * self.moment).sum())

    @property
    def total_variance(self) -> float:
        """The sum of the variances of the rows."""
        return self.variance * float(self.kernel.tt.sum()) - self.lost

    def divergence(self) -> float:
        """KL(Q(f_i) || P(f_i)) given the Gram matrices."""
        logs, trace = float(np.log(np.diagonal(self.root)).sum()), float((self.inverse_root**2).sum())
        return 0.5 * float(self.v @ self.w - self.w @ self.w) + logs - 0.5 * (self.size - trace)

    # Reverse ---------------------------------------------------------------------------------------------------------

    def reverse(self, by_mean: Array, by_total: float, by_divergence: float) -> tuple[Gram, dict[str, Any]]:
        """Derivatives by the kernel and the parameters."""
        variance, N, L, pulled = self.variance, self.inverse, self.L, self.kernel.it @ by_mean
        twice = 2.0 * variance**2 * by_total
        by_w = variance * L.T @ pulled + by_divergence * (0.5 * self.v - self.w)
        by_v = N @ by_w + 0.5 * by_divergence * self.w
        carried = self.moment @ (L @ N)
        outer = np.outer(N @ by_w, self.w)
        by_M = 0.5 * (twice * (L @ N).T @ carried - outer - outer.T + by_divergence * (N - N @ N))
        by_L = 2.0 * variance * self.kernel_L @ by_M + variance * np.outer(pulled, self.w) - twice * carried
        by_L += np.outer(self.parameters["targets"], by_v)
        by_it = np.outer(variance * L @ self.w, by_mean) - twice * self.gain @ self.kernel.it
        by_tt = np.full(len(by_mean), variance * by_total)
        return Gram(variance * L @ by_M @ L.T, by_it, by_tt), self._by_name(by_mean, by_total, by_v, by_M, by_L)

    def _by_name(self, by_mean: Array, by_total: float, by_v: Array, by_M: Array, by_L: Array) -> dict[str, Array]:
        by_scale = float((by_L * self.L).sum())  # by log of the scale of L
        by_factor = self.scale * by_L
        by_factor[np.diag_indices(self.size)] -= by_scale / np.trace(self.parameters["factor"])
        found = {"targets": self.L @ by_v, "factor": by_factor, "log_factor": np.array(by_scale)}
        if "log_amplitude" in self.parameters:
            direct = by_total * (self.total_variance - self.lost) + by_mean @ self.means
            total = direct + (by_M * self.M).sum() - np.trace(by_M)
            found["log_amplitude"] = np.array(2.0 * total)
        return found
