"""R² = 1 - Σ (y_k - ŷ_k)² / Σ (y_k - ȳ)², each ŷ_k from the other rows: what a fitted model found, in words.

`judge` asks a model the same few questions whatever its method: how well it predicts rows it has not seen, where the
function jumps, which inputs matter, whether the chains agree and what to do if not. The answers are plain values, fit
for JSON; `sentences` puts them into words.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cadlag.estimators.left_out import LeaveOneOut
from cadlag.posterior import ESS_LIMIT, RHAT_LIMIT

COVERAGE = 0.9
_MOST_BREAKS = 3
_LEAST_BREAK = {True: 0.05, False: 0.2}  # of an interval, which shares a jump with its neighbours; of a hyperplane
_LEAST_JUMP = 0.2
_LEAST_RELEVANCE = 0.01
_LEADS = 0.8

Facts = dict[str, Any]
Words = Callable[[str, float], str]


def score_left_out(found: LeaveOneOut) -> Facts:
    """Summary of leaving one out.

    Parameters
    ----------
    found
        What `leave_one_out()` of a model gave.

    Returns
    -------
    Facts
        r2, rmse, coverage of the 90 % intervals, log_score an observation, and the number of doubtful rows.
    """
    error, tail = found.y - found.mean, 0.5 * (1.0 - COVERAGE)
    inside = (found.pit >= tail) & (found.pit <= 1.0 - tail)
    return {
        "r2": 1.0 - float(np.mean(error**2) / np.var(found.y)),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "coverage": float(np.mean(inside)),
        "log_score": float(np.mean(found.log_score)),
        "n_doubtful": int(np.sum(~found.is_trusted)),
    }


def judge(model: Any, n_rows: int, left_out: LeaveOneOut | None = None) -> Facts:
    """Ask a model what it found.

    Parameters
    ----------
    model
        A fitted regressor.
    n_rows
        Rows that it was fitted to.
    left_out
        What leaving one out gave, where it is known already.

    Returns
    -------
    Facts
        rows, score, breaks, relevance and chains; None for what the method cannot tell.
    """
    table = leave_out(model) if left_out is None else left_out
    return {
        "n_rows": n_rows,
        "score": None if table is None else score_left_out(table),
        "breaks": _breaks(model),
        "relevance": _relevance(model),
        "chains": _chains(model),
    }


def leave_out(model: Any) -> LeaveOneOut | None:
    """Every row from the others, or None for a method that has none.

    Parameters
    ----------
    model
        A fitted regressor.

    Returns
    -------
    LeaveOneOut or None
        A row a training row.
    """
    return model.leave_one_out() if hasattr(model, "leave_one_out") else None


def _breaks(model: Any) -> Facts | None:
    """The likeliest jumps: intervals of the only input, or hyperplanes."""
    if not hasattr(model, "break_points") or model.activation == "relu":
        return None
    try:
        found = model.break_points()
    except ValueError:  # of inputs between which nothing lies
        return None
    order = np.argsort(-found["probability"])[:_MOST_BREAKS]
    shown = [int(k) for k in order if found["probability"][k] >= _LEAST_BREAK["lower" in found]]
    rows = [{name: float(found[name][k]) for name in found} for k in shown]
    out: Facts = {"min_size": float(found.min_size), "likely": rows}
    if "lower" not in found:
        names = list(found)[-found.normals.shape[1] :]
        for row, k in zip(rows, shown):
            row |= _leading(found.normals[k], row["offset"], model.input_scaling_, names)
    else:
        out |= {"probability_of_any": found.probability_of_any, "interval": list(found.interval(COVERAGE))}
    return out


def _leading(normal: Any, offset: float, inputs: Any, names: Sequence[str]) -> Facts:
    """The inputs that turn a hyperplane, by their shares of its normal on standardised inputs, and where it is met.

    `crossing` is where the first of them meets the plane when all others are at their mean, `rise` the sign of the jump
    as it grows.
    """
    shares = (normal * inputs.scale) ** 2 / np.sum((normal * inputs.scale) ** 2)
    order = np.argsort(-shares)
    first = int(order[0])
    rest = float(normal @ inputs.centre - normal[first] * inputs.centre[first])
    return {
        "leading": {names[j].removeprefix("normal of "): float(shares[j]) for j in order[:3]},
        "crossing": (offset - rest) / float(normal[first]), "rise": float(np.sign(normal[first])),
    }  # fmt: skip


def _relevance(model: Any) -> list[Facts] | None:
    if not hasattr(model, "feature_relevance"):
        return None
    table = model.feature_relevance()
    rows = [
        {"input": str(name), "relevance": float(middle), "q05": float(low), "q95": float(high)}
        for name, middle, low, high in zip(table["input"], table["relevance"], table["q05"], table["q95"])
    ]
    return sorted(rows, key=lambda row: -row["relevance"])


def _chains(model: Any) -> Facts:
    found = model.diagnostics_
    if "worst_rhat" not in found or found["n_chains"] * found["n_draws"] <= 1:
        return {"agree": bool(found.get("converged", True)), "n_chains": 0}
    known = not math.isnan(found["worst_rhat"])
    agree = known and found["worst_rhat"] <= RHAT_LIMIT and found["worst_ess_bulk"] >= ESS_LIMIT
    names = ("n_chains", "n_draws", "worst_rhat", "worst_rhat_parameter", "worst_ess_bulk", "worst_ess_bulk_parameter")
    return {"agree": bool(agree), **{name: found[name] for name in names}}


# In words ------------------------------------------------------------------------------------------------------------


def sentences(facts: Mapping[str, Any], target: str, words: Words) -> list[str]:
    """The facts as a reader wants them, the most important first.

    Parameters
    ----------
    facts
        What `judge` gave.
    target
        Name of what is predicted.
    words
        Writes a value of an input, by its name: dates as dates.

    Returns
    -------
    list[str]
        Sentences.
    """
    parts = [
        _score_words(facts["score"], target, facts["n_rows"]),
        _break_words(facts["breaks"], target, words, [row["input"] for row in facts["relevance"] or []]),
        _relevance_words(facts["relevance"]),
        _chain_words(facts["chains"]),
    ]
    return [part for part in parts if part]


def _score_words(score: Facts | None, target: str, n: int) -> str:
    if score is None:
        return ""
    r2 = score["r2"]
    grade = "very well" if r2 > 0.9 else "well" if r2 > 0.7 else "fairly" if r2 > 0.4 else "weakly" if r2 > 0.1 else ""
    how = f"{grade}: {100 * r2:.0f} % of its variance is explained" if grade else "hardly better than by its mean"
    doubt = score["n_doubtful"]
    return (
        f"Rows left out are predicted {how}; the typical error of {target!r} is {score['rmse']:.3g}. "
        f"{100 * score['coverage']:.0f} % of the {n} rows lie in their {100 * COVERAGE:.0f} % interval."
        + (f" This is uncertain for {doubt} rows that pull the fit towards them." if doubt else "")
    )


def _break_words(breaks: Facts | None, target: str, words: Words, names: list[str]) -> str:
    if breaks is None:
        return ""
    least = f"more than the noise ({breaks['min_size']:.3g})"
    if not breaks["likely"] or breaks.get("probability_of_any", 1.0) < _LEAST_JUMP:
        return f"No jump of {target!r} by {least} is likely anywhere."
    if "interval" not in breaks:
        return " ".join(_plane_words(row, target, words) for row in breaks["likely"])
    name, top = names[0], breaks["likely"][0]
    low, high = (words(name, end) for end in breaks["interval"])
    size = f"{top['size']:+.3g} ({top['size_q05']:+.3g} to {top['size_q95']:+.3g})"
    return (
        f"{target!r} jumps with probability {breaks['probability_of_any']:.2f} by {least}, most probably where "
        f"{name!r} goes from {words(name, top['lower'])} to {words(name, top['upper'])} (probability "
        f"{top['probability']:.2f}), by {size}. The 90 % interval of the largest jump runs from {low} to {high}."
    )


def _plane_words(row: Facts, target: str, words: Words) -> str:
    """A hyperplane by the inputs that turn it: one that leads by far is said to pass a value."""
    name, share = next(iter(row["leading"].items()))
    sizes = [row["rise"] * row[key] for key in ("size", "size_q05", "size_q95")]
    size = f"{sizes[0]:+.3g} ({min(sizes[1:]):+.3g} to {max(sizes[1:]):+.3g})"
    chance = f"(probability {row['probability']:.2f})"
    if share >= _LEADS:
        return f"{target!r} jumps by {size} where {name!r} passes about {words(name, row['crossing'])} {chance}."
    others = " and ".join(f"{other!r} ({100 * part:.0f} %)" for other, part in row["leading"].items() if part >= 0.1)
    small = 100 * min(row["share"], 1.0 - row["share"])
    size = f"{abs(row['size']):.3g}"
    return f"{target!r} jumps by {size} across a line in {others}, {small:.0f} % of the rows beyond it {chance}."


def _relevance_words(rows: list[Facts] | None) -> str:
    if not rows or len(rows) == 1:
        return ""
    seen = [row for row in rows if row["relevance"] >= _LEAST_RELEVANCE]
    rest = [repr(row["input"]) for row in rows if row["relevance"] < _LEAST_RELEVANCE]
    shown = ", ".join(f"{row['input']!r} ({100 * row['relevance']:.0f} %)" for row in seen[:6])
    more = f" and {len(seen) - 6} more" if len(seen) > 6 else ""
    idle = f" Without visible influence: {', '.join(rest[:8])}{' ..' if len(rest) > 8 else ''}." if rest else ""
    return (f"What matters, by the share of the function lost without it: {shown}{more}." if seen else "") + idle


def _chain_words(chains: Facts) -> str:
    if not chains["n_chains"]:
        return "" if chains["agree"] else "The search for the best fit did not converge: do not rely on it."
    if math.isnan(chains["worst_rhat"]):
        return f"{chains['n_draws']} draws a chain are too few to tell whether the chains agree: ask for --draws 1000."
    figures = (
        f"worst R-hat {chains['worst_rhat']:.3f} (of {chains['worst_rhat_parameter']}), smallest effective sample size "
        f"{chains['worst_ess_bulk']:.0f}"
    )
    if chains["agree"]:
        return f"The chains agree: {figures}."
    if chains["n_draws"] < 1000:
        remedy = "Ask for --draws 1000 --warmup 1000 or more."
    else:
        remedy = f"Ask for more draws, as with --draws {4 * chains['n_draws']}, or try another --method."
    return f"The chains do NOT agree yet: {figures}. Take the bands with caution. {remedy}"
