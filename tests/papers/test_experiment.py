"""Experiments: rows that survive kills and torn writes, runs that resume, tables that depend on the rows alone."""

import io
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cadlag
from cadlag import datasets, storage
from cadlag.baselines.diwp.ascent import Climb
from cadlag.methods import METHODS, whole_fits
from cadlag.papers import experiment
from cadlag.papers.experiment import FailedTasksError, evaluate_task, read_plan, run
from cadlag.papers.rows import Row, RowFile, Task, read_published, sources_of, table, version_of
from cadlag.sampling import chains
from cadlag.sampling.contract import InterruptedFitWarning

TASKS = [Task(data, "m", {"alpha": 1.0}, seed) for data in ("sim1d", "sim2d") for seed in range(4)]
METRICS = ("rmse", "mae")


def numbers_of(task):
    """Metrics that depend on the task alone."""
    rng = np.random.default_rng([task.seed, len(task.data), *task.data.encode()])
    return {"rmse": rng.random(), "mae": rng.random()}


def slow_numbers_of(task):
    time.sleep(0.01)
    return numbers_of(task)


def never(task):
    raise AssertionError(f"{task} was done a second time")


def failing_on_seed_2(task):
    if task.seed == 2:
        raise ArithmeticError("singular")
    return numbers_of(task)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture
def uninterrupted(tmp_path):
    """The table that a run without trouble gives."""
    return table(run(TASKS, tmp_path / "reference.jsonl", numbers_of, progress=False), metrics=METRICS)


class Normal:
    """A predictive law that is standard normal about a constant."""

    def __init__(self, mean, n):
        self.mean = self.median = np.full(n, mean)


class Constant:
    """An estimator that predicts the training mean and remembers what it was given."""

    calls = ()

    def __init__(self, shift=0.0, noisy=False, verdict="", random_state=None):
        self.shift, self.noisy, self.verdict, self.random_state = shift, noisy, verdict, random_state

    def fit(self, X, y, **seen):
        type(self).seen = seen
        self.mean_ = y.mean() + self.shift
        self.diagnostics_ = {"worst_rhat": 1.01, "n_failures": np.int64(3), "ok": True, "draws": [1]}
        if self.verdict:
            self.diagnostics_["verdict"] = self.verdict
        if self.noisy:
            warnings.warn("chains disagree", ConvergenceWarning, stacklevel=2)
            warnings.warn("something else", UserWarning, stacklevel=2)
        return self

    def predict_distribution(self, X):
        type(self).calls += ((self.random_state, len(X)),)
        return Normal(self.mean_, len(X))


@pytest.fixture
def constant(monkeypatch):
    """Register the constant method, with a score that needs no more than its mean."""
    monkeypatch.setattr(experiment, "METHODS", {"constant": Constant})
    monkeypatch.setattr(
        experiment.metrics, "score", lambda law, y: {"rmse": float(np.sqrt(np.mean((law.mean - y) ** 2)))}
    )
    monkeypatch.setattr(Constant, "calls", ())


def test_task_is_known_by_its_canonical_configuration():
    task = Task("sim1d", "m", {"b": [1, 2], "a": 1.0}, np.int64(3))
    assert task.canonical == '{"a":1.0,"b":[1,2]}'
    assert task == Task("sim1d", "m", {"a": 1.0, "b": (1, 2)}, 3)
    assert len({task, Task("sim1d", "m", {"a": 1.0, "b": (1, 2)}, 3)}) == 1
    assert task != Task("sim1d", "m", {"a": 1, "b": [1, 2]}, 3)
    assert type(task.key[3]) is int


@pytest.mark.parametrize("value", [np.zeros(2), float("nan"), object])
def test_configuration_must_be_json(value):
    with pytest.raises(ValueError, match="not plain JSON"):
        Task("sim1d", "m", {"a": value}, 0)


def test_rows_round_trip_exactly(path):
    values = {"rmse": 0.1, "log_score": -np.inf, "crps": np.nan, "width": np.inf, "warned": 1, "mae": np.float32(0.5)}
    RowFile(path).append(TASKS[0], values, 1.25)
    rows = RowFile(path).read()
    assert [row.metric for row in rows] == list(values)
    assert np.array_equal([row.value for row in rows], [float(v) for v in values.values()], equal_nan=True)
    assert all(row[:4] == TASKS[0].key and row.seconds == 1.25 and row.version for row in rows)
    json.loads(path.read_text(), parse_constant=pytest.fail)


def test_later_line_of_a_task_replaces_the_earlier(path):
    for value in (1.0, 2.0):
        RowFile(path).append(TASKS[0], {"rmse": value}, 0.0)
    assert [row.value for row in RowFile(path).read()] == [2.0]


def test_no_file_has_no_rows(path):
    assert RowFile(path).read() == []


def test_cut_at_every_byte_keeps_whole_lines_and_resumes(path, uninterrupted):
    run(TASKS[:2], path, numbers_of, progress=False)
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole, 1) if byte == ord("\n")]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        n_whole = sum(end <= length for end in ends)
        assert {row[:4] for row in RowFile(path).read()} == {task.key for task in TASKS[:n_whole]}
        RowFile(path).append(TASKS[7], numbers_of(TASKS[7]), 0.0)
        assert {row[:4] for row in RowFile(path).read()} == {task.key for task in [*TASKS[:n_whole], TASKS[7]]}
    assert table(run(TASKS, path, numbers_of, progress=False), metrics=METRICS) == uninterrupted


def test_zeros_of_a_power_cut_are_a_torn_line(path):
    run(TASKS[:1], path, numbers_of, progress=False)
    with open(path, "ab") as stream:
        stream.write(b'{"crc32' + bytes(50))
    RowFile(path).append(TASKS[1], {"rmse": 1.0}, 0.0)
    assert {row[:4] for row in RowFile(path).read()} == {TASKS[0].key, TASKS[1].key}


@pytest.mark.parametrize("place", [0, 12, 40, -2])
def test_damaged_middle_line_is_named(path, place):
    run(TASKS[:3], path, numbers_of, progress=False)
    lines = path.read_bytes().split(b"\n")
    changed = bytearray(lines[1])
    changed[place] ^= 1
    path.write_bytes(b"\n".join([lines[0], bytes(changed), *lines[2:]]))
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2 is damaged"):
        RowFile(path).read()


@pytest.mark.parametrize("content", [b"my only copy", b"a,b\n1,2\n", b"a,b\n1,2"])
def test_other_files_are_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="choose another path"):
        run(TASKS, path, numbers_of, progress=False)
    if not content.endswith(b"\n"):
        with pytest.raises(ValueError, match="choose another path"):
            RowFile(path).append(TASKS[0], {"rmse": 1.0}, 0.0)
    assert path.read_bytes() == content


def test_short_write_leaves_the_file_as_it_was(path, monkeypatch):
    run(TASKS[:1], path, numbers_of, progress=False)
    before, write = path.read_bytes(), storage.os.write
    monkeypatch.setattr(storage.os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(OSError, match="part of a line"):
        RowFile(path).append(TASKS[1], {"rmse": 1.0}, 0.0)
    assert path.read_bytes() == before


def append_many(path, seeds):
    for seed in seeds:
        RowFile(path).append(Task("sim1d", "m", {}, seed), {"rmse": float(seed)}, 0.0)


def test_several_processes_append_without_loss(path):
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=append_many, args=(path, range(k, 200, 4))) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted((row.seed, row.value) for row in RowFile(path).read()) == [(k, float(k)) for k in range(200)]


def test_finished_tasks_are_not_done_again(path):
    first = run(TASKS, path, numbers_of, progress=False)
    assert run([*TASKS, TASKS[0]], path, never, progress=False) == first
    assert len(first) == 2 * len(TASKS)


def test_other_configuration_is_another_task(path):
    run(TASKS[:1], path, numbers_of, progress=False)
    other = Task("sim1d", "m", {"alpha": 1.5}, 0)
    assert [row[:4] for row in run([other], path, numbers_of, progress=False)] == [other.key] * 2


def test_two_processes_give_the_same_table(path, uninterrupted):
    assert table(run(TASKS, path, numbers_of, n_jobs=2, progress=False), metrics=METRICS) == uninterrupted


def test_failed_task_spares_the_others_and_is_tried_again(path, uninterrupted, capsys):
    with pytest.raises(FailedTasksError, match=r"2 tasks failed .*first sim1d m .* seed 2: ArithmeticError: singular"):
        run(TASKS, path, failing_on_seed_2)
    assert len(RowFile(path).read()) == 2 * (len(TASKS) - 2)
    assert "Traceback" in capsys.readouterr().err
    assert table(run(TASKS, path, numbers_of, progress=False), metrics=METRICS) == uninterrupted


def test_unwritable_place_fails_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError):
        run(TASKS, tmp_path / "absent" / "rows.jsonl", never, progress=False)


def test_progress_goes_to_standard_error(path, capsys):
    run(TASKS[:2], path, numbers_of)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r'\[2/2\] sim1d m {"alpha":1.0} seed 1: \d+\.\d s; about 0.0 min left', err.splitlines()[1])


def test_lost_terminal_does_not_stop_a_run(path, monkeypatch):
    class Closed(io.StringIO):
        def write(self, _text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    assert len(run(TASKS, path, numbers_of)) == 2 * len(TASKS)


def test_killed_runs_lose_nothing_that_was_finished(path, uninterrupted):
    fork = multiprocessing.get_context("fork")
    rng = np.random.default_rng(2)
    n_done, n_killed = 0, 0
    for delay in rng.uniform(0.0, 0.04, size=30):
        process = fork.Process(target=run, args=(TASKS, path, slow_numbers_of, 1, False))
        process.start()
        process.join(delay)
        n_killed += process.is_alive()
        process.kill()
        process.join()
        rows = RowFile(path).read()
        assert len(rows) % 2 == 0
        assert len(rows) >= n_done
        n_done = len(rows)
        if n_done == 2 * len(TASKS):
            break
    assert n_killed >= 3
    assert table(run(TASKS, path, numbers_of, progress=False), metrics=METRICS) == uninterrupted
    assert path.read_bytes().count(b"\n") == len(TASKS)


def dying(task):
    os._exit(9)


@pytest.mark.parametrize(
    ("method", "configuration", "home", "step", "at"),
    [
        ("kernel", {"n_draws": 40, "n_warmup": 10, "n_chains": 1}, chains, "advance", 30),
        ("kernel", {"n_draws": 10, "n_warmup": 10, "precision": 0.001}, chains, "advance", 100),
        ("diwp", {"n_steps": 30, "n_samples": 2}, Climb, "_step", 10),
    ],
)
def test_a_fit_that_is_interrupted_is_no_row(path, monkeypatch, method, configuration, home, step, at):
    """By itself a fit keeps what it has when Ctrl-C is pressed; as a row that would pass for the whole."""
    seen, go_on = [], getattr(home, step)

    def interrupted(*arguments, **named):
        seen.append(0)
        if len(seen) == at:
            raise KeyboardInterrupt
        return go_on(*arguments, **named)

    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 1e-9)
    monkeypatch.setattr(home, step, interrupted)
    task = Task("sim1d", method, configuration, 0)
    with pytest.raises(KeyboardInterrupt):
        run([task], path, progress=False)
    assert len(seen) == at
    assert RowFile(path).read() == []


def test_a_worker_that_dies_is_one_sentence(path):
    with pytest.raises(FailedTasksError, match=r"process that was fitting has died, .* the same command goes on"):
        run(TASKS, path, dying, n_jobs=2, progress=False)
    assert RowFile(path).read() == []


def test_no_process_at_all_is_refused_before_anything_is_written(path):
    with pytest.raises(ValueError, match="n_jobs must be at least 1, got 0"):
        run(TASKS, path, numbers_of, n_jobs=0, progress=False)
    assert not path.exists()


def sleeping(task, folder):
    """Tell who does the task, then take very long."""
    (folder / str(os.getpid())).touch()
    time.sleep(600)
    return {"rmse": 0.0}


def _is_running(pid):
    """Whether there is such a process that has not ended; nobody may have asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes run")
def test_workers_end_with_a_run_that_is_killed(path, tmp_path):
    folder = tmp_path / "workers"
    folder.mkdir()
    work = partial(sleeping, folder=folder)
    process = multiprocessing.get_context("fork").Process(target=run, args=(TASKS, path, work, 2, False))
    process.start()
    limit = time.monotonic() + 60.0
    while len(workers := [int(entry.name) for entry in folder.iterdir()]) < 2:
        assert time.monotonic() < limit, "no two workers"
        time.sleep(0.05)
    assert all(map(_is_running, workers))
    process.kill()
    process.join()
    while any(map(_is_running, workers)):
        assert time.monotonic() < limit, "workers go on after the run is gone"
        time.sleep(0.05)
    assert len(list(folder.iterdir())) == 2


def test_evaluate_scores_times_and_diagnoses(constant):
    values = evaluate_task(Task("sim1d", "constant", {"shift": 1.0}, 5))
    data = datasets.simulate("1d", 5)
    assert values["rmse"] == pytest.approx(np.sqrt(np.mean((data.y_train.mean() + 1.0 - data.y_test) ** 2)))
    assert {k: v for k, v in values.items() if k.startswith("diag_")} == {
        "diag_worst_rhat": 1.01,
        "diag_n_failures": 3.0,
        "diag_ok": 1.0,
    }
    assert values["warned"] == 0.0
    assert min(values["fit_seconds"], values["predict_seconds"]) > 0
    assert Constant.calls == ((5, 100),)


@pytest.mark.parametrize("verdict", ["posterior", "ensemble", "unfinished", "fast"])
def test_a_verdict_is_kept_as_numbers(constant, verdict):
    values = evaluate_task(Task("sim1d", "constant", {"verdict": verdict}, 5))
    found = {name: value for name, value in values.items() if "verdict" in name}
    assert found == {f"diag_verdict_{name}": name == verdict for name in ("posterior", "ensemble", "unfinished")}
    assert {type(value) for value in found.values()} == {float}


def test_verdict_of_a_fit_that_goes_on_until_done():
    values = evaluate_task(Task("sim1d", "kernel", {"n_draws": 5, "n_warmup": 20, "precision": 1.0}, 0))
    assert sum(values[f"diag_verdict_{name}"] for name in ("posterior", "ensemble", "unfinished")) == 1.0
    assert values["diag_drifting"] in (0.0, 1.0)
    assert values["diag_n_chains"] >= 4


def test_test_inputs_are_given_to_those_who_ask(constant, monkeypatch):
    evaluate_task(Task("sim1d", "constant", {}, 5))
    assert Constant.seen == {}
    monkeypatch.setattr(Constant, "wants_test_inputs", property(lambda self: self.shift > 0.0), raising=False)
    for shift, given in ((0.0, []), (1.0, ["X_test"])):
        evaluate_task(Task("sim1d", "constant", {"shift": shift}, 5))
        assert list(Constant.seen) == given
    np.testing.assert_array_equal(Constant.seen["X_test"], datasets.simulate("1d", 5).X_test)


def test_another_warning_made_an_error_is_no_interruption():
    for warning, kind in ((UserWarning, UserWarning), (InterruptedFitWarning, KeyboardInterrupt)):
        with pytest.raises((UserWarning, KeyboardInterrupt)) as found, whole_fits():
            raise warning("interrupted: 3 draws are kept")
        assert found.type is kind


def test_convergence_warnings_are_recorded_every_time_and_others_shown(constant):
    for seed in (0, 1):
        with pytest.warns(UserWarning, match="something else") as shown:
            values = evaluate_task(Task("sim1d", "constant", {"noisy": True}, seed))
        assert values["warned"] == 1.0
        assert [item.category for item in shown] == [UserWarning]


def test_unknown_method_lists_the_known(constant):
    with pytest.raises(ValueError, match="no method 'other'; choose one of constant"):
        evaluate_task(Task("sim1d", "other", {}, 0))


def rows_of(values, metric="rmse", method="a", configuration="{}"):
    return [Row("sim1d", method, configuration, seed, metric, v, 0.0, "1") for seed, v in enumerate(values)]


def test_table_by_hand():
    rows = rows_of([1.0, 2.0, 4.5]) + rows_of([0.25], method="longer") + rows_of([7.0, 9.0], metric="mae")
    assert table(rows, metrics=("rmse", "mae")) == "\n".join(
        [
            "data   method  n       rmse          mae",
            "sim1d  a       3  2.5 (1.8)  8 (1.4) [2]",
            "sim1d  longer  1   0.25 (-)            -",
        ]
    )


def test_table_does_not_depend_on_order():
    rows = rows_of(np.random.default_rng(0).standard_normal(50)) + rows_of([1.0, 2.0], method="b")
    assert table(rows[::-1]) == table(rows)


def test_table_never_pools_configurations():
    rows = rows_of([1.0, 2.0]) + rows_of([3.0, 4.0], configuration='{"a":1}')
    with pytest.raises(ValueError, match="add 'configuration' to `by`"):
        table(rows)
    assert len(table(rows, by=("method", "configuration")).splitlines()) == 3


def test_table_refuses_unknown_fields():
    with pytest.raises(ValueError, match="no field 'dataset'; choose from data"):
        table(rows_of([1.0]), by=("dataset",))


PLAN = """
[[experiment]]
data = ["sim1d", "sim2d"]
method = "constant"
seeds = 2
[[experiment]]
data = "sim1d"
method = "constant"
seeds = [7]
configuration = {shift = 2.0}
"""


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_plan_in_toml_and_json(plan, tmp_path, constant):
    tasks = read_plan(plan)
    assert tasks == [
        *[Task(data, "constant", {}, seed) for seed in (0, 1) for data in ("sim1d", "sim2d")],
        Task("sim1d", "constant", {"shift": 2.0}, 7),
    ]
    entries = [{"data": ["sim1d", "sim2d"], "method": "constant", "seeds": 2}]
    (tmp_path / "plan.json").write_text(json.dumps(entries))
    assert read_plan(tmp_path / "plan.json") == tasks[:4]


@pytest.mark.parametrize(
    "entry",
    [
        {"data": "sim3d", "method": "constant", "seeds": 1},
        {"data": "sim1d", "method": "other", "seeds": 1},
        {"data": "sim1d", "method": "constant"},
        {"data": "sim1d", "method": "constant", "seeds": 1, "alpha": 1},
        {"data": "sim1d", "method": "constant", "seeds": "all"},
        "sim1d",
    ],
)
def test_bad_plans_exit_2_and_name_the_file(tmp_path, path, constant, capsys, entry):
    (tmp_path / "plan.json").write_text(json.dumps([entry]))
    assert experiment.main(["run", str(tmp_path / "plan.json"), "--rows", str(path)]) == 2
    assert "plan.json is not a plan" in capsys.readouterr().err
    assert not path.exists()


def test_command_line_runs_resumes_and_prints(plan, path, constant, capsys):
    assert experiment.main(["run", str(plan), "--rows", str(path), "--only", "sim2d"]) == 0
    assert {row.data for row in RowFile(path).read()} == {"sim2d"}
    assert experiment.main(["run", str(plan), "--rows", str(path)]) == 0
    assert len(Constant.calls) == 5
    capsys.readouterr()
    assert experiment.main(["table", "--rows", str(path), "--by", "data", "--metrics", "rmse,warned"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["data", "n"], ["sim1d", "3"], ["sim2d", "2"]]
    assert lines[2].endswith("0 (0)")
    assert experiment.main(["table", "--rows", str(path), "--by", "data", "--metrics", "rmse", "--seeds", "1"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == ["1", "1"]


def test_command_line_errors(plan, path, constant, capsys, monkeypatch):
    assert experiment.main(["run", str(plan), "--rows", str(path), "--only", "yacht"]) == 2
    assert experiment.main(["table", "--rows", str(path)]) == 2
    assert experiment.main(["run", str(plan) + "x", "--rows", str(path)]) == 2
    monkeypatch.setattr(experiment, "METHODS", {"constant": None})
    assert experiment.main(["run", str(plan), "--rows", str(path)]) == 1
    assert "5 tasks failed" in capsys.readouterr().err


def test_module_runs_as_a_command(path):
    RowFile(path).append(TASKS[0], {"rmse": 0.5}, 1.0)
    command = [sys.executable, "-m", "cadlag.papers.experiment", "table", "--rows", str(path), "--metrics", "rmse"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1].split() == ["sim1d", "m", "1", "0.5", "(-)"]


def test_published_figures_stand_beside_ours(tmp_path):
    file = tmp_path / "published.csv"
    file.write_text("data,method,metric,mean,sd\nsim1d,GP,rmse,0.69,0.05\nsim1d,GP,mae,0.5,\nyacht,GP,rmse,0.48,0.23\n")
    rows = [Row("sim1d", "kernel", "{}", seed, "rmse", 0.5 + seed, 1.0, "0") for seed in range(2)]
    lines = table(rows, metrics=("rmse", "mae"), published=read_published(file)).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["sim1d", "GP,", "published", "-", "0.69", "(0.05)", "0.5", "(-)"],
        ["sim1d", "kernel", "2", "1", "(0.71)", "-"],
    ]
    file.write_text("data,method,mean,sd\n")
    with pytest.raises(ValueError, match="has no column 'metric'"):
        read_published(file)


def test_figures_as_the_paper_prints_them(tmp_path):
    """Coverage is printed in percent, a dash has no mean, and the depths of one method are lines of their own."""
    file = tmp_path / "printed.csv"
    lines = ["sim1d,GP,,coverage,92.70,5.10", "sim1d,GP,,rmse,,", "sim1d,KP,3,rmse,0.560,0.05", "sim1d,KP,6,rmse,0.7,"]
    file.write_text("\n".join(["data,method,L,metric,mean,sd", *lines]))
    assert [[figure[k] for k in ("method", "metric", "mean", "sd")] for figure in read_published(file)] == [
        ["GP", "coverage", "0.927", "0.051"],
        ["KP, L = 3", "rmse", "0.560", "0.05"],
        ["KP, L = 6", "rmse", "0.7", ""],
    ]
    file.write_text("data,method,metric,mean,sd\nsim1d,GP,coverage,9O,5\n")
    with pytest.raises(ValueError, match=r"printed\.csv has a coverage that is no number: .* '9O'"):
        read_published(file)


def test_the_mark_of_a_row_is_that_of_the_files_its_method_runs_through():
    root = Path(cadlag.__file__).parent
    files = {method: {str(path.relative_to(root)) for path in sources_of(method)} for method in METHODS}
    assert all("storage.py" in found and "posterior.py" in found for found in files.values())
    assert not any(
        name.startswith(("app/", "papers/", "plots/", "report/")) for found in files.values() for name in found
    )
    assert "baselines/diwp/layer.py" in files["diwp"]
    assert not any("diwp" in name for name in files["kernel"])
    assert len({frozenset(found) for found in files.values()}) == len(METHODS)
    assert len(sources_of("another")) > 100


@pytest.mark.parametrize(("touched", "changes"), [("baselines/nngp/model.py", ("nngp",)), ("storage.py", METHODS)])
def test_a_mark_changes_with_those_files_alone(monkeypatch, touched, changes):
    before = {method: version_of.__wrapped__(method) for method in METHODS}
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * str(path).endswith(f"cadlag/{touched}"))
    after = {method: version_of.__wrapped__(method) for method in METHODS}
    assert {method for method in METHODS if before[method] != after[method]} == set(changes)
