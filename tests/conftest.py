"""Fixtures shared by the tests: numerical differentiation, the recursion written out in plain numpy, the UCI files."""

import os
from collections.abc import Callable
from math import factorial
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def uci():
    """The directory of the UCI files, which CADLAG_DATA names; a skip where it names none."""
    directory = os.environ.get("CADLAG_DATA")
    if not directory:
        pytest.skip("needs UCI data: set CADLAG_DATA to the directory that holds them")
    return Path(directory)


@pytest.fixture(scope="session")
def central_differences() -> Callable:
    """Gradient by differences of fourth order."""

    def gradient(function, position, step=2e-3):
        result = np.empty(len(position))
        for i, unit in enumerate(np.eye(len(position))):
            near = function(position + step * unit) - function(position - step * unit)
            far = function(position + 2 * step * unit) - function(position - 2 * step * unit)
            result[i] = (8 * near - far) / (12 * step)
        return result

    return gradient


def plain_map(M, order):
    """F_δ(M) of (1.5) from the closed forms J_0..J_3 and arccos, the diagonal set by hand."""
    sd = np.sqrt(np.diag(M))
    c = np.clip(M / np.outer(sd, sd), -1.0, 1.0)
    theta, s = np.arccos(c), np.sqrt(1.0 - c**2)
    J = [
        np.pi - theta,
        s + (np.pi - theta) * c,
        3 * s * c + (np.pi - theta) * (1 + 2 * c**2),
        s * (4 + 11 * c**2) + (np.pi - theta) * (9 * c + 6 * c**3),
    ][order]
    F = np.outer(sd, sd) ** order * J / np.pi
    odd = factorial(2 * order) // (2**order * factorial(order))
    np.fill_diagonal(F, odd * np.diag(M) ** order)
    return F


@pytest.fixture(scope="session")
def plain_recursion() -> Callable:
    """Σ_0 .. Σ_K by (1.6) from natural scales: `c` holds c_1 .. c_K."""

    def matrices(X, s, c, order, divisor=1.0):
        result = [(X * s) @ X.T / divisor]
        for scale in c:
            result.append(plain_map(1.0 + scale * result[-1], order))
        return result

    return matrices


# scikit-learn's checks cannot be marked one by one; these take a minute each, at the alpha = 0.01 that they set.
_LONG_CHECKS = "StableKernelRegressor(n_chains=1,n_draws=20,n_warmup=100)-check_regressors_train"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave the longest checks to `make slow`."""
    for item in items:
        if _LONG_CHECKS in item.nodeid:
            item.add_marker(pytest.mark.slow)
