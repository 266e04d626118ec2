"""w_t ∝ π(x_t) / q(x_t), x_t ~ q: draws of a mixture q of t laws, weighed and taken by their weights.

q begins about a few modes, with their curvatures, and is fitted again to what has been weighed. The weights are those
of Pareto-smoothed importance sampling; where the shape of their tail is above 0.7 they do not stand for π.
"""

import math
from typing import NamedTuple

import numpy as np

from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.sampling.contract import Array, Target, find_start
from cadlag.sampling.laplace import find_modes
from cadlag.sampling.mixture import Mixture, fit_mixture

_ROUNDS = 4
_EACH = 200  # draws weighed in each round


class Weighed(NamedTuple):
    """Draws taken by their weights, and what is said of each."""

    positions: Array
    stats: dict[str, Array]


def weigh(rng: np.random.Generator, target: Target, n_draws: int) -> Weighed:
    """Draws that stand for the target, as far as a few modes can."""
    if target.dimension == 0:
        position = find_start(rng, target)
        return _taken(rng, position[None], np.zeros(1), np.array([target.log_target(position, target.exact_level)]),
                      target, n_draws)  # fmt: skip
    mixtures, parts = [Mixture.about(find_modes(rng, target))], []
    for turn in range(_ROUNDS):
        draws = mixtures[-1].sample(rng, _EACH)
        parts.append((draws, np.array([target.log_target(draw, target.exact_level) for draw in draws])))
        if turn + 1 < _ROUNDS:
            mixtures.append(_refitted(rng, mixtures, parts))
    positions, values = np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])
    return _taken(rng, positions, values - _log_density(mixtures, positions), values, target, n_draws)


def _log_density(mixtures: list[Mixture], positions: Array) -> Array:
    """That of all mixtures drawn from, in equal shares."""
    return np.logaddexp.reduce([mixture.log_density(positions) for mixture in mixtures], axis=0) - math.log(
        len(mixtures)
    )


def _refitted(rng: np.random.Generator, mixtures: list[Mixture], parts: list[tuple[Array, Array]]) -> Mixture:
    """A mixture for what has been weighed so far; the last one where there is too little to fit it to."""
    positions, values = np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])
    weights = _smoothed(values - _log_density(mixtures, positions))[0]
    taken = positions[_systematic(rng, weights, len(positions))]
    order = rng.permutation(len(taken))
    half = len(taken) // 2
    try:
        return fit_mixture(rng, taken[order[:half]], taken[order[half:]])
    except (NotPositiveDefiniteError, np.linalg.LinAlgError):
        return mixtures[-1]


def _smoothed(log_ratios: Array) -> tuple[Array, float]:
    """Pareto-smoothed weights that add up to one, and the shape of their tail."""
    from arviz_stats.base import array_stats  # noqa: PLC0415  loads xarray and matplotlib where they are installed

    finite = np.where(np.isfinite(log_ratios), log_ratios, log_ratios[np.isfinite(log_ratios)].max() - 700.0)
    shape = math.nan
    logs = finite
    try:
        with np.errstate(all="ignore"):
            smooth, found = array_stats.psislw(-finite)
        if np.isfinite(smooth).all():
            logs, shape = np.asarray(smooth), float(found)
    except ValueError:  # a tail all of one value
        pass
    weights = np.exp(logs - logs.max())
    return weights / weights.sum(), shape


def _systematic(rng: np.random.Generator, weights: Array, n: int) -> Array:
    """Indices taken by weight, evenly."""
    points = (np.arange(n) + rng.random()) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), points), len(weights) - 1)


def _taken(
    rng: np.random.Generator, positions: Array, log_ratios: Array, values: Array, target: Target, n_draws: int
) -> Weighed:
    weights, shape = _smoothed(log_ratios) if len(positions) > 1 else (np.ones(1), -math.inf)
    chosen = rng.permutation(_systematic(rng, weights, n_draws))
    priors = np.array([target.log_prior(positions[k]) for k in chosen])
    stats = {"log_target": values[chosen], "log_likelihood": values[chosen] - priors,
             "pareto_shape": np.full(n_draws, shape)}  # fmt: skip
    return Weighed(positions[chosen], stats)
