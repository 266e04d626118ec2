"""Chains run one after the other on one core, what they cost, and how many independent draws they are worth.

An effective sample size below 5 says only that the chains do not agree. It counts as nothing for the sampler whose
merit is claimed and as 5 for the one it is compared with, so that the ratio is a lower bound (">="); where both are
below 5 there is no ratio.
"""

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

from benchmarks.data import jump
from benchmarks.report import Figure, summarise
from benchmarks.timing import alternate, seconds_of
from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling.chains import Plan, advance, new_chains

MEASURABLE = 5.0
N_CHAINS = 4


class Counted:
    """A kernel process that counts its evaluations."""

    def __init__(self, model: KernelProcess) -> None:
        self.model, self.n_values, self.n_gradients = model, 0, 0
        self.dimension, self.exact_level = model.dimension, model.exact_level
        self.log_prior, self.sample_prior = model.log_prior, model.sample_prior

    def log_target(self, position: np.ndarray, level: float) -> float:
        """Count, and pass on."""
        self.n_values += 1
        return self.model.log_target(position, level)

    def log_likelihood_at(self, position: np.ndarray, level: float) -> float:
        """Count, and pass on."""
        self.n_values += 1
        return self.model.log_likelihood_at(position, level)

    def log_target_gradient(self, position: np.ndarray, level: float) -> tuple[float, np.ndarray]:
        """Count, and pass on."""
        self.n_gradients += 1
        return self.model.log_target_gradient(position, level)


@dataclass
class Run:
    """Draws after warm-up (chains, draws, dimension), and what everything took: CPU seconds, and wall clock."""

    positions: np.ndarray
    log_likelihood: np.ndarray
    warmup_seconds: float
    draw_seconds: float
    wall_seconds: float
    n_values: int = 0
    n_gradients: int = 0
    stats: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """CPU seconds, warm-up included."""
        return self.warmup_seconds + self.draw_seconds


def prepare(samplers: Sequence[str], **options: Any) -> None:
    """Run every sampler on a dozen rows, so that nothing is compiled or read from disk on the clock."""
    X, y = jump(0)
    model = KernelProcess(X[::4], y[::4], **options)
    for name in samplers:
        sample(model, Plan(name, 40), 5, 0, n_chains=2)


def sample(model: KernelProcess, plan: Plan, n_draws: int, seed: int, n_chains: int = N_CHAINS) -> Run:
    """Run chains serially, letting them meet where their kernel wants to; meetings are on the clock."""
    target = Counted(model)
    kernel = plan.kernel(target)
    chains = new_chains(np.random.SeedSequence(seed), n_chains)
    total = plan.n_warmup + n_draws
    blocks: list[list] = [[] for _ in chains]
    began = time.perf_counter()
    started = warm = time.process_time()
    for end in sorted({*kernel.rendezvous, plan.n_warmup, total}):
        for c, chain in enumerate(chains):
            blocks[c].append(advance(target, plan, chain, end - chain["done"]))
        chains = [own[-1].chain for own in blocks]
        if end in kernel.rendezvous:
            history = [np.concatenate([block.positions for block in own]) for own in blocks]
            pooled = kernel.pool([chain["kernel"] for chain in chains], history)
            chains = [{**chain, "kernel": state} for chain, state in zip(chains, pooled)]
        warm = time.process_time() if end == plan.n_warmup else warm
    finished, wall = time.process_time(), time.perf_counter() - began
    last = [own[-1] for own in blocks]
    stats = {name: float(np.mean([block.stats[name] for block in last])) for name in ("diverging", "n_gradients")}
    return Run(
        np.stack([block.positions for block in last]), np.stack([block.stats["log_likelihood"] for block in last]),
        warm - started, finished - warm, wall, target.n_values, target.n_gradients, stats,
    )  # fmt: skip


def identified(model: KernelProcess, run: Run) -> dict[str, np.ndarray]:
    """What the data know of: log likelihood, noise, scales, where c_1 counts only in its products with the s_j."""
    p, layers = model.n_inputs, model.random_layers
    inputs = run.positions[:, :, :p]
    named = {"log likelihood": run.log_likelihood, "log noise": run.positions[:, :, -1]}
    if 1 in layers:
        inputs = inputs + run.positions[:, :, p : p + 1]
    named |= {f"log c{k}": run.positions[:, :, p + i] for i, k in enumerate(layers) if k > 1}
    return named | {f"log {'c1 ' if 1 in layers else ''}s{j + 1}": inputs[:, :, j] for j in range(p)}


def coordinates(run: Run) -> dict[str, np.ndarray]:
    """Every coordinate as it was sampled."""
    return {f"x{j + 1}": run.positions[:, :, j] for j in range(run.positions.shape[2])}


def effective(draws: np.ndarray) -> float:
    """Bulk effective sample size over all chains; none where a chain never moved."""
    if np.any(np.ptp(draws, axis=1) == 0.0):
        return 0.0
    size = float(array_stats.ess(draws, method="bulk"))
    return size if math.isfinite(size) else 0.0


def worst(quantities: dict[str, np.ndarray]) -> tuple[float, str]:
    """The smallest effective sample size, and whose it is."""
    return min((effective(draws), name) for name, draws in quantities.items())


def gradient_cost(model: KernelProcess, run: Run, n_rounds: int = 40) -> float:
    """Seconds of a gradient over seconds of a value, at the last draw of the first chain."""
    position = run.positions[0, -1]
    tasks = {
        "value": lambda: seconds_of(lambda: model.log_likelihood(position)),
        "gradient": lambda: seconds_of(lambda: model.log_likelihood_gradient(position)),
    }
    seconds = alternate(tasks, n_rounds)
    return float(np.median(seconds["gradient"] / seconds["value"]))


def shown(size: float) -> str | float:
    """An effective sample size as it may be printed."""
    return size if size >= MEASURABLE else f"<{MEASURABLE:.0f}"


@dataclass(frozen=True)
class Rate:
    """Effective draws for a cost."""

    size: float
    cost: float

    @property
    def value(self) -> float:
        """Draws a unit of cost."""
        return self.size / self.cost

    def text(self) -> str | float:
        """As printed, an upper bound where the size could not be measured."""
        return self.value if self.size >= MEASURABLE else f"<{MEASURABLE / self.cost:.2g}"

    def over(self, other: "Rate") -> tuple[float, bool]:
        """The ratio, and whether it is only a lower bound."""
        if self.size < MEASURABLE and other.size < MEASURABLE:
            return math.nan, False
        mine = self.value if self.size >= MEASURABLE else 0.0
        return mine * other.cost / max(other.size, MEASURABLE), other.size < MEASURABLE


def compare(what: str, pairs: Sequence[tuple[Rate, Rate]], sense: str = "", target: float = math.nan) -> Figure:
    """Median over seeds of the ratio of two rates."""
    ratios = [mine.over(other) for mine, other in pairs]
    median, quartiles = summarise([ratio for ratio, _ in ratios])
    open_seeds = sum(math.isnan(ratio) for ratio, _ in ratios)
    note = f"{len(ratios)} seeds" + (f", {open_seeds} without ratio" if open_seeds else "")
    return Figure(what, median, sense, target, quartiles, ">=" if any(bound for _, bound in ratios) else "", note)


def say(line: str) -> None:
    """Progress, on standard error."""
    print(line, file=sys.stderr, flush=True)
