"""The command line of `reproduce`; exit code 0, 1 when some fits failed, 2 on bad input."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from cadlag.papers.loria2025 import readme
from cadlag.papers.loria2025.evidence import EVIDENCE
from cadlag.papers.loria2025.plan import Part
from cadlag.papers.loria2025.runs import TABLE_ROWS, read_rows, reproduce, take


def _words(text: str) -> tuple[str, ...]:
    """Divide at commas."""
    return tuple(word for word in text.split(",") if word)


def _seeds(text: str) -> tuple[int, ...]:
    """Read "3" as 0, 1, 2, and "0,4" or "4," as they stand."""
    return tuple(map(int, _words(text))) if "," in text else tuple(range(int(text)))


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
    parser.add_argument("--data", type=_words, default=(), help="fit only to these data")
    parser.add_argument("--methods", type=_words, default=(), help="fit only these methods, by registry name")
    parser.add_argument("--versions", type=_words, default=(), help="fit only published, converged or best")
    parser.add_argument("--seeds", type=_seeds, default=(), help="fit only the first N seeds, or those listed")
    return parser


def _required(flag: str, rows: str | None) -> str:
    """Return the directory of row files, or say that it is wanted."""
    if rows is None:
        raise ValueError(f"{flag} needs --rows, a directory of row files.")
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv
        Arguments; the command's own by default.

    Returns
    -------
    int
        Exit code.
    """
    args = _parser().parse_args(argv)
    fits = "missing" if args.missing else "again" if args.again else "none"
    part = Part(args.data, args.methods, args.versions, args.seeds)
    try:
        if args.take:
            take(args.take, _required("--take", args.rows))
        if args.readme:
            rows = Path(_required("--readme", args.rows))
            found = {name: read_rows(rows, name) for name in EVIDENCE}
            readme.update(Path(args.readme), read_rows(rows, TABLE_ROWS), found)
            return 0
        complaints = reproduce(args.out, args.only, args.quick, args.jobs, args.rows, fits, part)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Tables and figures are in {args.out}.")
    return int(any("tasks failed" in complaint for complaint in complaints))


if __name__ == "__main__":
    # Worker processes import what they run by name, and this copy is called __main__.
    sys.exit(importlib.import_module("cadlag.papers.loria2025.__main__").main())
