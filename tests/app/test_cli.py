"""The command as a user meets it: files in, files and words out, 0 or 2, never a traceback."""

import errno
import html
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import cadlag
from cadlag.app import fitting
from cadlag.app.cli import _complete_method, _complete_methods, app
from cadlag.app.common import Bar, Run, Talk
from cadlag.app.comparing import _show
from cadlag.app.terminal import readable
from cadlag.compare import RIVALS, SCORES, compare, lacks, summarise
from cadlag.data import OverflowedError
from cadlag.frames import read_names
from cadlag.methods import METHODS
from cadlag.network.estimator import GLANCE
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.sampling.progress import tell
from cadlag.storage import read_tree, write_tree

TINY = ("--draws", "5", "--warmup", "5", "--chains", "2", "--jobs", "1")
N = 30


def run(*arguments, code=0):
    """The result of a command in this process; anything but an exit is a failure."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def error(*arguments):
    """The one sentence for a mistake."""
    said = run(*arguments, code=2).stderr
    assert "Traceback" not in said
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def data(folder):
    """A date, a category and a number, and a step at row 18; one price is missing."""
    rng = np.random.default_rng(5)
    path = folder / "sales.csv"
    lines = ["day,shop,price,sales"]
    for i in range(N):
        day = np.datetime64("2024-01-01") + 7 * i
        price = "" if i == 4 else f"{rng.uniform(1, 3):.2f}"
        lines.append(f"{day},{('north', 'south', 'west')[i % 3]},{price},{100 + 30 * (i >= 18) + rng.normal():.3f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(folder, data):
    path = folder / "model.cadlag"
    run("fit", data, "-t", "sales", "-m", "nngp", "--out", path, "--drop-missing", *TINY)
    return path


def column(text, name):
    header, *rows = [line.split(",") for line in text.strip().splitlines()]
    return [row[header.index(name)] for row in rows]


# fit -----------------------------------------------------------------------------------------------------------------


def test_fit_in_words(folder, data):
    result = run("fit", data, "--target", "sales", "--method", "network", "-o", folder / "net.cadlag",
                 "--drop-missing", *TINY)  # fmt: skip
    assert "Training rows left out one at a time are predicted" in result.stdout
    assert "the variance of sales is explained" in result.stdout
    assert "What matters" in result.stdout
    assert "do NOT agree yet" in result.stdout
    assert f"Written: {folder / 'net.cadlag'}" in result.stdout
    assert "column 'day' holds dates" in result.stderr
    assert "column 'shop' holds 3 categories" in result.stderr
    assert "rows left out: 1 of 30" in result.stderr
    assert "\033[" not in result.output, "no colours in a pipe"
    assert list(cadlag.load(folder / "net.cadlag").feature_names_in_[:2]) == ["day", "shop=north"]


def test_one_input_that_is_a_date_breaks_at_a_date(folder, data):
    result = run("fit", data, "-t", "sales", "-m", "network", "-o", folder / "day.cadlag", "--ignore", "shop",
                 "--ignore", "price", "--draws", 40, "--warmup", 60, "--chains", 1, "--json")  # fmt: skip
    found = json.loads(result.stdout)
    days = np.datetime64("2024-01-01") + 7 * np.array([17, 18])
    likeliest = found["breaks"]["likely"][0]
    assert (likeliest["lower"], likeliest["upper"]) == pytest.approx(tuple(days.astype(float)))
    assert any(f"between {days[0]} and {days[1]}" in finding["text"] for finding in found["verdict"])
    assert likeliest["size"] == pytest.approx(30.0, abs=3.0)
    assert found["score"]["r2"] > 0.9


def test_auto_keeps_the_better_on_rows_left_out(folder, data):
    out = folder / "auto.cadlag"
    result = run("fit", data, "-t", "sales", "-o", out, "--drop-missing", "--json", *TINY)
    found = json.loads(result.stdout)
    assert re.search(r"The (network|kernel) is chosen: it predicts rows left out better", found["chosen"])
    assert found["method"] == cadlag.load(out)._method
    assert {row["input"] for row in found["relevance"]} == {"day", "shop", "price"}
    scores = {}
    for name in ("network", "kernel"):
        one = run("fit", data, "-t", "sales", "-m", name, "-o", out, "--drop-missing", "--json", *TINY)
        scores[name] = json.loads(one.stdout)["score"]["log_score"]
    assert found["method"] == max(scores, key=scores.get)
    assert found["score"]["log_score"] == max(scores.values())


def test_default_name_and_same_seed_same_file(folder, data, monkeypatch):
    monkeypatch.chdir(folder)
    options = ("-t", "sales", "-m", "nngp", "--drop-missing", *TINY)
    run("fit", data, *options)
    run("fit", data, *options, "--out", "other.cadlag", "--seed", "0")
    assert (folder / "sales.cadlag").read_bytes() == (folder / "other.cadlag").read_bytes()
    run("fit", data, *options, "--out", "other.cadlag", "--seed", "1")
    assert (folder / "sales.cadlag").read_bytes() != (folder / "other.cadlag").read_bytes()


def test_resume_goes_on(folder, data):
    options = ("fit", data, "-t", "sales", "-m", "kernel", "--drop-missing")
    run(*options, "--out", folder / "short.cadlag", "--resume", folder / "run.d", *TINY)
    assert list((folder / "run.d").glob("chain-*"))
    longer = (*TINY[2:], "--draws", "8")
    run(*options, "--out", folder / "a.cadlag", "--resume", folder / "run.d", *longer)
    run(*options, "--out", folder / "b.cadlag", *longer)
    a, b = (cadlag.load(folder / name).posterior_.positions for name in ("a.cadlag", "b.cadlag"))
    np.testing.assert_array_equal(a, b)
    said = error(*options, "--resume", folder / "run.d", "--seed", 3, *TINY)
    assert "holds a run with other data or settings" in said


def test_interruption_keeps_the_draws(folder, data, monkeypatch):
    """The third round of blocks is interrupted, as by Ctrl-C."""

    def interrupt(self, label, warmup):
        calls = []

        def report(*arguments):
            calls.append(arguments)
            if len(calls) == 2:
                raise KeyboardInterrupt

        return nullcontext(report)

    monkeypatch.setattr("cadlag.app.common.Talk.bar", interrupt)
    out = folder / "partial.cadlag"
    result = run("fit", data, "-t", "sales", "-m", "nngp", "-o", out, "--drop-missing", "--draws", "5000",
                 "--warmup", "5", "--chains", "1")  # fmt: skip
    assert re.search(r"note: interrupted: \d+ draws a chain are kept", result.stderr)
    assert 1 <= cadlag.load(out).posterior_.n_draws < 5000
    assert "Written" in result.stdout


def test_interruption_before_the_first_draw(folder, data, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "_fit", stop)
    out = folder / "never.cadlag"
    result = run("fit", data, "-t", "sales", "--drop-missing", "-o", out, code=130)
    assert "--resume" in result.stderr
    assert not out.exists()


SMALL = {
    "ml_gp": ("--set", "n_starts=1"),
    "diwp": ("--set", "n_steps=4", "--set", "n_atoms=4", "--set", "n_inducing=8"),
    "network": ("--set", "n_units=4", "--set", "bulk=false"),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_predicts_and_reports(method, folder, data):
    """One of them has no closed form for leaving rows out, and says so."""
    out, page = folder / f"{method}.cadlag", folder / f"{method}.html"
    options = ("--ignore", "shop", "--ignore", "price", "--json", *TINY, *SMALL.get(method, ()))
    found = json.loads(run("fit", data, "-t", "sales", "-m", method, "-o", out, *options).stdout)
    said = " ".join(finding["text"] for finding in found["verdict"])
    assert (found["score"] is None) == (method == "diwp")
    assert ("this method cannot leave rows out" in said) == (method == "diwp")
    assert found["n_rows"] == N
    points = np.array(column(run("predict", out, data).stdout, "point"), dtype=float)
    assert np.isfinite(points).all()
    assert len(points) == N
    if method == "kernel":  # whose page is looked at in test_report
        return
    held_out = ("--data", data) if method == "nngp" else ()
    said_of_page = run("report", out, "-o", page, *held_out).stderr
    text = page.read_text(encoding="utf-8")
    if held_out:
        assert f"On {N} held-out rows" in text
        assert f"fitted to {N} of these {N} rows" in said_of_page
        return
    for finding in found["verdict"]:
        assert html.escape(finding["text"], quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in text


def test_further_settings(folder, data):
    out = folder / "set.cadlag"
    run("fit", data, "-t", "sales", "-m", "nngp", "-o", out, "--drop-missing", *TINY, "--set", "n_maps=1", "--set",
        "amplitude=False", "--set", "point=mean")  # fmt: skip
    found = cadlag.load(out)
    assert (found.n_maps, found.amplitude, found.point) == (1, False, "mean")


AUTO = {"n_chains": "auto", "n_draws": "auto", "n_warmup": "auto", "max_seconds": None, "precision": 0.2,
        "inference": "mcmc"}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "options", "changed"),
    [("fit", (), {}),
     ("fit", ("--fast",), {"inference": "fast"}),
     ("fit", ("--max-seconds", "0.5", "--precision", "0.3"), {"max_seconds": 0.5, "precision": 0.3}),
     ("fit", ("--draws", "7"), {"n_draws": 7}),
     ("fit", ("--warmup", "0", "--chains", "2", "--set", "precision=0.1"),
      {"n_warmup": 0, "n_chains": 2, "precision": 0.1}),
     ("compare", (), {}),
     ("compare", ("--fast",), {"inference": "fast"}),
     ("compare", ("--max-seconds", "3", "--precision", "0.4", "--draws", "9"),
      {"max_seconds": 3.0, "precision": 0.4, "n_draws": 9})],
)  # fmt: skip
@pytest.mark.parametrize("method", ["network", "kernel"])
def test_options_reach_the_estimators(folder, data, monkeypatch, method, command, options, changed):
    """And what is not given is left to them."""
    seen = []

    def stop(self, X, y):
        seen.append({name: getattr(self, name) for name in AUTO})
        raise ValueError("enough")

    monkeypatch.setattr(METHODS[method], "fit", stop)
    which = ("--method", method) if command == "fit" else ("--methods", method)
    run(command, data, "-t", "sales", "--drop-missing", *which, "-o", folder / "never", *options, code=2)
    assert seen == [AUTO | changed]


def test_other_methods_keep_their_own_numbers():
    assert Run().settings().keys() == {"random_state", "n_jobs"}
    Run(precision=0.1).check(("nngp", "kernel"))
    Run(draws=5, fast=True).check(("nngp", "kernel"))
    with pytest.raises(ValueError, match="--precision is for kernel and network: leave it out"):
        Run(precision=0.1).check(("nngp", "diwp"))


@pytest.mark.parametrize(("jobs", "chains", "wanted"), [(None, None, 3), (None, 2, 2), (None, 9, 3), (7, 2, 7)])
def test_one_process_a_chain_as_far_as_there_are_processors(monkeypatch, jobs, chains, wanted):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert Run(jobs=jobs, chains=chains).settings()["n_jobs"] == wanted


def test_a_verdict_is_in_the_json(folder, data):
    """A first look of both; chains that are too few for a standard error have none, not NaN."""
    fit = ("fit", data, "-t", "sales", "--ignore", "shop", "--ignore", "price", "-o", folder / "v.cadlag", "--json")
    small = ("-m", "network", "--set", "n_units=4", "--set", "bulk=false")
    found = json.loads(run(*fit, "-m", "kernel", "--fast").stdout)
    assert found["chains"]["verdict"] == "fast"
    assert any("the weights of its draws" in finding["text"] for finding in found["verdict"])
    found = json.loads(run(*fit, *small, "--fast", "--jobs", 1).stdout)
    assert found["chains"]["verdict"] == "fast"
    assert "4 short chains" in found["verdict"][-1]["text"]
    assert "leave --fast out" in found["verdict"][-1]["text"]
    found = json.loads(run(*fit, *small, *TINY).stdout)
    assert found["chains"]["verdict"] == "unfinished"
    assert found["chains"]["reproducibility"] is None
    assert found["chains"]["drifting"] in (True, False)
    assert found["verdict"][-1]["tone"] == "caution"


def test_a_fit_in_rounds_says_how_far_it_is(folder, data, monkeypatch):
    """On standard error, where no terminal shows a bar, and never among the results."""
    fit = METHODS["network"].fit

    def telling(self, X, y):
        tell(self.progress, "precision so far 0.31; 4 more chains")
        return fit(self, X, y)

    monkeypatch.setattr(METHODS["network"], "fit", telling)
    small = ("-m", "network", "--set", "n_units=4", "--set", "bulk=false", "--drop-missing", *TINY)
    for options in ((), ("--json",)):
        result = run("fit", data, "-t", "sales", "-o", folder / "told.cadlag", *small, *options)
        assert "\nfitting network: precision so far 0.31; 4 more chains\n" in result.stderr
        assert "precision so far" not in result.stdout


def on_a_terminal():
    """A talk whose standard error is a terminal, and what that has been sent."""
    sent = io.StringIO()
    talk = Talk()
    talk.err = Console(file=sent, force_terminal=True, width=100, soft_wrap=True)
    return talk, sent


def shown_last(sent):
    """The last state of the bar, without colours, its spaces as one."""
    lines = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent.getvalue()).split("\r") if line.strip()]
    return " ".join(lines[-1].split())


def test_the_bar_says_what_is_done():
    talk, sent = on_a_terminal()
    found = "precision so far 0.31; 4 more chains"
    with talk.bar("fitting network", lambda: 300) as report:
        steps = [
            (partial(report, [299, 360], 360, 0, 2.0), "92% -:--:-- finding places"),
            (partial(report, [300, 360], 360, 0, 2.0), "sampling"),
            (partial(report.say, found), found),
            (partial(report, [9, 360], 360, 0, 2.0), found),
        ]
        for step, words in steps:
            step()
            report.progress.refresh()
            assert shown_last(sent).startswith("fitting network")
            assert shown_last(sent).endswith(words)
    assert "fitting network: precision" not in sent.getvalue(), "the bar says it already"


def test_a_bar_of_other_work_only_shows_how_far_it_is():
    talk, sent = on_a_terminal()
    with talk.bar("comparing") as report:
        report([3], 10, 0, 0.0)
        report.progress.refresh()
        assert shown_last(sent).startswith("comparing")
        assert not re.search("finding|sampling", sent.getvalue())


def test_a_bar_is_told_what_the_iterations_are_for(folder, data, monkeypatch):
    """Those of warm-up by a model's own numbers, which it may know only when it has seen the data."""
    doing, seen = Bar._doing, []
    monkeypatch.setattr(Bar, "_doing", lambda self, reached: seen.append(doing(self, reached)) or seen[-1])
    run("fit", data, "-t", "sales", "-m", "network", "-o", folder / "bar.cadlag", "--drop-missing", *SMALL["network"],
        "--chains", 1, "--warmup", 16, "--draws", 64, "--jobs", 1)  # fmt: skip
    assert list(dict.fromkeys(seen)) == ["finding places", "sampling"]


@pytest.mark.parametrize(
    ("method", "settings", "wanted"),
    [("network", {"n_warmup": 7}, 7), ("network", {"inference": "fast"}, GLANCE.n_dropped), ("nngp", {}, 1000),
     ("kernel", {"inference": "fast"}, 0), ("ml_gp", {}, 0), ("diwp", {}, 0)],
)  # fmt: skip
def test_the_first_warm_up_of_every_kind_is_known(method, settings, wanted):
    assert fitting._warmup(METHODS[method](**settings)) == wanted


def test_many_rows_are_left_to_the_network(monkeypatch):
    monkeypatch.setattr(fitting, "_fit", lambda name, *rest: (name, False))
    numbers = type("", (), {"rows": range(fitting.AUTO_ROWS + 1)})
    chosen, _, why = fitting._choose(numbers, fitting.Run(), None)
    assert chosen == "network"
    assert "2001 rows" in why


# predict -------------------------------------------------------------------------------------------------------------


def test_predict(folder, data, model):
    new = folder / "new.csv"
    new.write_text("price,colour,shop,day\n2.0,red,north,2024-02-01\n1.0,blue,west,2024-07-01\n")
    result = run("predict", model, new)
    assert "another order" in result.stderr
    assert "not used: 'colour'" in result.stderr
    direct = cadlag.load(model)
    X = np.array([[19754.0, 1, 0, 0, 2.0], [19905.0, 0, 0, 1, 1.0]])
    point, std = direct.predict(X, return_std=True)
    lower, upper = direct.predict_interval(X, 0.9).T
    for name, values in {"point": point, "std": std, "lower": lower, "upper": upper}.items():
        np.testing.assert_allclose(np.array(column(result.stdout, name), dtype=float), values, rtol=1e-12)
    narrow = folder / "narrow.csv"
    run("predict", model, new, "--out", narrow, "--coverage", "0.5")
    np.testing.assert_allclose(
        np.array(column(narrow.read_text(), "upper"), dtype=float), direct.predict_interval(X, 0.5)[:, 1], rtol=1e-12
    )
    found = json.loads(run("predict", model, new, "--json").stdout)
    np.testing.assert_allclose(found["point"], point, rtol=1e-12)


def test_rows_that_cannot_be_predicted_stay_empty(folder, data, model):
    new = folder / "holes.csv"
    new.write_text("day,shop,price\n2024-02-01,north,2\n2024-02-01,east,2\n2024-02-01,north,\n2024-02-01,west,1\n")
    assert "row 2 (line 3), column 'shop' holds the category 'east'" in error("predict", model, new)
    points = column(run("predict", model, new, "--drop-missing").stdout, "point")
    assert [bool(point) for point in points] == [True, False, False, True]


def test_known_target_is_scored(data, model):
    said = run("predict", model, data, "--drop-missing").stderr
    assert "'sales' is known for 29 rows: the error is" in said
    assert "fitted to 29 of these 29 rows" in said


def test_score_of_a_known_target_is_of_the_rows_that_have_both(folder, data, model):
    """By hand from the predictions: a row without a price in front, one without a response among the others."""
    header, *rows = data.read_text().splitlines()
    inputs, _, responses = zip(*(row.rpartition(",") for row in rows[10:16]))
    moved = [f"{x},{float(response) + 15 * k:.3f}" for k, (x, response) in enumerate(zip(inputs, responses))]
    table = folder / "scored.csv"
    table.write_text("\n".join([header, rows[4], *moved[:3], rows[0].rpartition(",")[0] + ",", *moved[3:]]) + "\n")
    result = run("predict", model, table, "--drop-missing", "--coverage", "0.7")
    point, lower, upper = (np.array([float(cell or "nan") for cell in column(result.stdout, name)])[[1, 2, 3, 5, 6, 7]]
                           for name in ("point", "lower", "upper"))  # fmt: skip
    y = np.array([float(row.rpartition(",")[2]) for row in moved])
    error, inside = np.sqrt(np.mean((y - point) ** 2)), np.mean((lower <= y) & (y <= upper))
    assert 0.0 < inside < 1.0
    said = f"known for 6 rows: the error is {error:.4g} (root mean square), and {100 * inside:.0f} % lie in their 70 %"
    assert said in result.stderr


def test_only_rows_that_were_fitted_to_are_no_test(folder, data, model):
    """A new response at a known input is new; a row without a response is neither."""
    header, *rows = data.read_text().splitlines()
    asked = folder / "asked.csv"
    asked.write_text("\n".join([header, *rows[:3], rows[3] + "9", rows[5].rpartition(",")[0] + ","]) + "\n")
    assert "fitted to 3 of these 4 rows" in run("predict", model, asked).stderr
    asked.write_text("\n".join([header, rows[3] + "9", rows[5] + "9"]) + "\n")
    assert "fitted to" not in run("predict", model, asked).stderr


def test_models_from_python_predict_too(folder, data):
    """Without a recipe: columns by name where there are names, else by place."""
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12.0)
    new = folder / "plain.csv"
    new.write_text("a,b\n0.5,1\n1,2\n")
    model = METHODS["nngp"](n_draws=4, n_warmup=4, n_chains=1, random_state=0).fit(X, y)
    model.save(folder / "array.cadlag")
    found = json.loads(run("predict", folder / "array.cadlag", new, "--json").stdout)["point"]
    np.testing.assert_allclose(found, model.predict([[0.5, 1], [1, 2]]))
    model.name_inputs(["b", "a"]).save(folder / "named.cadlag")
    found = json.loads(run("predict", folder / "named.cadlag", new, "--json").stdout)["point"]
    with pytest.warns(UserWarning, match="valid feature names"):
        np.testing.assert_allclose(found, model.predict([[1, 0.5], [2, 1]]))
    new.write_text("a,b,c\n0.5,1,1\n")
    assert "without names" in error("predict", folder / "array.cadlag", new)
    with pytest.raises(ValueError, match="3 names were given for 2 inputs"):
        model.name_inputs(["a", "b", "c"])


def test_recipe_survives_python_and_goes_with_other_data(folder, model):
    again = cadlag.load(model)
    again.save(folder / "again.cadlag")
    assert cadlag.load(folder / "again.cadlag").recipe_ == again.recipe_
    again.fit(np.random.default_rng(0).normal(size=(12, 2)), np.arange(12.0))
    assert not hasattr(again, "recipe_")


# compare -------------------------------------------------------------------------------------------------------------


def test_compare(folder, data):
    out, plot = folder / "scores.csv", folder / "scores.svg"
    methods = [*METHODS, "sklearn_gp"]
    small = [word for words in SMALL.values() for word in words]
    result = run("compare", data, "-t", "sales", "--methods", ",".join(methods), "--folds", 2, "--drop-missing",
                 "--out", out, "--plot", plot, *TINY, *small)  # fmt: skip
    for word in ("rmse", "crps", "log_score", "coverage", "seconds", *methods):
        assert word in result.stdout, result.stdout
    assert sorted(column(out.read_text(), "method")) == sorted(methods * 2)
    assert plot.read_text().lstrip().startswith("<?xml")
    found = json.loads(run("compare", data, "-t", "sales", "--methods", "boosting", "--folds", 2, "--drop-missing",
                           "--json").stdout)  # fmt: skip
    assert found["methods"][0]["method"] == "boosting"
    assert {"rmse", "mae", "crps", "log_score", "coverage", "width", "seconds"} <= found["methods"][0].keys()


def test_bart_is_compared_where_it_is_installed(data, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("compare", data, "-t", "sales", "--methods", "boosting,bart", code=2)
    assert "method 'bart' needs stochtree: pip install 'cadlag[bart]'" in result.output


def test_the_law_of_bart_is_that_of_its_draws():
    pytest.importorskip("stochtree", reason="stochtree is an extra: pip install '.[bart]'")
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (200, 2))
    y = 100.0 + 30.0 * (X[:, 0] > 0) + 2.0 * rng.standard_normal(200)
    law = RIVALS["bart"](X, y, 0)(np.array([[-0.5, 0.0], [0.5, 0.0], [0.6, 0.5]]))
    np.testing.assert_allclose(law.mean, [100.0, 130.0, 130.0], atol=3.0)
    assert 1.5 < np.sqrt(law.variance[0]) < 4.0  # the noise, and what is not known of the mean
    again = RIVALS["bart"](X, y, 0)(np.array([[0.5, 0.0]]))
    assert again.mean[0] == law.mean[1]  # by its seed, whatever other rows are asked


def test_methods_are_compared_on_the_same_folds():
    """Every rival beats the mean on a step, and a method that fails is left out once."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 1))
    y = 4.0 * (X[:, 0] > 0) + 0.2 * rng.standard_normal(60)
    rivals = [name for name in RIVALS if not lacks(name)]
    folds = list(compare(X, y, [*rivals, "kernel"], 3, 1, 0, {"n_draws": 0}))
    assert [fold.method for fold in folds if fold.error] == ["kernel"]
    rows = summarise(folds)
    assert {row["method"] for row in rows} == set(rivals)
    assert all(row["rmse"] < 0.5 * y.std() and row["folds"] == 3 for row in rows)
    assert [row["crps"] for row in rows] == sorted(row["crps"] for row in rows)
    again = list(compare(X, y, ["sklearn_gp"], 3, 1, 0))
    first = [fold.scores["rmse"] for fold in folds if fold.method == "sklearn_gp"]
    assert [fold.scores["rmse"] for fold in again] == first


def test_the_best_of_each_score_is_bold():
    """The smallest error, the largest log score, and nothing of coverage, width and seconds."""
    talk = Talk()
    talk.out = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200)
    one, two = ({key: float(k) for k, key in enumerate(SCORES, start)} for start in (10, 20))
    _show([{"method": "one", **one}, {"method": "two", **two}], "y", talk)
    bold = re.findall(r"\x1b\[1m *(\d+)\x1b\[0m", talk.out.file.getvalue())
    assert sorted(bold) == sorted(f"{values[key]:.4g}" for key, values in
                                  (("rmse", one), ("mae", one), ("crps", one), ("log_score", two)))  # fmt: skip


def test_an_interrupted_comparison_shows_what_is_done(folder, data, monkeypatch):
    def interrupted(self, X, y):
        warnings.warn("3 draws a chain are kept", InterruptedFitWarning, stacklevel=2)
        return self

    monkeypatch.setattr(METHODS["nngp"], "fit", interrupted)
    result = run("compare", data, "-t", "sales", "--methods", "sklearn_gp,nngp", "--drop-missing", "--folds", 2)
    assert "interrupted: 1 of 4 fits are shown" in result.stderr
    assert "sklearn_gp" in result.stdout


# Mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "{data}", "-t", "sale"), "no column 'sale': did you mean 'sales'?"),
        (("fit", "{data}", "-t", "sales"), "row 5 (line 6), column 'price' is missing"),
        (("fit", "{data}", "-t", "shop"), "the target 'shop' is text"),
        (("fit", "{data}", "-t", "sales", "-m", "kernle"), "did you mean 'kernel'?"),
        (("fit", "{folder}/none.csv", "-t", "sales"), "there is no file"),
        (("fit", "{folder}", "-t", "sales"), "is a directory"),
        (("fit", "{data}", "-t", "sales", "-o", "{folder}/none/x"), "there is no directory"),
        (("fit", "{data}", "-t", "sales", "-o", "{data}"), "is the file that is read"),
        (("fit", "{data}", "-t", "sales", "-o", "{folder}"), "cannot be written"),
        (("fit", "{data}", "-t", "sales", "--ignore", "prize"), "did you mean 'price'?"),
        (("fit", "{data}", "-t", "sales", "--draws", "0"), "Invalid value for '--draws'"),
        (("fit", "{data}", "-t", "sales", "--precision", "2"), "precision must be a number in (0, 1]"),
        (("fit", "{data}", "-t", "sales", "--max-seconds", "0"), "max_seconds must be a positive number of seconds"),
        (("fit", "{data}", "-t", "sales", "-m", "nngp", "--fast"), "--fast is for kernel and network: leave it out"),
        (("fit", "{data}", "-t", "sales", "-m", "diwp", "--max-seconds", "9"), "--max-seconds is for kernel and"),
        (("fit", "{data}", "-t", "sales", "--fast", "--chains", "9"), "--fast and --chains exclude each other"),
        (("fit", "{data}", "-t", "sales", "--fast", "--resume", "r"), "--fast and --resume exclude each other"),
        (("compare", "{data}", "-t", "sales", "--methods", "boosting", "--fast"), "--fast is for kernel and network"),
        (("fit", "{data}"), "Missing option"),
        (("fit", "{model}", "-t", "sales"), "is not a table"),
        (("predict", "{data}", "{data}"), "is cut short or not a cadlag file"),
        (("predict", "{model}", "{model}"), "is not a table"),
        (("predict", "{model}", "{data}"), "--drop-missing"),
        (("predict", "{model}", "{data}", "--coverage", "1.5"), "--coverage must lie strictly between 0 and 1"),
        (("predict", "{folder}/none", "{data}"), "There is no file"),
        (("compare", "{data}", "-t", "sales", "--methods", "forest"), "did you mean 'random_forest'?"),
        (("compare", "{data}", "-t", "sales", "--drop-missing", "--folds", "99"), "2 to 29 folds"),
        (("compare", "{data}", "-t", "sales", "--plot", "{folder}/a.txt"), "must end in .png"),
        (("reproduce", "no such paper"), "there is no paper"),
        (("reproduce", "smith1999"), "there is no paper 'smith1999': try loria2025"),
        (("fit", "{data}", "-t", "sales", "--set", "alpha"), "--set takes NAME=VALUE"),
        (("fit", "{data}", "-t", "sales", "-m", "kernel", "--set", "alhpa=1"), "did you mean 'alpha'?"),
        (
            ("fit", "{data}", "-t", "sales", "--drop-missing", "-m", "diwp", "--resume", "{folder}/r"),
            "cannot be resumed",
        ),
        (("report", "{data}"), "is cut short or not a cadlag file"),
        (("report", "{model}", "-o", "{model}"), "is the file that is read"),
        (("report", "{model}", "--data", "{data}"), "--drop-missing"),
        (("explain",), "No such command"),
    ],
)
def test_mistakes(folder, data, model, arguments, words):
    filled = [argument.format(folder=folder, data=data, model=model) for argument in arguments]
    said = error(*filled)
    assert words in re.sub(r"[│╭╮╰╯─\s]+", " ", said)


def test_a_cut_model_is_refused(folder, data, model):
    whole, cut = model.read_bytes(), folder / "cut.cadlag"
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        cut.write_bytes(whole[:length])
        assert "write it again" in error("predict", cut, data)


def test_a_full_disk_is_one_sentence(folder, data, model, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cadlag.frames.replacing", full)
    out = folder / "full.csv"
    assert "No space left on device" in error("predict", model, data, "--drop-missing", "--out", out)
    assert not out.exists()


def test_a_disk_that_has_become_full_does_not_cost_the_model(folder, data, monkeypatch):
    """The place is tried before the work; what is drawn by then goes where there is space."""
    small, real = folder / "small.cadlag", os.fsync

    def full(descriptor):
        if folder.name in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    said = error("fit", data, "-t", "sales", "-m", "ml_gp", "--drop-missing", "-o", small)
    assert re.search(r"small\.cadlag cannot be written \(No space left on device\); free some space", said)
    assert not small.exists()
    (found,) = re.findall(r"The model is in (\S+)", said)
    assert cadlag.load(found).n_features_in_ == 5


def test_a_bug_is_not_a_mistake(data, model, monkeypatch):
    def broken(*arguments):
        raise TypeError("a bug")

    monkeypatch.setattr("cadlag.app.predicting._predictions", broken)
    with pytest.raises(TypeError, match="a bug"):
        run("predict", model, data, "--drop-missing")


# The program ---------------------------------------------------------------------------------------------------------


def test_help_and_version_do_not_load_the_numerical_libraries():
    heavy = "'numpy', 'numba', 'sklearn', 'matplotlib'"
    script = f"import sys, cadlag.app.cli; print([m for m in ({heavy}) if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"
    assert run("--version").stdout == f"cadlag {cadlag.__version__}\n"
    text = run("--help").stdout
    for command in ("fit", "predict", "compare", "report", "reproduce", "demo"):
        assert command in text
        assert "--help" in run(command, "--help").stdout


def test_what_is_missing_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "cadlag.app.cli")
    with pytest.raises(SystemExit) as found:
        importlib.import_module("cadlag.app.cli")
    assert found.value.code == 2
    assert capsys.readouterr().err == "the command needs typer: pip install 'cadlag[cli]'\n"


def test_methods_are_completed():
    assert _complete_method("") == ["auto", *METHODS]
    assert _complete_method("n") == ["network", "nngp"]
    assert _complete_methods("") == ["all", *METHODS, *RIVALS]
    assert _complete_methods("kernel,n") == ["kernel,network", "kernel,nngp"]


def completed(table, word=""):
    """What a shell is offered for --target."""
    words = f"cadlag fit {shlex.quote(str(table))} --target {word}"
    environment = {"_CADLAG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    script = "from cadlag.app.cli import app; app(prog_name='cadlag')"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                           env={**os.environ, **environment})  # fmt: skip
    assert found.stderr == ""
    return found.stdout.splitlines()


def test_columns_are_completed(data):
    assert completed(data, "pr") == ["price"]


def test_no_name_that_a_shell_would_execute_is_offered(tmp_path):
    names = ["fine", "température", "a-b.c", "\\$(touch pwned)", "$(id)", "`id`", "a b", "*", "a;b", "-x", "a\nb", "'"]
    table = tmp_path / "evil.csv"
    table.write_text(",".join(f'"{name}"' for name in names) + "\n" + ",".join("1" * len(names)) + "\n")
    assert completed(table) == ["fine", "température", "a-b.c"]


def test_completion_reads_no_more_than_the_beginning(tmp_path):
    table = tmp_path / "large.csv"
    with open(table, "wb") as stream:
        stream.write(b"alpha,beta\n1,2\n")
        stream.truncate(2**33)  # zeros, which take no place on the disk
    assert completed(table) == ["alpha", "beta"]
    table.write_bytes(b"alpha,beta\n" + b"1,2\n" * 1_000_000)
    start = time.process_time()
    assert read_names(table) == ["alpha", "beta"]
    assert time.process_time() - start < 1.0


def test_a_reader_that_leaves_does_not_stop_the_work(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        talk = Talk()
        for _ in range(3):
            talk.say("never read")
        talk.end({})


def test_a_full_disk_behind_standard_output_is_told_at_the_end(monkeypatch):
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stdout", full)
        talk = Talk()
        for _ in range(3):
            talk.say("never written")
        with pytest.raises(OSError, match=r"took no words \(No space left on device\); the files are complete"):
            talk.end({})


def test_a_terminal_that_goes_away_does_not_stop_the_work(monkeypatch):
    class Gone:
        """As the end of a terminal is, whose window was closed."""

        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

        def flush(self):
            raise OSError(errno.EIO, "Input/output error")

        def isatty(self):
            return True

        def fileno(self):
            return os.open(os.devnull, os.O_WRONLY)

    monkeypatch.setattr(sys, "stderr", Gone())
    talk = Talk()
    talk.note("never read")
    with talk.bar("fitting") as report:
        report([1, 2], 10, 0, 1.0)


def program(*arguments, shell="", **environment):
    """The command as a program, behind a line of shell such as a redirection."""
    line = " ".join([sys.executable, "-m", "cadlag.app.cli", *map(str, arguments), shell])
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=os.environ | environment)


@pytest.mark.parametrize(("shell", "code"), [(">&-", 0), (">/dev/full", 2), ("| true; exit ${PIPESTATUS[0]}", 0)])
def test_output_that_nobody_takes(data, model, shell, code):
    """Held back by Python until it ends, where it can no longer be told, unless it is flushed before."""
    found = program("predict", model, data, "--drop-missing", shell=shell, PYTHONUNBUFFERED="")
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr
    assert found.returncode == code, found.stderr
    assert ("error: " in found.stderr) == (code == 2)


def test_a_working_directory_that_is_gone_is_noticed_before_the_work(tmp_path, data):
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"cd {gone}; rmdir {gone}; {sys.executable} -m cadlag.app.cli fit {data} -t sales -m ml_gp"
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert found.returncode == 2
    assert "sales.cadlag cannot be written" in found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["2>/dev/null", "2>&1"])
def test_results_are_written_though_nobody_reads(folder, data, streams):
    out = folder / "unread.csv"
    options = f"-t sales --drop-missing --methods ml_gp --folds 2 --out {out} {streams} | true; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cadlag.app.cli compare {data} {options}"], capture_output=True, text=True
    )
    assert found.stdout.strip() == "0"
    assert len(out.read_text().splitlines()) == 3
    out.unlink()


# The demo ------------------------------------------------------------------------------------------------------------


def test_the_demo_shows_a_first_look_before_the_whole_fit(tmp_path, monkeypatch, capsys):
    """The picture is there when the whole fit begins, and is another one when it ends; both again for the same seed."""
    demo = importlib.import_module("cadlag.app.demo")
    fit, seen = METHODS["network"].fit, []

    def watched(self, X, y):
        pictures = [path.read_bytes() for path in sorted(tmp_path.glob("*/nile.png"))]
        seen.append((self.inference, self.n_draws, pictures, capsys.readouterr().out))
        if self.inference == "mcmc":
            self.set_params(n_draws=20, n_warmup=20, n_chains=2, n_jobs=1, progress=False)
        return fit(self, X, y)

    monkeypatch.setattr(METHODS["network"], "fit", watched)
    monkeypatch.setattr(demo, "METHODS", {"network": partial(METHODS["network"], n_units=4, bulk=False)})
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        demo.demo(folder, 3)
    assert [(inference, n_draws) for inference, n_draws, _, _ in seen] == [("fast", "auto"), ("mcmc", "auto")] * 2
    assert [len(pictures) for _, _, pictures, _ in seen] == [0, 1, 1, 2]
    said = seen[1][3].splitlines()
    assert said == [f"Written: {folders[0] / 'nile.png'}, a first look and not the posterior; the whole fit follows."]
    first, again = seen[1][2][0], seen[3][2][1]
    assert first.startswith(b"\x89PNG")
    assert first == again
    assert first != (folders[0] / "nile.png").read_bytes()
    for name in ("nile.png", "nile_predictions.csv", "nile_breaks.csv", "nile.cadlag", "nile.html"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


# Hostile and unlucky -------------------------------------------------------------------------------------------------

NAMES = ("y[/]", "[bold]y[/bold]", "y\x1b[31m", "y\x1b]0;title\x07", "y\u202etxt", "y\x9b2J", "y" * 3000, "y\x85z")


def odd_table(folder, name, other="x"):
    rng = np.random.default_rng(1)
    path = folder / "odd.csv"
    lines = [f"{i},{rng.normal():.3f},{i + rng.normal():.3f}" for i in range(14)]
    path.write_text("\n".join([f'day,{other},"{name}"', *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_reach_the_terminal_as_plain_text(folder, name):
    """In the verdict, in notes, in messages, in tables: no markup, no escape, no flood."""
    data, out = odd_table(folder, name), folder / "odd.cadlag"
    said = run("fit", data, "-t", name, "-m", "ml_gp", "--set", "n_starts=1", "-o", out).output
    said += run("fit", odd_table(folder, "z", name), "-t", "z", "-m", "network", "--set", "n_units=3", "-o", out,
                *TINY).output  # fmt: skip
    said += error("fit", odd_table(folder, "z", name), "-t", name + "?", "-o", out)
    said += run("compare", data, "-t", name, "--methods", "random_forest,ml_gp", "--set", "n_starts=1",
                "--folds", 2).output  # fmt: skip
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", said)
    assert max(map(len, said.splitlines())) < 2000
    if len(name) < 100:
        assert readable(name) in said


def test_scores_are_written_before_they_are_shown(folder, data, monkeypatch):
    def broken(*_):
        raise RuntimeError("a bug in the table")

    monkeypatch.setattr("cadlag.app.comparing._show", broken)
    scores = folder / "before.csv"
    with pytest.raises(RuntimeError, match="a bug in the table"):
        run("compare", data, "-t", "sales", "--methods", "random_forest", "--folds", 2, "--drop-missing", "-o", scores)
    assert len(scores.read_text().splitlines()) == 3


def test_many_notes_are_no_flood(folder):
    path = folder / "wide.csv"
    names = [f"c{j}" for j in range(300)]
    rows = [",".join(["7"] * 300 + [str(i), str(i * i)]) for i in range(9)]
    path.write_text("\n".join([",".join([*names, "x", "y"]), *rows]) + "\n")
    fit = ("fit", path, "-t", "y", "-m", "ml_gp", "--set", "n_starts=1", "-o", folder / "wide.cadlag")
    said = run(*fit).stderr
    assert said.count("note: ") == 20
    assert "and 280 more notes, which --json lists" in said
    assert len(json.loads(run(*fit, "--json").stdout)["notes"]) == 300


@pytest.mark.parametrize("other", ["k=a", "intercept"])
def test_what_matters_is_said_of_the_right_column(folder, other):
    """A number that decides everything, beside a category that decides nothing."""
    rng = np.random.default_rng(2)
    path = folder / "collide.csv"
    rows = []
    for i in range(40):
        x = rng.normal()
        rows.append(f"{'abc'[i % 3]},{x:.4f},{3 * x + 0.1 * rng.normal():.4f}")
    path.write_text("\n".join([f"k,{other},y", *rows]) + "\n")
    fit = ("fit", path, "-t", "y", "-m", "kernel", "-o", folder / "c.cadlag", "--json", "--draws", 40, "--warmup", 60,
           "--chains", 2)  # fmt: skip
    if other == "k=a":
        assert "both become 'k=a'" in error(*fit)
        return
    found = json.loads(run(*fit).stdout)
    assert found["relevance"][0]["input"] == other
    assert found["relevance"][0]["relevance"] > 0.5
    summary = cadlag.load(folder / "c.cadlag").posterior_.summary()
    assert "input_scales[intercept]" in summary["parameter"]
    assert "input_scales[(intercept)]" in summary["parameter"]


def test_a_result_goes_into_a_pipe(folder, data, model):
    """As it does with process substitution; the pipe stays one."""
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE, text=True) as reader:
        run("predict", model, data, "-o", fifo, "--drop-missing")
        assert len(column(reader.stdout.read(), "point")) == N
    assert fifo.is_fifo()


def test_the_place_of_a_result_is_checked_through_links(folder, data, model):
    link = folder / "link.csv"
    link.symlink_to("nowhere/real.csv")
    assert "there is no directory" in error("predict", model, data, "-o", link, "--drop-missing")
    link.unlink()
    link.symlink_to(data.name)
    before = data.read_bytes()
    assert "is the file that is read" in error("predict", model, data, "-o", link, "--drop-missing")
    assert data.read_bytes() == before


HOSTILE = {
    "depth": 10**9, "order": 10**9, "n_groups": 10**9, "n_units": 10**9, "n_maps": 10**9, "n_jobs": "abc",
    "max_memory": 1e300, "n_atoms": 10**30, "progress": "abc", "alpha": float("inf"),
}  # fmt: skip


@pytest.mark.parametrize("method", ["kernel", "network", "nngp", "diwp"])
def test_a_hostile_model_neither_hangs_nor_exhausts(folder, data, method, monkeypatch):
    """Bounds on what is read, and the reader's own limit of memory."""
    path, bad = folder / f"fine-{method}.cadlag", folder / "hostile.cadlag"
    small = {"diwp": ("--set", "n_steps=3", "--set", "n_inducing=5")}.get(method, ())
    run("fit", data, "-t", "sales", "-m", method, "-o", path, "--drop-missing", *TINY, *small)
    tree = read_tree(path, "model")
    tried = 0
    for name, value in HOSTILE.items():
        if name in tree["settings"]:
            write_tree(bad, tree | {"settings": tree["settings"] | {name: value}}, "model")
            start = time.process_time()
            result = CliRunner().invoke(app, ["predict", str(bad), str(data), "--drop-missing"])
            assert result.exit_code in (0, 2), (name, result.exception)
            assert time.process_time() - start < 5.0, name
            tried += result.exit_code == 2
    assert tried >= 2
    write_tree(bad, tree | {"settings": tree["settings"] | {"max_memory": 1e300}}, "model")
    assert cadlag.load(bad).max_memory is None
    assert cadlag.load(bad, max_memory=1e9).max_memory == 1e9


def test_a_model_of_more_rows_than_memory_holds_is_refused_on_reading(folder, data):
    path, bad = folder / "fine-kernel.cadlag", folder / "large.cadlag"
    run("fit", data, "-t", "sales", "-m", "kernel", "-o", path, "--drop-missing", *TINY)
    tree = read_tree(path, "model")
    n = 200_000
    large = {"X": np.zeros((n, tree["n_features"])), "y": np.zeros(n)}
    write_tree(bad, tree | {"data": large}, "model")
    assert "holds more than may be read: An exact fit to 200000 rows needs" in error("predict", bad, data)


def test_a_picture_does_not_take_the_place_of_the_scores(folder, data):
    both = folder / "both.svg"
    said = error("compare", data, "-t", "sales", "--methods", "random_forest", "-o", both, "--plot", both)
    assert "--out and --plot are both" in said


def test_a_method_named_twice_is_compared_once(folder, data):
    out = folder / "once.csv"
    run("compare", data, "-t", "sales", "--methods", "random_forest, random_forest", "--folds", 2, "--drop-missing",
        "-o", out)  # fmt: skip
    assert len(out.read_text().splitlines()) == 3
    assert "--methods names none" in error("compare", data, "-t", "sales", "--methods", " , ")


def test_remedies_can_be_pasted(folder):
    path = folder / "spaced.csv"
    path.write_text("a b; rm,y\n" + "".join(f"t{i},{i}\n" for i in range(9)))
    assert "--ignore 'a b; rm', or insist" in error("fit", path, "-t", "y", "-o", folder / "m.cadlag")
    path.write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
    said = run("fit", path, "-t", "y", "-m", "ml_gp", "--set", "n_starts=1", "-o", folder / "my model.cadlag").stdout
    assert f"cadlag predict '{folder}/my model.cadlag' NEW.csv" in said


def test_a_prediction_that_overflows_is_named_by_its_row_in_the_table(folder, data, model, monkeypatch):
    """Through rows that are left out, and through pieces of rows."""

    def overflow(self, X):
        if len(X) == 4:
            raise OverflowedError(2)
        return whole(self, X)

    kind = type(cadlag.load(model))
    whole = kind.predict_distribution
    monkeypatch.setattr(kind, "predict_distribution", overflow)
    monkeypatch.setattr("cadlag.app.predicting._ROWS_AT_ONCE", 25)  # one row of the 30 is left out, the fifth
    said = error("predict", model, data, "--drop-missing")
    assert "sales.csv, row 29 lies too far from the training data" in said


def test_a_target_that_cannot_be_read_is_told(folder, data, model):
    path = folder / "worded.csv"
    lines = data.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1].rpartition(",")[0] + ",many", *lines[2:4]]) + "\n")
    said = run("predict", model, path).stderr
    assert "the predictions are not compared with 'sales'" in said
    assert "row 1 (line 2), column 'sales' holds 'many'" in said


def test_a_category_that_is_only_in_rows_left_out_is_not_known(folder):
    path, out, new = folder / "rare.csv", folder / "rare.cadlag", folder / "rare_new.csv"
    rows = [f"{'ab'[i % 2]},{i},{i + 1}" for i in range(12)]
    path.write_text("\n".join(["k,x,y", *rows, "c,,3"]) + "\n")
    said = run("fit", path, "-t", "y", "-m", "ml_gp", "--set", "n_starts=1", "-o", out, "--drop-missing").stderr
    assert "holds 2 categories ('a', 'b')" in said
    assert "rows left out: 1 of 13" in said
    new.write_text("k,x\nc,3\n")
    assert "holds the category 'c', which the model never saw" in error("predict", out, new)


def test_a_target_that_varies_only_in_rows_left_out_is_refused(folder):
    path = folder / "flat.csv"
    path.write_text("x,y\n" + "".join(f"{i},5\n" for i in range(9)) + ",6\n")
    said = error("fit", path, "-t", "y", "-m", "ml_gp", "-o", folder / "f.cadlag", "--drop-missing")
    assert "the target 'y' does not vary" in said


def test_predictions_keep_the_places_of_rows_that_are_all_empty(folder, data, model):
    path = folder / "holes.csv"
    lines = data.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1], ",,,", lines[2]]) + "\n")
    points = column(run("predict", model, path, "--drop-missing").stdout, "point")
    assert [bool(point) for point in points] == [True, False, True]
