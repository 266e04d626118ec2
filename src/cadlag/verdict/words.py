"""What was found, in sentences: how well it fits, whether intervals hold, where it breaks, what matters, what to do.

The advice is in the words of whoever fitted: options of the command for a model that came from a table, arguments and
calls for one from Python.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from cadlag.frames import listed
from cadlag.network.break_tables import BreakPoints
from cadlag.posterior import ESS_LIMIT, RHAT_LIMIT
from cadlag.verdict.evidence import COVERAGE, Checked, Evidence
from cadlag.verdict.facts import Facts, likely_breaks, sorted_relevance

GOOD, CAUTION, NOTE = "good", "caution", "note"
_LEAST_RELEVANT, _IRRELEVANT = 0.05, 0.01
_FAR_APART = 1.05  # R-hat beyond which chains sit in different places, and more of the same will hardly help
_MOST_NAMED = 5
_LEADS = 0.8  # share of a hyperplane's normal beyond which one input is said to turn it alone
_TURNS = 0.1


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes
    ----------
    tone
        "good", "caution" or "note".
    text
        One or two sentences.
    """

    tone: str
    text: str


def verdict(evidence: Evidence) -> list[Finding]:
    """All findings, what a reader wants to know first coming first.

    Parameters
    ----------
    evidence
        What the model showed.

    Returns
    -------
    list[Finding]
        Sentences with their tone.
    """
    parts = (_fit, _intervals, _where_it_breaks, _what_matters, _convergence, _remarks)
    return [finding for part in parts for finding in part(evidence)]


# How well it predicts ------------------------------------------------------------------------------------------------


def _rows(checked: Checked) -> str:
    return "Held-out rows" if checked.held_out else "Training rows left out one at a time"


def _check_elsewhere(evidence: Evidence) -> str:
    if evidence.recipe is not None:
        return "cadlag report MODEL --data TABLE, or compare methods on folds: cadlag compare"
    return "write_report(model, path, X, y)"


def _fit(evidence: Evidence) -> Iterator[Finding]:
    checked = evidence.checked
    if checked is None:
        yield Finding(
            NOTE, "How well it predicts is not known: this method cannot leave rows out in closed form. Give rows that "
            f"it has not seen: {_check_elsewhere(evidence)}.",
        )  # fmt: skip
        return
    share = checked.explained
    if math.isnan(share):
        yield Finding(NOTE, f"{_rows(checked)} have all the same response; the typical error is {checked.rmse:.3g}.")
        return
    word = "very well" if share >= 0.9 else "well" if share >= 0.6 else "in part" if share >= 0.2 else "hardly at all"
    target = evidence.target
    yield Finding(
        GOOD if share >= 0.6 else CAUTION if share < 0.2 else NOTE,
        f"{_rows(checked)} are predicted {word}: {100 * max(share, 0.0):.3g} % of the variance of {target} is "
        f"explained, the typical error (RMSE) is {checked.rmse:.3g} where {target} has a standard deviation of "
        f"{np.std(checked.y):.3g}{_noise(evidence)}.",
    )  # fmt: skip


def _noise(evidence: Evidence) -> str:
    draws = evidence.model.posterior_.draws
    if "noise_variance" not in draws:
        return ""
    return f"; the noise is estimated at {float(np.median(np.sqrt(draws['noise_variance']))):.3g}"


def _intervals(evidence: Evidence) -> Iterator[Finding]:
    checked = evidence.checked
    if checked is None:
        return
    n, inside = len(checked.y), checked.n_inside
    low, high = binom(n, COVERAGE).ppf([0.025, 0.975])
    found = f"{100 * COVERAGE:.0f} % intervals hold {100 * inside / n:.0f} % of them"
    if inside < low:
        yield Finding(CAUTION, f"The {found}: they are too narrow, so trust them less than they say.")
    elif inside > high:
        yield Finding(NOTE, f"The {found}: they are wider than they need to be.")
    else:
        yield Finding(GOOD, f"The {found}, as they should within the chance of {n} rows.")
    yield from _inner_half(checked)
    if checked.n_doubtful:
        yield Finding(
            CAUTION,
            f"For {checked.n_doubtful} of {len(evidence.y)} rows leaving one out is not to be trusted (Pareto shape "
            f"above 0.7, or too few draws to tell): check on held-out rows, {_check_elsewhere(evidence)}.",
        )  # fmt: skip


def _inner_half(checked: Checked) -> Iterator[Finding]:
    """Intervals that hold what they should at 90 % may still have the wrong shape."""
    n, inside = len(checked.y), int(np.sum(np.abs(checked.pit - 0.5) <= 0.25))
    low, high = binom(n, 0.5).ppf([0.005, 0.995])
    if inside > high:
        yield Finding(
            NOTE, f"The 50 % intervals hold {100 * inside / n:.0f} %: most rows are predicted better than the model "
            "claims, as happens where a few are much harder than the rest.",
        )  # fmt: skip
    elif inside < low:
        yield Finding(
            CAUTION, f"The 50 % intervals hold only {100 * inside / n:.0f} %: the model is too sure of itself."
        )


# Jumps and inputs ----------------------------------------------------------------------------------------------------


def _where_it_breaks(evidence: Evidence) -> Iterator[Finding]:
    breaks = evidence.breaks
    if breaks is None:
        return
    least = f"more than {breaks.min_size:.3g}"
    if not isinstance(breaks, BreakPoints):
        yield from _planes(evidence, least)
        return
    any_jump = breaks.probability_of_any
    if any_jump < 0.5:
        yield Finding(NOTE, f"No jump of {least} is likely (probability {any_jump:.2f}).")
        return
    name, k = evidence.names[0], int(np.argmax(breaks["probability"]))
    low, high = (evidence.text(name, end) for end in breaks.interval(COVERAGE))
    lower, upper = (evidence.text(name, breaks[end][k]) for end in ("lower", "upper"))
    yield Finding(
        NOTE,
        f"The function {'jumps' if any_jump >= 0.9 else 'may jump'} by {least} (probability {any_jump:.2f}), most "
        f"probably between {lower} and {upper} (probability {breaks['probability'][k]:.2f}), there by "
        f"{breaks['size'][k]:+.3g} ({breaks['size_q05'][k]:+.3g} to {breaks['size_q95'][k]:+.3g}); the 90 % interval "
        f"of the largest jump runs from {low} to {high}.",
    )  # fmt: skip


def _planes(evidence: Evidence, least: str) -> Iterator[Finding]:
    likely = [row for row in likely_breaks(evidence) if row["probability"] >= 0.5]
    if not likely:
        yield Finding(NOTE, f"No hyperplane across which the function jumps by {least} is likely.")
    for row in likely:
        yield Finding(NOTE, _plane(row, evidence))


def plane_label(row: Facts, evidence: Evidence) -> str:
    """A hyperplane in a few words, for a picture."""
    name, share = next(iter(row["leading"].items()))
    if share >= _LEADS:
        return f"{name} ≈ {evidence.text(name, row['crossing'])}"
    return " and ".join(other for other, part in row["leading"].items() if part >= _TURNS)


def _plane(row: Facts, evidence: Evidence) -> str:
    """A hyperplane by the inputs that turn it: one that leads by far is said to pass a value."""
    name, share = next(iter(row["leading"].items()))
    sizes = [row["rise"] * row[key] for key in ("size", "size_q05", "size_q95")]
    chance = f"(probability {row['probability']:.2f})"
    if share >= _LEADS:
        size = f"{sizes[0]:+.3g} ({min(sizes[1:]):+.3g} to {max(sizes[1:]):+.3g})"
        place, low, high = (evidence.text(name, row[key]) for key in ("crossing", "crossing_q05", "crossing_q95"))
        return f"The function jumps by {size} where {name} passes {place} ({low} to {high}; {chance[1:-1]})."
    turning = " and ".join(f"{other} ({100 * part:.0f} %)" for other, part in row["leading"].items() if part >= _TURNS)
    small = 100 * min(row["share"], 1.0 - row["share"])
    return (
        f"The function jumps by {abs(row['size']):.3g} across a hyperplane in {turning}, {small:.0f} % of the rows "
        f"beyond it {chance}."
    )


def _what_matters(evidence: Evidence) -> Iterator[Finding]:
    rows = sorted_relevance(evidence)
    if rows is None:
        return
    named = [f"{row['input']} ({row['relevance']:.2f})" for row in rows if row["relevance"] >= _LEAST_RELEVANT]
    idle = [row["input"] for row in rows if row["q95"] < _IRRELEVANT]
    if not named:
        yield Finding(CAUTION, "No input matters by itself: the function hardly changes when any one is permuted.")
        return
    rest = f" Hardly anything depends on {listed(idle, _MOST_NAMED)}." if idle else ""
    yield Finding(NOTE, f"What matters, by share of the variance lost without it: {listed(named, _MOST_NAMED)}.{rest}")


# Whether the draws are those of the posterior ------------------------------------------------------------------------


def _convergence(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.model.diagnostics_
    if "rising" in found:
        yield _bound(found)
    elif "converged" in found:
        yield _search(bool(found["converged"]))
    else:
        yield from _chains(evidence)


def _bound(found: Facts) -> Finding:
    if found["rising"]:
        return Finding(
            CAUTION, f"The evidence bound still rises after {found['n_steps']} steps: a larger n_steps helps."
        )
    return Finding(
        GOOD, f"The evidence bound has settled after {found['n_steps']} steps; its draws approximate the posterior, "
        "and how well is not known.",
    )  # fmt: skip


def _search(converged: bool) -> Finding:
    if converged:
        return Finding(GOOD, "The search for the largest likelihood converged; there are no chains to compare.")
    return Finding(
        CAUTION, "The search for the largest likelihood did NOT converge: the fit may be poor; standardize=True and "
        "more rows help.",
    )  # fmt: skip


def _chains(evidence: Evidence) -> Iterator[Finding]:
    posterior, found = evidence.model.posterior_, evidence.model.diagnostics_
    numbers = (
        f"worst R-hat {found['worst_rhat']:.3f}, smallest bulk effective sample size {found['worst_ess_bulk']:.0f}"
    )
    if posterior.complaint() is None:
        known = not math.isnan(found["worst_rhat"])
        yield Finding(GOOD, f"The chains agree: {numbers}." if known else "Nothing was sampled that could disagree.")
    elif math.isnan(found["worst_rhat"]):
        more = _setting(evidence, "draws", 1000)
        yield Finding(CAUTION, f"{posterior.n_draws} draws a chain are too few to tell whether they agree: ask {more}.")
    else:
        yield Finding(CAUTION, f"The chains do NOT agree yet: {numbers}. {_remedy(evidence)}")
    if posterior.n_chains == 1:
        yield Finding(
            NOTE, f"A single chain can only be compared with itself: fit with {_setting(evidence, 'chains', 4)}."
        )
    divergences = found.get("n_divergences", 0)
    if divergences > 0.01 * posterior.n_chains * posterior.n_draws:
        yield Finding(CAUTION, f"{divergences} trajectories diverged: the sampler may have missed a narrow region.")


def _setting(evidence: Evidence, name: str, value: int) -> str:
    return f"--{name} {value}" if evidence.recipe is not None else f"n_{name}={value}"


def _remedy(evidence: Evidence) -> str:
    """What to do about chains that do not agree."""
    model = evidence.model
    found, draws = model.diagnostics_, model.posterior_.n_draws
    if found["worst_rhat"] > _FAR_APART:
        is_other = getattr(model, "sampler", "") != "tempered" and model._method in ("kernel", "network")
        tempered = "--set sampler=tempered" if evidence.recipe is not None else 'sampler="tempered"'
        return (
            f"They sit in different places (R-hat of {found['worst_rhat_parameter']} above {_FAR_APART}), so first fit "
            f"again with a longer warm-up, {_setting(evidence, 'warmup', 2 * max(int(model.n_warmup), 500))}"
            f"{f', or with {tempered}' if is_other else ''}."
        )
    factor = max(ESS_LIMIT / max(found["worst_ess_bulk"], 1.0), 2.0 if found["worst_rhat"] > RHAT_LIMIT else 1.2)
    if math.isnan(factor):
        factor = 2.0
    more = max(100, math.ceil((factor - 1.0) * draws / 100.0) * 100)
    if evidence.recipe is not None:
        return f"Fit again with more draws: --draws {draws + more} should be about enough."
    return f"Continue them: model.extend(n_draws={more}) should be about enough."


def _remarks(evidence: Evidence) -> Iterator[Finding]:
    for remark in evidence.model.model_.remarks(evidence.model.diagnostics_):
        yield Finding(CAUTION, f"{remark[0].upper()}{remark[1:]}.")
