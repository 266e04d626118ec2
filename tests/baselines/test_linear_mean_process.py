"""The process about a linear mean: its densities, regression and predictions against integrals and dense algebra."""

import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gamma, kv, logsumexp

from cadlag.baselines.bayes_gp import least_squares
from cadlag.baselines.bayes_gp.least_squares import independent_columns, regress
from cadlag.baselines.bayes_gp.model import LinearMeanProcess
from cadlag.baselines.bayes_gp.prior import OFFSET, Values, log_density, log_variance_prior
from cadlag.baselines.bayes_gp.rounds import MetropolisRounds
from cadlag.kernels import stationary
from cadlag.kernels.stationary import CORRELATIONS, Stationary
from cadlag.linalg import gaussian

RNG = np.random.default_rng(5)
N = 14
X = RNG.uniform(size=(N, 3))
Y = 1.0 + X @ [2.0, -1.0, 0.5] + np.sin(6.0 * X[:, 0]) + 0.1 * RNG.standard_normal(N)
NEW = RNG.uniform(-0.2, 1.2, size=(5, 3))
AT = Values(np.array([0.4, 0.9, 0.2]), 0.13, 0.7, 5.0, 1.3)


def process(correlation="expsep", **settings):
    return LinearMeanProcess(X, Y, correlation, **settings)


def values_of(model):
    return AT._replace(ranges=AT.ranges[: model.n_ranges])


def dense(model, A, B, ranges):
    """K* written out."""
    gaps = A[:, None] - B[None]
    if model.correlation == "matern":
        r = np.sqrt((gaps**2).sum(axis=2)) / ranges[0]
        with np.errstate(invalid="ignore"):
            K = r**model.nu * kv(model.nu, r) / (2.0 ** (model.nu - 1.0) * gamma(model.nu))
        return np.where(r == 0.0, 1.0, K)
    return np.exp(-(gaps**2 / ranges).sum(axis=2))


def dense_K(model, at):
    return dense(model, model.X, model.X, at.ranges) + at.nugget * np.eye(len(model.X))


# Correlations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nu", "closed"),
    [
        (0.5, lambda r: np.exp(-r)),
        (1.5, lambda r: (1.0 + r) * np.exp(-r)),
        (2.5, lambda r: (1.0 + r + r**2 / 3.0) * np.exp(-r)),
    ],
)
def test_matern_in_closed_form(nu, closed):
    r = np.concatenate([[0.0, 1e-9], np.geomspace(1e-3, 50.0, 40)])
    np.testing.assert_allclose(stationary.matern(r, nu), closed(r), rtol=1e-7)
    compiled = Stationary("matern", nu).cross(r[:, None], np.zeros((1, 1)), np.ones(1))[:, 0]
    np.testing.assert_allclose(compiled, closed(r), rtol=1e-13)


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.5, 2.5, 7.0])
def test_matern_at_its_ends(nu):
    ends = np.array([[0.0], [1e-200], [1e5], [1e200]])
    near, far = np.split(Stationary("matern", nu).cross(ends, np.zeros((1, 1)), np.ones(1))[:, 0], 2)
    np.testing.assert_allclose(near, 1.0, rtol=1e-12)
    assert np.all(far < 1e-280)


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_covariance(correlation):
    model = process(correlation)
    at = values_of(model)
    np.testing.assert_allclose(np.tril(model.covariance(at.ranges, at.nugget)), np.tril(dense_K(model, at)), rtol=1e-12)
    np.testing.assert_allclose(
        Stationary(correlation).cross(NEW, X, at.ranges), dense(model, NEW, X, at.ranges), rtol=1e-12
    )


# Regression ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_generalised_least_squares(correlation):
    model = process(correlation)
    at = values_of(model)
    K, F, fit = dense_K(model, at), np.column_stack([np.ones(N), X]), model.fit(at)
    inverse = np.linalg.inv(K)
    gram = F.T @ inverse @ F
    b = np.linalg.solve(gram, F.T @ inverse @ Y)
    np.testing.assert_allclose(fit.coefficients, b, rtol=1e-9)
    assert fit.log_det == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-12)
    assert fit.log_det_coefficients == pytest.approx(-np.linalg.slogdet(gram)[1], rel=1e-10)
    assert fit.square == pytest.approx(Y @ inverse @ Y - b @ gram @ b, rel=1e-9)
    # Normal equations, and λ as the minimum of the quadratic form.
    np.testing.assert_allclose(F.T @ inverse @ (Y - F @ fit.coefficients), 0.0, atol=1e-11)
    np.testing.assert_allclose(fit.errors, inverse @ (Y - F @ b), rtol=1e-8, atol=1e-10)
    for step in 0.1 * RNG.standard_normal((20, 4)):
        rest = Y - F @ (b + step)
        assert rest @ inverse @ rest > fit.square
    P = inverse - inverse @ F @ np.linalg.solve(gram, F.T @ inverse)
    np.testing.assert_allclose(np.tril(fit.projected_inverse()), np.tril(P), atol=1e-10)


def test_exactly_linear_data_leave_nothing():
    assert 0.0 <= LinearMeanProcess(X, 3.0 + X @ [1.0, 2.0, 3.0]).fit(AT).square < 1e-25


def test_adding_a_linear_function():
    """Shifts the mean by it and leaves λ, hence the posterior, as they were."""
    slope = np.array([30.0, -20.0, 5.0])
    model, moved = process(), replace(process(), y=Y + 7.0 + X @ slope)
    position = model.position(AT)
    assert moved.fit(AT).square == pytest.approx(model.fit(AT).square, rel=1e-9)
    assert moved.log_target(position, 1.0) == pytest.approx(model.log_target(position, 1.0), abs=1e-9)
    (mean, variance), (other, same) = (m.condition(position).moments(NEW) for m in (model, moved))
    np.testing.assert_allclose(other, mean + 7.0 + NEW @ slope, rtol=1e-11)
    np.testing.assert_array_equal(same, variance)


def test_dependent_columns():
    wide = np.column_stack([X, X[:, 0] + 2.0 * X[:, 1], np.full(N, 0.3), np.zeros(N)])
    kept = independent_columns(wide)
    assert len(kept) == 3
    assert set(kept) <= {0, 1, 2, 3}
    both = np.column_stack([np.ones(N), wide[:, kept]])
    assert np.linalg.matrix_rank(both) == np.linalg.matrix_rank(np.column_stack([np.ones(N), wide])) == 4
    assert len(independent_columns(X[:3])) == 2
    assert len(independent_columns(X[:1])) == 0
    assert len(independent_columns(np.full((4, 1), 0.1))) == 0


# Densities -----------------------------------------------------------------------------------------------------------


def one_column(n=4):
    """Four rows and a mean without slope."""
    model = LinearMeanProcess(X[:n, :1].copy(), Y[:n])
    model.__dict__["linear_inputs"] = np.zeros(0, dtype=int)
    return model


@pytest.mark.parametrize(("d", "g"), [(0.3, 0.2), (0.02, 0.9)])
def test_likelihood_is_the_integral_over_the_intercept(d, g):
    model = one_column()
    at = AT._replace(ranges=np.array([d]), nugget=g)
    law = stats.multivariate_normal(np.zeros(4), at.variance * dense_K(model, at))
    total = integrate.quad(lambda b: law.pdf(model.y - b), -60.0, 60.0, points=[1.0, 3.0, 5.0], limit=400)[0]
    assert model.log_likelihood(model.position(at)) == pytest.approx(math.log(total), abs=1e-8)


def test_marginal_is_the_integral_over_intercept_and_variance():
    """(4.1), up to a constant that does not depend on d and g."""
    model, constants = one_column(), []
    for d, g in ((0.3, 0.2), (0.02, 0.9), (1.5, 0.05)):
        at = AT._replace(ranges=np.array([d]), nugget=g)
        inverse = np.linalg.inv(dense_K(model, at))
        centre = model.fit(at).coefficients[0]

        def joint(b, t, inverse=inverse):
            s = math.exp(t)
            rest = model.y - b
            prior = math.exp(log_variance_prior(s, AT.a0, AT.g0))
            return math.exp(-0.5 * rest @ inverse @ rest / s) * s**-2.0 * prior * s

        total = integrate.dblquad(joint, -8.0, 9.0, centre - 40.0, centre + 40.0, epsabs=0.0, epsrel=1e-5)[0]
        log_total = math.log(total) + 0.5 * np.linalg.slogdet(inverse)[1]
        constants.append(log_total - model.log_marginal(model.fit(at), AT.a0, AT.g0))
    np.testing.assert_allclose(constants, constants[0], atol=1e-4)


def test_prior_density():
    d, g, v, a, b = np.array([0.03, 1.2]), 0.4, 0.8, 6.0, 0.05
    mixture = 0.5 * stats.gamma.pdf(d, 1.0, scale=1 / 20) + 0.5 * stats.gamma.pdf(d, 10.0, scale=1 / 10)
    rest = [
        stats.expon.logpdf(g - OFFSET), stats.invgamma.logpdf(v, a / 2, scale=b / 2),
        stats.expon.logpdf(a - 2.0, scale=5.0), stats.expon.logpdf(b - OFFSET, scale=0.1),
    ]  # fmt: skip
    assert log_density(Values(d, g, v, a, b)) == pytest.approx(np.log(mixture).sum() + sum(rest), rel=1e-12)


def test_prior_draws_have_the_density():
    model = LinearMeanProcess(np.zeros((0, 2)), np.zeros(0))
    draws = model.named(np.array([[model.sample_prior(RNG) for _ in range(4000)]]))
    halves = [stats.gamma(1.0, scale=1 / 20), stats.gamma(10.0, scale=1 / 10)]
    laws = {
        "ranges": lambda d: 0.5 * (halves[0].cdf(d) + halves[1].cdf(d)), "nugget": stats.expon.cdf,
        "a0": lambda a: stats.expon.cdf(a - 2.0, scale=5.0), "g0": stats.expon(scale=0.1).cdf,
    }  # fmt: skip
    for name, cdf in laws.items():
        values = draws[name][0] if draws[name].ndim == 2 else draws[name][0, :, 1]
        assert stats.kstest(values, cdf).pvalue > 1e-4, name
    u = stats.invgamma.cdf(draws["variance"], 0.5 * draws["a0"], scale=0.5 * draws["g0"])[0]
    assert stats.kstest(u, "uniform").pvalue > 1e-4
    np.testing.assert_allclose(draws["noise_variance"], draws["variance"] * draws["nugget"], rtol=1e-14)


@pytest.mark.parametrize(
    ("correlation", "nu"),
    [("expsep", 1.5), ("exp", 1.5), ("matern", 1.5), ("matern", 0.5), ("matern", 2.5), ("matern", 0.8)],
)
def test_gradient_by_ranges_nugget_and_variance(correlation, nu, central_differences):
    model = process(correlation, nu=nu)
    position = model.position(values_of(model))
    value, gradient = model.log_target_gradient(position, 1.0)
    assert value == model.log_target(position, 1.0)
    numerical = central_differences(lambda p: model.log_target(p, 1.0), position)
    np.testing.assert_allclose(gradient, numerical, rtol=1e-7, atol=1e-7)


def test_positions_and_values():
    model = process()
    again = model.values(model.position(AT))
    np.testing.assert_allclose(again.ranges, AT.ranges, rtol=1e-14)
    np.testing.assert_allclose(again[1:], AT[1:], rtol=1e-12)
    assert model.dimension == len(model.position(AT)) == 7
    assert process("matern").dimension == 5


def test_covariances_that_cannot_be_factorised_are_rejected(monkeypatch):
    model, kernel = process(), MetropolisRounds(process(), rounds=20)
    state = {"position": model.position(AT)}
    kernel._fit(state["position"])

    def refuse(matrix):
        raise gaussian.NotPositiveDefiniteError

    monkeypatch.setattr(least_squares, "factorise", refuse)
    value, gradient = model.log_likelihood_gradient(state["position"])
    assert value == model.log_likelihood(state["position"]) == -math.inf
    assert not gradient.any()
    after, info = kernel.step(RNG, state, 1.0)
    np.testing.assert_array_equal(after["position"][:4], state["position"][:4])
    assert info["n_failures"] > 10
    assert info["accept"] == 0.0


# Predictions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_predictions_against_dense_algebra(correlation):
    model = process(correlation)
    at = values_of(model)
    K, k = dense_K(model, at), dense(model, NEW, X, at.ranges)
    F, f = np.column_stack([np.ones(N), X]), np.column_stack([np.ones(5), NEW])
    inverse = np.linalg.inv(K)
    V = np.linalg.inv(F.T @ inverse @ F)
    b = V @ F.T @ inverse @ Y
    mean = f @ b + k @ inverse @ (Y - F @ b)
    covariance = at.variance * (dense(model, NEW, NEW, at.ranges) - k @ inverse @ k.T)
    h = f - k @ inverse @ F
    for beta, expected in ((False, covariance), (True, covariance + at.variance * h @ V @ h.T)):
        atom = replace(model, include_beta_var=beta).condition(model.position(at))
        found, variance = atom.moments(NEW)
        np.testing.assert_allclose(found, mean, rtol=1e-8)
        np.testing.assert_allclose(atom.mean(NEW), mean, rtol=1e-8)
        np.testing.assert_allclose(variance, np.diag(expected), rtol=1e-7)
        joint_mean, joint = atom.joint(NEW)
        np.testing.assert_allclose(joint_mean, found, rtol=1e-12)
        np.testing.assert_allclose(joint, expected, rtol=1e-6, atol=1e-9)
        assert atom.noise_variance == pytest.approx(at.variance * at.nugget)


def test_beta_variance_is_the_limit_of_a_wide_prior():
    """A Gaussian process with covariance σ²(K + c FFᵀ), c large."""
    model = replace(process(), include_beta_var=True)
    stack = np.vstack([X, NEW])
    F = np.column_stack([np.ones(len(stack)), stack])
    K = dense(model, stack, stack, AT.ranges) + 1e6 * F @ F.T
    gain = np.linalg.solve(K[:N, :N] + AT.nugget * np.eye(N), K[:N, N:]).T
    mean, variance = model.condition(model.position(AT)).moments(NEW)
    np.testing.assert_allclose(mean, gain @ Y, rtol=1e-4)
    np.testing.assert_allclose(variance, AT.variance * np.diag(K[N:, N:] - gain @ K[:N, N:]), rtol=1e-3)


def test_no_correlation_is_least_squares():
    at = AT._replace(ranges=np.full(3, 1e-12))
    mean, variance = process().condition(process().position(at)).moments(NEW)
    F = np.column_stack([np.ones(N), X])
    b = np.linalg.lstsq(F, Y, rcond=None)[0]
    np.testing.assert_allclose(mean, np.column_stack([np.ones(5), NEW]) @ b, rtol=1e-10)
    np.testing.assert_allclose(variance + at.variance * at.nugget, at.variance * (1.0 + at.nugget), rtol=1e-12)


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_at_training_inputs(correlation):
    """Mean y_i - g (K⁻¹(y - Fb̂))_i, variance σ²(2g - g²(K⁻¹)_ii); without nugget the data themselves."""
    model = process(correlation)
    at = values_of(model)
    atom = model.condition(model.position(at))
    mean, variance = atom.moments(X)
    inverse = np.linalg.inv(dense_K(model, at))
    np.testing.assert_allclose(mean, Y - at.nugget * atom.given.errors, rtol=1e-10)
    expected = at.variance * (2.0 * at.nugget - at.nugget**2 * np.diag(inverse))
    np.testing.assert_allclose(variance + atom.noise_variance, expected, rtol=1e-9)
    sharp = model.condition(model.position(at._replace(nugget=1e-8, ranges=0.1 * at.ranges)))
    np.testing.assert_allclose(sharp.moments(X)[0], Y, atol=1e-6)
    assert sharp.moments(X)[1].max() < 1e-6


def test_tied_rows():
    """With the nugget in the cross-correlation too, a training input asked in its own place is known exactly."""
    model = process("matern")
    at = values_of(model)
    atom = model.condition(model.position(at))
    mean, variance = atom.moments_tied(X)
    np.testing.assert_allclose(mean, Y, rtol=1e-10)
    np.testing.assert_allclose(variance, 0.0, atol=1e-12)
    shifted = X + 0.3
    k = dense(model, shifted, X, at.ranges) + at.nugget * np.eye(N)
    inverse = np.linalg.inv(dense_K(model, at))
    mean, variance = atom.moments_tied(shifted)
    trend = np.column_stack([np.ones(N), shifted]) @ atom.given.coefficients
    np.testing.assert_allclose(mean, trend + k @ atom.given.errors, rtol=1e-9)
    share = 1.0 + at.nugget - np.einsum("ij,jk,ik->i", k, inverse, k)
    np.testing.assert_allclose(variance, at.variance * np.maximum(share, 0.0), rtol=1e-8, atol=1e-12)


def test_leave_one_out():
    """Each row predicted by the model of the others, coefficients unknown."""
    model = process()
    position = model.position(AT)
    for k, found in enumerate(model.leave_one_out(position).log_density):
        others = np.delete(np.arange(N), k)
        left = LinearMeanProcess(X[others], Y[others], include_beta_var=True).condition(position)
        mean, variance = left.moments(X[[k]])
        expected = stats.norm.logpdf(Y[k], mean[0], math.sqrt(variance[0] + left.noise_variance))
        assert found == pytest.approx(expected, rel=1e-8)


def test_a_row_that_a_coefficient_hangs_on_has_no_leave_one_out_density():
    lonely = np.column_stack([X[:, 0], np.eye(N)[0]])
    at = process().position(AT._replace(ranges=AT.ranges[:2]))
    found = LinearMeanProcess(lonely, Y).leave_one_out(at).log_density
    assert found[0] == -math.inf
    assert np.isfinite(found[1:]).all()


# The round -----------------------------------------------------------------------------------------------------------


def test_variance_draws():
    """IG((a₀ - m + n)/2, (g₀ + λ)/2), of mean (g₀ + λ)/(a₀ - m + n - 2)."""
    model, kernel = process(), MetropolisRounds(process())
    position, square = model.position(AT), model.fit(AT).square
    draws = np.exp([kernel._draw_log_variance(RNG, position) for _ in range(20_000)])
    mean = (AT.g0 + square) / (AT.a0 - 4 + N - 2)
    assert abs(draws.mean() - mean) < 4.5 * draws.std() / math.sqrt(len(draws))
    law = stats.invgamma(0.5 * (AT.a0 - 4 + N), scale=0.5 * (AT.g0 + square))
    assert stats.kstest(draws, law.cdf).pvalue > 1e-4


class Fixed:
    """A source of randomness that proposes known factors and whose log u is known."""

    def __init__(self, factors, log_u):
        self.factors, self.u = factors, -math.expm1(log_u)

    def uniform(self, low, high, size=None):
        assert low <= min(self.factors)
        assert max(self.factors) <= high
        return np.array(self.factors) if size is not None else self.factors[0]

    def random(self):
        return self.u


def log_target_given_no_variance(model, position):
    """The target integrated over log σ², whose bell is many steps wide, up to a constant."""
    at = np.tile(position, (81, 1))
    at[:, model.n_ranges + 1] = np.linspace(-8.0, 8.0, 81)
    return logsumexp([model.log_target(one, 1.0) for one in at])


def starts(model):
    """Places from which moves are tried."""
    return [
        model.position(AT._replace(ranges=scale * AT.ranges, nugget=scale * AT.nugget, a0=2.0 + scale, g0=g0))
        for scale in (0.2, 1.0, 5.0)
        for g0 in (0.1, 1.3)
    ]


def count_boundaries(move, target, part, factors, model):
    """How often a move is accepted just below the ratio of target and proposal, and rejected just above.

    A factor u of Unif(¾, 4/3) has a density in proportion to u as a step of a logarithm: back and forth, u⁻².
    """
    seen = 0
    for here in starts(model):
        there = here.copy()
        there[part] += np.log(factors)
        ratio = target(there) - target(here) - 2.0 * float(np.log(factors).sum())
        if -8.0 < ratio < -1e-3:  # beyond, 1 - u is rounded
            np.testing.assert_array_equal(move(Fixed(factors, ratio - 1e-5), here), there)
            np.testing.assert_array_equal(move(Fixed(factors, ratio + 1e-5), here), here)
            seen += 1
    return seen


@pytest.mark.parametrize(
    ("part", "several"), [(slice(0, 3), [(0.8, 1.3, 1.3), (0.76, 0.8, 0.9)]), (slice(3, 4), [(1.3,), (0.76,)])]
)
def test_ranges_and_nugget_are_accepted_by_the_ratio_of_target_and_proposal(part, several):
    model, target = process(), partial(log_target_given_no_variance, process())
    assert sum(
        count_boundaries(lambda rng, at: MetropolisRounds(model)._move(rng, at, part)[0], target, part, factors, model)
        for factors in several
    ) > 3  # fmt: skip


@pytest.mark.parametrize("coordinate", [5, 6])
def test_hyperparameters_are_accepted_by_the_ratio_of_target_and_proposal(coordinate):
    model, kernel = process(), MetropolisRounds(process())
    part, target = slice(coordinate, coordinate + 1), partial(model.log_target, level=1.0)
    assert sum(
        count_boundaries(lambda rng, at: kernel._move_hyperparameter(rng, at, coordinate), target, part, factors, model)
        for factors in ((1.3,), (0.76,))
    ) > 3  # fmt: skip


def test_moves_are_proposed_as_often_as_in_tgp():
    several, one = MetropolisRounds(process()), MetropolisRounds(process("matern"))
    for kernel, rate in ((several, 2 / 3 + 1 / 2), (one, 1.0 + 1 / 2)):
        position, tried = kernel.model.position(values_of(kernel.model)), 0
        for _ in range(800):
            position, outcomes = kernel._round(RNG, position)
            tried += len(outcomes)
        assert tried / 800 == pytest.approx(rate, abs=0.1)


def test_steps_report_the_target_and_need_no_cache():
    model = process()
    kernel = MetropolisRounds(model, rounds=3)
    state = kernel.init(np.random.default_rng(0))
    for step in range(10):
        fresh, info = MetropolisRounds(model, rounds=3).step(np.random.default_rng(step), state, 1.0)
        state, same = kernel.step(np.random.default_rng(step), state, 1.0)
        np.testing.assert_array_equal(fresh["position"], state["position"])
        assert info == pytest.approx(same, nan_ok=True)
        assert info["log_target"] == pytest.approx(model.log_target(state["position"], 1.0), rel=1e-12)


def test_pickle():
    model = process("matern")
    twin = pickle.loads(pickle.dumps(model))
    position = model.position(values_of(model))
    assert twin.log_target(position, 1.0) == model.log_target(position, 1.0)


def test_regress_without_rows():
    fit = regress(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))
    assert fit.square == fit.log_det == fit.log_det_coefficients == 0.0


def test_rounds_start_where_tgp_does():
    model = process()
    at = model.values(MetropolisRounds(model).init(RNG)["position"])
    np.testing.assert_allclose(at.ranges, 0.5)
    assert at[1:] == pytest.approx((0.1, 1.0, 5.0, 10.0))
