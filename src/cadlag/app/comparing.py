"""compare: table -> scores of every method on the same folds, as a table, a file and a picture."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from cadlag import compare as comparison
from cadlag.app.common import Run, Talk, check_place, need, read_table
from cadlag.app.terminal import readable
from cadlag.frames import suggest, write_csv
from cadlag.methods import METHODS
from cadlag.recipes import Numbers
from cadlag.storage import place_of, replacing

PICTURES = (".png", ".pdf", ".svg")


def compare(
    data: Path, target: str, methods: str, folds: int, repeats: int, out: Path | None, plot: Path | None, run: Run,
    talk: Talk, ignore: Sequence[str] = (), category: Sequence[str] = (), drop_missing: bool = False,
) -> None:  # fmt: skip
    """Score methods on the same folds of a table."""
    wanted = _wanted(methods)
    run.check([name for name in wanted if name in METHODS])
    _check_places(data, out, plot)
    plots = need("cadlag.plots", "plot") if plot is not None else None
    recipe, numbers = read_table(data, target, ignore, category, drop_missing, talk)
    done = _folds(numbers, wanted, folds, repeats, run, talk)
    rows = comparison.summarise(done)
    if not rows:
        raise ValueError("no method could be scored: see the notes")
    if out is not None:
        cells = [
            [fold.method, fold.fold, *(fold.scores[key] for key in comparison.SCORES)] for fold in done if fold.scores
        ]
        write_csv(out, ("method", "fold", *comparison.SCORES), cells)
        talk.say(f"Written: {out}", "green")
    if plots is not None and plot is not None:
        with replacing(str(plot)) as stream:
            plots.plot_comparison(rows).figure.savefig(stream, format=plot.suffix[1:], dpi=130)
        talk.say(f"Written: {plot}", "green")
    _show(rows, recipe.target.name, talk)
    talk.end({"target": target, "n_folds": folds, "n_repeats": repeats, "methods": rows})


def _wanted(methods: str) -> list[str]:
    """The methods that are asked for, each once."""
    known = comparison.names()
    if methods == "all":
        return [name for name in known if not comparison.lacks(name)]
    wanted = list(dict.fromkeys(re.findall(r"[^\s,]+", methods)))
    if not wanted:
        raise ValueError(f"--methods names none: choose from {', '.join(known)}")
    for name in wanted:
        if name not in known:
            raise ValueError(f"there is no method {name!r}: {suggest(name, known)}")
        if need_first := comparison.lacks(name):
            raise ValueError(f"method {name!r} needs {need_first}")
    return wanted


def _check_places(data: Path, out: Path | None, plot: Path | None) -> None:
    """Refuse, before any fit, files that could not be written or would take each other's place."""
    for path in (out, plot):
        if path is not None:
            check_place(path, data)
    if plot is not None and plot.suffix not in PICTURES:
        raise ValueError(f"a picture's name must end in {', '.join(PICTURES)}, got {plot.name!r}")
    if out is not None and plot is not None and place_of(str(out)) == place_of(str(plot)):
        raise ValueError(f"--out and --plot are both {out}: give each a file of its own")


def _folds(numbers: Numbers, wanted: list[str], folds: int, repeats: int, run: Run, talk: Talk) -> list[Any]:
    done: list[Any] = []
    total, y = len(wanted) * folds * repeats, np.asarray(numbers.y)
    steps = comparison.compare(numbers.X, y, wanted, folds, repeats, run.seed, run.settings())
    with talk.bar("comparing") as report:
        try:
            for fold in steps:
                done.append(fold)
                report([len(done)], total, 0, 0.0)
                if fold.error:
                    talk.note(f"{fold.method} is left out: {fold.error}")
        except KeyboardInterrupt:
            talk.note(f"interrupted: {len(done)} of {total} fits are shown")
    return done


def _show(rows: list[dict[str, Any]], target: str, talk: Talk) -> None:
    """The means as a table, the best of each column in bold."""
    title = Text(readable(f"Predicting {target!r}: means over folds"))
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    best = {key: (max if key == "log_score" else min)(row[key] for row in rows) for key in comparison.SCORES[:4]}
    for name in ("method", *comparison.SCORES):
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    for row in rows:
        cells = [Text(f"{row[key]:.4g}", "bold" if best.get(key) == row[key] else "") for key in comparison.SCORES]
        table.add_row(Text(row["method"]), *cells)
    talk.out.print(table)
