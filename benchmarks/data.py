"""The data of the benchmarks: simulations, UCI tables where they are at hand, noise where nothing else is needed."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import Settings
from cadlag.datasets import load_uci, simulate


class MissingError(Exception):
    """Something optional is not there; says what."""


def uci_directory() -> Path:
    """Where the UCI tables are: in the directory that CADLAG_DATA names."""
    directory = os.environ.get("CADLAG_DATA")
    if not directory or not Path(directory).is_dir():
        raise MissingError("set CADLAG_DATA to the directory that holds the UCI tables")
    return Path(directory)


def standardise(values: np.ndarray) -> np.ndarray:
    """Mean zero and standard deviation one, ddof 1."""
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


def with_intercept(X: np.ndarray) -> np.ndarray:
    """A column of ones first."""
    return np.column_stack([np.ones(len(X)), X])


def yacht(_seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of Yacht, split 0, standardised, with intercept: 277 rows whatever the seed."""
    try:
        data = load_uci("yacht", 0, uci_directory())
    except FileNotFoundError as error:
        raise MissingError(str(error)) from error
    return with_intercept(standardise(data.X_train)), standardise(data.y_train)


def jump(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A replicate of the one-dimensional simulation, raw, with intercept: 40 rows."""
    data = simulate("1d", seed)
    return with_intercept(data.X_train), data.y_train


def noise(n: int, n_inputs: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal inputs and responses, with intercept."""
    rng = np.random.default_rng(seed)
    return with_intercept(rng.standard_normal((n, n_inputs))), rng.standard_normal(n)


def energy(n: int) -> tuple[np.ndarray, np.ndarray, str]:
    """n rows of Energy, standardised, with intercept, or noise of the same shape; and which it is."""
    try:
        data = load_uci("energy", 0, uci_directory())
    except (MissingError, FileNotFoundError):
        return *noise(n), "random inputs: the Energy table was not found"
    X, y = np.concatenate([data.X_train, data.X_test])[:n], np.concatenate([data.y_train, data.y_test])[:n]
    return with_intercept(standardise(X)), standardise(y), "inputs of Energy"


# Loaders of the sampler benchmarks, called with the seed.
SAMPLED: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {"yacht": yacht, "1d": jump}


def sampled(name: str, seed: int, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Data of a sampler benchmark; a rehearsal takes 60 rows at most."""
    X, y = SAMPLED[name](seed)
    n = settings.choose(len(y), 60)
    return X[:n], y[:n]
