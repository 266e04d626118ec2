"""log p(y) ≥ E_Q[Σ log N(y_t; f_t, σ²)] - Σ_ℓ KL(Q(G_ℓ) || P(G_ℓ)) - E_Q KL(Q(f_i) || P(f_i)): the bound.

The deep inverse Wishart process with P global inducing inputs: f ~ N(0, a² K(G_L)) above the Gram matrices of
:mod:`cadlag.baselines.diwp.layer`. Given them everything is normal (:mod:`cadlag.baselines.diwp.output`), so only
they are sampled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cadlag.baselines.diwp.gram import Gram, ReluMap
from cadlag.baselines.diwp.layer import Draw, Layer, LayerValues
from cadlag.baselines.diwp.noise import Noise, draw_noise
from cadlag.baselines.diwp.output import Output, Parameters
from cadlag.linalg.gaussian import LOG_2PI, Array

# Input ---------------------------------------------------------------------------------------------------------------


def features(parameters: Parameters, X: Array) -> Array:
    """Inputs with their learned scales and shifts, if any, and a constant feature, over √(number of features)."""
    if "log_input_scales" in parameters:
        X = X * np.exp(parameters["log_input_scales"]) + parameters["input_shifts"]
    return np.column_stack([X, np.ones(len(X))]) / np.sqrt(X.shape[1] + 1.0)


def input_gram(parameters: Parameters, X: Array, joint: bool = False) -> Gram:
    """G_0 of inducing inputs and rows."""
    inducing, rows = features(parameters, parameters["inducing"]), features(parameters, X)
    own = rows @ rows.T if joint else np.einsum("ij,ij->i", rows, rows)
    return Gram(inducing @ inducing.T, inducing @ rows.T, own)


def reverse_input(parameters: Parameters, X: Array, adjoint: Gram) -> dict[str, Array]:
    """Derivatives by inducing inputs, scales and shifts from those by G_0."""
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
    """The parameters of one inverse Wishart layer."""
    delta, gamma, weight = (float(np.exp(parameters[name][k])) for name in ("log_delta", "log_gamma", "log_weight"))
    return LayerValues(delta, gamma, weight, parameters["V"][k])


def ground(parameters: Parameters, X: Array) -> tuple[ReluMap, Layer | None]:
    """What all draws stand on: the first map of inducing inputs and rows, and the layer above it, if there is one."""
    first = ReluMap.of(input_gram(parameters, X))
    return first, Layer(first.kernel, layer_values(parameters, 0)) if len(parameters["V"]) else None


def propagate(
    parameters: Parameters, first: ReluMap, shared: Layer | None, noises: list[Noise]
) -> tuple[list[Draw], list[ReluMap]]:
    """One draw of the Gram matrices of all layers."""
    draws: list[Draw] = []
    maps = [first]
    for k, noise in enumerate(noises):
        layer = shared if k == 0 and shared is not None else Layer(maps[-1].kernel, layer_values(parameters, k))
        draws.append(layer.draw(noise))
        maps.append(ReluMap.of(draws[-1].gram))
    return draws, maps


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
        """What is random in one evaluation with one draw of the Gram matrices."""
        layers = (layer_values(parameters, k) for k in range(len(parameters["V"])))
        size = len(parameters["inducing"])
        return [draw_noise(rng, one.delta, one.gamma, size, len(self.y), self.counted) for one in layers]

    def evaluate(self, parameters: Parameters, noises: list[list[Noise]]) -> tuple[float, Parameters]:
        """The bound, averaged over draws, and its gradient."""
        first, shared = ground(parameters, self.X)
        gradient = {name: np.zeros_like(values) for name, values in parameters.items()}
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
        """log σ, learned or known."""
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
        squares = float(self.residual @ self.residual) + self.output.total_variance
        self.misfit = self.precision * squares / len(bound.y)
        deeper = sum(draw.layer.divergence() for draw in self.draws[1:])
        self.value = -0.5 * (self.misfit + LOG_2PI) - log_noise - (deeper + self.output.divergence()) / bound.n

    def reverse(self, gradient: Parameters, share: float) -> Gram | None:
        """Add to the gradient; the derivative by the first kernel, or None where the shared layer holds it."""
        n = len(self.residual)
        by_mean = share * self.precision * self.residual / n
        by_total = -0.5 * share * self.precision / n
        adjoint, found = self.output.reverse(by_mean, by_total, -share / self.bound.n)
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


def _add(gradient: Parameters, found: Mapping[str, Any], layer: int | tuple[()] = ()) -> None:
    """Add derivatives to all of a gradient, or to one layer's part of it."""
    for name, values in found.items():
        gradient[name][layer] += values
