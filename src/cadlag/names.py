"""Names of inputs: a user's columns, or x0, x1, ... where arrays were given."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


def input_names(model: Any) -> list[str]:
    """Names of the inputs of a fitted regressor: its columns', or x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def refuse_twice(names: Sequence[Any], what: str) -> None:
    """Refuse two inputs of one name: what is said of one would be taken for the other."""
    if twice := [name for name, times in Counter(map(str, names)).items() if times > 1]:
        raise ValueError(f"{what} has two inputs of the name {twice[0]!r}: rename one")


def labels_beside(own: str, names: Sequence[str]) -> list[str]:
    """Labels of draws that belong to one quantity of the model and to each input, no two alike."""
    while own in names:
        own = f"({own})"
    return distinct([own, *names])


def distinct(names: Sequence[str]) -> list[str]:
    """Names of which no two are alike: those that were there before get a number behind them."""
    taken, seen = set(names), dict[str, None]()
    for name in names:
        label, number = name, 2
        while label in seen or (label != name and label in taken):
            label, number = f"{name} ({number})", number + 1
        seen[label] = None
    return list(seen)


def grouped_columns(names: list[str], groups: Mapping[str, Sequence[str]] | None) -> list[tuple[str, list[int]]]:
    """Inputs that are taken together, and those in no group by themselves."""
    found, number = [], {name: j for j, name in enumerate(names)}
    for group, members in (groups or {}).items():
        if unknown := [member for member in members if member not in number]:
            raise ValueError(f"groups[{group!r}] has {unknown[0]!r}, which is no input: choose from {', '.join(names)}")
        if not members:
            raise ValueError(f"groups[{group!r}] is empty: give it at least one input")
        if group in number and group not in members:
            raise ValueError(f"groups[{group!r}] has the name of an input that is not in it: name it otherwise")
        found.append((group, sorted({number[member] for member in members})))
    taken = {j for _, columns in found for j in columns}
    found += [(name, [j]) for j, name in enumerate(names) if j not in taken]
    return sorted(found, key=lambda row: row[1][0])


@contextmanager
def plain_arrays() -> Iterator[None]:
    """Inside, a model that was fitted to named columns takes arrays without a warning: here their order is its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
