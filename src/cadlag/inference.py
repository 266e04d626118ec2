"""run(model, random_state) -> Draws: three ways to infer, by Markov chains, by a maximum, by an ascent.

Chains take any transition kernel of :mod:`cadlag.sampling`; the other two ask the model, which knows what it maximises
(`maximise`) or climbs (`climb`). Another way to infer is another class here with `run` and `complaint`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cadlag.posterior import Posterior
from cadlag.sampling.chains import Plan, Store, new_chains, run
from cadlag.sampling.checkpoint import Checkpoint
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.sampling.progress import reporter, warn_caller
from cadlag.settings import SHARED

Array = NDArray[np.float64]


class Draws(NamedTuple):
    """Positions and statistics that a way to infer has found, and chains to go on from.

    Attributes
    ----------
    positions
        Of the draws, (chains, draws, d).
    stats
        What was said of each draw, (chains, draws), by name.
    chains
        Where each chain stands, to go on from.
    model
        The model as it has learned, where learning changes it.
    """

    positions: Array
    stats: dict[str, Array]
    chains: list[Any]
    model: Any = None


@dataclass(frozen=True)
class Chains:
    """Markov chains beside each other: warm-up, then draws that are kept.

    Attributes
    ----------
    kernel
        A sampler's name, or a maker of transition kernels.
    n_chains
        How many chains.
    n_warmup
        Iterations that adapt.
    n_draws
        Draws kept of each.
    n_jobs
        Workers.
    progress
        Whether, or to whom, to report.
    """

    kernel: Any
    n_chains: int
    n_warmup: int
    n_draws: int
    n_jobs: int | None = None
    progress: Any = field(default=False, compare=False)

    def run(self, model: Any, random_state: Any, checkpoint: Checkpoint | None = None) -> Draws:
        """Warm up and draw, going on from what a checkpoint holds."""
        total = self.n_warmup + self.n_draws
        seed, store = as_seed(random_state), Store(self.n_chains)
        if checkpoint is not None:
            seed, store = np.random.SeedSequence(checkpoint.entropy), checkpoint.up_to(total)
        with _blaming(checkpoint.directory if checkpoint is not None and store.reached(0) else None):
            return self._advance(model, new_chains(seed, self.n_chains), total, store, self.n_warmup)

    def extend(self, model: Any, before: Draws, n_draws: int) -> Draws:
        """More draws, going on where the chains stand."""
        done = before.chains[0]["done"]
        found = self._advance(model, before.chains, done + n_draws, Store(len(before.chains)), done)
        positions = np.concatenate([before.positions, found.positions], axis=1)
        stats = {name: np.concatenate([before.stats[name], found.stats[name]], axis=1) for name in found.stats}
        return Draws(positions, stats, found.chains)

    def complaint(self, model: Any, posterior: Posterior) -> str | None:
        """What to warn of, if the chains do not agree."""
        return posterior.complaint()

    def _advance(self, model: Any, chains: Any, total: int, store: Store, keep_from: int) -> Draws:
        try:
            plan = Plan(self.kernel, self.n_warmup)
            finished = run(model, plan, chains, total, store, self.n_jobs, reporter(self.progress, "sampling"))
        except ArithmeticError as error:
            raise ValueError(f"these data cannot be fitted as they are: {error}") from error
        end = total if finished else _common_end(store)
        if end - keep_from < 1:
            raise KeyboardInterrupt("interrupted before the first draw was kept: there is nothing to return")
        if not finished:
            kept = f"interrupted: {end - keep_from} draws a chain are kept, extend() adds more"
            warn_caller(kept, InterruptedFitWarning)
        skip = keep_from - store.blocks[0][0].start
        positions = np.stack([store.history(c, end - store.blocks[c][0].start)[skip:] for c in range(len(chains))])
        stats = {name: _stat(store, name, keep_from, end) for name in store.blocks[0][0].stats}
        return Draws(positions, stats, [state for c in range(len(chains)) if (state := store.chain_at(c, end))])


@dataclass(frozen=True)
class Maximum:
    """The position at which the model's `maximise` ends, as one draw of one chain."""

    def run(self, model: Any, random_state: Any, checkpoint: Checkpoint | None = None) -> Draws:
        """Search for it by the model's `maximise`."""
        with threadpool_limits(1, user_api="blas"):
            position, said = model.maximise(as_generator(random_state))
        return Draws(position[None, None], {name: np.array([[value]]) for name, value in said.items()}, [])

    def complaint(self, model: Any, posterior: Posterior) -> str | None:
        """What to warn of, if the search did not end well."""
        if posterior.stats["converged"][0, 0]:
            return None
        return (
            "The search for the largest marginal likelihood did not converge: the fit may be poor; standardize=True "
            "and more rows help."
        )


@dataclass(frozen=True)
class Ascent:
    """Independent draws from an approximation that has climbed a bound of the evidence."""

    n_draws: int
    progress: Any = field(default=False, compare=False)

    def run(self, model: Any, random_state: Any, checkpoint: Checkpoint | None = None) -> Draws:
        """Climb by the model's `climb`, which returns the model as it has learned, and draw."""
        rng = np.random.default_rng(as_seed(random_state))
        with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
            learned = model.climb(rng, reporter(self.progress, "climbing"))
            positions = learned.draw(rng, self.n_draws)
        learned = replace(learned, seed=int(rng.integers(2**63)))
        return Draws(positions[None], learned.said_of(positions), [], learned)

    def complaint(self, model: Any, posterior: Posterior) -> str | None:
        """What to warn of, if the bound still rises."""
        return model.complaint()


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn takes as random_state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(as_seed(random_state))


def as_seed(random_state: Any) -> np.random.SeedSequence:
    """A seed from whatever scikit-learn takes as random_state; fresh entropy for None."""
    SHARED["random_state"].require("random_state", random_state)
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.SeedSequence):
        # A copy: spawning from the caller's own would make the next fit another one.
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    return np.random.SeedSequence(int(random_state))


@contextmanager
def _blaming(checkpoint: str | PathLike[str] | None) -> Iterator[None]:
    """Say of chains that came from files and cannot go on that the files are to blame."""
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        if checkpoint is None:
            raise
        raise ValueError(
            f"{checkpoint} holds chains that cannot go on ({type(error).__name__}: {error}): give another checkpoint "
            "directory, or remove this one"
        ) from error


def _common_end(store: Store) -> int:
    """The last iteration at which every chain has the end of a block."""
    ends = [{block.end for block in blocks} for blocks in store.blocks]
    return max(set.intersection(*ends), default=0)


def _stat(store: Store, name: str, start: int, end: int) -> Array:
    rows = []
    for blocks in store.blocks:
        offset = blocks[0].start
        rows.append(np.concatenate([block.stats[name] for block in blocks])[start - offset : end - offset])
    return np.stack(rows)
