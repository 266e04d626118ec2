"""A row asks a few others: what the regressors share whose covariance may be in full or sparse.

Beyond some rows each asks its neighbours, near at the scales of a mode given some of the rows. Draws, once they are
there, settle by their predictive score how many a new row asks.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from cadlag.kernel_process.neighbors import Neighbors
from cadlag.kernel_process.pilot import choose_asked, most_draws, with_neighbors
from cadlag.linalg.gaussian import Array
from cadlag.regressor import Regressor
from cadlag.settings import Either, Nothing, Open, Whole
from cadlag.storage import checked

DENSE_UP_TO = 1000  # rows; a gradient costs as much either way at about 500
FEWEST_ROWS = 2  # of which one may ask another
MOST_NEIGHBORS = 1000
NEIGHBORS = Either('"auto", None or an integer of at least 1', (Nothing(), Open(1, MOST_NEIGHBORS)))
_COUNT = Whole(1, MOST_NEIGHBORS)


class Asking(Regressor):
    """A regressor whose rows may ask few others."""

    _neighbors_asked: ClassVar[int] = 30

    neighbors: int | str | None
    _asks: int | None  # how many others each row asks, of the data at hand

    def _may_ask(self, n: int) -> bool:
        """Whether there is a covariance that may be sparse."""
        raise NotImplementedError

    def _wanted(self, n: int) -> int | None:
        """How many rows each row asks; None for all."""
        if not self._may_ask(n) or n < FEWEST_ROWS:
            return None
        if self.neighbors != "auto":
            return None if self.neighbors is None else int(self.neighbors)
        return None if n <= DENSE_UP_TO else self._neighbors_asked

    def _make_model(self, X: Array, y: Array, tree: Mapping[str, Any] | None = None) -> Any:
        """With the neighbours that a file holds, or those that the settings want."""
        kept = None if tree is None else tree.get("neighbors")
        if kept is not None:
            for name in ("n_neighbors", "n_asked"):
                _COUNT.require(name, kept[name])
        self._asks = self._wanted(len(y)) if tree is None else kept and int(kept["n_neighbors"])
        model = super()._make_model(X, y)
        if self._asks is None:
            return model
        if kept is None:
            try:
                return with_neighbors(model, self._asks)
            except ArithmeticError as error:
                raise ValueError(f"these data cannot be fitted as they are: {error}") from error
        weights = checked(kept["log_weights"], (model.n_inputs,))
        return replace(model, neighbors=Neighbors.find(model.X, weights, self._asks, kept["n_asked"]))

    def _keep(self, draws: Any, inference: Any) -> None:
        """Draws settle how many rows a new one asks."""
        if self.model_.neighbors is not None:
            n_chains, n_draws, d = draws.positions.shape
            asked = choose_asked(self.model_, draws.positions.reshape(n_chains * n_draws, d))
            self.model_ = replace(self.model_, neighbors=replace(self.model_.neighbors, n_asked=asked))
        super()._keep(draws, inference)

    def _atoms(self) -> Array:
        """Fewer of them where each costs more."""
        neighbors = self.model_.neighbors
        most = self.n_atoms if neighbors is None else min(self.n_atoms, most_draws(neighbors.n_asked))
        return np.asarray(self.posterior_.atoms(most))

    def _fingerprint(self) -> str:
        """With whom each row asks; of earlier versions' runs, whose covariance was in full, as it was."""
        own = super()._fingerprint()
        if self._asks is None:
            return own
        return hashlib.sha256(own.encode() + self.model_.neighbors.sets.members.tobytes()).hexdigest()

    def _own_tree(self) -> dict[str, Any]:
        """Neighbours are found again from the scales at which they are near."""
        own = self.model_.neighbors
        kept = own and {"log_weights": own.log_weights, "n_neighbors": own.sets.n_neighbors, "n_asked": own.n_asked}
        return {**super()._own_tree(), "neighbors": kept}
