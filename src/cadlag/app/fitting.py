"""fit: table -> recipe -> draws -> model file and verdict."""

import inspect
import shlex
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from cadlag.app.common import Run, Talk, check_place, read_table
from cadlag.frames import suggest
from cadlag.methods import METHODS, with_settings
from cadlag.recipes import Numbers
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.verdict import facts, gather, verdict
from cadlag.verdict.evidence import leave_out

AUTO = ("network", "kernel")
AUTO_ROWS = 2000  # beyond which the kernel process, cubic in the rows, is not tried


def fit(
    data: Path, target: str, method: str, out: Path | None, run: Run, talk: Talk, ignore: Sequence[str] = (),
    category: Sequence[str] = (), drop_missing: bool = False,
) -> None:  # fmt: skip
    """Fit a table, write the model, and say what was found."""
    if method != "auto" and method not in METHODS:
        raise ValueError(f"there is no method {method!r}: {suggest(method, ['auto', *METHODS])}")
    place = Path(f"{data.stem or 'model'}.cadlag") if out is None else out
    check_place(place, data)
    run.check(AUTO if method == "auto" else (method,))
    recipe, numbers = read_table(data, target, ignore, category, drop_missing, talk)
    if method == "auto":
        chosen, left_out, why = _choose(numbers, run, talk)
    else:
        (chosen, _), left_out, why = _fit(method, numbers, run, run.resume, talk), None, ""
    _save(chosen.name_inputs(recipe.columns, recipe.to_tree()), place)
    if why:
        talk.say(why)
    found = _judge(chosen, left_out, talk)
    word = shlex.quote(str(place))
    talk.say(f"Written: {place}. Next: cadlag predict {word} NEW.csv, or cadlag report {word}", "green")
    talk.end({"model": str(place), "target": target, "inputs": recipe.columns, "method": chosen._method, "chosen": why,
              **found})  # fmt: skip


def _save(model: Any, place: Path) -> None:
    """Write the model; where that has become impossible since it was checked, write it somewhere else and say so."""
    try:
        model.save(place)
    except OSError as error:
        spare = Path(tempfile.mkdtemp(prefix="cadlag-")) / place.name
        model.save(spare)
        raise OSError(f"{error.strerror or error} The model is in {spare}") from error


def _judge(model: Any, left_out: Any, talk: Talk) -> dict[str, Any]:
    """Say what was found; the model is written by now, so that nothing here is a reason to fail."""
    try:
        evidence = gather(model, left_out=left_out)
        findings = verdict(evidence)
    except (KeyboardInterrupt, ArithmeticError, MemoryError) as error:
        talk.note(f"there is no verdict ({str(error) or 'interrupted'}), but the model is complete")
        return {}
    for finding in findings:
        talk.find(finding.tone, finding.text)
    return {**facts(evidence), "verdict": [vars(finding) for finding in findings]}


def _fit(method: str, numbers: Numbers, run: Run, resume: Path | None, talk: Talk) -> tuple[Any, bool]:
    """A fitted model, and whether it was interrupted."""
    if resume is not None and "checkpoint" not in inspect.signature(METHODS[method].fit).parameters:
        raise ValueError(f"the method {method} cannot be resumed: leave --resume out")
    model = with_settings(method, run.settings())
    bar = talk.bar(f"fitting {method}", lambda: _warmup(model))
    with warnings.catch_warnings(record=True) as caught, bar as report:
        warnings.simplefilter("always")
        if hasattr(model, "progress"):
            model.set_params(progress=report)
        model.fit(numbers.X, numbers.y, **({} if resume is None else {"checkpoint": resume}))
    if hasattr(model, "progress"):
        model.set_params(progress=False)
    for item in caught:
        # What a convergence warning says is in the verdict; others may be of a library's own affairs.
        if issubclass(item.category, UserWarning) and not issubclass(item.category, ConvergenceWarning):
            talk.note(str(item.message))
    return model, any(issubclass(item.category, InterruptedFitWarning) for item in caught)


def _warmup(model: Any) -> int:
    """Iterations in which the chains of a model find places before their first draw is kept; 0 where it has none."""
    return int(getattr(model._inference(), "n_warmup", 0))


def _choose(numbers: Numbers, run: Run, talk: Talk) -> tuple[Any, Any, str]:
    """The better of two methods by the log scores of rows left out; what leaving one out gave; why, in words."""
    n = len(numbers.rows)
    folders = {name: None if run.resume is None else run.resume / name for name in AUTO}
    if n > AUTO_ROWS:
        why = f"With {n} rows the network is used: the kernel process takes a time cubic in the rows."
        return _fit(AUTO[0], numbers, run, folders[AUTO[0]], talk)[0], None, why
    models: list[tuple[Any, Any]] = []
    for name in AUTO:
        try:
            model, interrupted = _fit(name, numbers, run, folders[name], talk)
        except KeyboardInterrupt:
            if not models:
                raise
            return *models[0], f"Interrupted before the {name} was fitted: the {AUTO[0]} is kept."
        models.append((model, leave_out(model)))
        if interrupted:
            return *models[0], f"Interrupted: the {AUTO[0]} is kept."
    gain, error = models[0][1].gain_over(models[1][1])
    best = 0 if gain >= 0 else 1
    clear = "" if abs(gain) > 2 * error else ", so they can hardly be told apart"
    why = (
        f"The {AUTO[best]} is chosen: it predicts rows left out better than the {AUTO[1 - best]} (sum of log scores "
        f"{abs(gain):+.1f}, give or take {error:.1f}{clear})."
    )
    return *models[best], why
