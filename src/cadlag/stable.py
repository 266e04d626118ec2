"""The positive stable law S, E exp(-lambda S) = exp(-lambda^a), a = alpha/2.

With b = a/(1-a), the angle U uniform on (0, pi) and E a unit exponential,

    S = (A(U)/E)^(1/b),    A(u) = sin(au)^b sin((1-a)u) / sin(u)^(1+b),                         (Kanter)
    F(s) = 1/pi int_0^pi exp(-A(u) s^-b) du,
    f(s) = b/pi s^(-b-1) int_0^pi A(u) exp(-A(u) s^-b) du.                                      (Zolotarev)

Everything is written in y = log z, z = A(0+) s^-b = (1-a)(a/s)^b, which is linear in log s. The left tail is
log f + log s = -z + y/2 + const + O(1/z) and the right tail (1-a) y + const + O(s^-a), so c(y) = log f + log s + z is
smooth, with known slopes at both ends. It is tabulated once per alpha in piecewise polynomials and continued by its
end slopes. Distribution function and survival function are treated alike, each on its own side of the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import gammaln, zeta

FloatArray = npt.NDArray[np.float64]

_DENSITY, _CDF, _SF = 0, 1, 2
_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(20)
_N_LEVEL_PANELS, _N_ANGLE_PANELS = 24, 8
_CUT = 42.0  # exp(-42) < 1e-18: what is left out of an integral
_SPLIT = math.log(0.3)  # F lies in (0.3, 0.75) here for every alpha
_DEGREE = 15
_TOLERANCE = 1e-12


@njit(cache=True)
def _excess(u: float, v: float, index: float, taylor: FloatArray) -> float:
    """log A(u) - log A(0+) at u = pi - v, without cancellation at either end."""
    if u < v:
        square = (u / math.pi) ** 2
        total = 0.0
        for k in range(taylor.size - 1, -1, -1):
            total = (total + taylor[k]) * square
        return total
    rest = 1.0 - index
    sine = math.sin(rest * u)
    # sin(au)/sin(u) = cos((1-a)u) - cot(u) sin((1-a)u)
    ratio = math.log1p(sine / math.tan(v) - 2.0 * math.sin(0.5 * rest * u) ** 2)
    return index / rest * (ratio - math.log1p(-rest)) + math.log(sine / (rest * math.sin(v)))


def _excess_taylor(index: float) -> FloatArray:
    """Coefficients of log A(u) - log A(0+) in (u/pi)^2: zeta(2k)/k (1 - a^(2k+1) - (1-a)^(2k+1))/(1-a), all positive."""
    k = np.arange(1, 28)
    small = min(index, 1.0 - index)
    gap = -np.expm1((2 * k + 1) * math.log1p(-small)) - small ** (2 * k + 1)
    return zeta(2 * k) / k * gap / (1.0 - index)


@njit(cache=True)
def _sample_kernel(v: FloatArray, e: FloatArray, index: float, taylor: FloatArray) -> FloatArray:
    rest = 1.0 - index
    out = np.empty_like(v)
    for i in range(v.size):
        excess = _excess(math.pi - v[i], v[i], index, taylor)
        out[i] = math.log1p(-rest) + rest / index * (math.log(rest) + excess - math.log(e[i]))
    return out


@njit(cache=True)
def _integrand(excess: float, y: float, kind: int) -> float:
    """A(u) s^-b exp(-A(u) s^-b) and its kin, with exp(z - max(y, 0)) taken out of the density, exp(z) out of the cdf."""
    z = math.exp(min(y, 700.0))
    above = z * math.expm1(excess) if y > 0.0 else math.exp(excess + y) - z
    if kind == _DENSITY:
        return math.exp(excess + min(y, 0.0) - above)
    if kind == _CDF:
        return math.exp(-above)
    return -math.expm1(-above - z)


@njit(cache=True)
def _panels(y: float, index: float, theta: FloatArray, root: FloatArray) -> FloatArray:
    """Panel edges in theta = -log(1 - u/pi), equal steps of log A joined with equal steps of theta."""
    log_ratio = math.log(48.0) - y
    top = math.log1p(math.exp(log_ratio)) if log_ratio < 30.0 else log_ratio
    bottom = max(0.0, -y - _CUT / index)
    levels = np.sqrt(np.linspace(bottom, top, _N_LEVEL_PANELS + 1))
    edges = np.interp(levels, root, theta)
    return np.sort(np.concatenate((edges, np.linspace(edges[0], edges[-1], _N_ANGLE_PANELS + 1)[1:-1])))


@njit(cache=True)
def _log_integral(
    y: FloatArray, kind: int, index: float, taylor: FloatArray, theta: FloatArray, root: FloatArray
) -> FloatArray:
    """log of 1/pi int_0^pi of the integrand, du = pi exp(-theta) dtheta."""
    out = np.empty_like(y)
    for i in range(y.size):
        edges = _panels(y[i], index, theta, root)
        total = math.exp(-edges[-1]) if kind == _SF else 0.0
        for j in range(edges.size - 1):
            half = 0.5 * (edges[j + 1] - edges[j])
            for k in range(_GAUSS_NODES.size):
                t = edges[j] + half * (1.0 + _GAUSS_NODES[k])
                excess = _excess(-math.pi * math.expm1(-t), math.pi * math.exp(-t), index, taylor)
                total += half * _GAUSS_WEIGHTS[k] * math.exp(-t) * _integrand(excess, y[i], kind)
        out[i] = math.log(total)
    return out


class _Table(NamedTuple):
    """Piecewise polynomial between edges, linear with the two given slopes outside."""

    edges: FloatArray
    coefficients: FloatArray
    slopes: FloatArray


@njit(cache=True, error_model="numpy")
def _interpolate(y: float, edges: FloatArray, coefficients: FloatArray, slopes: FloatArray) -> tuple[float, float]:
    """Value and derivative of a table at y."""
    low, high = 0, coefficients.shape[0]
    inside = min(max(y, edges[0]), edges[high])
    while high - low > 1:
        middle = (low + high) // 2
        if inside >= edges[middle]:
            low = middle
        else:
            high = middle
    scale = 2.0 / (edges[low + 1] - edges[low])
    t = (inside - edges[low]) * scale - 1.0
    value, slope = 0.0, 0.0
    for k in range(coefficients.shape[1]):
        slope = slope * t + value
        value = value * t + coefficients[low, k]
    if y < inside:
        return value + slopes[0] * (y - inside), slopes[0]
    if y > inside:
        return value + slopes[1] * (y - inside), slopes[1]
    return value, slope * scale


@njit(cache=True, error_model="numpy")
def _density_kernel(
    log_s: FloatArray, line: FloatArray, edges: FloatArray, coefficients: FloatArray, slopes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Log density of log S and its derivative: c(y) - e^y, y = line[0] - line[1] log s."""
    value, slope = np.empty_like(log_s), np.empty_like(log_s)
    for i in range(log_s.size):
        y = line[0] - line[1] * log_s[i]
        z = math.exp(y)
        smooth, smooth_slope = _interpolate(y, edges, coefficients, slopes)
        value[i] = smooth - z if z != np.inf else -np.inf
        slope[i] = line[1] * (z - smooth_slope)
    return value, slope


@njit(cache=True)
def _tails_at(y: float, lower: _Table, upper: _Table) -> tuple[float, float]:
    """F and 1 - F, the smaller one to full relative accuracy."""
    if y >= _SPLIT:
        log_cdf = _interpolate(y, lower.edges, lower.coefficients, lower.slopes)[0] - math.exp(y)
        return math.exp(log_cdf), -math.expm1(log_cdf)
    log_sf = _interpolate(y, upper.edges, upper.coefficients, upper.slopes)[0]
    return -math.expm1(log_sf), math.exp(log_sf)


@njit(cache=True)
def _tails_kernel(y: FloatArray, lower: _Table, upper: _Table) -> tuple[FloatArray, FloatArray]:
    cdf, sf = np.empty_like(y), np.empty_like(y)
    for i in range(y.size):
        cdf[i], sf[i] = _tails_at(y[i], lower, upper)
    return cdf, sf


@njit(cache=True, error_model="numpy")
def _invert_cdf(log_p: float, table: _Table) -> float:
    """Solve log F(y) = log p by Newton in log(-log F), which is close to y."""
    y = max(math.log(-log_p), _SPLIT)
    for _ in range(60):
        smooth, slope = _interpolate(y, table.edges, table.coefficients, table.slopes)
        log_cdf = smooth - math.exp(y)
        step = log_cdf / (slope - math.exp(y)) * math.log(log_p / log_cdf)
        y = max(y + step, _SPLIT)
        if abs(step) <= 1e-14 * (1.0 + abs(y)):
            break
    return y


@njit(cache=True, error_model="numpy")
def _invert_sf(log_p: float, table: _Table) -> float:
    """Solve log (1-F)(y) = log p by Newton from the tail's line, below a concave function."""
    y = min(table.edges[0], _SPLIT)
    for _ in range(60):
        value, slope = _interpolate(y, table.edges, table.coefficients, table.slopes)
        step = (log_p - value) / slope
        y = min(y + step, _SPLIT)
        if abs(step) <= 1e-14 * (1.0 + abs(y)):
            break
    return y


@njit(cache=True)
def _quantile_kernel(p: FloatArray, lower: _Table, upper: _Table) -> FloatArray:
    split = _tails_at(_SPLIT, lower, upper)[0]
    y = np.empty_like(p)
    for i in range(p.size):
        if p[i] <= 0.0:
            y[i] = np.inf
        elif p[i] >= 1.0:
            y[i] = -np.inf
        elif p[i] <= split:
            y[i] = _invert_cdf(math.log(p[i]), lower)
        else:
            y[i] = _invert_sf(math.log1p(-p[i]), upper)
    return y


def _tabulate(function: Callable[[FloatArray], FloatArray], lower: float, upper: float, slopes: FloatArray) -> _Table:
    """Bisect [lower, upper] until the last Chebyshev coefficients of every piece are negligible."""
    chebyshev = np.polynomial.chebyshev
    nodes = chebyshev.chebpts1(_DEGREE + 1)
    to_chebyshev = np.linalg.inv(chebyshev.chebvander(nodes, _DEGREE)).T
    to_powers = np.zeros((_DEGREE + 1, _DEGREE + 1))
    for k in range(_DEGREE + 1):
        to_powers[k, : k + 1] = chebyshev.cheb2poly(np.eye(_DEGREE + 1)[k, : k + 1])
    left, right = np.array([lower]), np.array([upper])
    starts, pieces = [], []
    while left.size:
        middle, half = 0.5 * (left + right), 0.5 * (right - left)
        values = function((middle[:, None] + half[:, None] * nodes).ravel())
        coefficients = values.reshape(left.size, -1) @ to_chebyshev
        # y enters the integrals with rounding error eps |y|
        good = np.abs(coefficients[:, -2:]).max(axis=1) < np.maximum(_TOLERANCE, 1e-15 * np.abs(middle))
        good |= half < 0.1
        starts.append(left[good])
        pieces.append(coefficients[good] @ to_powers)
        left, right = np.append(left[~good], middle[~good]), np.append(middle[~good], right[~good])
    order = np.argsort(np.concatenate(starts))
    edges = np.append(np.concatenate(starts)[order], upper)
    return _Table(edges, np.ascontiguousarray(np.concatenate(pieces)[order, ::-1]), slopes)


@dataclass(frozen=True)
class PositiveStable:
    """The law of S with E exp(-lambda S) = exp(-lambda^(alpha/2)); alpha = 2 is the point mass at 1.

    Get it through `positive_stable`, which keeps one object, and so one table, for each alpha.

    Parameters
    ----------
    alpha
        twice the stable index, in (0, 2]
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 2.0:
            raise ValueError(f"alpha must lie in (0, 2], got {self.alpha}")

    def __reduce__(self) -> tuple[Callable[[float], PositiveStable], tuple[float]]:
        return positive_stable, (self.alpha,)

    @property
    def index(self) -> float:
        """The stable index a = alpha/2."""
        return 0.5 * self.alpha

    @property
    def mean_log(self) -> float:
        """E log S = gamma_E (1/a - 1)."""
        return float(np.euler_gamma) * (1.0 / self.index - 1.0)

    @property
    def var_log(self) -> float:
        """Var log S = pi^2/6 (1/a^2 - 1)."""
        return math.pi**2 / 6.0 * (1.0 / self.index**2 - 1.0)

    def moment(self, r: float) -> float:
        """E S^r = Gamma(1 - r/a)/Gamma(1 - r) for r < a, infinite otherwise.

        Parameters
        ----------
        r
            order of the moment, any real number

        Returns
        -------
            the moment
        """
        if self.index == 1.0:
            return 1.0
        if r >= self.index:
            return math.inf
        log_moment = float(gammaln(1.0 - r / self.index) - gammaln(1.0 - r))
        return math.exp(log_moment) if log_moment < 709.0 else math.inf

    def sample_log(self, rng: np.random.Generator, size: int | tuple[int, ...] | None = None) -> FloatArray:
        """Draw log S by Kanter's formula.

        Parameters
        ----------
        rng
            source of randomness
        size
            shape of the draws; None gives a zero-dimensional array

        Returns
        -------
            independent draws of log S
        """
        shape = () if size is None else size
        if self.index == 1.0:
            return np.zeros(shape)
        # pi - U is uniform too, and resolved where A(U) is large; the floors are half a step of the generators
        v = np.maximum(rng.uniform(0.0, math.pi, shape), math.pi * 2.0**-54)
        e = np.maximum(rng.standard_exponential(shape), 2.0**-60)
        return _sample_kernel(v.ravel(), e.ravel(), self.index, self._taylor).reshape(v.shape)

    def log_density(self, log_s: npt.ArrayLike) -> FloatArray:
        """Log density of log S, that is log f(s) + log s.

        Parameters
        ----------
        log_s
            points, any shape

        Returns
        -------
            the log density, -inf where it falls below the floating-point range
        """
        return self.log_density_and_slope(log_s)[0]

    def log_density_and_slope(self, log_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Log density of log S and its derivative with respect to log s.

        Parameters
        ----------
        log_s
            points, any shape

        Returns
        -------
            value and slope, each of the shape of log_s
        """
        x = np.asarray(log_s, dtype=np.float64)
        if x.ndim == 1 and x.flags.c_contiguous:
            return _density_kernel(x, *self._density)
        value, slope = _density_kernel(np.ascontiguousarray(x).ravel(), *self._density)
        return value.reshape(x.shape), slope.reshape(x.shape)

    def cdf(self, log_s: npt.ArrayLike) -> FloatArray:
        """P(log S <= log_s), to full relative accuracy in the left tail.

        Parameters
        ----------
        log_s
            points, any shape

        Returns
        -------
            probabilities of the shape of log_s
        """
        return self._tails(log_s)[0]

    def sf(self, log_s: npt.ArrayLike) -> FloatArray:
        """P(log S > log_s), to full relative accuracy in the right tail.

        Parameters
        ----------
        log_s
            points, any shape

        Returns
        -------
            probabilities of the shape of log_s
        """
        return self._tails(log_s)[1]

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """Quantile of log S.

        Parameters
        ----------
        p
            probabilities in [0, 1], any shape

        Returns
        -------
            log s with P(log S <= log s) = p
        """
        probability = np.asarray(p, dtype=np.float64)
        if not np.all((probability >= 0.0) & (probability <= 1.0)):
            raise ValueError("p must lie in [0, 1]")
        if self.index == 1.0:
            return np.zeros(probability.shape)
        intercept, rate = self._line
        y = _quantile_kernel(np.ascontiguousarray(probability).ravel(), self._lower, self._upper)
        return ((intercept - y) / rate).reshape(probability.shape)

    def _tails(self, log_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        x = np.asarray(log_s, dtype=np.float64)
        if self.index == 1.0:
            return np.where(x >= 0.0, 1.0, 0.0), np.where(x >= 0.0, 0.0, 1.0)
        y = self._line[0] - self._line[1] * np.ascontiguousarray(x).ravel()
        cdf, sf = _tails_kernel(y, self._lower, self._upper)
        return cdf.reshape(x.shape), sf.reshape(x.shape)

    @cached_property
    def _taylor(self) -> FloatArray:
        return _excess_taylor(self.index)

    @cached_property
    def _line(self) -> FloatArray:
        """Intercept log A(0+) and rate b of y = log A(0+) - b log s."""
        rest = 1.0 - self.index
        rate = self.index / rest
        return np.array([math.log(rest) + rate * math.log1p(-rest), rate])

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Values of y beyond which s^-a, or 1/z, is below rounding."""
        rest = 1.0 - self.index
        return self._line[0] - 37.0 / rest, 35.0 - math.log(self.index)

    @cached_property
    def _inverse_excess(self) -> tuple[FloatArray, FloatArray]:
        """Theta against the root of log A - log A(0+): rough, it only places panels."""
        theta = np.linspace(0.0, 50.0, 5001)
        angles = -math.pi * np.expm1(-theta), math.pi * np.exp(-theta)
        root = [math.sqrt(_excess(u, v, self.index, self._taylor)) for u, v in zip(*angles, strict=True)]
        return theta, np.array(root)

    def _log_integral(self, y: FloatArray, kind: int) -> FloatArray:
        return _log_integral(y, kind, self.index, self._taylor, *self._inverse_excess)

    @cached_property
    def _density(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The straight line to y, then the table of c(y) = log f + log s + z."""
        if self.index == 1.0:
            raise ValueError("alpha = 2 is a point mass, which has no density")
        slopes = np.array([1.0 - self.index, 0.5])
        if self.index == 0.5:
            # f(s) = s^(-3/2) exp(-1/(4s)) / (2 sqrt(pi)), z = 1/(4s)
            line = np.array([[0.5, -0.5 * math.log(math.pi)]])
            return self._line, *_Table(np.array([-1.0, 1.0]), line, slopes)
        log_rate = math.log(self._line[1])

        def correction(y: FloatArray) -> FloatArray:
            return log_rate + np.maximum(y, 0.0) + self._log_integral(y, _DENSITY)

        return self._line, *_tabulate(correction, *self._ends, slopes)

    @cached_property
    def _lower(self) -> _Table:
        """Table of log F + z to the left of the middle."""
        return _tabulate(lambda y: self._log_integral(y, _CDF), _SPLIT, self._ends[1], np.array([0.0, -0.5]))

    @cached_property
    def _upper(self) -> _Table:
        """Table of log(1 - F) to the right of the middle."""
        slopes = np.array([1.0 - self.index, 0.0])
        return _tabulate(lambda y: self._log_integral(y, _SF), self._ends[0], _SPLIT, slopes)


@lru_cache(maxsize=256)
def positive_stable(alpha: float) -> PositiveStable:
    """The positive stable law of a given alpha, one object for each.

    Parameters
    ----------
    alpha
        twice the stable index, in (0, 2]

    Returns
    -------
        the law
    """
    return PositiveStable(float(alpha))
