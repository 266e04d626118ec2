"""π(x) ≈ π(m) exp{-½(x - m)ᵀH(x - m)}: where a chain starts, and the metric it starts with.

From each of a few prior draws a quasi-Newton ascent finds a mode m with curvature H. A chain takes one of them by its
mass π(m)|H|^-½, so that chains spread over modes that matter and leave alone those that do not, and starts at a draw
from the normal law there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from cadlag.linalg.gaussian import lower_factor
from cadlag.sampling.contract import Array, State, Target, find_start

Seen = list[tuple[Array, float]]

_N_ASCENTS = 2
_BEST_OF = 7  # prior draws, the likeliest of which begins an ascent
_N_STEPS = 60
_DIFFERENCE = 1e-5
_WIDEST = 3.0  # standard deviations of the prior: no direction is taken for flatter
_NARROWEST = 1e-6  # standard deviation beside the widest, below which rounding may make it imaginary


@dataclass(frozen=True)
class Modes:
    """Modes with their metrics.

    Attributes
    ----------
    places
        (k, d).
    factors
        Lower triangular, LLᵀ the inverse curvatures, (k, d, d).
    log_masses
        log π(m) - ½ log|H|, (k,).
    positions
        Where the climbs have been, (n, d).
    values
        Log densities there, (n,).
    """

    places: Array
    factors: Array
    log_masses: Array
    positions: Array
    values: Array

    @classmethod
    def join(cls, states: Sequence[State]) -> "Modes":
        """Modes of several chains, from their plain trees."""
        return cls(*(np.concatenate([s[name] for s in states]) for name in cls.__dataclass_fields__))

    def to_state(self) -> State:
        """Modes as a plain tree."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def start(self, rng: np.random.Generator, target: Target) -> tuple[Array, Array]:
        """A draw near one of the modes, taken by its mass, and the metric there."""
        weights = np.exp(self.log_masses - self.log_masses.max())
        k = rng.choice(len(weights), p=weights / weights.sum())
        mode, factor = self.places[k], self.factors[k]
        for shrink in (1.0, 0.3, 0.1):
            position = mode + shrink * (factor @ rng.standard_normal(len(mode)))
            if math.isfinite(_value(target, position)):
                return position, factor
        return mode.copy(), factor


def find_modes(rng: np.random.Generator, target: Target) -> Modes:
    """Climb from a few prior draws."""
    spread = prior_spread(rng, target)
    seen: Seen = []
    found = [_climb(target, find_start(rng, target, _BEST_OF), spread, seen) for _ in range(_N_ASCENTS)]
    places, factors = np.stack([mode for mode, _ in found]), np.ascontiguousarray([factor for _, factor in found])
    masses = [_value(target, mode) + float(np.log(np.diagonal(factor)).sum()) for mode, factor in found]
    positions, values = zip(*seen)
    return Modes(places, factors, np.array(masses), np.stack(positions), np.array(values))


def prior_spread(rng: np.random.Generator, target: Target, n: int = 200) -> Array:
    """Interquartile range of prior draws in normal units: log scales spread like 1/α, far from one when α is small."""
    draws = np.stack([target.sample_prior(rng) for _ in range(n)])
    low, high = np.quantile(draws, [0.25, 0.75], axis=0)
    return np.maximum((high - low) / 1.349, 1e-6)


def _value(target: Target, position: Array) -> float:
    return target.log_target(position, target.exact_level)


def _climb(target: Target, start: Array, spread: Array, seen: Seen) -> tuple[Array, Array]:
    """A mode, in units of the prior's spread, and the factor of its inverse curvature; what is seen on the way."""
    with np.errstate(over="ignore", invalid="ignore"):
        mode = ascend(target, start, spread, _N_STEPS, seen)
        curvature = _differentiate(_descent(target, start, spread, seen)[0], mode)
    values, vectors = np.linalg.eigh(np.nan_to_num(0.5 * (curvature + curvature.T)))
    variances = np.minimum(1.0 / np.maximum(values, 1e-300), _WIDEST**2)
    variances = np.maximum(variances, _NARROWEST**2 * variances.max())
    covariance = (vectors * variances) @ vectors.T
    return mode * spread, spread[:, None] * lower_factor(covariance)


def ascend(target: Target, start: Array, spread: Array, n_steps: int, seen: Seen | None = None) -> Array:
    """Where so many quasi-Newton steps lead from a start, in units of the prior's spread."""
    descent, lowest = _descent(target, start, spread, [] if seen is None else seen)
    with np.errstate(over="ignore", invalid="ignore"):
        found = minimize(descent, start / spread, jac=True, method="L-BFGS-B", options={"maxiter": n_steps})
    return found.x if -found.fun > lowest and np.isfinite(found.x).all() else start / spread


def _descent(
    target: Target, start: Array, spread: Array, seen: Seen
) -> tuple[Callable[[Array], tuple[float, Array]], float]:  # fmt: skip
    """-log π and its gradient in units of the prior's spread; where there is none, what is far below the start."""
    lowest = _value(target, start) - 1e3

    def descent(u: Array) -> tuple[float, Array]:
        value, gradient = target.log_target_gradient(u * spread, target.exact_level)
        seen.append((u * spread, value))
        return (-value, -gradient * spread) if math.isfinite(value) else (-lowest, np.zeros(len(u)))

    return descent, lowest


def _differentiate(descent: Callable[[Array], tuple[float, Array]], mode: Array) -> Array:
    """Hessian by forward differences of the gradient."""
    here = descent(mode)[1]
    return np.array([descent(mode + step)[1] - here for step in _DIFFERENCE * np.eye(len(mode))]) / _DIFFERENCE
