"""Sweeps over the units as a transition kernel; warm-up by a falling noise floor."""

import math

import numpy as np

from cadlag.low_rank import log_marginal_of_sums, solve_upper
from cadlag.models.network.atom import Units
from cadlag.models.network.columns import explain
from cadlag.models.network.inputs import move_input_scales
from cadlag.models.network.model import ACTIVATIONS, StableNetwork
from cadlag.models.network.scales import walk_scales
from cadlag.models.network.sweep import polish_units, sweep_units
from cadlag.models.probes import as_info, probe_rows
from cadlag.samplers.contract import Apart, Array, Info, State

FLOORS = (0.35, 0.1, 0.017)  # of y's standard deviation: at first, after the slow fall, after the fast one
TIMES = (0.15, 0.8, 0.95)  # of warm-up, when each fall begins or ends; no floor after the last
POLISH = 3  # visits to a unit's direction alone, for each visit to all of it


def floor_at(iteration: int, n_warmup: int) -> float:
    """The noise floor: high, falling slowly while units find their places, then fast, geometrically, then none."""
    t = iteration / max(n_warmup, 1)
    if t >= TIMES[-1]:
        return 0.0
    return float(np.exp(np.interp(t, TIMES, np.log(FLOORS))))


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
        self._probes = probe_rows(len(target.y))

    def init(self, rng: np.random.Generator) -> State:
        """A prior draw with moderate amplitude and noise."""
        units = self.target.read(self.target.sample_prior(rng))
        units = units._replace(
            log_tau=units.log_tau if self.target.amplitude is not None else 0.0,
            log_v=units.log_v if self.target.noise_variance is not None else math.log(0.1),
            log_inputs=np.zeros_like(units.log_inputs),
        )
        return {"position": self.target.write(units), "iteration": 0}

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """A sweep over the units, then the scales."""
        model, iteration = self.target, state["iteration"]
        floor = max(level, floor_at(iteration, self.n_warmup)) if iteration < self.n_warmup else level
        units = model.read(state["position"])
        Phi = model.columns(units)
        sums = model.sums(Phi)
        self._sweep(rng, units, Phi, sums, floor)
        units = self._walk(rng, units, sums, floor)
        if model.n_input_scales:
            units, Phi, sums = move_input_scales(rng, model, units, Phi, sums, floor)
        value, probes = self._look(units, Phi, sums, floor)
        position = model.write(units)
        info = {"log_target": value + model.log_prior(position), "floor": floor,
                "n_sign": float((units.kinds == 0).sum()), **probes}  # fmt: skip
        return {"position": position, "iteration": iteration + 1}, info

    def _sweep(
        self, rng: np.random.Generator, units: Units, Phi: Array, sums: tuple[Array, Array], floor: float
    ) -> None:
        """Every unit once; units, Φ and the sums are changed in place."""
        model = self.target
        noise = model.noise(units, floor)
        gram, products = sums
        P, C, residual = explain(Phi, model.response, gram, products, model.square, model.variances(units), noise)
        X, log_scale = model.scaled(units), 2.0 * units.log_tau + model.log_factor
        own = (model.response, model.omega, units.W, units.log_s, units.kinds, log_scale, noise)
        shared = (Phi, P, C, residual, gram, products, np.empty((6, len(model.y) + 1)))
        sweep_units(
            rng, X, *own, model.law.index, model.density_table, model.relu_scale, ACTIVATIONS[model.activation], *shared
        )
        polish_units(rng, POLISH * model.n_units, X, *own, model.relu_scale, *shared)

    def _walk(self, rng: np.random.Generator, units: Units, sums: tuple[Array, Array], floor: float) -> Units:
        """Moves of scales, amplitude and noise that need only the sums."""
        model = self.target
        log_tau, log_v, _ = walk_scales(
            rng, units.log_s, units.log_tau, units.log_v, model.log_factor, model.floor_variance(floor),
            model.amplitude is not None, model.noise_variance is not None, model.noise_power, model.noise_scale,
            model.density_table, model.stable, *sums, model.square, len(model.y),
        )  # fmt: skip
        return units._replace(log_tau=log_tau, log_v=log_v)

    def _look(
        self, units: Units, Phi: Array, sums: tuple[Array, Array], floor: float
    ) -> tuple[float, dict[str, float]]:
        """The log likelihood, and the function's mean at a few rows."""
        model = self.target
        variances = model.variances(units)
        value, factor, half = log_marginal_of_sums(
            *sums, model.square, len(model.y), variances, model.noise(units, floor)
        )
        weights = np.sqrt(variances) * solve_upper(factor, half)
        at = Phi[self._probes] @ weights / model.omega[self._probes]
        return value + model.log_weight, as_info(at)
