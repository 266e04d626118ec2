"""model -> one HTML file: no network, no script, pictures inside; every word of the user's is escaped."""

import hashlib
import importlib.metadata
import os
import platform
import re
import warnings
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cadlag.report.sections import sections
from cadlag.storage import replacing
from cadlag.verdict import Evidence, gather, verdict

try:
    from jinja2 import Environment, StrictUndefined
except ImportError:
    raise ImportError("a report needs Jinja2: pip install 'cadlag[report]'") from None

_PACKAGES = ("cadlag", "numpy", "scipy", "numba", "scikit-learn", "joblib", "arviz-stats")
_BESIDE_THE_DRAWS = ("n_jobs", "progress", "max_memory")  # settings that change no result


def write_report(model: Any, path: str | PathLike[str], X: Any = None, y: Any = None, title: str | None = None) -> None:
    """Write one self-contained HTML page about a fitted model.

    Parameters
    ----------
    model
        A fitted regressor.
    path
        The file; it is complete or absent.
    X
        Held-out inputs to check calibration on; without them training rows are left out one at a time, in closed form,
        by methods that can.
    y
        Their responses.
    title
        Heading of the page; the name of the method by default.
    """
    check_is_fitted(model)
    if (X is None) != (y is None):
        raise ValueError("held-out rows need both X and y: give both, or neither to leave training rows out")
    with warnings.catch_warnings():
        # A font without a user's letters draws boxes; the tables beside the picture still have the words.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        page = _render(gather(model, X, y), title)
    with replacing(os.fspath(path)) as stream:
        stream.write(page.encode("utf-8"))


def _render(evidence: Evidence, title: str | None) -> str:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("cadlag.report").joinpath("page.html").read_text(encoding="utf-8"))
    name = type(evidence.model).__name__
    n, p = evidence.X.shape
    inputs = evidence.names[0] if p == 1 else f"{p} inputs"
    about = [evidence.target] if evidence.recipe is not None else []
    subtitle = " · ".join([*about, name, f"{n} rows", inputs])
    return template.render(
        title=_printable(title or f"Report: {_spaced(name)}"), subtitle=_printable(subtitle),
        findings=verdict(evidence), sections=sections(evidence), settings=_settings(evidence), versions=_versions(),
        recipe=_recipe(evidence.model), is_seeded=evidence.model.get_params().get("random_state", 0) is not None,
        printable=_printable,
    )  # fmt: skip


def _spaced(name: str) -> str:
    """The name of a class in words: Stable Network of StableNetworkRegressor."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Regressor"))


def _printable(text: Any) -> str:
    """Control characters shown as such: some of them are not allowed in a page at all."""
    return "".join(letter if letter.isprintable() else "�" for letter in str(text))


def _settings(evidence: Evidence) -> list[tuple[str, str]]:
    model = evidence.model
    rows = [(name, _setting(value)) for name, value in model.get_params(deep=False).items()]
    n, p = evidence.X.shape
    digest = hashlib.sha256(b"".join(part.tobytes() for part in model._standardised_data())).hexdigest()[:16]
    return [("data", f"{n} rows, {p} {'input' if p == 1 else 'inputs'}: {', '.join(evidence.names)}"),
            ("SHA-256 of the standardised data", f"{digest}…"), *rows]  # fmt: skip


def _setting(value: Any) -> str:
    if isinstance(value, np.ndarray | list) and np.size(value) > 6:
        return f"{np.size(value)} numbers, from {np.min(value):.4g} to {np.max(value):.4g}"
    return repr(value)


def _recipe(model: Any) -> str:
    """A call that makes this model again."""
    defaults = type(model)().get_params(deep=False)
    changed = {
        name: value for name, value in model.get_params(deep=False).items()
        if name not in _BESIDE_THE_DRAWS and not np.array_equal(value, defaults[name])
    }  # fmt: skip
    name = type(model).__name__
    arguments = ", ".join(f"{key}={'...' if np.size(value) > 6 else repr(value)}" for key, value in changed.items())
    return f"from cadlag import {name}\nmodel = {name}({arguments}).fit(X, y)"


def _versions() -> list[tuple[str, str]]:
    found = [("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
