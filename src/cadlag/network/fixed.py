"""f(x) = Σ_j w_j φ_j(x) + Σ_k b_k c_k(x), b_k ~ N(0, B_k): columns beside the units, with known prior variances B_k.

Trends, seasons and known predictors are such columns. They stand after the units' in Φ, no move touches them, and their
weights are integrated out with the units'.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def no_columns(X: Array) -> Array:
    """None at all, (n, 0)."""
    return np.empty((len(X), 0))


@dataclass(frozen=True)
class FixedColumns:
    """Columns of known functions of the inputs, with prior variances, that no move of the network changes.

    Attributes
    ----------
    at
        The columns at given inputs, a one first in each row: (n, q) to (n, k). A function that can be pickled.
    variances
        B, (k,).
    """

    at: Callable[[Array], Array] = no_columns
    variances: Array = field(default_factory=lambda: np.empty(0))


NONE = FixedColumns()
