"""What a report looks at: y_k against p(y_k | the other rows), or held-out rows; jumps, relevance, computed once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.metrics import pit
from cadlag.plots.style import input_names, plain_arrays

Array = NDArray[np.float64]

COVERAGE = 0.9
_LEVELS = (0.5 - 0.5 * COVERAGE, 0.5, 0.5 + 0.5 * COVERAGE)
_OPERATIONS = 1e11  # spent on a closed form at most, about
_FEWEST_ATOMS, _MOST_ATOMS = 50, 500


@dataclass(frozen=True)
class Checked:
    """Responses with what was predicted of them without having seen them.

    Attributes
    ----------
    y
        Responses, (n,).
    prediction
        Medians, (n,).
    interval
        Central 90 % intervals, (n, 2).
    pit
        F_k(y_k), (n,).
    held_out
        Whether they are rows that a user held out, and not training rows left out one at a time.
    n_doubtful
        Rows whose left-out law is not to be trusted.
    """

    y: Array
    prediction: Array
    interval: Array
    pit: Array
    held_out: bool
    n_doubtful: int = 0

    @property
    def rmse(self) -> float:
        """Root mean squared error."""
        return float(np.sqrt(np.mean((self.y - self.prediction) ** 2)))

    @property
    def explained(self) -> float:
        """1 - mean squared error / variance of the responses; NaN where they do not vary."""
        variance = float(np.var(self.y))
        return 1.0 - self.rmse**2 / variance if variance > 0.0 else float("nan")

    @property
    def n_inside(self) -> int:
        """Rows inside their intervals."""
        return int(np.sum((self.y >= self.interval[:, 0]) & (self.y <= self.interval[:, 1])))


@dataclass(frozen=True)
class Evidence:
    """All that the page is made of.

    Attributes
    ----------
    model
        The fitted regressor.
    X
        Training inputs in their own units.
    y
        Training responses.
    names
        Of the inputs.
    checked
        Predictions of rows not seen, or None where none can be had.
    breaks
        Break points, or None.
    relevance
        Relevance of the inputs, or None with one input.
    """

    model: Any
    X: Array
    y: Array
    names: list[str]
    checked: Checked | None
    breaks: Any
    relevance: Any

    def most_relevant(self, most: int) -> list[int]:
        """Numbers of the inputs, the most relevant first.

        Parameters
        ----------
        most
            How many at most.

        Returns
        -------
        list[int]
            Column numbers.
        """
        if self.relevance is None:
            return list(range(len(self.names)))[:most]
        return [int(j) for j in np.argsort(-self.relevance["relevance"], kind="stable")[:most]]


def gather(model: Any, X: Any = None, y: Any = None) -> Evidence:
    """Look at a model once, for words and pictures alike.

    Parameters
    ----------
    model
        A fitted regressor.
    X
        Held-out inputs, or None.
    y
        Held-out responses, or None.

    Returns
    -------
    Evidence
        What was found.
    """
    inputs, responses = model.training_data()
    n_atoms = affordable_atoms(model)
    several = model.n_features_in_ > 1 and hasattr(model, "feature_relevance")
    return Evidence(
        model, inputs, responses, input_names(model),
        _held_out(model, X, y) if X is not None else _left_out(model, n_atoms), _breaks(model),
        model.feature_relevance(n_atoms=min(n_atoms, 100)) if several else None,
    )  # fmt: skip


def affordable_atoms(model: Any) -> int:
    """How many draws may each be conditioned on the data without a long wait.

    Parameters
    ----------
    model
        A fitted regressor.

    Returns
    -------
    int
        Between 50 and 500.
    """
    each = float(getattr(model.model_, "operations_to_condition", 1.0))
    return int(np.clip(_OPERATIONS / max(each, 1.0), _FEWEST_ATOMS, _MOST_ATOMS))


def _held_out(model: Any, X: Any, y: Any) -> Checked:
    responses = np.asarray(y, dtype=float).reshape(-1)
    with plain_arrays():
        law = model.predict_distribution(X)
    if len(law) != len(responses):
        raise ValueError(f"X has {len(law)} rows and y {len(responses)}: give a response for each row")
    low, middle, high = law.quantile(_LEVELS).T
    return Checked(responses, middle, np.column_stack([low, high]), pit(law, responses), held_out=True)


def _left_out(model: Any, n_atoms: int) -> Checked | None:
    if not hasattr(model, "leave_one_out") or len(model.model_.y) < 2:
        return None
    found = model.leave_one_out(n_atoms)
    low, middle, high = found.quantile(_LEVELS).T
    doubtful = int(np.sum(~found.is_trusted))
    return Checked(found.y, middle, np.column_stack([low, high]), found.pit, held_out=False, n_doubtful=doubtful)


def _breaks(model: Any) -> Any:
    """Break points of a method that has them, and None of one that is continuous or has a single input value."""
    if not hasattr(model, "break_points"):
        return None
    try:
        return model.break_points()
    except ValueError:
        return None
