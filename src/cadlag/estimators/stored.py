"""Positions -> draws by name: what every method shares whose atoms are positions of a model.

A method supplies its settings, its model on standardised data and the names of its draws; the posterior is made the
same way for all of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.estimators.base import AtomRegressor
from cadlag.estimators.files import checked
from cadlag.posterior import Posterior
from cadlag.sampling.chains import checked_chain

Array = NDArray[np.float64]


class StoredRegressor(AtomRegressor):
    """A regressor whose posterior is a set of positions."""

    n_atoms: int

    # What a method supplies ------------------------------------------------------------------------------------------

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

    def _standardised_data(self) -> tuple[Array, Array]:
        return self._training_inputs(), self.model_.y

    def _relabel(self) -> None:
        self._set_posterior(self.posterior_.positions, self.posterior_.stats)

    def _own_tree(self) -> dict[str, Any]:
        return {
            "data": {"X": self._training_inputs(), "y": self.model_.y}, "positions": self.posterior_.positions,
            "stats": self.posterior_.stats, "chains": self.chains_,
        }  # fmt: skip

    def _restore(self, tree: dict[str, Any]) -> None:
        y = checked(tree["data"]["y"], (None,))
        self._require_fit_memory(len(y))
        self.model_ = self._make_model(checked(tree["data"]["X"], (len(y), self.n_features_in_)), y)
        # A draw may be NaN or infinite; what comes of it is refused when it is used.
        positions = checked(tree["positions"], (None, None, self.model_.dimension), finite=False)
        stats = {name: checked(values, positions.shape[:2], finite=False) for name, values in tree["stats"].items()}
        self.chains_ = [checked_chain(chain, self.model_.dimension) for chain in tree["chains"]]
        self._set_posterior(positions, stats)
