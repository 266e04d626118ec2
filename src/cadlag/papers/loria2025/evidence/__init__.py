"""Evidence on what the paper does not say, by name: its fits, how one of them is evaluated, and a table of the rows."""

from types import ModuleType

from cadlag.papers.loria2025.evidence import alpha, inputs, intercept, intervals, moves, splits

EVIDENCE: dict[str, ModuleType] = {
    module.NAME: module for module in (moves, alpha, intercept, intervals, splits, inputs)
}
