"""Loría & Bhadra (2025), "Deep Kernel Posterior Learning under Infinite Variance Prior Weights" (ICLR), redone.

`reproduce(out)` writes every table beside the printed numbers, and every figure, from rows that the package holds;
`python -m cadlag.papers.loria2025 --help` is the same as a command. README.md explains where ours differ, and why.
"""

from cadlag.papers.loria2025.plan import Part
from cadlag.papers.loria2025.runs import folder_of, reproduce

__all__ = ["Part", "folder_of", "reproduce"]
