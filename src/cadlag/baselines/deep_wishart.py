"""log p(y) ≥ E_Q[Σ log N(y_t; f_t, σ²)] - Σ_ℓ KL(Q(G_ℓ) || P(G_ℓ)) - E_Q KL(Q(f_i) || P(f_i)): the bound.

The deep inverse Wishart process with P global inducing inputs: f ~ N(0, a² K(G_L)) above the Gram matrices of
:mod:`cadlag.baselines.wishart_layer`, and Q(f_i | G) ∝ N(f_i; 0, a² K_ii) N(u; f_i, (LLᵀ)⁻¹). Given the Gram matrices
everything is normal, so only they are sampled: with M = I + a² LᵀK_ii L, v = Lᵀu and U = LᵀK_it

    f_t ~ N(a² u_tᵀM⁻¹v, a² k_tt - a⁴ u_tᵀM⁻¹u_t),
    KL(Q(f_i) || P(f_i)) = ½ [vᵀM⁻¹v + log|M| - |M⁻¹v|² - P + tr M⁻¹].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.baselines.gram import Gram, ReluMap, solve
from cadlag.baselines.wishart_layer import Draw, Layer, LayerValues
from cadlag.baselines.wishart_noise import Noise, draw_noise
from cadlag.gaussian import LOG_2PI, lower_factor

Array = NDArray[np.float64]
Parameters = dict[str, Array]

SMALLEST = 1e-12  # of a variance that rounding could make negative


# Input ---------------------------------------------------------------------------------------------------------------


def features(parameters: Parameters, X: Array) -> Array:
    """Inputs with their learned scales and shifts, if any, and a constant feature, over √(number of features).

    Parameters
    ----------
    parameters
        With `log_input_scales` and `input_shifts` if they are learned.
    X
        (n, p).

    Returns
    -------
    Array
        (n, p + 1): their inner products are G_0.
    """
    if "log_input_scales" in parameters:
        X = X * np.exp(parameters["log_input_scales"]) + parameters["input_shifts"]
    return np.column_stack([X, np.ones(len(X))]) / np.sqrt(X.shape[1] + 1.0)


def input_gram(parameters: Parameters, X: Array, joint: bool = False) -> Gram:
    """G_0 of inducing inputs and rows.

    Parameters
    ----------
    parameters
        All of them.
    X
        Rows.
    joint
        Whether `tt` is wanted in full.

    Returns
    -------
    Gram
        G_0.
    """
    inducing, rows = features(parameters, parameters["inducing"]), features(parameters, X)
    own = rows @ rows.T if joint else np.einsum("ij,ij->i", rows, rows)
    return Gram(inducing @ inducing.T, inducing @ rows.T, own)


def reverse_input(parameters: Parameters, X: Array, adjoint: Gram) -> dict[str, Array]:
    """Derivatives by inducing inputs, scales and shifts from those by G_0.

    Parameters
    ----------
    parameters
        All of them.
    X
        Rows.
    adjoint
        Derivative by G_0.

    Returns
    -------
    dict[str, Array]
        By name.
    """
    inducing, rows = features(parameters, parameters["inducing"]), features(parameters, X)
    root = np.sqrt(X.shape[1] + 1.0)
    by_inducing = ((adjoint.ii + adjoint.ii.T) @ inducing + adjoint.it @ rows)[:, :-1] / root
    if "log_input_scales" not in parameters:
        return {"inducing": by_inducing}
    by_rows = (adjoint.it.T @ inducing + 2.0 * adjoint.tt[:, None] * rows)[:, :-1] / root
    scales = np.exp(parameters["log_input_scales"])
    moved = (by_inducing * parameters["inducing"]).sum(0) + (by_rows * X).sum(0)
    return {
        "inducing": by_inducing * scales, "log_input_scales": scales * moved,
        "input_shifts": by_inducing.sum(0) + by_rows.sum(0),
    }  # fmt: skip


def layer_values(parameters: Parameters, k: int) -> LayerValues:
    """The parameters of one inverse Wishart layer.

    Parameters
    ----------
    parameters
        All of them.
    k
        Which, from 0.

    Returns
    -------
    LayerValues
        On their natural scale.
    """
    delta, gamma, weight = (float(np.exp(parameters[name][k])) for name in ("log_delta", "log_gamma", "log_weight"))
    return LayerValues(delta, gamma, weight, parameters["V"][k])


def propagate(
    parameters: Parameters, first: ReluMap, shared: Layer | None, noises: list[Noise]
) -> tuple[list[Draw], list[ReluMap]]:
    """One draw of the Gram matrices of all layers.

    Parameters
    ----------
    parameters
        All of them.
    first
        The kernel of the inputs.
    shared
        The first layer, which is the same for all draws; None if there is no layer.
    noises
        Of each layer.

    Returns
    -------
    tuple[list[Draw], list[ReluMap]]
        The draws, and the kernels below and above each of them.
    """
    draws: list[Draw] = []
    maps = [first]
    for k, noise in enumerate(noises):
        layer = shared if k == 0 and shared is not None else Layer(maps[-1].kernel, layer_values(parameters, k))
        draws.append(layer.draw(noise))
        maps.append(ReluMap.of(draws[-1].gram))
    return draws, maps


# Output --------------------------------------------------------------------------------------------------------------


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
        self.M = self.variance * self.L.T @ kernel.ii @ self.L
        self.M[np.diag_indices(self.size)] += 1.0
        self.root = lower_factor(self.M)
        self.inverse_root = solve(self.root, np.eye(self.size))
        self.w = self.inverse_root.T @ (self.inverse_root @ self.v)
        self.U = self.L.T @ kernel.it
        self.image = self.inverse_root @ self.U
        self.means = self.variance * self.w @ self.U

    @property
    def variances(self) -> Array:
        """Of the function at each row."""
        lost = self.variance**2 * np.einsum("ij,ij->j", self.image, self.image)
        return np.maximum(self.variance * self.kernel.tt - lost, SMALLEST)

    @property
    def covariance(self) -> Array:
        """Of the function at all rows, for a kernel with `tt` in full."""
        return self.variance * self.kernel.tt - self.variance**2 * self.image.T @ self.image

    def divergence(self) -> float:
        """KL(Q(f_i) || P(f_i)) given the Gram matrices.

        Returns
        -------
        float
            The divergence.
        """
        logs, trace = float(np.log(np.diagonal(self.root)).sum()), float((self.inverse_root**2).sum())
        return 0.5 * float(self.v @ self.w - self.w @ self.w) + logs - 0.5 * (self.size - trace)

    def reverse(self, by_mean: Array, by_variance: Array, by_divergence: float) -> tuple[Gram, dict[str, Any]]:
        """Derivatives by the kernel and the parameters.

        Parameters
        ----------
        by_mean
            Derivative by each mean.
        by_variance
            Derivative by each variance.
        by_divergence
            Derivative by the divergence.

        Returns
        -------
        tuple[Gram, dict[str, Any]]
            By K(G_L); by name.
        """
        variance, N = self.variance, self.inverse_root.T @ self.inverse_root
        weighted = self.U * by_variance
        by_U = variance * np.outer(self.w, by_mean) - 2.0 * variance**2 * N @ weighted
        by_w = variance * self.U @ by_mean + by_divergence * (0.5 * self.v - self.w)
        by_v = N @ by_w + 0.5 * by_divergence * self.w
        by_N = -(variance**2) * weighted @ self.U.T + np.outer(by_w, self.v)
        by_N[np.diag_indices(self.size)] += 0.5 * by_divergence
        by_M = 0.5 * by_divergence * N - 0.5 * N @ (by_N + by_N.T) @ N
        by_L = 2.0 * variance * self.kernel.ii @ self.L @ by_M + self.kernel.it @ by_U.T
        by_L += np.outer(self.parameters["targets"], by_v)
        by_kernel = Gram(variance * self.L @ by_M @ self.L.T, self.L @ by_U, variance * by_variance)
        return by_kernel, self._by_name(by_mean, by_variance, by_v, by_M, by_L)

    def _by_name(self, by_mean: Array, by_variance: Array, by_v: Array, by_M: Array, by_L: Array) -> dict[str, Array]:
        by_scale = float((by_L * self.L).sum())  # by log of the scale of L
        by_factor = self.scale * by_L
        by_factor[np.diag_indices(self.size)] -= by_scale / np.trace(self.parameters["factor"])
        found = {"targets": self.L @ by_v, "factor": by_factor, "log_factor": np.array(by_scale)}
        if "log_amplitude" in self.parameters:
            lost = self.variance**2 * np.einsum("ij,ij->j", self.image, self.image)
            direct = by_variance @ (self.variance * self.kernel.tt - 2.0 * lost) + by_mean @ self.means
            total = direct + (by_M * self.M).sum() - np.trace(by_M)
            found["log_amplitude"] = np.array(2.0 * total)
        return found


# Bound ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """The evidence bound per datum of a batch of rows, with its gradient.

    Attributes
    ----------
    X
        Rows.
    y
        Their responses.
    n
        Number of rows in all.
    noise_variance
        Known variance of the noise, or None where it is learned.
    counted
        Rows that the degrees of freedom of a row count.
    """

    X: Array
    y: Array
    n: int
    noise_variance: float | None = None
    counted: int = 1

    def draw_noise(self, rng: np.random.Generator, parameters: Parameters) -> list[Noise]:
        """What is random in one evaluation with one draw of the Gram matrices.

        Parameters
        ----------
        rng
            Source of randomness.
        parameters
            All of them.

        Returns
        -------
        list[Noise]
            Of each layer.
        """
        layers = (layer_values(parameters, k) for k in range(len(parameters["V"])))
        size = len(parameters["inducing"])
        return [draw_noise(rng, one.delta, one.gamma, size, len(self.y), self.counted) for one in layers]

    def evaluate(self, parameters: Parameters, noises: list[list[Noise]]) -> tuple[float, Parameters]:
        """The bound, averaged over draws, and its gradient.

        Parameters
        ----------
        parameters
            All of them.
        noises
            Of each draw, of each layer.

        Returns
        -------
        tuple[float, Parameters]
            Value and derivatives by name.
        """
        first = ReluMap.of(input_gram(parameters, self.X))
        gradient = {name: np.zeros_like(values) for name, values in parameters.items()}
        shared = Layer(first.kernel, layer_values(parameters, 0)) if len(parameters["V"]) else None
        value, by_first = 0.0, Gram(*map(np.zeros_like, first.kernel))
        for noise in noises:
            one = _Path(self, parameters, first, shared, noise)
            value += one.value / len(noises)
            adjoint = one.reverse(gradient, 1.0 / len(noises))
            if adjoint is not None:
                by_first = Gram(*(total + part for total, part in zip(by_first, adjoint)))
        if shared is not None:
            value -= shared.divergence() / self.n
            by_first, by_layer = shared.reverse(-1.0 / self.n)
            _add(gradient, by_layer, 0)
        _add(gradient, reverse_input(parameters, self.X, first.reverse(by_first)))
        return value, gradient

    def log_noise(self, parameters: Parameters) -> float:
        """log σ.

        Parameters
        ----------
        parameters
            All of them.

        Returns
        -------
        float
            Known or learned.
        """
        return float(parameters["log_noise"]) if self.noise_variance is None else 0.5 * np.log(self.noise_variance)


class _Path:
    """One draw of the Gram matrices: its part of the bound, and the way back."""

    def __init__(
        self, bound: Bound, parameters: Parameters, first: ReluMap, shared: Layer | None, noises: list[Noise]
    ) -> None:
        self.bound, self.parameters, self.shared = bound, parameters, shared
        self.draws, self.maps = propagate(parameters, first, shared, noises)
        self.output = Output(parameters, self.maps[-1].kernel)
        log_noise = bound.log_noise(parameters)
        self.residual, self.precision = bound.y - self.output.means, np.exp(-2.0 * log_noise)
        self.misfit = self.precision * float((self.residual**2 + self.output.variances).mean())
        deeper = sum(draw.layer.divergence() for draw in self.draws[1:])
        self.value = -0.5 * (self.misfit + LOG_2PI) - log_noise - (deeper + self.output.divergence()) / bound.n

    def reverse(self, gradient: Parameters, share: float) -> Gram | None:
        """Add to the gradient; the derivative by the first kernel, or None where the shared layer holds it."""
        n = len(self.residual)
        by_mean = share * self.precision * self.residual / n
        by_variance = np.full(n, -0.5 * share * self.precision / n)
        adjoint, found = self.output.reverse(by_mean, by_variance, -share / self.bound.n)
        _add(gradient, found)
        if "log_noise" in gradient:
            gradient["log_noise"] += share * (self.misfit - 1.0)
        for k in range(len(self.draws) - 1, -1, -1):
            self.draws[k].reverse(self.maps[k + 1].reverse(adjoint))
            if k == 0:
                return None
            adjoint, found = self.draws[k].layer.reverse(-share / self.bound.n)
            _add(gradient, found, k)
        return adjoint


def _add(gradient: Parameters, found: Mapping[str, Any], layer: int | None = None) -> None:
    for name, values in found.items():
        if layer is None:
            gradient[name] += values
        else:
            gradient[name][layer] += values
