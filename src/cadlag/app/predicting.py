"""predict: table, model -> point, std, lower, upper a row."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from cadlag import metrics
from cadlag.app.common import Talk, check_place
from cadlag.data import OverflowedError
from cadlag.frames import Frame, read_frame, to_csv, write_csv
from cadlag.methods import load
from cadlag.names import plain_arrays
from cadlag.recipes import Numbers, Recipe

_ROWS_AT_ONCE = 4096
_SAME = 1e-9  # of the range of a column: what standardising and back may have changed


def predict(model_path: Path, data: Path, out: Path | None, coverage: float, drop_missing: bool, talk: Talk) -> None:
    """Predict every row of a table."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"--coverage must lie strictly between 0 and 1, got {coverage}")
    if out is not None:
        check_place(out, model_path, data)
    model, frame = load(model_path), read_frame(data)
    recipe = recipe_of(model, frame)
    numbers = recipe.encode(frame, drop_missing=drop_missing)
    talk.note(*frame.notes, *recipe.remarks(frame), *numbers.notes)
    values = np.full((frame.n_rows, 4), np.nan)
    try:
        values[numbers.rows] = _predictions(model, numbers.X, coverage)
    except OverflowedError as error:
        row = int(numbers.rows[error.row])
        raise ValueError(
            f"{data}, row {row + 1} lies too far from the training data: its prediction overflows"
        ) from error
    except ArithmeticError as error:
        raise ValueError(f"the draws in {model_path} cannot be evaluated ({error}): fit again") from error
    _tell_score(model, recipe, frame, numbers, values, coverage, talk)
    header = ("point", "std", "lower", "upper")
    rows = [[float(cell) for cell in row] for row in values]
    if out is not None:
        write_csv(out, header, rows)
        talk.say(f"Written: {out}, {len(rows)} rows: point prediction, standard deviation, and the ends of the "
                 f"{100 * coverage:g} % interval.", "green")  # fmt: skip
    elif not talk.as_json:
        sys.stdout.write(to_csv(header, rows))
    talk.end(
        {"coverage": coverage, "out": str(out or ""), **{name: list(values[:, j]) for j, name in enumerate(header)}}
    )


def recipe_of(model: Any, frame: Frame) -> Recipe:
    """How a table is read for a model: by its recipe, by the names of its inputs, or by the order of columns."""
    if (recipe := Recipe.of_model(model)) is not None:
        return recipe
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return Recipe.of_numbers([str(name) for name in names])
    if len(frame.columns) != model.n_features_in_:
        raise ValueError(
            f"the model was fitted to an array of {model.n_features_in_} columns without names, and {frame.path} has "
            f"{len(frame.columns)}: give exactly those, in their order"
        )
    return Recipe.of_numbers(list(frame.columns))


def _predictions(model: Any, X: Any, coverage: float) -> Any:
    parts = []
    with plain_arrays():
        for start in range(0, len(X), _ROWS_AT_ONCE):
            try:
                law = model.predict_distribution(X[start : start + _ROWS_AT_ONCE])
            except OverflowedError as error:
                raise OverflowedError(start + error.row) from error
            parts.append(np.column_stack([getattr(law, model.point), law.std, law.interval(coverage)]))
    return np.concatenate(parts)


def _tell_score(
    model: Any, recipe: Recipe, frame: Frame, numbers: Numbers, values: Any, coverage: float, talk: Talk
) -> None:
    """Where the table holds the target too, how good the predictions are."""
    if recipe.target.name not in frame.columns:
        return
    try:
        y = recipe.target.encode(frame)[:, 0]
    except ValueError as reason:
        talk.note(f"the predictions are not compared with {recipe.target.name!r}: {reason}")
        return
    known = ~np.isnan(y[numbers.rows])
    both = numbers.rows[known]
    if len(both):
        inside, error = metrics.coverage(y[both], *values[both, 2:].T), metrics.rmse(y[both], values[both, 0])
        talk.note(
            f"{recipe.target.name!r} is known for {len(both)} rows: the error is {error:.4g} (root mean square), "
            f"and {100 * inside:.0f} % lie in their {100 * coverage:g} % interval"
        )
        warn_of_seen_rows(model, numbers.X[known], y[both], talk)


def warn_of_seen_rows(model: Any, X: Any, y: Any, talk: Talk) -> None:
    """Say it when a model is checked on rows that it was fitted to."""
    known, asked = np.column_stack(model.training_data()), np.column_stack([X, y])
    with np.errstate(all="ignore"):  # a damaged file may hold anything
        size = np.where(np.ptp(known, axis=0) > 0.0, np.ptp(known, axis=0), 1.0)
        known, asked = (rows[np.isfinite(rows).all(axis=1)] for rows in (known / size, asked / size))
    nearest, _ = cKDTree(known).query(asked, distance_upper_bound=_SAME)
    if seen := int(np.isfinite(nearest).sum()):
        talk.note(f"the model was fitted to {seen} of these {len(y)} rows: how well it does on them is no test")
