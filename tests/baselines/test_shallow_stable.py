"""The shallow stable network: its prior's identities, low-rank updates against dense algebra, and how sums divide."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr

from cadlag.baselines.shallow_stable import sweep
from cadlag.baselines.shallow_stable.cells import find_cells
from cadlag.baselines.shallow_stable.cuts import Pieces
from cadlag.baselines.shallow_stable.model import ShallowStable
from cadlag.baselines.shallow_stable.shares import divide
from cadlag.baselines.shallow_stable.transition import CellSweeps, PublishedMoves, Spectrum
from cadlag.likelihood import Gaussian, log_normal_over_chi2, sample_log_over_chi2
from cadlag.linalg import gaussian
from cadlag.network.model import StableNetwork
from cadlag.stable import positive_stable

RNG = np.random.default_rng(2)
LINE = np.sort(RNG.uniform(-2.0, 2.0, (9, 1)), axis=0)
PLANE = RNG.normal(size=(8, 2))


def network(X, y=None, **settings):
    y = RNG.standard_normal(len(X)) if y is None else y
    return ShallowStable(X, y, find_cells(np.random.default_rng(0), X), **settings)


def dense(model, position):
    """Q, by the sum over cells."""
    log_s, log_v = model.read(position)
    c = (model.nu * model.cells.probabilities) ** (2.0 / model.alpha) * np.exp(log_s)
    patterns = model.cells.patterns.astype(float)
    return sum(w * np.outer(row, row) for w, row in zip(c, patterns)) + np.diag(model.row_noise(log_v))


def log_likelihood(model, position):
    data, correlation = model.observe(position)
    return gaussian.log_marginal(correlation, data)


def log_target(model, position):
    return model.log_prior(position) + log_likelihood(model, position)


# The prior and the likelihood ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("X", [LINE, PLANE])
def test_gaussian_limit_is_the_kernel_of_step_functions(X):
    model = network(X, alpha=2.0, noise_variance=0.3)
    rows = np.column_stack([np.ones(len(X)), X])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    expected = 1.0 - 2.0 / math.pi * np.arccos(np.clip(rows @ rows.T, -1.0, 1.0))
    np.testing.assert_allclose(model.covariance(np.zeros(model.n_cells)), expected, atol=1e-7)
    assert model.dimension == 0


@pytest.mark.parametrize("X", [LINE, PLANE])
@pytest.mark.parametrize("known", [None, 0.2, "rows"])
def test_likelihood_against_dense_algebra(X, known):
    known = np.linspace(0.1, 1.0, len(X)) if isinstance(known, str) else known
    model = network(X, alpha=0.9, nu=1.7, noise_variance=known)
    position = model.sample_prior(np.random.default_rng(4))
    Q = dense(model, position)
    expected = stats.multivariate_normal(np.zeros(len(X)), Q).logpdf(model.y)
    assert log_likelihood(model, position) == pytest.approx(expected, rel=1e-9)
    log_s, log_v = model.read(position)
    spectrum = Spectrum(model, log_s)
    assert spectrum.log_likelihood(0.0, log_v) == pytest.approx(expected, rel=1e-9)
    f = model.y - model.row_noise(log_v) * np.linalg.solve(Q, model.y)
    np.testing.assert_allclose(spectrum.function(log_v), f, atol=1e-9)
    np.testing.assert_allclose(model.condition(position).moments(X)[0], f, atol=1e-9)
    own = np.linalg.inv(Q)
    loo = stats.norm.logpdf(model.y, model.y - own @ model.y / np.diag(own), 1.0 / np.sqrt(np.diag(own)))
    np.testing.assert_allclose(model.leave_one_out(position).log_density, loo, rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.6, 1.0, 1.5])
def test_one_point_of_the_prior_is_symmetric_stable(alpha):
    """E cos(tf) = exp(-2^(-α/2) ν |t|^α): Σq = 1, and scales without the factor 2 of the characteristic function."""
    model = network(PLANE, alpha=alpha, nu=1.3, noise_variance=1.0)
    rng = np.random.default_rng(0)
    c = np.exp(model.law.sample_log(rng, (20_000, model.n_cells)) + model.log_weights)
    for t in (0.3, 1.0, 2.5):
        values = np.exp(-0.5 * t * t * c.sum(axis=1))  # E cos(tf) given the scales
        expected = math.exp(-(2.0 ** (-alpha / 2.0)) * 1.3 * t**alpha)
        assert values.mean() == pytest.approx(expected, abs=4.5 * values.std() / math.sqrt(len(values)))


@pytest.mark.parametrize("X", [LINE, PLANE])
@pytest.mark.parametrize("alpha", [0.6, 1.0, 1.5])
def test_several_points_of_the_prior_are_jointly_stable(X, alpha):
    """E cos(tᵀf) = exp(-2^(-α/2) ν Σ q|tᵀλ|^α)."""
    model, rng = network(X, alpha=alpha, nu=1.3, noise_variance=1.0), np.random.default_rng(3)
    c = np.exp(model.law.sample_log(rng, (20_000, model.n_cells)) + model.log_weights)
    for t in rng.standard_normal((3, len(X))):
        along = model.cells.patterns @ t
        values = np.exp(-0.5 * c @ along**2)
        expected = math.exp(-(2.0 ** (-alpha / 2.0)) * 1.3 * model.cells.probabilities @ np.abs(along) ** alpha)
        assert values.mean() == pytest.approx(expected, abs=4.5 * values.std() / math.sqrt(len(values)))


@pytest.mark.parametrize("X", [LINE, PLANE])
@pytest.mark.parametrize("alpha", [0.7, 1.4])
def test_the_prior_of_the_network_becomes_that_of_cells_as_units_grow(X, alpha):
    """E cos(tᵀf) of M units is [Σ q e^(-rate/M)]^M, which is within a constant over M of e^(-Σ q rate)."""
    rng, nu, n = np.random.default_rng(8), 1.3, 1500
    cells, ts = find_cells(rng, X), 0.4 * rng.standard_normal((3, len(X)))
    q, rate = cells.probabilities, 2.0 ** (-alpha / 2.0) * nu * np.abs(cells.patterns @ ts.T) ** alpha
    limit, gaps = np.exp(-q @ rate), []
    for m in (4, 32, 256):
        units = StableNetwork(
            np.column_stack([np.ones(len(X)), X]), np.zeros(len(X)), m, alpha, "sign", nu ** (1.0 / alpha),
            likelihood=Gaussian(1.0),
        )  # fmt: skip
        drawn = (units.read(units.sample_prior(rng)) for _ in range(n))
        seen = np.array([np.exp(-0.5 * (ts @ units.columns(u)) ** 2 @ units.variances(u)) for u in drawn])
        finite = (q @ np.exp(-rate / m)) ** m
        assert np.all(np.abs(seen.mean(axis=0) - finite) < 4.5 * seen.std(axis=0) / math.sqrt(n))
        gaps.append(m * (finite - limit))
    np.testing.assert_allclose(gaps[1], gaps[2], rtol=0.1)


def test_halves_of_cells_have_the_same_law():
    """λ and -λ apart, each with half the probability, as in the published code: Q_kh has the same quantiles."""
    model = network(LINE, alpha=1.2, noise_variance=1.0)
    rng = np.random.default_rng(1)
    product = model.cells.patterns[:, 0] * model.cells.patterns[:, 4]
    draws = 40_000
    whole = np.exp(model.log_weights + model.law.sample_log(rng, (draws, model.n_cells))) @ product
    half = 2.0 / model.alpha * np.log(0.5 * model.cells.probabilities)
    apart = np.exp(half + model.law.sample_log(rng, (draws, model.n_cells))) @ product
    apart += np.exp(half + model.law.sample_log(rng, (draws, model.n_cells))) @ product
    assert stats.ks_2samp(whole, apart).pvalue > 1e-3
    wrong = 2.0 * np.exp(half + model.law.sample_log(rng, (draws, model.n_cells))) @ product
    assert stats.ks_2samp(whole, wrong).pvalue < 1e-6


def test_published_noise_prior():
    """|N(0, 1)| / χ²₁, by its integral over χ²₁, and as a law of its own draws."""

    def density(v):
        integrand = lambda w: w * stats.halfnorm.pdf(v * w) * stats.chi2.pdf(w, 1)  # noqa: E731
        return quad(integrand, 0.0, 1.0, epsabs=1e-13)[0] + quad(integrand, 1.0, np.inf, epsabs=1e-13)[0]

    for v in (1e-3, 0.016, 0.0168, 0.1, 1.0, 30.0):
        assert math.exp(log_normal_over_chi2(np.array(math.log(v)))) == pytest.approx(v * density(v), rel=1e-5)
    assert log_normal_over_chi2(np.array(-50.0)) == pytest.approx(-50.0 + math.log(math.sqrt(2.0 / math.pi)), abs=1e-6)
    rng = np.random.default_rng(0)
    draws = [sample_log_over_chi2(rng) for _ in range(4000)]
    grid = np.linspace(-12.0, 40.0, 20_001)
    cdf = np.cumsum(np.exp(log_normal_over_chi2(grid))) * (grid[1] - grid[0])
    assert cdf[-1] == pytest.approx(1.0, abs=1e-4)
    assert stats.kstest(draws, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-3


# Low-rank updates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("X", [LINE, PLANE])
def test_updates_after_sweeps_are_dense_values(X):
    model = network(X, alpha=1.1, noise_variance=0.3)
    kernel, rng = CellSweeps(model), np.random.default_rng(5)
    log_s, _ = model.read(model.sample_prior(rng))
    inverse, beta = kernel._invert(log_s, 0.0)
    law = model.law.index, model.law.density_table
    given = model.cells.patterns, model.log_weights, log_s
    assert sweep.sweep(rng, rng.permutation(model.n_cells), 0, *given, inverse, beta, *law, 50.0) == model.n_cells
    assert sweep.exchange(rng, 100, *kernel._neighbours, *given, inverse, beta, law[1]) > 10
    fresh = model.law.sample_log(rng, model.n_cells)
    at, accepted = sweep.sweep_as_published(rng, 0, fresh, *given, inverse, beta, 50.0, False)
    assert (at, accepted > 0) == (model.n_cells, True)
    Q = dense(model, log_s)
    np.testing.assert_allclose(inverse @ Q, np.eye(len(X)), atol=1e-8)
    np.testing.assert_allclose(beta, np.linalg.solve(Q, model.y), rtol=1e-7, atol=1e-9)


def test_cells_that_dominate_are_taken_out_of_a_new_inverse():
    """On a line every cell is needed: with almost no noise 1 - cS is lost to rounding."""
    model, rng = network(LINE, noise_variance=1e-9), np.random.default_rng(5)
    log_s, _ = model.read(model.sample_prior(rng))
    before = log_s.copy()
    assert CellSweeps(model).renew_scales(rng, log_s, 0.0) > 1
    assert np.mean(log_s != before) > 0.5
    assert math.isfinite(log_target(model, log_s))


def test_a_scale_is_drawn_given_the_other_cells_alone(monkeypatch):
    """What it is scored by is λᵀQ⁻¹λ and λᵀQ⁻¹y of a Q that the cell is not in; afterwards Q has its new scale."""
    model, cell, seen = network(PLANE, alpha=1.2, noise_variance=0.4), 5, []
    log_s = model.sample_prior(np.random.default_rng(6))
    log_s[cell] = 2.0 - model.log_weights[cell]
    before = log_s.copy()
    inverse, beta = CellSweeps(model)._invert(log_s, 0.0)

    def draw(rng, log_scale, log_w, square, pull, *law):
        seen.append((square, pull))
        return log_scale + 0.7

    monkeypatch.setattr(sweep, "draw_scale", draw)
    given = model.cells.patterns, model.log_weights, log_s, inverse, beta, np.empty(8)
    present = math.exp(log_s[cell] + model.log_weights[cell])
    assert sweep.renew.py_func(None, cell, present, *given, model.law.index, model.law.density_table, 50.0)
    sign = model.cells.patterns[cell].astype(float)
    Q = dense(model, before) - present * np.outer(sign, sign)
    assert seen[0] == pytest.approx((sign @ np.linalg.solve(Q, sign), sign @ np.linalg.solve(Q, model.y)), rel=1e-8)
    assert log_s[cell] == before[cell] + 0.7
    np.testing.assert_allclose(inverse, np.linalg.inv(dense(model, log_s)), rtol=1e-7, atol=1e-9)


def test_gains_are_differences_of_the_likelihood():
    model = network(PLANE, alpha=1.0, noise_variance=0.4)
    position = model.sample_prior(np.random.default_rng(3))
    inverse, beta = CellSweeps(model)._invert(position, 0.0)
    square, pull = sweep.look(model.cells.patterns[5], inverse, beta, np.empty(len(beta)))
    other = position.copy()
    other[5] += 1.3
    step = np.exp(other[5] + model.log_weights[5]) - np.exp(position[5] + model.log_weights[5])
    expected = log_likelihood(model, other) - log_likelihood(model, position)
    assert sweep.gain(step, square, pull) == pytest.approx(expected, abs=1e-10)


class Fixed:
    """A source of randomness whose log u is known."""

    def __init__(self, log_u):
        self.u = -math.expm1(log_u)

    def random(self):
        return self.u


def test_exchanges_are_accepted_by_the_ratio_of_the_target():
    """To 1e-6: the change of the determinant by two cells at once is in it, and the ratio of choosing one another."""
    model, rng, n_seen = network(PLANE, alpha=1.1, noise_variance=0.3), np.random.default_rng(1), 0
    for _ in range(60):
        before, log_ratio = model.sample_prior(rng), rng.choice([0.0, -0.5, 0.7])
        given = log_ratio, model.cells.patterns, model.log_weights
        i, j = rng.choice(model.n_cells, 2, replace=False)
        c, after = model.log_weights + before, before.copy()
        after[i], after[j] = c[j] - model.log_weights[i], c[i] - model.log_weights[j]
        expected = log_target(model, after) - log_target(model, before) + log_ratio
        if not -8.0 < expected < -1e-3:  # beyond, 1 - u is rounded
            continue
        for shift, accepted in ((-1e-6, True), (1e-6, False)):
            log_s = before.copy()
            inverse, beta = CellSweeps(model)._invert(log_s, 0.0)
            moved = sweep.try_exchange.py_func(
                Fixed(expected + shift), i, j, *given, log_s, inverse, beta, np.empty((2, 8)), model.law.density_table
            )
            assert moved == accepted
            n_seen += 1
    assert n_seen > 20


@pytest.mark.parametrize(
    ("known", "along_s", "along_v"), [(None, 0.0, 1.0), (None, 1.0, 0.0), (None, 1.0, 1.0), (0.3, 1.0, 0.0)]
)
def test_lattices_of_all_scales_and_the_noise_are_scored_by_the_target(known, along_s, along_v):
    model, steps = network(PLANE, alpha=1.3, noise_variance=known), np.linspace(-1.5, 1.5, 7)
    log_s, log_v = model.read(model.sample_prior(np.random.default_rng(4)))
    found = CellSweeps(model)._scores(log_s, log_v, Spectrum(model, log_s), along_s * steps, along_v * steps)
    there = [log_target(model, model.write(log_s + along_s * step, log_v + along_v * step)) for step in steps]
    np.testing.assert_allclose(found - found[3], np.array(there) - there[3], atol=1e-8)


def test_scales_beyond_what_arithmetic_can_tell_apart_are_not_taken():
    model = network(PLANE)
    log_s, log_v = model.read(model.sample_prior(np.random.default_rng(4)))
    steps = model.log_most(log_v) - (model.log_weights + log_s).max() + np.array([-1.0, 1.0])
    found = CellSweeps(model)._scores(log_s, log_v, Spectrum(model, log_s), steps, np.zeros(2))
    np.testing.assert_array_equal(np.isfinite(found), [True, False])


def test_partners_are_chosen_with_the_ratio_of_their_numbers():
    """Too subtle for a check of the joint law: cells have three to six neighbours."""
    first, neighbours = CellSweeps(network(PLANE))._neighbours
    degrees, rng = np.diff(first), np.random.default_rng(0)
    assert np.ptp(degrees) > 1
    near = 0
    for cell in np.repeat(np.arange(len(degrees)), 20):
        other, log_ratio = sweep.partner(rng, cell, first, neighbours)
        assert 0 <= other < len(degrees)
        assert other != cell
        if log_ratio != 0.0:
            near += 1
            assert other in neighbours[first[cell] : first[cell + 1]]
            assert log_ratio == pytest.approx(math.log(degrees[cell] / degrees[other]))
    assert near > len(degrees)


@pytest.mark.parametrize("kernel", [CellSweeps, PublishedMoves])
@pytest.mark.parametrize("settings", [{}, {"noise_variance": 0.3}, {"alpha": 2.0}, {"noise_prior": "code"},
                                      {"noise_variance": np.linspace(0.1, 1.0, 8)}])  # fmt: skip
def test_kernels_report_the_target(kernel, settings):
    model, rng = network(PLANE, **settings), np.random.default_rng(0)
    moves = kernel(model, 0)
    state = moves.init(rng)
    for _ in range(5):
        state, info = moves.step(rng, state, 1.0)
        assert info["log_target"] == pytest.approx(log_target(model, state["position"]), abs=1e-7)
        probes = model.condition(state["position"]).moments(PLANE)[0]
        np.testing.assert_allclose([info[f"probe{k}"] for k in range(8)], probes, atol=1e-7)


# How sums divide -----------------------------------------------------------------------------------------------------


def levy_cdf(p, r, T):
    zeta, eta = (p - r) / np.sqrt(p * (1.0 - p)), (p + r - 2.0 * r * p) / np.sqrt(p * (1.0 - p))
    spread = math.sqrt(2.0 * T)
    return ndtr(zeta / spread) + (1.0 - 2.0 * r) * math.exp(r * (1.0 - r) / T) * ndtr(-eta / spread)


@pytest.mark.parametrize("r", [0.03, 0.5, 0.8])
@pytest.mark.parametrize("total", [0.05, 1.0, 1e5])
def test_levy_sums_divide_by_their_closed_form(r, total):
    n, law = 5000, positive_stable(1.0)
    p = divide((1,), np.arange(n), n, np.full(n, r), np.full(n, math.log(total)), law)
    np.testing.assert_allclose(p.sum(axis=0), 1.0, rtol=1e-12)
    assert stats.kstest(p[0], lambda x: levy_cdf(x, r, total)).pvalue > 1e-3


def test_closed_form_is_the_integral_of_the_product_of_densities():
    r, T = 0.3, 0.7
    density = lambda s, unit: stats.levy.pdf(s, scale=0.5 * unit)  # noqa: E731
    product = lambda p: density(p * T, r * r) * density((1.0 - p) * T, (1.0 - r) ** 2)  # noqa: E731
    whole = quad(product, 0.0, 1.0)[0]
    for p in (0.05, 0.3, 0.6, 0.95):
        assert quad(product, 0.0, p)[0] / whole == pytest.approx(levy_cdf(p, r, T), rel=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3, 1.8])
@pytest.mark.parametrize("r", [0.02, 0.3, 0.8])
def test_parts_of_a_stable_sum_are_stable_and_independent(alpha, r):
    """T ~ S⁺ divided at random gives back r^(1/a) S' and (1 - r)^(1/a) S''."""
    law, n = positive_stable(alpha), 6000
    log_t = law.sample_log(np.random.default_rng(int(1000 * alpha)), n)
    parts = np.log(divide((7, int(100 * r)), np.arange(n), n, np.full(n, r), log_t, law)) + log_t
    u = law.cdf(parts - np.log([[r], [1.0 - r]]) / law.index)
    assert stats.kstest(u[0], "uniform").pvalue > 1e-3
    assert stats.kstest(u[1], "uniform").pvalue > 1e-3
    for one, two in ((u[0], u[1]), (np.abs(u[0] - 0.5), np.abs(u[1] - 0.5))):
        assert abs(np.corrcoef(one, two)[0, 1]) < 4.0 / math.sqrt(n)


@pytest.mark.parametrize("alpha", [0.7, 1.5])
def test_sums_divide_as_by_brute_force(alpha):
    """Pairs drawn from the prior, of which those are kept whose sum is about as wanted."""
    law, r, rng = positive_stable(alpha), 0.35, np.random.default_rng(9)
    wanted = float(law.quantile(0.7))
    one, two = (law.sample_log(rng, 400_000) + math.log(part) / law.index for part in (r, 1.0 - r))
    kept = np.abs(np.logaddexp(one, two) - wanted) < 0.01
    brute = (one - np.logaddexp(one, two))[kept]
    n = 4000
    found = np.log(divide((3,), np.arange(n), n, np.full(n, r), np.full(n, wanted), law)[0])
    assert kept.sum() > 500
    assert stats.ks_2samp(brute, found).pvalue > 1e-3


def test_a_share_belongs_to_draw_and_cell():
    law = positive_stable(1.4)
    all_cells = divide((5,), np.arange(50), 50, np.full(50, 0.4), np.zeros(50), law)
    some = divide((5,), np.array([30, 4]), 50, np.full(2, 0.4), np.zeros(2), law)
    np.testing.assert_array_equal(all_cells[:, [30, 4]], some)
    assert not np.array_equal(all_cells, divide((6,), np.arange(50), 50, np.full(50, 0.4), np.zeros(50), law))


@pytest.mark.parametrize("alpha", [1.0, 1.4, 2.0])
@pytest.mark.parametrize(("X", "new"), [(LINE, RNG.uniform(-4.0, 4.0, (6, 1))), (PLANE, RNG.normal(size=(4, 2)))])
def test_pieces_have_the_prior_of_finer_cells(X, new, alpha):
    """Cells from their prior, cut by new inputs: the pieces' scales are i.i.d. positive stable."""
    model = network(X, alpha=alpha, noise_variance=1.0)
    pieces, finer = Pieces.find(model.cells, new), find_cells(RNG, np.vstack([X, new]))
    assert len(pieces.parents) == len(finer.probabilities)
    rows = np.column_stack([model.cells.patterns[pieces.parents], pieces.signs]).astype(np.int8)
    known = {row.tobytes(): q for row, q in zip(finer.patterns, finer.probabilities)}
    log_w = 2.0 / alpha * np.log([known[row.tobytes()] for row in rows])
    rng, u = np.random.default_rng(6), []
    for key in range(150):
        log_s = model.law.sample_log(rng, model.n_cells)
        c = pieces.scales(key, log_s, model.log_weights + log_s, model.law)
        sums = np.bincount(pieces.parents, c, model.n_cells)
        np.testing.assert_allclose(sums, np.exp(model.log_weights + log_s), rtol=1e-10)
        u.append(np.log(c) - log_w)
    if alpha == 2.0:
        np.testing.assert_allclose(u, 0.0, atol=1e-8)
        return
    u = model.law.cdf(np.array(u))
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    correlation = np.corrcoef(u.T) - np.eye(u.shape[1])
    assert np.abs(correlation).max() < 5.0 / math.sqrt(len(u))


def test_rows_alone_have_the_law_of_rows_together():
    """Variances and covariances with the data, averaged over many draws of how one draw's scales divide."""
    model = network(PLANE, noise_variance=0.2)
    new = RNG.normal(size=(3, 2))
    position = model.sample_prior(np.random.default_rng(1))
    atom = model.condition(position)
    alone = np.array([np.tanh(replace(atom, key=k).moments(new)) for k in range(1500)])
    together = []
    for k in range(1500):
        mean, covariance = replace(atom, key=k).joint(new)
        together.append(np.tanh([mean, np.diag(covariance)]))
    together = np.array(together)
    error = np.sqrt((alone.var(axis=0) + together.var(axis=0)) / 1500)
    assert np.all(np.abs(alone.mean(axis=0) - together.mean(axis=0)) < 4.5 * error)
    for i in range(2):
        for j in range(3):
            assert stats.ks_2samp(alone[:, i, j], together[:, i, j]).pvalue > 1e-4


def test_paths_on_a_line_are_constant_but_for_jumps():
    """Given the data the mean, at alpha 2, is linear in atan x between neighbours, and flat where nothing is cut."""
    model = network(LINE, alpha=2.0, noise_variance=0.1)
    a, b = LINE[3, 0], LINE[4, 0]
    x = np.tan(np.linspace(math.atan(a), math.atan(b), 7))[:, None]
    mean = model.condition(np.zeros(0)).mean(x)
    np.testing.assert_allclose(np.diff(mean), (mean[-1] - mean[0]) / 6.0, atol=1e-12)
    stable = network(LINE, alpha=0.5, noise_variance=0.1)
    position = stable.sample_prior(np.random.default_rng(0))
    position[3] += 15.0  # a jump between these two, and heavy tails: it sits at one place
    inner = stable.condition(position).mean(np.linspace(a, b, 400)[1:-1, None])
    steps, whole = np.abs(np.diff(inner)), abs(inner[-1] - inner[0])
    assert steps.max() > 0.999 * whole
    assert steps.sum() < 1.001 * whole  # flat elsewhere
