"""Sweeps over the units as a transition kernel; warm-up by a falling noise floor."""

import math

import numpy as np

from cadlag.models.network.model import ACTIVATIONS, StableNetwork, Units
from cadlag.models.network.scales import walk_scales
from cadlag.models.network.sweep import sweep_units
from cadlag.samplers.contract import Apart, Array, Info, State

HIGHEST, LOWEST = 0.35, 0.017


def floor_at(iteration: int, n_warmup: int) -> float:
    """The noise floor: high for a third of warm-up, falling geometrically until 90 %, then none."""
    t = iteration / max(n_warmup, 1)
    if t >= 0.9:
        return 0.0
    return HIGHEST if t < 1.0 / 3.0 else HIGHEST * (LOWEST / HIGHEST) ** ((t - 1.0 / 3.0) / (0.9 - 1.0 / 3.0))


class Sweeps(Apart):
    """Gibbs sweeps.

    Parameters
    ----------
    target
        The network.
    n_warmup
        Iterations with a noise floor.
    """

    def __init__(self, target: StableNetwork, n_warmup: int) -> None:
        self.target, self.n_warmup = target, n_warmup

    def init(self, rng: np.random.Generator) -> State:
        """A prior draw with moderate amplitude and noise."""
        units = self.target.read(self.target.sample_prior(rng))
        units = units._replace(
            log_tau=units.log_tau if self.target.amplitude is not None else 0.0,
            log_v=units.log_v if self.target.noise_variance is not None else math.log(0.1),
        )
        return {"position": self.target.write(units), "iteration": 0}

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """A sweep over the units, then the scales."""
        model, iteration = self.target, state["iteration"]
        floor = max(level, floor_at(iteration, self.n_warmup)) if iteration < self.n_warmup else level
        units = model.read(state["position"])
        law = model.law._density if model.stable else (0.0, 1.0, np.zeros((1, 4)))
        Phi = model.columns(units)
        gram, products, square = Phi.T @ Phi, Phi.T @ model.y, float(model.y @ model.y)
        W, log_s, kinds, _, _ = units
        noise = math.exp(units.log_v) + floor * floor
        variances = model.variances(units)
        C = _inverse(gram, variances, noise)
        P = Phi @ C
        residual = model.y - P @ products
        work = np.empty((6, len(model.y) + 1))
        sweep_units(
            rng, model.X, model.y, W, log_s, kinds, 2.0 * units.log_tau + model.log_factor, noise, model.law.index, law,
            model.relu_scale, ACTIVATIONS[model.activation], Phi, P, C, residual, gram, products, work,
        )  # fmt: skip
        log_tau, log_v, value = walk_scales(
            rng, log_s, units.log_tau, units.log_v, model.log_factor, floor, model.amplitude is not None,
            model.noise_variance is not None, model.noise_power, model.noise_scale, law, model.stable, gram, products,
            square, len(model.y),
        )  # fmt: skip
        position = model.write(Units(W, log_s, kinds, log_tau, log_v))
        info = {"log_target": value + model.log_prior(position), "floor": floor, "n_sign": float((kinds == 0).sum())}
        return {"position": position, "iteration": iteration + 1}, info


def _inverse(gram: Array, variances: Array, noise: float) -> Array:
    """C = A (I + AΦᵀΦA/v)⁻¹ A / v."""
    a = np.sqrt(variances)
    B = np.eye(len(a)) + a[:, None] * gram * a / noise
    return a[:, None] * np.linalg.inv(B) * a / noise
