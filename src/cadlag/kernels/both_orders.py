"""ω_1 ω_1ᵀ∘ρ_1 + ω_0 ω_0ᵀ∘ρ_0: orders 1 and 0 of one kernel map at the same scales, and its reverse mode.

Both are functions of one cosine, and ρ_0 = 1 - θ/π is the slope of ρ_1, so that the sum costs hardly more than ρ_1:

    d(ω_1 ω_1'ρ_1 + ω_0 ω_0'ρ_0) = (ω_1 ω_1'ρ_0 + ω_0 ω_0'/(π sin θ)) dcos θ.

Here θ comes from the cosine, but where two rows all but coincide from their difference, |û - û'| = 2 sin ½θ, for the
cosine would leave an error of 1e-8, a nugget that is not there. The rest is as in
:mod:`cadlag.kernels.reverse`: with pair adjoints c̄ of cos θ the derivatives by the first-layer weights are
`Σ_{k>h} c̄ û_kj û_hj - ½ Σ_k û_kj² Q_k` and what comes of the diagonals, `Q_k = Σ_h c̄ cos θ`.
"""

import math

import numpy as np
from numba import njit

from cadlag.kernels.arc_cosine import SUMS, Array, activate_with_slope
from cadlag.kernels.recursion import dot_rows

NEAR = 1e-6  # 1 - cos θ below which the difference is taken


@njit(**SUMS)
def _chord2(column1: Array, unit: Array, h: int) -> float:
    """|û - û'|²."""
    total = 0.0
    for j in range(len(column1)):
        gap = column1[j] - unit[j, h]
        total += gap * gap
    return total


@njit(**SUMS)
def from_differences(column1: Array, unit: Array, n: int, cosine: Array, angle: Array) -> None:
    """ρ_0 = 1 - θ/π of rows that all but coincide."""
    for h in range(n):
        if cosine[h] > 1.0 - NEAR:
            half = 0.5 * math.sqrt(_chord2(column1, unit, h))
            angle[h] = 1.0 - 2.0 * math.asin(half) / math.pi


@njit(**SUMS)
def _fill_lower(unit: Array, smooth: Array, rough: Array, out: Array) -> None:
    n = unit.shape[1]
    cosine, rho, angle = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        dot_rows(unit[:, k], unit, k, cosine)
        activate_with_slope(1, cosine, rho, angle, k)
        from_differences(unit[:, k], unit, k, cosine, angle)
        row, s, r = out[k], smooth[k], rough[k]
        for h in range(k):
            row[h] = s * smooth[h] * rho[h] + r * rough[h] * angle[h]
        row[k] = 1.0


@njit(**SUMS)
def _fill_cross(
    unit1: Array, smooth1: Array, rough1: Array, unit: Array, smooth: Array, rough: Array, out: Array
) -> None:  # fmt: skip
    n = unit.shape[1]
    cosine, rho, angle = np.empty(n), np.empty(n), np.empty(n)
    for k in range(unit1.shape[1]):
        dot_rows(unit1[:, k], unit, n, cosine)
        activate_with_slope(1, cosine, rho, angle, n)
        from_differences(unit1[:, k], unit, n, cosine, angle)
        row, s, r = out[k], smooth1[k], rough1[k]
        for h in range(n):
            row[h] = s * smooth[h] * rho[h] + r * rough[h] * angle[h]


@njit(inline="always", **SUMS)
def pull_both_row(
    k: int, row: Array, unit: Array, smooth: Array, rough: Array, cosine: Array, rho: Array, angle: Array, c_bar: Array,
    total: Array, pulled: Array, through: Array,
) -> None:  # fmt: skip
    """Pull the pair adjoints of one row back: what belongs to each row, and Σ_h c̄ û_kj û_hj."""
    p, s, r, own, first, second = unit.shape[0], smooth[k], rough[k], 0.0, 0.0, 0.0
    for h in range(k):
        c = cosine[h]
        q = 1.0 - abs(c)
        sine2 = q * (2.0 - q)
        if c > 1.0 - NEAR:
            square = _chord2(unit[:, k], unit, h)
            sine2 = square * (1.0 - 0.25 * square)
        of_smooth, of_rough = row[h] * s * smooth[h], row[h] * r * rough[h]
        inverse = 1.0 / (math.pi * math.sqrt(sine2)) if sine2 > 0.0 else 0.0
        c_bar[h] = of_smooth * angle[h] + of_rough * inverse
        weighted, through_smooth, through_rough = c_bar[h] * c, of_smooth * rho[h], of_rough * angle[h]
        pulled[h] += weighted
        through[0, h] += through_smooth
        through[1, h] += through_rough
        own += weighted
        first += through_smooth
        second += through_rough
    pulled[k] += own
    through[0, k] += first
    through[1, k] += second
    for j in range(1, p):
        column, sum_of = unit[j], 0.0
        for h in range(k):
            sum_of += c_bar[h] * column[h]
        total[j - 1] += column[k] * sum_of


@njit(**SUMS)
def _reverse(
    unit: Array, smooth: Array, rough: Array, adjoint: Array, total: Array, pulled: Array, through: Array
) -> None:
    n, c_bar = unit.shape[1], np.empty(unit.shape[1])
    cosine, rho, angle = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        dot_rows(unit[:, k], unit, k, cosine)
        activate_with_slope(1, cosine, rho, angle, k)
        from_differences(unit[:, k], unit, k, cosine, angle)
        pull_both_row(k, adjoint[k], unit, smooth, rough, cosine, rho, angle, c_bar, total, pulled, through)


def correlations_of_both(unit: Array, shares: Array, out: Array) -> Array:
    """Lower triangle of the sum with ω = shares, (2, n), order 1 first; unit diagonal."""
    _fill_lower(unit, shares[0], shares[1], out)
    return out


def cross_correlations_of_both(unit1: Array, shares1: Array, unit: Array, shares: Array) -> Array:
    """The sum between two sets of inputs."""
    out = np.empty((unit1.shape[1], unit.shape[1]))
    _fill_cross(unit1, shares1[0], shares1[1], unit, shares[0], shares[1], out)
    return out


def reverse_of_both(
    unit: Array, shares: Array, adjoint: Array | tuple[Array, Array]
) -> tuple[Array, Array, Array]:  # fmt: skip
    """From derivatives by the pairs: Σ_{k>h} c̄ û_kj û_hj, (p,), Q, (n,), and what each part contributes, (2, n).

    They are what `LocalPairsOfBoth.pull` has left of the pairs, if that is what is given.
    """
    if isinstance(adjoint, tuple):
        sums, totals = adjoint
        return totals, sums[0], sums[1:]
    p, n = unit.shape
    total, pulled, through = np.zeros(p - 1), np.zeros(n), np.zeros((2, n))
    _reverse(unit, shares[0], shares[1], adjoint, total, pulled, through)
    return total, pulled, through
