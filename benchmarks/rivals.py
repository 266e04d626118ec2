"""Every method of the study of jumps as one function of a problem, a seed and settings, and a row in one table.

    network          StableNetworkRegressor; its k likeliest places of jumps, and the interval of the only one
    network_smooth   the same with a bulk that is always there and smooth
    kernel           StableKernelRegressor
    kernel0          the same of order 0, whose functions are rough
    bart             Bayesian additive regression trees (bartz): a draw's sum of trees with that draw's noise
    treed_gp         treed Gaussian process (btgp of R's tgp): draws of its predictive law
    forest           random forest; at every input its mean plus the out-of-bag residuals, as in Zhang et al. (2020)
    quantile_forest  random forest; training responses from the leaf of each tree, as in Meinshausen (2006)
    gp               Gaussian process, Matérn 3/2 with a length for each input plus noise, by maximum likelihood
    gp_half          the same with Matérn ½
    dynp             ruptures, l2 cost: k places by dynamic programming
    pelt             ruptures, l2 cost: places by a penalty of 2 σ² log n each, σ from the differences of the responses

k, the number of jumps, is told to `network` and `dynp` and to no other; places are middles of intervals between
neighbouring training inputs. A method that cannot be run here says why.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from benchmarks.jump_data import Array, Problem
from cadlag import StableKernelRegressor, StableNetworkRegressor
from cadlag.predictive import Predictive

Settings = Mapping[str, Any]

_N_ATOMS = 1000  # draws at most that stand for a predictive law
_PER_LEAF = 2  # responses drawn from the leaf of each tree
_SCRIPT = Path(__file__).with_name("treed_gp.R")


class Fit(NamedTuple):
    """What a method says of a problem, where it says it.

    Attributes
    ----------
    law
        Of new responses at the test inputs.
    places
        Where the function jumps, on the line.
    interval
        Of the place of the only jump, with probability 0.9.
    notes
        Numbers of its own.
    """

    law: Predictive | None = None
    places: Array | None = None
    interval: tuple[float, float] | None = None
    notes: Mapping[str, float] = {}


Fitter = Callable[[Problem, int, Settings], Fit]


@dataclass(frozen=True)
class Method:
    """A fitter with its settings, and what it needs.

    Attributes
    ----------
    fit
        Learn, and predict.
    settings
        Its settings, part of the name of a task.
    quick
        Settings of a rehearsal.
    missing
        Why it cannot be run here, or nothing.
    prepare
        What must have happened before the clock starts.
    places_only
        Whether all it gives is where the function jumps, on the line.
    """

    fit: Fitter
    settings: Settings = field(default_factory=dict)
    quick: Settings = field(default_factory=dict)
    missing: Callable[[], str] = lambda: ""
    prepare: Callable[[Problem, Settings], None] = lambda _problem, _settings: None
    places_only: bool = False


def _thinned(draws: Any) -> Array:
    """At most so many of the draws, evenly spaced, as doubles."""
    chosen = np.linspace(0, len(draws) - 1, min(_N_ATOMS, len(draws))).round().astype(int)
    return np.asarray(draws, dtype=float)[chosen]


# The library's own ----------------------------------------------------------------------------------------------------


def likeliest(probability: Array, k: int) -> np.ndarray:
    """The k likeliest intervals, in order of place; neighbours of one that is taken are not taken."""
    left, taken = np.array(probability, dtype=float), []
    for _ in range(k):
        best = int(np.argmax(left))
        taken.append(best)
        left[max(best - 1, 0) : best + 2] = -1.0
    return np.sort(taken)


def _sampled(estimator: Any, problem: Problem) -> Predictive:
    """Fit, without the warnings that the notes stand for, and predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(problem.X, problem.y)
    return estimator.predict_distribution(problem.X_test)


def _network(problem: Problem, seed: int, settings: Settings) -> Fit:
    model = StableNetworkRegressor(**settings, random_state=seed)
    law, notes = _sampled(model, problem), {"rhat": float(model.diagnostics_["worst_rhat"])}
    k = len(problem.places)
    if not k:
        return Fit(law, notes=notes)
    found = model.break_points()
    chosen = likeliest(found["probability"], k)
    middle = 0.5 * (found["lower"] + found["upper"])
    return Fit(law, middle[chosen], found.interval(0.9) if k == 1 else None, notes)


def _kernel(problem: Problem, seed: int, settings: Settings) -> Fit:
    model = StableKernelRegressor(**settings, random_state=seed)
    law = _sampled(model, problem)
    return Fit(law, notes={"rhat": float(model.diagnostics_["worst_rhat"])})


@cache
def _compiled(estimator: type) -> None:
    """Leave the compiled loops of an estimator in memory."""
    x = np.linspace(-1.0, 1.0, 12)[:, None]
    tiny = Problem(x, np.sign(x[:, 0]), x, x[:, 0], x[:, 0], np.empty(0), x[:, 0], 0.1)
    _sampled(estimator(n_draws=5, n_warmup=20, n_chains=1, random_state=0), tiny).crps(0.0)


# Trees ----------------------------------------------------------------------------------------------------------------


def _bart(problem: Problem, seed: int, settings: Settings) -> Fit:
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    from bartz import Bart

    model = Bart(
        problem.X.T, problem.y.astype(np.float32), seed=seed, num_chain_devices=None, pbar=False, printevery=None,
        **settings,
    )  # fmt: skip
    means = _thinned(model.predict(problem.X_test.T, kind="latent_samples"))
    noise = _thinned(model.get_error_sdev()) ** 2
    return Fit(Predictive(means, np.broadcast_to(noise[:, None], means.shape)))


_SEEN: set[tuple] = set()


def _prepare_bart(problem: Problem, settings: Settings) -> None:
    """Compile for arrays of these shapes, once a process."""
    shape = (problem.X.shape, problem.X_test.shape, *sorted(settings.items()))
    if shape not in _SEEN:
        _bart(problem, 0, settings)
        _SEEN.add(shape)


def _forest(problem: Problem, seed: int, settings: Settings) -> Fit:
    model = RandomForestRegressor(**settings, oob_score=True, random_state=seed).fit(problem.X, problem.y)
    residuals = problem.y - model.oob_prediction_
    means = model.predict(problem.X_test) + residuals[:, None]
    return Fit(Predictive(means, np.zeros_like(means)))


def _quantile_forest(problem: Problem, seed: int, settings: Settings) -> Fit:
    model = RandomForestRegressor(**settings, random_state=seed).fit(problem.X, problem.y)
    rng = np.random.default_rng(seed)
    pairs = zip(model.apply(problem.X).T, model.apply(problem.X_test).T)
    draws = np.concatenate([_from_leaves(rng, problem.y, own, asked) for own, asked in pairs])
    return Fit(Predictive(draws, np.zeros_like(draws)))


def _from_leaves(rng: np.random.Generator, y: Array, own: np.ndarray, asked: np.ndarray) -> Array:
    """Training responses drawn from the leaves of one tree that test inputs fall in, (draws, m)."""
    order = np.argsort(own, kind="stable")
    first, last = (np.searchsorted(own[order], asked, side=side) for side in ("left", "right"))
    return y[order[rng.integers(first, last, size=(_PER_LEAF, len(asked)))]]


# Gaussian processes ---------------------------------------------------------------------------------------------------


def _gp(problem: Problem, seed: int, settings: Settings, smoothness: float = 1.5) -> Fit:
    matern = Matern(np.ones(problem.X.shape[1]), (1e-2, 1e2), nu=smoothness)
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * matern + WhiteKernel(0.1, (1e-4, 1e1))
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mean, sd = model.fit(problem.X, problem.y).predict(problem.X_test, return_std=True)
    return Fit(Predictive(mean[None], sd[None] ** 2))


def _treed_gp(problem: Problem, seed: int, settings: Settings) -> Fit:
    with tempfile.TemporaryDirectory() as directory:
        for name, values in (("x", problem.X), ("y", problem.y), ("xx", problem.X_test)):
            np.savetxt(Path(directory) / f"{name}.csv", values, delimiter=",", fmt="%.17g")
        command = ["Rscript", str(_SCRIPT), directory, str(seed), *map(str, settings["iterations"])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
        if done.returncode:
            raise RuntimeError(f"Rscript failed:\n{done.stderr}")
        draws = _thinned(np.loadtxt(Path(directory) / "draws.csv", delimiter=",", ndmin=2))
    return Fit(Predictive(draws, np.zeros_like(draws)))


@cache
def _without_tgp() -> str:
    if shutil.which("Rscript") is None:
        return "there is no Rscript on the path (Debian: r-base-core, r-cran-tgp)"
    done = subprocess.run(["Rscript", "-e", "library(tgp)"], capture_output=True, check=False)
    return "R has no package tgp (Debian: r-cran-tgp)" if done.returncode else ""


# Places alone ---------------------------------------------------------------------------------------------------------


def _at(problem: Problem, indices: list[int]) -> Fit:
    """Half way between the last input of each segment and the first of the next; ruptures' last index is the end."""
    after = np.array(indices[:-1], dtype=int)
    return Fit(places=0.5 * (problem.X[after - 1, 0] + problem.X[after, 0]))


def _dynp(problem: Problem, _seed: int, settings: Settings) -> Fit:
    from ruptures import Dynp

    return _at(problem, Dynp("l2", **settings).fit(problem.y).predict(n_bkps=len(problem.places)))


def _pelt(problem: Problem, _seed: int, settings: Settings) -> Fit:
    from ruptures import Pelt

    steps = np.diff(problem.y)
    sd = 1.4826 * np.median(np.abs(steps - np.median(steps))) / 2.0**0.5
    return _at(problem, Pelt("l2", **settings).fit(problem.y).predict(pen=2.0 * sd**2 * np.log(len(problem.y))))


def _without(package: str) -> Callable[[], str]:
    """A check whether a package of the extra `bench` is there."""
    return lambda: "" if importlib.util.find_spec(package) else f"there is no package {package} (pip install {package})"


_SHORT = {"n_draws": 100, "n_warmup": 200, "n_chains": 2}
_SEGMENTS = {"min_size": 2, "jump": 1}

METHODS: dict[str, Method] = {
    "network": Method(_network, {}, _SHORT, prepare=lambda *_: _compiled(StableNetworkRegressor)),
    "network_smooth": Method(
        _network, {"bulk": "smooth"}, {"bulk": "smooth", **_SHORT}, prepare=lambda *_: _compiled(StableNetworkRegressor)
    ),
    "kernel": Method(_kernel, {}, _SHORT, prepare=lambda *_: _compiled(StableKernelRegressor)),
    "kernel0": Method(
        _kernel, {"order": 0}, {"order": 0, **_SHORT}, prepare=lambda *_: _compiled(StableKernelRegressor)
    ),
    "bart": Method(
        _bart, {"num_trees": 200, "n_burn": 1000, "n_save": 1000, "num_chains": 4},
        {"num_trees": 50, "n_burn": 100, "n_save": 100, "num_chains": 2}, _without("bartz"), _prepare_bart,
    ),
    "treed_gp": Method(_treed_gp, {"iterations": [2000, 7000, 10]}, {"iterations": [200, 600, 2]}, _without_tgp),
    "forest": Method(_forest, {"n_estimators": 500}, {"n_estimators": 100}),
    "quantile_forest": Method(
        _quantile_forest, {"n_estimators": 500, "min_samples_leaf": 5}, {"n_estimators": 100, "min_samples_leaf": 5}
    ),
    "gp": Method(_gp, {"n_restarts_optimizer": 10}, {"n_restarts_optimizer": 1}),
    "gp_half": Method(partial(_gp, smoothness=0.5), {"n_restarts_optimizer": 10}, {"n_restarts_optimizer": 1}),
    "dynp": Method(_dynp, _SEGMENTS, _SEGMENTS, _without("ruptures"), places_only=True),
    "pelt": Method(_pelt, _SEGMENTS, _SEGMENTS, _without("ruptures"), places_only=True),
}  # fmt: skip
