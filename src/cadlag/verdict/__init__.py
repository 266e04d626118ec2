"""What a fitted model found: looked at once (`gather`), as plain values (`facts`) and in words (`verdict`)."""

from cadlag.verdict.evidence import COVERAGE, Checked, Evidence, gather
from cadlag.verdict.facts import facts
from cadlag.verdict.words import CAUTION, GOOD, NOTE, Finding, verdict

__all__ = ["CAUTION", "COVERAGE", "GOOD", "NOTE", "Checked", "Evidence", "Finding", "facts", "gather", "verdict"]
