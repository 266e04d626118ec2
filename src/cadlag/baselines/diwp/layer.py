"""G_ℓ | G_ℓ₋₁ ~ W⁻¹(δ_ℓ K(G_ℓ₋₁), δ_ℓ + P + 1): one inverse Wishart layer.

The deep inverse Wishart process of Aitchison, Yang & Ober (2021) with P global inducing inputs. The posterior of a
layer is Q(G_ii) = W⁻¹(δ K_ii + d VVᵀ/P, δ + P + 1 + γ); every other row t follows from G_ii by the prior,

    g_tt·i = δ k_tt·i/χ²(δ + P + 2),    G_ii⁻¹ g_it = K_ii⁻¹ k_it + √(g_tt·i/δ) S⁻ᵀξ,    K_ii = SSᵀ.

G_ii is drawn with its Cholesky factor: G_ii = CCᵀ, C = RA⁻ᵀ for the scale RRᵀ and an upper triangular A with
A_jj² ~ χ²(δ + γ + 1 + j), A_ij ~ N(0, 1). The reverse of each map takes the derivative by what the map gave, and
returns or adds up the derivative by what it took.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from cadlag.baselines.diwp.gram import Gram, reverse_factor, solve
from cadlag.baselines.diwp.noise import Noise
from cadlag.linalg.gaussian import Array, lower_factor

SMALLEST = 1e-12  # of a conditional variance that rounding could make negative


class LayerValues(NamedTuple):
    """A layer's parameters.

    Attributes
    ----------
    delta
        δ.
    gamma
        γ.
    weight
        d.
    V
        (P, P).
    """

    delta: float
    gamma: float
    weight: float
    V: Array


class Layer:
    """An inverse Wishart layer above a given kernel.

    Its draws add up the derivatives: by R, S⁻¹R, S⁻¹K_it, k_tt·i, γ, and by δ, what goes through the others apart.

    Parameters
    ----------
    kernel
        K(G) of the layer before; its `tt` is a matrix where a joint law is asked.
    values
        The parameters.
    """

    def __init__(self, kernel: Gram, values: LayerValues) -> None:
        self.kernel, self.values = kernel, values
        size = len(kernel.ii)
        self.outer = values.V @ values.V.T / size
        self.root = lower_factor(kernel.ii)
        self.scale_root = lower_factor(values.delta * kernel.ii + values.weight * self.outer)
        self.relative = solve(self.root, self.scale_root)
        self.ratio = solve(self.scale_root, self.root)
        self.half = solve(self.root, kernel.it)
        self.rest = (
            np.maximum(kernel.tt - np.einsum("ij,ij->j", self.half, self.half), SMALLEST)
            if kernel.tt.ndim == 1 else kernel.tt - self.half.T @ self.half
        )  # fmt: skip
        self.by_scale_root, self.by_relative = np.zeros_like(self.root), np.zeros_like(self.root)
        self.by_half, self.by_rest = np.zeros_like(self.half), np.zeros_like(self.rest)
        self.by_delta = self.by_gamma = 0.0

    # Draws -----------------------------------------------------------------------------------------------------------

    def draw(self, noise: Noise) -> "Draw":
        """The Gram matrix with each row drawn apart from the others."""
        factor, carried = self._factors(noise.A)
        spread = np.sqrt(self.rest / noise.squares)
        moved = self.half + noise.normals * spread
        image = carried @ moved
        own = self.values.delta * spread**2 + np.einsum("ij,ij->j", image, image)
        return Draw(self, noise, factor, carried, spread, moved, image, Gram(factor @ factor.T, factor @ image, own))

    def draw_jointly(self, noise: Noise, A: Array, normals: Array) -> Gram:
        """The Gram matrix with all rows drawn from their joint law."""
        factor, carried = self._factors(noise.A)
        root = np.ascontiguousarray(solve(A, np.ascontiguousarray(lower_factor(self.rest).T), lower=False).T)
        image = carried @ (self.half + normals @ root.T)
        return Gram(factor @ factor.T, factor @ image, self.values.delta * root @ root.T + image.T @ image)

    def _factors(self, A: Array) -> tuple[Array, Array]:
        """C and CᵀS⁻ᵀ."""
        size = len(A)
        both = solve(A, np.concatenate([self.scale_root.T, self.relative.T], axis=1), lower=False)
        return np.ascontiguousarray(both[:, :size].T), np.ascontiguousarray(both[:, size:])

    # Divergence ------------------------------------------------------------------------------------------------------

    def log_ratio(self, A: Array) -> float:
        """log P(G_ii) - log Q(G_ii) of one draw."""
        delta, gamma, size = self.values.delta, self.values.gamma, len(A)
        halves = self._halves()
        trace = delta * float(((self.ratio.T @ A) ** 2).sum()) - float((A**2).sum())
        constant = float((gammaln(halves + 0.5 * gamma) - gammaln(halves)).sum()) + 0.5 * gamma * size * np.log(2.0)
        logs = float(np.log(np.diagonal(A)).sum())
        return (delta + size + 1.0) * self._log_scales() - gamma * logs - 0.5 * trace + constant

    def divergence(self) -> float:
        """KL(Q(G_ii) || P(G_ii)), which is the mean of the log ratio with its sign changed."""
        delta, gamma, size = self.values.delta, self.values.gamma, len(self.root)
        halves = self._halves()
        trace = delta * float((self.ratio**2).sum()) - size
        special = 0.5 * gamma * digamma(halves + 0.5 * gamma) + gammaln(halves) - gammaln(halves + 0.5 * gamma)
        freedom = delta + size + 1.0
        return -freedom * self._log_scales() + 0.5 * (freedom + gamma) * trace + float(special.sum())

    def _log_scales(self) -> float:
        """½ log(|δK_ii|/|RRᵀ|)."""
        logs = np.log(np.diagonal(self.root)) - np.log(np.diagonal(self.scale_root))
        return float(logs.sum()) + 0.5 * len(logs) * np.log(self.values.delta)

    def _halves(self) -> Array:
        """Halves of the degrees of freedom of A_jj² under the prior."""
        return 0.5 * (self.values.delta + 1.0 + np.arange(1, len(self.root) + 1, dtype=np.float64))

    # Reverse ---------------------------------------------------------------------------------------------------------

    def reverse_divergence(self, adjoint: float) -> Array:
        """Add the derivatives of the divergence, times a number, to those of the draws."""
        delta, gamma, size = self.values.delta, self.values.gamma, len(self.root)
        halves, ratio = self._halves(), self.ratio
        norm, freedom = float((ratio**2).sum()), delta + size + 1.0
        curved = 0.25 * gamma * float(polygamma(1, halves + 0.5 * gamma).sum())
        level = 0.5 * float((digamma(halves) - digamma(halves + 0.5 * gamma)).sum())
        by_delta = -self._log_scales() - 0.5 * freedom * size / delta + 0.5 * (delta * norm - size)
        self.by_delta += adjoint * (by_delta + 0.5 * (freedom + gamma) * norm + curved + level)
        self.by_gamma += adjoint * (curved + 0.5 * (delta * norm - size))
        by_root = solve(self.scale_root, adjoint * (freedom + gamma) * delta * ratio, transposed=True)
        self.by_scale_root -= by_root @ ratio.T
        self.by_scale_root[np.diag_indices(size)] += adjoint * freedom / np.diagonal(self.scale_root)
        by_root[np.diag_indices(size)] -= adjoint * freedom / np.diagonal(self.root)
        return by_root

    def reverse(self, by_divergence: float) -> tuple[Gram, dict[str, Any]]:
        """Derivatives by the kernel below and by the parameters, once all draws have been reversed."""
        by_root, values = self.reverse_divergence(by_divergence), self.values
        half = self.by_half - 2.0 * self.half * self.by_rest
        by_relative = solve(self.root, self.by_relative, transposed=True)
        by_it = solve(self.root, half, transposed=True)
        by_root -= by_relative @ self.relative.T + by_it @ self.half.T
        by_scale = reverse_factor(self.scale_root, self.by_scale_root + by_relative)
        by_delta = self.by_delta + float((by_scale * self.kernel.ii).sum())
        by_ii = values.delta * by_scale + reverse_factor(self.root, by_root)
        gradient = {
            "log_delta": values.delta * by_delta,
            "log_gamma": values.gamma * self.by_gamma,
            "log_weight": values.weight * float((by_scale * self.outer).sum()),
            "V": 2.0 * values.weight / len(self.root) * by_scale @ values.V,
        }
        return Gram(by_ii, by_it, self.by_rest), gradient


@dataclass(frozen=True)
class Draw:
    """One draw of a layer and what its reverse needs.

    Attributes
    ----------
    layer
        The layer.
    noise
        What was random.
    factor
        C.
    carried
        H = CᵀS⁻ᵀ.
    spread
        √(k_tt·i/χ²).
    moved
        S⁻¹K_it + ξ√(k_tt·i/χ²).
    image
        H times that.
    gram
        G.
    """

    layer: Layer
    noise: Noise
    factor: Array
    carried: Array
    spread: Array
    moved: Array
    image: Array
    gram: Gram

    def reverse(self, adjoint: Gram) -> None:
        """Add the derivatives by everything in the layer to those that it holds."""
        by_factor = (adjoint.ii + adjoint.ii.T) @ self.factor + adjoint.it @ self.image.T
        by_image = self.factor.T @ adjoint.it + 2.0 * self.image * adjoint.tt
        by_carried, by_moved = by_image @ self.moved.T, self.carried.T @ by_image
        self._reverse_rows(by_moved, adjoint.tt)
        both = solve(self.noise.A, np.concatenate([by_factor.T, by_carried], axis=1), lower=False, transposed=True)
        size, layer = len(self.factor), self.layer
        layer.by_scale_root += both[:, :size].T
        layer.by_relative += both[:, size:].T
        by_diagonal = -(both[:, :size] * self.factor.T + both[:, size:] * self.carried).sum(1)
        by_freedom = 0.5 * float((by_diagonal / np.diagonal(self.noise.A) * self.noise.moves).sum())
        layer.by_delta += by_freedom
        layer.by_gamma += by_freedom

    def _reverse_rows(self, by_moved: Array, by_own: Array) -> None:
        """By S⁻¹K_it, k_tt·i, and δ through g_tt·i = δ spread² and through χ²."""
        layer, noise, delta = self.layer, self.noise, self.layer.values.delta
        by_spread = np.einsum("ij,ij->j", by_moved, noise.normals) + 2.0 * delta * self.spread * by_own
        layer.by_half += by_moved
        layer.by_rest += np.where(layer.rest > SMALLEST, 0.5 * by_spread * self.spread / layer.rest, 0.0)
        by_squares = -0.5 * by_spread * self.spread / noise.squares
        layer.by_delta += float((by_own * self.spread**2).sum()) + float((by_squares * noise.square_moves).sum())
