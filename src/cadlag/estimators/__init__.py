"""The scikit-learn faces of the models."""

from cadlag.estimators.kernel import StableKernelRegressor

__all__ = ["StableKernelRegressor"]
