"""reproduce: a paper's tables and figures, by the module that has its name."""

import sys
from collections.abc import Sequence
from pathlib import Path

from cadlag.app.common import need
from cadlag.papers.experiment import FailedTasksError

PAPERS = ("loria2025",)


def reproduce(paper: str, out: Path, only: Sequence[str] | None, quick: bool, fits: str, n_jobs: int) -> None:
    """Make a paper's tables and figures."""
    if paper not in PAPERS:
        raise ValueError(f"there is no paper {paper!r}: try {', '.join(PAPERS)}")
    module = need(f"cadlag.papers.{paper}", "cli")
    try:
        module.reproduce(out, only=only, quick=quick, n_jobs=n_jobs, fits=fits)
    except FailedTasksError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    print(f"Tables and figures are in {module.folder_of(out, quick)}.")
