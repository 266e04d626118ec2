"""report: model, and a table of held-out rows if there is one -> one page."""

from pathlib import Path

from cadlag.app.common import Talk, check_place, need
from cadlag.app.predicting import recipe_of, warn_of_seen_rows
from cadlag.frames import read_frame
from cadlag.methods import load


def report(model_path: Path, out: Path, data: Path | None, drop_missing: bool, talk: Talk) -> None:
    """Write what a model found as one self-contained page."""
    check_place(out, model_path, *([] if data is None else [data]))
    page = need("cadlag.report", "cli")
    model = load(model_path)
    X = y = None
    if data is not None:
        frame = read_frame(data)
        recipe = recipe_of(model, frame)
        if not recipe.target.name:
            raise ValueError(f"{model_path} does not say which column it predicts: fit it with the command")
        numbers = recipe.encode(frame, with_target=True, drop_missing=drop_missing)
        talk.note(*frame.notes, *recipe.remarks(frame), *numbers.notes)
        X, y = numbers.X, numbers.y
        warn_of_seen_rows(model, X, y, talk)
    try:
        page.write_report(model, out, X, y)
    except ArithmeticError as error:
        raise ValueError(f"the draws in {model_path} cannot be evaluated ({error}): fit again") from error
    talk.say(f"Written: {out}", "green")
    talk.end({"model": str(model_path), "out": str(out)})
