"""log π(x) ≈ log t_ν(z) + b + Σ_i a_i k(|z - z_i|), z = L⁻¹(x - m): a Gaussian process that stands for the target.

It is fitted to log densities that warm-up has seen, rejected proposals included, and costs little beside them where
rows are many. m is the heaviest mode and LLᵀ the inverse curvature there: in these units one length scale does for all
coordinates, also where inputs are collinear. k is the Matérn correlation of smoothness 5/2; far from everything seen, a
wide t law and the low constant b are left.

A walk takes many steps that are reversible under the emulator π̃, its end is proposed and accepted with probability
min{1, π(x') π̃(x) / (π(x) π̃(x'))} (Liu 2001, section 9.4.3): the posterior is left invariant exactly, whatever π̃.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from cadlag.linalg.gaussian import NotPositiveDefiniteError, lower_factor
from cadlag.sampling.contract import Array, State
from cadlag.sampling.mixture import NU, Mixture, log_density_at

_WIDER = 1.5  # than the mode, for the t law
_DEPTH = 30.0  # nats below the highest point seen, and one more a coordinate: nothing lower is fitted
_MOST, _LARGEST = 96, 1536  # points a coordinate, the latest, and in all
_LEAST = 4  # points a coordinate
_APART = 1e-2  # closer points are one
_LENGTHS = (3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
_SAMPLE = 400  # points that choose among them
_NUGGETS = (1e-7, 1e-5, 1e-3)
_LONGEST = 8  # leapfrog steps
_STEP = 0.7  # of the leapfrog, times d^(-1/4)


@njit(cache=True, nogil=True)  # sums in the order written: another would depend on where arrays lie
def _height(z: Array, points: Array, weights: Array, length: float, slope: Array) -> float:
    """log π̃ but for a constant; its gradient into `slope`."""
    n, d = points.shape
    value, square, factor = 0.0, 0.0, 5.0 / (3.0 * length * length)
    for j in range(d):
        slope[j] = 0.0
        square += z[j] * z[j]
    for i in range(n):
        s = 0.0
        for j in range(d):
            gap = z[j] - points[i, j]
            s += gap * gap
        r = math.sqrt(5.0 * s) / length
        e = weights[i] * math.exp(-r)
        value += (1.0 + r + r * r / 3.0) * e
        e *= factor * (1.0 + r)
        for j in range(d):
            slope[j] -= e * (z[j] - points[i, j])
    spread = NU * _WIDER * _WIDER
    for j in range(d):
        slope[j] -= (NU + d) / (spread + square) * z[j]
    return value - 0.5 * (NU + d) * math.log1p(square / spread)


@njit(cache=True, nogil=True)
def _walk(
    z: Array, hops: Array, normals: Array, uniforms: Array, share: float, power: float,
    points: Array, weights: Array, length: float, offsets: Array, means: Array, inverses: Array,
) -> tuple[Array, float]:  # fmt: skip
    """Steps under π̃^power, each a hop or a trajectory at random: the end, and how much higher it is."""
    d = len(z)
    here, slope = z.copy(), np.empty(d)
    value = _height(here, points, weights, length, slope)
    first = value
    for t in range(len(uniforms)):
        log_uniform, there, slope_there = math.log(1.0 - uniforms[t, 1]), here.copy(), slope.copy()
        if uniforms[t, 0] < share:
            there[:] = hops[t]
            value_there = _height(there, points, weights, length, slope_there)
            ratio = log_density_at(here, offsets, means, inverses) - log_density_at(there, offsets, means, inverses)
        else:
            step = _STEP * d**-0.25 * (0.5 + uniforms[t, 2])
            momentum, value_there = normals[t].copy(), value
            ratio = 0.5 * (momentum**2).sum()
            for _ in range(1 + int(uniforms[t, 3] * _LONGEST)):
                momentum += (0.5 * step * power) * slope_there
                there += step * momentum
                value_there = _height(there, points, weights, length, slope_there)
                momentum += (0.5 * step * power) * slope_there
            ratio -= 0.5 * (momentum**2).sum()
        if log_uniform < power * (value_there - value) + ratio:  # never where the trajectory has overflown
            here, value, slope = there, value_there, slope_there
    return here, power * (value - first)


@dataclass(frozen=True)
class Emulator:
    """A Gaussian process that stands for a log density.

    Attributes
    ----------
    centre
        (d,).
    factor
        Lower triangular, (d, d): positions are centre + factor z.
    positions
        Where the log density has been seen, (n, d).
    values
        What it was there, (n,).
    weights
        (n,).
    length
        Length scale of the process in units of z.
    """

    centre: Array
    factor: Array
    positions: Array
    values: Array
    weights: Array
    length: float

    @classmethod
    def learn(cls, centre: Array, factor: Array, positions: Array, values: Array) -> "Emulator":
        """Fit to the latest of the higher log densities; fails where there are too few."""
        factor = np.ascontiguousarray(factor)  # whatever worker it came from: the layout decides how sums are rounded
        z, d = _whitened(centre, factor, positions), len(centre)
        most = min(_MOST * d, _LARGEST)
        high = np.flatnonzero(values > values.max() - _DEPTH - d)[-2 * most :]
        alone = ~np.triu(_squares(z[high]) < _APART**2, 1).any(axis=1)  # the last of those that are one
        kept = high[alone][-most:]
        if len(kept) < _LEAST * d:
            raise NotPositiveDefiniteError("too few log densities have been seen for an emulator")
        z, wanted = z[kept], values[kept] - _log_wide(z[kept])
        with threadpool_limits(1, user_api="blas"):
            length = max(_LENGTHS, key=lambda length: _fit(z[-_SAMPLE:], wanted[-_SAMPLE:], length)[0])
            weights = _fit(z, wanted, length)[1]
        return cls(centre, factor, positions[kept], values[kept], weights, length)

    def walk(
        self, rng: np.random.Generator, position: Array, mixture: Mixture, n_steps: int, share: float,
        power: float = 1.0,
    ) -> tuple[Array, float]:  # fmt: skip
        """Steps under π̃^power, a share of them hops to draws of a `whitened` mixture: the end, how much higher."""
        hops, normals = mixture.sample(rng, n_steps), rng.standard_normal((n_steps, len(position)))
        start = _whitened(self.centre, self.factor, position[None])[0]
        end, gain = _walk(
            start, hops, normals, rng.random((n_steps, 4)), share, power, self._points, self.weights, self.length,
            mixture.offsets, mixture.means, mixture.inverses,
        )  # fmt: skip
        return self.centre + self.factor @ end, gain

    def whitened(self, mixture: Mixture) -> Mixture:
        """A mixture in units of z."""
        factors = [
            solve_triangular(self.factor, np.ascontiguousarray(factor), lower=True) for factor in mixture.factors
        ]
        means = _whitened(self.centre, self.factor, mixture.means)
        return Mixture.of(mixture.log_weights, means, np.ascontiguousarray(np.stack(factors)))

    @cached_property
    def _points(self) -> Array:
        return _whitened(self.centre, self.factor, self.positions)

    def to_state(self) -> State:
        """The emulator as a plain tree."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _whitened(centre: Array, factor: Array, positions: Array) -> Array:
    """Positions in units of z."""
    return np.ascontiguousarray(solve_triangular(factor, (positions - centre).T, lower=True).T)


def _squares(z: Array) -> Array:
    """Squared distances between all points."""
    lengths = (z**2).sum(axis=1)
    return np.maximum(lengths[:, None] + lengths - 2.0 * z @ z.T, 0.0)


def _log_wide(z: Array) -> Array:
    """The log t law but for a constant."""
    return -0.5 * (NU + z.shape[1]) * np.log1p((z**2).sum(axis=1) / (NU * _WIDER**2))


def _fit(z: Array, wanted: Array, length: float) -> tuple[float, Array]:
    """Log marginal likelihood, its scale at the best, and weights, for the smallest nugget that rounding allows."""
    r = np.sqrt(5.0 * _squares(z)) / length
    correlation = (1.0 + r + r * r / 3.0) * np.exp(-r)
    factor = _factor(correlation)
    ones, solved = solve_triangular(factor, np.column_stack([np.ones(len(z)), wanted]), lower=True).T
    low = min(float(ones @ solved / (ones @ ones)), float(np.median(wanted)))
    solved = solved - low * ones
    fit = -0.5 * len(z) * math.log(solved @ solved / len(z) + 1e-300) - float(np.log(np.diagonal(factor)).sum())
    return fit, solve_triangular(factor, solved, lower=True, trans="T")


def _factor(correlation: Array) -> Array:
    for nugget in _NUGGETS:
        with suppress(NotPositiveDefiniteError):
            return lower_factor(correlation + nugget * np.eye(len(correlation)))
    raise NotPositiveDefiniteError("points too close to each other for an emulator")
