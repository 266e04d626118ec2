"""What NUTS learns in warm-up: the step size by dual averaging, the covariance in expanding windows.

Dual averaging after Hoffman & Gelman (2014), section 3.2.
"""

import math

import numpy as np

from cadlag.linalg.gaussian import lower_factor
from cadlag.sampling.contract import Array, State

_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75


def windows(n_warmup: int) -> list[int]:
    """Iterations at which the covariance is renewed: a start, doubling windows, and an end for the step size alone."""
    here, last, size = first_window(n_warmup), int(0.95 * n_warmup), max(int(0.02 * n_warmup), 10)
    ends: list[int] = []
    while here + size <= last:
        here = here + size if here + 3 * size <= last else last
        ends.append(here)
        size *= 2
    return ends


def first_window(n_warmup: int) -> int:
    """Iterations left out of every covariance: the way from the start to where the mass is."""
    return int(0.02 * n_warmup)


def restart_averaging(step: float) -> State:
    """A search for the step size that begins at `step`."""
    return {"tried": step, "centre": math.log(10.0 * step), "error": 0.0, "log_mean": 0.0, "count": 0}


def average(averaging: State, accept: float, wanted: float) -> State:
    """One iteration's acceptance counted, and the next step size to try."""
    count = averaging["count"] + 1
    error = averaging["error"] + (wanted - accept - averaging["error"]) / (count + _T0)
    log_step = averaging["centre"] - math.sqrt(count) / _GAMMA * error
    share = count**-_KAPPA
    log_mean = share * log_step + (1.0 - share) * averaging["log_mean"]
    return {**averaging, "tried": math.exp(log_step), "error": error, "log_mean": log_mean, "count": count}


def nothing_seen(d: int) -> State:
    """An empty window."""
    return {"count": 0, "mean": np.zeros(d), "scatter": np.zeros((d, d))}


def accumulate(welford: State, position: Array) -> State:
    """One position more in the window, by Welford's update."""
    count = welford["count"] + 1
    deviation = position - welford["mean"]
    mean = welford["mean"] + deviation / count
    return {"count": count, "mean": mean, "scatter": welford["scatter"] + np.outer(deviation, position - mean)}


def renew_metric(state: State) -> State:
    """The metric of the window that ends, and an empty one."""
    welford = state["welford"]
    factor = shrunk_factor(welford["scatter"] / max(welford["count"] - 1, 1), welford["count"], state["factor"])
    return {**state, "factor": factor, "welford": nothing_seen(len(state["position"]))}


def shrunk_factor(covariance: Array, count: int, before: Array) -> Array:
    """The covariance of `count` draws, with the metric before standing for two draws a coordinate more."""
    weight = 2.0 * len(covariance)
    return lower_factor((count * covariance + weight * (before @ before.T)) / (count + weight))
