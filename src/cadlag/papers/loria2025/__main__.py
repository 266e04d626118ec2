"""The command line of `reproduce`; exit code 0, 1 when some fits failed, 2 on bad input."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from cadlag.papers.experiment import FailedTasksError
from cadlag.papers.loria2025 import readme
from cadlag.papers.loria2025.evidence import EVIDENCE
from cadlag.papers.loria2025.plan import Part
from cadlag.papers.loria2025.runs import TABLE_ROWS, folder_of, read_rows, reproduce, take


def _words(text: str) -> tuple[str, ...]:
    """Divide at commas; nothing between them is no choice."""
    if not (words := tuple(word.strip() for word in text.split(",") if word.strip())):
        raise argparse.ArgumentTypeError("names none; leave the option out for all")
    return words


def _seeds(text: str) -> tuple[int, ...]:
    """Read "3" as 0, 1, 2, and "0,4" or "4," as they stand."""
    try:
        numbers = tuple(map(int, _words(text)))
    except ValueError:
        numbers = (-1,)
    if min(numbers) < (0 if "," in text else 1):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of seeds nor a list such as 0,4")
    return numbers if "," in text else tuple(range(numbers[0]))


def _parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m cadlag.papers.loria2025", description="Tables and figures of Loría & Bhadra (2025), redone."
    )
    parser.add_argument("--out", default="loria2025", help="directory for tables and figures (default: loria2025)")
    parser.add_argument("--only", type=_words, help="names such as table-1,figure-2; all by default")
    parser.add_argument("--quick", action="store_true", help="everything small, from nothing, in OUT/quick")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    parser.add_argument("--rows", help="directory of row files to read and, with --missing or --again, to extend")
    fits = parser.add_mutually_exclusive_group()
    fits.add_argument("--missing", action="store_true", help="do the fits that the package's rows lack, in OUT/rows")
    fits.add_argument("--again", action="store_true", help="do all fits, in OUT/again")
    parser.add_argument("--take", action="append", default=[], help="first copy rows of this file that belong in ROWS")
    parser.add_argument("--readme", help="write the tables of ROWS into this Markdown file and stop")
    parser.add_argument("--data", type=_words, help="fit only to these data")
    parser.add_argument("--methods", type=_words, help="fit only these methods, by registry name")
    parser.add_argument("--versions", type=_words, help="fit only published, converged or best")
    parser.add_argument("--seeds", type=_seeds, help="fit only the first N seeds, or those listed")
    return parser


def _required(flag: str, rows: str | None) -> Path:
    """Return the directory of row files, or say that it is wanted."""
    if rows is None:
        raise ValueError(f"{flag} needs --rows, a directory of row files.")
    return Path(rows)


def _update(page: str, rows: Path) -> None:
    """Write the tables of a directory of row files into a page."""
    if not (rows / f"{TABLE_ROWS}.jsonl").is_file():
        raise FileNotFoundError(f"There are no rows of tables in {rows}; give another directory as --rows.")
    readme.update(Path(page), read_rows(rows, TABLE_ROWS), {name: read_rows(rows, name) for name in EVIDENCE})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    args = _parser().parse_args(argv)
    fits = "missing" if args.missing else "again" if args.again else "none"
    try:
        part = Part(args.data, args.methods, args.versions, args.seeds)
        if args.take:
            n_taken = take(args.take, _required("--take", args.rows))
            print(f"{n_taken} fits were copied into {args.rows}.")
        if args.readme:
            _update(args.readme, _required("--readme", args.rows))
            return 0
        reproduce(args.out, args.only, args.quick, args.jobs, args.rows, fits, part)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except FailedTasksError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what is finished is kept, and the same command goes on", file=sys.stderr)
        return 130
    print(f"Tables and figures are in {folder_of(args.out, args.quick)}.")
    return 0


if __name__ == "__main__":
    # Worker processes import what they run by name, and this copy is called __main__.
    sys.exit(importlib.import_module("cadlag.papers.loria2025.__main__").main())
