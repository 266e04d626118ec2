"""The registry of methods: one plain dict, name to estimator."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from cadlag.baselines.bayes_gp.estimator import BayesGPRegressor
from cadlag.baselines.diwp.estimator import DIWPRegressor
from cadlag.baselines.ml_gp.estimator import MLGPRegressor
from cadlag.baselines.nngp.estimator import NNGPRegressor
from cadlag.baselines.shallow_stable.estimator import ShallowStableRegressor
from cadlag.kernel_process.estimator import StableKernelRegressor
from cadlag.network.estimator import StableNetworkRegressor
from cadlag.storage import read_tree

METHODS: dict[str, Any] = {
    "kernel": StableKernelRegressor,
    "network": StableNetworkRegressor,
    "nngp": NNGPRegressor,
    "ml_gp": MLGPRegressor,
    "bayes_gp": BayesGPRegressor,
    "shallow_stable": ShallowStableRegressor,
    "diwp": DIWPRegressor,
}


@contextmanager
def whole_fits() -> Iterator[None]:
    """Let a fit that is interrupted raise KeyboardInterrupt, instead of returning what it has with a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "interrupted", UserWarning)
        try:
            yield
        except UserWarning as warning:
            if not str(warning).startswith("interrupted"):
                raise
            raise KeyboardInterrupt from None


def load(path: str | PathLike[str], max_memory: float | None = None) -> Any:
    """Read a fitted regressor that `save` wrote.

    Parameters
    ----------
    path
        The file.
    max_memory
        Bytes beyond which the regressor refuses, whatever limit it was fitted with; None for half of the machine's
        memory.

    Returns
    -------
    Any
        The regressor, ready to predict.
    """
    tree = read_tree(path, "model")
    method = tree.get("method")
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"{path} holds a model of the unknown method {method!r}: a newer cadlag may read it")
    try:
        return METHODS[method]._from_tree(tree, max_memory)
    except MemoryError as error:
        raise MemoryError(f"{path} holds more than may be read: {error}, or give load() a larger max_memory") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{path} is not a complete model file: {error}") from error
