"""Settings, names, scaling, recipe and what a method adds = one file: how any fitted regressor is written and read.

What is read is checked before it is used, for the compiled code looks at no bounds: arrays that do not fit each other
are a ValueError.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from cadlag.data import Scaling
from cadlag.names import refuse_twice
from cadlag.settings import FREE, Setting, shown
from cadlag.storage import write_tree

Array = NDArray[np.float64]


class FiledRegressor(RegressorMixin, BaseEstimator):
    """A regressor that knows its data, the names of its inputs and its file."""

    _method: ClassVar[str]
    _settings: ClassVar[Mapping[str, Setting]]
    _fitted_with: Mapping[str, Any] = MappingProxyType({})
    input_scaling_: Scaling
    response_scaling_: Scaling

    # What a method supplies ------------------------------------------------------------------------------------------

    def _own_tree(self) -> dict[str, Any]:
        """What a file holds besides settings and scaling."""
        raise NotImplementedError

    def _restore(self, tree: dict[str, Any]) -> None:
        """Become fitted again from what a file holds, whose arrays must be checked here."""
        raise NotImplementedError

    def _relabel(self) -> None:
        """Make the posterior again, the names of inputs being others."""
        raise NotImplementedError

    def _standardised_data(self) -> tuple[Array, Array]:
        """Training inputs and responses as the model sees them."""
        raise NotImplementedError

    # Settings --------------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        """Refuse the first setting that it cannot have; a method adds what it asks of several together."""
        for name, setting in self._settings.items():
            setting.require(name, getattr(self, name))

    def _require_fitted(self) -> None:
        """Refuse a question before fit, or after a setting has been changed that the draws depend on."""
        check_is_fitted(self)
        self._check_settings()
        for name, then in self._fitted_with.items():
            now = plain(getattr(self, name))
            if not np.array_equal(now, then):
                raise ValueError(
                    f"{name} was {shown(then)} when the model was fitted and is {shown(now)}: set it back, or fit again"
                )

    def _remember_settings(self) -> None:
        """Keep what the fit depends on, to notice a change of it."""
        self._fitted_with = {name: plain(getattr(self, name)) for name in self._settings if name not in FREE}

    # The data and their names ----------------------------------------------------------------------------------------

    def training_data(self) -> tuple[Array, Array]:
        """The data that it was fitted to, in their own units.

        Returns
        -------
        tuple[Array, Array]
            Inputs (n, n_features) and responses (n,).
        """
        check_is_fitted(self)
        X, y = self._standardised_data()
        inputs, response = self.input_scaling_, self.response_scaling_
        return inputs.centre + inputs.scale * X, float(response.centre) + float(response.scale) * y

    def name_inputs(self, names: Sequence[str], recipe: dict[str, Any] | None = None) -> Self:
        """Name the inputs of a regressor that was fitted to an array.

        Parameters
        ----------
        names
            A name for each input.
        recipe
            How the inputs are made of a table, see :class:`cadlag.recipes.Recipe`; kept in the model's file.

        Returns
        -------
        Self
            The same regressor, its draws under these names.
        """
        check_is_fitted(self)
        if len(names) != self.n_features_in_:
            raise ValueError(f"{len(names)} names were given for {self.n_features_in_} inputs")
        refuse_twice(names, "the list of names")
        self.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        self._relabel()
        self.__dict__.pop("recipe_", None)
        if recipe is not None:
            self.recipe_ = recipe
        return self

    # The file --------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted regressor to one file that needs no unpickling: :func:`cadlag.load` reads it.

        Parameters
        ----------
        path
            Where; the file is complete or absent.
        """
        self._require_fitted()
        names = getattr(self, "feature_names_in_", None)
        tree = {
            "method": self._method,
            "settings": {name: plain(value) for name, value in self.get_params(deep=False).items()},
            "feature_names": None if names is None else [str(name) for name in names],
            "n_features": int(self.n_features_in_),
            "input_scaling": {"centre": self.input_scaling_.centre, "scale": self.input_scaling_.scale},
            "response_scaling": {
                "centre": float(self.response_scaling_.centre), "scale": float(self.response_scaling_.scale)
            },
            "recipe": getattr(self, "recipe_", None),
            **self._own_tree(),
        }  # fmt: skip
        write_tree(path, tree, "model")

    @classmethod
    def _from_tree(cls, tree: dict[str, Any], max_memory: float | None = None) -> Self:
        """From a file; how much memory it may take is for whoever reads it to say, not for the file."""
        settings = {name: _as_now(cls._settings.get(name), value) for name, value in tree["settings"].items()}
        model = cls(**{**settings, "max_memory": max_memory})
        model._check_settings()
        model._remember_settings()
        p = model.n_features_in_ = _count(tree["n_features"])
        names = tree["feature_names"]
        if names is not None:
            if len(names) != p or not all(isinstance(name, str) for name in names):
                raise ValueError("its names do not fit its inputs")
            model.feature_names_in_ = np.array(names, dtype=object)
        inputs, response = tree["input_scaling"], tree["response_scaling"]
        model.input_scaling_ = Scaling(checked(inputs["centre"], (p,)), checked(inputs["scale"], (p,)))
        model.response_scaling_ = Scaling(_number(response["centre"]), _number(response["scale"]))
        if min(model.input_scaling_.scale.min(), float(model.response_scaling_.scale)) <= 0.0:
            raise ValueError("a scale is not positive")
        model._restore(tree)
        if tree.get("recipe") is not None:
            model.recipe_ = tree["recipe"]
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted once the scaling of the response is known and draws are there."""
        return hasattr(self, "posterior_")


def checked(array: Any, shape: Sequence[int | None], finite: bool = True) -> Array:
    """An array of a file, if it is one of numbers of this shape.

    Parameters
    ----------
    array
        What the file holds.
    shape
        What it must be; None for a length of at least one that is not known beforehand.
    finite
        Whether every number must be finite.

    Returns
    -------
    Array
        The same in double precision.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError("an array is missing")
    fits = array.ndim == len(shape) and all(
        found >= 1 if wanted is None else found == wanted for found, wanted in zip(array.shape, shape)
    )
    if not fits:
        raise ValueError(f"its arrays do not fit each other: one is {array.shape}")
    if finite and not np.isfinite(array).all():
        raise ValueError("a number is missing")
    return np.asarray(array, dtype=np.float64, order="C")


def _as_now(setting: Setting | None, value: Any) -> Any:
    """A setting that version 0.1 took, as this one takes it: 1 as True, True as 1, no workers as None."""
    if setting is None or not setting.wanted(value):
        return value
    others = [bool(value), None] if type(value) is int and value in (0, 1) else [int(value)] if value is True else []
    return next((other for other in others if not setting.wanted(other)), value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("its number of inputs is missing")
    return value


def _number(value: Any) -> Array:
    return checked(np.asarray(value), ())


def plain(value: Any) -> Any:
    """A setting as a file can hold it."""
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else value.item()  # a longdouble is its own item
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    array = np.asarray(value)
    return array if array.dtype.kind in "biuf" else None
