"""The stable network: its likelihood against dense algebra, its columns, its atoms, what its low-rank updates keep."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.stats import halfcauchy, kstest, multivariate_normal, norm

from cadlag.kernel_process.neighbors import Neighbors
from cadlag.likelihood import Gaussian
from cadlag.linalg.low_rank import log_marginal_of_sums
from cadlag.network.breaks import Planes, cluster_planes, jumps_between
from cadlag.network.bulk import GivenUnits
from cadlag.network.circle import angle_of, arc_mass, cosine_integral, draw_angle
from cadlag.network.columns import (
    MANY,
    RELU,
    SIGN,
    Explained,
    Members,
    Rows,
    fill_columns,
    gain,
    inverse_of_sums,
    near_of,
    put_in,
    take_out,
)
from cadlag.network.directions import mean_weights, residual_at
from cadlag.network.images import image_of, squares_in_window, weigh_candidates
from cadlag.network.lattice import candidate, column_of, columns_of, ellipse, record, score
from cadlag.network.model import StableNetwork
from cadlag.network.scales import exchange_scales, shift_largest, walk_noise, walk_tau
from cadlag.network.sweep import SWEEP, polish_units, sweep_units, with_rows
from cadlag.network.transition import ExchangedSweeps, Sweeps, floor_at, gains_of_units, rows_at
from cadlag.network.window import GATHERED, arc_of, crossings, flip, rows_in_reach, signs_of, walk
from cadlag.stable import positive_stable

RNG = np.random.default_rng(5)
N = 25
X = np.column_stack([np.ones(N), RNG.uniform(-2.0, 2.0, (N, 3))])
Y = 1.5 * np.sign(X[:, 1] - 0.4) + 0.2 * RNG.standard_normal(N)


def network(**options):
    return StableNetwork(X, Y, **{"n_units": 7, **options})


def function_covariance(model, units, rows, columns):
    """Covariance of the function between two sets of inputs, given the units and the bulk's scales."""
    left, right = model.columns(units, rows), model.columns(units, columns)
    value = (left * model.variances(units)) @ right.T
    if model.process is not None:
        at, both = model.bulk_position(units), np.vstack([rows, columns])
        value += model.process.covariance(at, both)[: len(rows), len(rows) :]
    return value


def dense(model, units):
    """Covariance of y given the units."""
    return function_covariance(model, units, X, X) + np.diag(model.row_noise(units, 0.0))


def exact_log_density(model, units, level):
    """In fifty digits, given columns, variances and bulk."""
    bulk = model.process.covariance(model.bulk_position(units)) if model.process is not None else np.zeros((N, N))
    with mpmath.workdps(50):
        Phi = mpmath.matrix(model.columns(units).tolist())
        a = mpmath.diag([mpmath.mpf(float(v)) for v in model.variances(units)])
        S = Phi * a * Phi.T + mpmath.matrix(bulk.tolist()) + mpmath.diag(model.row_noise(units, level).tolist())
        L = mpmath.cholesky(S)
        z = mpmath.lu_solve(L, mpmath.matrix(model.y.tolist()))
        log_det = 2 * sum(mpmath.log(L[i, i]) for i in range(N))
        return float(-(N * mpmath.log(2 * mpmath.pi) + log_det + (z.T * z)[0]) / 2)


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "sign"},
        {"activation": "relu"},
        {},
        {"input_scales": True},
        {"bulk_depth": 1},
        {"likelihood": Gaussian(np.linspace(0.01, 2.0, N))},
    ],
)
@pytest.mark.parametrize(("log_v", "level"), [(-14.0, 0.0), (-23.0, 0.0), (-25.0, 0.1), (-3.0, 0.1), (2.0, 0.0)])
def test_log_likelihood_against_the_dense_formula(options, log_v, level):
    model = network(**options)
    worst = 0.0
    for seed in range(4):
        units = model.read(model.sample_prior(np.random.default_rng(seed)))
        units = units._replace(log_v=log_v) if model.noise_variance is None else units
        found = model.log_likelihood_at(model.write(units), level)
        scale = 1.0 + float(Y @ Y) / model.row_noise(units, level).min()
        worst = max(worst, abs(found - exact_log_density(model, units, level)) / scale)
    assert worst <= 1e-9


@pytest.mark.parametrize("options", [{}, {"input_scales": True}, {"likelihood": Gaussian(np.linspace(0.01, 2.0, N))}])
def test_sums_over_blocks_of_rows_are_those_of_all_rows(options):
    """What the likelihood needs of the data can be computed block by block, anywhere."""
    model = network(**options)
    units = model.read(model.sample_prior(np.random.default_rng(4)))
    ground = model.ground(units, 0.0)
    whole, parts = ground.sums(model.weighted(units, ground)), []
    for block in np.array_split(np.arange(N), 4):
        part = model.of_rows(block)
        own = part.ground(units, 0.0)
        parts.append((*own.sums(part.weighted(units, own))[1:], own.square))
    gram, products, square = (sum(pieces) for pieces in zip(*parts))
    np.testing.assert_allclose(gram, whole.gram, rtol=1e-12)
    np.testing.assert_allclose(products, whole.products, rtol=1e-10)
    assert square == pytest.approx(ground.square, rel=1e-13)


def test_the_gaussian_limit_is_the_arc_cosine_kernel():
    """α = 2, many units: ΦA²Φᵀ tends to 1 - 2θ/π for signs and to κ²/2 F₁ for ReLUs."""
    rng = np.random.default_rng(0)
    norms = np.linalg.norm(X, axis=1)
    cosine = np.clip(X @ X.T / np.outer(norms, norms), -1.0, 1.0)
    theta = np.arccos(cosine)
    first = np.outer(norms, norms) * (np.sin(theta) + (np.pi - theta) * cosine) / np.pi
    for activation, limit in (("sign", 1.0 - 2.0 * theta / np.pi), ("relu", first)):
        model = network(activation=activation, alpha=2.0, n_units=40_000, amplitude=1.0)
        if activation == "relu":
            limit = limit * 0.5 * model.relu_scale**2
        units = model.read(model.sample_prior(rng))
        Phi = model.columns(units)
        found = (Phi * model.variances(units)) @ Phi.T
        second = (Phi**2) @ (Phi**2).T / len(units.W)
        error = np.sqrt(np.maximum(second - found**2, 0.0) / len(units.W))
        assert np.all(np.abs(found - limit) <= 5.0 * error + 1e-7)  # arccos near 1 is good to 1e-8


def test_both_kinds_have_the_same_mean_square():
    model = network(n_units=60_000)
    units = model.read(model.sample_prior(np.random.default_rng(1)))
    squares = (model.columns(units) ** 2).mean(axis=0)
    relu = squares[units.kinds == RELU]
    assert np.all(squares[units.kinds == SIGN] == 1.0)
    assert relu.mean() == pytest.approx(1.0, abs=5.0 * relu.std() / math.sqrt(len(relu)))


@pytest.mark.parametrize("on", ["variance", "sd"])
def test_prior_density_is_the_product_of_its_parts(on):
    """Up to a constant: normal directions, stable scales of units, inputs and bulk, half-Cauchy amplitude and noise."""
    model = network(n_units=3, alpha=1.4, input_scales=True, bulk_depth=1, likelihood=Gaussian(prior_on=on, scale=0.5))
    rng, gaps = np.random.default_rng(2), []
    for _ in range(5):
        units = model.read(model.sample_prior(rng))
        scales = np.concatenate([units.log_s, units.log_inputs, units.log_bulk])
        noise = math.exp(units.log_v) if on == "variance" else math.exp(0.5 * units.log_v)
        tau = math.exp(units.log_tau)
        parts = norm.logpdf(units.W).sum() + positive_stable(1.4).log_density(scales).sum()
        parts += halfcauchy.logpdf(tau) + math.log(tau) + halfcauchy.logpdf(noise, scale=0.5) + math.log(noise)
        gaps.append(model.log_prior(model.write(units)) - parts)
    assert len(scales) == 3 + 3 + 5
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


ROUGH = {"bulk_depth": 1, "rough": True}
KNOWN = [None, 0.4, np.linspace(0.1, 2.0, N)]


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize(
    "options", [{}, {"input_scales": True}, {"bulk_depth": 1}, {"bulk_depth": 2, "bulk_order": 0}, ROUGH]
)
def test_atom_against_dense_conditioning(known, options):
    model = network(likelihood=Gaussian(known), **options)
    position = model.sample_prior(np.random.default_rng(3))
    units = model.read(position)
    new = np.column_stack([np.ones(4), RNG.uniform(-2.0, 2.0, (4, 3))])
    S, cross = dense(model, units), function_covariance(model, units, new, X)
    mean = cross @ np.linalg.solve(S, Y)
    covariance = function_covariance(model, units, new, new) - cross @ np.linalg.solve(S, cross.T)
    atom = model.condition(position)
    np.testing.assert_allclose(atom.mean(new), mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(atom.joint(new)[1], covariance, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(atom.moments(new)[0], mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(atom.moments(new)[1], np.diag(covariance), rtol=1e-6, atol=1e-8)
    expected = multivariate_normal(np.zeros(N), S).logpdf(Y)
    assert model.log_likelihood_at(position, 0.0) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("options", [{}, {"bulk_depth": 1}, ROUGH])
def test_leave_one_out_against_leaving_one_out(known, options):
    model = network(likelihood=Gaussian(known), **options)
    position = model.sample_prior(np.random.default_rng(4))
    S = dense(model, model.read(position))
    left_out = model.leave_one_out(position)
    found, (errors, variances) = left_out.log_density, left_out
    for i in (0, 7, N - 1):
        rest = np.delete(np.arange(N), i)
        gain_row = np.linalg.solve(S[np.ix_(rest, rest)], S[rest, i])
        variance = S[i, i] - gain_row @ S[rest, i]
        expected = -0.5 * (math.log(2.0 * math.pi * variance) + (Y[i] - gain_row @ Y[rest]) ** 2 / variance)
        assert found[i] == pytest.approx(expected, rel=1e-7, abs=1e-8)
        assert errors[i] == pytest.approx(Y[i] - gain_row @ Y[rest], rel=1e-6, abs=1e-8)
        assert variances[i] == pytest.approx(variance, rel=1e-7)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("options", [{"bulk_depth": 2}, ROUGH])
def test_gradient_of_the_bulk_given_the_units(known, floor, options):
    model = network(likelihood=Gaussian(known), **options)
    units = model.read(model.sample_prior(np.random.default_rng(14)))
    given = GivenUnits(model.process, model.columns(units), model.variances(units))
    at = np.random.default_rng(15).standard_normal(given.dimension)
    value, gradient = given.log_target_gradient(at, floor)
    assert value == pytest.approx(given.log_target(at, floor), rel=1e-10)
    log_bulk, rest = np.split(at, [model.n_bulk_scales])
    moved = units._replace(log_bulk=log_bulk, log_v=float(rest[0]) if known is None else units.log_v)
    of_model = model.log_likelihood_at(model.write(moved), floor) + given.log_prior(at)
    assert value == pytest.approx(of_model, rel=1e-10)
    for k in range(given.dimension):
        step = 1e-5 * np.eye(given.dimension)[k]
        difference = (given.log_target(at + step, floor) - given.log_target(at - step, floor)) / 2e-5
        assert gradient[k] == pytest.approx(difference, rel=1e-6, abs=1e-6)


def test_weights_are_drawn_from_their_law():
    model = network(n_units=3)
    atom = model.condition(model.sample_prior(np.random.default_rng(6)))
    draws = np.array([atom.sample_weights(RNG) for _ in range(4000)])
    B = atom.factor @ atom.factor.T
    covariance = atom.spread[:, None] * np.linalg.inv(B) * atom.spread
    np.testing.assert_allclose(draws.mean(axis=0), atom.weights(), atol=5.0 * np.sqrt(np.diag(covariance) / 4000).max())
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.12 * np.diag(covariance).max())


# Low-rank updates ----------------------------------------------------------------------------------------------------


def pieces(model, units):
    """Rows, fit and noise of the units as they stand."""
    ground = model.ground(units, 0.0)
    sums = ground.sums(model.weighted(units, ground))
    C = inverse_of_sums(sums.gram, model.variances(units), ground.noise)
    inputs = model.scaled(units)
    rows = Rows(inputs, np.ascontiguousarray(inputs.T), ground.omega, ground.V, ground.pulled)
    return rows, Explained(*sums, C), ground.noise


def residual_of(rows, fit):
    """What the units that are in leave of the responses, at all rows."""
    return residual_at(np.arange(len(rows.omega)), mean_weights(fit), rows, fit)


def members_of(rows, units):
    return Members(units.W, units.log_s, units.kinds, near_of(rows.X, units.W))


FEW_NEIGHBORS = Neighbors.find(X, np.zeros(4), 3, 5)
SPARSE = {"bulk_depth": 1, "neighbors": FEW_NEIGHBORS}
GROUNDS = [
    {},
    {"likelihood": Gaussian(np.linspace(0.5, 2.0, N))},
    {"bulk_depth": 1},
    SPARSE,
    {**SPARSE, "rough": True, "likelihood": Gaussian(np.linspace(0.5, 2.0, N))},
]


def copy_of(fit):
    return Explained(*(part.copy() for part in fit))


@pytest.mark.parametrize(
    "options", [SPARSE, {**SPARSE, "rough": True, "likelihood": Gaussian(np.linspace(0.01, 2.0, N))}]
)
@pytest.mark.parametrize(("log_v", "level"), [(-14.0, 0.0), (-25.0, 0.1), (2.0, 0.0)])
def test_units_on_a_sparse_precision_against_its_dense_formula(options, log_v, level):
    """The likelihood in fifty digits, given columns, variances and the numbers of U."""
    model = network(**options)
    for seed in range(4):
        units = model.read(model.sample_prior(np.random.default_rng(seed)))
        units = units._replace(log_v=log_v) if model.noise_variance is None else units
        ground, Phi = model.ground(units, level), model.columns(units)
        U = np.zeros((N, N))
        for j, (members, size) in enumerate(zip(ground.V.sparse.sets.members, ground.V.sparse.sets.sizes)):
            U[members[:size], j] = ground.V.sparse.values[j, :size]
        assert (U != 0.0).sum() <= 4 * N
        with mpmath.workdps(50):
            W, exact = mpmath.diag(ground.omega.tolist()), mpmath.matrix(U.tolist())
            a = mpmath.diag([mpmath.mpf(float(v)) for v in model.variances(units)])
            S = (
                mpmath.inverse(W * exact * exact.T * W)
                + mpmath.matrix(Phi.tolist()) * a * mpmath.matrix(Phi.tolist()).T
            )
            L = mpmath.cholesky(S)
            z = mpmath.lu_solve(L, mpmath.matrix(Y.tolist()))
            log_det = 2 * sum(mpmath.log(L[i, i]) for i in range(N))
            expected = float(-(N * mpmath.log(2 * mpmath.pi) + log_det + (z.T * z)[0]) / 2)
        scale = 1.0 + float(Y @ Y) / model.row_noise(units, level).min()
        assert abs(model.log_likelihood_at(model.write(units), level) - expected) / scale <= 1e-9


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("known", [None, np.linspace(0.05, 1.0, N)])
def test_with_all_rows_for_neighbours_a_sparse_bulk_is_the_full_one(rough, known):
    """Likelihood, predictions, their covariance, rows left out."""
    options = {"bulk_depth": 1, "rough": rough, "likelihood": Gaussian(known)}
    full, sparse = network(**options), network(**options, neighbors=Neighbors.find(X, np.zeros(4), N - 1, N))
    new = np.column_stack([np.ones(6), np.random.default_rng(3).uniform(-2.0, 2.0, (6, 3))])
    for seed in range(5):
        position = full.sample_prior(np.random.default_rng(seed))
        assert sparse.log_likelihood_at(position, 0.0) == pytest.approx(full.log_likelihood_at(position, 0.0), rel=1e-8)
        one, other = full.condition(position), sparse.condition(position)
        for found, expected in zip((*other.moments(new), *other.joint(new)), (*one.moments(new), *one.joint(new))):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other.mean(new), one.mean(new), rtol=1e-5, atol=1e-6)
        for found, expected in zip(sparse.leave_one_out(position), full.leave_one_out(position)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_what_a_new_row_takes_of_few_neighbours():
    """Mean b*ᵀ(y - Φw̄)_N + φ*ᵀw̄ and variance d* + kᵀCov(w)k, k = φ* - Φ_Nᵀb*, with Cov(w) by the inverse of V."""
    model = network(**SPARSE)
    new = np.column_stack([np.ones(6), np.random.default_rng(3).uniform(-2.0, 2.0, (6, 3))])
    for seed in range(4):
        units = model.read(model.sample_prior(np.random.default_rng(seed)))
        position, Phi, at_new = model.write(units), model.columns(units), model.columns(units, new)
        ground, process = model.ground(units, 0.0), model.process
        V = ground.omega[:, None] * ground.V.apply(np.eye(N)) * ground.omega
        covariance = np.linalg.inv(np.diag(1.0 / model.variances(units)) + Phi.T @ V @ Phi)
        weights = covariance @ Phi.T @ V @ Y
        Sigma = process.covariance(model.bulk_position(units), np.vstack([X, new]))
        noisy = Sigma[:N, :N] + np.diag(model.row_noise(units, 0.0))
        rows = FEW_NEIGHBORS.asked(new)
        for k, (found, spread) in enumerate(zip(*model.condition(position).moments(new))):
            asked, cross = rows[k], Sigma[N + k, rows[k]]
            b = np.linalg.solve(noisy[np.ix_(asked, asked)], cross)
            left = at_new[k] - Phi[asked].T @ b
            mean = b @ (Y - Phi @ weights)[asked] + at_new[k] @ weights
            assert found == pytest.approx(mean, rel=1e-6, abs=1e-8)
            assert spread == pytest.approx(
                Sigma[N + k, N + k] - b @ cross + left @ covariance @ left, rel=1e-6, abs=1e-8
            )


@pytest.mark.parametrize("options", GROUNDS)
def test_a_column_taken_out_and_put_in_again(options):
    model = network(**options)
    units = model.read(model.sample_prior(np.random.default_rng(8)))
    rows, fit, noise = pieces(model, units)
    before = copy_of(fit)
    take_out(2, fit)
    rest = np.delete(np.arange(7), 2)
    without = np.linalg.inv(np.diag(noise / model.variances(units)[rest]) + before.gram[np.ix_(rest, rest)])
    np.testing.assert_allclose(fit.C[np.ix_(rest, rest)], without, rtol=1e-8, atol=1e-12)
    assert not fit.C[2].any() and not fit.C[:, 2].any()
    P = before.images[:, rest] @ without
    np.testing.assert_allclose(residual_of(rows, fit), rows.pulled - P @ before.products[rest], rtol=1e-8, atol=1e-10)
    put_in(2, model.variances(units)[2], noise, fit)
    for one, other in zip(fit, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("options", GROUNDS)
@pytest.mark.parametrize("width", [np.pi, 1.3, 0.2, 1e-3])
@pytest.mark.parametrize("turned", [-1.4, 0.1, 1.5])
def test_every_arc_of_a_window_and_every_flip(options, width, turned):
    """S and t of each candidate, and image and sums after a move to it, against the column written out."""
    model, rng = network(activation="sign", **options), np.random.default_rng(9)
    units = model.read(model.sample_prior(rng))
    e, f = rng.standard_normal((2, 4))
    units.W[4] = np.cos(turned) * e + np.sin(turned) * f
    rows, fit, noise = pieces(model, units)
    take_out(4, fit)
    members = members_of(rows, units)
    low = turned - 0.4 * width
    flipping, ends = crossings(4, e, f, low, low + width, rows, members.near)
    assert ends[0] == low and ends[-1] == low + width and np.all(np.diff(ends) >= 0.0)
    arc, signs = arc_of(turned, ends), signs_of(4, flipping, rows, members)
    assert ends[arc] <= turned <= ends[arc + 1]
    squares = squares_in_window(4, flipping, arc, signs, rows, fit)
    precision, pull = walk(4, flipping, arc, signs, squares, rows, fit, noise)
    V, residual = rows.V.apply(np.eye(N)), residual_of(rows, fit)
    assert len(flipping) == N if width == np.pi else len(flipping) < N
    for k, theta in enumerate(0.5 * (ends[1:] + ends[:-1])):
        column = np.where(X @ (np.cos(theta) * e + np.sin(theta) * f) >= 0.0, 1.0, -1.0) * rows.omega
        overlap = fit.images.T @ column
        expected = (column @ V @ column - overlap @ fit.C @ overlap) / noise
        assert precision[k] == pytest.approx(expected, rel=1e-8)
        assert pull[k] == pytest.approx(column @ residual / noise, rel=1e-7, abs=1e-9)
        moved, between = copy_of(fit), slice(min(arc, k), max(arc, k))
        flip(4, flipping[between], signs[between], squares[k], rows, moved)
        np.testing.assert_allclose(moved.images[:, 4], V @ column, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(moved.products[4], column @ rows.pulled, rtol=1e-8, atol=1e-10)
        own = np.where(np.arange(7) == 4, column @ V @ column, overlap)
        np.testing.assert_allclose(moved.gram[4], own, rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(moved.gram[:, 4], moved.gram[4])


def test_rows_are_gathered_in_blocks_that_do_not_show():
    """More rows flip than one block holds, on both sides of where the unit is."""
    n, rng = 3 * GATHERED + 5, np.random.default_rng(10)
    model = StableNetwork(
        np.column_stack([np.ones(n), rng.standard_normal((n, 3))]), rng.standard_normal(n), 7, activation="sign"
    )
    units = model.read(model.sample_prior(np.random.default_rng(8)))
    rows, fit, noise = pieces(model, units)
    members = members_of(rows, units)
    take_out(4, fit)
    flipping = rng.permutation(n)[: 2 * GATHERED + 100].astype(np.int64)
    signs = signs_of(4, flipping, rows, members)
    arc = GATHERED // 2 + 7
    precision, pull = walk(4, flipping, arc, signs, np.full(len(flipping) + 1, float(n)), rows, fit, noise)
    for reached in (0, 3, arc - 1, arc, arc + 1, arc + GATHERED + 1, len(flipping)):
        column = fit.images[:, 4].copy()
        between = flipping[min(arc, reached) : max(arc, reached)]
        column[between] *= -1.0
        h = fit.images.T @ column
        h[4] = 0.0  # its own entries of C are zero
        np.testing.assert_allclose(precision[reached], (n - h @ fit.C @ h) / noise, rtol=1e-9)
        residual = rows.pulled - fit.images @ (fit.C @ fit.products)
        np.testing.assert_allclose(pull[reached], column @ residual / noise, rtol=1e-9)


@pytest.mark.parametrize("options", GROUNDS)
@pytest.mark.parametrize("kind", [SIGN, RELU])
@pytest.mark.parametrize("spacing", [2.0 * np.pi / 8, 0.2, 1e-3])
def test_the_lattice_scores_and_records_every_candidate(options, kind, spacing):
    """Of both kinds, the present one's own first, against columns written out."""
    model, rng = network(**options), np.random.default_rng(9)
    units = model.read(model.sample_prior(rng))
    units.kinds[4] = kind
    rows, fit, noise = pieces(model, units)
    take_out(4, fit)
    lattice = ellipse(rng, units.W[4], 8, rows.XT)
    angles = (np.arange(8) - 3) * spacing
    lattice = lattice._replace(cosines=np.cos(angles), sines=np.sin(angles), present=3)
    directions, kinds = [candidate(lattice, c % 8) for c in range(16)], [kind] * 8 + [1 - kind] * 8
    np.testing.assert_array_equal(directions[3], units.W[4])
    columns = np.empty((16, N))
    columns_of(lattice, kind, rows.omega, model.relu_scale, columns[:8])
    columns_of(lattice, 1 - kind, rows.omega, model.relu_scale, columns[8:])
    expected = [rows.omega * np.where(X @ w >= 0.0, 1.0, -1.0) if kind == SIGN
                else rows.omega * model.relu_scale * np.maximum(X @ w, 0.0)
                for w, kind in zip(directions, kinds)]  # fmt: skip
    np.testing.assert_allclose(columns, expected, rtol=1e-12, atol=1e-14)
    V, residual = rows.V.apply(np.eye(N)), residual_of(rows, fit)
    weighed, images = weigh_candidates(4, kind, True, lattice, rows, fit, model.relu_scale)
    alone, alone_images = weigh_candidates(4, kind, False, lattice, rows, fit, model.relu_scale)
    np.testing.assert_allclose(weighed.squares[:8], alone.squares)
    np.testing.assert_allclose(weighed.overlaps[:8], alone.overlaps)
    if len(rows.V.full):
        np.testing.assert_allclose(images[:8], alone_images, rtol=1e-10, atol=1e-12)
    precision, pull = score(weighed, fit, noise)
    for c, column in enumerate(columns):
        assert weighed.squares[c] == pytest.approx(column @ V @ column, rel=1e-10)
        overlap = fit.images.T @ column
        assert precision[c] == pytest.approx((column @ V @ column - overlap @ fit.C @ overlap) / noise, rel=1e-8)
        assert pull[c] == pytest.approx(column @ residual / noise, rel=1e-7, abs=1e-9)
        moved, own_kind = copy_of(fit), kind if c < 8 else 1 - kind
        chosen = column_of(lattice, c % 8, own_kind, rows.omega, model.relu_scale)
        np.testing.assert_array_equal(chosen, column)
        record(4, c, chosen, images[c] if len(images) else image_of(chosen, rows.V), weighed, moved)
        own = np.where(np.arange(7) == 4, column @ V @ column, overlap)
        np.testing.assert_allclose(moved.gram[4], own, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(moved.images[:, 4], V @ column, rtol=1e-10, atol=1e-12)
        assert moved.products[4] == pytest.approx(column @ rows.pulled, rel=1e-10)


def of_many_rows(n=MANY + 700, **options):
    """A network of more rows than are looked at one by one, its units, and what the moves work on."""
    rng = np.random.default_rng(20)
    inputs = np.column_stack([np.ones(n), rng.standard_normal((n, 3))])
    model = StableNetwork(inputs, rng.standard_normal(n), 7, **options)
    units = model.read(model.sample_prior(np.random.default_rng(8)))
    return model, units, *pieces(model, units)


@pytest.mark.parametrize("kind", [SIGN, RELU])
def test_candidates_of_many_rows_are_weighed_in_parts_that_do_not_show(kind):
    model, units, rows, fit, _ = of_many_rows()
    lattice = ellipse(np.random.default_rng(3), units.W[4], 8, rows.XT)
    weighed, images = weigh_candidates(4, kind, True, lattice, rows, fit, model.relu_scale)
    assert len(images) == 0
    for c in range(16):
        own_kind = kind if c < 8 else 1 - kind
        column = fill_columns(
            rows.X, rows.omega, candidate(lattice, c % 8)[None], np.array([own_kind]), model.relu_scale
        )[:, 0]
        np.testing.assert_allclose(weighed.squares[c], column @ column, rtol=1e-10)
        np.testing.assert_allclose(weighed.overlaps[c], fit.images.T @ column, rtol=1e-9, atol=1e-8)
        assert weighed.products[c] == pytest.approx(column @ rows.pulled, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("turned", [0.0, 1e-4, 0.1, 2.0])
@pytest.mark.parametrize("width", [1e-5, 1e-3, 0.1, 1.0, 3.1, np.pi])
def test_the_rows_that_flip_are_all_among_those_in_reach(width, turned):
    """Bit for bit those of a pass over all rows, though the unit has turned since it was looked where they are."""
    _, units, rows, _, _ = of_many_rows(activation="sign")
    near, rng = near_of(rows.X, units.W), np.random.default_rng(4)
    everywhere = near._replace(sines=np.zeros((0, 0), dtype=np.float32))
    n_flipped = 0
    for j in range(7):
        e = np.cos(turned) * units.W[j] + np.sin(turned) * rng.standard_normal(4)
        f = rng.standard_normal(4)
        for low in (-0.7 * width, -0.1 * width):
            found = crossings(j, e, f, low, low + width, rows, near)
            for one, other in zip(found, crossings(j, e, f, low, low + width, rows, everywhere)):
                np.testing.assert_array_equal(one, other)
            n_flipped += len(found[0])
    assert (n_flipped > 0) == (width > 1e-4)


def test_few_rows_are_in_reach_of_a_narrow_window():
    """It would be of no use if most of them were."""
    _, units, rows, _, _ = of_many_rows(activation="sign")
    near, f = near_of(rows.X, units.W), np.random.default_rng(4).standard_normal(4)
    for j in range(7):
        assert len(rows_in_reach(j, units.W[j], f, -1e-3, 1e-3, near)) < 0.05 * len(rows.X)


def test_the_residual_at_some_of_many_rows():
    _, _, rows, fit, _ = of_many_rows()
    taken = np.array([5, 17, 4100, 3])
    expected = rows.pulled - fit.images @ (fit.C @ fit.products)
    np.testing.assert_allclose(residual_at(taken, mean_weights(fit), rows, fit), expected[taken], rtol=1e-9)


def test_warm_up_begins_with_some_of_many_rows_and_ends_with_all():
    n, n_warmup = 20_000, 100
    sizes = [rows_at(iteration, n_warmup, n) for iteration in range(n_warmup + 5)]
    assert sizes[0] == 1250 and sizes[63] == 10_000 and set(sizes[64:]) == {n} and sizes == sorted(sizes)
    assert {rows_at(iteration, n_warmup, MANY) for iteration in range(n_warmup)} == {MANY}
    assert rows_at(0, 0, n) == n


def test_sweeps_of_some_rows_are_those_of_a_network_that_has_no_others():
    """To the bit, also where the noise is known row by row."""
    for options in ({}, {"likelihood": Gaussian(np.linspace(0.5, 2.0, MANY + 700))}):
        model = of_many_rows(**options)[0]
        kernel, rng = Sweeps(model, 100), np.random.default_rng(6)
        some = np.sort(np.random.default_rng(len(model.y)).permutation(len(model.y))[: rows_at(0, 100, len(model.y))])
        part = model.of_rows(some)
        state, info = kernel.step(rng, kernel.start_from(model.sample_prior(np.random.default_rng(2))), 0.0)
        alone = Sweeps(part, 100)
        alone._size = kernel._size  # floors are in units of all responses
        start = alone.start_from(model.sample_prior(np.random.default_rng(2)))
        other, own = alone.step(np.random.default_rng(6), start, 0.0)
        np.testing.assert_array_equal(state["position"], other["position"])
        assert info["log_target"] == own["log_target"] and math.isnan(info["probe0"])
        last, said = kernel.step(rng, {**state, "iteration": 99}, 0.0)
        assert math.isfinite(said["probe0"]) and len(last["position"]) == model.dimension


def test_windows_of_many_rows_flip_no_more_of_them():
    few, many = with_rows(SWEEP, MANY), with_rows(SWEEP, 100 * MANY)
    assert few == SWEEP
    assert many.whole == pytest.approx(0.01 * SWEEP.whole) and many.widest == pytest.approx(0.01 * SWEEP.widest)


@pytest.mark.parametrize("options", [{"bulk_depth": 1}, SPARSE])
def test_hinges_that_count_no_row_are_nothing(options):
    """To the bit: what rounding leaves of them would be a column, with heavy-tailed weights."""
    model, rng = network(**options, likelihood=Gaussian(1e-8)), np.random.default_rng(9)
    units = model.read(model.sample_prior(rng))
    units.kinds[4], units.W[4] = RELU, [1.0, 0.1, 0.0, 0.1][: X.shape[1]]
    rows, fit, _ = pieces(model, units)
    take_out(4, fit)
    angles = (np.arange(8) - 1) * (np.pi / 4.0)
    lattice = ellipse(rng, units.W[4], 8, rows.XT)
    lattice = lattice._replace(cosines=np.cos(angles), sines=np.sin(angles), present=1)
    lattice = lattice._replace(other=1e-3 * lattice.other, across=1e-3 * lattice.across)
    columns = np.empty((8, N))
    columns_of(lattice, RELU, rows.omega, model.relu_scale, columns)
    nothing = (columns == 0.0).all(axis=1)
    assert 0 < nothing.sum() < 8
    weighed, images = weigh_candidates(4, RELU, False, lattice, rows, fit, model.relu_scale)
    assert (weighed.squares[nothing] == 0.0).all() and (weighed.squares[~nothing] > 0.0).all()
    if len(images):
        assert (images[nothing] == 0.0).all()


@pytest.mark.parametrize("options", GROUNDS)
@pytest.mark.parametrize("activation", ["sign", "relu", "auto"])
def test_what_sweeps_keep_up_to_date_is_what_they_end_with(options, activation):
    model = network(activation=activation, **options)
    units = model.read(model.sample_prior(np.random.default_rng(12)))
    kernel, rng = Sweeps(model, 0), np.random.default_rng(13)
    ground, before = model.ground(units, 0.0), units.W.copy()
    rows, members, fit, law = kernel.prepare(units, ground)
    for _ in range(3):
        sweep_units(rng, rows, members, fit, law, activation == "auto")
        polish_units(rng, 20, rows, members, fit, law)
    assert not np.allclose(units.W, before)
    for kept, afresh in zip(fit, kernel.prepare(units, ground)[2], strict=True):
        np.testing.assert_allclose(kept, afresh, rtol=1e-7, atol=1e-9)


def test_the_angle_of_a_direction_on_its_circle():
    rng = np.random.default_rng(14)
    e, f = rng.standard_normal((2, 5))
    for theta in (-1.5, -0.3, 0.0, 0.8, 1.5):
        assert angle_of(3.0 * (np.cos(theta) * e + np.sin(theta) * f), e, f) == pytest.approx(theta, abs=1e-12)


@pytest.mark.parametrize("options", GROUNDS)
def test_gain_is_a_difference_of_log_likelihoods(options):
    model = network(activation="sign", **options)
    units = model.read(model.sample_prior(np.random.default_rng(10)))
    rows, fit, noise = pieces(model, units)
    take_out(0, fit)
    column = model.columns(units)[:, 0] * rows.omega
    overlap = fit.images.T @ column
    S = (column @ fit.images[:, 0] - overlap @ fit.C @ overlap) / noise
    found = gain(model.variances(units)[0], S, column @ residual_of(rows, fit) / noise)
    log_s = units.log_s.copy()
    log_s[0] = -1000.0
    off = model.log_likelihood_at(model.write(units._replace(log_s=log_s)), 0.0)
    assert found == pytest.approx(model.log_likelihood_at(model.write(units), 0.0) - off, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("m", [0, 1, 2, 5, 8])
def test_mass_of_an_arc_anywhere(m):
    """∫|cos|^m from 0, which grows across the ends of the half circle too."""
    for theta in (-4.5, -2.0, -1.5, 0.0, 0.3, 1.6, 3.3, 7.9):
        grid = np.linspace(0.0, theta, 40_001)
        assert arc_mass(theta, m) == pytest.approx(np.trapezoid(np.abs(np.cos(grid)) ** m, grid), abs=1e-6)


@pytest.mark.parametrize("m", [0, 1, 2, 5, 8])
def test_angles_follow_the_power_of_the_cosine(m):
    rng = np.random.default_rng(m)
    draws = [draw_angle(rng, -1.2, 0.7, m) for _ in range(2000)]
    total = cosine_integral(0.7, m) - cosine_integral(-1.2, m)
    grid = np.linspace(-1.2, 0.7, 20_001)
    assert total == pytest.approx(np.trapezoid(np.cos(grid) ** m, grid), rel=1e-6)
    cdf = np.vectorize(lambda t: (cosine_integral(t, m) - cosine_integral(-1.2, m)) / total)
    assert kstest(draws, cdf).pvalue > 1e-4


# Sampling ------------------------------------------------------------------------------------------------------------


def test_prior_is_recovered_without_data():
    model = StableNetwork(np.zeros((0, 3)), np.zeros(0), n_units=4, input_scales=True)
    kernel, rng = Sweeps(model, 0), np.random.default_rng(12)
    state, draws = kernel.start_from(model.sample_prior(rng)), []
    for i in range(12_000):
        state, _ = kernel.step(rng, state, 0.0)
        if i % 12 == 0:
            draws.append(state["position"])
    exact = np.array([model.sample_prior(rng) for _ in range(len(draws))])
    columns = [c for c in range(model.dimension) if not 16 <= c < 20]  # all but the kinds
    p_values = [kstest(np.array(draws)[:, c], exact[:, c]).pvalue for c in columns]
    assert min(p_values) > 1e-4
    assert np.mean(np.array(draws)[:, 16:20]) == pytest.approx(0.5, abs=0.05)


def test_floor_falls_and_ends_before_warm_up_does():
    floors = np.array([floor_at(i, 400) for i in range(401)])
    assert np.all(np.diff(floors) <= 0.0)
    assert floors[0] > 0.3
    assert np.all(floors[320:] == 0.0)
    assert np.all(floors[:320] > 0.0)


@pytest.mark.parametrize("maker", [Sweeps, ExchangedSweeps])
def test_nothing_adapts_after_warm_up(maker):
    kernel, rng = maker(network(bulk_depth=1), 12), np.random.default_rng(1)
    state = kernel.init(rng)

    def learned(state):
        rungs = state.get("rungs", [state])
        return [(rung["bulk"]["step_size"], rung["bulk"]["factor"].tolist()) for rung in rungs]

    seen = []
    for _ in range(20):
        state, _ = kernel.step(rng, state, 0.0)
        seen.append(learned(state))
    assert seen[5] != seen[11]
    assert all(found == seen[11] for found in seen[11:])


def test_a_jump_is_found():
    x = np.linspace(-1.0, 1.0, 60)
    y = 2.0 * (x > 0.37) + 0.1 * np.random.default_rng(0).standard_normal(60)
    model = StableNetwork(np.column_stack([np.ones(60), x]), y - y.mean(), n_units=10)
    kernel, rng = Sweeps(model, 300), np.random.default_rng(1)
    state = kernel.init(rng)
    for _ in range(400):
        state, _ = kernel.step(rng, state, 0.0)
    fitted = model.condition(state["position"]).mean(model.X) + y.mean()
    assert np.abs(fitted - 2.0 * (x > 0.37)).max() < 0.5


@pytest.mark.parametrize("options", [{"input_scales": True}, {"bulk_depth": 1}])
def test_log_likelihood_of_a_step_is_that_of_its_position(options):
    model = network(**options)
    kernel, rng = Sweeps(model, 0), np.random.default_rng(2)
    state = kernel.start_from(model.sample_prior(rng))
    for _ in range(20):
        state, info = kernel.step(rng, state, 0.0)
        assert info["log_target"] == pytest.approx(model.log_target(state["position"], 0.0), rel=1e-8, abs=1e-7)
        at = model.condition(state["position"]).mean(X[kernel._probes])
        np.testing.assert_allclose([info[f"probe{k}"] for k in range(8)], at, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_units", [1, 2, 7])
def test_walks_of_scales_know_the_likelihood_that_they_end_with(n_units):
    """Of what a move leaves as it is, such as a_j where all scales are shifted against τ, nothing is computed anew."""
    model, rng = network(n_units=n_units), np.random.default_rng(3)
    units = model.read(model.sample_prior(rng))
    ground = model.ground(units, 0.0)
    sums = ground.sums(model.weighted(units, ground))
    given = sums.gram, sums.products, ground.square, N
    priors = model.priors()

    def variances():
        return np.exp(2.0 * log_tau + model.log_factor + log_s)

    log_s, log_tau, log_v = units.log_s.copy(), units.log_tau, units.log_v
    value, moved = ground.log_marginal(sums, model.variances(units))[0], set()
    for step in range(120):
        before = (log_tau, log_v, *log_s)
        if step % 4 == 0:
            value = exchange_scales(
                rng, log_s, 2.0 * log_tau + model.log_factor, math.exp(log_v), priors.fixed, *given, value
            )
        elif step % 4 == 1:
            log_tau, value = shift_largest(rng, log_s, log_tau, math.exp(log_v), priors, *given, value)
        elif step % 4 == 2:
            log_tau, value = walk_tau(rng, log_s, log_tau, math.exp(log_v), priors, *given, value)
        else:
            log_v, value = walk_noise(rng, variances(), log_v, 0.0, priors, *given, value)
        assert value == pytest.approx(log_marginal_of_sums(*given, variances(), math.exp(log_v))[0], abs=1e-8)
        moved |= {step % 4} if before != (log_tau, log_v, *log_s) else set()
    assert moved == ({1, 2, 3} if n_units == 1 else {0, 1, 2, 3})


# Breaks --------------------------------------------------------------------------------------------------------------


def test_jumps_are_summed_between_neighbours():
    planes = Planes(
        np.array([0, 0, 0, 1, 1]),
        np.array([2.0, 1.0, 5.0, -3.0, 4.0]),
        np.array([[-0.5, 1.0], [0.3, -0.5], [0.0, 0.0], [-9.0, 1.0], [-1.2, 1.0]]),
    )  # at 0.5 up 2; at 0.6 down 1 (its normal points left); nowhere; outside; at 1.2 up 4
    net, where = jumps_between(planes, np.array([0.0, 1.0, 2.0]), 2)
    np.testing.assert_allclose(net, [[1.0, 0.0], [0.0, 4.0]])
    assert where[0, 0] == pytest.approx((2.0 * 0.5 + 1.0 * 0.6) / 3.0)
    assert where[1, 1] == pytest.approx(1.2)
    assert where[0, 1] == pytest.approx(1.5)


def test_planes_that_divide_alike_are_one():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(200), rng.uniform(-1.0, 1.0, (200, 2))])
    one, other = np.array([0.0, 1.0, 1.0]), np.array([-0.2, 0.0, -1.0])
    coordinates = np.concatenate(
        [one + 0.02 * rng.standard_normal((30, 3)), -other + 0.02 * rng.standard_normal((20, 3))]
    )
    planes = Planes(np.r_[np.arange(30), np.arange(20)], np.r_[np.full(30, 3.0), np.full(20, -2.0)], coordinates)
    first, second = cluster_planes(planes, inputs, 30, 0.5)[:2]
    assert np.mean(first.net == 3.0) == 1.0
    assert np.mean(np.abs(second.net) > 0.5) == pytest.approx(20 / 30)
    assert np.median(second.net[second.net != 0.0]) == 2.0  # turned so that it goes up
    assert second.leader @ other > 0.0
    assert len(first.middles) == 30
    assert len(second.middles) == 20
    np.testing.assert_allclose(np.linalg.norm(first.middles[:, 1:], axis=1), 1.0)
    np.testing.assert_allclose(first.leader, one / np.sqrt(2.0), atol=0.02)


def test_a_draws_hyperplane_is_the_mean_by_jumps():
    """Two units of one draw that divide alike, one of them written with its normal turned."""
    inputs = np.column_stack([np.ones(101), np.linspace(-1.0, 1.0, 101), np.zeros(101)])
    planes = Planes(np.array([0, 0]), np.array([3.0, -1.0]), np.array([[-0.4, 4.0, 0.0], [0.14, -1.0, 0.0]]))
    (one,) = cluster_planes(planes, inputs, 1, 0.5)
    np.testing.assert_allclose(one.net, [4.0])
    np.testing.assert_allclose(one.middles, [[-(3.0 * 0.1 + 0.14) / 4.0, 1.0, 0.0]])


def test_replace_keeps_nothing_stale():
    model = network()
    assert model.square == pytest.approx(float(Y @ Y))
    assert replace(model, y=2.0 * Y).square == pytest.approx(4.0 * float(Y @ Y))


@pytest.mark.parametrize("options", GROUNDS)
def test_gains_of_units_are_what_the_likelihood_loses_without_them(options):
    model = network(**options)
    units = model.read(model.sample_prior(np.random.default_rng(20)))
    _, fit, noise = pieces(model, units)
    whole = model.log_likelihood_at(model.write(units), 0.0)
    found = gains_of_units(fit.C @ fit.products, fit.C, model.variances(units), noise)
    for j in range(model.n_units):
        log_s = units.log_s.copy()
        log_s[j] = -1000.0
        without = model.log_likelihood_at(model.write(units._replace(log_s=log_s)), 0.0)
        assert found[j] == pytest.approx(whole - without, rel=1e-6, abs=1e-7)
