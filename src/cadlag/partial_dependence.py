"""g_j(x) = n⁻¹ Σ_i f(x_i with column j set to x): how the function depends on one input, averaged over the rows.

Given a draw the average of a Gaussian process is Gaussian too, so its law over all draws is a mixture of normals, as
that of every other prediction is, and its bands are exact.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cadlag.inference import as_generator
from cadlag.predictive import Predictive
from cadlag.regressor import Regressor

Array = NDArray[np.float64]


def partial_dependence(
    model: Regressor, X: ArrayLike, column: int | Sequence[int], grid: ArrayLike, n_rows: int = 20,
    n_atoms: int = 100, random_state: Any = 0,
) -> Predictive:  # fmt: skip
    """Law of the function averaged over rows, one or more of the inputs being given.

    Parameters
    ----------
    model
        A fitted regressor.
    X
        Rows to average over, (n, n_features), in their own units.
    column
        Number of the input, or numbers of inputs that are given together.
    grid
        Its values, (m,), or theirs, (m, inputs).
    n_rows
        At most this many of the rows, picked at random; the cost grows as the square of their number.
    n_atoms
        At most this many draws, evenly spaced.
    random_state
        Seed of the choice of rows.

    Returns
    -------
    Predictive
        The law at each value, in units of y.
    """
    model._require_fitted()
    rows, columns = np.asarray(X, dtype=float), np.atleast_1d(column)
    values = np.asarray(grid, dtype=float).reshape(-1, len(columns))
    picked = np.sort(as_generator(random_state).permutation(len(rows))[:n_rows])
    inputs = np.repeat(rows[picked][None], len(values), axis=0)
    inputs[:, :, columns] = values[:, None, :]
    law = Predictive(*_averages(model, inputs, n_atoms))
    return law.affine(float(model.response_scaling_.centre), float(model.response_scaling_.scale))


def _averages(model: Regressor, inputs: Array, n_atoms: int) -> tuple[Array, Array]:
    """Means and variances of the averages given each draw, (draws, m) each."""
    m, n, p = inputs.shape
    flat = model.input_scaling_.apply(inputs.reshape(m * n, p))
    model._require_square(m * n)
    count = model._n_atoms()
    atoms = np.unique(np.linspace(0, count - 1, min(count, n_atoms)).round().astype(int))

    def each() -> Iterator[tuple[Array, Array]]:
        for mean, covariance, _ in model._joint(flat, atoms):
            blocks = covariance.reshape(m, n, m, n)
            yield mean.reshape(m, n).mean(axis=1), np.einsum("kikj->k", blocks) / n**2

    means, variances = (np.stack(part) for part in zip(*each()))
    return means, np.maximum(variances, 0.0)
