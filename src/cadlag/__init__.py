"""Bayesian regression on functions that jump."""

from importlib import import_module
from typing import Any

_HOMES = {
    "BayesGPRegressor": "cadlag.baselines.bayes_gp.estimator",
    "DIWPRegressor": "cadlag.baselines.diwp.estimator",
    "MLGPRegressor": "cadlag.baselines.ml_gp.estimator",
    "NNGPRegressor": "cadlag.baselines.nngp.estimator",
    "ShallowStableRegressor": "cadlag.baselines.shallow_stable.estimator",
    "StableKernelRegressor": "cadlag.kernel_process.estimator",
    "StableNetworkRegressor": "cadlag.network.estimator",
    "Predictive": "cadlag.predictive",
    "load": "cadlag.methods",
}

__all__ = [
    "BayesGPRegressor",
    "DIWPRegressor",
    "MLGPRegressor",
    "NNGPRegressor",
    "Predictive",
    "ShallowStableRegressor",
    "StableKernelRegressor",
    "StableNetworkRegressor",
    "load",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cadlag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
