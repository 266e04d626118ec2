"""Names of inputs: a user's columns, or x0, x1, ... where arrays were given."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
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


def grouped_columns(names: list[str], groups: Mapping[str, Sequence[str]] | None) -> list[tuple[str, list[int]]]:
    """Inputs that are taken together, and those in no group by themselves.

    Parameters
    ----------
    names
        Of all inputs.
    groups
        Name of a group to those of its inputs; None for no groups.

    Returns
    -------
    list[tuple[str, list[int]]]
        Names with numbers of columns, a group standing where its first input stands.
    """
    found = []
    for group, members in (groups or {}).items():
        if unknown := [member for member in members if member not in names]:
            raise ValueError(f"groups[{group!r}] has {unknown[0]!r}, which is no input: choose from {', '.join(names)}")
        if not members:
            raise ValueError(f"groups[{group!r}] is empty: give it at least one input")
        found.append((group, [j for j, name in enumerate(names) if name in members]))
    taken = {j for _, columns in found for j in columns}
    found += [(name, [j]) for j, name in enumerate(names) if j not in taken]
    return sorted(found, key=lambda row: row[1][0])


@contextmanager
def plain_arrays() -> Iterator[None]:
    """Inside, a model that was fitted to named columns takes arrays without a warning: here their order is its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
