"""The Gaussian process that stands for a target, and walks under it, against what they are made to be."""

import math

import numpy as np
import pytest
from scipy import integrate

from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.sampling import emulator as module
from cadlag.sampling.emulator import Emulator
from cadlag.sampling.mixture import Mixture

CENTRE, FACTOR = np.array([0.5, -1.0]), np.array([[0.8, 0.0], [0.5, 1.2]])


def value(x):
    """A log density with a bend, far from normal."""
    return -0.5 * (x[..., 0] - 0.5) ** 2 - 0.7 * (x[..., 1] + 1.0 - 0.4 * x[..., 0] ** 2) ** 2


def learned(n=100, seed=0, d=2):
    positions = CENTRE[:d] + np.random.default_rng(seed).standard_normal((n, d)) @ FACTOR[:d, :d].T * 1.3
    values = value(positions) if d == 2 else -(np.abs(positions[:, 0]) ** 1.5)
    return Emulator.learn(CENTRE[:d], FACTOR[:d, :d], positions, values)


def height(emulator, z):
    slope = np.empty(len(z))
    found = module._height(z, emulator._points, emulator.weights, emulator.length, slope)
    return found, slope


def test_gradient_is_that_of_the_height():
    emulator, rng = learned(), np.random.default_rng(1)
    for z in rng.standard_normal((5, 2)) * 3.0:
        differences = [
            (height(emulator, z + step)[0] - height(emulator, z - step)[0]) / 2e-6 for step in 1e-6 * np.eye(2)
        ]
        np.testing.assert_allclose(height(emulator, z)[1], differences, rtol=1e-5, atol=1e-5)


def test_it_goes_through_what_was_seen_and_is_right_between():
    """Up to a constant, which no ratio knows."""
    emulator = learned(190)
    seen = np.array([height(emulator, z)[0] for z in emulator._points]) - emulator.values
    assert np.ptp(seen) < 0.01
    fresh = np.random.default_rng(2).standard_normal((200, 2))
    found = np.array([height(emulator, z)[0] for z in fresh]) - value(CENTRE + fresh @ FACTOR.T)
    assert np.ptp(found - seen.mean()) < 0.5 and found.std() < 0.05


def test_the_latest_of_what_is_high_is_kept_each_place_once():
    rng = np.random.default_rng(3)
    positions = CENTRE + rng.standard_normal((400, 2)) @ FACTOR.T
    positions[-1] = positions[-2] = positions[50]
    values = value(positions)
    values[-3], values[-4] = -math.inf, values.max() - 40.0
    kept = Emulator.learn(CENTRE, FACTOR, positions, values).positions
    assert len(kept) == 192
    np.testing.assert_array_equal(kept[-1], positions[-1])
    np.testing.assert_array_equal(kept[-2], positions[-5])
    with pytest.raises(NotPositiveDefiniteError):
        Emulator.learn(CENTRE, FACTOR, positions[:7], values[:7])


@pytest.mark.parametrize(("share", "power"), [(0.0, 1.0), (1.0, 1.0), (0.5, 1.0), (0.5, 0.6)])
def test_walks_leave_the_emulated_law_invariant(share, power):
    """Its distribution function in one dimension by quadrature, against that of a long walk."""
    emulator, rng = learned(30, d=1), np.random.default_rng(4)
    hops = emulator.whitened(Mixture.of(np.zeros(1), np.array([[1.0]]), np.array([[[1.5]]])))
    position, found = CENTRE[:1], []
    for _ in range(12000):
        before = position
        position, gain = emulator.walk(rng, position, hops, 3, share, power)
        found.append(position[0])
    ends = [height(emulator, (x - CENTRE[:1]) / FACTOR[0, 0])[0] for x in (before, position)]
    assert gain == pytest.approx(power * (ends[1] - ends[0]), abs=1e-9)
    grid = np.linspace(-25.0, 25.0, 20001)
    density = np.exp([power * height(emulator, (x - CENTRE[:1]) / FACTOR[0, 0])[0] for x in grid[:, None]])
    below = integrate.cumulative_trapezoid(density, grid, initial=0.0)
    levels = np.interp(found, grid, below / below[-1])
    for level in (0.1, 0.5, 0.9):
        assert np.mean(levels < level) == pytest.approx(level, abs=0.025)


def test_a_mixture_in_other_units_is_the_same_law():
    emulator = learned()
    mixture = Mixture.of(np.log([0.3, 0.7]), np.array([[0.0, 1.0], [2.0, -1.0]]), np.stack([FACTOR, 2.0 * np.eye(2)]))
    z = np.random.default_rng(5).standard_normal((4, 2))
    gap = emulator.whitened(mixture).log_density(z) - mixture.log_density(CENTRE + z @ FACTOR.T)
    np.testing.assert_allclose(gap, math.log(0.8 * 1.2), rtol=1e-10)


def test_state_round_trip():
    emulator = learned()
    again = Emulator(**emulator.to_state())
    assert height(again, np.ones(2))[0] == height(emulator, np.ones(2))[0]
