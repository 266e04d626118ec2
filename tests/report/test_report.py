"""The page about a fitted model: what it says, what it shows, and what it must not let through."""

import base64
import importlib
import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cadlag import NNGPRegressor, StableKernelRegressor, StableNetworkRegressor, load
from cadlag.network.break_tables import BreakPlanes
from cadlag.plots.style import new_axes
from cadlag.recipes import Input, Recipe
from cadlag.report import write_report
from cadlag.report.sections import _chains, _dependences, _fit, _named, _relevance, _unseen_rows, sheet
from cadlag.storage import read_tree, write_tree
from cadlag.verdict import Checked, Evidence, facts, gather, verdict
from cadlag.verdict.facts import leading
from cadlag.verdict.words import plane_label

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
YEARS = np.arange(1900.0, 1940.0)
FLOW = 100.0 - 30.0 * (YEARS > 1924.5) + 3.0 * RNG.standard_normal(40)
HOSTILE = ['<script>alert("1")</script>', '"><img src=x onerror=alert(2)>', "{{ 7 * 7 }} $\\frac{ & ünï\x00\x1b"]
BOX = RNG.uniform(-1.0, 1.0, (30, 3))
HEIGHT = 4.0 * BOX[:, 0] + 0.1 * RNG.standard_normal(30)


class Page(HTMLParser):
    """Tags with their attributes, and the text of each section."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.sections, self._at = [], {"": ""}, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "section":
            self._at = dict(attributes)["id"]
            self.sections[self._at] = ""

    def handle_data(self, data):
        self.sections[self._at] += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def network():
    return StableNetworkRegressor(
        n_units=6, bulk=False, n_draws=60, n_warmup=150, n_chains=2, random_state=1
    ).fit(pd.DataFrame({"year": YEARS}), FLOW)  # fmt: skip


@pytest.fixture(scope="module")
def kernel():
    model = StableKernelRegressor(n_draws=40, n_warmup=60, n_chains=2, random_state=0)
    return model.fit(pd.DataFrame(BOX, columns=HOSTILE), HEIGHT)


@pytest.fixture(scope="module")
def network_file(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("network") / "report.html"
    write_report(network, path)
    return path


@pytest.fixture(scope="module")
def network_page(network_file):
    return Page(network_file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def kernel_file(kernel, tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "report.html"
    write_report(kernel, path)
    return path


@pytest.fixture(scope="module")
def kernel_page(kernel_file):
    return Page(kernel_file.read_text(encoding="utf-8"))


def test_sections_of_a_model_of_one_input_that_jumps(network_page):
    assert list(network_page.sections)[1:] == [
        "verdict", "fit", "breaks", "calibration", "residuals", "chains", "settings"
    ]  # fmt: skip


def test_sections_of_a_kernel_of_several_inputs(kernel_page):
    assert list(kernel_page.sections)[1:] == [
        "verdict", "dependence", "relevance", "calibration", "residuals", "chains", "kernel", "settings"
    ]  # fmt: skip


@pytest.mark.parametrize("page", ["network_page", "kernel_page"])
def test_nothing_comes_from_outside(page, request):
    page = request.getfixturevalue(page)
    policy = [tag["content"] for tag in page.all("meta") if tag.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert not {name for name, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "base", "form"}
    addresses = [v for _, tag in page.tags for k, v in tag.items() if k in ("src", "href", "srcset", "action")]
    assert addresses
    assert all(address.startswith(("data:image/svg+xml;base64,", "#")) for address in addresses)
    anchors = {address[1:] for address in addresses if address.startswith("#")}
    assert anchors == set(page.sections) - {"", "verdict"}


@pytest.mark.parametrize("page", ["network_page", "kernel_page"])
def test_pictures_are_whole_and_described(page, request):
    pictures = request.getfixturevalue(page).all("img")
    assert len(pictures) >= 8
    for picture in pictures:
        drawing = ElementTree.fromstring(base64.b64decode(picture["src"].split(",", 1)[1]))
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 3
        assert len(picture["alt"]) > 10


def test_names_of_columns_are_only_words(kernel_page):
    assert not any(name.startswith("on") for _, tag in kernel_page.tags for name in tag)
    relevance = kernel_page.sections["relevance"]
    assert all(name in relevance for name in HOSTILE[:2])
    assert "{{ 7 * 7 }} $\\frac{ & ünï��" in relevance
    everything = "".join(kernel_page.sections.values())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", everything)


def test_the_verdict_says_where_it_breaks_and_how_well_it_fits(network, network_page):
    said = network_page.sections["verdict"]
    breaks, left_out = network.break_points(), network.leave_one_out()
    k = int(np.argmax(breaks["probability"]))
    assert breaks["lower"][k] == pytest.approx(1924.0)
    assert "between 1924 and 1925" in said
    low, middle, high = left_out.quantile([0.05, 0.5, 0.95]).T
    inside = np.mean((low <= FLOW) & (high >= FLOW))
    assert f"90 % intervals hold {100 * inside:.0f} % of them" in said
    error = np.mean((FLOW - middle) ** 2)
    assert f"{100 * (1.0 - error / np.var(FLOW)):.3g} % of the variance of y is explained" in said
    assert f"(RMSE) is {math.sqrt(error):.3g}" in said
    assert "Training rows left out one at a time are predicted very well" in said


def test_the_verdict_says_what_matters(kernel_page):
    said = kernel_page.sections["verdict"]
    assert HOSTILE[0] in said.split("What matters")[1]
    assert "Hardly anything depends on" in said


def test_held_out_rows_are_used_where_given(kernel, tmp_path):
    X = pd.DataFrame(RNG.uniform(-1.0, 1.0, (12, 3)), columns=HOSTILE)
    y = 4.0 * X[HOSTILE[0]] + 50.0
    found = gather(kernel, X, y)
    words = " ".join(finding.text for finding in verdict(found))
    assert "Held-out rows are predicted hardly at all" in words
    assert "90 % intervals hold 0 % of them: they are too narrow" in words
    calibration, _ = _unseen_rows(found)
    assert "On 12 held-out rows" in calibration.text
    with pytest.raises(ValueError, match="need both X and y"):
        write_report(kernel, tmp_path / "page.html", X)
    with pytest.raises(ValueError, match="X has 12 rows and y 11"):
        write_report(kernel, tmp_path / "page.html", X, y[:11])
    assert not (tmp_path / "page.html").exists()


def test_a_model_read_from_a_file_gives_the_same_page(network, network_file, tmp_path):
    network.save(tmp_path / "model")
    write_report(load(tmp_path / "model"), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == network_file.read_bytes()


def test_a_failure_leaves_the_old_page(network, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(NotFittedError):
        write_report(StableKernelRegressor(), path)
    monkeypatch.setattr("cadlag.report.page.sections", lambda evidence: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(network, path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_settings_make_the_model_again(kernel, kernel_page):
    said = kernel_page.sections["settings"]
    assert "StableKernelRegressor(n_chains=2, n_draws=40, n_warmup=60, random_state=0).fit(X, y)" in said
    again = eval(re.search(r"model = (.*)\.fit", said).group(1))
    assert again.get_params() == kernel.get_params()
    assert f"numpy{np.__version__}" in re.sub(r"\s", "", said)
    assert "without random_state" not in said


def test_a_point_estimate_has_no_chains(tmp_path):
    write_report(NNGPRegressor(sampler="ml").fit(BOX, HEIGHT), tmp_path / "page.html", title="<b>Mine</b>")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "chains" not in page.sections
    assert "The search for the largest likelihood converged" in page.sections["verdict"]
    assert "<b>Mine</b>" in page.sections[""]
    assert "Pareto" not in page.sections["verdict"]


def test_a_method_that_cannot_leave_one_out_asks_for_rows(kernel, monkeypatch):
    monkeypatch.delattr("cadlag.regressor.Regressor.leave_one_out")
    found = gather(kernel)
    assert "Give rows that it has not seen: write_report(model, path, X, y)" in verdict(found)[0].text
    assert list(_unseen_rows(found)) == []


@pytest.mark.parametrize(
    ("module", "library", "sentence"),
    [("cadlag.report.page", "jinja2", "a report needs Jinja2: pip install 'cadlag[report]'"),
     ("cadlag.plots.style", "matplotlib.pyplot", "pictures need matplotlib: pip install 'cadlag[plot]'")],
)  # fmt: skip
def test_what_is_missing_is_said(module, library, sentence, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ImportError) as found:
        importlib.import_module(module)
    assert str(found.value) == sentence


# Words ---------------------------------------------------------------------------------------------------------------


def evidence(checked=None, breaks=None, relevance=None, **found):
    """Of a model that need not exist."""
    diagnostics = {"worst_rhat": 1.0, "rhat_limit": 1.02, "worst_ess_bulk": 900.0, "worst_rhat_parameter": "a", **found}
    complaint = "no" if diagnostics["worst_rhat"] > 1.02 or diagnostics["worst_ess_bulk"] < 400.0 else None
    posterior = SimpleNamespace(draws={}, stats={}, n_chains=4, n_draws=1000, complaint=lambda: complaint)
    model = SimpleNamespace(
        posterior_=posterior,
        diagnostics_=diagnostics,
        n_warmup=1000,
        sampler="gibbs",
        _method="network",
        model_=SimpleNamespace(remarks=lambda diagnostics: []),
    )
    return Evidence(model, np.zeros((2, 1)), np.zeros(2), ["x"], checked, breaks, relevance)


def said(*arguments, **found):
    return " ".join(f"[{finding.tone}] {finding.text}" for finding in verdict(evidence(*arguments, **found)))


@pytest.mark.parametrize("n_warmup", [1000, "auto"])
def test_what_to_do_about_chains_that_sit_apart(n_warmup):
    """Apart is what more draws cannot cure: beyond the limit for so many chains, which differs from fit to fit."""
    found = evidence(worst_rhat=1.3, rhat_limit=1.24)
    found.model.n_warmup = n_warmup
    assert f"n_warmup={2000 if n_warmup == 1000 else 1000}, or with" in verdict(found)[-1].text
    found.model.chains_ = [{"done": 4000}]  # of which the last 1,000 are kept
    said = verdict(found)[-1].text
    assert "n_warmup=6000" in said
    assert "(R-hat of a above 1.29)" in said
    found.model.diagnostics_["rhat_limit"] = 1.26
    assert "extend(n_draws=1000)" in verdict(found)[-1].text


TRUST = {"worst_rhat": 1.3, "worst_ess_bulk": 50.0, "reproducibility": 0.35, "drifting": False, "climbing": False}


def judged(word, recipe=None, counts=("auto", "auto", "auto"), max_seconds=None, **found):
    """What is said of the chains of a fit that has a verdict."""
    seen = replace(evidence(**{"verdict": word, **TRUST, **found}), recipe=recipe)
    model = seen.model
    model.n_chains, model.n_draws, model.n_warmup = counts
    model.precision, model.max_seconds, model._grows, model.chains_ = 0.2, max_seconds, True, [{"done": 1600}]
    finding = verdict(seen)[-1]
    return f"[{finding.tone}] {finding.text}"


def test_a_posterior_is_said_to_agree():
    said = judged("posterior", worst_rhat=1.011, worst_ess_bulk=812.4, reproducibility=0.05)
    assert said == (
        "[good] The chains agree: worst R-hat 1.011, smallest bulk effective sample size 812; another seed would move "
        "predictions by 0.071 predictive standard deviations."
    )
    unknown = judged("posterior", worst_rhat=1.011, worst_ess_bulk=812.4, reproducibility=math.nan)
    assert unknown == said[: said.index(";")] + "."
    nothing = dict.fromkeys(("worst_rhat", "worst_ess_bulk", "reproducibility"), math.nan)
    assert judged("posterior", **nothing) == "[good] Nothing was sampled that could disagree."


def test_an_ensemble_is_for_predictions():
    said = judged("ensemble", reproducibility=0.123)
    assert said == (
        "[note] The chains settle in different places, but their average is reproducible (standard error 0.12 "
        "predictive standard deviations): predictions, intervals and break points may be used, single parameters may "
        "not."
    )
    assert "different places" not in judged("ensemble", worst_rhat=1.01)
    assert judged("ensemble", reproducibility=0.123, climbing=True).startswith(said + " Their log target still climbs")


@pytest.mark.parametrize(
    ("changes", "python", "command"),
    [({"max_seconds": 60.0}, "model.extend(precision=0.2) goes on", "again with a larger --max-seconds, or leave it"),
     ({"max_seconds": 60.0, "counts": (8, 9, 9), "drifting": True}, "n_warmup=1200.", "longer warm-up, --warmup 1200."),
     ({"drifting": True}, "longer warm-up, n_warmup=1200.", "longer warm-up, --warmup 1200."),
     ({"worst_rhat": 1.01}, "model.extend(n_draws=7000)", "--draws 8000 should be about enough"),
     ({}, "n_chains=16, or ask for less, precision=0.4.", "--chains 16, or ask for less, --precision 0.4."),
     ({"reproducibility": math.nan}, "more of them, n_chains=16.", "more of them, --chains 16."),
     ({"counts": (4, "auto", "auto"), "reproducibility": 0.1}, 'n_chains=16, or n_chains="auto".',
      "--chains 16, or leave --chains out."),
     ({"counts": (9, 9, 9)}, 'n_chains="auto", or ask', "leave --chains out, or ask for less")],
)  # fmt: skip
def test_what_to_do_about_a_fit_that_is_not_finished(changes, python, command):
    said, recipe = judged("unfinished", **changes), Recipe(Input("sales", "number"), (Input("x", "number"),))
    assert said.startswith("[caution] The chains ")
    assert ("do NOT agree yet" in said) == (changes.get("worst_rhat") != 1.01)
    assert ("and predictions still drift" in said) == changes.get("drifting", False)
    assert ("would move predictions by 0.49 predictive" in said) == ("reproducibility" not in changes)
    assert python in said
    assert command in judged("unfinished", recipe, **changes)


@pytest.mark.parametrize(
    ("shape", "words"),
    [(None, "4 short chains"), (0.71, "the weights of its draws do NOT stand for it (Pareto shape 0.71"),
     (0.69, "the weights of its draws seem to stand for it (Pareto shape 0.69"), (math.nan, "cannot be told"),
     (-math.inf, "seem to stand for it; fit")],
)  # fmt: skip
def test_a_first_look_says_so(shape, words):
    found = evidence(worst_rhat=1.4, verdict="fast")
    if shape is not None:
        found.model.posterior_.stats["pareto_shape"] = np.full((1, 9), shape)
        found.model.posterior_.n_chains = 1
    (finding,) = verdict(found)[1:]
    assert finding.tone == "note"
    assert "This is a first look, not the posterior: " in finding.text
    assert 'fit with inference="mcmc"' in finding.text
    assert words in finding.text
    finding = verdict(replace(found, recipe=Recipe(Input("y", "number"), (Input("x", "number"),))))[-1]
    assert "leave --fast out" in finding.text


def test_the_page_says_what_the_draws_may_be_used_for(network):
    """Beside the traces, with what it rests on."""
    (section,) = _chains(gather(network))
    found = network.diagnostics_
    assert found["verdict"] == "unfinished"
    assert section.text.startswith("Verdict: unfinished, the draws are not to be relied on yet. A colour a chain.")
    sheet = section.sheets[0]
    row = dict(zip(sheet.header, *sheet.rows))
    assert (row["verdict"], row["chains"], row["draws a chain"]) == ("unfinished", "2", "60")
    assert (row["worst R-hat"], row["standard error of predictions"]) == (f"{found['worst_rhat']:.4g}", "–")
    assert row["predictions drift"] == ("yes" if found["drifting"] else "no")
    assert row["log target climbs"] == ("yes" if found["climbing"] else "no")


def test_chains_of_other_methods_have_no_verdict_on_the_page():
    model = NNGPRegressor(n_draws=5, n_warmup=5, n_chains=2, random_state=0).fit(BOX, HEIGHT)
    (section,) = _chains(gather(model))
    assert section.text.startswith("A colour a chain")
    assert [sheet.title for sheet in section.sheets] == ["Posterior"]


def test_a_model_of_an_earlier_version_is_judged_by_its_chains(network, tmp_path):
    """Nobody had looked at its predictions."""
    network.save(tmp_path / "model")
    tree = read_tree(tmp_path / "model", "model")
    write_tree(tmp_path / "old", {key: value for key, value in tree.items() if key not in ("trust", "seed")}, "model")
    old = load(tmp_path / "old")
    assert "verdict" not in old.diagnostics_
    (words,) = [finding.text for finding in verdict(gather(old)) if "NOT agree yet" in finding.text]
    assert "predictive standard deviations" not in words
    assert "n_warmup=1000" in words or "extend(n_draws" in words


def test_draws_that_were_weighed_are_shown_as_no_chains(tmp_path):
    model = StableKernelRegressor(inference="fast", random_state=0).fit(BOX, HEIGHT)
    write_report(model, tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "chains" not in page.sections
    draws = page.sections["draws"]
    assert "Verdict: fast, a first look, not the posterior." in draws
    assert "median" in draws
    assert "rhat" not in draws
    assert "This is a first look, not the posterior: the weights of its draws" in page.sections["verdict"]


def test_what_to_do_about_chains():
    assert "[good] The chains agree: worst R-hat 1.000" in said()
    assert "[caution] The chains do NOT agree yet" in said(worst_ess_bulk=100.0)
    assert "model.extend(n_draws=3000)" in said(worst_ess_bulk=100.0)
    far = said(worst_rhat=1.3)
    assert 'n_warmup=2000, or with sampler="tempered"' in far
    assert "extend" not in far
    assert "41 trajectories diverged" in said(n_divergences=41)
    assert "diverged" not in said(n_divergences=40)


@pytest.mark.parametrize(("inside", "word"), [(80, "too narrow"), (90, "as they should"), (100, "wider than")])
def test_intervals_are_judged_within_chance(inside, word):
    y = np.append(np.zeros(inside), np.full(100 - inside, 9.0))
    checked = Checked(y, np.zeros(100), np.tile([-1.0, 1.0], (100, 1)), np.full(100, 0.5), held_out=True)
    assert word in said(checked)
    assert sum(other in said(checked) for other in ("too narrow", "as they should", "wider than")) == 1


@pytest.mark.parametrize(("pit", "word"), [(0.5, "better than the model claims"), (0.9, "too sure of itself")])
def test_the_inner_half_is_judged_too(pit, word):
    checked = Checked(np.arange(40.0), np.arange(40.0), np.tile([-9.0, 99.0], (40, 1)), np.full(40, pit), held_out=True)
    even = Checked(checked.y, checked.y, checked.interval, (np.arange(40) + 0.5) / 40, held_out=True)
    assert word in said(checked)
    assert "50 %" not in said(even)


def test_responses_that_do_not_vary_are_no_miracle():
    checked = Checked(np.ones(5), np.zeros(5), np.tile([-2.0, 2.0], (5, 1)), np.full(5, 0.5), held_out=True)
    assert "have all the same response; the typical error is 1" in said(checked)


def test_a_jump_that_is_not_likely_is_not_claimed(network):
    found = gather(network).breaks
    assert "[note] The function jumps" in said(None, found)
    found.sizes = np.where(np.arange(len(found.sizes)) % 4 == 0, found.sizes, 0.0)
    assert "No jump" in said(None, found)


def test_a_table_that_is_cut_says_so():
    table = {"name": [f"row {k}" for k in range(5)], "value": np.array([0.123456, np.nan, 1e-9, 2.0, 3.0])}
    whole, cut = sheet("Things", table, most=5), sheet("Things", table, most=3)
    assert (whole.title, len(whole.rows)) == ("Things", 5)
    assert (cut.title, cut.rows) == (
        "Things (the first 3 of 5)", [["row 0", "0.1235"], ["row 1", "–"], ["row 2", "1e-09"]],
    )  # fmt: skip


@pytest.mark.parametrize(("size", "marked"), [(30.0, True), (0.0, False)])
def test_a_jump_is_marked_where_it_is_likely(network, monkeypatch, size, marked):
    found, given = gather(network), []
    found.breaks.sizes = np.full(len(found.breaks.sizes), size)
    monkeypatch.setattr("cadlag.plots.plot_fit", lambda model, breaks, ax: given.append(breaks) or ax)
    assert [section.anchor for section in _fit(found)] == ["fit"]
    assert (given == [found.breaks]) == marked
    assert (given == [None]) != marked


def test_dates_and_names_of_a_table():
    """A model that the command fitted speaks of its columns, dates and options."""
    recipe = Recipe(Input("sales", "number"), (Input("day", "date", "day"),))
    found = replace(evidence(worst_ess_bulk=100.0), names=["day"], recipe=recipe)
    assert (found.target, found.text("day", 19723.0), found.is_date(0)) == ("sales", "2024-01-01", True)
    assert "--draws 4000" in verdict(found)[-1].text
    ax = _named(new_axes(own=True), found, 0, found.target)
    assert ax.xaxis.get_major_formatter()(19723.0, 0) == "2024-01-01"
    assert ax.get_ylabel() == "sales"


SITES = Recipe(
    Input("yield", "number"), (Input("site", "category", "", ("east", "south", "west")), Input("rain", "number"))
)


def test_a_category_is_one_input():
    """What becomes three columns of 0 and 1 matters as a whole and is drawn as one."""
    rain, site = np.linspace(0.0, 1.0, 24), np.repeat([0, 1, 2], [2, 14, 8])
    X, y = np.column_stack([site[:, None] == [0, 1, 2], rain]).astype(float), 5.0 * (site == 1) + rain + FLOW[:24] / 10
    model = NNGPRegressor(sampler="ml", random_state=0).fit(X, y)
    found = gather(model.name_inputs(SITES.columns, SITES.to_tree()))
    assert [row["input"] for row in facts(found)["relevance"]] == ["site", "rain"]
    assert "without it: site (" in " ".join(finding.text for finding in verdict(found))
    assert found.most_relevant(9) == [("site", [0, 1, 2]), ("rain", [3])]
    assert found.most_relevant(1) == [("site", [0, 1, 2])]
    (section,) = _dependences(found)
    assert [picture.alt for picture in section.pictures] == [
        f"Average of the function against {name} with its 90 % band" for name in ("site", "rain")
    ]
    (section,) = _relevance(found)
    assert [row[0] for row in section.sheets[0].rows] == ["site", "rain"]
    alone = Recipe(SITES.target, SITES.inputs[:1])
    single = NNGPRegressor(sampler="ml", random_state=0).fit(X[:, :3], y)
    assert gather(single.name_inputs(alone.columns, alone.to_tree())).relevance is None
    model.recipe_ = alone.to_tree()
    with pytest.raises(ValueError, match="the recipe in the model file does not fit its model: fit again"):
        gather(model)


def test_rows_of_the_relevance_are_not_columns():
    table = {"input": ["site", "rain"], "relevance": np.array([0.2, 0.7])}
    X = np.column_stack([np.repeat([1.0, 0.0], [1, 5]), np.tile([0.0, 1.0], 3), np.zeros(6), np.arange(6.0)])
    found = Evidence(None, X, np.zeros(6), SITES.columns, None, None, table, SITES)
    assert found.most_relevant(2) == [("rain", [3]), ("site", [0, 1, 2])]
    plain = {"input": SITES.columns, "relevance": np.array([0.1, 0.0, 0.4, 0.3])}
    names = SITES.columns
    rows = replace(found, relevance=plain, recipe=None).most_relevant(3)
    assert rows == [(names[2], [2]), ("rain", [3]), (names[0], [0])]


def test_a_hyperplane_is_named_by_what_turns_it():
    """By shares on standardised inputs: the day turns it, though its coefficient is the smallest."""
    recipe = Recipe(Input("sales", "number"), (Input("day", "date", "day"), Input("price", "number")))
    found = replace(evidence(), names=["day", "price"], recipe=recipe)
    found.model.input_scaling_ = SimpleNamespace(centre=np.array([19700.0, 2.0]), scale=np.array([100.0, 0.5]))
    normals = np.array([[0.01, 0.1], [0.01, 3.0]])
    draws = [np.column_stack([np.linspace(197.33, 197.53, 101), np.tile(normal, (101, 1))]) for normal in normals]
    found = replace(found, breaks=BreakPlanes({"offset": np.full(2, 197.43)}, normals, draws, 1.0))
    row = leading(0, found)
    assert list(row["leading"]) == ["day", "price"]
    assert plane_label(row, found) == "day ≈ 2024-01-01"
    ends = row["crossing"], row["crossing_q05"], row["crossing_q95"]
    np.testing.assert_allclose(ends, [19723.0, 19714.0, 19732.0])  # (offset - 0.1 × 2)/0.01
    assert plane_label(leading(1, found), found) == "price and day"


def test_a_jump_is_told_as_the_input_grows():
    """The normal points against the input: a rise of 5 across the hyperplane is a fall of 5 as the input grows."""
    found = replace(evidence(), names=["dose", "age"])
    found.model.input_scaling_ = SimpleNamespace(centre=np.zeros(2), scale=np.ones(2))
    normals, sizes = np.array([[-1.0, 0.1]]), {"size": [5.0], "size_q05": [4.0], "size_q95": [7.0]}
    columns = {"probability": [0.9], **sizes, "share": [0.3], "offset": [-2.0], "dose": [-1.0], "age": [0.1]}
    draws = [np.column_stack([np.linspace(-3.0, -1.0, 101), np.tile(normals, (101, 1))])]
    found = replace(found, breaks=BreakPlanes(columns, normals, draws, 1.0))
    words = " ".join(finding.text for finding in verdict(found))
    assert "The function jumps by -5 (-7 to -4) where dose passes 2 (1.1 to 2.9; probability 0.90)." in words


def test_the_noise_is_told_as_a_standard_deviation():
    checked = Checked(np.arange(5.0), np.arange(5.0), np.tile([-9.0, 9.0], (5, 1)), np.full(5, 0.5), held_out=True)
    found = evidence(checked)
    found.model.posterior_.draws["noise_variance"] = np.array([[4.0, 9.0, 25.0]])
    assert "the noise is estimated at 3." in verdict(found)[0].text


def test_too_few_units_are_remarked_on(network, monkeypatch):
    few = [f.text for f in verdict(gather(network)) if "units are in use" in f.text]
    monkeypatch.setitem(network.diagnostics_, "units_in_use", float(network.n_units))
    (remark,) = [f.text for f in verdict(gather(network)) if "units are in use" in f.text]
    assert not few and f"n_units={2 * network.n_units}" in remark


def test_a_variational_fit_is_judged_by_its_bound():
    found = evidence()
    for rising, word in ((True, "still rises after 9 steps"), (False, "has settled after 9 steps")):
        found.model.diagnostics_ = {"rising": rising, "n_steps": 9}
        assert word in verdict(found)[-1].text


def test_facts_are_json(network, kernel):
    for model in (network, kernel):
        found = facts(gather(model))
        assert json.loads(json.dumps(found)) == found
    assert math.isnan(network.diagnostics_["reproducibility"])
    found = facts(gather(network))
    assert (found["chains"]["verdict"], found["chains"]["reproducibility"]) == ("unfinished", None)
    assert found["breaks"]["likely"][0]["lower"] == pytest.approx(1924.0)
    found = facts(gather(kernel))
    assert found["relevance"][0]["input"] == HOSTILE[0]


# In a browser --------------------------------------------------------------------------------------------------------

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on the path")
@pytest.mark.parametrize("width", [390, 1200])
def test_in_a_browser(kernel_file, tmp_path, width):
    """No complaint on the console, and nothing wider than the window: the margins stay free."""
    run = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
         f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},9000",
         f"--screenshot={tmp_path / 'page.png'}", kernel_file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in run.stderr
    pixels = matplotlib.image.imread(tmp_path / "page.png")[:, :, :3]
    assert pixels.shape[1] == width
    paper = pixels[-1, 0]
    for margin in (pixels[:, :8], pixels[:, -8:]):
        assert np.abs(margin - paper).max() < 0.02
    assert (np.abs(pixels - paper).max(axis=2) > 0.2).mean() > 0.005
