"""q(x) = Σ_k w_k t_ν(x; m_k, C_k): a mixture of multivariate t laws fitted to draws by expectation-maximisation.

Used as a proposal that knows every place the chains have seen. Its tails (ν = 5) must be heavy: log scales that data
say little of have exponential tails, and chains can stick there when q is lighter. The number of components is the one
that predicts held-out draws best.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cadlag.linalg.gaussian import NotPositiveDefiniteError, lower_factor
from cadlag.sampling.contract import Array, State
from cadlag.sampling.laplace import Modes

NU = 5.0
_WIDE_SHARE, _WIDER = 0.15, 1.5
_LEAST_MASS = 0.02  # of a mode beside the heaviest
_ENOUGH = 3e-4  # nats a draw: a smaller gain of one step ends the fit


@njit(cache=True, nogil=True)
def _squares(positions: Array, means: Array, inverses: Array) -> Array:
    """Squared Mahalanobis distances to each component, (m, k)."""
    (m, d), n_components = positions.shape, len(means)
    out = np.empty((m, n_components))
    gap = np.empty(d)
    for row in range(m):
        for k in range(n_components):
            total = 0.0
            for i in range(d):
                gap[i] = positions[row, i] - means[k, i]
                s = 0.0
                for j in range(i + 1):
                    s += inverses[k, i, j] * gap[j]
                total += s * s
            out[row, k] = total
    return out


@njit(cache=True, nogil=True)
def _log_sum(logs: Array) -> Array:
    out = np.empty(len(logs))
    for row in range(len(logs)):
        largest = logs[row].max()
        out[row] = largest + math.log(np.exp(logs[row] - largest).sum())
    return out


@njit(cache=True, nogil=True)
def log_density_at(position: Array, offsets: Array, means: Array, inverses: Array) -> float:
    """Log density of a mixture at one position, for compiled callers."""
    squares = _squares(position.reshape(1, -1), means, inverses)
    return float(_log_sum(offsets - 0.5 * (NU + len(position)) * np.log1p(squares / NU))[0])


@njit(cache=True, nogil=True)
def _scatter(means: Array, factors: Array, which: NDArray[np.int64], radius: Array, normal: Array) -> Array:
    out = np.empty_like(normal)
    for row in range(len(normal)):
        k = which[row]
        out[row] = means[k] + radius[row] * (factors[k] @ normal[row])
    return out


@dataclass(frozen=True)
class Mixture:
    """A mixture of t laws.

    Attributes
    ----------
    log_weights
        (k,).
    means
        (k, d).
    factors
        Lower Cholesky factors of the scale matrices, (k, d, d).
    inverses
        Their inverses.
    offsets
        Log density of each component at its own mean, its weight included.
    """

    log_weights: Array
    means: Array
    factors: Array
    inverses: Array
    offsets: Array

    def component_log_densities(self, squares: Array) -> Array:
        """Log density of each component, its weight included, (m, k)."""
        return self.offsets - 0.5 * (NU + self.means.shape[1]) * np.log1p(squares / NU)

    def log_density(self, positions: Array) -> Array:
        """Log density, (m,)."""
        return _log_sum(self.component_log_densities(_squares(positions, self.means, self.inverses)))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """Independent draws, (n, d)."""
        which = np.searchsorted(np.cumsum(np.exp(self.log_weights)), rng.random(n)).clip(max=len(self.means) - 1)
        normal = rng.standard_normal((n, self.means.shape[1]))
        radius = np.sqrt(NU / rng.chisquare(NU, size=n))
        return _scatter(self.means, self.factors, which, radius, normal)

    @classmethod
    def about(cls, modes: Modes) -> "Mixture":
        """Laws about modes, with their curvatures, by their masses, none of them left out."""
        log_weights = np.logaddexp(modes.log_masses - modes.log_masses.max(), math.log(_LEAST_MASS))
        return cls.of(log_weights - math.log(np.exp(log_weights).sum()), modes.places, modes.factors)

    def widened(self) -> "Mixture":
        """A share of each component wider, for tails of which little has been seen."""
        log_weights = [self.log_weights + math.log(1.0 - _WIDE_SHARE), self.log_weights + math.log(_WIDE_SHARE)]
        factors = np.concatenate([self.factors, _WIDER * self.factors])
        return Mixture.of(np.concatenate(log_weights), np.concatenate([self.means, self.means]), factors)

    def to_state(self) -> State:
        """The mixture as a plain tree."""
        return {"log_weights": self.log_weights, "means": self.means, "factors": self.factors}

    @classmethod
    def from_state(cls, state: State) -> "Mixture":
        """From a plain tree."""
        return cls.of(state["log_weights"], state["means"], state["factors"])

    @classmethod
    def of(cls, log_weights: Array, means: Array, factors: Array) -> "Mixture":
        """From log weights, means and lower factors of the scale matrices."""
        d, factors = (
            means.shape[1],
            np.ascontiguousarray(factors),
        )  # as after a file: layout decides how sums are rounded
        inverses = np.ascontiguousarray(np.stack([np.linalg.solve(f, np.eye(d)) for f in factors]))
        constant = math.lgamma(0.5 * (NU + d)) - math.lgamma(0.5 * NU) - 0.5 * d * math.log(math.pi * NU)
        offsets = log_weights + np.log(np.einsum("kii->ki", inverses)).sum(axis=1) + constant
        return cls(log_weights, means, factors, inverses, offsets)


def _maximise(positions: Array, shares: Array, scales: Array, floor: Array) -> Mixture:
    """M step: weighted means and scatter, each scatter shrunk towards `floor` by d + 2 pseudo-draws."""
    n, d = positions.shape
    totals = shares.sum(axis=0) + 1e-12
    weighted = shares * scales
    means = (weighted.T @ positions) / (weighted.sum(axis=0)[:, None] + 1e-300)
    factors = []
    for k, total in enumerate(totals):
        deviations = positions - means[k]
        scatter = (deviations * weighted[:, k : k + 1]).T @ deviations
        factors.append(lower_factor((scatter + (d + 2) * floor) / (total + d + 2)))
    return Mixture.of(np.log((totals + 1.0) / (n + len(totals))), means, np.stack(factors))


def _seeds(rng: np.random.Generator, whitened: Array, k: int) -> Array:
    """k-means++ choice of starting rows."""
    chosen = [int(rng.integers(len(whitened)))]
    nearest = np.full(len(whitened), np.inf)
    for _ in range(k - 1):
        nearest = np.minimum(nearest, ((whitened - whitened[chosen[-1]]) ** 2).sum(axis=1))
        total = nearest.sum()
        chosen.append(int(rng.choice(len(whitened), p=nearest / total)) if total > 0 else chosen[0])
    return np.array(chosen)


def _fit_size(rng: np.random.Generator, positions: Array, k: int, n_steps: int = 60) -> Mixture:
    d = positions.shape[1]
    spread = positions.std(axis=0) + 1e-8
    whitened = (positions - positions.mean(axis=0)) / spread
    centres = whitened[_seeds(rng, whitened, k)]
    distance = ((whitened[:, None, :] - centres) ** 2).sum(axis=2)
    shares = (distance == distance.min(axis=1, keepdims=True)).astype(float)
    shares /= shares.sum(axis=1, keepdims=True)
    floor = np.diag((spread * k ** (-1.0 / d)) ** 2) * 0.05
    mixture = _maximise(positions, shares, np.ones_like(shares), floor)
    before = -math.inf
    for _ in range(n_steps):
        squares = _squares(positions, mixture.means, mixture.inverses)
        logs = mixture.component_log_densities(squares)
        totals = _log_sum(logs)
        if float(totals.mean()) - before < _ENOUGH:
            break
        before = float(totals.mean())
        mixture = _maximise(positions, np.exp(logs - totals[:, None]), (NU + d) / (NU + squares), floor)
    return mixture


def fit_mixture(
    rng: np.random.Generator, train: Array, held_out: Array, sizes: Sequence[int] = (1, 2, 4, 8)
) -> Mixture:
    """Fit mixtures of several sizes and keep the one that predicts the held-out draws best."""
    d = train.shape[1]
    usable = [k for k in sizes if k == 1 or len(train) >= 3 * (d + 2) * k]
    scores = {}
    for k in usable:
        with suppress(NotPositiveDefiniteError):
            scores[k] = float(_fit_size(rng, train, k).log_density(held_out).mean())
    if not scores:
        raise NotPositiveDefiniteError("no mixture could be fitted: the draws lie in a subspace")
    best = max(scores, key=lambda k: scores[k])
    return _fit_size(rng, np.concatenate([train, held_out]), best)
