"""Bugs planted in the moves of the shallow stable network are found by the check of the joint law."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cadlag.baselines.shallow_stable import sweep, transition
from cadlag.baselines.shallow_stable.model import ShallowStable
from statistical.test_shallow_moves import LARGEST_Z, PLANE, one_move, paired, small

Array = NDArray[np.float64]


def forget_prior_of_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """All scales at once, by the likelihood alone."""
    monkeypatch.setattr(ShallowStable, "log_noise_prior", lambda self, log_v: np.zeros_like(log_v))


def forget_that_exchanges_change_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior of both scales is not the same after what they add has been exchanged."""
    monkeypatch.setattr(sweep, "density", lambda log_s, table: 0.0)
    monkeypatch.setattr(sweep, "try_exchange", sweep.try_exchange.py_func)
    monkeypatch.setattr(transition, "exchange", sweep.exchange.py_func)
    monkeypatch.setattr(transition, "N_EXCHANGES", 20)


def forget_prior_of_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lattice scored by the likelihood alone."""
    monkeypatch.setattr(sweep, "density_of_log", lambda values, *table: (np.zeros_like(values), None))
    interpret_sweeps(monkeypatch)


def leave_the_cell_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """S and t with the cell, where they should be without."""
    whole = sweep.draw_scale

    def draw(rng: np.random.Generator, log_s: float, log_w: float, square: float, pull: float, *law: object) -> float:
        left = 1.0 / (1.0 + np.exp(log_s + log_w) * square)
        return whole(rng, log_s, log_w, square * left, pull * left, *law)

    interpret_sweeps(monkeypatch)
    monkeypatch.setattr(sweep, "draw_scale", draw)


def interpret_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps as plain Python, in which parts can be replaced."""
    for name in ("draw_scale", "renew"):
        monkeypatch.setattr(sweep, name, getattr(sweep, name).py_func)
    monkeypatch.setattr(transition, "sweep", sweep.sweep.py_func)


BUGS = {
    forget_prior_of_walk: "walk",
    forget_that_exchanges_change_weights: "exchange_scales",
    forget_prior_of_scales: "renew_scales",
    leave_the_cell_in: "renew_scales",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: object, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    z = paired(small(PLANE, alpha=1.2), one_move(BUGS[bug]), 800, 15)
    print(f"{bug.__name__}: {z:.1f}")
    assert z > LARGEST_Z
