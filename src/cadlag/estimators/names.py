"""Names of inputs: a user's columns, or x0, x1, ... where arrays were given."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def input_names(model: Any) -> list[str]:
    """Names of the inputs of a fitted regressor: its columns', or x0, x1, ...

    Parameters
    ----------
    model
        A fitted regressor.

    Returns
    -------
    list[str]
        As the user wrote them.
    """
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


@contextmanager
def plain_arrays() -> Iterator[None]:
    """Inside, a model that was fitted to named columns takes arrays without a warning: here their order is its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
