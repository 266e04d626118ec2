"""Evidence on depth in one dimension: Dα-KP without the intercept column that the published example has there.

With it our errors grow faster with depth than the printed ones (table 2). The paper does not say whether its study of
depth had the column; in its other examples there is none.
"""

from dataclasses import replace

from cadlag.papers.loria2025.evidence import comparison
from cadlag.papers.loria2025.versions import DEPTHS, PUBLISHED

NAME = "evidence-intercept"
TITLE = "Dα-KP in one dimension by depth, without the intercept column (with it: tables 1 and 2)"
_PLAIN = replace(PUBLISHED["Dα-KP"].having(fit_intercept=False), data=("sim1d",))
_COMPARISON = comparison.Comparison(
    "Dα-KP",
    {"no intercept": _PLAIN},
    {"rmse": "RMSE", "mae": "MAE", "coverage": "coverage (%)"},
    n_seeds=20,
    depths=(None, *DEPTHS),
)
tasks, to_markdown = _COMPARISON.tasks, _COMPARISON.to_markdown
evaluate = comparison.evaluate
