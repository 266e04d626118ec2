"""Checks of transition kernels that have exactly known answers, shared by the fast and the slow tests.

The joint law of unknowns and data is known: unknowns from the prior, data given them. Whatever leaves every posterior
invariant also leaves this joint law invariant, so under it each unknown, sent through its prior distribution
function, is uniform, and yᵀΛ⁻¹y is chi-square with n degrees of freedom, before and after any number of transitions.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from scipy import stats

from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling.chains import Plan, Store, new_chains, run

Array = NDArray[np.float64]


# Draws ---------------------------------------------------------------------------------------------------------------


def sample(
    model: Any, sampler: str, n_warmup: int, n_draws: int, n_chains: int, seed: int, **options: Any
) -> tuple[Array, dict[str, Array]]:
    """Draws (chain, draw, coordinate) after warm-up, and their statistics."""
    total, store = n_warmup + n_draws, Store(n_chains)
    assert run(
        model, Plan(sampler, n_warmup, options), new_chains(np.random.SeedSequence(seed), n_chains), total, store
    )
    return kept(store, n_warmup, total)


def sample_until(
    model: Any, sampler: str, n_warmup: int, n_draws: int, n_chains: int, seed: Any, wanted: float, **options: Any
) -> tuple[Array, dict[str, Array], float]:
    """Draws from a run doubled, at most three times, until it holds so many effective ones; how many it holds."""
    store, plan = Store(n_chains), Plan(sampler, n_warmup, options)
    parent = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    chains = new_chains(parent, n_chains)
    for longer in (1, 2, 4, 8):
        end = n_warmup + longer * n_draws
        assert run(model, plan, chains, end, store)
        positions, info = kept(store, n_warmup, end)
        effective = min(float(array_stats.ess(column)) for column in np.moveaxis(positions, 2, 0))
        if np.ptp(info["log_likelihood"]) > 1e-6:
            effective = min(effective, float(array_stats.ess(info["log_likelihood"])))
        if effective >= wanted:
            break
    return positions, info, effective


def kept(store: Store, start: int, end: int) -> tuple[Array, dict[str, Array]]:
    """What a store holds between two iterations."""
    chains = range(len(store.blocks))
    positions = np.stack([store.history(c, end)[start:] for c in chains])
    names = store.blocks[0][0].stats
    columns = {
        k: [np.concatenate([block.stats[k] for block in store.blocks[c]])[start:end] for c in chains] for k in names
    }
    return positions, {k: np.stack(column) for k, column in columns.items()}


# The joint law of unknowns and data ----------------------------------------------------------------------------------


def covariance(model: KernelProcess, position: Array) -> tuple[Array, float]:
    """Covariance of the function at the rows, from the published recursion, and the noise variance."""
    return model.covariance(position), float(np.exp(position[-1]))


def sample_function(rng: np.random.Generator, model: KernelProcess, position: Array) -> Array:
    """The function at the rows, given the scales."""
    values, vectors = np.linalg.eigh(covariance(model, position)[0])
    return vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))


def sample_data(rng: np.random.Generator, model: KernelProcess, position: Array) -> Array:
    """Responses given the scales and the noise."""
    noise = np.exp(0.5 * position[-1]) * rng.standard_normal(len(model.X))
    return sample_function(rng, model, position) + noise


def prior_uniforms(model: KernelProcess, positions: Array) -> Array:
    """Every unknown sent through its prior distribution function; centres, where there are any, follow the scales."""
    log_v, scales, centres = positions[..., -1], positions[..., : model.n_scales], positions[..., model.n_scales : -1]
    z = np.exp(log_v if model.likelihood.prior_on == "variance" else 0.5 * log_v) / model.likelihood.scale
    noise = 2.0 / np.pi * np.arctan(z)[..., None]
    return np.concatenate([model.law.cdf(scales), stats.norm.cdf(centres), noise], axis=-1)


def fit_uniform(model: KernelProcess, position: Array) -> float:
    """yᵀΛ⁻¹y sent through the chi-square distribution function."""
    signal, noise = covariance(model, position)
    values, vectors = np.linalg.eigh(signal)
    square = (vectors.T @ model.y) ** 2 / (np.maximum(values, 0.0) + noise)
    return float(stats.chi2.cdf(square.sum(), len(model.y)))


# Successive-conditional simulation (Geweke, 2004), started in the joint law itself ----------------------------------

Stepper = Callable[[np.random.Generator, KernelProcess, Array, Any], tuple[Array, Any]]


def successive_conditional(
    model: KernelProcess, advance: Stepper, n_chains: int, n_rounds: int, seed: int
) -> dict[str, float]:
    """z-scores of what is known of the joint law, from independent chains that alternate unknowns and data.

    `advance(rng, model, position, memory)` moves the unknowns given the data. Each chain starts in the joint law, so
    its averages are unbiased whatever its mixing; the chains are independent, so their spread gives an honest error.
    """
    rng = np.random.default_rng(seed)
    averages = []
    for _ in range(n_chains):
        position, memory, rows = model.sample_prior(rng), None, []
        for _ in range(n_rounds):
            given = replace(model, y=sample_data(rng, model, position), _buffers={})
            position, memory = advance(rng, given, position, memory)
            rows.append(np.append(prior_uniforms(model, position), fit_uniform(given, position)) - 0.5)
        averages.append(_known_means(np.array(rows)))
    names = [*(f"u{j}" for j in range(model.dimension)), "fit"]
    labels = [
        *names,
        *(f"|{a}|" for a in names),
        *(f"{a}*fit" for a in names[:-1]),
        *(f"{a}*u_noise" for a in names[:-2]),
    ]
    table = np.array(averages)
    return dict(zip(labels, _scores(table), strict=True))


def _scores(table: Array) -> list[float]:
    """Student's t of each column's mean, as the normal deviate of the same tail: few rows have heavier tails."""
    t = np.sqrt(len(table)) * table.mean(axis=0) / table.std(axis=0, ddof=1)
    return (np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), len(table) - 1))).tolist()


def _known_means(centred: Array) -> Array:
    """Averages over rounds of functions of uniforms that have mean zero."""
    products = [centred, np.abs(centred) - 0.25, centred[:, :-1] * centred[:, -1:], centred[:, :-2] * centred[:, -2:-1]]
    return np.concatenate(products, axis=1).mean(axis=0)


# One visit to a posterior, from an exact draw of it (Gandy & Scott, 2020) --------------------------------------------


def paired(model: KernelProcess, advance: Stepper, n_replications: int, seed: int) -> dict[str, float]:
    """z-scores of the change that transitions make to bounded functions of unknowns and data.

    Unknowns from the prior and data given them are an exact draw of the joint law; what `advance` makes of the unknowns
    is another. The mean change of every function is zero, and the pairs are independent.
    """
    rng = np.random.default_rng(seed)
    changes = []
    for _ in range(n_replications):
        before = model.sample_prior(rng)
        given = replace(model, y=sample_data(rng, model, before), _buffers={})
        after, _ = advance(rng, given, before, None)
        changes.append(_bounded(given, after) - _bounded(given, before))
    names = [*(f"u{j}" for j in range(model.dimension)), "fit", "gain"]
    labels = [*names, *(f"|{a}|" for a in names[:-1]), *(f"{a}*fit" for a in names[:-2])]
    table = np.array(changes)
    return dict(zip(labels, _scores(table), strict=True))


def _bounded(model: KernelProcess, position: Array) -> Array:
    """Uniforms, their distances from the middle, products with the fit, and the likelihood's gain over white noise."""
    u = np.append(prior_uniforms(model, position), fit_uniform(model, position)) - 0.5
    signal, noise = covariance(model, position)
    values, vectors = np.linalg.eigh(signal)
    spectrum = np.maximum(values, 0.0) + noise
    log_likelihood = -0.5 * np.sum(np.log(spectrum) + (vectors.T @ model.y) ** 2 / spectrum)
    white = -0.5 * len(model.y) * (1.0 + np.log(np.mean(model.y**2)))
    return np.concatenate([u, [np.tanh((log_likelihood - white) / 3.0)], np.abs(u), u[:-1] * u[-1]])


def joint_law(model: KernelProcess, advance: Stepper, seed: int) -> dict[str, float]:
    """Both checks, as the fast tests run them."""
    successive = successive_conditional(model, advance, 120, 3, seed)
    pairs = paired(model, advance, 400, seed + 1)
    return {**{f"successive {k}": z for k, z in successive.items()}, **{f"paired {k}": z for k, z in pairs.items()}}


def worst(z: dict[str, float]) -> float:
    """The largest |z|; infinite if any is not a number."""
    return max(abs(value) if np.isfinite(value) else np.inf for value in z.values())


# Ranks ---------------------------------------------------------------------------------------------------------------


@cache
def rank_band(n_ranks: int, n_draws: int, level: float, n_simulated: int = 20_000) -> tuple[Array, Array]:
    """Bounds on the counts #(rank < i), i = 1..n_draws, that hold at once with a probability, for ranks in 0..n_draws.

    The adjustment of Säilynoja, Bürkner & Vehtari (2022), by simulation.
    """
    rng = np.random.default_rng(20_220)
    share = np.arange(1, n_draws + 1) / (n_draws + 1)
    ranks = np.arange(n_ranks + 1)
    below, above = stats.binom.cdf(ranks[:, None], n_ranks, share), stats.binom.sf(ranks[:, None] - 1, n_ranks, share)
    tail = np.minimum(1.0, 2.0 * np.minimum(below, above))
    smallest = np.empty(n_simulated)
    for i in range(n_simulated):
        counts = np.cumsum(np.bincount(rng.integers(0, n_draws + 1, n_ranks), minlength=n_draws + 1))[:-1]
        smallest[i] = tail[counts, np.arange(n_draws)].min()
    gamma = np.quantile(smallest, 1.0 - level, method="lower")
    return stats.binom.ppf(gamma / 2.0, n_ranks, share), stats.binom.isf(gamma / 2.0, n_ranks, share)


def rank_deviation(ranks: Array, n_draws: int, level: float) -> float:
    """Largest deviation of the ranks' distribution function, in units of its simultaneous band: inside if at most 1.

    Bounds that no count can cross (none or all of the ranks) are left out.
    """
    lower, upper = rank_band(len(ranks), n_draws, level)
    counts = np.cumsum(np.bincount(ranks.astype(int), minlength=n_draws + 1))[:-1]
    middle = len(ranks) * np.arange(1, n_draws + 1) / (n_draws + 1)
    gap = counts - middle
    over = np.where(upper < len(ranks), gap / (upper - middle), 0.0)
    under = np.where(lower > 0, gap / (lower - middle), 0.0)
    return float(np.max(np.maximum(over, under)))
