"""Small fits of every method, sampler and setting, and all that they answer, as arrays: one file a case.

python tests/draws.py FOLDER [--only WORDS] runs the cases on the cadlag that Python finds, and `tests.same_draws` does
so with two of them. Only the public interface is used, so that cases outlive what is behind it.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SHORT = {"n_draws": 20, "n_warmup": 40, "n_chains": 2, "random_state": 7}
WITH_JUMPS = {"n_warmup": 120}  # long enough for chains to meet and learn where to jump
ROUNDS = {"n_chains": "auto", "n_warmup": 10, "n_draws": 6, "precision": 0.1, "bulk": False, "data": "plane"}
SWEEPS = {"n_units": 6, "n_draws": 25, "n_warmup": 30}
CLIMB = {"n_inducing": 8, "n_steps": 40, "n_samples": 3, "n_atoms": 10, "random_state": 7}
PLAIN = {"random_state": 7}
SEED = 3  # of whatever a fitted model draws


class UnknownHereError(Exception):
    """A method or setting that this cadlag does not have."""


# Data ----------------------------------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Inputs, responses, new inputs, and responses there."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    y_new: np.ndarray


def simulate(n: int, p: int) -> Data:
    """A step, a slope and a wave with noise, in units that are not standard; a few new inputs lie outside."""
    rng = np.random.default_rng([2025, n, p])
    X = rng.uniform(-1.0, 1.0, (n + 6, p))
    X[-2:] *= 2.5
    y = 3.0 * (X[:, 0] > 0.2) + 0.7 * X[:, -1] + 0.3 * np.sin(4.0 * X.sum(axis=1)) + 0.2 * rng.standard_normal(n + 6)
    X, y = 10.0 + 4.0 * X, 50.0 + 5.0 * y
    return Data(X[:n], y[:n], X[n:], y[n:])


DATA: dict[str, Callable[[], Data]] = {
    "line": partial(simulate, 18, 1),
    "plane": partial(simulate, 16, 2),
    "space": partial(simulate, 20, 5),
    "many": partial(simulate, 110, 1),
}


# What a fitted model answers -----------------------------------------------------------------------------------------

Arrays = dict[str, Any]


def positions_of(model: Any) -> Any:
    """Where the samplers were, wherever this version keeps it."""
    posterior = model.posterior_
    return posterior.positions if hasattr(posterior, "positions") else posterior.atoms(None)


def prefixed(prefix: str, values: Mapping[str, Any]) -> Arrays:
    return {f"{prefix}/{name}": values[name] for name in values}


def predictions(model: Any, new: np.ndarray) -> Arrays:
    """Point, spread and quantiles of observations and of the function."""
    point, std = model.predict(new, return_std=True)
    function, spread = model.predict(new, return_std=True, kind="function")
    return {"point": point, "std": std, "function": function, "spread": spread,
            "quantiles": model.predict_quantiles(new, [0.01, 0.05, 0.5, 0.95])}  # fmt: skip


def reread(model: Any, new: np.ndarray) -> Arrays:
    """The predictions once more, from the model's file."""
    import cadlag  # noqa: PLC0415  the cases are listed without it

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.cadlag")
        loaded = cadlag.load(Path(folder) / "model.cadlag")
    return {"positions": positions_of(loaded), **predictions(loaded, new)}


def left_out(model: Any) -> Arrays:
    if not hasattr(model, "leave_one_out"):
        return {}
    found = model.leave_one_out()
    names = ("mean", "std", "log_score", "weights", "pareto_shape", "pit")
    return {**{name: getattr(found, name) for name in names}, "quantiles": found.quantile([0.05, 0.95])}


def law_at(model: Any, data: Data) -> Arrays:
    """The predictive law itself: scores, probabilities and draws."""
    law = model.predict_distribution(data.new)
    scores = {name: getattr(law, name)(data.y_new) for name in ("cdf", "pdf", "logpdf", "crps")}
    return {**scores, "median": law.median, "sample": law.sample(3, random_state=SEED)}


def pointwise(posterior: Any) -> Arrays:
    """log p(y_k | y_-k, draw), which ArviZ is given."""
    log_density = getattr(posterior, "pointwise", None)
    return {} if log_density is None else {"pointwise": log_density(posterior.positions[:, :3])}


def answers(model: Any, data: Data) -> Arrays:
    """All that is compared of a fitted model."""
    new = data.new
    return {
        "positions": positions_of(model),
        **prefixed("stats", getattr(model.posterior_, "stats", {})),
        **prefixed("draws", model.posterior_.draws),
        **prefixed("summary", model.posterior_.summary()),
        **pointwise(model.posterior_),
        **predictions(model, new),
        "covariance": model.predict(new[:3], return_cov=True)[1],
        "sample_y": model.sample_y(new[:3], n_samples=4, random_state=SEED),
        "interval": model.predict_interval(new, 0.8),
        "training": np.column_stack(model.training_data()),
        **prefixed("law", law_at(model, data)),
        **prefixed("left out", left_out(model)),
        **prefixed("reread", reread(model, new)),
    }


# Further questions, by case ------------------------------------------------------------------------------------------


def relevance(model: Any, data: Data) -> Arrays:
    return prefixed("relevance", model.feature_relevance(n_atoms=10, random_state=SEED))


def relevance_in_groups(model: Any, data: Data) -> Arrays:
    table = model.feature_relevance(n_atoms=10, random_state=SEED, groups={"both": ["x0", "x1"]})
    return prefixed("relevance in groups", table)


def kernels(model: Any, data: Data) -> Arrays:
    return {
        "kernels": model.sample_kernels(n_draws=4),
        "first kernels": model.sample_kernels(0, data.new, n_draws=4),
        "features": model.sample_features(2, X=data.new[:3], n_draws=4, random_state=SEED),
        "features unscaled": model.sample_features(1, X=data.new[:3], n_draws=4, scaled=False, random_state=SEED),
    }


def break_points(model: Any, data: Data) -> Arrays:
    """The table, and what is behind it: places in one dimension, hyperplanes in several."""
    table = model.break_points(random_state=SEED)
    small = model.break_points(min_size=0.5, n_atoms=20, random_state=SEED)
    names = ("places", "sizes", "normals", "min_size", "probability_of_any")
    behind = {name: getattr(table, name) for name in names if hasattr(table, name)}
    if hasattr(table, "interval"):
        behind |= {"interval": table.interval(0.9)} | prefixed("likely", table.likely(0.1))
    if hasattr(table, "draws"):
        behind |= planes(table, data)
    return prefixed("breaks", {**table, **behind}) | prefixed("small breaks", small)


def planes(table: Any, data: Data) -> Arrays:
    """Draws of all hyperplanes, and where each input meets the first of them."""
    p = data.X.shape[1]
    centre = data.X.mean(axis=0)
    met = [table.crossing(0, j, centre) for j in range(p) if len(table.draws)]
    return {"plane draws": np.concatenate([*table.draws, np.empty((0, 1 + p))]), "crossing": np.array(met)}


def rows_like_training(model: Any, data: Data) -> Arrays:
    """As many rows as there were in training, where tgp's Matérn code ties them to each other."""
    return {"tied": model.predict(data.X + 0.1, return_std=True)}


# How a model is fitted -----------------------------------------------------------------------------------------------


def at_once(make: Callable[..., Any], data: Data) -> Any:
    return make().fit(data.X, data.y)


def with_test_inputs(make: Callable[..., Any], data: Data) -> Any:
    return make().fit(data.X, data.y, X_test=data.new)


def extended(make: Callable[..., Any], data: Data) -> Any:
    """Fewer draws, then the rest."""
    wanted = make().n_draws
    return make(n_draws=wanted - 9).fit(data.X, data.y).extend(9)


def with_more_draws(make: Callable[..., Any], data: Data) -> Any:
    """Fewer draws in a directory, then all of them there."""
    with tempfile.TemporaryDirectory() as folder:
        make(n_draws=3).fit(data.X, data.y, checkpoint=folder)
        return make().fit(data.X, data.y, checkpoint=folder)


def stopped_and_resumed(make: Callable[..., Any], data: Data) -> Any:
    """Ended by an exception, as by a crash, after the first blocks, then started again."""

    def stop(reached: Any, *_: Any) -> None:
        if min(reached) >= 8:
            raise SystemExit

    with tempfile.TemporaryDirectory() as folder:
        try:
            make(progress=stop).fit(data.X, data.y, checkpoint=folder)
        except SystemExit:
            pass
        else:
            raise AssertionError("the run was not stopped: it must have more than one block")
        return make().fit(data.X, data.y, checkpoint=folder)


def interrupted_and_extended(make: Callable[..., Any], data: Data) -> Any:
    """Interrupted as by Ctrl-C at a moment that the machine's speed decides, and brought to the draws wanted."""
    plain = make()

    def interrupt(reached: Any, *_: Any) -> None:
        if min(reached) > plain.n_warmup:
            raise KeyboardInterrupt

    model = make(n_draws=1000, progress=interrupt).fit(data.X, data.y)
    kept = positions_of(model).shape[1]
    return model.set_params(progress=False).extend(plain.n_draws - kept)


# Cases ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """One fit and its questions; with a twin, another case that must come to the same."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    data: str = "line"
    asks: tuple[Callable[[Any, Data], Arrays], ...] = ()
    how: Callable[[Callable[..., Any], Data], Any] = at_once
    twin: str | None = None

    def make(self, **changes: Any) -> Any:
        """The regressor, not fitted."""
        import cadlag  # noqa: PLC0415  the cases are listed without it

        if self.method not in dir(cadlag):
            raise UnknownHereError(f"there is no {self.method}")
        regressor = getattr(cadlag, self.method)
        try:
            return regressor(**{**self.settings, **changes})
        except TypeError as error:
            raise UnknownHereError(str(error)) from error

    def __call__(self) -> Arrays:
        """All arrays of the case."""
        data = DATA[self.data]()
        model = self.how(self.make, data)
        arrays = answers(model, data)
        for ask in self.asks:
            arrays |= ask(model, data)
        return arrays


def kernel(*, base: Mapping[str, Any] = SHORT, **settings: Any) -> Fit:
    return fit_of("StableKernelRegressor", base, settings)


def network(*, base: Mapping[str, Any] = SHORT, **settings: Any) -> Fit:
    return fit_of("StableNetworkRegressor", {**base, **SWEEPS}, settings)


def nngp(*, base: Mapping[str, Any] = SHORT, **settings: Any) -> Fit:
    return fit_of("NNGPRegressor", base, settings)


def bayes_gp(*, base: Mapping[str, Any] = SHORT, **settings: Any) -> Fit:
    return fit_of("BayesGPRegressor", base, settings)


def shallow(*, base: Mapping[str, Any] = SHORT, **settings: Any) -> Fit:
    return fit_of("ShallowStableRegressor", base, settings)


def ml_gp(**settings: Any) -> Fit:
    return fit_of("MLGPRegressor", {"n_starts": 2, **PLAIN}, settings)


def diwp(**settings: Any) -> Fit:
    return fit_of("DIWPRegressor", CLIMB, settings)


def fit_of(method: str, base: Mapping[str, Any], settings: dict[str, Any]) -> Fit:
    """Settings of the case apart from those of the regressor."""
    own = {name: settings.pop(name) for name in ("data", "asks", "how", "twin") if name in settings}
    return Fit(method, {**base, **settings}, **own)


def row_noise(data: str) -> np.ndarray:
    """A noise variance for each training row."""
    return np.linspace(0.5, 2.0, len(DATA[data]().y))


def prior(**settings: Any) -> Callable[[], Arrays]:
    """What needs no fit: draws of the function, and what two values of it tell of each other."""

    def ask() -> Arrays:
        model = Fit("StableKernelRegressor", settings).make()
        X = np.random.default_rng(SEED).standard_normal((5, 2))
        information, error = model.conditional_mutual_information(X, X[::-1] + 0.3, n_samples=20, random_state=SEED)
        return {"prior": model.sample_prior(X, n_samples=4, random_state=SEED),
                "noisy prior": model.sample_prior(X, n_samples=4, random_state=SEED, kind="observation"),
                "information": information, "information error": error}  # fmt: skip

    return ask


# The command ---------------------------------------------------------------------------------------------------------


def write_table(path: Path, n: int, seed: int, target: bool = True) -> None:
    """A table with a date, a category and a number, and the target if wanted."""
    rng = np.random.default_rng(seed)
    names = ["day", "kind", "x", "y"][: 4 if target else 3]
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(names)
        for i in range(n):
            x = rng.normal()
            y = 3.0 * (i > n // 2) + {"red": 0.0, "blue": 1.0, "green": -1.0}[kind := ["red", "blue", "green"][i % 3]]
            rows.writerow([f"2024-01-{i + 1:02d}", kind, f"{x:.4f}", f"{y + x + 0.1 * rng.normal():.4f}"][: len(names)])


def numbers_in(tree: Any, path: str) -> Arrays:
    """Every number of a JSON document by its place."""
    if isinstance(tree, Mapping | list):
        items = tree.items() if isinstance(tree, Mapping) else enumerate(tree)
        return {place: value for key, inner in items for place, value in numbers_in(inner, f"{path}/{key}").items()}
    return {path: np.float64(tree)} if isinstance(tree, int | float) else {}


# The command by the name of its module, which has moved.
COMMAND = """
import importlib.util, runpy
name = "cadlag.app.cli" if importlib.util.find_spec("cadlag.app") else "cadlag.cli"
runpy.run_module(name, run_name="__main__")
"""


def cadlag_command(folder: str, *arguments: str) -> str:
    """What the command prints on standard output."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMAND, *arguments], cwd=folder, check=True, capture_output=True,
        text=True,
    ).stdout  # fmt: skip


def command(method: str, *settings: str) -> Callable[[], Arrays]:
    """fit and predict as a shell runs them: the figures that are said, and the bytes of the predictions."""

    def run() -> Arrays:
        with tempfile.TemporaryDirectory() as folder:
            write_table(Path(folder) / "table.csv", 18, 1)
            write_table(Path(folder) / "new.csv", 6, 2, target=False)
            said = cadlag_command(
                folder, "fit", "table.csv", "-t", "y", "-m", method, "-o", "model.cadlag", "--draws", "20", "--warmup",
                "30", "--chains", "2", "--jobs", "1", "--json", *settings,
            )  # fmt: skip
            cadlag_command(folder, "predict", "model.cadlag", "new.csv", "-o", "out.csv")
            written = (Path(folder) / "out.csv").read_bytes()
        predicted = np.loadtxt(written.decode().splitlines(), delimiter=",", skiprows=1)
        return {"predictions": predicted, "written": np.frombuffer(written, dtype=np.uint8),
                **numbers_in(json.loads(said), "said")}  # fmt: skip

    return run


def comparison() -> Arrays:
    """Scores of three methods on two folds, but for the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "table.csv", 18, 1)
        said = cadlag_command(
            folder, "compare", "table.csv", "-t", "y", "--methods", "nngp,ml_gp,boosting", "--folds", "2", "--draws",
            "10", "--warmup", "20", "--jobs", "1", "--json",
        )  # fmt: skip
    return {place: value for place, value in numbers_in(json.loads(said), "said").items() if "seconds" not in place}


CASES: dict[str, Callable[[], Arrays]] = {
    "kernel nuts": kernel(**WITH_JUMPS, asks=(relevance,)),
    "kernel nuts, two workers": kernel(**WITH_JUMPS, asks=(relevance,), n_jobs=2, twin="kernel nuts"),
    "kernel nuts, extended": kernel(**WITH_JUMPS, asks=(relevance,), how=extended, twin="kernel nuts"),
    "kernel nuts, more draws": kernel(**WITH_JUMPS, asks=(relevance,), how=with_more_draws, twin="kernel nuts"),
    "kernel nuts, resumed": kernel(**WITH_JUMPS, asks=(relevance,), how=stopped_and_resumed, twin="kernel nuts"),
    "kernel plain_nuts, no warm-up": kernel(sampler="plain_nuts", n_draws=60, n_warmup=4),
    "kernel plain_nuts, interrupted": kernel(
        sampler="plain_nuts", n_draws=60, n_warmup=4, how=interrupted_and_extended, twin="kernel plain_nuts, no warm-up"
    ),
    "kernel plain_nuts, plane": kernel(sampler="plain_nuts", data="plane", asks=(relevance, relevance_in_groups)),
    "kernel tempered": kernel(sampler="tempered", n_warmup=20, n_draws=10),
    "kernel tempered, resumed": kernel(
        sampler="tempered", n_warmup=20, n_draws=10, how=stopped_and_resumed, twin="kernel tempered"
    ),
    "kernel independence": kernel(sampler="independence", n_draws=60),
    "kernel alpha 0.5, depth 2": kernel(alpha=0.5, depth=2, asks=(kernels,)),
    "kernel alpha 1.5, depth 2, jumps": kernel(alpha=1.5, depth=2, data="plane", **WITH_JUMPS),
    "kernel alpha 2": kernel(alpha=2, depth=2, asks=(kernels,)),
    "kernel prop2, depth 3, order 2": kernel(preset="prop2", depth=3, order=2),
    "kernel published_code, depth 2": kernel(preset="published_code", depth=2, sampler="independence"),
    "kernel published_code, order 0": kernel(preset="published_code", order=0),
    "kernel order 0, depth 2": kernel(order=0, depth=2, data="plane"),
    "kernel no intercept, space": kernel(fit_intercept=False, data="space"),
    "kernel noise known": kernel(noise_variance=1.5),
    "kernel noise by row, space": kernel(noise_variance=row_noise("space"), data="space"),
    "kernel noise_prior_on sd": kernel(noise_prior_on="sd", point="mean"),
    "kernel standardize False": kernel(standardize=False, data="plane"),
    "kernel standardize inputs": kernel(standardize="inputs", n_atoms=9),
    "kernel centers, depth 2": kernel(centers=True, depth=2, data="plane", asks=(kernels,)),
    "kernel centers, jumps": kernel(centers=True, **WITH_JUMPS),
    "kernel groups": kernel(n_groups=2, centers=True, asks=(relevance,)),
    "kernel groups, no centers": kernel(n_groups=2, depth=2, alpha=0.5, data="plane", n_draws=10, n_warmup=25),
    "kernel groups, tempered": kernel(n_groups=2, centers=True, sampler="tempered", n_warmup=6, n_draws=4),
    "kernel groups, plain_nuts": kernel(n_groups=3, sampler="plain_nuts", noise_variance=1.5),
    "kernel groups, independence": kernel(n_groups=2, centers=True, sampler="independence", order=0),
    "kernel neighbors": kernel(neighbors=4, data="space", asks=(relevance,)),
    "kernel neighbors, two workers": kernel(
        neighbors=4, data="space", asks=(relevance,), n_jobs=2, twin="kernel neighbors"
    ),
    "kernel neighbors, resumed": kernel(
        neighbors=4, data="space", asks=(relevance,), how=stopped_and_resumed, twin="kernel neighbors"
    ),
    "kernel neighbors, order 0, depth 2": kernel(
        neighbors=3, order=0, depth=2, noise_variance=row_noise("plane"), data="plane"
    ),
    "kernel prior": prior(alpha=1.0, depth=2),
    "kernel prior, prop2": prior(alpha=0.5, depth=3, order=0, preset="prop2"),
    "kernel prior, centers": prior(alpha=1.5, centers=True, n_groups=2, noise_variance=0.3),
    "network": network(asks=(break_points, relevance)),
    "network, two workers": network(asks=(break_points, relevance), n_jobs=2, twin="network"),
    "network, extended": network(asks=(break_points, relevance), how=extended, twin="network"),
    "network, more draws": network(asks=(break_points, relevance), how=with_more_draws, twin="network"),
    "network, resumed": network(asks=(break_points, relevance), how=stopped_and_resumed, twin="network"),
    "network sign, no warm-up": network(activation="sign", bulk=False, n_warmup=4, n_draws=60),
    "network sign, interrupted": network(
        activation="sign", bulk=False, n_warmup=4, n_draws=60, how=interrupted_and_extended,
        twin="network sign, no warm-up",
    ),
    "network sign, plane": network(activation="sign", bulk=False, data="plane", asks=(break_points,)),
    "network relu, no bulk": network(activation="relu", bulk=False, n_units=4),
    "network relu, bulk": network(activation="relu", bulk=True, data="plane"),
    "network auto, no bulk, space": network(bulk=False, data="space", asks=(break_points, relevance)),
    "network bulk, space": network(bulk=True, data="space"),
    "network bulk, many rows": network(bulk=True, data="many", n_draws=10, n_warmup=20, n_chains=1),
    "network no bulk, many rows": network(bulk=False, data="many", n_units=10, n_chains=1, asks=(break_points,)),
    "network input_scales": network(input_scales=True, bulk=False, data="plane", asks=(relevance,)),
    "network input_scales, bulk": network(input_scales=True, data="space", alpha=0.5),
    "network alpha 0.5, amplitude": network(alpha=0.5, amplitude=0.7, bulk=False),
    "network alpha 2": network(alpha=2, data="plane"),
    "network alpha 2, input_scales": network(alpha=2, bulk=False, input_scales=True, amplitude=1.5, data="plane"),
    "network noise known": network(noise_variance=1.5),
    "network noise by row, no bulk": network(noise_variance=row_noise("plane"), bulk=False, data="plane"),
    "network noise by row, bulk": network(noise_variance=row_noise("line")),
    "network noise_prior_on sd": network(noise_prior_on="sd", point="mean"),
    "network sd, no bulk, raw": network(noise_prior_on="sd", bulk=False, standardize=False),
    "network standardize inputs": network(standardize="inputs", asks=(break_points,)),
    "network tempered": network(sampler="tempered", n_draws=8, n_warmup=12),
    "network tempered, no bulk": network(sampler="tempered", bulk=False, data="plane", n_draws=12, n_warmup=15),
    "network tempered, resumed": network(
        sampler="tempered", bulk=False, data="plane", n_draws=12, n_warmup=15, how=stopped_and_resumed,
        twin="network tempered, no bulk",
    ),
    "network in rounds": network(**ROUNDS),
    "network in rounds, two workers": network(**ROUNDS, n_jobs=2, twin="network in rounds"),
    "network in rounds, resumed": network(**ROUNDS, how=stopped_and_resumed, twin="network in rounds"),
    "network fast": network(inference="fast", bulk=False),
    "network neighbors": network(neighbors=4, data="space", asks=(break_points, relevance)),
    "network neighbors, two workers": network(
        neighbors=4, data="space", asks=(break_points, relevance), n_jobs=2, twin="network neighbors"
    ),
    "network neighbors, resumed": network(
        neighbors=4, data="space", asks=(break_points, relevance), how=stopped_and_resumed, twin="network neighbors"
    ),
    "kernel in rounds": kernel(n_chains="auto", n_warmup=90, n_draws=12, precision=0.3, data="plane"),
    "kernel fast": kernel(inference="fast", data="plane"),
    "nngp": nngp(asks=(relevance,)),
    "nngp, two workers": nngp(asks=(relevance,), n_jobs=2, twin="nngp"),
    "nngp, extended": nngp(asks=(relevance,), how=extended, twin="nngp"),
    "nngp ml": nngp(sampler="ml", data="plane"),
    "nngp amplitude False": nngp(amplitude=False, n_maps=1, noise_prior_on="sd"),
    "nngp amplitude 2, noise by row": nngp(amplitude=2.0, n_maps=3, noise_variance=row_noise("space"), data="space"),
    "nngp noise known, inputs": nngp(noise_variance=1.5, standardize="inputs", point="mean"),
    "bayes_gp nuts": bayes_gp(**WITH_JUMPS, asks=(relevance,)),
    "bayes_gp nuts, two workers": bayes_gp(**WITH_JUMPS, asks=(relevance,), n_jobs=2, twin="bayes_gp nuts"),
    "bayes_gp nuts, resumed": bayes_gp(
        **WITH_JUMPS, asks=(relevance,), how=stopped_and_resumed, twin="bayes_gp nuts"
    ),
    "bayes_gp plain_nuts, exp": bayes_gp(sampler="plain_nuts", correlation="exp", data="plane"),
    "bayes_gp tempered": bayes_gp(sampler="tempered", n_draws=8, n_warmup=12, include_beta_var=True),
    "bayes_gp independence": bayes_gp(sampler="independence", m0r1=False),
    "bayes_gp tgp": bayes_gp(sampler="tgp", thin=2, data="plane"),
    "bayes_gp tgp, extended": bayes_gp(sampler="tgp", thin=2, data="plane", how=extended, twin="bayes_gp tgp"),
    "bayes_gp loria_bhadra, tgp": bayes_gp(preset="loria_bhadra", sampler="tgp", data="space"),
    "bayes_gp matern 2.5": bayes_gp(correlation="matern", nu=2.5, data="plane"),
    "bayes_gp matern 1.2": bayes_gp(correlation="matern", nu=1.2, n_draws=10, n_warmup=20),
    "bayes_gp matern, tied": bayes_gp(
        preset="loria_bhadra", sampler="tgp", emulate_tgp_matern_bug=True, asks=(rows_like_training,)
    ),
    "bayes_gp over test inputs": bayes_gp(
        scale_over="train_and_test", sampler="tgp", data="space", how=with_test_inputs
    ),
    "ml_gp": ml_gp(asks=(relevance,)),
    "ml_gp, space": ml_gp(data="space", nugget=0.3),
    "ml_gp raw": ml_gp(standardize=False, data="plane"),
    "ml_gp inputs": ml_gp(standardize="inputs"),
    "shallow_stable": shallow(),
    "shallow_stable, two workers": shallow(n_jobs=2, twin="shallow_stable"),
    "shallow_stable, extended": shallow(how=extended, twin="shallow_stable"),
    "shallow_stable, resumed": shallow(how=stopped_and_resumed, twin="shallow_stable"),
    "shallow_stable, plane": shallow(data="plane", n_draws=8, n_warmup=10, asks=(relevance,)),
    "shallow_stable, space": shallow(data="space", n_draws=4, n_warmup=6, n_chains=1),
    "shallow_stable independence": shallow(sampler="independence"),
    "shallow_stable published": shallow(sampler="independence", emulate_published=True, noise_prior="code"),
    "shallow_stable alpha 0.5, nu 2": shallow(alpha=0.5, nu=2.0, standardize="inputs"),
    "shallow_stable alpha 2": shallow(alpha=2, standardize=False),
    "shallow_stable noise known": shallow(noise_variance=1.5, point="mean"),
    "shallow_stable noise by row": shallow(noise_variance=row_noise("line")),
    "diwp": diwp(),
    "diwp one map": diwp(n_maps=1, standardize="inputs"),
    "diwp three maps, batches": diwp(n_maps=3, batch_size=7, data="plane"),
    "diwp bayesfunc": diwp(pt_mode="bayesfunc", batch_size=9, amplitude=False),
    "diwp learn_inputs": diwp(learn_inputs=True, data="space", learning_rates=(3e-2,)),
    "diwp noise known": diwp(noise_variance=1.5, standardize=False, point="mean"),
    "command kernel": command("kernel", "--set", "depth=2"),
    "command auto": command("auto", "--set", "n_units=5"),
    "command compare": comparison,
}  # fmt: skip


# Files ---------------------------------------------------------------------------------------------------------------


def selected(words: str) -> list[str]:
    """Cases whose name holds the words, each after its twin."""
    names = [name for name in CASES if words in name]
    wanted = {*names, *(twin_of(name) for name in names)}
    return [name for name in CASES if name in wanted]


def twin_of(name: str) -> str | None:
    return getattr(CASES[name], "twin", None)


def run_case(name: str) -> Arrays:
    """The arrays of a case, or why there are none, and the seconds it took."""
    started = time.perf_counter()
    try:
        arrays = {f"array/{key}": np.asarray(value) for key, value in CASES[name]().items()}
    except UnknownHereError as unknown:
        arrays = {"unknown": np.asarray(str(unknown))}
    except Exception as error:
        printed = getattr(error, "stderr", None) or "".join(traceback.format_exception(error)[-4:])
        arrays = {"error": np.asarray(f"{type(error).__name__}: {error}"), "printed": np.asarray(printed)}
    return {**arrays, "seconds": np.asarray(time.perf_counter() - started)}


def write_arrays(path: Path, arrays: Arrays) -> None:
    """One file, complete or absent."""
    part = path.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    os.replace(part, path)


def require_source(source: Path | None) -> None:
    """Refuse to run on another cadlag than the one asked for."""
    import cadlag  # noqa: PLC0415  the cases are listed without it

    found = Path(cadlag.__file__).resolve()
    if source is not None and not found.is_relative_to(source.resolve()):
        raise SystemExit(f"cadlag is {found}, not in {source}: set PYTHONPATH to it")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="for the files; a case that is there is left alone")
    parser.add_argument("--only", default="", help="words that a case's name holds")
    parser.add_argument("--source", type=Path, help="where cadlag must be found")
    parser.add_argument("--list", action="store_true", help="print names and twins instead, as JSON")
    options = parser.parse_args()
    names = selected(options.only)
    if options.list or options.folder is None:
        print(json.dumps({name: twin_of(name) for name in names}))
        return
    require_source(options.source)
    warnings.simplefilter("ignore")
    for name in names:
        path = options.folder / f"{name}.npz"
        if not path.exists():
            write_arrays(path, run_case(name))


if __name__ == "__main__":
    main()
