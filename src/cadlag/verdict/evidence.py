"""y_k against p(y_k | the other rows), or held-out rows; jumps, relevance: a model looked at once, for all who ask."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag.left_out import LeaveOneOut
from cadlag.metrics import pit
from cadlag.names import grouped_columns, input_names, plain_arrays
from cadlag.recipes import Input, Recipe

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
    log_score
        Log predictive density of each row, (n,), or None.
    """

    y: Array
    prediction: Array
    interval: Array
    pit: Array
    held_out: bool
    n_doubtful: int = 0
    log_score: Array | None = None

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
    """All that verdict and page are made of.

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
        Relevance of the inputs, a category being one, or None with one input.
    recipe
        How tables are read, for a model that the command fitted; it knows dates from numbers.
    """

    model: Any
    X: Array
    y: Array
    names: list[str]
    checked: Checked | None
    breaks: Any
    relevance: Any
    recipe: Recipe | None = None

    @property
    def target(self) -> str:
        """What is predicted, by its name."""
        return self.recipe.target.name if self.recipe is not None else "y"

    def text(self, name: str, value: float) -> str:
        """A value of an input as its user wrote it: dates as dates."""
        found = self._input(name)
        return f"{value:.6g}" if found is None else found.text(value)

    def is_date(self, column: int) -> bool:
        """Whether an input is a date."""
        found = self._input(self.names[column])
        return found is not None and found.kind == "date"

    def _input(self, name: str) -> Input | None:
        columns = () if self.recipe is None else self.recipe.inputs
        return next((column for column in columns if name in column.columns), None)

    def most_relevant(self, most: int) -> list[tuple[str, list[int]]]:
        """Inputs by name with the numbers of their columns, of which a category has several, by falling relevance."""
        parts = grouped_columns(self.names, _categories(self.recipe))
        if self.relevance is None:
            return parts[:most]
        return [parts[row] for row in np.argsort(-self.relevance["relevance"], kind="stable")[:most]]


def gather(model: Any, X: Any = None, y: Any = None, left_out: LeaveOneOut | None = None) -> Evidence:
    """Look at a model once, for words and pictures alike.

    Parameters
    ----------
    model
        A fitted regressor.
    X
        Held-out inputs, or None.
    y
        Held-out responses, or None.
    left_out
        What leaving one out gave, where it is known already.

    Returns
    -------
    Evidence
        What was found.
    """
    inputs, responses = model.training_data()
    recipe = Recipe.of_model(model)
    return Evidence(
        model, inputs, responses, input_names(model),
        _held_out(model, X, y) if X is not None else _left_out(leave_out(model) if left_out is None else left_out),
        _breaks(model), _relevance(model, _categories(recipe)), recipe,
    )  # fmt: skip


def _categories(recipe: Recipe | None) -> dict[str, list[str]]:
    """Inputs that say one thing together."""
    return {} if recipe is None else recipe.categories


def _relevance(model: Any, groups: dict[str, list[str]]) -> Any:
    if not hasattr(model, "feature_relevance") or len(grouped_columns(input_names(model), groups)) < 2:
        return None
    return model.feature_relevance(n_atoms=min(affordable_atoms(model), 100), groups=groups)


def leave_out(model: Any) -> LeaveOneOut | None:
    """Every training row predicted from the others, by as many draws as are affordable."""
    if not hasattr(model, "leave_one_out") or len(model.model_.y) < 2:
        return None
    return model.leave_one_out(affordable_atoms(model))


def affordable_atoms(model: Any) -> int:
    """How many draws may each be conditioned on the data without a long wait."""
    each = float(getattr(getattr(model, "model_", None), "operations_to_condition", 1.0))
    return int(np.clip(_OPERATIONS / max(each, 1.0), _FEWEST_ATOMS, _MOST_ATOMS))


def _held_out(model: Any, X: Any, y: Any) -> Checked:
    responses = np.asarray(y, dtype=float).reshape(-1)
    with plain_arrays():
        law = model.predict_distribution(X)
    if len(law) != len(responses):
        raise ValueError(f"X has {len(law)} rows and y {len(responses)}: give a response for each row")
    low, middle, high = law.quantile(_LEVELS).T
    return Checked(
        responses, middle, np.column_stack([low, high]), pit(law, responses), held_out=True,
        log_score=np.asarray(law.logpdf(responses)),
    )  # fmt: skip


def _left_out(found: LeaveOneOut | None) -> Checked | None:
    """Rows that the others do not determine count as doubtful, and nowhere else."""
    if found is None or not found.is_known.any():
        return None
    known, doubtful = found.is_known, int(np.sum(~found.is_trusted))
    low, middle, high = found.quantile(_LEVELS)[known].T
    return Checked(
        found.y[known], middle, np.column_stack([low, high]), found.pit[known], held_out=False, n_doubtful=doubtful,
        log_score=found.log_score[known],
    )  # fmt: skip


def _breaks(model: Any) -> Any:
    """Break points of a method that has them, and None of one that is continuous or has a single input value."""
    if not hasattr(model, "break_points"):
        return None
    try:
        return model.break_points()
    except ValueError:
        return None
