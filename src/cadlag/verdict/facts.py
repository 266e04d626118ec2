"""The verdict's figures as plain values, fit for JSON; None for what the method cannot tell."""

import math
from typing import Any

import numpy as np

from cadlag.network.break_tables import BreakPoints
from cadlag.settings import plain
from cadlag.verdict.evidence import COVERAGE, Evidence

Facts = dict[str, Any]

_MOST_BREAKS = 3
_LEAST_BREAK = {True: 0.05, False: 0.2}  # of an interval, which shares a jump with its neighbours; of a hyperplane


def facts(evidence: Evidence) -> Facts:
    """Figures for a script.

    Parameters
    ----------
    evidence
        What the model showed.

    Returns
    -------
    Facts
        n_rows, score, breaks, relevance and chains.
    """
    return {
        "n_rows": len(evidence.y),
        "score": _score(evidence),
        "breaks": None if evidence.breaks is None else _breaks(evidence),
        "relevance": sorted_relevance(evidence),
        "chains": {key: _known(plain(value)) for key, value in evidence.model.diagnostics_.items()},
    }


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _score(evidence: Evidence) -> Facts | None:
    checked = evidence.checked
    if checked is None:
        return None
    return {
        "held_out": checked.held_out, "n_rows": len(checked.y), "r2": checked.explained, "rmse": checked.rmse,
        "coverage": checked.n_inside / len(checked.y), "n_doubtful": checked.n_doubtful,
        "log_score": None if checked.log_score is None else float(np.mean(checked.log_score)),
    }  # fmt: skip


def _breaks(evidence: Evidence) -> Facts:
    found = evidence.breaks
    out: Facts = {"min_size": float(found.min_size), "likely": likely_breaks(evidence)}
    if isinstance(found, BreakPoints):
        out |= {"probability_of_any": found.probability_of_any, "interval": list(found.interval(COVERAGE))}
    return out


def likely_breaks(evidence: Evidence) -> list[Facts]:
    """The likeliest jumps: intervals of the only input, or hyperplanes with the inputs that turn them."""
    found = evidence.breaks
    order = np.argsort(-found["probability"], kind="stable")[:_MOST_BREAKS]
    shown = [int(k) for k in order if found["probability"][k] >= _LEAST_BREAK[isinstance(found, BreakPoints)]]
    more: list[Facts] = [{} if isinstance(found, BreakPoints) else leading(k, evidence) for k in shown]
    return [
        {f"normal of {name}" if name in own else name: float(found[name][k]) for name in found} | own
        for k, own in zip(shown, more)
    ]


def leading(k: int, evidence: Evidence) -> Facts:
    """The inputs that turn a hyperplane, by their shares of its normal on standardised inputs, and where it is met."""
    inputs, normal = evidence.model.input_scaling_, evidence.breaks.normals[k]
    shares = (normal * inputs.scale) ** 2 / np.sum((normal * inputs.scale) ** 2)
    order = np.argsort(-shares, kind="stable")
    first = int(order[0])
    middle, low, high = evidence.breaks.crossing(k, first, inputs.centre)
    return {
        "leading": {evidence.names[j]: float(shares[j]) for j in order[:3]}, "crossing": middle,
        "crossing_q05": low, "crossing_q95": high, "rise": float(np.sign(normal[first])),
    }  # fmt: skip


def sorted_relevance(evidence: Evidence) -> list[Facts] | None:
    """The inputs with their relevance, the largest first."""
    if (table := evidence.relevance) is None:
        return None
    rows = [
        {"input": str(name), "relevance": float(middle), "q05": float(low), "q95": float(high)}
        for name, middle, low, high in zip(table["input"], table["relevance"], table["q05"], table["q95"])
    ]
    return sorted(rows, key=lambda row: -row["relevance"])
