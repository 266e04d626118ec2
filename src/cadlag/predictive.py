"""The predictive law of every method: p(y | data) = Σ_t w_t N(y; μ_t, s_t²), a finite mixture of normals at each new input.

Each posterior draw t (an atom) conditions to a normal law, so every summary is an exact function of (μ, s², w)::

    F(y)      = Σ_t w_t Φ((y - μ_t) / s_t)                                        cdf, and its inverse
    CRPS(y)   = E|X - y| - ½ E|X - X'|                                            X, X' independent, both from the mixture
    E|X_t-y|  = A(y - μ_t, s_t²),   A(d, v) = d (2Φ(d/√v) - 1) + 2√v φ(d/√v)      A(d, 0) = |d|
    E|X - X'| = Σ_ij w_i w_j A(μ_i - μ_j, s_i² + s_j²)

An atom may have variance zero: a point mass, as in exact interpolation. Each input is treated by itself, so the
answer for a row does not depend on the other rows to the last bit.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

FloatArray = NDArray[np.float64]

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_REACH = 8.3  # Φ(-8.3) < 2⁻⁵³: beyond this many standard deviations a normal law has no mass in double precision
_TOLERANCE = 1e-13  # of a quantile, on the probability scale and relative to the smaller tail
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_CLASS_RATIO = 4.0  # atoms whose standard deviations are within this factor share a lattice
_LATTICE_STEPS = (
    2.4  # lattice steps in the smallest standard deviation of a class: aliasing below 1e-12, see _lattice_term
)


@njit(cache=True, error_model="numpy")
def _tail(x: float, side: int, means: FloatArray, sds: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """P(X <= x) for side 1, P(X > x) for side -1, and the density of the continuous part, all times Σ w."""
    mass, density = 0.0, 0.0
    for t in range(means.size):
        gap = x - means[t]
        if sds[t] > 0.0:
            z = gap / sds[t]
            mass += weights[t] * 0.5 * math.erfc(-side * z * _ROOT_HALF)
            density += weights[t] * math.exp(-0.5 * z * z) / sds[t]
        elif (gap >= 0.0) == (side > 0):
            mass += weights[t]
    return mass, density * 0.5 * _ROOT_TWO_OVER_PI


@njit(cache=True, error_model="numpy")
def _split(lower: float, upper: float, ladder: FloatArray) -> float:
    """A point inside the bracket: the middle rung of the ladder, which follows every scale of the mixture, or the midpoint."""
    first = np.searchsorted(ladder, lower, side="right")
    last = np.searchsorted(ladder, upper, side="left")
    if last > first:
        return ladder[(first + last) // 2]
    return lower + 0.5 * (upper - lower)


@njit(cache=True, error_model="numpy")
def _jump_bracket(
    p: float, lower: float, upper: float, means: FloatArray, sds: FloatArray, weights: FloatArray, ladder: FloatArray
) -> tuple[float, float]:
    """Neighbouring rungs around the quantile; equal ends when F jumps over p there. Point masses are themselves rungs."""
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
    """Smallest x with F(x) >= p: Newton on the logarithm of the smaller tail, kept inside a bracket that always shrinks."""
    side = 1 if p <= 0.5 else -1
    total = weights.sum()
    target = p if side > 0 else 1.0 - p
    x = min(max(ladder[min(int(p * ladder.size), ladder.size - 1)], lower), upper)
    if np.any(sds == 0.0):
        lower, upper = _jump_bracket(p, lower, upper, means, sds, weights, ladder)
        x = _split(lower, upper, ladder)
    move = np.inf
    for _ in range(200):
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
    p: FloatArray, z: FloatArray, scatter: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray
) -> FloatArray:
    """Quantiles of every input; z holds the standard normal quantiles of p, scatter one normal score for each atom."""
    out = np.empty((means.shape[1], p.size))
    for i in range(means.shape[1]):
        mu = means[:, i].copy()
        sd = np.sqrt(variances[:, i])
        ladder = np.sort(mu + sd * scatter)
        for k in range(p.size):
            if 0.0 < p[k] < 1.0:
                # The quantile of a mixture lies between the extreme quantiles of its atoms.
                ends = mu + sd * z[k]
                out[i, k] = _solve(p[k], ends.min(), ends.max(), mu, sd, weights, ladder)
            else:
                out[i, k] = z[k]
    return out


@njit(cache=True, error_model="numpy")
def _distance(d: float, v: float) -> float:
    """A(d, v) = E|d + √v Z|."""
    if d * d >= _REACH * _REACH * v:
        return abs(d)
    sd = math.sqrt(v)
    z = d / sd
    return d * math.erf(z * _ROOT_HALF) + sd * _ROOT_TWO_OVER_PI * math.exp(-0.5 * z * z)


@njit(cache=True, error_model="numpy")
def _pair_term(first: int, means: FloatArray, variances: FloatArray, weights: FloatArray) -> float:
    """½ Σ w_i w_j A over the pairs with at least one atom at or after `first`, one by one."""
    out = 0.0
    for j in range(first, means.size):
        row = 0.5 * weights[j] * _distance(0.0, 2.0 * variances[j])
        for i in range(j):
            row += weights[i] * _distance(means[i] - means[j], variances[i] + variances[j])
        out += weights[j] * row
    return out


@njit(cache=True, error_model="numpy")
def _point_term(means: FloatArray, weights: FloatArray) -> float:
    """½ Σ w_i w_j |μ_i - μ_j| = ∫ F (W - F) dx for point masses of total weight W."""
    order = np.argsort(means)
    total, below, out = weights.sum(), 0.0, 0.0
    for k in range(order.size - 1):
        below += weights[order[k]]
        out += below * (total - below) * (means[order[k + 1]] - means[order[k]])
    return out


@njit(cache=True, error_model="numpy")
def _deposit(lattice: FloatArray, position: float, variance: float, weight: float) -> None:
    """Add weight N(k; position, variance) at the integers k, from the centre outwards by exp(-(u+1)²/2v) = exp(-u²/2v) r qᵘ."""
    centre = int(round(position))
    offset, reach = centre - position, int(_REACH * math.sqrt(variance)) + 1
    peak = weight * math.exp(-0.5 * offset * offset / variance) / math.sqrt(2.0 * math.pi * variance)
    decay = math.exp(-1.0 / variance)
    lattice[centre] += peak
    for direction in (1, -1):
        value, ratio = peak, math.exp(-(0.5 + direction * offset) / variance)
        for k in range(1, reach + 1):
            value *= ratio
            ratio *= decay
            lattice[centre + direction * k] += value


@njit(cache=True, error_model="numpy")
def _lattice_term(
    first: int, origin: float, step: float, n_cells: int, means: FloatArray, variances: FloatArray, weights: FloatArray
) -> float:
    """The sum of `_pair_term` from two mass distributions on a lattice.

    A(d, s_i² + s_j²) only sees the sum of the variances, so with τ half the smallest variance of the class one law can
    be the class with s² - τ and the other all atoms with s² + τ: both are smooth on the scale √τ however narrow an atom
    is. With h the step, replacing them by lattice masses then errs by about exp(-π² τ / h²) of the scale.
    """
    tau = 0.5 * variances[first]
    sharp, broad = np.zeros(n_cells), np.zeros(n_cells)
    for t in range(means.size):
        position = (means[t] - origin) / step
        member = t >= first
        # Ordered pairs inside the class are met twice, hence the half.
        _deposit(broad, position, (variances[t] + tau) / step**2, weights[t] * (0.5 if member else 1.0))
        if member:
            _deposit(sharp, position, (variances[t] - tau) / step**2, weights[t])
    sharp_total, broad_total = sharp.sum(), broad.sum()
    sharp_below, broad_below, out = 0.0, 0.0, 0.0
    for k in range(n_cells):
        sharp_below += sharp[k]
        broad_below += broad[k]
        out += sharp_below * (broad_total - broad_below) + broad_below * (sharp_total - sharp_below)
    return out * step


@njit(cache=True, error_model="numpy")
def _class_term(first: int, means: FloatArray, variances: FloatArray, weights: FloatArray) -> float:
    """½ Σ w_i w_j A over the pairs whose wider atom is at or after `first`, by the cheaper of the two exact ways."""
    n, n_members = means.size, means.size - first
    step = math.sqrt(variances[first]) / _LATTICE_STEPS
    reach = _REACH * np.sqrt(variances + 0.5 * variances[first]) + 3.0 * step
    origin = (means - reach).min()
    n_cells = ((means + reach).max() - origin) / step
    # Costs in units of one lattice cell; the second bound keeps memory at O(n).
    if n_cells + 50.0 * (n + n_members) < 5.0 * n_members * (n + first) and n_cells < 100.0 * n:
        return _lattice_term(first, origin, step, int(n_cells) + 1, means, variances, weights)
    return _pair_term(first, means, variances, weights)


@njit(cache=True, error_model="numpy")
def _half_spread(means: FloatArray, variances: FloatArray, weights: FloatArray) -> float:
    """½ E|X - X'|, class by class of similar standard deviations, the widest first; weights sum to one."""
    order = np.argsort(variances)
    mu, var, w = means[order], variances[order], weights[order]
    out, stop = 0.0, mu.size
    while stop > 0:
        if var[stop - 1] == 0.0:
            return out + _point_term(mu[:stop], w[:stop])
        first = np.searchsorted(var[:stop], var[stop - 1] / _CLASS_RATIO**2)
        out += _class_term(first, mu[:stop], var[:stop], w[:stop])
        stop = first
    return out


@njit(cache=True, error_model="numpy")
def _crps(y: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray) -> FloatArray:
    """E|X - y| - ½ E|X - X'| of every input; never negative, which rounding could undo."""
    out = np.empty(y.size)
    w = weights / weights.sum()
    for i in range(y.size):
        mu, var = means[:, i].copy(), variances[:, i].copy()
        error = 0.0
        for t in range(mu.size):
            error += w[t] * _distance(y[i] - mu[t], var[t])
        out[i] = max(error - _half_spread(mu, var, w), 0.0)
    return out


@njit(cache=True, error_model="numpy")
def _cdf(y: FloatArray, means: FloatArray, variances: FloatArray, weights: FloatArray) -> FloatArray:
    """F(y) of every input, through the smaller tail of each atom."""
    out = np.empty(y.size)
    total = weights.sum()
    for i in range(y.size):
        out[i] = min(_tail(y[i], 1, means[:, i], np.sqrt(variances[:, i]), weights)[0] / total, 1.0)
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
                terms[t] = math.log(weights[t]) - 0.5 * (gap * (gap / v) + math.log(v)) - _LOG_ROOT_TWO_PI
            else:
                terms[t] = np.inf if gap == 0.0 and weights[t] > 0.0 else -np.inf
        top = terms.max()
        out[i] = top if np.isinf(top) else top + math.log(np.exp(terms - top).sum()) - log_total
    return out


@njit(cache=True, error_model="numpy")
def _moments(means: FloatArray, variances: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ w μ, and Σ w (s² + (μ - mean)²), of every input; weights sum to one."""
    mean, variance = np.zeros(means.shape[1]), np.zeros(means.shape[1])
    for t in range(weights.size):
        for i in range(mean.size):
            mean[i] += weights[t] * means[t, i]
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
        # Normal scores of a golden-ratio sequence: μ_t + s_t score_t is an even sample of the mixture.
        scatter = ndtri((np.arange(self.n_atoms) * _GOLDEN + 0.5) % 1.0)
        flat = np.atleast_1d(levels)
        out = _quantiles(flat, ndtri(flat), scatter, self.means, self.variances, self._weights)
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
        """Continuous ranked probability score at each input, in the unit of y: ∫ (F(x) - 1{x >= y})² dx, small is good."""
        return _crps(self._responses(y), self.means, self.variances, self._weights)

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
        return np.ascontiguousarray(np.broadcast_to(values, (len(self),)))
