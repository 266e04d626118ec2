"""The methods by name, and `load`, which reads what any of them wrote."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from typing import Any

from cadlag.registry import REGRESSORS
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.storage import read_tree

METHODS: dict[str, Any] = {
    name: getattr(import_module(module), regressor) for name, (module, regressor) in REGRESSORS.items()
}


def with_settings(name: str, settings: Mapping[str, Any]) -> Any:
    """An estimator with those of the settings that it has."""
    model = METHODS[name]()
    known = model.get_params()
    model.set_params(**{key: value for key, value in settings.items() if key in known})
    return model


@contextmanager
def whole_fits() -> Iterator[None]:
    """Let a fit that is interrupted raise KeyboardInterrupt, instead of returning what it has with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield
        except InterruptedFitWarning:
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
