"""Durable runs: killed at any moment and resumed, the draws are those of a run that nothing disturbed, bit for bit."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from cadlag import StableKernelRegressor
from cadlag.sampling import chains
from cadlag.storage import read_tree, write_tree

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

N = 14
RNG = np.random.default_rng(11)
X = RNG.standard_normal((N, 2))
Y = np.sign(X[:, 0]) + 0.1 * RNG.standard_normal(N)
SETTINGS = {"n_draws": 30, "n_warmup": 40, "n_chains": 2, "random_state": 7}


def regressor(**settings):
    return StableKernelRegressor(**{**SETTINGS, **settings})


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 0.02)


@pytest.fixture(scope="module")
def undisturbed():
    return regressor().fit(X, Y)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "run.d"


def same(one, other):
    """The same draws, statistics, and chains to go on from."""
    np.testing.assert_array_equal(one.posterior_.positions, other.posterior_.positions)
    assert one.posterior_.stats.keys() == other.posterior_.stats.keys()
    for name, values in one.posterior_.stats.items():
        np.testing.assert_array_equal(values, other.posterior_.stats[name], err_msg=name)
    for mine, theirs in zip(one.chains_, other.chains_, strict=True):
        assert (mine["done"], mine["rng"]) == (theirs["done"], theirs["rng"])


def block_files(directory):
    return sorted(directory.glob("chain-*.cadlag"))


# Killed --------------------------------------------------------------------------------------------------------------

# One process imports once; each of its children fits, and is killed when it has written a random number of further
# blocks and a random moment has passed. Progress is counted in files, so the speed of the machine is no matter.
KILLER = """
import json, os, pathlib, random, signal, sys, time, warnings
import numpy as np
from cadlag import StableKernelRegressor
from cadlag.sampling import chains
warnings.simplefilter("ignore")
task = json.loads(sys.argv[1])
directory, dice = pathlib.Path(task["directory"]), random.Random(task["seed"])
X, y = np.array(task["X"]), np.array(task["y"])
kills, finished = 0, False
while not finished:
    child = os.fork()
    if child == 0:
        chains._BLOCK_SECONDS = 1e-9 if kills < task["kills"] else 1.0
        StableKernelRegressor(**task["settings"]).fit(X, y, checkpoint=directory)
        os._exit(0)
    if kills == task["kills"]:
        finished = os.waitpid(child, 0)[1] == 0
        assert finished
        break
    target = len(list(directory.glob("chain-*.cadlag"))) + dice.randrange(1, 8)
    while len(list(directory.glob("chain-*.cadlag"))) < target and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.0005)
    time.sleep(dice.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    kills += 1
print(json.dumps({"kills": kills, "files": len(list(directory.glob("chain-*.cadlag")))}))
"""


def test_killed_ten_times(directory):
    settings = {**SETTINGS, "n_draws": 140}
    task = {"directory": str(directory), "settings": settings, "X": X.tolist(), "y": Y.tolist(), "kills": 10, "seed": 5}
    result = subprocess.run(
        [sys.executable, "-c", KILLER, json.dumps(task)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["kills"] == 10
    assert len(block_files(directory)) >= 20
    rounds = []
    resumed = regressor(n_draws=140, progress=lambda *report: rounds.append(report)).fit(X, Y, checkpoint=directory)
    assert rounds == []
    same(resumed, regressor(n_draws=140).fit(X, Y))


WORKER = """
import json, sys, warnings
import numpy as np
from cadlag import StableKernelRegressor
from cadlag.sampling import chains
warnings.simplefilter("ignore")
task = json.loads(sys.argv[1])
chains._BLOCK_SECONDS = 0.005
say = lambda reached, *_: print(min(reached), flush=True)
model = StableKernelRegressor(**task["settings"], n_jobs=2, progress=say)
model.fit(np.array(task["X"]), np.array(task["y"]), checkpoint=task["directory"])
"""


def test_killed_with_two_workers(directory, undisturbed):
    task = {"directory": str(directory), "settings": SETTINGS, "X": X.tolist(), "y": Y.tolist()}
    with subprocess.Popen([sys.executable, "-c", WORKER, json.dumps(task)], stdout=subprocess.PIPE, text=True) as child:
        reached = next(int(line) for line in child.stdout if int(line) > 20)
        child.kill()
    assert reached < SETTINGS["n_warmup"] + SETTINGS["n_draws"]
    assert child.returncode == -9
    same(regressor().fit(X, Y, checkpoint=directory), undisturbed)


# Resumed -------------------------------------------------------------------------------------------------------------


def test_checkpoint_changes_nothing(directory, undisturbed):
    same(regressor().fit(X, Y, checkpoint=str(directory)), undisturbed)
    same(regressor().fit(X, Y, checkpoint=directory), undisturbed)


@pytest.mark.parametrize("sampler", ["plain_nuts", "independence", "tempered"])
def test_every_sampler_resumes(directory, sampler):
    """Stopped before, in and after warm-up."""
    settings = {"sampler": sampler, "n_draws": 8, "n_warmup": 12}
    for limit in (5, 13, 17):
        with pytest.raises(SystemExit):
            regressor(**settings, progress=partial(stop_at, limit, [])).fit(X, Y, checkpoint=directory)
    same(regressor(**settings).fit(X, Y, checkpoint=directory), regressor(**settings).fit(X, Y))


def stop_at(limit, seen, reached, *_):
    """End a run as a crash would, as soon as all chains have reached a limit."""
    seen.append(min(reached))
    if min(reached) >= limit:
        raise SystemExit


def test_more_draws_continue_the_run(directory):
    regressor(n_draws=12).fit(X, Y, checkpoint=directory)
    before = {path: path.read_bytes() for path in block_files(directory)}
    longer = regressor(n_draws=30).fit(X, Y, checkpoint=directory)
    same(longer, regressor(n_draws=30).fit(X, Y))
    assert {path: path.read_bytes() for path in before} == before
    assert len(block_files(directory)) > len(before)


def test_fewer_draws_are_the_first_ones(directory, undisturbed):
    regressor().fit(X, Y, checkpoint=directory)
    before = {path: path.read_bytes() for path in block_files(directory)}
    shorter = regressor(n_draws=11).fit(X, Y, checkpoint=directory)
    same(shorter, regressor(n_draws=11).fit(X, Y))
    assert {path: path.read_bytes() for path in block_files(directory)} == before
    same(shorter.extend(19), undisturbed)


def test_a_run_without_seed_resumes_its_own(directory):
    first = regressor(random_state=None, n_draws=5).fit(X, Y, checkpoint=directory)
    again = regressor(random_state=None, n_draws=5).fit(X, Y, checkpoint=directory)
    same(first, again)
    assert not np.array_equal(
        first.posterior_.positions, regressor(random_state=None, n_draws=5).fit(X, Y).posterior_.positions
    )


def test_resumed_model_extends(directory, undisturbed):
    same(regressor(n_draws=10).fit(X, Y, checkpoint=directory).extend(20), undisturbed)


# Refused -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"alpha": 1.5}, {"depth": 2}, {"order": 0}, {"preset": "prop2"}, {"fit_intercept": False}, {"n_warmup": 41},
        {"n_chains": 3}, {"sampler": "plain_nuts"}, {"standardize": False}, {"noise_prior_on": "sd"},
        {"random_state": 8}, {"noise_variance": 0.1},
    ],
    ids=str,
)  # fmt: skip
def test_other_settings_are_refused(directory, other):
    write_first_files(directory)
    with pytest.raises(ValueError, match="holds a run with other data or settings") as caught:
        regressor(**other).fit(X, Y, checkpoint=directory)
    assert str(directory) in str(caught.value)


@pytest.mark.parametrize("place", [(0, 0), (N - 1, 1)])
def test_other_data_are_refused(directory, place):
    write_first_files(directory)
    changed = X.copy()
    changed[place] = np.nextafter(changed[place], 9.0) + 1e-12
    for inputs, responses in ((changed, Y), (X, Y + 1e-9 * X[:, 1]), (X[1:], Y[1:]), (X[:, ::-1], Y)):
        with pytest.raises(ValueError, match="holds a run with other data or settings"):
            regressor().fit(inputs, responses, checkpoint=directory)


def write_first_files(directory):
    """A run that died early."""
    with pytest.raises(SystemExit):
        regressor(progress=partial(stop_at, 1, [])).fit(X, Y, checkpoint=directory)
    assert len(block_files(directory)) == 2


def test_known_noise_belongs_to_the_run(directory):
    """The same number beside a response in other units is another model."""
    known = regressor(noise_variance=0.1, n_warmup=2, n_draws=2)
    known.fit(X, Y, checkpoint=directory)
    for model, y in ((regressor(noise_variance=0.1, n_warmup=2, n_draws=2), 1024.0 * Y), (regressor(n_warmup=2), Y)):
        with pytest.raises(ValueError, match="other data or settings"):
            model.fit(X, y, checkpoint=directory)
    same(regressor(noise_variance=0.1 * 2.0**20, n_warmup=2, n_draws=2).fit(X, 1024.0 * Y, checkpoint=directory), known)


def test_every_known_noise_variance_counts(directory):
    """Also one in the middle of more than numpy prints, by less than it prints."""
    n = 1002
    x, noise = np.linspace(-1.0, 1.0, n)[:, None], np.ones(n)
    settings = {"alpha": 2.0, "n_draws": 1, "n_warmup": 0, "n_chains": 1}
    regressor(noise_variance=noise, **settings).fit(x, x[:, 0], checkpoint=directory)
    noise[n // 2] += 1e-12
    with pytest.raises(ValueError, match="other data or settings"):
        regressor(noise_variance=noise, **settings).fit(x, x[:, 0], checkpoint=directory)


def test_other_directories_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and is not a checkpoint"):
        regressor().fit(X, Y, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_seed_must_be_one_number(directory):
    for seed in (np.random.SeedSequence(1).spawn(1)[0], np.random.SeedSequence([1, 2])):
        with pytest.raises(ValueError, match="a checkpoint needs random_state to be None or an integer"):
            regressor(random_state=seed).fit(X, Y, checkpoint=directory)


# Damaged -------------------------------------------------------------------------------------------------------------


def test_half_written_files_are_ignored(directory, undisturbed):
    """Left by a kill during a write: of the very first file, and of a block."""
    directory.mkdir()
    (directory / ".run.cadlag.0123456789abcdef.tmp").write_bytes(b"PK\x03\x04")
    write_first_files(directory)
    name = block_files(directory)[0].name
    (directory / f".{name}.0123456789abcdef.tmp").write_bytes(b"PK\x03\x04 half")
    (directory / ".chain-0001-000000008.cadlag.0123456789abcdef.tmp").write_bytes(b"")
    same(regressor().fit(X, Y, checkpoint=directory), undisturbed)


def test_lost_block_is_run_again(directory, undisturbed):
    regressor().fit(X, Y, checkpoint=directory)
    files = [path for path in block_files(directory) if path.name.startswith("chain-0001")]
    assert len(files) > 4
    files[2].unlink()
    files[-1].unlink()
    same(regressor().fit(X, Y, checkpoint=directory), undisturbed)


@pytest.mark.parametrize("what", ["run.cadlag", "chain"])
def test_damaged_file_is_named(directory, what):
    write_first_files(directory)
    path = directory / what if what == "run.cadlag" else block_files(directory)[1]
    content = path.read_bytes()
    for damaged in (content[:-1], content[: len(content) // 2], b"", content[:200] + b"?" + content[201:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="cadlag") as caught:
            regressor().fit(X, Y, checkpoint=directory)
        assert str(path) in str(caught.value)


def test_files_say_what_they_are(directory):
    write_first_files(directory)
    assert set(read_tree(directory / "run.cadlag", "run")) == {"fingerprint", "entropy"}
    first = read_tree(block_files(directory)[0], "block")
    assert first["start"] == 0
    assert len(first["positions"]) == first["chain"]["done"]
    write_tree(directory / "run.cadlag", {"a": 1}, "model")
    with pytest.raises(ValueError, match=r"run\.cadlag"):
        regressor().fit(X, Y, checkpoint=directory)


# Damaged and foreign -------------------------------------------------------------------------------------------------


@pytest.fixture
def finished(directory):
    regressor().fit(X, Y, checkpoint=directory)
    return directory


def spoil(path, kind, **changes):
    """Write a file again with some of its tree replaced, or removed where the new value is None."""
    tree = read_tree(path, kind) | changes
    write_tree(path, {name: value for name, value in tree.items() if value is not None}, kind)


@pytest.mark.parametrize(
    "changes",
    [
        {"seconds": None}, {"chain": {}}, {"chain": None}, {"chain": []}, {"positions": None}, {"positions": 3},
        {"positions": np.zeros((8, 99))}, {"positions": np.zeros((0, 4))}, {"stats": None}, {"stats": []},
        {"stats": {"accept": np.zeros(3)}}, {"stats": {"accept": "high"}}, {"start": 1}, {"start": "0"},
        {"seconds": "long"},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_block_is_named(finished, changes):
    path = block_files(finished)[0]
    spoil(path, "block", **changes)
    with pytest.raises(ValueError, match=r"is no block of this run \(.*\): remove it") as caught:
        regressor().fit(X, Y, checkpoint=finished)
    assert path.name in str(caught.value)


@pytest.mark.parametrize(
    "changes", [{"rng": {}}, {"rng": None}, {"kernel": {}}, {"kernel": {"position": np.zeros(1)}}, {"done": 10**6}]
)
def test_a_chain_that_cannot_go_on_is_damage(finished, changes):
    path = block_files(finished)[0]
    spoil(path, "block", chain=read_tree(path, "block")["chain"] | changes)
    with pytest.raises(ValueError, match="is no block of this run"):
        regressor().fit(X, Y, checkpoint=finished)


def test_without_the_damaged_block_the_run_goes_on_to_the_same_draws(finished, undisturbed):
    path = block_files(finished)[-1]
    spoil(path, "block", seconds=None)
    with pytest.raises(ValueError, match="is no block of this run"):
        regressor().fit(X, Y, checkpoint=finished)
    path.unlink()
    same(regressor().fit(X, Y, checkpoint=finished), undisturbed)


def test_a_state_that_the_sampler_does_not_know_is_the_files_fault(finished):
    path = [path for path in block_files(finished) if "chain-0000" in path.name][-1]
    chain = read_tree(path, "block")["chain"]
    del chain["kernel"]["nuts"]
    spoil(path, "block", chain=chain)
    with pytest.raises(ValueError, match=r"holds chains that cannot go on .*KeyError.*: give another"):
        regressor(n_draws=60).fit(X, Y, checkpoint=finished)


@pytest.mark.parametrize("name", ["chain-x-1.cadlag", "chain-0000.cadlag", "chain-0000-x.cadlag", "chain--1-0.cadlag"])
def test_a_foreign_name_is_a_sentence(finished, name):
    (finished / name).write_bytes(b"")
    with pytest.raises(ValueError, match="is no block of a run by its name: move it"):
        regressor().fit(X, Y, checkpoint=finished)


@pytest.mark.parametrize("changes", [{"fingerprint": None}, {"fingerprint": 3}, {"entropy": None}, {"entropy": "1"}])
def test_a_run_that_does_not_say_whose_it_is_is_refused(finished, changes):
    spoil(finished / "run.cadlag", "run", **changes)
    with pytest.raises(ValueError, match="does not say which run it belongs to: give another"):
        regressor().fit(X, Y, checkpoint=finished)


@pytest.mark.parametrize("seed", [np.random.default_rng(1), np.random.RandomState(1), np.random.SeedSequence(1)])
def test_a_generator_cannot_be_asked_for_the_same_run_again(directory, seed):
    """Its fingerprint was that of no seed at all, so that any other generator resumed the first one's draws."""
    with pytest.raises(ValueError, match="a checkpoint needs random_state to be None or an integer"):
        regressor(random_state=seed).fit(X, Y, checkpoint=directory)


@pytest.mark.parametrize("path", [b"run.d", 5])
def test_a_checkpoint_is_a_path(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError):
        regressor().fit(X, Y, checkpoint=path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_stays_where_it_began_though_the_working_directory_moves(tmp_path, monkeypatch, undisturbed):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    same(regressor(progress=lambda *_: os.chdir(tmp_path / "b")).fit(X, Y, checkpoint="run.d"), undisturbed)
    assert block_files(tmp_path / "a" / "run.d")
    assert list((tmp_path / "b").iterdir()) == []
