"""What was found, in sentences: how well it fits, whether intervals hold, where it breaks, what matters, what to do.

The advice is in the words of whoever fitted: options of the command for a model that came from a table, arguments and
calls for one from Python.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from cadlag.frames import listed
from cadlag.network.break_tables import BreakPoints
from cadlag.posterior import ESS_LIMIT
from cadlag.trust import CLOSE, ENSEMBLE, FAST, FEWEST_CHAINS, POSTERIOR, UNFINISHED
from cadlag.verdict.evidence import COVERAGE, Checked, Evidence
from cadlag.verdict.facts import Facts, likely_breaks, sorted_relevance

GOOD, CAUTION, NOTE = "good", "caution", "note"
_LEAST_RELEVANT, _IRRELEVANT = 0.05, 0.01
_MOST_NAMED = 5
_LEADS = 0.8  # share of a hyperplane's normal beyond which one input is said to turn it alone
_TURNS = 0.1
_LARGEST_SHAPE = 0.7  # of the tail of weights that stand for the posterior
_LEAST_WARMUP = 500  # that is worth doubling
_NOTHING_SAMPLED = "Nothing was sampled that could disagree."
MEANING = {
    POSTERIOR: "every parameter may be read",
    ENSEMBLE: "predictions, intervals and break points may be used, single parameters may not",
    UNFINISHED: "the draws are not to be relied on yet",
    FAST: "a first look, not the posterior",
}


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
    judged = {POSTERIOR: _agreeing, ENSEMBLE: _ensemble, UNFINISHED: _unfinished, FAST: _first_look}
    yield judged.get(found.get("verdict"), _agreement)(evidence)
    if posterior.n_chains == 1 and found.get("verdict") != FAST:
        yield Finding(
            NOTE, f"A single chain can only be compared with itself: fit with {_setting(evidence, 'chains', 4)}."
        )
    divergences = found.get("n_divergences", 0)
    if divergences > 0.01 * posterior.n_chains * posterior.n_draws:
        yield Finding(CAUTION, f"{divergences} trajectories diverged: the sampler may have missed a narrow region.")


def _told(found: Facts) -> str:
    """What is known of the chains in numbers."""
    known = [
        f"{words} {found[key]:{form}}"
        for key, words, form in (
            ("worst_rhat", "worst R-hat", ".3f"), ("worst_ess_bulk", "smallest bulk effective sample size", ".0f")
        )
        if not math.isnan(found[key])
    ]  # fmt: skip
    return "; ".join(filter(None, (", ".join(known), _moved(found))))


def _moved(found: Facts) -> str:
    """How far another seed would move the predictions, in words, where that is known."""
    moved = math.sqrt(2.0) * found.get("reproducibility", math.nan)
    if math.isnan(moved):
        return ""
    return f"another seed would move predictions by {moved:.2g} predictive standard deviations"


def _agreeing(evidence: Evidence) -> Finding:
    told = _told(evidence.model.diagnostics_)
    return Finding(GOOD, f"The chains agree: {told}." if told else _NOTHING_SAMPLED)


def _ensemble(evidence: Evidence) -> Finding:
    found = evidence.model.diagnostics_
    are_apart = found["worst_rhat"] > found["rhat_limit"]
    climbing = " Their log target still climbs: a longer warm-up may predict better." if found["climbing"] else ""
    return Finding(
        NOTE, f"The chains {'settle in different places' if are_apart else 'have too few draws for more'}, but their "
        f"average is reproducible (standard error {found['reproducibility']:.2g} predictive standard deviations): "
        f"{MEANING[ENSEMBLE]}.{climbing}",
    )  # fmt: skip


def _unfinished(evidence: Evidence) -> Finding:
    found = evidence.model.diagnostics_
    state = "do NOT agree yet" if found["worst_rhat"] > found["rhat_limit"] else "agree, but have too few draws yet"
    drift = ", and predictions still drift" if found["drifting"] else ""
    return Finding(CAUTION, f"The chains {state}: {_told(found)}{drift}. {_way_on(evidence)}")


def _first_look(evidence: Evidence) -> Finding:
    posterior = evidence.model.posterior_
    whole = "leave --fast out" if evidence.recipe is not None else 'fit with inference="mcmc"'
    shapes = posterior.stats.get("pareto_shape")
    what = (
        f"{posterior.n_chains} short chains, which have not found all there is to find"
        if shapes is None else _weighed(float(np.max(shapes)))
    )  # fmt: skip
    return Finding(NOTE, f"This is a first look, not the posterior: {what}; {whole} for the posterior itself.")


def _weighed(shape: float) -> str:
    """What the tail of the weights says of draws about a few modes."""
    if math.isnan(shape):
        return "whether the weights of its draws stand for the posterior cannot be told"
    known = "" if math.isinf(shape) else f" (Pareto shape {shape:.2f}, trusted up to {_LARGEST_SHAPE:g})"
    return f"the weights of its draws {'do NOT' if shape > _LARGEST_SHAPE else 'seem to'} stand for it{known}"


def _agreement(evidence: Evidence) -> Finding:
    """Of chains that have no verdict of their own."""
    posterior, found = evidence.model.posterior_, evidence.model.diagnostics_
    if posterior.complaint() is None:
        return _agreeing(evidence)
    if math.isnan(found["worst_rhat"]):
        more = _setting(evidence, "draws", 1000)
        return Finding(
            CAUTION, f"{posterior.n_draws} draws a chain are too few to tell whether they agree: ask {more}."
        )
    return Finding(CAUTION, f"The chains do NOT agree yet: {_told(found)}. {_remedy(evidence)}")


# What to do about it -------------------------------------------------------------------------------------------------


def _setting(evidence: Evidence, name: str, value: float) -> str:
    """A setting in the words of whoever fitted."""
    if evidence.recipe is not None:
        return f"--{name} {value}"
    return f"{name if name == 'precision' else f'n_{name}'}={value}"


def _remedy(evidence: Evidence) -> str:
    """What to do about chains that do not agree."""
    model, found = evidence.model, evidence.model.diagnostics_
    limit = found["rhat_limit"] + CLOSE
    if found["worst_rhat"] > limit:
        is_other = getattr(model, "sampler", "") != "tempered" and model._method in ("kernel", "network")
        tempered = "--set sampler=tempered" if evidence.recipe is not None else 'sampler="tempered"'
        return (
            f"They sit in different places (R-hat of {found['worst_rhat_parameter']} above {limit:.2f}), so first fit "
            f"again with a longer warm-up, {_longer_warmup(evidence)}{f', or with {tempered}' if is_other else ''}."
        )
    return _more_draws(evidence)


def _way_on(evidence: Evidence) -> str:
    """What to do about a fit that is not finished."""
    model, found = evidence.model, evidence.model.diagnostics_
    if _is_open(model) and model.max_seconds is not None:
        if evidence.recipe is not None:
            return "Give it more time: fit again with a larger --max-seconds, or leave it out."
        return f"Give it more time: model.extend(precision={model.precision:g}) goes on where it stopped."
    if found["drifting"]:
        return f"Fit again with a longer warm-up, {_longer_warmup(evidence)}."
    return _more_chains(evidence) if found["worst_rhat"] > found["rhat_limit"] else _more_draws(evidence)


def _is_open(model: Any) -> bool:
    """Whether it was left to the fit when to end."""
    return model._grows and "auto" in (model.n_chains, model.n_draws, model.n_warmup)


def _longer_warmup(evidence: Evidence) -> str:
    """Twice what was dropped."""
    model = evidence.model
    chains = getattr(model, "chains_", [])
    given = 0 if model.n_warmup == "auto" else int(model.n_warmup)
    dropped = int(chains[0]["done"]) - model.posterior_.n_draws if chains else given
    return _setting(evidence, "warmup", 2 * max(dropped, _LEAST_WARMUP))


def _more_draws(evidence: Evidence) -> str:
    """As many as make enough effective ones."""
    found, draws = evidence.model.diagnostics_, evidence.model.posterior_.n_draws
    enough = 2.0 if found["worst_rhat"] > found["rhat_limit"] else 1.2
    factor = max(ESS_LIMIT / max(found["worst_ess_bulk"], 1.0), enough)
    if math.isnan(factor):
        factor = 2.0
    more = max(100, math.ceil((factor - 1.0) * draws / 100.0) * 100)
    if evidence.recipe is not None:
        return f"Fit again with more draws: --draws {draws + more} should be about enough."
    return f"Continue them: model.extend(n_draws={more}) should be about enough."


def _more_chains(evidence: Evidence) -> str:
    """Chains that settle in different places are worth their average, which takes many; or less may be enough."""
    model, r = evidence.model, evidence.model.diagnostics_["reproducibility"]
    ways = [_setting(evidence, "chains", max(2 * FEWEST_CHAINS, 2 * model.posterior_.n_chains))]
    if model._grows and model.n_chains != "auto":
        ways.append("leave --chains out" if evidence.recipe is not None else 'n_chains="auto"')
    if model.precision < r < 1.0:
        ways.append(f"ask for less, {_setting(evidence, 'precision', math.ceil(10.0 * r) / 10.0)}")
    return f"They settle in different places, so fit again with more of them, {', or '.join(ways)}."


def _remarks(evidence: Evidence) -> Iterator[Finding]:
    for remark in evidence.model.model_.remarks(evidence.model.diagnostics_):
        yield Finding(CAUTION, f"{remark[0].upper()}{remark[1:]}.")
