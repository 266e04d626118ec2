"""The predictive law of every method: p(y | data) = Σ_t w_t N(y; μ_t, s_t²), a mixture of normals at each new input.

Each posterior draw t (an atom) conditions to a normal law, so mean, quantiles, densities and scores are exact functions
of (μ, s², w): the distribution function is F(y) = Σ_t w_t Φ((y - μ_t) / s_t), and its inverse solves F(x) = p.

An atom may have variance zero: a point mass, as in exact interpolation. Each input is treated by itself, so the
answer for a row does not depend on the other rows to the last bit.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import ndtri

from cadlag.metrics import FloatArray, crps_normal_mixture

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_TOLERANCE = 1e-13  # of a quantile, on the probability scale and relative to the smaller tail
_MAX_STEPS = 2200  # halvings from the largest double to the last bit of the smallest; a handful in practice
_UNDERFLOW = 39.0  # standard deviations beyond which the tail of a normal law is zero in double precision
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@njit(cache=True, error_model="numpy")
def _tail(x: float, side: int, means: FloatArray, sds: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """P(X <= x) for side 1, P(X > x) for side -1, and the density of the continuous part, all times Σ w."""
    mass, density = 0.0, 0.0
    for t in range(means.size):
        gap = x - means[t]
        if abs(gap) < _UNDERFLOW * sds[t]:
            z = gap / sds[t]
            mass += weights[t] * 0.5 * math.erfc(-side * z * _ROOT_HALF)
            density += weights[t] * math.exp(-0.5 * z * z) / sds[t]
        elif (gap >= 0.0) == (side > 0):
            mass += weights[t]
    return mass, density / _ROOT_TWO_PI


@njit(cache=True, error_model="numpy")
def _split(lower: float, upper: float, ladder: FloatArray) -> float:
    """The middle rung of the ladder inside the bracket, which follows every scale of the mixture, or the midpoint."""
    first = np.searchsorted(ladder, lower, side="right")
    last = np.searchsorted(ladder, upper, side="left")
    if last > first:
        return ladder[(first + last) // 2]
    return lower + 0.5 * (upper - lower)


@njit(cache=True, error_model="numpy")
def _jump_bracket(
    p: float, lower: float, upper: float, means: FloatArray, sds: FloatArray, weights: FloatArray, ladder: FloatArray
) -> tuple[float, float]:
    """Neighbouring rungs around the quantile; equal ends when F jumps over p there. Point masses are rungs."""
    total = weights.sum()
    first, last = 0, ladder.size
    while first < last:
        middle = (first + last) // 2
        if _tail(ladder[middle], 1, means, sds, weights)[0] / total >= p:
            last = middle
        else:
            first = middle + 1
    if first > 0:
        lower = ladder[first - 1]
    if first < ladder.size:
        upper = ladder[first]
        if _tail(np.nextafter(upper, -np.inf), 1, means, sds, weights)[0] / total < p:
            lower = upper
    return lower, upper


@njit(cache=True, error_model="numpy")
def _solve(
    p: float, lower: float, upper: float, means: FloatArray, sds: FloatArray, weights: FloatArray, ladder: FloatArray
) -> float:
    """Smallest x with F(x) >= p: Newton on the logarithm of the smaller tail, inside a bracket that shrinks."""
    side = 1 if p <= 0.5 else -1
    total = weights.sum()
    target = p if side > 0 else 1.0 - p
    x = min(max(ladder[min(int(p * ladder.size), ladder.size - 1)], lower), upper)
    if np.any(sds == 0.0):
        lower, upper = _jump_bracket(p, lower, upper, means, sds, weights, ladder)
        x = _split(lower, upper, ladder)
    move = np.inf
    for _ in range(_MAX_STEPS):
        if lower >= upper:
            return upper
        mass, density = _tail(x, side, means, sds, weights)
        mass, density = mass / total, density / total
        if abs(mass - target) <= _TOLERANCE * target:
            return x
        if side * (mass - target) < 0.0:
            lower = x
        else:
            upper = x
        proposal = x - side * mass / density * math.log(mass / target)
        if not (lower < proposal < upper and abs(proposal - x) <= 0.5 * move):
            proposal = _split(lower, upper, ladder)
            if proposal in (lower, upper):
                return upper
        move = abs(proposal - x)
        x = proposal
    return upper


@njit(cache=True, error_model="numpy")
def _quantiles(
    p: FloatArray, z: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray, ladders: FloatArray
) -> FloatArray:
    """Quantiles of every input; z holds the standard normal quantiles of p."""
    out = np.empty((means.shape[1], p.size))
    for i in range(means.shape[1]):
        mu, sd, ladder = means[:, i].copy(), np.sqrt(variances[:, i]), ladders[:, i].copy()
        for k in range(p.size):
            if 0.0 < p[k] < 1.0:
                # The quantile of a mixture lies between the extreme quantiles of its atoms.
                ends = mu + sd * z[k]
                out[i, k] = _solve(p[k], ends.min(), ends.max(), mu, sd, weights, ladder)
            else:
                out[i, k] = z[k]
    return out


@njit(cache=True, error_model="numpy")
def _cdf(y: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray) -> FloatArray:
    """F(y) of every input, through the smaller tail of each atom."""
    out = np.empty(y.size)
    total = weights.sum()
    for i in range(y.size):
        out[i] = min(_tail(y[i], 1, means[:, i].copy(), np.sqrt(variances[:, i]), weights)[0] / total, 1.0)
    return out


@njit(cache=True, error_model="numpy")
def _logpdf(y: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray) -> FloatArray:
    """log Σ w_t N(y; μ_t, s_t²) of every input; a point mass counts +∞ at its place and nothing elsewhere."""
    out = np.empty(y.size)
    log_total = math.log(weights.sum())
    terms = np.empty(means.shape[0])
    for i in range(y.size):
        for t in range(terms.size):
            gap, v = y[i] - means[t, i], variances[t, i]
            if v > 0.0:
                terms[t] = math.log(weights[t]) - 0.5 * (gap * (gap / v) + math.log(v)) - math.log(_ROOT_TWO_PI)
            else:
                terms[t] = np.inf if gap == 0.0 and weights[t] > 0.0 else -np.inf
        top = terms.max()
        out[i] = top if np.isinf(top) else top + math.log(np.exp(terms - top).sum()) - log_total
    return out


@njit(cache=True, error_model="numpy")
def _moments(means: FloatArray, variances: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ w μ, and Σ w (s² + (μ - mean)²), of every input; weights sum to one. Equal means give that mean exactly."""
    mean, variance = means[0].copy(), np.zeros(means.shape[1])
    for t in range(weights.size):
        for i in range(mean.size):
            mean[i] += weights[t] * (means[t, i] - means[0, i])
    for t in range(weights.size):
        for i in range(mean.size):
            variance[i] += weights[t] * (variances[t, i] + (means[t, i] - mean[i]) ** 2)
    return mean, variance


class Predictive:
    """Mixture of normals at each of m inputs, the atoms weighted alike for every input.

    Parameters
    ----------
    means
        Conditional means (n_atoms, m), a row for each posterior draw.
    variances
        Conditional variances (n_atoms, m); zero makes an atom a point mass.
    weights
        Weights of the atoms (n_atoms,), in any unit; equal when left out.
    """

    def __init__(self, means: ArrayLike, variances: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.means: FloatArray = np.ascontiguousarray(means, dtype=np.float64)
        self.variances: FloatArray = np.ascontiguousarray(variances, dtype=np.float64)
        if self.means.ndim != 2 or self.means.shape != self.variances.shape or self.means.shape[0] == 0:
            raise ValueError(
                "means and variances must be two arrays of one shape (n_atoms, m) with n_atoms >= 1, "
                f"got {self.means.shape} and {self.variances.shape}."
            )
        if not np.isfinite(self.means).all():
            raise ValueError("means must be finite.")
        if not (np.isfinite(self.variances) & (self.variances >= 0.0)).all():
            raise ValueError("variances must be finite and not negative.")
        # Equal weights stay ones, so that F at a point mass is k / n_atoms correctly rounded.
        raw = np.ones(self.n_atoms) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        if raw.shape != (self.n_atoms,) or not np.isfinite(raw).all() or raw.min() < 0.0 or raw.sum() <= 0.0:
            raise ValueError(f"weights must be {self.n_atoms} finite numbers, none negative and not all zero.")
        self._weights: FloatArray = raw

    def __repr__(self) -> str:
        """Sizes only."""
        return f"Predictive(n_atoms={self.n_atoms}, n_inputs={len(self)})"

    def __len__(self) -> int:
        """Number of inputs m."""
        return self.means.shape[1]

    def __getitem__(self, index: int | slice | ArrayLike) -> Self:
        """The law at some of the inputs; a single index keeps its axis."""
        rows = np.atleast_1d(np.arange(len(self))[index])  # type: ignore[index]
        return type(self)(self.means[:, rows], self.variances[:, rows], self._weights)

    @classmethod
    def concatenate(cls, parts: "Sequence[Predictive]") -> Self:
        """Join laws at different inputs whose atoms are the same draws.

        Parameters
        ----------
        parts
            Laws with as many atoms and the same weights each.

        Returns
        -------
        Predictive
            The law at all inputs, in the order given.
        """
        if not parts:
            raise ValueError("concatenate needs at least one Predictive.")
        weights = parts[0]._weights
        if not all(np.array_equal(part._weights, weights) for part in parts):
            raise ValueError("Only laws with the same atoms and weights can be joined.")
        return cls(
            np.concatenate([part.means for part in parts], axis=1),
            np.concatenate([part.variances for part in parts], axis=1),
            weights,
        )

    def affine(self, shift: ArrayLike, scale: ArrayLike) -> Self:
        """Law of shift + scale X, as when a standardised response is put back in its units.

        Parameters
        ----------
        shift
            One number, or one for each input.
        scale
            One number, or one for each input; a negative one reflects.

        Returns
        -------
        Predictive
            The transformed law, atom by atom.
        """
        shift, scale = np.asarray(shift, dtype=np.float64), np.asarray(scale, dtype=np.float64)
        return type(self)(shift + scale * self.means, scale**2 * self.variances, self._weights)

    @property
    def n_atoms(self) -> int:
        """Number of atoms of the mixture, the same at every input."""
        return self.means.shape[0]

    @property
    def weights(self) -> FloatArray:
        """Weights of the atoms, summing to one."""
        return self._weights / self._weights.sum()

    @property
    def mean(self) -> FloatArray:
        """Mean at each input."""
        return _moments(self.means, self.variances, self.weights)[0]

    @property
    def variance(self) -> FloatArray:
        """Variance at each input: the mean of the variances plus the variance of the means."""
        return _moments(self.means, self.variances, self.weights)[1]

    @property
    def std(self) -> FloatArray:
        """Standard deviation at each input."""
        return np.sqrt(self.variance)

    @property
    def median(self) -> FloatArray:
        """Median at each input."""
        return self.quantile(0.5)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Smallest x with F(x) >= p, exact to about 1e-13 of probability; -∞ at 0 and +∞ at 1.

        Parameters
        ----------
        p
            A probability, or a sequence of q of them.

        Returns
        -------
        ndarray
            (m,) for one probability, (m, q) for a sequence.
        """
        levels = np.asarray(p, dtype=np.float64)
        if levels.ndim > 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError("p must be a probability in [0, 1] or a sequence of them.")
        # Normal scores of a golden-ratio sequence: the ladder is an even sample of the mixture, sorted.
        scores = ndtri((np.arange(self.n_atoms) * _GOLDEN + 0.5) % 1.0)
        ladders = np.sort(self.means + np.sqrt(self.variances) * scores[:, None], axis=0)
        flat = np.atleast_1d(levels)
        out = _quantiles(flat, ndtri(flat), self.means, self.variances, self._weights, ladders)
        return out[:, 0] if levels.ndim == 0 else out

    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Central interval, with (1 - coverage) / 2 outside on either side.

        Parameters
        ----------
        coverage
            Probability of the interval, strictly between 0 and 1.

        Returns
        -------
        ndarray
            (m, 2), lower and upper ends.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must lie strictly between 0 and 1, got {coverage}.")
        return self.quantile([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])

    def cdf(self, y: ArrayLike) -> FloatArray:
        """P(X <= y) at each input; y is one number or one for each input."""
        return _cdf(self._responses(y), self.means, self.variances, self._weights)

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Log density at each input; +∞ on a point mass. y is one number or one for each input."""
        return _logpdf(self._responses(y), self.means, self.variances, self._weights)

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Density at each input; +∞ on a point mass. y is one number or one for each input."""
        return np.exp(self.logpdf(y))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score ∫ (F(x) - 1{x >= y})² dx at each input, in the unit of y."""
        return crps_normal_mixture(self._responses(y), self.means, self.variances, self._weights)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.SeedSequence | np.random.Generator | None = None
    ) -> FloatArray:
        """Independent draws from each input's own law; joint draws across inputs come from an estimator's `sample_y`.

        Parameters
        ----------
        n_samples
            Number of draws at each input.
        random_state
            Seed or generator.

        Returns
        -------
        ndarray
            (n_samples, m).
        """
        rng = np.random.default_rng(random_state)
        shape = (n_samples, len(self))
        atoms = rng.choice(self.n_atoms, size=shape, p=self.weights)
        columns = np.arange(len(self))
        return self.means[atoms, columns] + np.sqrt(self.variances[atoms, columns]) * rng.standard_normal(shape)

    def _responses(self, y: ArrayLike) -> FloatArray:
        values = np.asarray(y, dtype=np.float64)
        if values.shape not in ((), (len(self),)):
            raise ValueError(f"y must be one number or {len(self)} of them, got shape {values.shape}.")
        if np.isnan(values).any():
            raise ValueError("y must not contain NaN.")
        return np.full(len(self), values) if values.ndim == 0 else np.ascontiguousarray(values)
