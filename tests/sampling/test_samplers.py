"""Kernels against targets whose moments are known, and one by one against the joint law of unknowns and data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from scipy import integrate, special, stats

from cadlag.sampling import SAMPLERS
from cadlag.sampling.adaptation import (
    accumulate,
    average,
    nothing_seen,
    renew_metric,
    restart_averaging,
    windows,
)
from cadlag.sampling.contract import find_start
from cadlag.sampling.hops import NutsWithHops
from cadlag.sampling.laplace import Modes, find_modes
from cadlag.sampling.mixture import NU, Mixture, fit_mixture
from cadlag.sampling.nuts import Nuts, _Point, _Trajectory
from cadlag.sampling.tempering import Tempered
from cadlag.sampling.weighing import weigh
from cadlag.stable import positive_stable
from statistical.checks import joint_law, sample, worst
from statistical.kernels_under_test import MOVES, fixed_mixture, small_model

Array = NDArray[np.float64]
LEVELS = (1.0, 0.5, 0.2)


@dataclass(frozen=True)
class Toy:
    """A normalised density of known moments; the prior is a product of logistic laws, heavy enough to start from."""

    dimension: int
    density: Callable[[Array], tuple[float, Array]]
    spread: float = 3.0
    exact_level = 1.0

    def log_prior(self, position: Array) -> float:
        return float((-np.abs(position) / self.spread - 2.0 * np.log1p(np.exp(-np.abs(position) / self.spread))).sum())

    def sample_prior(self, rng: np.random.Generator) -> Array:
        return rng.logistic(0.0, self.spread, self.dimension)

    def log_likelihood_at(self, position: Array, level: float) -> float:
        return self.log_target(position, level) - self.log_prior(position)

    def log_target(self, position: Array, level: float) -> float:
        return self.log_target_gradient(position, level)[0]

    def log_target_gradient(self, position: Array, level: float) -> tuple[float, Array]:
        value, gradient = self.density(position)
        by_prior = -np.tanh(0.5 * position / self.spread) / self.spread
        return (1.0 - level) * self.log_prior(position) + level * value, (1.0 - level) * by_prior + level * gradient


MEAN = np.array([1.0, -2.0, 0.0, 0.5, 3.0])
ROOT = np.tril(np.array([[0.9, -0.6, 0.3, 0.5, -0.2]]).T @ np.ones((1, 5)) * 0.6) + np.diag([1.0, 0.5, 1.5, 0.3, 1.0])
COVARIANCE = ROOT @ ROOT.T
PRECISION = np.linalg.inv(COVARIANCE)


def gaussian(x: Array) -> tuple[float, Array]:
    pull = PRECISION @ (MEAN - x)
    return -0.5 * float((MEAN - x) @ pull), pull


def marginal_gaussian(d: int) -> "Toy":
    """The first d coordinates."""
    precision = np.linalg.inv(COVARIANCE[:d, :d])

    def density(x: Array) -> tuple[float, Array]:
        pull = precision @ (MEAN[:d] - x)
        return -0.5 * float((MEAN[:d] - x) @ pull), pull

    return Toy(d, density)


def skewed(x: Array) -> tuple[float, Array]:
    values, slopes = zip(*(positive_stable(a).log_density_and_slope(x[j : j + 1]) for j, a in enumerate(ALPHAS)))
    return float(np.sum(values)), np.concatenate(slopes)


ALPHAS = (0.9, 1.0, 1.5)
WEIGHTS, MODES, SPREADS = np.array([0.3, 0.7]), np.array([[-5.0, -4.0], [4.0, 5.0]]), np.array([0.8, 1.2])


def two_modes(x: Array) -> tuple[float, Array]:
    away = (x - MODES) / SPREADS[:, None]
    logs = np.log(WEIGHTS) - 2.0 * np.log(SPREADS) - math.log(2.0 * math.pi) - 0.5 * (away**2).sum(axis=1)
    value = np.logaddexp(*logs)
    return float(value), -(np.exp(logs - value) / SPREADS) @ away


GAUSSIAN, SKEWED, TWO_MODES = Toy(5, gaussian), Toy(3, skewed), Toy(2, two_modes, spread=2.5)


def z_of_mean(values: Array, truth: float) -> float:
    """(mean - truth) in Monte Carlo standard errors; values by chain and draw."""
    return float((values.mean() - truth) / array_stats.mcse(values))


def z_of_quantiles(values: Array, quantile: Callable[[float], float]) -> list[float]:
    """Shares below known quantiles in their known standard deviations."""
    z = []
    for p in (0.05, 0.25, 0.5, 0.75, 0.95):
        below = (values <= quantile(p)).astype(float)
        z.append((below.mean() - p) / math.sqrt(p * (1.0 - p) / float(array_stats.ess(below))))
    return z


def run_toy(toy: Toy, sampler: str, seed: int) -> Array:
    length = {"nuts": (300, 700), "plain_nuts": (300, 700), "tempered": (200, 500), "independence": (100, 6000)}[
        sampler
    ]
    options = {"levels": LEVELS} if sampler == "tempered" else {}
    return sample(toy, sampler, *length, 4, seed, **options)[0]


# Known moments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_correlated_gaussian(sampler: str) -> None:
    """One coordinate at a time from the prior cannot follow five correlations: that sampler gets the first two."""
    d = 2 if sampler == "independence" else 5
    draws = run_toy(marginal_gaussian(d), sampler, 1)
    centred = draws - MEAN[:d]
    z = [z_of_mean(draws[..., j], MEAN[j]) for j in range(d)]
    z += [z_of_mean(centred[..., i] * centred[..., j], COVARIANCE[i, j]) for i in range(d) for j in range(i + 1)]
    for j in range(d):
        z += z_of_quantiles(draws[..., j], stats.norm(MEAN[j], math.sqrt(COVARIANCE[j, j])).ppf)
    assert np.max(np.abs(z)) < 4.0
    assert min(float(array_stats.ess(draws[..., j])) for j in range(d)) > (40.0 if sampler == "independence" else 100.0)


@pytest.mark.parametrize(
    "sampler",
    [pytest.param(name, marks=[pytest.mark.slow] if name in ("tempered", "independence") else []) for name in SAMPLERS],
)
def test_log_positive_stable_laws(sampler: str) -> None:
    draws = run_toy(SKEWED, sampler, 2)
    z = []
    for j, alpha in enumerate(ALPHAS):
        law = positive_stable(alpha)
        z += [z_of_mean(draws[..., j], law.mean_log), *z_of_quantiles(draws[..., j], law.quantile)]
    assert np.max(np.abs(z)) < 4.0
    assert min(float(array_stats.ess(draws[..., j])) for j in range(3)) > 100.0


def share_of_right_mode(draws: Array) -> Array:
    return (draws.sum(axis=2) > 0.0).astype(float)


def test_plain_nuts_stays_where_it_starts() -> None:
    by_chain = [share_of_right_mode(run_toy(TWO_MODES, "plain_nuts", seed)).mean(axis=1) for seed in range(3, 6)]
    assert set(np.concatenate(by_chain)) == {0.0, 1.0}


@pytest.mark.parametrize("sampler", ["nuts", "tempered"])
def test_mode_weights(sampler: str) -> None:
    options = {"levels": (1.0, 0.4, 0.15, 0.05)} if sampler == "tempered" else {}
    draws = sample(TWO_MODES, sampler, 300, 700, 4, 3, **options)[0]
    right = share_of_right_mode(draws)
    assert float(array_stats.rhat(right)) < 1.05
    assert float(array_stats.mcse(right)) < 0.05
    assert abs(z_of_mean(right, WEIGHTS[1])) < 4.0
    inside = draws[right == 1.0] - MODES[1]
    np.testing.assert_allclose(inside.std(axis=0), SPREADS[1], rtol=0.1)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_dimension_zero(sampler: str) -> None:
    nothing = Toy(0, lambda x: (-1.5, np.zeros(0)))
    draws, info = sample(nothing, sampler, 50, 20, 2, 0)
    assert draws.shape == (2, 20, 0)
    np.testing.assert_array_equal(info["log_target"], -1.5)


# Mixture --------------------------------------------------------------------------------------------------------------


def test_mixture_integrates_to_one() -> None:
    one, two = fixed_mixture(1), fixed_mixture(2)
    line = integrate.quad(lambda x: math.exp(one.log_density(np.array([[x]]))[0]), -np.inf, np.inf, epsabs=1e-10)
    assert line[0] == pytest.approx(1.0, abs=1e-8)
    # x = tan(t) maps the plane to a square
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t, w = 0.5 * math.pi * nodes, 0.5 * math.pi * weights / np.cos(0.5 * math.pi * nodes) ** 2
    grid = np.stack(np.meshgrid(np.tan(t), np.tan(t), indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.outer(w, w).ravel() @ np.exp(two.log_density(grid)) == pytest.approx(1.0, abs=1e-6)


def test_mixture_density_is_that_of_its_samples() -> None:
    mixture = fixed_mixture(1)
    draws = mixture.sample(np.random.default_rng(0), 20_000)[:, 0]
    edges = np.linspace(-200.0, 200.0, 400_001)
    mass = np.exp(mixture.log_density(edges[:, None]))
    cdf = integrate.cumulative_trapezoid(mass, edges, initial=0.0)
    assert stats.kstest(draws, lambda x: np.interp(x, edges, cdf)).pvalue > 1e-3


def test_mixture_density_is_that_of_its_samples_in_the_plane() -> None:
    """E_q[p/q] = 1 for any density p, and the second moments of a t law."""
    mixture = fixed_mixture(3)
    draws = mixture.sample(np.random.default_rng(1), 50_000)
    p = stats.multivariate_normal([0.5, 0.0, -0.5], np.diag([1.0, 2.0, 0.5]))
    ratio = np.exp(p.logpdf(draws) - mixture.log_density(draws))
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / math.sqrt(len(ratio))
    weights = np.exp(mixture.log_weights)
    mean = weights @ mixture.means
    second = sum(
        w * (NU / (NU - 2.0) * f @ f.T + np.outer(m, m)) for w, f, m in zip(weights, mixture.factors, mixture.means)
    )
    for i in range(3):
        for j in range(i + 1):
            product = draws[:, i] * draws[:, j]
            assert abs(product.mean() - second[i, j]) < 5.0 * product.std() / math.sqrt(len(product))
        assert abs(draws[:, i].mean() - mean[i]) < 4.0 * draws[:, i].std() / math.sqrt(len(draws))


def test_a_widened_mixture_is_a_density():
    """Its weights add up to one, and its draws have its density: E[p/q] = 1 for any density p."""
    mixture = Mixture.of(np.log([0.3, 0.7]), np.array([[0.0], [3.0]]), np.array([[[1.0]], [[0.5]]]))
    wide = mixture.widened()
    assert np.exp(wide.log_weights).sum() == pytest.approx(1.0, abs=1e-12)
    draws = wide.sample(np.random.default_rng(0), 40_000)
    ratio = np.exp(mixture.log_density(draws) - wide.log_density(draws))
    assert ratio.mean() == pytest.approx(1.0, abs=4.0 * ratio.std() / 200.0)
    assert ratio.max() < 1.0 / 0.8  # so that no draw of the narrow one is rare


class Lopsided:
    """The law of the logarithms of two Gamma(3) numbers: skewed, with known moments."""

    dimension, exact_level = 2, 1.0

    def sample_prior(self, rng):
        return rng.standard_normal(2)

    def log_prior(self, position):
        return 0.0

    def log_likelihood_at(self, position, level):
        return self.log_target(position, level)

    def log_target(self, position, level):
        return float((3.0 * position - np.exp(position)).sum())

    def log_target_gradient(self, position, level):
        return self.log_target(position, level), 3.0 - np.exp(position)


def test_weighed_draws_stand_for_the_target():
    """Mean ψ(3) and variance ψ'(3)."""
    found = weigh(np.random.default_rng(1), Lopsided(), 4000)
    assert found.stats["pareto_shape"][0] < 0.5
    np.testing.assert_allclose(found.positions.mean(axis=0), special.digamma(3.0), atol=0.06)
    np.testing.assert_allclose(found.positions.var(axis=0), special.polygamma(1, 3.0), rtol=0.2)
    np.testing.assert_allclose(np.exp(found.positions).mean(axis=0), 3.0, rtol=0.06)


def test_mixture_state_round_trip() -> None:
    mixture = fixed_mixture(2)
    points = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_array_equal(
        Mixture.from_state(mixture.to_state()).log_density(points), mixture.log_density(points)
    )


def test_fit_recovers_a_mixture() -> None:
    true = Mixture.of(
        np.log([0.25, 0.75]), np.array([[-6.0, 0.0], [4.0, 3.0]]), np.stack([np.eye(2), [[1.5, 0.0], [1.0, 0.7]]])
    )
    rng = np.random.default_rng(2)
    train, held_out, fresh = (true.sample(rng, n) for n in (2000, 2000, 4000))
    fitted = fit_mixture(rng, train, held_out, sizes=(1, 2))
    order = np.argsort(fitted.means[:, 0])
    assert len(order) == 2
    np.testing.assert_allclose(np.exp(fitted.log_weights[order]), [0.25, 0.75], atol=0.03)
    np.testing.assert_allclose(fitted.means[order], true.means, atol=0.2)
    scatter = np.einsum("kij,klj->kil", fitted.factors, fitted.factors)[order]
    np.testing.assert_allclose(scatter, np.einsum("kij,klj->kil", true.factors, true.factors), atol=0.35)
    assert abs(np.mean(true.log_density(fresh) - fitted.log_density(fresh))) < 0.01
    chosen = fit_mixture(rng, train, held_out)
    assert np.mean(true.log_density(fresh) - chosen.log_density(fresh)) < 0.02


# Adaptation -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_warmup", [20, 37, 100, 150, 333, 1000, 4321])
def test_windows_double_and_end_before_the_warmup_does(n_warmup: int) -> None:
    ends = windows(n_warmup)
    sizes = np.diff(ends)
    assert 10 <= ends[0] < n_warmup
    assert ends[-1] == int(0.95 * n_warmup)
    assert np.all(sizes[1:-1] == 2 * sizes[:-2])
    assert len(sizes) < 2 or sizes[-1] >= 2 * sizes[-2]


def test_no_windows_in_no_time() -> None:
    assert windows(0) == windows(5) == []


def frozen_part(state: dict[str, Any]) -> list[Any]:
    """Whatever a kernel uses but positions."""
    if "rungs" in state:
        return [part for rung in state["rungs"] for part in frozen_part(rung)]
    inner = state.get("nuts", state)
    mixture = (state.get("mixture") or {}) | (state.get("emulator") or {}) | (state.get("seen") or {})
    learned = [inner[key] for key in ("step_size", "factor") if key in inner]
    return [*learned, *mixture.values(), state.get("n_jumps"), state.get("period")]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_nothing_adapts_after_warmup(sampler: str) -> None:
    rng = np.random.default_rng(5)
    n_warmup = 100
    kernel = SAMPLERS[sampler](GAUSSIAN, n_warmup)
    state, seen = kernel.init(rng), []
    for i in range(1, n_warmup + 60):
        state, _ = kernel.step(rng, state, 1.0)
        seen.append(state["position"])
        if i in kernel.rendezvous:
            (state,) = kernel.pool([state], [np.array(seen)])
        if i == n_warmup:
            before = frozen_part(state)
            assert sampler != "nuts" or state["mixture"] is not None
            assert all(end <= n_warmup for end in kernel.rendezvous)
    for a, b in zip(before, frozen_part(state), strict=True):
        np.testing.assert_array_equal(a, b)


def test_metric_learns_the_covariance() -> None:
    rng = np.random.default_rng(6)
    kernel = Nuts(GAUSSIAN, 800)
    state = kernel.init(rng)
    accepts = []
    for i in range(1600):
        state, info = kernel.step(rng, state, 1.0)
        if i >= 800:
            accepts.append(info["accept"])
    whitened = np.linalg.solve(ROOT, state["factor"])
    assert np.linalg.cond(whitened) < 2.0
    assert 0.7 < np.mean(accepts) < 0.97


def test_a_window_is_summed_up_by_its_covariance() -> None:
    """Welford's sums against numpy, and the metric that is made of them: two draws a coordinate count for the last."""
    draws = np.random.default_rng(7).standard_normal((12, 3)) @ COVARIANCE[:3, :3]
    seen = nothing_seen(3)
    for draw in draws + 100.0:
        seen = accumulate(seen, draw)
    np.testing.assert_allclose(seen["mean"], 100.0 + draws.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(seen["scatter"] / 11, np.cov(draws.T), rtol=1e-10)
    before = np.diag([1.0, 3.0, 0.5])
    state = renew_metric({"welford": seen, "factor": before, "position": draws[0]})
    np.testing.assert_allclose(
        state["factor"] @ state["factor"].T, (12 * np.cov(draws.T) + 6 * before @ before) / 18, rtol=1e-10
    )
    assert state["welford"]["count"] == 0


def test_jumps_are_frequent_where_the_mixture_fits() -> None:
    info = sample(GAUSSIAN, "nuts", 400, 200, 4, 8)[1]
    assert np.mean(info["jump_accept"]) > 0.3


# Contract -------------------------------------------------------------------------------------------------------------


def test_ladder_starts_at_the_exact_level() -> None:
    with pytest.raises(ValueError, match="first level of a ladder"):
        Tempered(GAUSSIAN, 10, levels=(0.5, 0.1))


def test_no_start_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ArithmeticError, match="standardize"):
        find_start(np.random.default_rng(0), Toy(1, lambda x: (-math.inf, np.zeros(1))))


def test_leapfrog_steps_can_be_taken_back_and_keep_the_energy() -> None:
    """To rounding the one, to the second order of the step the other: with half the step a quarter of the error."""
    rng, errors = np.random.default_rng(4), []
    position, momentum = MEAN + rng.standard_normal(5), rng.standard_normal(5)
    value, gradient = GAUSSIAN.log_target_gradient(position, 1.0)
    start = _Point(position, momentum, value, gradient)
    for n_steps in (40, 80):
        trajectory = _Trajectory(GAUSSIAN, 1.0, ROOT, 4.0 / n_steps, 0.0, rng)
        there = start
        for _ in range(n_steps):
            there = trajectory.leapfrog(there, 1.0)
        errors.append(there.value - 0.5 * there.momentum @ there.momentum - value + 0.5 * momentum @ momentum)
        for _ in range(n_steps):
            there = trajectory.leapfrog(there, -1.0)
        np.testing.assert_allclose(there.position, position, rtol=1e-11)
        np.testing.assert_allclose(there.momentum, momentum, rtol=1e-11, atol=1e-12)
    assert abs(errors[1]) < 1e-2
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_overflow_on_the_way_is_a_divergence_and_not_a_warning() -> None:
    """The left tail of log S falls as exp(-s^-b): long steps leave the floating-point range."""
    rng = np.random.default_rng(12)
    kernel = Nuts(SKEWED, 0)
    for step in np.geomspace(5.0, 1e4, 60):
        end, info = kernel.transition(rng, np.zeros(3), np.eye(3), step, 1.0)
        assert np.isfinite(end.value)
        assert np.isfinite(info["accept"])


@pytest.mark.parametrize("make", [Nuts, NutsWithHops])
def test_reported_value_is_the_value_at_the_draw(make: Callable[..., Any]) -> None:
    rng = np.random.default_rng(9)
    kernel = make(GAUSSIAN, 100)
    state, seen = kernel.init(rng), []
    for i in range(1, 200):
        state, info = kernel.step(rng, state, 1.0)
        seen.append(state["position"])
        assert info["log_target"] == pytest.approx(GAUSSIAN.log_target(state["position"], 1.0), abs=1e-9)
        if i in kernel.rendezvous:
            (state,) = kernel.pool([state], [np.array(seen)])


@pytest.mark.parametrize("sampler", ["nuts", "plain_nuts", "independence"])
def test_level_is_the_one_asked_for(sampler: str) -> None:
    """At level 0 the logistic prior, whatever the density."""
    rng = np.random.default_rng(10)
    kernel = SAMPLERS[sampler](GAUSSIAN, 200)
    state, seen = kernel.init(rng), []
    for i in range(1, 2201):
        state, _ = kernel.step(rng, state, 0.0)
        seen.append(state["position"])
        if i in kernel.rendezvous:
            (state,) = kernel.pool([state], [np.array(seen)])
    draws = np.array(seen)[None, 200:]
    z = [z for j in range(5) for z in z_of_quantiles(draws[..., j], stats.logistic(0.0, 3.0).ppf)]
    assert np.max(np.abs(z)) < 4.0


# Single kernels on the kernel process ---------------------------------------------------------------------------------

MODELS: Sequence[tuple[float, str, int]] = ((1.0, "theorem", 1), (1.5, "published_code", 2))


@pytest.mark.parametrize(
    ("move", "alpha", "preset", "depth"),
    # one model each, the one on which it takes less time, and both in the slow tests
    [
        pytest.param(move, *model, marks=[] if (move == "tempered") == (model == MODELS[1]) else [pytest.mark.slow])
        for model in MODELS
        for move in MOVES
    ],
)
def test_joint_law_is_left_alone(move: str, alpha: float, preset: str, depth: int) -> None:
    z = joint_law(small_model(alpha, preset, depth), MOVES[move], 11)
    assert worst(z) < 4.0, z


def test_modes_of_a_normal_law() -> None:
    modes = find_modes(np.random.default_rng(1), Toy(5, gaussian))
    np.testing.assert_allclose(modes.places, np.tile(MEAN, (len(modes.places), 1)), atol=1e-3)
    np.testing.assert_allclose(modes.factors[0] @ modes.factors[0].T, COVARIANCE, rtol=1e-3, atol=1e-3)


def test_modes_are_taken_by_their_mass() -> None:
    rng = np.random.default_rng(2)
    modes = [find_modes(rng, TWO_MODES) for _ in range(10)]
    joined = Modes.join([found.to_state() for found in modes])
    right = joined.places.sum(axis=1) > 0.0
    assert 0 < right.sum() < len(right)
    np.testing.assert_allclose(
        joined.log_masses[right][0] - joined.log_masses[~right][0], np.log(WEIGHTS[1] / WEIGHTS[0]), atol=0.05
    )
    starts = np.array([joined.start(rng, TWO_MODES)[0].sum() > 0.0 for _ in range(2000)])
    share = np.exp(joined.log_masses[right]).sum() / np.exp(joined.log_masses).sum()
    assert abs(starts.mean() - share) < 4.0 * np.sqrt(share * (1.0 - share) / 2000)


def test_a_short_average_does_not_outgrow_the_first_step():
    nuts = Nuts(small_model(), 1)
    state = nuts.start_from(np.zeros(small_model().dimension))
    state["averaging"] = average(restart_averaging(0.3), 1.0, 0.8)
    assert math.exp(state["averaging"]["log_mean"]) > 3.0
    assert nuts.freeze(state)["step_size"] == pytest.approx(0.3)
