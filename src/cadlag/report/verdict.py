"""What was found, in sentences: how well it fits, whether intervals hold, where it breaks, what matters, what to do."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from cadlag.posterior import ESS_LIMIT, RHAT_LIMIT
from cadlag.report.evidence import COVERAGE, Checked, Evidence

GOOD, CAUTION, NOTE = "good", "caution", "note"
_LEAST_RELEVANT, _IRRELEVANT = 0.05, 0.01
_FAR_APART = 1.05  # R-hat beyond which chains sit in different places, and more of the same will hardly help
_MOST_NAMED = 5


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
    parts = (_fit, _intervals, _where_it_breaks, _what_matters, _chains, _remarks)
    return [finding for part in parts for finding in part(evidence)]


def _rows(checked: Checked) -> str:
    return "Held-out rows" if checked.held_out else "Training rows left out one at a time"


def _fit(evidence: Evidence) -> Iterator[Finding]:
    checked = evidence.checked
    if checked is None:
        yield Finding(
            NOTE, "How well it predicts is not known: this method cannot leave rows out in closed form. Give rows that "
            "it has not seen: write_report(model, path, X, y).",
        )  # fmt: skip
        return
    share = checked.explained
    if math.isnan(share):
        yield Finding(NOTE, f"{_rows(checked)} have all the same response; the typical error is {checked.rmse:.3g}.")
        return
    word = "very well" if share >= 0.9 else "well" if share >= 0.6 else "in part" if share >= 0.2 else "hardly at all"
    yield Finding(
        GOOD if share >= 0.6 else CAUTION if share < 0.2 else NOTE,
        f"{_rows(checked)} are predicted {word}: {100 * max(share, 0.0):.3g} % of the variance of y is explained, the "
        f"typical error (RMSE) is {checked.rmse:.3g} where y has a standard deviation of {np.std(checked.y):.3g}"
        f"{_noise(evidence)}.",
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
    wanted = f"{100 * COVERAGE:.0f} %"
    found = f"{wanted} intervals hold {100 * inside / n:.0f} % of them"
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
            f"For {checked.n_doubtful} of {n} rows leaving one out is not to be trusted (Pareto shape above 0.7, or "
            "too few draws to tell): check on held-out rows, write_report(model, path, X, y).",
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


def _where_it_breaks(evidence: Evidence) -> Iterator[Finding]:
    breaks = evidence.breaks
    if breaks is None:
        return
    least = f"more than {breaks.min_size:.3g}"
    if "lower" not in breaks:
        yield from _planes(breaks, least)
        return
    any_jump, k = breaks.probability_of_any, int(np.argmax(breaks["probability"]))
    if any_jump < 0.5:
        yield Finding(NOTE, f"No jump of {least} is likely (probability {any_jump:.2f}).")
        return
    low, high = breaks.interval(COVERAGE)
    yield Finding(
        NOTE,
        f"The function {'jumps' if any_jump >= 0.9 else 'may jump'} by {least} (probability {any_jump:.2f}), most "
        f"probably between {breaks['lower'][k]:.6g} and {breaks['upper'][k]:.6g} (probability "
        f"{breaks['probability'][k]:.2f}), there by {breaks['size'][k]:+.3g} ({breaks['size_q05'][k]:+.3g} to "
        f"{breaks['size_q95'][k]:+.3g}); the 90 % interval of the largest jump runs from {low:.6g} to {high:.6g}.",
    )  # fmt: skip


def _planes(breaks: Any, least: str) -> Iterator[Finding]:
    likely = int(np.sum(breaks["probability"] >= 0.5))
    if likely == 0:
        yield Finding(NOTE, f"No hyperplane across which the function jumps by {least} is likely.")
        return
    across = "one hyperplane" if likely == 1 else f"{likely} hyperplanes"
    yield Finding(NOTE, f"The function jumps by {least} across {across} with a probability above ½ each.")


def _what_matters(evidence: Evidence) -> Iterator[Finding]:
    table = evidence.relevance
    if table is None:
        return
    order = np.argsort(-table["relevance"], kind="stable")
    matter = [j for j in order if table["relevance"][j] >= _LEAST_RELEVANT]
    idle = [str(table["input"][j]) for j in order if table["q95"][j] < _IRRELEVANT]
    if not matter:
        yield Finding(CAUTION, "No input matters by itself: the function hardly changes when any one is permuted.")
        return
    named = [f"{table['input'][j]} ({table['relevance'][j]:.2f})" for j in matter]
    rest = f" Hardly anything depends on {_listed(idle)}." if idle else ""
    yield Finding(NOTE, f"What matters, by share of the variance lost without it: {_listed(named)}.{rest}")


def _listed(names: list[str]) -> str:
    shown = names[:_MOST_NAMED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


def _chains(evidence: Evidence) -> Iterator[Finding]:
    posterior, found = evidence.model.posterior_, evidence.model.diagnostics_
    if "converged" in posterior.stats:
        yield _search(bool(found["converged"]))
        return
    numbers = (
        f"worst R-hat {found['worst_rhat']:.3f}, smallest bulk effective sample size {found['worst_ess_bulk']:.0f}"
    )
    if posterior.complaint() is None:
        known = not math.isnan(found["worst_rhat"])
        yield Finding(GOOD, f"The chains agree: {numbers}." if known else "Nothing was sampled that could disagree.")
    else:
        yield Finding(CAUTION, f"The chains do NOT agree yet: {numbers}. {_remedy(evidence.model)}")
    if posterior.n_chains == 1:
        yield Finding(NOTE, "A single chain can only be compared with itself: fit with n_chains=4.")
    divergences = found.get("n_divergences", 0)
    if divergences > 0.01 * posterior.n_chains * posterior.n_draws:
        yield Finding(CAUTION, f"{divergences} trajectories diverged: the sampler may have missed a narrow region.")


def _search(converged: bool) -> Finding:
    if converged:
        return Finding(GOOD, "The search for the largest likelihood converged; there are no chains to compare.")
    return Finding(
        CAUTION, "The search for the largest likelihood did NOT converge: the fit may be poor; standardize=True and "
        "more rows help.",
    )  # fmt: skip


def _remedy(model: Any) -> str:
    """What to do about chains that do not agree."""
    found, draws = model.diagnostics_, model.posterior_.n_draws
    if found["worst_rhat"] > _FAR_APART:
        tempered = getattr(model, "sampler", "") != "tempered" and model._method in ("kernel", "network")
        other = ', or with sampler="tempered"' if tempered else ""
        return (
            f"They sit in different places (R-hat of {found['worst_rhat_parameter']} above {_FAR_APART}), so first fit "
            f"again with a longer warm-up, n_warmup={2 * max(int(model.n_warmup), 500)}{other}."
        )
    factor = max(ESS_LIMIT / max(found["worst_ess_bulk"], 1.0), 2.0 if found["worst_rhat"] > RHAT_LIMIT else 1.2)
    if math.isnan(factor):
        factor = 2.0
    more = max(100, math.ceil((factor - 1.0) * draws / 100.0) * 100)
    return f"Continue them: model.extend(n_draws={more}) should be about enough."


def _remarks(evidence: Evidence) -> Iterator[Finding]:
    for remark in getattr(evidence.model, "_remarks", list)():
        yield Finding(CAUTION, f"{remark[0].upper()}{remark[1:]}.")
