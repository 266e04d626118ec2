"""s_ℓ | s_-ℓ, σ², y, cell by cell; then exchanges between cells, and all scales and the noise at once.

Everything leaves the posterior invariant. A scale is drawn from a random lattice of its logarithms that holds the
present one, scored exactly. Exchanges move what a cell adds to a neighbour, whose pattern differs at one point. In the
eigenvectors of Σ_ℓ c_ℓ λ_ℓλ_ℓᵀ the likelihood for other noise, or with all scales multiplied, costs O(n): there whole
lattices of log σ², of a common log factor of the scales, and of both are scored.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np

from cadlag.baselines.shallow_stable.cells import find_neighbours
from cadlag.baselines.shallow_stable.model import ShallowStable
from cadlag.baselines.shallow_stable.plane import Index
from cadlag.baselines.shallow_stable.sweep import exchange, renew, sweep, sweep_as_published
from cadlag.linalg import gaussian
from cadlag.sampling.choice import pick
from cadlag.sampling.contract import Apart, Array, Info, State
from cadlag.sampling.probes import as_info, probe_rows

N_EXCHANGES = 300
N_STEPS = 16
N_WALKS = 2
START_NOISE = 0.3  # of the mean square of y, where chains start, at most


class _Moves(Apart):
    """What both kernels share: where they start, Q⁻¹, and what they report."""

    def __init__(self, target: ShallowStable, n_warmup: int = 0) -> None:
        self.target, self.n_warmup = target, n_warmup
        self._probes = probe_rows(len(target.y))

    def init(self, rng: np.random.Generator) -> State:
        """Scales from the prior, those beyond its middle in proportion to y."""
        model = self.target
        log_s, _ = model.read(model.sample_prior(rng))
        size = math.log(float(np.mean(model.y**2)) or 1.0)
        log_v = size + math.log(START_NOISE * (0.1 + 0.9 * rng.random()))
        most = np.maximum(size - model.log_weights, model.law.mean_log)
        return {"position": model.write(np.minimum(log_s, most), log_v)}

    def _invert(self, log_s: Array, log_v: float) -> tuple[Array, Array]:
        """Q⁻¹ and Q⁻¹y."""
        Q = self.target.covariance(log_s)
        Q[np.diag_indices(len(Q))] += self.target.row_noise(log_v)
        inverse, _ = gaussian.inverse(np.ascontiguousarray(Q))
        return inverse, inverse @ self.target.y

    def _finish(self, log_s: Array, log_v: float, spectrum: "Spectrum", info: Info) -> tuple[State, Info]:
        model = self.target
        position = model.write(log_s, log_v)
        values = spectrum.function(log_v)[self._probes]
        log_target = spectrum.log_likelihood(0.0, log_v) + model.log_prior(position)
        failed = {"n_failures": 0.0, "diverging": 0.0, "n_gradients": 0.0}
        return {"position": position}, {**failed, **info, "log_target": log_target, **as_info(values)}


class Spectrum:
    """Q in units of the rows' noise: eigenvalues of the function's part, and y along the eigenvectors.

    Parameters
    ----------
    model
        The target.
    log_s
        Log scales.
    """

    def __init__(self, model: ShallowStable, log_s: Array) -> None:
        self.omega = 1.0 / np.sqrt(model.row_noise(0.0))
        values, self.vectors = np.linalg.eigh(model.covariance(log_s) * np.outer(self.omega, self.omega))
        self.values = np.maximum(values, 0.0)
        self.along = self.vectors.T @ (self.omega * model.y)

    def log_likelihood(self, log_factor: Any, log_v: Any) -> Any:
        """With the function's part multiplied by a factor, of any shape."""
        factor, noise = np.exp(log_factor), np.exp(log_v)
        total = np.multiply.outer(factor, self.values) + np.expand_dims(noise, -1)
        value = -0.5 * (np.log(total) + self.along**2 / total).sum(axis=-1)
        return value + float(np.log(self.omega).sum()) - 0.5 * len(self.along) * gaussian.LOG_2PI

    def function(self, log_v: float) -> Array:
        """Mean of the function at the training rows."""
        shares = self.values / (self.values + math.exp(log_v))
        return self.vectors @ (shares * self.along) / self.omega


class CellSweeps(_Moves):
    """Gibbs draws of every scale, exchanges, and joint moves.

    Parameters
    ----------
    target
        The network.
    n_warmup
        Not used: nothing adapts. Kept so that all kernels are made alike.
    """

    @cached_property
    def _neighbours(self) -> tuple[Index, Index]:
        return find_neighbours(self.target.cells.patterns)

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """One sweep; only the posterior itself is a level."""
        log_s, log_v = self.target.read(state["position"])
        info: Info = {}
        if self.target.n_scales:
            info["n_failures"] = float(self.renew_scales(rng, log_s, log_v))
            info["accept"] = self.exchange_scales(rng, log_s, log_v)
        spectrum = Spectrum(self.target, log_s)
        log_s, log_v = self.walk(rng, log_s, log_v, spectrum)
        return self._finish(log_s, log_v, spectrum, info)

    def renew_scales(self, rng: np.random.Generator, log_s: Array, log_v: float) -> int:
        """Every scale once, in place; returns how often Q⁻¹ had to be computed anew."""
        model, log_most = self.target, self.target.log_most(log_v)
        inverse, beta = self._invert(log_s, log_v)
        order, again = rng.permutation(model.n_cells), 0
        given = model.cells.patterns, model.log_weights, log_s
        law = model.law.index, model.law.density_table, log_most
        at = sweep(rng, order, 0, *given, inverse, beta, *law)
        while at < len(order):
            cell, again = order[at], again + 1
            without = log_s.copy()
            without[cell] = -np.inf
            inverse, beta = self._invert(without, log_v)
            renew(rng, cell, 0.0, *given, inverse, beta, np.empty(len(beta)), *law)
            at = sweep(rng, order, at + 1, *given, inverse, beta, *law)
        return again

    def exchange_scales(self, rng: np.random.Generator, log_s: Array, log_v: float) -> float:
        """Exchanges between cells, in place; returns the share that was accepted."""
        model = self.target
        if model.n_cells < 2:
            return math.nan
        inverse, beta = self._invert(log_s, log_v)
        given = model.cells.patterns, model.log_weights, log_s
        table = model.law.density_table
        return exchange(rng, N_EXCHANGES, *self._neighbours, *given, inverse, beta, table) / N_EXCHANGES

    def walk(self, rng: np.random.Generator, log_s: Array, log_v: float, spectrum: Spectrum) -> tuple[Array, float]:
        """Noise, all scales, and both, each from a lattice."""
        stable, unknown = bool(self.target.n_scales), self.target.noise_variance is None
        directions = [(0.0, 1.0)] * unknown + [(1.0, 0.0)] * stable + [(1.0, 1.0)] * (stable and unknown)
        for along_s, along_v in directions * N_WALKS:
            # A common factor of many scales is known well a priori.
            narrow = math.sqrt(self.target.n_cells) if along_s else 1.0
            steps = _lattice(rng) / narrow
            scores = self._scores(log_s, log_v, spectrum, along_s * steps, along_v * steps)
            step = steps[pick(rng, scores, float(scores.max()))]
            spectrum.values *= math.exp(along_s * step)
            log_s, log_v = log_s + along_s * step, log_v + along_v * step
        return log_s, log_v

    def _scores(self, log_s: Array, log_v: float, spectrum: Spectrum, by_s: Array, by_v: Array) -> Array:
        model = self.target
        scores = spectrum.log_likelihood(by_s, log_v + by_v) + model.log_noise_prior(log_v + by_v)
        if not model.n_scales:
            return scores
        if np.any(by_s != 0.0):
            scores += model.law.log_density(log_s + by_s[:, None]).sum(axis=1)
        room = model.log_most(log_v) + by_v - by_s - (model.log_weights + log_s).max()
        return np.where((room >= 0.0) | (by_s + by_v == 0.0), scores, -np.inf)


def _lattice(rng: np.random.Generator) -> Array:
    """Steps of a random spacing, 0 among them at a random place."""
    spacing = 0.02 * 50.0 ** rng.random()
    return spacing * (np.arange(N_STEPS) - rng.integers(N_STEPS))


class PublishedMoves(_Moves):
    """Every scale, then the noise, proposed from the prior: the published sampler.

    Parameters
    ----------
    target
        The network.
    n_warmup
        Not used: nothing adapts. Kept so that all kernels are made alike.
    """

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """One sweep; only the posterior itself is a level."""
        model = self.target
        log_s, log_v = model.read(state["position"])
        accepted = self._propose_scales(rng, log_s, log_v) if model.n_scales else 0
        spectrum = Spectrum(model, log_s)
        if model.noise_variance is None:
            proposed = model.read(model.sample_prior(rng))[1]
            gain = spectrum.log_likelihood(0.0, proposed) - spectrum.log_likelihood(0.0, log_v)
            allowed = not model.n_scales or (model.log_weights + log_s).max() <= model.log_most(proposed)
            if allowed and math.log(1.0 - rng.random()) < gain:
                log_v, accepted = proposed, accepted + 1
        return self._finish(log_s, log_v, spectrum, {"accept": accepted / max(model.dimension, 1)})

    def _propose_scales(self, rng: np.random.Generator, log_s: Array, log_v: float) -> int:
        model, at, total = self.target, 0, 0
        fresh, renewed = model.law.sample_log(rng, model.n_cells), False
        while at < model.n_cells:
            inverse, beta = self._invert(log_s, log_v)
            at, accepted = sweep_as_published(
                rng, at, fresh, model.cells.patterns, model.log_weights, log_s, inverse, beta, model.log_most(log_v),
                renewed,
            )  # fmt: skip
            total, renewed = total + accepted, True
        return total
