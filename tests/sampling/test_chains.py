"""The same bits whatever the workers, the blocks and the interruptions."""

import os
import signal
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling import SAMPLERS, chains
from cadlag.sampling.chains import Plan, Store, advance, new_chains, run

N_CHAINS, N_WARMUP, TOTAL = 2, 80, 100
BEFORE_MEETING = 1  # from the first rendezvous on a chain knows of the others
OPTIONS: dict[str, dict[str, Any]] = {"tempered": {"levels": (1.0, 0.3)}}


def model(n: int = 8, **options: Any) -> KernelProcess:
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(n), rng.uniform(-2.0, 2.0, n)])
    return KernelProcess(X, np.where(X[:, 1] > 0.3, 2.0, 0.0) + 0.3 * rng.standard_normal(n), **options)


def plan(sampler: str) -> Plan:
    return Plan(sampler, N_WARMUP, OPTIONS.get(sampler, {}))


def start() -> list[dict[str, Any]]:
    return new_chains(np.random.SeedSequence(17), N_CHAINS)


@cache
def whole_run(sampler: str, **options: Any) -> Store:
    """A run without incident, in few blocks."""
    return straight(sampler, **options)


def straight(sampler: str, total: int = TOTAL, n_jobs: int | None = None, **options: Any) -> Store:
    store = Store(N_CHAINS)
    assert run(model(**options), plan(sampler), start(), total, store, n_jobs)
    return store


def assert_same(first: Store, second: Store, total: int = TOTAL) -> None:
    """Positions, statistics and the chains' states after them, bit for bit."""
    for c in range(N_CHAINS):
        assert first.reached(c) == second.reached(c) == total
        np.testing.assert_array_equal(first.history(c, total), second.history(c, total))
        for name in first.blocks[c][0].stats:
            a, b = (np.concatenate([block.stats[name] for block in s.blocks[c]]) for s in (first, second))
            np.testing.assert_array_equal(a, b, err_msg=name)
        assert_same_tree(first.blocks[c][-1].chain, second.blocks[c][-1].chain)


def assert_same_tree(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same_tree(a[key], b[key])
    elif isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            assert_same_tree(x, y)
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_workers_do_not_matter(sampler: str) -> None:
    assert_same(whole_run(sampler), straight(sampler, n_jobs=2))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_blocks_of_one_iteration(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_run(sampler)
    assert len(whole.blocks[0]) < 12
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 1)
    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 0.0)
    pieces = straight(sampler)
    assert len(pieces.blocks[0]) == TOTAL
    assert_same(whole, pieces)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("options", [{"preset": "published_code", "depth": 2, "alpha": 1.5}, {"order": 0}])
def test_block_length_does_not_matter(sampler: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Block lengths follow the clock, so both ends are pinned: compiling in the first block must not shorten the rest.
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 10_000)
    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 1e9)
    whole = straight(sampler, **options)
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 3)
    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 1e-9)
    pieces = straight(sampler, **options)
    assert len(pieces.blocks[0]) > len(whole.blocks[0])
    assert_same(whole, pieces)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("pause", [1, 60, N_WARMUP])
def test_a_run_can_be_continued(sampler: str, pause: int) -> None:
    store = Store(N_CHAINS)
    assert run(model(), plan(sampler), start(), pause, store)
    assert [store.reached(c) for c in range(N_CHAINS)] == [pause] * N_CHAINS
    assert run(model(), plan(sampler), start(), TOTAL, store)
    assert_same(whole_run(sampler), store)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_finished_warmup_can_be_left_behind(sampler: str) -> None:
    """Past the last rendezvous the chains alone are enough, without what they did before."""
    first, second, whole = Store(N_CHAINS), Store(N_CHAINS), whole_run(sampler)
    assert run(model(), plan(sampler), start(), N_WARMUP + 5, first)
    assert run(model(), plan(sampler), [blocks[-1].chain for blocks in first.blocks], TOTAL, second)
    for c in range(N_CHAINS):
        assert second.blocks[c][0].start == N_WARMUP + 5
        joined = np.concatenate([first.history(c, TOTAL), second.history(c, TOTAL)])
        np.testing.assert_array_equal(joined, whole.history(c, TOTAL))
        assert_same_tree(second.blocks[c][-1].chain, whole.blocks[c][-1].chain)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("calls", [0, 1, 4, 5])
def test_an_interrupted_run_keeps_what_is_finished(sampler: str, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, store, count = whole_run(sampler), Store(N_CHAINS), 0
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 4)

    def interrupted(*arguments: Any) -> chains.Block:
        nonlocal count
        count += 1
        if count > calls:
            raise KeyboardInterrupt
        return advance(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(chains, "advance", interrupted)
        assert run(model(), plan(sampler), start(), TOTAL, store) is False
    rounds = calls // N_CHAINS
    assert [len(blocks) for blocks in store.blocks] == [rounds] * N_CHAINS
    for c in range(N_CHAINS):
        if rounds:
            np.testing.assert_array_equal(store.history(c, TOTAL), whole.history(c, store.reached(c)))
    assert run(model(), plan(sampler), start(), TOTAL, store)
    assert_same(whole, store)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_chains_differ_and_do_not_depend_on_their_number(sampler: str) -> None:
    store = straight(sampler, BEFORE_MEETING)
    positions = [store.history(c, BEFORE_MEETING) for c in range(N_CHAINS)]
    assert all(np.any(a != b) for a, b in pairwise(positions))
    assert len({tuple(p[-1]) for p in positions}) == N_CHAINS
    more = Store(N_CHAINS + 1)
    assert run(model(), plan(sampler), new_chains(np.random.SeedSequence(17), N_CHAINS + 1), BEFORE_MEETING, more)
    for c in range(N_CHAINS):
        np.testing.assert_array_equal(more.history(c, BEFORE_MEETING), positions[c])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_blocks_join_without_gaps(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 3)
    store = straight(sampler, 30)
    for blocks in store.blocks:
        assert blocks[0].start == 0
        assert all(a.end == b.start and a.chain["done"] == a.end for a, b in pairwise(blocks))
        for block in blocks:
            assert all(len(values) == len(block.positions) for values in block.stats.values())
            np.testing.assert_array_equal(block.positions[-1], block.chain["kernel"]["position"])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_reported_likelihood_is_the_likelihood(sampler: str) -> None:
    store, target = whole_run(sampler), model()
    for blocks in store.blocks:
        for block in blocks:
            expected = [target.log_likelihood(x) for x in block.positions]
            np.testing.assert_allclose(block.stats["log_likelihood"], expected, atol=1e-9)


def test_divergences_before_the_end_of_warm_up_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every iteration diverges; those told are of the iterations after warm-up, of both chains, block by block."""

    def diverging(target: Any, plan: Plan, chain: dict[str, Any], n: int) -> chains.Block:
        block = advance(target, plan, chain, n)
        return replace(block, stats={**block.stats, "diverging": np.ones(n)})

    monkeypatch.setattr(chains, "advance", diverging)
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 7)
    monkeypatch.setattr(chains, "_BLOCK_SECONDS", 1e9)
    told: list[tuple[int, int]] = []
    few = Plan("independence", 10)
    run(model(), few, start(), 50, Store(N_CHAINS), progress=lambda reached, _, n, __: told.append((reached[0], n)))
    assert [reached for reached, _ in told] == [7, 35, 50]
    assert [n for _, n in told] == [0, 2 * 25, 2 * 40]


def test_progress_is_told_of_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_FIRST_BLOCK", 2)
    calls: list[tuple[list[int], int]] = []
    store = Store(N_CHAINS)

    def note(reached: Any, total: int, divergences: int, seconds: float) -> None:
        calls.append((list(reached), total))

    assert run(model(), plan("independence"), start(), 20, store, progress=note)
    assert len(calls) == len(store.blocks[0]) > 1
    assert calls[-1] == ([20] * N_CHAINS, 20)
    assert all(a[0] <= b[0] for a, b in pairwise(calls))


class Deadly(KernelProcess):
    """Its first prior density in another process ends that process, as a want of memory does."""

    mark, boss = "", 0

    def log_prior(self, position: Any) -> float:
        if os.getpid() != self.boss and not os.path.exists(self.mark):
            with open(self.mark, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return super().log_prior(position)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "mark": self.mark, "boss": self.boss}


def test_a_worker_that_is_killed_costs_no_draw(tmp_path):
    plain = model()
    deadly, store = Deadly(plain.X, plain.y), Store(N_CHAINS)
    deadly.mark, deadly.boss = str(tmp_path / "killed"), os.getpid()
    with pytest.warns(UserWarning, match="a worker ended, .* goes on with 1 instead of 2"):
        assert run(deadly, plan("plain_nuts"), start(), TOTAL, store, n_jobs=2)
    assert (tmp_path / "killed").exists()
    assert_same(store, whole_run("plain_nuts"))


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ValueError("a bug")])
def test_an_interruption_inside_compiled_code_is_one(cause):
    """Python reports it as a SystemError; one of any other cause is a bug and stays one."""

    class Interrupted(KernelProcess):
        def log_prior(self, position: Any) -> float:
            raise SystemError("returned a result with an exception set") from cause

    plain = model()
    arguments = Interrupted(plain.X, plain.y), plan("independence"), start(), TOTAL, Store(N_CHAINS)
    if isinstance(cause, KeyboardInterrupt):
        assert not run(*arguments)
    else:
        with pytest.raises(SystemError):
            run(*arguments)
