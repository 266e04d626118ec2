"""cadlag fit | predict | compare | report | reproduce | demo: the command line, and nothing but its syntax.

What a command does is in the modules beside it, imported when one runs: help and completion must be instant, and
the numerical libraries take seconds. Exit code 0 is success, 1 fits that failed in `reproduce`, 2 a user's mistake (one
sentence, never a traceback), 130 an interruption.
"""

import functools
import io
import os
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.text import Text
except ImportError as missing:
    print(f"the command needs {missing.name}: pip install 'cadlag[cli]'", file=sys.stderr)
    raise SystemExit(2) from None

from cadlag import __version__
from cadlag.app.terminal import readable
from cadlag.registry import REGRESSORS, RIVALS

app = typer.Typer(
    name="cadlag", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="First steps: [bold]cadlag demo[/bold], then [bold]cadlag fit DATA.csv --target COLUMN[/bold].",
)  # fmt: skip


def _work(name: str) -> Any:
    return import_module(f"cadlag.app.{name}")


def _kindly(command: Callable[..., None]) -> Callable[..., None]:
    """One sentence for a user's mistake; CADLAG_TRACEBACK=1 shows where it was found."""

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        try:
            try:
                command(*arguments, **options)
            finally:
                _flush()
        except BrokenPipeError:
            pass  # whoever read our output has seen enough
        except (ValueError, OSError, MemoryError) as error:
            if os.environ.get("CADLAG_TRACEBACK"):
                raise
            _complain(_sentence(error))
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            remedy = "; with --resume DIR a run goes on where it was" if "resume" in options else ""
            kept = "interrupted; what is finished is kept, and the same command goes on"
            _complain(kept if "paper" in options else f"interrupted before there was a result{remedy}")
            raise typer.Exit(130) from None

    return guarded


def _sentence(error: Exception) -> str:
    """What an error says; one of the system's own begins with a number that tells a user nothing."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _flush() -> None:
    """Write out what standard output holds back, while an error can still be told; Python would complain once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _complain(sentence: str) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    with suppress(SystemExit):  # rich's own, where nobody reads any more; the exit code is ours to give
        console.print(Text.assemble(("error: ", "bold red"), readable(sentence)))


# Options -------------------------------------------------------------------------------------------------------------


_PLAIN_NAME = re.compile(r"[^\W_][\w.+%-]*")


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in ("auto", *REGRESSORS) if name.startswith(incomplete)]


def _complete_methods(incomplete: str) -> list[str]:
    """The last name of a list with commas."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in ("all", *REGRESSORS, *RIVALS) if name.startswith(last)]


def _complete_column(incomplete: str) -> list[str]:
    """Columns of the first table among the words so far, which an option without its value hides from the parser.

    Only names that every shell takes as they are: others could do more than name a column when they are inserted.
    """
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        table = next(word for word in shlex.split(words) if Path(word).is_file())
        columns = import_module("cadlag.frames").read_names(table)
    except Exception:  # whatever is wrong with a table is said by the command, not in the middle of a prompt
        return []
    return [name for name in columns if name.startswith(incomplete) and _PLAIN_NAME.fullmatch(name)]


Data = Annotated[Path, typer.Argument(metavar="DATA", help="A table: CSV with names in its first line, or Parquet.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that 'fit' wrote.")]
Target = Annotated[str, typer.Option("--target", "-t", help="The column to predict.", autocompletion=_complete_column)]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="A column to leave out; may be repeated.", autocompletion=_complete_column),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        "--category", help="A column to take for categories though it holds numbers; may be repeated.",
        autocompletion=_complete_column,
    ),
]  # fmt: skip
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed; the same one gives the same result.")]
Jobs = Annotated[int | None, typer.Option(help="Processes; one a chain by default, as far as there are processors.")]
Draws = Annotated[
    int | None, typer.Option(min=1, help="Draws kept of each chain; network and kernel find out by themselves.")
]
Warmup = Annotated[int | None, typer.Option(min=0, help="Iterations before them, likewise.")]
Chains = Annotated[int | None, typer.Option(min=1, help="Chains, likewise.")]
Fast = Annotated[bool, typer.Option("--fast", help="A first look in seconds, which is not the posterior.")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="A fit begins no further round of chains after so long; no limit by default."),
]
Precision = Annotated[
    float | None,
    typer.Option(metavar="R", help="Standard error of the predictions that is wanted, in predictive standard "
                 "deviations; 0.2 by default."),
]  # fmt: skip
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A further setting of the method, such as alpha=1.5 or "
                 "sampler=tempered; may be repeated."),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON on standard output, for scripts.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"cadlag {__version__}")
        raise typer.Exit


@app.callback()
def cadlag(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show version.")] = False,
) -> None:
    """Bayesian regression on functions that jump: fit a table, predict with error bars, see where it breaks."""


# Commands ------------------------------------------------------------------------------------------------------------


@app.command()
@_kindly
def fit(
    data: Data,
    target: Target,
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="auto (the better of network and kernel on rows left out), "
                     f"{', '.join(REGRESSORS)}.", autocompletion=_complete_method),
    ] = "auto",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Model file.", show_default="DATA.cadlag")] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    draws: Draws = None,
    warmup: Warmup = None,
    chains: Chains = None,
    fast: Fast = False,
    max_seconds: MaxSeconds = None,
    precision: Precision = None,
    resume: Annotated[
        Path | None, typer.Option(help="A directory that makes the run durable: run again, and it goes on.")
    ] = None,
    ignore: Ignore = None,
    category: Category = None,
    drop_missing: DropMissing = False,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Fit a model to a table, and say in words what was found.

    Numbers, dates and categories are recognised. Ctrl-C keeps what has been drawn so far.
    """
    common = _work("common")
    run = common.Run(
        seed, jobs, draws, warmup, chains, resume, common.parse_settings(settings or []), fast, max_seconds, precision
    )  # fmt: skip
    _work("fitting").fit(
        data, target, method, out, run, common.Talk(as_json), ignore or [], category or [], drop_missing
    )  # fmt: skip


@app.command()
@_kindly
def predict(
    model: Model,
    data: Data,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file.", show_default="standard output")] = None,
    coverage: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    drop_missing: Annotated[
        bool,
        typer.Option("--drop-missing", help="Empty cells for rows with a missing value or a category never seen, "
                     "instead of a refusal."),
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Predict every row of a table: point, standard deviation, lower and upper end of an interval.

    The table is read by the recipe that the model was fitted with; columns are found by name.
    """
    _work("predicting").predict(model, data, out, coverage, drop_missing, _work("common").Talk(as_json))


@app.command()
@_kindly
def compare(
    data: Data,
    target: Target,
    methods: Annotated[
        str,
        typer.Option(help=f"all, or names with commas between: those of fit, {', '.join(RIVALS)}.",
                     autocompletion=_complete_methods),
    ] = "all",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions, each with folds of its own.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file: a row a method and fold.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the scores, .png, .pdf or .svg.")] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    draws: Draws = None,
    warmup: Warmup = None,
    chains: Chains = None,
    fast: Fast = False,
    max_seconds: MaxSeconds = None,
    precision: Precision = None,
    ignore: Ignore = None,
    category: Category = None,
    drop_missing: DropMissing = False,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Score every method, and what else one would take, on the same folds of a table.

    RMSE, MAE, CRPS and log score; coverage and width of 90 % intervals; seconds a fold.
    """
    common = _work("common")
    run = common.Run(
        seed, jobs, draws, warmup, chains, None, common.parse_settings(settings or []), fast, max_seconds, precision
    )  # fmt: skip
    _work("comparing").compare(
        data, target, methods, folds, repeats, out, plot, run, common.Talk(as_json), ignore or [], category or [],
        drop_missing,
    )  # fmt: skip


@app.command()
@_kindly
def report(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file.")] = Path("report.html"),
    data: Annotated[
        Path | None, typer.Option(help="A table of rows that the model has not seen, to check it on.")
    ] = None,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
) -> None:
    """Write what a model found as one self-contained page: verdict, pictures, calibration, settings."""
    _work("reporting").report(model, out, data, drop_missing, _work("common").Talk(as_json))


@app.command()
@_kindly
def reproduce(
    paper: Annotated[str, typer.Argument(help="Which paper: loria2025.")],
    only: Annotated[str | None, typer.Option(help="Tables and figures, commas between, such as table-1.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Everything small, from nothing, in minutes.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Do the fits that the rows in the package lack.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Do all fits afresh: days of computing.")] = False,
    jobs: Annotated[int, typer.Option(help="Fits at the same time.")] = 1,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the results.")] = Path("reproduced"),
) -> None:
    """Make the tables and figures of a paper, beside the printed numbers.

    Without options they are made from the rows in the package. A run that is killed goes on where it was.
    """
    if missing and again:
        raise ValueError("--missing and --again exclude each other: choose one")
    wanted = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    fits = "missing" if missing else "again" if again else "none"
    _work("reproducing").reproduce(paper, out, wanted, quick, fits, jobs)


@app.command()
@_kindly
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the results.")] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Find the year in which the Nile fell: fit, report, picture, predictions and model."""
    _work("common").need("cadlag.app.demo", "cli").demo(out, seed)


def main() -> None:
    """Run the command line of this process."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    app(prog_name="cadlag")


if __name__ == "__main__":
    main()
