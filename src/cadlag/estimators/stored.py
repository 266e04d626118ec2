"""Positions -> draws by name -> a file: what every method shares whose atoms are positions of a model.

A method supplies its settings, its model on standardised data and the names of its draws; the posterior and files are
the same for all of them.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cadlag.estimators.base import AtomRegressor
from cadlag.estimators.scaling import Scaling
from cadlag.posterior import Posterior
from cadlag.storage import write_tree

Array = NDArray[np.float64]


class StoredRegressor(AtomRegressor):
    """A regressor whose posterior is a set of positions."""

    _method: ClassVar[str]
    n_atoms: int

    # What a method supplies ------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        raise NotImplementedError

    def _require_fit_memory(self, n: int) -> None:
        """Refuse, before allocating, what would not fit."""
        raise NotImplementedError

    def _make_model(self, X: Array, y: Array) -> Any:
        """The target, on standardised data."""
        raise NotImplementedError

    def _training_inputs(self) -> Array:
        """The standardised inputs that the model was made of."""
        raise NotImplementedError

    def _labels(self) -> dict[str, list[str]]:
        """Names of the entries of each parameter that is a vector."""
        raise NotImplementedError

    def _named_draws(self, positions: Array) -> dict[str, Array]:
        """Draws by name, in natural units."""
        draws = self.model_.named(positions)
        if "noise_variance" in draws:
            draws["noise_variance"] = draws["noise_variance"] * float(self.response_scaling_.scale) ** 2
        return draws

    def _interchangeable(self, draws: dict[str, Array]) -> frozenset[str]:
        """The draws whose entries may change places, so that chains need not agree on them."""
        return frozenset()

    def _derived_draws(self, stats: dict[str, Array]) -> dict[str, Array]:
        """Quantities that the kernel reported with each draw, in natural units."""
        return {}

    def _pointwise(self) -> Callable[[Array], Array]:
        """Maker of log p(y_k | y_-k, draw), picklable."""
        raise NotImplementedError

    # The posterior ---------------------------------------------------------------------------------------------------

    def _set_posterior(self, positions: Array, stats: dict[str, Array]) -> None:
        draws = self._named_draws(positions) | self._derived_draws(stats)
        self.posterior_ = Posterior(
            positions, stats, draws, self._labels(), self._pointwise(), self._interchangeable(draws)
        )
        self.diagnostics_ = self.posterior_.diagnostics()

    def _n_atoms(self) -> int:
        return len(self._atoms())

    def _atoms(self) -> Array:
        return self.posterior_.atoms(self.n_atoms)

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
        self.feature_names_in_ = np.array(names, dtype=object)
        self._set_posterior(self.posterior_.positions, self.posterior_.stats)
        self.__dict__.pop("recipe_", None)
        if recipe is not None:
            self.recipe_ = recipe
        return self

    # Files -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted regressor to one file that needs no unpickling: :func:`cadlag.load` reads it.

        Parameters
        ----------
        path
            Where; the file is complete or absent.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        tree = {
            "method": self._method,
            "settings": {name: plain(value) for name, value in self.get_params(deep=False).items()},
            "data": {"X": self._training_inputs(), "y": self.model_.y},
            "feature_names": None if names is None else [str(name) for name in names],
            "n_features": int(self.n_features_in_),
            "input_scaling": {"centre": self.input_scaling_.centre, "scale": self.input_scaling_.scale},
            "response_scaling": {
                "centre": float(self.response_scaling_.centre), "scale": float(self.response_scaling_.scale)
            },
            "positions": self.posterior_.positions,
            "stats": self.posterior_.stats,
            "chains": self.chains_,
            "recipe": getattr(self, "recipe_", None),
        }  # fmt: skip
        write_tree(path, tree, "model")

    @classmethod
    def _from_tree(cls, tree: dict[str, Any]) -> Self:
        _check_shapes(tree)
        model = cls(**tree["settings"])
        model._check_settings()
        model.n_features_in_ = tree["n_features"]
        if tree["feature_names"] is not None:
            model.feature_names_in_ = np.array(tree["feature_names"], dtype=object)
        model.input_scaling_ = Scaling(tree["input_scaling"]["centre"], tree["input_scaling"]["scale"])
        response = tree["response_scaling"]
        model.response_scaling_ = Scaling(np.array(response["centre"]), np.array(response["scale"]))
        model.model_ = model._make_model(tree["data"]["X"], tree["data"]["y"])
        model.chains_ = tree["chains"]
        if tree["positions"].shape[2] != getattr(model.model_, "dimension", tree["positions"].shape[2]):
            raise ValueError("its draws are not of its model")
        model._set_posterior(tree["positions"], tree["stats"])
        if tree.get("recipe") is not None:
            model.recipe_ = tree["recipe"]
        return model


def _check_shapes(tree: dict[str, Any]) -> None:
    """Refuse a tree whose arrays cannot be those of a model, whatever its method."""
    X, y, inputs, response = tree["data"]["X"], tree["data"]["y"], tree["input_scaling"], tree["response_scaling"]
    arrays = (X, y, tree["positions"], inputs["centre"], inputs["scale"], *tree["stats"].values())
    if not all(isinstance(array, np.ndarray) and array.dtype.kind in "biuf" for array in arrays):
        raise ValueError("an array is missing")
    p, names = tree["n_features"], tree["feature_names"]
    shapes = [X.shape, y.shape, inputs["centre"].shape, inputs["scale"].shape]
    alike = all(array.shape[:2] == tree["positions"].shape[:2] for array in arrays[5:])
    if type(p) is not int or shapes != [(len(y), p), (len(y),), (p,), (p,)] or tree["positions"].ndim != 3 or not alike:
        raise ValueError("its arrays do not fit each other")
    if not (tree["positions"].size or tree["positions"].shape[2] == 0) or min(tree["positions"].shape[:2]) == 0:
        raise ValueError("it has no draws")
    if names is not None and not (len(names) == p and all(isinstance(name, str) for name in names)):
        raise ValueError("its names do not fit its inputs")
    numbers = (*arrays[:2], *arrays[3:5], np.array([response["centre"], response["scale"]], dtype=float))
    if not all(np.isfinite(array).all() for array in numbers) or min(inputs["scale"].min(), response["scale"]) <= 0:
        raise ValueError("a number is missing")


def plain(value: Any) -> Any:
    """A setting as a file can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    array = np.asarray(value)
    return array if array.dtype.kind in "biuf" else None
