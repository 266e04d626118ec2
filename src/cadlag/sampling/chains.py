"""advance(model, plan, chain, n) -> Block: the only loop over draws, in blocks that are pure and picklable.

A chain between two blocks is a plain tree: random generator, kernel state, iterations done. Every block rebuilds its
caches, so a run that is interrupted, extended, resumed from a checkpoint, or spread over other workers gives the same
bits. Chains are seeded by spawning, never by worker; each block uses one BLAS thread.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from cadlag.sampling import SAMPLERS
from cadlag.sampling.contract import Array, State

_BLOCK_SECONDS = 2.0
_FIRST_BLOCK = 8


@dataclass(frozen=True)
class Block:
    """Consecutive iterations of one chain.

    Attributes
    ----------
    start
        Iterations before the block.
    positions
        (n, d).
    stats
        What the kernel said of each iteration, by name, (n,) each.
    chain
        The chain after the block.
    seconds
        Time spent.
    """

    start: int
    positions: Array
    stats: dict[str, Array]
    chain: State
    seconds: float

    @property
    def end(self) -> int:
        """Iterations after the block."""
        return self.start + len(self.positions)


@dataclass(frozen=True)
class Plan:
    """Which sampler to run, and for how long it adapts.

    Attributes
    ----------
    sampler
        A name in :data:`~cadlag.sampling.SAMPLERS`, or a maker of kernels of the model's own.
    n_warmup
        Iterations before the first kept draw.
    options
        Keyword arguments of the kernel.
    group
        How many chains meet with each other, in the order of their numbers; None for all.
    """

    sampler: str | Callable[..., Any]
    n_warmup: int
    options: dict[str, Any] = field(default_factory=dict)
    group: int | None = None

    def kernel(self, model: Any) -> Any:
        """The kernel for a model."""
        make = SAMPLERS[self.sampler] if isinstance(self.sampler, str) else self.sampler
        return make(model, self.n_warmup, **self.options)


def new_chains(seed: np.random.SeedSequence, n_chains: int, first: int = 0) -> list[State]:
    """Chains that have not started, from a number on, each with a generator that depends on its number alone."""
    keys = [(*seed.spawn_key, number) for number in range(first, first + n_chains)]
    seeds = [np.random.SeedSequence(seed.entropy, spawn_key=key) for key in keys]
    return [{"rng": np.random.PCG64(s).state, "kernel": None, "done": 0} for s in seeds]


def checked_chain(tree: Any, dimension: int) -> State:
    """A chain that a file holds, if it is one that can go on: for the compiled code looks at no bounds."""
    try:
        np.random.PCG64().state = tree["rng"]
        fits = type(tree["done"]) is int and tree["done"] >= 0
        fits = fits and (tree["kernel"] is None or tree["kernel"]["position"].shape == (dimension,))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        fits = False
    if not fits:
        raise ValueError("a chain in it is damaged")
    return tree


def advance(model: Any, plan: Plan, chain: State, n: int) -> Block:
    """Run one chain for n iterations."""
    started = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):
        bits = np.random.PCG64()
        bits.state = chain["rng"]
        rng = np.random.Generator(bits)
        kernel = plan.kernel(model)
        state = kernel.init(rng) if chain["kernel"] is None else chain["kernel"]
        positions, infos = np.empty((n, model.dimension)), []
        for i in range(n):
            state, info = kernel.step(rng, state, model.exact_level)
            positions[i] = state["position"]
            infos.append({**info, "log_likelihood": info["log_target"] - model.log_prior(state["position"])})
    stats = {name: np.array([info[name] for info in infos]) for name in infos[0]}
    after = {"rng": bits.state, "kernel": state, "done": chain["done"] + n}
    return Block(chain["done"], positions, stats, after, time.perf_counter() - started)


class Store:
    """Keeps the blocks of a run in memory; :class:`~cadlag.sampling.checkpoint.Checkpoint` also writes them down."""

    def __init__(self, n_chains: int) -> None:
        self.blocks: list[list[Block]] = [[] for _ in range(n_chains)]

    def add(self, chain: int, block: Block) -> None:
        """Keep one more block of a chain."""
        self.blocks[chain].append(block)

    def widen(self, n_chains: int) -> None:
        """Room for more chains."""
        self.blocks += [[] for _ in range(n_chains - len(self.blocks))]

    def reached(self, chain: int) -> int:
        """Iterations of a chain that are in store."""
        return self.blocks[chain][-1].end if self.blocks[chain] else 0

    def history(self, chain: int, end: int) -> Array:
        """Positions of a chain up to an iteration, as far as they are remembered."""
        blocks = self.blocks[chain]
        return np.concatenate([block.positions for block in blocks])[: end - blocks[0].start]

    def forget(self, start: int) -> None:
        """Remember nothing before an iteration."""
        self.blocks = [[_after(block, start) for block in blocks if block.end > start] for blocks in self.blocks]

    def between(self, chain: int, start: int, end: int) -> tuple[Array, dict[str, Array]]:
        """Positions of a chain after some iterations, up to others, and what was said of each."""
        blocks = [block for block in self.blocks[chain] if block.end > start and block.start < end]
        rows = slice(start - blocks[0].start, end - blocks[0].start)
        stats = {name: np.concatenate([block.stats[name] for block in blocks])[rows] for name in blocks[0].stats}
        return np.concatenate([block.positions for block in blocks])[rows], stats

    def chain_at(self, chain: int, end: int) -> State | None:
        """The chain as it stood after an iteration at which a block ended."""
        return next((block.chain for block in self.blocks[chain] if block.end == end), None)


def _after(block: Block, start: int) -> Block:
    """What of a block comes after an iteration."""
    n = max(start - block.start, 0)
    stats = {name: values[n:] for name, values in block.stats.items()}
    return replace(block, start=block.start + n, positions=block.positions[n:], stats=stats)


ProgressCallback = Callable[[Sequence[int], int, int, float], None]


def run(
    model: Any, plan: Plan, chains: Sequence[State], total: int, store: Store, n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> bool:  # fmt: skip
    """Bring every chain to `total` iterations."""
    kernel = plan.kernel(model)
    ends = sorted({e for e in kernel.rendezvous if e < total} | {total})
    starts = list(chains)
    clock = _Clock(progress, total, plan.n_warmup)
    n_workers = min(effective_n_jobs(n_jobs or 1), len(starts))
    while True:
        try:
            with Parallel(n_jobs=n_workers) as parallel:
                for end in ends:
                    if all(start["done"] >= end for start in starts):
                        continue
                    _reach(model, plan, starts, end, store, parallel, clock)
                    starts = _gather(kernel, plan.group or len(starts), starts, end, store)
        except KeyboardInterrupt:
            return False
        except SystemError as error:
            # Ctrl-C inside the entry of a compiled function, as Python reports it.
            if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
                raise
            return False
        except BrokenProcessPool:
            if n_workers == 1:
                raise
            n_workers = _fewer(n_workers)
        else:
            return True


def _fewer(n_workers: int) -> int:
    """Half as many workers after one was killed: blocks are pure, those in flight are run again to the same bits."""
    fewer = max(1, n_workers // 2)
    warnings.warn(
        f"a worker ended, perhaps for want of memory: the run goes on with {fewer} instead of {n_workers}",
        UserWarning, stacklevel=5,
    )  # fmt: skip
    return fewer


def _gather(kernel: Any, group: int, starts: Sequence[State], end: int, store: Store) -> list[State]:
    """The chains at `end`, after they have met there in their groups if that is a rendezvous."""
    chains: list[State] = []
    for first in range(0, len(starts), group):
        members = range(first, min(first + group, len(starts)))
        if all(starts[c]["done"] >= end for c in members):  # they were there before
            chains += [starts[c] for c in members]
            continue
        reached = [state for c in members if (state := store.chain_at(c, end)) is not None]
        if end in kernel.rendezvous:
            pooled = kernel.pool([chain["kernel"] for chain in reached], [store.history(c, end) for c in members])
            reached = [{**chain, "kernel": state} for chain, state in zip(reached, pooled)]
        chains += reached
    return chains


def _reach(
    model: Any, plan: Plan, starts: Sequence[State], end: int, store: Store, parallel: Any, clock: "_Clock"
) -> None:
    """Rounds of one block a chain until all have reached `end`."""
    size = clock.size
    while True:
        tasks = []
        for c, start in enumerate(starts):
            reached = max(store.reached(c), start["done"])
            if reached < end:
                chain = start if reached == start["done"] else store.blocks[c][-1].chain
                tasks.append((c, chain, min(size, end - reached)))
        if not tasks:
            return
        blocks = parallel(delayed(advance)(model, plan, chain, n) for _, chain, n in tasks)
        for (c, _, _), block in zip(tasks, blocks):
            store.add(c, block)
        size = clock.tick(blocks, [max(store.reached(c), s["done"]) for c, s in enumerate(starts)])


class _Clock:
    """Chooses block lengths of about two seconds and reports progress."""

    def __init__(self, progress: ProgressCallback | None, total: int, n_warmup: int) -> None:
        self.progress, self.total, self.n_warmup, self.size = progress, total, n_warmup, _FIRST_BLOCK
        self.started, self.divergences = time.perf_counter(), 0

    def tick(self, blocks: Sequence[Block], reached: Sequence[int]) -> int:
        rate = max(block.seconds / len(block.positions) for block in blocks)
        self.size = int(np.clip(_BLOCK_SECONDS / max(rate, 1e-9), 1, 4 * self.size))
        self.divergences += sum(_divergences(block, self.n_warmup) for block in blocks)
        if self.progress is not None:
            self.progress(reached, self.total, self.divergences, time.perf_counter() - self.started)
        return self.size


def _divergences(block: Block, n_warmup: int) -> int:
    """Divergent iterations of a block after warm-up; those before are the price of finding a step size."""
    return int(np.sum(block.stats.get("diverging", np.zeros(0))[max(n_warmup - block.start, 0) :]))
