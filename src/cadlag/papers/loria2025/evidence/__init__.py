"""Evidence on what the paper does not say, by name: its fits, how one of them is evaluated, and a table of the rows."""

from typing import Any

from cadlag.papers.loria2025.evidence import alpha, comparison, moves, splits

EVIDENCE: dict[str, Any] = {
    "evidence-chains": moves,
    "evidence-alpha": alpha,
    "evidence-intercept": comparison.INTERCEPT,
    "evidence-nngp": comparison.NNGP,
    "evidence-splits": splits,
    "evidence-diwp": comparison.DIWP,
}
