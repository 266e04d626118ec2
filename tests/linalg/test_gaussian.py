"""The one Cholesky: marginal, gradient, conditioning and leave-one-out against dense formulas and quadrature."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian
from cadlag.linalg import gaussian

assert_allclose = partial(np.testing.assert_allclose, equal_nan=False)


class Problem:
    """A dense Gaussian of n + m points with noise, in its plain form and as the library wants it."""

    def __init__(self, n, m, seed, noise):
        rng = np.random.default_rng(seed)
        root = rng.standard_normal((n + m, n + m + 3)) * np.exp(rng.standard_normal((n + m, 1)))
        self.signal = root @ root.T / (n + m)
        self.noise = np.exp(rng.standard_normal(n)) if noise == "rows" else np.full(n, 0.37)
        self.log_noise = np.log(self.noise) if noise == "rows" else math.log(0.37)
        self.y = rng.standard_normal(n)
        self.n = n
        self.dense = self.signal[:n, :n] + np.diag(self.noise)
        self.log_signal = np.log(np.diag(self.signal))
        sd = np.sqrt(np.diag(self.signal))
        self.rho = self.signal / np.outer(sd, sd)
        self.data = gaussian.observe(self.y, self.log_signal[:n], self.log_noise)

    def correlation(self, weight=None):
        """P with rubbish above the diagonal, which must not be read."""
        weight = self.data.weight if weight is None else weight
        P = np.full((self.n, self.n), np.nan)
        lower = np.tril_indices(self.n, -1)
        P[lower] = (np.outer(weight, weight) * self.rho[: self.n, : self.n])[lower]
        np.fill_diagonal(P, 1.0)
        return P


@pytest.fixture(params=["one", "rows"])
def problem(request):
    return Problem(11, 4, 5, request.param)


def test_split_of_the_variance(problem):
    total = np.diag(problem.dense)
    assert_allclose(np.exp(problem.data.log_total), total, rtol=1e-13)
    assert_allclose(problem.data.weight**2, np.diag(problem.signal)[:11] / total, rtol=1e-13)
    assert_allclose(problem.data.scaled, problem.y / np.sqrt(total), rtol=1e-13)


def test_split_never_overflows():
    data = gaussian.observe(np.ones(3), np.array([-2000.0, 0.0, 2000.0]), np.array([0.0, -2000.0, 0.0]))
    assert_allclose(data.log_total, [0.0, 0.0, 2000.0], atol=1e-15)
    assert_allclose(data.weight, [0.0, 1.0, 1.0], atol=1e-15)
    assert_allclose(data.scaled, [1.0, 1.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 11, 60])
@pytest.mark.parametrize("noise", ["one", "rows"])
def test_marginal_against_scipy(n, noise):
    problem = Problem(n, 0, n, noise)
    expected = stats.multivariate_normal(np.zeros(n), problem.dense).logpdf(problem.y)
    assert gaussian.log_marginal(problem.correlation(), problem.data) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("n", [1, 11, 60])
def test_same_bits_with_and_without_gradient(n):
    problem = Problem(n, 0, n, "rows")
    value = gaussian.log_marginal(problem.correlation(), problem.data)
    assert gaussian.log_marginal_gradient(problem.correlation(), problem.data).value == value


def test_gradient_against_dense_formula(problem):
    """dℓ/dΛ = ½(ββᵀ - Λ⁻¹), by pairs of correlations and by log variances."""
    marginal = gaussian.log_marginal_gradient(problem.correlation(), problem.data)
    total = np.sqrt(np.diag(problem.dense))
    P = problem.dense / np.outer(total, total)
    inverse, scaled = np.linalg.inv(P), problem.y / total
    beta = inverse @ scaled
    lower = np.tril_indices(11, -1)
    assert_allclose(marginal.pairs[lower], (np.outer(beta, beta) - inverse)[lower], rtol=1e-9, atol=1e-11)

    solved = np.linalg.solve(problem.dense, problem.y)
    by_entry = 0.5 * (np.outer(solved, solved) - np.linalg.inv(problem.dense))
    # A log process variance scales its row and column of the process' covariance, the noise stays.
    by_signal = (by_entry * problem.signal[:11, :11]).sum(axis=1)
    assert_allclose(marginal.log_signal, by_signal, rtol=1e-9, atol=1e-11)
    assert_allclose(marginal.log_noise, np.diag(by_entry) * problem.noise, rtol=1e-9, atol=1e-11)


def test_conditioning_against_dense_formula(problem):
    n, S = problem.n, problem.signal
    gain = np.linalg.solve(problem.dense, S[:n, n:]).T
    mean, covariance = gain @ problem.y, S[n:, n:] - gain @ S[:n, n:]
    conditioner = gaussian.condition(problem.correlation(), problem.data)
    means, variances = conditioner.moments(problem.rho[n:, :n].copy(), problem.log_signal[n:])
    assert_allclose(means, mean, rtol=1e-10)
    assert_allclose(variances, np.diag(covariance), rtol=1e-10)
    own = problem.rho[n:, n:]
    means, joint = conditioner.joint(problem.rho[n:, :n].copy(), own, problem.log_signal[n:])
    assert_allclose(means, mean, rtol=1e-10)
    assert_allclose(joint, covariance, rtol=1e-9, atol=1e-12)
    assert_allclose(own, problem.rho[n:, n:], rtol=0)


def test_no_variance_is_negative():
    """Of observations without noise at their own places it is zero, but for rounding of either sign."""
    rho = np.exp(-np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0))))
    conditioner = gaussian.condition(rho.copy(), gaussian.observe(np.ones(40), np.zeros(40), -np.inf))
    share = 1.0 - (conditioner.project(rho.copy())[1] ** 2).sum(axis=0)
    assert share.min() < 0.0
    variances = conditioner.moments(rho.copy(), np.full(40, 3.0))[1]
    assert variances.min() == 0.0
    assert variances.max() < 1e-13


def test_leave_one_out_against_brute_force(problem):
    left_out = gaussian.leave_one_out(problem.correlation(), problem.data)
    found, (errors, variances) = left_out.log_density, left_out
    for k in range(problem.n):
        rest = np.delete(np.arange(problem.n), k)
        gain = np.linalg.solve(problem.dense[np.ix_(rest, rest)], problem.dense[rest, k])
        law = stats.norm(gain @ problem.y[rest], math.sqrt(problem.dense[k, k] - gain @ problem.dense[rest, k]))
        assert found[k] == pytest.approx(law.logpdf(problem.y[k]), rel=1e-9)
        assert errors[k] == pytest.approx(problem.y[k] - law.mean(), rel=1e-8)
        assert variances[k] == pytest.approx(law.var(), rel=1e-9)


@pytest.mark.parametrize(
    "function",
    [gaussian.log_marginal, gaussian.log_marginal_gradient, gaussian.condition, gaussian.leave_one_out],
)
def test_singular_matrix_raises(function):
    """No jitter: two identical rows without noise."""
    singular = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.5, 1.0, 1.0]])
    data = gaussian.observe(np.ones(3), np.zeros(3), -np.inf)
    with pytest.raises(gaussian.NotPositiveDefiniteError):
        function(singular, data)
    indefinite = np.array([[1.0, 0.0], [1.2, 1.0]])
    with pytest.raises(gaussian.NotPositiveDefiniteError):
        function(indefinite, gaussian.observe(np.ones(2), np.zeros(2), -1.0))


def test_lower_factor(problem):
    before = problem.dense.copy()
    L = gaussian.lower_factor(problem.dense)
    assert_allclose(L, np.linalg.cholesky(problem.dense), rtol=1e-9, atol=1e-12)
    assert (problem.dense == before).all()


def test_normal_draws_have_the_right_moments():
    """Also from a singular covariance; 4.5 standard errors at 40,000 draws."""
    root = np.random.default_rng(1).standard_normal((5, 3))
    covariance, mean, n = root @ root.T, np.arange(5.0), 40_000
    draws = gaussian.sample_normal(np.random.default_rng(2), mean, covariance, n)
    assert draws.shape == (n, 5)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * sd / math.sqrt(n)).all()
    error = np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / n)
    assert (np.abs(np.cov(draws.T) - covariance) < 4.5 * error).all()
    null = np.linalg.svd(root.T)[2][3:]
    assert np.abs((draws - mean) @ null.T).max() < 1e-6


# Identity 13 ---------------------------------------------------------------------------------------------------------


def kernel_problem():
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((15, 2)), rng.standard_normal(15)
    log_scales = np.array([0.4, -0.3, 0.2])
    model = KernelProcess(X, y, depth=2)
    S = list(model.covariances(np.append(log_scales, [0.0, 0.0])))[-1]
    return model, log_scales, S, y


@pytest.mark.parametrize("log_c", [-3.0, 0.0, 4.0])
@pytest.mark.parametrize("log_v", [-4.0, 0.0, 2.0])
def test_eigenvalue_likelihood(log_c, log_v):
    """ℓ(c, v) = -½ Σ [log(c ω_i + v) + ỹ_i²/(c ω_i + v)] - (n/2) log 2π with Σ_K = QΩQᵀ, ỹ = Qᵀy."""
    model, log_scales, S, y = kernel_problem()
    omega, Q = np.linalg.eigh(S)
    turned, spread = Q.T @ y, math.exp(log_c) * np.maximum(omega, 0.0) + math.exp(log_v)
    expected = -0.5 * np.sum(np.log(spread) + turned**2 / spread) - 0.5 * len(y) * math.log(2.0 * math.pi)
    assert model.log_likelihood(np.append(log_scales, [log_c, log_v])) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("g", [0.0, 0.3])
def test_collapsed_output_scale(g):
    """p(y) = Γ((n+1)/2) π^(-(n+1)/2) |R/2|^-½ (1 + 2yᵀR⁻¹y)^(-(n+1)/2) is the integral over c ~ InvGamma(½, ¼)."""
    model, log_scales, S, y = kernel_problem()
    n = len(y)
    R = S + g * np.eye(n)
    collapsed = gammaln(0.5 * (n + 1)) - 0.5 * (n + 1) * math.log(math.pi)
    collapsed -= 0.5 * (np.linalg.slogdet(R)[1] - n * math.log(2.0))
    collapsed -= 0.5 * (n + 1) * math.log1p(2.0 * y @ np.linalg.solve(R, y))
    prior = stats.invgamma(0.5, scale=0.25)
    known = 1e-300 if g == 0.0 else None  # noise-free, or v = g c

    def log_integrand(log_c):
        target = KernelProcess(model.X, y, depth=2, likelihood=Gaussian(known or g * math.exp(log_c)))
        log_joint = target.log_likelihood(np.append(log_scales, log_c)) + prior.logpdf(math.exp(log_c)) + log_c
        return log_joint - collapsed

    mass = integrate.quad(lambda t: math.exp(log_integrand(t)), -12.0, 25.0, epsabs=0.0, epsrel=1e-9, limit=400)[0]
    assert mass == pytest.approx(1.0, rel=1e-8)
    # and c | y ~ InvGamma((n+1)/2, ¼ + ½ yᵀR⁻¹y)
    conditional = stats.invgamma(0.5 * (n + 1), scale=0.25 + 0.5 * y @ np.linalg.solve(R, y))
    for log_c in (-1.0, 0.0, 1.5):
        density = conditional.logpdf(math.exp(log_c)) + log_c
        assert log_integrand(log_c) == pytest.approx(density, abs=1e-8, rel=1e-10)
