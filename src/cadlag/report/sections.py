"""The page's sections: a heading, a sentence on how to read it, pictures and tables."""

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from cadlag import plots
from cadlag.names import plain_arrays
from cadlag.network.break_tables import BreakPoints
from cadlag.plots.style import STYLE, new_axes, plt, words, write_values
from cadlag.verdict import COVERAGE, Evidence
from cadlag.verdict.evidence import affordable_atoms
from cadlag.verdict.facts import leading
from cadlag.verdict.words import MEANING, plane_label

_MOST_DEPENDENCES = 4
_MOST_KERNEL_ROWS = 200
_MOST_ROWS = 60  # of a table
_OF_CHAINS = ("rhat", "ess_bulk", "ess_tail")


@dataclass(frozen=True)
class Picture:
    """A picture in the page.

    Attributes
    ----------
    source
        Its bytes as a data address.
    alt
        What it shows, for who cannot see it.
    is_wide
        Whether it wants the whole width.
    """

    source: str
    alt: str
    is_wide: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table in the page.

    Attributes
    ----------
    title
        What it lists.
    header
        Names of the columns.
    rows
        Cells as text.
    """

    title: str
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    anchor
        Its name in addresses.
    title
        Its heading.
    text
        How to read it.
    pictures
        In order.
    sheets
        In order.
    """

    anchor: str
    title: str
    text: str
    pictures: list[Picture] = field(default_factory=list)
    sheets: list[Sheet] = field(default_factory=list)


def picture(draw: Callable[..., Any], alt: str, height: float = 3.2, is_wide: bool = False, **options: Any) -> Picture:
    """Draw on axes of our own (`draw` takes them as `ax`) and keep the result as scalable graphics."""
    axes = new_axes(height, own=True, **options)
    draw(ax=axes)
    return _kept(axes, alt, is_wide)


def _kept(axes: Any, alt: str, is_wide: bool = False) -> Picture:
    buffer = io.BytesIO()
    # No date: the same model gives the same page.
    np.ravel(axes)[0].figure.savefig(buffer, format="svg", dpi=150, metadata={"Date": None})
    return Picture("data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"), alt, is_wide)


def sheet(title: str, table: Any, most: int = _MOST_ROWS) -> Sheet:
    """A table of a model as text."""
    rows = [[_cell(value) for value in row] for row in zip(*table.values())]
    left = len(rows) - most
    return Sheet(f"{title} (the first {most} of {len(rows)})" if left > 0 else title, list(table), rows[:most])


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "–" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def sections(evidence: Evidence) -> list[Section]:
    """All sections that this model has something for."""
    makers = (_fit, _dependences, _breaks, _relevance, _unseen_rows, _chains, _kernels)
    with plt.rc_context(STYLE):
        return [section for make in makers for section in make(evidence)]


def _fit(evidence: Evidence) -> Iterator[Section]:
    if len(evidence.names) != 1:
        return
    breaks = evidence.breaks if evidence.breaks is not None and evidence.breaks.probability_of_any >= 0.5 else None
    fit = picture(
        lambda ax: _named(plots.plot_fit(evidence.model, breaks=breaks, ax=ax), evidence, 0, evidence.target),
        f"Prediction against {evidence.names[0]} with 90 % bands and the data", 3.4, is_wide=True,
    )  # fmt: skip
    yield Section(
        "fit", "Fit", "The dark band is where the function lies with probability 90 %, the light one where a new "
        "observation would lie.", [fit],
    )  # fmt: skip


def _named(ax: Any, evidence: Evidence, column: int, target: str | None = None) -> Any:
    """The axes with values of an input as its user writes them, and the name of what is predicted."""
    if evidence.is_date(column):
        write_values(ax, lambda value: evidence.text(evidence.names[column], value))
    if target is not None:
        ax.set_ylabel(words(target))
    return ax


def _dependences(evidence: Evidence) -> Iterator[Section]:
    if len(evidence.names) < 2:
        return
    model, shown = evidence.model, evidence.most_relevant(_MOST_DEPENDENCES)
    n_atoms = min(affordable_atoms(model), 60)
    axes = [_dependence(evidence, columns, n_atoms) for _, columns in shown]
    lowest, highest = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(lowest, highest)
    drawn = [
        _kept(ax, f"Average of the function against {name} with its 90 % band") for (name, _), ax in zip(shown, axes)
    ]
    if len(evidence.names) == 2:
        for kind, title in (("prediction", "Prediction"), ("std", "Standard deviation of the function")):
            draw = partial(plots.plot_prediction_surface, model, kind=kind)
            drawn.append(picture(draw, f"{title} over both inputs, with the training rows", 3.6))
    yield Section(
        "dependence", "Dependence on the inputs", "The function averaged over training rows, one input being set to "
        "each value in turn, for the most relevant inputs, on one scale; ticks show where the data are.", drawn,
    )  # fmt: skip


def _dependence(evidence: Evidence, columns: list[int], n_atoms: int) -> Any:
    """How the function depends on one input, or on a category by its columns."""
    given = columns if len(columns) > 1 else columns[0]
    ax = plots.plot_partial_dependence(evidence.model, given, n_atoms=n_atoms, ax=new_axes(2.8, own=True))
    return _named(ax, evidence, columns[0])


def _breaks(evidence: Evidence) -> Iterator[Section]:
    breaks = evidence.breaks
    if breaks is None:
        return
    if isinstance(breaks, BreakPoints):
        table: dict[str, Any] = dict(breaks.likely())
        if evidence.is_date(0):
            for end in ("lower", "upper"):
                table[end] = [evidence.text(evidence.names[0], value) for value in table[end]]
        text = "Probability of a net jump between neighbouring inputs, and its size."
        height = 2.4
    else:
        order = np.flatnonzero(breaks["probability"] >= 0.05)
        table = {name: breaks[name][order] for name in breaks}
        text = (
            "Hyperplanes across which the function jumps, told apart by how they divide the training rows, with the "
            "median size of the jump at each bar."
        )
        height = 1.2 + 0.32 * min(max(len(order), 1), 8)
    found = len(next(iter(table.values()))) > 0
    drawn = [picture(partial(_break_axes, breaks, evidence), "Probability of jumps", height, is_wide=True)]
    tables = [sheet("Jumps with a probability of at least 5 %", table)] if found else []
    yield Section("breaks", "Break points", text, drawn if found or isinstance(breaks, BreakPoints) else [], tables)


def _break_axes(breaks: Any, evidence: Evidence, ax: Any) -> Any:
    if isinstance(breaks, BreakPoints):
        return _named(plots.plot_breaks(breaks, ax=ax), evidence, 0)
    planes = (leading(k, evidence) for k in range(len(breaks.normals)))
    return plots.plot_breaks(breaks, ax=ax, names=[plane_label(plane, evidence) for plane in planes])


def _relevance(evidence: Evidence) -> Iterator[Section]:
    if evidence.relevance is None:
        return
    height = 1.0 + 0.3 * min(len(evidence.relevance["input"]), 20)
    drawn = picture(partial(plots.plot_relevance, evidence.relevance), "Relevance of the inputs with 90 % bars", height)
    yield Section(
        "relevance", "Relevance of the inputs", "The share of the function's variance that is lost when an input's "
        "values are shuffled; inputs that act together can sum to more than one.", [drawn],
        [sheet("Relevance", evidence.relevance)],
    )  # fmt: skip


def _unseen_rows(evidence: Evidence) -> Iterator[Section]:
    """Calibration and residuals, of rows that were predicted without having been seen."""
    checked = evidence.checked
    if checked is None:
        return
    rows = "held-out rows" if checked.held_out else "training rows, each predicted from all the others"
    yield Section(
        "calibration", "Calibration", f"On {len(checked.y)} {rows}. Bars should be level within the grey band, and the "
        "curve should follow the dashed line: bars high at the ends, or a curve below the line, mean that the model is "
        "surer than it should be.",
        [picture(partial(plots.plot_pit, checked.pit), "Histogram of the probability below each response"),
         picture(partial(plots.plot_coverage, checked.pit), "Coverage of intervals of every probability")],
    )  # fmt: skip
    drawn = picture(
        partial(plots.plot_residuals, checked.y, checked.prediction, checked.interval, COVERAGE),
        "Residuals against predictions with 90 % intervals", 3.4, is_wide=True,
    )  # fmt: skip
    yield Section("residuals", "Residuals", "Of the same rows; those outside their interval are diamonds.", [drawn])


def _chains(evidence: Evidence) -> Iterator[Section]:
    posterior = evidence.model.posterior_
    if hasattr(evidence.model, "trace_"):
        yield _bound(evidence.model)
        return
    if posterior.n_draws < 2:
        return
    if "pareto_shape" in posterior.stats:
        yield _weighed(evidence)
        return
    scalars = posterior.scalars()
    wanted = ["log_likelihood", evidence.model.diagnostics_["worst_rhat_parameter"], "noise_variance"]
    names = [name for name in dict.fromkeys(wanted) if name in scalars]
    drawn = [
        picture(partial(plot, posterior, name), f"{what} {name}", 2.2)
        for name in names
        for plot, what in ((plots.plot_trace, "Trace of"), (plots.plot_ranks, "Ranks by chain of"))
    ]
    yield Section(
        "chains", "Chains", _verdict(evidence) + "A colour a chain. Traces should look alike and without trend, ranks "
        "be level within the grey band; shown are the likelihood, the quantity on which the chains agree least, and "
        "the noise.", drawn, [*_trust(evidence), sheet("Posterior", posterior.summary())],
    )  # fmt: skip


def _verdict(evidence: Evidence) -> str:
    """What the draws may be used for, where that is known."""
    found = evidence.model.diagnostics_.get("verdict")
    return "" if found is None else f"Verdict: {found}, {MEANING[found]}. "


def _trust(evidence: Evidence) -> Iterator[Sheet]:
    """What the verdict rests on."""
    found = evidence.model.diagnostics_
    if "verdict" in found:
        row = {
            "verdict": found["verdict"], "chains": found["n_chains"], "draws a chain": found["n_draws"],
            "worst R-hat": found["worst_rhat"], "its limit": found["rhat_limit"],
            "smallest bulk ESS": found["worst_ess_bulk"],
            "standard error of predictions": found.get("reproducibility", float("nan")),
            "predictions drift": _yes_or_no(found.get("drifting")),
            "log target climbs": _yes_or_no(found.get("climbing")),
        }  # fmt: skip
        yield sheet("How far they can be trusted", {name: [value] for name, value in row.items()})


def _yes_or_no(found: bool | None) -> str:
    return "–" if found is None else "yes" if found else "no"


def _weighed(evidence: Evidence) -> Section:
    """Of draws that no chain has made."""
    summary = evidence.model.posterior_.summary()
    table = {name: summary[name] for name in summary if name not in _OF_CHAINS}
    return Section(
        "draws", "Draws", _verdict(evidence) + "They are taken by weights from mixtures about a few modes, not sampled "
        "by chains.", sheets=[sheet("Draws", table)],
    )  # fmt: skip


def _bound(model: Any) -> Section:
    drawn = picture(partial(plots.plot_bound, model.trace_), "Evidence bound at each step", 2.4, is_wide=True)
    return Section(
        "bound", "Evidence bound", "What was climbed, per row of data; it should have levelled off.", [drawn],
        [sheet("What it chose", model.posterior_.summary())],
    )  # fmt: skip


def _kernels(evidence: Evidence) -> Iterator[Section]:
    model = evidence.model
    if not hasattr(model, "sample_kernels") or getattr(model, "n_groups", 1) > 1:
        return
    ((name, columns),) = evidence.most_relevant(1)
    order = np.lexsort(evidence.X[:, columns].T)
    rows = evidence.X[order[np.unique(np.linspace(0, len(order) - 1, _MOST_KERNEL_ROWS).round().astype(int))]]
    with plain_arrays():
        kernels = model.sample_kernels(X=rows, n_draws=affordable_atoms(model) // 2)
    drawn = picture(
        partial(plots.plot_kernel_quantiles, kernels), "Quantiles of the last kernel matrix", 2.3, True,
        n_columns=3, sharex=True, sharey=True,
    )  # fmt: skip
    yield Section(
        "kernel", "Kernel", f"Entrywise quantiles of the last layer's kernel at training rows, sorted by "
        f"{name}: how much the model has learned to tell rows apart, and how sure it is.", [drawn],
    )  # fmt: skip
