"""Bayesian regression on functions that jump."""

from importlib import import_module
from typing import Any

from cadlag.registry import REGRESSORS

_HOMES = {name: module for module, name in REGRESSORS.values()} | {
    "Predictive": "cadlag.predictive",
    "load": "cadlag.methods",
}

__all__ = sorted(_HOMES)
__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cadlag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
