"""reproduce: a paper's tables and figures, run again by the module that has its name."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cadlag.commands.common import need

PAPERS = ("loria2025",)


def reproduce(paper: str, out: Path, only: Sequence[str] | None, quick: bool, n_jobs: int) -> None:
    """Run a paper's tables and figures again.

    Parameters
    ----------
    paper
        Its name.
    out
        Directory for the results.
    only
        Which tables and figures; None for all.
    quick
        Whether fewer replicates and draws will do.
    n_jobs
        Processes.
    """
    if paper not in PAPERS:
        raise ValueError(f"there is no paper {paper!r}: try {', '.join(PAPERS)}")
    if find_spec("cadlag.papers") is None or find_spec(f"cadlag.papers.{paper}") is None:
        raise ValueError(f"this version of cadlag cannot reproduce {paper}: install one that has cadlag.papers.{paper}")
    need(f"cadlag.papers.{paper}", "cli").reproduce(out, only=only, quick=quick, n_jobs=n_jobs)
