"""Evidence on what the printed DIWP is: whether scales and shifts of inputs were learned, intervals without noise.

The code of Aitchison, Yang & Ober (2021) learns them on UCI data; the paper does not say. Two draws a step instead of
ten, so that several fits can be made.
"""

from dataclasses import replace

from cadlag.papers.loria2025.evidence import comparison
from cadlag.papers.loria2025.versions import PUBLISHED, UCI

NAME = "evidence-diwp"
TITLE = "DIWP with two draws a step, with learned scales and shifts of the inputs and without"
_FEW = replace(PUBLISHED["DIWP"].having(n_samples=2), data=("sim10d", *UCI))
_COMPARISON = comparison.Comparison(
    "DIWP",
    {"inputs as they are": _FEW, "scales and shifts learned": _FEW.having(learn_inputs=True)},
    {"rmse": "RMSE", "mae": "MAE", "coverage": "coverage (%)", "coverage_function": "without noise (%)"},
    n_seeds=2,
)
tasks, to_markdown = _COMPARISON.tasks, _COMPARISON.to_markdown
evaluate = comparison.evaluate
