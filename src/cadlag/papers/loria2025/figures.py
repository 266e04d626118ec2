"""The figures of the paper: which function of `drawing` draws each, and the curves that it wants.

All are pure functions of stored curves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cadlag.papers.loria2025.curves import Curves
from cadlag.papers.loria2025.plan import PRIOR, Scale
from cadlag.papers.loria2025.versions import ALPHAS, BEST, CONVERGED, PUBLISHED, Version
from cadlag.papers.rows import Task


@dataclass(frozen=True)
class Want:
    """Curves of one kind from one version on one data set, seed 0."""

    kind: str
    version: Version
    data: str

    def task(self, scale: Scale) -> Task:
        """Return the task that makes them."""
        return scale.task(self.version, self.data)


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes
    ----------
    drawing
        Name of the function in `drawing`.
    wants
        The curves, by the label that they have in it.
    """

    drawing: str
    wants: Mapping[str, Want]

    def draw(self, found: Mapping[str, Curves]) -> Any:
        """Return a matplotlib figure of the curves that are there, by label."""
        from cadlag.papers.loria2025 import drawing  # noqa: PLC0415  optional

        return getattr(drawing, self.drawing)(found)


def _predictions(data: str) -> dict[str, Want]:
    """Return the predictions of all six methods with the paper's settings, and of the network."""
    versions = {**PUBLISHED, "network (ours)": BEST["network"]}
    return {label: Want("predictions", version, data) for label, version in versions.items() if data in version.data}


def _features(data: str) -> Figure:
    return Figure("features", {data: Want("chains", CONVERGED["Dα-KP"], data)})


_SAMPLERS = {"paper's sampler": PUBLISHED["Dα-KP"], "converged": CONVERGED["Dα-KP"]}
# The paper's one hidden layer, and its bias instead of a column of ones.
_PROCESS = {"depth": 1, "fit_intercept": False, "n_samples": 10_000}
_INFORMATION = {
    f"α = {alpha:g}": Want("information", Version("kernel", {"alpha": alpha, **_PROCESS}), PRIOR)
    for alpha in (0.5, 1.0, 1.5, 2.0)
}
_ABLATION = {
    f"α = {alpha:g}, {name}": Want("ablation", version.having(alpha=alpha), "sim1d")
    for name, version in _SAMPLERS.items()
    for alpha in ALPHAS
}
_KERNELS = {label: Want("kernels", CONVERGED["Dα-KP"], data) for label, data in (("1-d", "sim1d"), ("2-d", "sim2d"))}
_TRACES = {
    "paper's sampler": Want("chains", PUBLISHED["Dα-KP"], "boston"),
    "NUTS with jumps": Want("chains", CONVERGED["Dα-KP"], "boston"),
}

FIGURES: dict[str, Figure] = {
    "figure-1": Figure("information", _INFORMATION),
    "figure-2": Figure("fits", _predictions("sim1d")),
    "figure-3": _features("energy"),
    "figure-4a": Figure("surfaces", _predictions("sim2d")),
    "figure-4b": Figure("residuals", _predictions("sim2d")),
    "figure-5": Figure("residuals", _predictions("sim10d")),
    "figure-6": Figure("ablation", _ABLATION),
    "figure-7": Figure("kernels", _KERNELS),
    "figure-8": Figure("residuals", _predictions("boston")),
    "figure-9": Figure("residuals", _predictions("energy")),
    "figure-10": Figure("residuals", _predictions("yacht")),
    "figure-11": Figure("traces", _TRACES),
    "figure-12": _features("boston"),
    "figure-13": _features("yacht"),
}
