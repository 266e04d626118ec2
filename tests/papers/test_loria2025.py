"""The paper redone: rows decide tables and figures, runs resume after kills, and settings are what they are called."""

import inspect
import json
import math
import multiprocessing
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version as Release

from cadlag import papers, storage
from cadlag.app import reproducing
from cadlag.datasets import UCI_FEATURES
from cadlag.methods import METHODS
from cadlag.papers.experiment import read_plan, run
from cadlag.papers.loria2025 import Part, agreement, curves, drawing, pairs, readme, reproduce, tables
from cadlag.papers.loria2025.__main__ import main
from cadlag.papers.loria2025.evidence import EVIDENCE, alpha, moves, splits
from cadlag.papers.loria2025.evidence.comparison import DIWP, INTERCEPT, NNGP, SHARE, Comparison
from cadlag.papers.loria2025.figures import FIGURES
from cadlag.papers.loria2025.plan import FULL, PRIOR, QUICK, TABLES, table_tasks
from cadlag.papers.loria2025.runs import read_rows, take, wanted
from cadlag.papers.loria2025.versions import SIMULATIONS, UCI, VERSIONS
from cadlag.papers.rows import Row, RowFile, Task

PACKAGE = Path(papers.__file__).parent / "loria2025"
MODULE = "cadlag.papers.loria2025.runs"
KINDS_OF_EVIDENCE = (alpha, moves, splits, Comparison)
FOUR_CHAINS = {"n_draws": 1000, "n_warmup": 1000, "n_chains": 4}


def fake(task, load=None):
    """Metrics that depend on the task alone."""
    rng = np.random.default_rng([task.seed, *task.data.encode(), *task.canonical.encode()])
    names = ("rmse", "mae", "coverage", "fit_cpu_seconds")
    return dict(zip(names, rng.random(4)))


def never(task, **_):
    raise AssertionError(f"{task} was done a second time")


def fake_curves(task, kind, load):
    return curves.flatten({kind: np.arange(3.0)})


@pytest.fixture
def stand_in(tmp_path_factory, monkeypatch):
    """Tables of random numbers where the UCI data would be, so that no test depends on those or on a network."""
    root, rng = tmp_path_factory.mktemp("uci"), np.random.default_rng(0)
    for name in UCI:
        folder, n_inputs = root / name, len(UCI_FEATURES[name])
        folder.mkdir()
        np.savetxt(folder / "data.txt", rng.normal(size=(80, n_inputs + 1)))
        indices = {"features": range(n_inputs), "target": [n_inputs], "train_0": range(70), "test_0": range(70, 80)}
        for part, values in indices.items():
            np.savetxt(folder / f"index_{part}.txt", values, fmt="%d")
    monkeypatch.setenv("CADLAG_DATA", str(root))


@pytest.fixture
def cheap(monkeypatch):
    """Fits that cost nothing."""
    monkeypatch.setattr(f"{MODULE}.evaluate_task", fake)
    monkeypatch.setattr(curves, "evaluate", fake_curves)
    for kind in KINDS_OF_EVIDENCE:
        monkeypatch.setattr(kind, "evaluate", staticmethod(fake))


# Settings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VERSIONS)
def test_settings_are_known_to_the_estimator_and_not_its_defaults(name):
    for version in VERSIONS[name].values():
        defaults = inspect.signature(METHODS[version.method]).parameters
        for data in version.data:
            configuration = version.configuration(data)
            assert configuration.keys() <= defaults.keys()
            # A default written out would be another key for the same fit; lengths of chains are given whole.
            assert {k for k, v in configuration.items() if v == defaults[k].default} <= {"n_warmup"}


def test_the_papers_configuration_of_its_own_method():
    version = VERSIONS["published"]["Dα-KP"]
    assert version.configuration("sim1d") == {
        "preset": "published_code", "depth": 2, "sampler": "independence", "n_draws": 2000, "n_warmup": 1000,
        "n_chains": 1, "standardize": False,
    }  # fmt: skip
    assert version.configuration("yacht")["fit_intercept"] is False
    assert version.configuration("yacht")["standardize"] == "inputs"
    assert "sampler" not in VERSIONS["converged"]["Dα-KP"].configuration("yacht")


def test_every_row_in_the_package_is_planned():
    plans = [task for path in (Path(__file__).parents[2] / "experiments").glob("*.toml") for task in read_plan(path)]
    keys = {task.key for task in [*table_tasks(TABLES, FULL), *plans]}
    rows = read_rows(PACKAGE / "rows", "tables")
    assert len({row[:4] for row in rows}) > 200
    assert {row[:4] for row in rows} <= keys


def passes_for_another(record):
    """Whether a row leaves chains and draws to the defaults of a version that did not go on until done.

    One that does has a verdict, which is in the rows of tables; where there was no fit there were no chains.
    """
    numbers = FOUR_CHAINS.keys() <= json.loads(record["configuration"]).keys()
    if record["method"] not in ("kernel", "network") or record["data"] == PRIOR or numbers:
        return False
    verdict = "diag_n_chains" not in record["metrics"] or "diag_verdict_posterior" in record["metrics"]
    return Release(record["version"].partition("+")[0]) < Release("0.2.0.dev0") or not verdict


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"version": "0.1.0"}, True),
        ({"configuration": '{"n_chains":4,"n_draws":1000}'}, True),
        ({"configuration": '{"n_chains":4,"n_draws":1000,"n_warmup":1000}'}, False),
        ({"version": "0.2.0.dev0+2bee663f"}, False),
        ({"version": "0.2.0.dev0+2bee663f", "metrics": {"diag_n_chains": 4.0}}, True),
        ({"version": "0.10.0", "metrics": {"diag_n_chains": 8.0, "diag_verdict_posterior": 0.0}}, False),
        ({"method": "nngp"}, False),
        ({"data": PRIOR}, False),
    ],
)
def test_rows_that_pass_for_others_are_found(changes, expected):
    record = {"data": "sim1d", "method": "network", "configuration": "{}", "version": "0.1.0+2bee663f", "metrics": {}}
    assert passes_for_another({**record, **changes}) == expected


def test_no_row_passes_for_one_of_other_defaults():
    paths = [*(PACKAGE / "rows").glob("*.jsonl"), Path(__file__).parents[2] / "experiments" / "jump_rows.jsonl"]
    records = [record for path in paths for record in storage.RecordFile(path).read()]
    assert sum(FOUR_CHAINS.items() <= json.loads(record["configuration"]).items() for record in records) >= 575
    assert not [record["configuration"] for record in records if passes_for_another(record)]
    for record in records:  # what is stated is what was done
        stated = {f"diag_{name}": value for name, value in json.loads(record["configuration"]).items()}
        done = {name: value for name, value in stated.items() if name in record["metrics"] and value != "auto"}
        assert done.items() <= record["metrics"].items(), record["configuration"]


def test_every_curve_in_the_package_belongs_to_a_figure():
    for kind, tasks in wanted([*FIGURES, *EVIDENCE], FULL, Part()).items():
        rows = [] if kind == "tables" else read_rows(PACKAGE / "rows", kind)
        assert {row[:4] for row in rows} <= {task.key for task in tasks}


def test_quick_fits_are_never_taken_for_full_ones():
    names = [*TABLES, *FIGURES]
    for kind, quick in wanted(names, QUICK, Part()).items():
        assert not {task.key for task in quick} & {task.key for task in wanted(names, FULL, Part())[kind]}
    assert len(QUICK.load("sim10d", 0).y_train) == 60
    assert len(QUICK.load("sim10d", 0).y_test) == 300
    assert len(QUICK.load("sim2d", 0).y_train) == 49


def test_part_of_the_fits():
    part = Part(("sim1d",), ("kernel", "nngp"), ("converged",), (0, 1))
    found = wanted(["table-1", "figure-2"], FULL, part)
    assert {task.data for task in found["tables"]} == {"sim1d"}
    assert sorted((t.method, t.seed) for t in found["tables"]) == [
        ("kernel", 0),
        ("kernel", 1),
        ("nngp", 0),
        ("nngp", 1),
    ]
    assert {task.method for task in found["predictions"]} == {"kernel", "nngp"}


# Tables --------------------------------------------------------------------------------------------------------------


def test_printed_numbers():
    cells = {(c.table, c.data, c.method, c.depth, c.metric): c for c in tables.read_printed()}
    assert len(cells) == 168
    assert {c.table for c in cells.values()} == set(TABLES)
    assert cells["table-1", "sim10d", "Dα-KP", None, "rmse"][6:8] == (8.08, 0.38)
    assert cells["table-2", "sim2d", "Dα-KP", 16, "mae"][6:8] == (0.69, 0.05)
    assert cells["table-3", "yacht", "Dα-KP", None, "rmse"][6:8] == (0.31, 0.12)
    assert math.isnan(cells["table-8", "boston", "Stable", None, "coverage"].mean)


def test_a_cell_by_hand():
    configuration = VERSIONS["published"]["GP MLE"].configuration("sim1d")
    file = [(seed, value) for seed, value in enumerate([0.7, 0.8, 0.9])]
    rows = [row_of(Task("sim1d", "ml_gp", configuration, seed), "rmse", value) for seed, value in file]
    found = {(c.version, c.metric): c for c in tables.cells("table-1", rows, FULL) if c[1:3] == ("sim1d", "GP MLE")}
    cell = found["published", "rmse"]
    assert (cell.mean, cell.sd, cell.n) == (pytest.approx(0.8), pytest.approx(0.1), 3)
    assert tables.text(cell) == "0.80 (0.10), n = 3"
    assert tables.text(cell._replace(n=20)) == "0.80 (0.10)"
    assert tables.text(found["printed", "rmse"]) == "0.77 (0.06)"
    assert math.isnan(found["converged", "rmse"].mean)
    assert tables.text(found["converged", "rmse"]) == "–"
    assert "| GP MLE | ours, paper's settings | 0.80 (0.10), n = 3 | – |" in tables.to_markdown(
        "table-1", [*found.values()]
    )


def row_of(task, metric, value):
    return Row(*task.key, metric, value, 1.0, "0")


def test_coverage_is_in_percent_and_one_seed_has_no_deviation():
    task = Task("yacht", "network", FOUR_CHAINS, 0)
    (cell,) = [c for c in tables.cells("table-8", [row_of(task, "coverage", 0.9)], FULL) if c.n == 1]
    assert cell.mean == pytest.approx(90)
    assert tables.text(cell) == "90.0 (–), n = 1"


def test_seeds_beyond_the_papers_do_not_count_and_what_is_not_finite_is_said():
    tasks = [Task("yacht", "network", FOUR_CHAINS, seed) for seed in (0, 19, 20)]
    rows = [row_of(task, "coverage", value) for task, value in zip(tasks, (0.8, 0.9, 0.1))]
    (cell,) = [c for c in tables.cells("table-8", rows, FULL) if c.n == 2]
    assert tables.text(cell) == "85.0 (7.1), n = 2"
    for value in (math.inf, math.nan):
        entries = tables.cells("table-8", [rows[0], row_of(tasks[1], "coverage", value)], FULL)
        (cell,) = [c for c in entries if c.n == 2]
        assert tables.text(cell) == "not finite, n = 2"
        assert "| network | ours, best | – | – | not finite, n = 2 |" in tables.to_markdown("table-8", entries)


def test_fits_that_warned_are_counted_line_by_line():
    chains = [Task("sim2d", "network", FOUR_CHAINS, seed) for seed in range(3)]
    rows = [row_of(task, "warned", value) for task, value in zip(chains, (1.0, 0.0, 1.0))]
    rows += [row_of(task, "diag_worst_rhat", value) for task, value in zip(chains, (1.5, 1.0, 1.25))]
    search = Task("yacht", "ml_gp", {}, 0)
    rows += [row_of(search, "warned", 0.0), row_of(search, "diag_worst_rhat", math.nan)]
    text = agreement.to_markdown(rows, FULL)
    assert "| network | ours, best | – | 2 of 3 (1.25) | – | – | – | – |" in text
    assert "| GP MLE | ours, best | – | – | – | – | – | 0 of 1 |" in text
    assert "NNGP" not in text
    beyond = row_of(Task("sim2d", "network", FOUR_CHAINS, 20), "warned", 1.0)  # no seed of the tables
    assert agreement.to_markdown([*rows, beyond], FULL) == text


def test_differences_are_of_the_same_replicates():
    deep, two = (VERSIONS["published"]["Dα-KP"].having(depth=depth).configuration("sim1d") for depth in (3, 2))
    rows = [row_of(Task("sim1d", "kernel", deep, seed), "rmse", 1.0 + seed + 0.1 * (-1) ** seed) for seed in (0, 1, 4)]
    rows += [row_of(Task("sim1d", "kernel", two, seed), "rmse", 1.0 * seed) for seed in (0, 1, 2, 3)]
    text = pairs.to_markdown(rows, FULL)
    assert "| 1-d | L = 3 (paper's settings) | Dα-KP (paper's settings) | -0.01 | +1.000 (0.100) | 2 |" in text
    assert text.count("\n") == 3


def test_tables_do_not_depend_on_the_order_of_rows():
    rows = read_rows(PACKAGE / "rows", "tables")
    shuffled = random.Random(0).sample(rows, len(rows))
    assert readme.text(rows) == readme.text(shuffled)


def test_depths_are_told_apart():
    version = VERSIONS["published"]["Dα-KP"]
    rows = [
        row_of(Task("sim1d", "kernel", version.having(depth=depth).configuration("sim1d"), 0), "rmse", float(depth))
        for depth in (3, 6, 11, 16)
    ]
    found = [(c.depth, c.mean) for c in tables.cells("table-2", rows, FULL) if c.n == 1]
    assert found == [(3, 3.0), (6, 6.0), (11, 11.0), (16, 16.0)]


def test_gaps_in_standard_errors_of_both():
    printed = tables.Cell("table-1", "sim1d", "NNGP", None, "printed", "rmse", 1.0, 0.4, 20)
    ours = printed._replace(version="published", mean=1.5, sd=0.3, n=5)
    (gap,) = tables.gaps([printed, ours, ours._replace(version="best", mean=9.0)])
    assert gap.z == pytest.approx(0.5 / math.sqrt(0.16 / 20 + 0.09 / 5))
    assert tables.gaps([printed, ours._replace(n=1)]) == []


def test_readme_keeps_what_is_written_by_hand(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"mine\n{readme.START}\nold\n{readme.END}\nalso mine\n")
    readme.update(page, [])
    text = page.read_text()
    assert text.startswith(f"mine\n{readme.START}")
    assert text.endswith(f"{readme.END}\nalso mine\n")
    assert "old" not in text
    assert "Table 8" in text
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no lines"):
        readme.update(page, [])


def test_readme_of_the_package_shows_its_rows(tmp_path):
    page = shutil.copy(PACKAGE / "README.md", tmp_path)
    rows = {kind: read_rows(PACKAGE / "rows", kind) for kind in ("tables", *EVIDENCE)}
    readme.update(Path(page), rows.pop("tables"), rows)
    assert Path(page).read_text() == (PACKAGE / "README.md").read_text()


def test_evidence_counts_both_kinds_of_intervals():
    task = NNGP.tasks(FULL)[0]
    found, data = NNGP.evaluate(task, FULL.load), FULL.load("sim1d", 0)
    model = METHODS["nngp"](amplitude=False, sampler="ml", random_state=0).fit(data.X_train, data.y_train)
    for name, kind in (("coverage", "observation"), ("coverage_function", "function")):
        lower, upper = model.predict_distribution(data.X_test, kind=kind).interval(0.9).T
        assert found[name] == np.mean((lower <= data.y_test) & (data.y_test <= upper))
    assert found["coverage_function"] < found["coverage"]
    text = NNGP.to_markdown([row_of(task, "coverage_function", 0.25)], FULL)
    assert "| sim1d | ours, two maps | – | – | 25.0 (–), n = 1 |" in text
    assert "| sim1d | printed | 1.08 (0.04) | 92.50 (1.79) | – |" in text


def test_evidence_with_a_noise_that_is_a_share_of_the_variance():
    tasks = [task for task in NNGP.tasks(FULL) if SHARE in task.configuration]
    assert {task.data for task in tasks} == {"sim1d", "sim2d"}
    found, data = NNGP.evaluate(tasks[0], FULL.load), FULL.load(tasks[0].data, 0)
    noise = 0.25 * np.var(data.y_train)
    model = METHODS["nngp"](amplitude=False, sampler="ml", n_maps=1, noise_variance=noise)
    error = model.fit(data.X_train, data.y_train).predict(data.X_test) - data.y_test
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))


def test_evidence_on_learned_inputs_is_told_apart():
    plain, learned = (task for task in DIWP.tasks(FULL) if (task.data, task.seed) == ("energy", 1))
    assert learned.configuration == {**plain.configuration, "learn_inputs": True}
    text = DIWP.to_markdown([row_of(plain, "rmse", 1.25), row_of(learned, "rmse", 0.5)], FULL)
    assert "| energy | ours, inputs as they are | 1.25 (–), n = 1 | – | – |" in text
    assert "| energy | ours, scales and shifts learned | 0.500 (–), n = 1 | – | – |" in text
    assert "| energy | printed | 0.48 (0.06) | 0.34 (0.04) | 48.77 (6.05) |" in text


def test_evidence_without_intercept_is_told_apart_by_depth():
    planned = INTERCEPT.tasks(FULL)
    assert len({task.key for task in planned}) == 5 * 20
    assert not any(task.configuration["fit_intercept"] for task in planned)
    rows = [row_of(task, "rmse", task.configuration["depth"] + 0.5) for task in planned]
    text = INTERCEPT.to_markdown(rows, FULL)
    assert "| sim1d | printed | 0.57 (0.05) | 0.45 (0.04) | 90.85 (5.12) |" in text
    assert "| sim1d | ours, no intercept | 2.50 (0.00) | – | – |" in text
    assert "| sim1d, L = 16 | printed | 0.58 (0.05) | 0.46 (0.04) | – |" in text
    assert "| sim1d, L = 16 | ours, no intercept | 16.5 (0.0) | – | – |" in text


def test_splits_of_one_sample():
    data = FULL.load("sim10d", 3)
    first, second = splits.divided(data, 0), splits.divided(data, 1)
    assert first.X_train.shape == data.X_train.shape
    assert not np.array_equal(first.y_train, second.y_train)
    rows = [np.column_stack([np.r_[d.X_train, d.X_test], np.r_[d.y_train, d.y_test]]) for d in (data, first, second)]
    assert np.array_equal(np.unique(rows[0], axis=0), np.unique(rows[1], axis=0))
    assert np.array_equal(np.unique(rows[0], axis=0), np.unique(rows[2], axis=0))


def test_means_of_samples_are_over_their_splits():
    """Sample by sample and method by method, whatever the order of the rows; differences are of the same splits."""
    planned = splits.tasks(FULL)
    above = {"kernel": -1.0, "ml_gp": 0.0, "nngp": 10.0}
    values = {task.key: above[task.method] + sum(divmod(task.seed, splits.N_SPLITS)) for task in planned}
    rows = [row_of(task, "rmse", values[task.key]) for task in reversed(planned)]
    text = splits.to_markdown(rows, FULL)
    assert "| 2 | 1.50 (0.71) | 4.50 (1.87) | 14.50 (1.87) | -1.00 (0.00) | -10.00 (0.00) |" in text
    assert "| means of the samples | 3.00 (2.45) | 6.00 (2.45) | 16.00 (2.45) | -1.00 (0.00) | -10.00 (0.00) |" in text
    assert "| printed | 8.08 (0.38) | 8.32 (0.38) | 8.92 (0.39) | -0.24 | -0.60 |" in text


def test_samples_without_rows_are_left_open():
    rows = [row_of(task, "rmse", 9.0) for task in splits.tasks(FULL) if task.method == "ml_gp"]
    assert "| 7 | – | 9.00 (0.00) | – | – | – |" in splits.to_markdown(rows, FULL)


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_evidence_counts_moves_after_the_warm_up():
    task = moves.tasks(QUICK)[0]
    found = moves.evaluate(task, QUICK.load)
    data = QUICK.load(task.data, task.seed)
    model = METHODS["kernel"](**task.configuration, random_state=task.seed).fit(data.X_train, data.y_train)
    noise = model.posterior_["noise_variance"][0]
    assert found["noise_moves"] == len(set(noise)) - 1 > 0  # a value is never met again
    draws = model.posterior_.scalars()
    scales = [values[0] for name, values in draws.items() if name not in ("noise_variance", "log_likelihood")]
    assert found["least_moves"] in [len(set(values)) - 1 for values in scales]
    table = model.posterior_.summary()
    sizes = dict(zip(table["parameter"], table["ess_bulk"]))
    assert found["noise_ess"] == sizes.pop("noise_variance")
    assert found["least_ess"] == min(size for name, size in sizes.items() if name != "log_likelihood")


def test_moves_are_laid_out_with_their_range():
    planned = [task for task in moves.tasks(FULL) if task.data == "yacht"]
    rows = [row_of(task, name, 10.0 * task.seed) for task in planned for name in moves.COLUMNS]
    text = moves.to_markdown(rows, FULL)
    assert "| yacht | 5 | 20 (0, 40) | 20 (0, 40) | 20 (0, 40) | 20 (0, 40) |" in text
    assert "| sim1d | 0 | – | – | – | – |" in text


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_evidence_on_alpha_scores_one_fit():
    task = alpha.tasks(QUICK)[0]
    found, data = alpha.evaluate(task, QUICK.load), QUICK.load(task.data, task.seed)
    assert task.configuration["alpha"] == 0.5
    model = METHODS["kernel"](**task.configuration, random_state=task.seed).fit(data.X_train, data.y_train)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((model.predict(data.X_test) - data.y_test) ** 2)))
    lower, upper = model.predict_interval(curves.grid()[:, None], 0.5).T
    assert found["band"] == pytest.approx(np.mean(upper - lower))
    lower, upper = model.predict_interval(data.X_test, 0.9).T
    assert found["coverage"] == np.mean((lower <= data.y_test) & (data.y_test <= upper))
    assert found["rise"] == curves.rise(model.predict(curves.grid()[:, None]))
    assert found["worst_rhat"] == model.diagnostics_["worst_rhat"]


def test_evidence_on_alpha_tells_samplers_and_alphas_apart():
    planned = alpha.tasks(FULL)
    level = {task.key: task.configuration["alpha"] + ("sampler" in task.configuration) for task in planned}
    rows = [row_of(task, name, level[task.key]) for task in planned for name in (*alpha.COLUMNS, "worst_rhat")]
    text = alpha.to_markdown(rows, FULL)
    assert "| 1.5 | paper's | 20 | 2.5 (0) | 250 (0) | 2.5 (0) | 2.5 (0) | 2.500 (2.500) | 20 |" in text
    assert "| 1.5 | converged | 20 | 1.5 (0) | 150 (0) | 1.5 (0) | 1.5 (0) | 1.500 (1.500) | 20 |" in text
    assert "| 0.5 | converged | 0 | – | – | – | – | – | – |" in alpha.to_markdown(rows[:1], FULL)


# Runs ----------------------------------------------------------------------------------------------------------------


def test_quick_does_everything_once(cheap, stand_in, monkeypatch, tmp_path):
    monkeypatch.setattr(drawing, "picture", lambda figure, found: f"{figure.drawing} {len(found)}".encode())
    assert reproduce(tmp_path, quick=True, progress=False) == []
    folder = tmp_path / "quick"
    assert list(tmp_path.iterdir()) == [folder]  # nothing that passes for the paper's size
    names = {path.name for path in folder.iterdir() if path.is_file()}
    written = {f"{n}{end}" for n in TABLES for end in (".md", ".csv")} | {f"{n}.png" for n in FIGURES}
    assert names == written | {f"{n}.md" for n in EVIDENCE}
    before = {name: (folder / name).read_bytes() for name in names}
    monkeypatch.setattr(f"{MODULE}.evaluate_task", never)
    monkeypatch.setattr(curves, "evaluate", never)
    for kind in KINDS_OF_EVIDENCE:
        monkeypatch.setattr(kind, "evaluate", staticmethod(never))
    assert reproduce(tmp_path, quick=True, progress=False) == []
    assert {name: (folder / name).read_bytes() for name in names} == before


def test_rows_of_the_package_are_used_and_left_alone(cheap, monkeypatch, tmp_path):
    monkeypatch.setattr(f"{MODULE}.evaluate_task", never)
    before = (PACKAGE / "rows" / "tables.jsonl").read_bytes()
    (complaint,) = reproduce(tmp_path, ["table-1"], progress=False)
    assert re.match(r"\d+ of 1020 fits of tables are in", complaint)
    assert "0.584 (0.052)" in (tmp_path / "table-1.md").read_text()
    # The converged kernel process is there for all seeds of the first two simulations: nothing is missing.
    part = Part(("sim1d", "sim2d"), ("kernel",), ("converged",))
    assert reproduce(tmp_path, ["table-1"], fits="missing", part=part, progress=False) == []
    monkeypatch.setattr(f"{MODULE}.evaluate_task", fake)
    reproduce(tmp_path, ["table-1"], fits="again", part=part, progress=False)
    assert len({row[:4] for row in read_rows(tmp_path / "again", "tables")}) == 40
    assert "0.584 (0.052)" not in (tmp_path / "table-1.md").read_text()
    assert (PACKAGE / "rows" / "tables.jsonl").read_bytes() == before


def test_absent_data_are_left_out_with_a_sentence(cheap, monkeypatch, tmp_path):
    monkeypatch.setenv("CADLAG_DATA", str(tmp_path))
    complaints = reproduce(tmp_path / "out", ["table-1", "table-3"], quick=True, progress=False)
    assert [c.split(":")[0] for c in complaints] == [f"Left out what needs {name}" for name in UCI]
    assert {row.data for row in read_rows(tmp_path / "out" / "quick" / "rows", "tables")} == set(SIMULATIONS)


def test_a_fit_that_fails_is_named_and_the_rest_is_done(cheap, monkeypatch, tmp_path):
    def failing(task, load):
        if task.method == "nngp":
            raise ArithmeticError("singular")
        return fake(task)

    monkeypatch.setattr(f"{MODULE}.evaluate_task", failing)
    arguments = ["--quick", "--only", "table-6", "--out", str(tmp_path)]
    assert main(arguments) == 1
    text = (tmp_path / "quick" / "table-6.md").read_text()
    assert "| NNGP | ours, paper's settings | – | – | – |" in text
    assert "| GP MLE | ours, paper's settings |" in text
    assert "| GP MLE | ours, paper's settings | – |" not in text
    with pytest.raises(SystemExit) as ended:
        reproducing.reproduce("loria2025", tmp_path, ["table-6"], True, "none", 1)
    assert ended.value.code == 1
    monkeypatch.setattr(f"{MODULE}.evaluate_task", fake)
    assert main(arguments) == 0


def test_rows_made_beside_are_shown_and_gain_what_the_package_has(cheap, monkeypatch, tmp_path):
    part = Part(("sim1d",), ("diwp",), ("converged",), (0, 1))
    reproduce(tmp_path, ["table-1"], fits="missing", part=part, progress=False)
    before = (tmp_path / "table-1.md").read_text()
    assert re.search(r"DIWP \| ours, converged \| [\d.]+ \([\d.]+\), n = 2", before)
    own = tmp_path / "rows" / "tables.jsonl"
    lines = own.read_bytes().splitlines(keepends=True)
    own.write_bytes(b"".join(lines[40:]))  # as if the package had gained rows since
    monkeypatch.setattr(f"{MODULE}.evaluate_task", never)
    reproduce(tmp_path, ["table-1"], progress=False)
    assert (tmp_path / "table-1.md").read_text() == before
    assert sorted(own.read_bytes().splitlines(keepends=True)) == sorted(lines)
    version = VERSIONS["best"]["GP MLE"]  # as if the package had corrected a row since
    RowFile(own).append(Task("sim1d", version.method, version.configuration("sim1d"), 0), {"rmse": 99.0}, 1.0)
    for _ in range(2):
        reproduce(tmp_path, ["table-1"], progress=False)
        assert (tmp_path / "table-1.md").read_text() == before
        assert len(own.read_bytes().splitlines()) == len(lines) + 2


@pytest.mark.parametrize("faster", [False, True])
def test_a_copy_of_the_rows_that_fails_is_one_sentence_and_leaves_nothing(monkeypatch, tmp_path, faster):
    def full(source, path):
        path.mkdir()
        (path / "tables.jsonl").write_bytes(b"{")
        if faster:  # another process has made them meanwhile
            shutil.copytree(source, tmp_path / "rows", copy_function=shutil.copy)
        raise shutil.Error([("a", "b", "No space left on device")])

    part, copytree = Part(("sim1d",), ("kernel",), ("converged",)), shutil.copytree
    monkeypatch.setattr(f"{MODULE}.shutil.copytree", lambda *a, **k: (copytree if k else full)(*a, **k))
    if faster:
        assert reproduce(tmp_path, ["table-1"], fits="missing", part=part, progress=False) == []
    else:
        with pytest.raises(OSError, match=r"rows of the package cannot be copied to .*rows; free some space"):
            reproduce(tmp_path, ["table-1"], fits="missing", part=part, progress=False)
    assert not list(tmp_path.glob(".*"))
    assert (tmp_path / "rows").exists() == faster


def test_an_interruption_is_one_sentence(cheap, monkeypatch, capsys, tmp_path):
    def stop(task, load):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{MODULE}.evaluate_task", stop)
    assert main(["--quick", "--only", "table-6", "--out", str(tmp_path)]) == 130
    assert "interrupted; what is finished is kept" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "table-4"], "no 'table-4' to be redone; choose from table-1"),
        (["--only", ","], "argument --only: names none"),
        (["--take", "x.jsonl"], "--take needs --rows"),
        (["--take", "no.jsonl", "--rows", "ROWS"], "There is no row file no.jsonl"),
        (["--readme", "x.md"], "--readme needs --rows"),
        (["--readme", "x.md", "--rows", "nowhere"], "no rows of tables in nowhere"),
        (["--rows", "nowhere"], "no directory of row files nowhere"),
        (["--missing", "--data", "sim3d"], "no 'sim3d' among the data; choose from sim1d"),
        (["--missing", "--methods", "gpr"], "no 'gpr' among the methods; choose from kernel"),
        (["--missing", "--versions", "better"], "no 'better' among the versions; choose from published"),
        (["--missing", "--data", ","], "argument --data: names none"),
        (["--missing", "--seeds", "0"], "'0' is neither a number of seeds nor a list"),
        (["--missing", "--seeds", "one"], "'one' is neither a number of seeds nor a list"),
        (["--missing", "--seeds", "3,-1"], "'3,-1' is neither a number of seeds nor a list"),
        (["--quick", "--only", "table-1", "--seeds", "7,8"], "No fit of table-1 is in the part that was chosen"),
        (["--missing", "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["--quick", "--again"], "leave out either --quick or"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(arguments, message, capsys, tmp_path):
    out = tmp_path / "out"
    arguments = [str(tmp_path / "rows") if word == "ROWS" else word for word in arguments]
    try:
        code = main([*arguments, "--out", str(out)])
    except SystemExit as ended:  # argparse's own way
        code = ended.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not out.exists() or not any(out.iterdir())


def test_a_place_that_cannot_be_written_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert main(["--out", str(tmp_path / "file")]) == 2
    assert "file cannot be made a directory (File exists); choose another one" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_records_of_another_kind_are_no_rows(tmp_path):
    storage.RecordFile(tmp_path / "other.jsonl").append({"data": "sim1d"})
    with pytest.raises(ValueError, match=r"other\.jsonl holds no rows of fits, which have 'configuration'"):
        RowFile(tmp_path / "other.jsonl").read()
    with pytest.raises(ValueError, match=r"holds no rows of fits"):
        take([tmp_path / "other.jsonl"], tmp_path / "rows")


def test_rows_of_other_files_are_taken_once(tmp_path):
    tasks = [Task("sim1d", "network", FOUR_CHAINS, seed) for seed in (0, 1)] + [Task("sim1d", "network", {}, 0)]
    for task in tasks:
        RowFile(tmp_path / "other.jsonl").append(task, fake(task), 1.0)
    assert take([tmp_path / "other.jsonl"], tmp_path / "rows") == 2
    assert take([tmp_path / "other.jsonl"], tmp_path / "rows") == 0
    assert {row[:4] for row in read_rows(tmp_path / "rows", "tables")} == {task.key for task in tasks[:2]}


def _run_in_child(tasks, path):
    run(tasks, path, fake, progress=False)


def _size(path):
    return path.stat().st_size if path.exists() else 0


def test_killed_ten_times_the_tables_are_the_same(tmp_path):
    tasks = table_tasks(["table-1", "table-2"], FULL)[:400]
    run(tasks, tmp_path / "whole.jsonl", fake, progress=False)
    path, dice, context = tmp_path / "killed.jsonl", random.Random(3), multiprocessing.get_context("fork")
    n_done = [0]
    for _ in range(10):
        child = context.Process(target=_run_in_child, args=(tasks, path))
        # Some thousand bytes are a few fits, whatever the speed of the machine.
        enough = _size(path) + dice.randrange(1, 9000)
        child.start()
        while _size(path) < enough:
            assert child.is_alive(), "ended before it was killed"
            time.sleep(0.0005)
        time.sleep(dice.uniform(0, 0.002))
        child.kill()
        child.join()
        n_done.append(len({row[:4] for row in RowFile(path).read()}))
    assert n_done == sorted(n_done)
    assert 10 <= n_done[-1] < len(tasks)
    run(tasks, path, fake, progress=False)
    whole, killed = (RowFile(p).read() for p in (tmp_path / "whole.jsonl", path))
    assert readme.text(killed) == readme.text(whole)
    assert ", n = 5 |" in readme.text(whole)


_COMMAND = [sys.executable, "-m", "cadlag.app.cli", "reproduce", "loria2025", "--quick", "--jobs", "2", "--only"]


def _n_fits(folder):
    """How many fits the rows of a run hold so far."""
    return len({row[:4] for kind in ("tables", "ablation") for row in read_rows(folder / "quick" / "rows", kind)})


@pytest.mark.slow
def test_the_command_killed_ten_times_makes_the_same_files(tmp_path):
    """Real fits in worker processes, killed while they work; tables of errors and a figure to the last byte."""
    command = [*_COMMAND, "table-1,table-6,figure-6", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    dice, n_done = random.Random(5), [0]
    for _ in range(10):
        enough = n_done[-1] + dice.randrange(12)
        child = subprocess.Popen([*command, tmp_path / "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while _n_fits(tmp_path / "killed") < enough:
            assert child.poll() is None, "ended before it was killed"
            time.sleep(0.01)
        time.sleep(dice.uniform(0.0, 0.5))
        assert child.poll() is None, "ended before it was killed"
        child.kill()
        child.wait()
        n_done.append(_n_fits(tmp_path / "killed"))
    assert n_done == sorted(n_done)
    assert n_done[-1] < _n_fits(tmp_path / "whole")
    subprocess.run([*command, tmp_path / "killed"], check=True, capture_output=True)
    for name in ("table-1.md", "table-1.csv", "table-6.md", "table-6.csv", "figure-6.png"):
        killed, whole = (tmp_path / run / "quick" / name for run in ("killed", "whole"))
        assert killed.read_bytes() == whole.read_bytes()
    print(f"fits in the rows after each of ten kills: {n_done[1:]} of {_n_fits(tmp_path / 'whole')}")
