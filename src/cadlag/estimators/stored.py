"""Positions -> draws by name: what every method shares whose atoms are positions of a model.

A method supplies its settings, its model on standardised data and the names of its draws; the posterior is made the
same way for all of them.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cadlag.estimators.base import AtomRegressor
from cadlag.posterior import Posterior

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

    def training_data(self) -> tuple[Array, Array]:
        """The data that it was fitted to, in their own units.

        Returns
        -------
        tuple[Array, Array]
            Inputs (n, n_features) and responses (n,).
        """
        check_is_fitted(self)
        inputs = self.input_scaling_.centre + self.input_scaling_.scale * self._training_inputs()
        return inputs, self._in_units(self.model_.y)

    def _own_tree(self) -> dict[str, Any]:
        return {
            "data": {"X": self._training_inputs(), "y": self.model_.y}, "positions": self.posterior_.positions,
            "stats": self.posterior_.stats, "chains": self.chains_,
        }  # fmt: skip

    def _restore(self, tree: dict[str, Any]) -> None:
        self.model_ = self._make_model(tree["data"]["X"], tree["data"]["y"])
        self.chains_ = tree["chains"]
        self._set_posterior(tree["positions"], tree["stats"])
