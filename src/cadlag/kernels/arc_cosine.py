"""J_n(θ) = (-1)ⁿ sin^(2n+1)θ (sin⁻¹θ d/dθ)ⁿ [(π-θ)/sin θ], by J_{n+1} = (2n+1) cos θ J_n + n² sin²θ J_{n-1}.

The arc-cosine functions of Cho & Saul (2009), and their normalised form ρ_n = J_n(θ)/J_n(0) as a function of cos θ,
which is what the deep recursion needs. Inside the loops arccos is a polynomial times a square root, without branches,
so that they vectorise.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXACT = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
SUMS = {"cache": True, "nogil": True, "fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}

_PI_REST = 1.2246467991473532e-16  # π minus the double nearest to it

# Chebyshev fits on q in [0, 1], in powers of q, with t = arccos(1 - q):
# (sin t - t cos t) = q^(3/2) H(q) to 5e-17 and t = q^(1/2) T(q) to 1e-16.
_H = (
    0.9428090415820634, 0.04714045207910619, 0.007576144083821347, 0.0017537370699308474, 0.00048825604379691993,
    0.00015211458670206314, 5.109112645637665e-05, 1.836667246051366e-05, 5.7659780822824265e-06,
    5.675440188459392e-06, -6.575093296393614e-06, 1.4295838273238207e-05, -1.8881358635424293e-05,
    1.935591576089251e-05, -1.40122425133407e-05, 6.99458449606395e-06, -2.1359295622142854e-06, 3.136228688087842e-07,
)  # fmt: skip
_T = (
    1.4142135623730951, 0.117851130197744, 0.02651650429613943, 0.00789181667745193, 0.0026854117624172135,
    0.000988690670743743, 0.00038372780736599485, 0.00015233061647741464, 7.369031196873262e-05,
    -9.993002224643837e-06, 0.00011594461454836023, -0.00021912011021719147, 0.0003690021371351289,
    -0.00045330144326602575, 0.00041989688547204503, -0.00028021034282589915, 0.0001288106254574062,
    -3.64887502533415e-05, 4.921467667228333e-06,
)  # fmt: skip


@njit(**SUMS)
def poly_h(q: float) -> float:
    q2 = q * q
    q4 = q2 * q2
    q8 = q4 * q4
    low = (_H[0] + _H[1] * q + (_H[2] + _H[3] * q) * q2) + (_H[4] + _H[5] * q + (_H[6] + _H[7] * q) * q2) * q4
    high = (_H[8] + _H[9] * q + (_H[10] + _H[11] * q) * q2) + (_H[12] + _H[13] * q + (_H[14] + _H[15] * q) * q2) * q4
    return low + (high + (_H[16] + _H[17] * q) * q8) * q8


@njit(**SUMS)
def poly_t(q: float) -> float:
    q2 = q * q
    q4 = q2 * q2
    q8 = q4 * q4
    low = (_T[0] + _T[1] * q + (_T[2] + _T[3] * q) * q2) + (_T[4] + _T[5] * q + (_T[6] + _T[7] * q) * q2) * q4
    high = (_T[8] + _T[9] * q + (_T[10] + _T[11] * q) * q2) + (_T[12] + _T[13] * q + (_T[14] + _T[15] * q) * q2) * q4
    return low + (high + (_T[16] + _T[17] * q + _T[18] * q2) * q8) * q8


@njit(**SUMS)
def _versine(c: float) -> float:
    """1 - |c|, never negative: rounding may push |c| past 1."""
    q = 1.0 - abs(c)
    return q if q > 0.0 else 0.0


@njit(**SUMS)
def rho_relu(c: float) -> float:
    """J_1(θ)/π: the part (sin t - t cos t)/π with cos t = |c| serves both signs of c."""
    q = _versine(c)
    return (c if c > 0.0 else 0.0) + q * math.sqrt(q) * poly_h(q) * (1.0 / math.pi)


@njit(**SUMS)
def _rho_step(c: float) -> float:
    """J_0(θ)/π = 1 - θ/π."""
    q = _versine(c)
    t = math.sqrt(q) * poly_t(q) * (1.0 / math.pi)
    return 1.0 - t if c > 0.0 else t


@njit(**EXACT)
def rho_of(order: int, c: float) -> float:
    """J_δ(θ)/J_δ(0) by (1.4), divided by (2δ-1)!!; its error stays near rounding, as each step contracts."""
    if order == 0:
        return _rho_step(c)
    last, rho = _rho_step(c), rho_relu(c)
    sine2 = max(1.0 - c * c, 0.0)
    for n in range(1, order):
        last, rho = rho, c * rho + (n * n / (4.0 * n * n - 1.0)) * sine2 * last
    return rho


@njit(**EXACT)
def arc_cosine_scalar(order: int, theta: float) -> float:
    c, phi = math.cos(theta), (math.pi - theta) + _PI_REST
    if c > -0.3 or order == 0:
        last, value = phi, math.sin(theta) + phi * c
        if order == 0:
            return last
        for n in range(1, order):
            last, value = value, (2 * n + 1) * c * value + n * n * math.sin(theta) ** 2 * last
        return value
    # For c < 0 J is the minimal solution of (1.4): Miller's backward recursion, normalised by J_0 = π - θ.
    sine2, after, here, wanted = math.sin(phi) ** 2, 0.0, 1.0, 0.0
    for n in range(order + 120, 0, -1):
        after, here = here, (after - (2 * n + 1) * c * here) / (n * n * sine2)
        if n - 1 == order:
            wanted = here
        if here > 1e150 or here < 1e-150:
            after, wanted, here = after / here, wanted / here, 1.0
    return wanted * phi / here


def arc_cosine(order: int, theta: float | Array) -> Array:
    """Arc-cosine function J_δ of Cho and Saul, with full relative accuracy up to θ = π."""
    angles = np.asarray(theta, dtype=float)
    values = np.array([arc_cosine_scalar(order, t) if t < math.pi else 0.0 for t in angles.ravel()])
    return values.reshape(angles.shape)


def normalised_arc_cosine(order: int, cosine: float | Array) -> Array:
    """ρ = J_δ(θ)/J_δ(0) as a function of cos θ, as used inside the recursion."""
    cosines = np.asarray(cosine, dtype=float)
    return np.array([rho_of(order, c) for c in cosines.ravel()]).reshape(cosines.shape)


@njit(**SUMS)
def activate_with_slope(order: int, cosine: Array, rho: Array, slope: Array, stop: int) -> None:
    """ρ and dρ/dcos θ = δ²/(2δ-1) ρ_{δ-1}; at δ = 1 both come from one square root."""
    if order > 1:
        factor = order * order / (2.0 * order - 1.0)
        for h in range(stop):
            rho[h] = rho_of(order, cosine[h])
            slope[h] = factor * rho_of(order - 1, cosine[h])
        return
    for h in range(stop):
        c = cosine[h]
        q = _versine(c)
        root = math.sqrt(q) * (1.0 / math.pi)
        t = root * poly_t(q)
        slope[h] = 1.0 - t if c > 0.0 else t
        rho[h] = (c if c > 0.0 else 0.0) + q * root * poly_h(q)


@njit(**SUMS)
def activate_row(order: int, cosine: Array, rho: Array, stop: int) -> None:
    if order == 1:
        for h in range(stop):
            rho[h] = rho_relu(cosine[h])
    else:
        for h in range(stop):
            rho[h] = rho_of(order, cosine[h])
