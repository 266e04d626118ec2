"""run(model, random_state) -> Draws: ways to infer, by Markov chains, a maximum, an ascent, a first look.

Chains take any transition kernel of :mod:`cadlag.sampling`; the others ask the model, which knows what it maximises
(`maximise`) or climbs (`climb`). Another way to infer is another class here with `run` and `complaint`.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cadlag.posterior import Posterior
from cadlag.sampling.chains import Block, Plan, Store, new_chains, run
from cadlag.sampling.checkpoint import Checkpoint
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.sampling.progress import reporter, tell, warn_caller
from cadlag.sampling.weighing import weigh
from cadlag.settings import SHARED
from cadlag.trust import Trust

Array = NDArray[np.float64]

SEEDLESS = np.random.SeedSequence(0)  # where no chains begin
MOST_WARMUP, MOST_DRAWN = 4, 8  # times what a run begins with
MOST_CHAINS = 48
FEW = 0.15  # share of effective draws below which kernels that can learn have not learned enough


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
    trust
        How far the draws can be trusted, where that has been looked at.
    seed
        That of the chains, from which more of them may begin.
    """

    positions: Array
    stats: dict[str, Array]
    chains: list[Any]
    model: Any = None
    trust: Trust | None = None
    seed: np.random.SeedSequence | None = None


class Reach(NamedTuple):
    """How far chains go: how many of them, iterations dropped, draws kept of each."""

    n_chains: int
    n_dropped: int
    n_kept: int

    @property
    def total(self) -> int:
        """Iterations of each chain."""
        return self.n_dropped + self.n_kept


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
    group
        How many chains meet with each other; None for all.
    judge
        What looks at draws and says how far they can be trusted, given the size of a group.
    """

    kernel: Any
    n_chains: int
    n_warmup: int
    n_draws: int
    n_jobs: int | None = None
    progress: Any = field(default=False, compare=False)
    group: int | None = None
    judge: Callable[[Draws, int], Trust | None] = field(default=lambda draws, group: None, compare=False)

    def run(self, model: Any, random_state: Any, checkpoint: Checkpoint | None = None) -> Draws:
        """Warm up and draw, going on from what a checkpoint holds."""
        reach = Reach(self.n_chains, self.n_warmup, self.n_draws)
        seed, store = as_seed(random_state), Store(self.n_chains)
        if checkpoint is not None:
            seed, store = np.random.SeedSequence(checkpoint.entropy), checkpoint.up_to(reach.total)
        with _blaming(checkpoint.directory if checkpoint is not None and store.reached(0) else None):
            return self._go_on(model, seed, [], reach, store)._replace(seed=seed)

    def extend(self, model: Any, before: Draws, n_draws: int) -> Draws:
        """More draws, going on where the chains stand."""
        reach, store = _as_store(before)
        reach = reach._replace(n_kept=reach.n_kept + n_draws)
        return Chains._go_on(self, model, SEEDLESS, before.chains, reach, store)._replace(seed=before.seed)

    def complaint(self, model: Any, posterior: Posterior) -> str | None:
        """What to warn of, if the chains do not agree."""
        return posterior.complaint()

    def _go_on(
        self, model: Any, seed: np.random.SeedSequence, chains: list[Any], reach: Reach, store: Store,
        draws: Draws | None = None,
    ) -> Draws:  # fmt: skip
        """The draws up to a reach, from chains and new ones where more are wanted; rounds may know some already."""
        draws, finished = self._advance(model, self._enough(seed, chains, reach, store), reach, store)
        if not finished:
            kept = f"interrupted: {draws.positions.shape[1]} draws a chain are kept, extend() adds more"
            warn_caller(kept, InterruptedFitWarning)
        return self._look(draws)

    def _enough(self, seed: np.random.SeedSequence, chains: list[Any], reach: Reach, store: Store) -> list[Any]:
        """The chains, and new ones where more are wanted."""
        store.widen(reach.n_chains)
        return [*chains, *new_chains(seed, reach.n_chains - len(chains), len(chains))]

    def _learning(self, reach: Reach) -> int:
        """Iterations in which kernels learn."""
        return self.n_warmup

    def _look(self, draws: Draws) -> Draws:
        return draws._replace(trust=self.judge(draws, self.group or len(draws.chains)))

    def _advance(self, model: Any, chains: Any, reach: Reach, store: Store) -> tuple[Draws, bool]:
        """The draws up to somewhere, or to where an interruption came; and whether it came to the end."""
        try:
            plan = Plan(self.kernel, self._learning(reach), group=self.group)
            finished = run(model, plan, chains, reach.total, store, self.n_jobs, reporter(self.progress, "sampling"))
        except ArithmeticError as error:
            raise ValueError(f"these data cannot be fitted as they are: {error}") from error
        end = reach.total if finished else _common_end(store, len(chains))
        if end - reach.n_dropped < 1:
            raise KeyboardInterrupt("interrupted before the first draw was kept: there is nothing to return")
        parts = [store.between(c, reach.n_dropped, end) for c in range(len(chains))]
        stats = {name: np.stack([said[name] for _, said in parts]) for name in parts[0][1]}
        ends = [state for c in range(len(chains)) if (state := store.chain_at(c, end))]
        return Draws(np.stack([positions for positions, _ in parts]), stats, ends), finished


@dataclass(frozen=True)
class Rounds(Chains):
    """Chains in rounds, until their predictions are precise enough and no longer drift.

    A round is a reach. If the chains' parameters agree, or nearly, more draws are kept of each; if they do not and
    predictions drift, all of them go on and twice as much is dropped; if they do not drift, more chains begin. Where
    kernels learn from the draws and few draws are effective, twice as much is dropped likewise, and they learn from
    what is. What comes next depends on counts and draws, never on the clock, which only ends a run.

    Attributes
    ----------
    precision
        Standard error of the predictions that is wanted, in predictive standard deviations.
    free
        Which of n_chains, n_draws and n_warmup may grow.
    max_seconds
        No round begins later than this.
    relearns
        Whether kernels go on learning for as long as draws are dropped.
    """

    precision: float = 0.2
    free: frozenset[str] = frozenset(("n_chains", "n_draws", "n_warmup"))
    max_seconds: float | None = None
    relearns: bool = False

    def sharpen(self, model: Any, before: Draws) -> Draws:
        """More rounds, going on where the chains stand."""
        assert before.seed is not None
        reach, store = _as_store(before)
        found = self._go_on(model, before.seed, before.chains, reach, store, before if before.trust else None)
        return found._replace(seed=before.seed)

    def _go_on(
        self, model: Any, seed: np.random.SeedSequence, chains: list[Any], reach: Reach, store: Store,
        draws: Draws | None = None,
    ) -> Draws:  # fmt: skip
        started, report = time.monotonic(), reporter(self.progress, "sampling")
        draws = draws or super()._go_on(model, seed, chains, reach, store)
        while draws.positions.shape[1] == reach.n_kept:  # else it has been interrupted
            following = self._next(reach, draws.trust)
            if following is None or (self.max_seconds is not None and time.monotonic() - started >= self.max_seconds):
                break
            tell(report, f"{_state(draws.trust)}; {_change(reach, following)}")
            if self.relearns and following.n_dropped > reach.n_dropped:
                store.forget(reach.n_dropped)  # as a fit that has been saved does
            try:
                more = self._enough(seed, draws.chains, following, store)
                found, finished = self._advance(model, more, following, store)
            except KeyboardInterrupt:
                finished = False
            if not finished:
                warn_caller("interrupted: the draws of the last whole round are kept", InterruptedFitWarning)
                break
            reach, draws = following, self._look(found)
        return draws

    def _learning(self, reach: Reach) -> int:
        return reach.n_dropped if self.relearns else self.n_warmup

    def _longer(self, reach: Reach) -> int:
        """Iterations to drop where more are; beyond all there are where kernels are to learn from those there are."""
        return max(2 * reach.n_dropped, math.ceil(1.25 * reach.total) if self.relearns else 0)

    def _next(self, reach: Reach, trust: Trust | None) -> Reach | None:
        """What the next round reaches, or None where nothing more is wanted or possible."""
        if trust is None:
            return None
        precise = trust.reproducibility <= self.precision
        if trust.agree and trust.enough and precise:
            return None
        n_chains, _, n_kept = reach
        longer = reach._replace(n_dropped=self._longer(reach))
        more = reach._replace(n_kept=math.ceil(trust.missing * n_kept))
        wider = reach._replace(n_chains=n_chains + 4 * math.ceil(n_chains / 8))
        mixing = trust.agree or (trust.mixing and (precise or math.isnan(trust.reproducibility)))
        may_drop = "n_warmup" in self.free and longer.n_dropped <= MOST_WARMUP * self.n_warmup
        if self.relearns and may_drop and not trust.enough and trust.n_effective < FEW * n_chains * n_kept:
            return longer
        if mixing and "n_draws" in self.free and more.n_kept <= MOST_DRAWN * self.n_draws:
            return more
        if trust.drifting and not (trust.agree and trust.enough):
            return longer if may_drop else None
        if precise or "n_chains" not in self.free or wider.n_chains > MOST_CHAINS:
            return None
        return wider


def _state(trust: Trust | None) -> str:
    """What a round has found, in a few words."""
    if trust is None or math.isnan(trust.reproducibility):
        return "precision unknown"
    return f"precision so far {trust.reproducibility:.2g}{', still drifting' if trust.drifting else ''}"


def _change(reach: Reach, following: Reach) -> str:
    """What the next round adds."""
    if following.n_chains > reach.n_chains:
        return f"{following.n_chains - reach.n_chains} more chains"
    if following.n_dropped > reach.n_dropped:
        return f"longer warm-up, {following.n_dropped} iterations"
    return f"more draws, {following.n_kept} a chain"


def _as_store(before: Draws) -> tuple[Reach, Store]:
    """How far chains have come, and what is known of them as a store."""
    n_chains, n_kept, _ = before.positions.shape
    done, store = before.chains[0]["done"], Store(n_chains)
    for c, chain in enumerate(before.chains):
        stats = {name: values[c] for name, values in before.stats.items()}
        store.add(c, Block(done - n_kept, before.positions[c], stats, chain, 0.0))
    return Reach(n_chains, done - n_kept, n_kept), store


@dataclass(frozen=True)
class Weighing:
    """Draws about a few modes, taken by weights that say how well a mixture of t laws there stands for the posterior.

    The mixture is fitted again to what has been weighed, a few times; nothing is sampled until it is right, so that
    this is a first look and says of itself that it is one.
    """

    n_draws: int

    def run(self, model: Any, random_state: Any, checkpoint: Checkpoint | None = None) -> Draws:
        """Climb, weigh and take draws."""
        rng = np.random.default_rng(as_seed(random_state))
        with threadpool_limits(1, user_api="blas"):
            try:
                found = weigh(rng, model, self.n_draws)
            except ArithmeticError as error:
                raise ValueError(f"these data cannot be fitted as they are: {error}") from error
        stats = {name: values[None] for name, values in found.stats.items()}
        return Draws(found.positions[None], stats, [])

    def complaint(self, model: Any, posterior: Posterior) -> str | None:
        """Nothing: the verdict says what it is."""
        return None


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


def seed_tree(seed: np.random.SeedSequence) -> dict[str, Any]:
    """A seed as a file can hold it."""
    return {"entropy": seed.entropy, "spawn_key": [int(k) for k in seed.spawn_key]}


def seed_from(tree: Any) -> np.random.SeedSequence:
    """The seed that a file holds."""
    try:
        return np.random.SeedSequence(tree["entropy"], spawn_key=tuple(tree["spawn_key"]))
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ValueError("its seed is damaged") from None


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


def _common_end(store: Store, n_chains: int) -> int:
    """The last iteration at which every chain has the end of a block."""
    ends = [{block.end for block in blocks} for blocks in store.blocks[:n_chains]]
    return max(set.intersection(*ends), default=0)
