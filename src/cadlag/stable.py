"""The positive stable law S, E exp(-lambda S) = exp(-lambda^a), a = alpha/2.

With b = a/(1-a), the angle U uniform on (0, pi) and E a unit exponential,

    S = (A(U)/E)^(1/b),    A(u) = sin(au)^b sin((1-a)u) / sin(u)^(1+b),                         (Kanter)
    F(s) = 1/pi int_0^pi exp(-A(u) s^-b) du,
    f(s) = b/pi s^(-b-1) int_0^pi A(u) exp(-A(u) s^-b) du.                                      (Zolotarev)

Everything is written in y = log z, z = A(0+) s^-b = (1-a)(a/s)^b, which is linear in log s. The left tail is
log f + log s = -z + y/2 + const + O(1/z) and the right tail (1-a) y + const + O(s^-a), so c(y) = log f + log s + z is
smooth, with known slopes at both ends. It is tabulated once per alpha in piecewise polynomials and continued by its
end slopes; log F + z and log(1 - F) likewise, each on its own side of the middle. The rounding of y leaves a relative
error of about 1e-15/(2 - alpha).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from numba import njit
from numpy.polynomial import chebyshev, legendre
from scipy.special import zeta

FloatArray = npt.NDArray[np.float64]

_DENSITY, _CDF, _SF = 0, 1, 2
_GAUSS_NODES, _GAUSS_WEIGHTS = legendre.leggauss(20)
_N_LEVEL_PANELS, _N_ANGLE_PANELS = 24, 8
RESOLVED = (1e-6, 2.0 - 1e-6)  # alpha whose density can be computed, besides 2
_SPLIT = math.log(0.3)  # F lies in (0.32, 0.75) here for every alpha
_DEGREE = 15
_NODES = chebyshev.chebpts1(_DEGREE + 1)
_TO_CHEBYSHEV = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE)).T
_TO_POWERS = np.array([np.pad(chebyshev.cheb2poly(row), (0, _DEGREE - k)) for k, row in enumerate(np.eye(_DEGREE + 1))])


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


@njit(cache=True)
def kanter(v: FloatArray, e: FloatArray, index: float, taylor: FloatArray) -> FloatArray:
    rest = 1.0 - index
    out = np.empty_like(v)
    for i in range(v.size):
        excess = _excess(math.pi - v[i], v[i], index, taylor)
        out[i] = math.log1p(-rest) + rest / index * (math.log(rest) + excess - math.log(e[i]))
    return out


@njit(cache=True)
def _integrand(excess: float, y: float, kind: int) -> float:
    """A(u) s^-b exp(-A(u) s^-b) and its kin, less the factors e^(max(y,0) - z) of the density and e^-z of the cdf."""
    z = math.exp(min(y, 700.0))
    above = z * math.expm1(excess) if y > 0.0 else math.exp(excess + y) - z
    if kind == _DENSITY:
        return math.exp(excess + min(y, 0.0) - above)
    if kind == _CDF:
        return math.exp(-above)
    return -math.expm1(-above - z)


@njit(cache=True)
def _excess_at(theta: float, index: float, taylor: FloatArray) -> float:
    """The excess in the variable of integration, theta = -log(1 - u/pi)."""
    return _excess(-math.pi * math.expm1(-theta), math.pi * math.exp(-theta), index, taylor)


@njit(cache=True)
def _theta_of(level: float, index: float, taylor: FloatArray) -> float:
    """Theta at which log A has risen by level: to a few per cent of a panel, which is all that panels need."""
    if level <= 0.0:
        return 0.0
    rest = 1.0 - index
    # theta ~ (1-a) level - log(1-a) as a -> 1, level - log(a) as a -> 0
    low, high = 0.0, rest * level - math.log(rest * index) + 5.0
    while high - low > max(0.03 * min(rest, high), 1e-14 * high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _excess_at(middle, index, taylor) < level else (low, middle)
    return high


@njit(cache=True)
def _panels(y: float, index: float, taylor: FloatArray) -> FloatArray:
    """Panel edges: equal steps of log A joined with equal steps of theta."""
    log_ratio = math.log(48.0) - y
    top = math.log1p(math.exp(log_ratio)) if log_ratio < 30.0 else log_ratio
    # below the peak the integrand falls as exp(a (log A - peak)); exp(-42) < 1e-18
    bottom = max(0.0, -y - 42.0 / index)
    levels = np.linspace(bottom, top, _N_LEVEL_PANELS + 1)
    edges = np.array([_theta_of(level, index, taylor) for level in levels])
    return np.sort(np.concatenate((edges, np.linspace(edges[0], edges[-1], _N_ANGLE_PANELS + 1)[1:-1])))


@njit(cache=True)
def _log_integral(y: FloatArray, kind: int, index: float, taylor: FloatArray) -> FloatArray:
    """log of 1/pi int_0^pi of the integrand, du = pi exp(-theta) dtheta."""
    out = np.empty_like(y)
    for i in range(y.size):
        edges = _panels(y[i], index, taylor)
        total = math.exp(-edges[-1]) if kind == _SF else 0.0
        for j in range(edges.size - 1):
            half = 0.5 * (edges[j + 1] - edges[j])
            for k in range(_GAUSS_NODES.size):
                theta = edges[j] + half * (1.0 + _GAUSS_NODES[k])
                excess = _excess_at(theta, index, taylor)
                total += half * _GAUSS_WEIGHTS[k] * math.exp(-theta) * _integrand(excess, y[i], kind)
        out[i] = math.log(total)
    return out


@njit(cache=True, error_model="numpy")
def _interpolate(y: float, table: FloatArray) -> tuple[float, float]:
    """Value and slope at y of a piecewise polynomial, a row of which is (left edge, centre, 1/half-width, *powers)."""
    if math.isinf(y):
        y = math.copysign(1e308, y)
    low, high = 0, table.shape[0]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if y >= table[middle, 0] else (low, middle)
    t = (y - table[low, 1]) * table[low, 2]
    value, slope = 0.0, 0.0
    for k in range(3, table.shape[1]):
        slope = slope * t + value
        value = value * t + table[low, k]
    return value, slope * table[low, 2]


@njit(cache=True, error_model="numpy")
def density_of_log(
    log_s: FloatArray, intercept: float, rate: float, table: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """c(y) - e^y at y = intercept - rate log s, and its derivative in log s."""
    value, slope = np.empty_like(log_s), np.empty_like(log_s)
    for i in range(log_s.size):
        y = intercept - rate * log_s[i]
        z = math.exp(y)
        smooth, smooth_slope = _interpolate(y, table)
        value[i] = smooth - z if z != np.inf and y != -np.inf else -np.inf
        slope[i] = rate * (z - smooth_slope)
    return value, slope


@njit(cache=True)
def _tails_kernel(y: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """F and 1 - F, the smaller one to full relative accuracy."""
    cdf, sf = np.empty_like(y), np.empty_like(y)
    for i in range(y.size):
        if y[i] >= _SPLIT:
            log_cdf = _interpolate(y[i], lower)[0] - math.exp(y[i])
            cdf[i], sf[i] = math.exp(log_cdf), -math.expm1(log_cdf)
        else:
            log_sf = _interpolate(y[i], upper)[0]
            cdf[i], sf[i] = -math.expm1(log_sf), math.exp(log_sf)
    return cdf, sf


@njit(cache=True)
def _invert(log_p: float, table: FloatArray, left: bool) -> float:
    """Solve log F(y) = log p, by way of log(-log F) which is close to y, or log(1-F)(y) = log p: bracketed Newton."""
    target = math.log(-log_p) if left else log_p
    y = max(target, _SPLIT) if left else _SPLIT
    low, high = -np.inf, np.inf
    for _ in range(100):
        value, slope = _interpolate(y, table)
        if left:
            z = math.exp(y)
            value, slope = math.log(z - value), (z - slope) / (z - value)
        low, high = (y, high) if value < target else (low, y)
        proposal = y + (target - value) / slope
        if not low <= proposal <= high:
            proposal = 0.5 * (low + high)
        if abs(proposal - y) <= 1e-15 * (1.0 + abs(y)):
            break
        y = proposal
    return proposal


@njit(cache=True)
def _quantile_kernel(p: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    split = math.exp(_interpolate(_SPLIT, lower)[0] - math.exp(_SPLIT))
    y = np.empty_like(p)
    for i in range(p.size):
        if p[i] == 0.0 or p[i] == 1.0:
            y[i] = np.inf if p[i] == 0.0 else -np.inf
        elif p[i] <= split:
            y[i] = _invert(math.log(p[i]), lower, True)
        else:
            y[i] = _invert(math.log1p(-p[i]), upper, False)
    return y


def _straight(edge: float, centre: float, value: float, slope: float) -> FloatArray:
    """Table row of a straight line through (centre, value)."""
    return np.array([[edge, centre, 1.0, *np.zeros(_DEGREE - 1), slope, value]])


def _tabulate(function: Callable[[FloatArray], FloatArray], ends: FloatArray, slopes: FloatArray) -> FloatArray:
    """Bisect until the last Chebyshev coefficients of every piece are negligible; go on straight beyond the ends."""
    values = function(ends)
    rows = [_straight(edge, *end) for edge, *end in zip((-np.inf, ends[1]), ends, values, slopes, strict=True)]
    left, right = ends[:1], ends[1:]
    while left.size:
        middle, half = 0.5 * (left + right), 0.5 * (right - left)
        values = function((middle[:, None] + half[:, None] * _NODES).ravel())
        coefficients = values.reshape(left.size, -1) @ _TO_CHEBYSHEV
        # y enters the integrals with a rounding error of eps |y|
        tolerance = np.maximum(1e-12, 1e-15 * np.abs(middle))
        good = (np.abs(coefficients[:, -2:]).max(axis=1) < tolerance) | (half < 0.1)
        powers = (coefficients @ _TO_POWERS)[:, ::-1]
        rows.append(np.column_stack([left, middle, 1.0 / half, powers])[good])
        left, right = np.append(left[~good], middle[~good]), np.append(middle[~good], right[~good])
    table = np.concatenate(rows)
    return np.ascontiguousarray(table[np.argsort(table[:, 0], kind="stable")])


@dataclass(frozen=True)
class PositiveStable:
    """The law of S with E exp(-lambda S) = exp(-lambda^(alpha/2)), alpha in (0, 2]; alpha = 2 is the point mass at 1.

    Get it through `positive_stable`, which keeps one object, and so one table, for each alpha.
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

    def sample_log(self, rng: np.random.Generator, size: int | tuple[int, ...] = ()) -> FloatArray:
        """Draw log S by Kanter's formula."""
        if self.index == 1.0:
            return np.zeros(size)
        # pi - U is uniform too, and resolved where A(U) is large; the floors are half a step of the generators
        v = np.asarray(np.maximum(rng.uniform(0.0, math.pi, size), math.pi * 2.0**-54))
        e = np.asarray(np.maximum(rng.standard_exponential(size), 2.0**-60))
        return kanter(v.ravel(), e.ravel(), self.index, self.taylor).reshape(v.shape)

    def log_density(self, log_s: npt.ArrayLike) -> FloatArray:
        """Log density of log S, log f(s) + log s, at points of any shape."""
        return self.log_density_and_slope(log_s)[0]

    def log_density_and_slope(self, log_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Log density of log S and its slope in log s; -inf and inf where they leave the floating-point range."""
        x = np.asarray(log_s, dtype=np.float64)
        value, slope = density_of_log(np.ascontiguousarray(x).ravel(), *self.density_table)
        return value.reshape(x.shape), slope.reshape(x.shape)

    def cdf(self, log_s: npt.ArrayLike) -> FloatArray:
        """P(log S <= log_s) at points of any shape, to full relative accuracy in the left tail."""
        return self._tails(log_s)[0]

    def sf(self, log_s: npt.ArrayLike) -> FloatArray:
        """P(log S > log_s) at points of any shape, to full relative accuracy in the right tail."""
        return self._tails(log_s)[1]

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """The log s at which P(log S <= log s) = p, for probabilities of any shape."""
        probability = np.asarray(p, dtype=np.float64)
        if not np.all((probability >= 0.0) & (probability <= 1.0)):
            raise ValueError("p must lie in [0, 1]")
        if self.index == 1.0:
            return np.zeros(probability.shape)
        y = _quantile_kernel(np.ascontiguousarray(probability).ravel(), self._lower, self._upper)
        return ((self._line[0] - y) / self._line[1]).reshape(probability.shape)

    def _tails(self, log_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        x = np.asarray(log_s, dtype=np.float64)
        if self.index == 1.0:
            return np.where(x >= 0.0, 1.0, 0.0), np.where(x >= 0.0, 0.0, 1.0)
        y = self._line[0] - self._line[1] * np.ascontiguousarray(x).ravel()
        cdf, sf = _tails_kernel(y, self._lower, self._upper)
        return cdf.reshape(x.shape), sf.reshape(x.shape)

    @cached_property
    def taylor(self) -> FloatArray:
        """Series of log A(u) - log A(0+) in (u/pi)^2: zeta(2k)/k (1 - a^(2k+1) - (1-a)^(2k+1))/(1-a), all positive."""
        k = np.arange(1, 28)
        small = min(self.index, 1.0 - self.index)
        gap = -np.expm1((2 * k + 1) * math.log1p(-small)) - small ** (2 * k + 1)
        return zeta(2 * k) / k * gap / (1.0 - self.index)

    @cached_property
    def _line(self) -> tuple[float, float]:
        """Intercept log A(0+) and rate b of y = log A(0+) - b log s."""
        rest = 1.0 - self.index
        rate = self.index / rest
        return math.log(rest) + rate * math.log1p(-rest), rate

    def _tabulate(self, kind: int, ends: tuple[float, float], slopes: tuple[float, float]) -> FloatArray:
        if not RESOLVED[0] <= self.alpha <= RESOLVED[1]:
            raise ValueError(f"alpha must lie in [1e-6, 2 - 1e-6] for the density to be resolved, got {self.alpha}")

        def function(y: FloatArray) -> FloatArray:
            log_integral = _log_integral(y, kind, self.index, self.taylor)
            return log_integral + np.maximum(y, 0.0) + math.log(self._line[1]) if kind == _DENSITY else log_integral

        return _tabulate(function, np.array(ends), np.array(slopes))

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Values of y beyond which s^-a, or 1/z, is below rounding."""
        return self._line[0] - 37.0 / (1.0 - self.index), 35.0 - math.log(self.index)

    @cached_property
    def density_table(self) -> tuple[float, float, FloatArray]:
        """The line to y and the table of c(y) = log f + log s + z."""
        if self.index == 1.0:
            raise ValueError("alpha = 2 is a point mass, which has no density")
        if self.index == 0.5:
            # f(s) = s^(-3/2) exp(-1/(4s)) / (2 sqrt(pi)), z = 1/(4s)
            return *self._line, _straight(-np.inf, 0.0, -0.5 * math.log(math.pi), 0.5)
        return *self._line, self._tabulate(_DENSITY, self._ends, (1.0 - self.index, 0.5))

    # The two tables below overlap about the middle, so that Newton's iterates never meet an inner end.
    @cached_property
    def _lower(self) -> FloatArray:
        """Table of log F + z."""
        return self._tabulate(_CDF, (_SPLIT - 1.0, self._ends[1]), (0.0, -0.5))

    @cached_property
    def _upper(self) -> FloatArray:
        """Table of log(1 - F)."""
        return self._tabulate(_SF, (self._ends[0], _SPLIT + 1.0), (1.0 - self.index, 0.0))


@lru_cache(maxsize=256)
def positive_stable(alpha: float) -> PositiveStable:
    """The positive stable law of a given alpha in (0, 2], one object for each."""
    return PositiveStable(float(alpha))
