"""The neural network Gaussian process: its kernel against the recursion, its spectrum against dense algebra."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import halfcauchy, kstest, multivariate_normal, norm
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import NNGPRegressor, StableKernelRegressor, load
from cadlag.baselines.nngp.model import NNGP

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(3)
N = 12
X = RNG.standard_normal((N, 3))
Y = np.sign(X[:, 0]) + 0.1 * RNG.standard_normal(N)
NEW = RNG.standard_normal((4, 3))
NOISES = (None, 0.3, np.linspace(0.1, 0.6, N))


def relu_gram(G):
    """One map, entry by entry: [√(AB - G²) + (π - θ) G] / π."""
    d = np.sqrt(np.diagonal(G))
    cosine = np.clip(G / np.outer(d, d), -1.0, 1.0)
    theta = np.arccos(cosine)
    return (np.outer(d, d) * np.sin(theta) + (np.pi - theta) * G) / np.pi


def dense_kernel(inputs, n_maps):
    full = np.column_stack([np.ones(len(inputs)), inputs])
    G = full @ full.T / full.shape[1]
    for _ in range(n_maps):
        G = relu_gram(G)
    return G


def dense_covariance(model, position):
    log_c, log_v = model.read(position)
    noise = math.exp(log_v) if model.noise_variance is None else model.noise_variance
    return math.exp(log_c) * dense_kernel(model.X, model.n_maps) + np.diag(np.full(len(model.y), noise))


def position_of(model):
    return np.array([0.4, -1.2])[: model.dimension] if model.amplitude is None else np.array([-1.2])[: model.dimension]


@pytest.mark.parametrize("n_maps", [1, 2, 5])
def test_kernel_is_the_recursion_of_gram_matrices(n_maps):
    model = NNGP(X, Y, n_maps)
    both = np.vstack([X, NEW])
    expected = dense_kernel(both, n_maps)
    np.testing.assert_allclose(model.cross(both, both), expected, rtol=1e-7, atol=1e-7)  # arccos there, not here
    np.testing.assert_allclose(np.diagonal(expected), (1.0 + (both**2).sum(axis=1)) / 4.0, rtol=1e-12)
    np.testing.assert_allclose(model.points(both)[1] ** 2, np.diagonal(expected), rtol=1e-12)


def test_kernel_does_not_see_rotations_of_the_inputs():
    rotation = np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    np.testing.assert_allclose(NNGP(X @ rotation, Y).cross(NEW @ rotation), NNGP(X, Y).cross(NEW), rtol=1e-12)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("amplitude", [None, 1.7])
def test_likelihood_and_gradient(noise, amplitude):
    model = NNGP(X, Y, 2, amplitude, noise)
    at = position_of(model)
    expected = multivariate_normal(np.zeros(N), dense_covariance(model, at)).logpdf(Y)
    assert model.log_likelihood(at) == pytest.approx(expected, rel=1e-7)
    if model.dimension:
        for value, gradient in (
            (model.log_likelihood, lambda x: model.log_likelihood_gradient(x)[1]),
            (model.log_prior, lambda x: model.log_prior_gradient(x)[1]),
        ):
            assert check_grad(value, gradient, at) < 1e-5


@pytest.mark.parametrize("noise", NOISES)
def test_atoms_are_the_conditional_law(noise):
    model = NNGP(X, Y, 2, None, noise)
    at = position_of(model)
    atom, c = model.condition(at), math.exp(model.read(at)[0])
    K = c * dense_kernel(np.vstack([X, NEW]), 2)
    solved = np.linalg.solve(dense_covariance(model, at), np.column_stack([Y, K[:N, N:]]))
    mean, covariance = K[N:, :N] @ solved[:, 0], K[N:, N:] - K[N:, :N] @ solved[:, 1:]
    np.testing.assert_allclose(atom.mean(NEW), mean, rtol=1e-6)
    np.testing.assert_allclose(atom.moments(NEW), (mean, np.diagonal(covariance)), rtol=1e-5)
    np.testing.assert_allclose(atom.joint(NEW)[1], covariance, rtol=1e-5, atol=1e-8)
    assert atom.noise_variance == pytest.approx(np.mean(noise) if noise is not None else math.exp(at[-1]))


@pytest.mark.parametrize("noise", NOISES)
def test_leave_one_out_without_leaving_one_out(noise):
    model = NNGP(X, Y, 2, None, noise)
    at = position_of(model)
    cov = dense_covariance(model, at)
    left_out = model.leave_one_out(at)
    found, (errors, variances) = left_out.log_density, left_out
    for k in range(N):
        rest = np.delete(np.arange(N), k)
        weights = np.linalg.solve(cov[np.ix_(rest, rest)], cov[rest, k])
        law = norm(weights @ Y[rest], math.sqrt(cov[k, k] - weights @ cov[rest, k]))
        assert found[k] == pytest.approx(law.logpdf(Y[k]), rel=1e-5)
        assert (errors[k], variances[k]) == pytest.approx((Y[k] - law.mean(), law.var()), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("on", ["variance", "sd"])
def test_prior_is_half_cauchy_on_the_root_of_the_amplitude(on):
    """Densities of log c and log σ² from scipy's of √c and of σ² or σ, with their Jacobians."""
    power = {"variance": 1.0, "sd": 0.5}[on]
    for log_c, log_v in ((-3.0, 0.7), (0.4, -1.2), (2.5, 4.0)):
        root, noise = math.exp(0.5 * log_c), math.exp(power * log_v)
        of_c = halfcauchy.logpdf(root) + math.log(0.5 * root)
        of_v = halfcauchy.logpdf(noise) + math.log(power * noise)
        assert NNGP(X, Y, noise_prior_on=on).log_prior(np.array([log_c, log_v])) == pytest.approx(of_c + of_v)
        assert NNGP(X, Y, noise_variance=0.3).log_prior(np.array([log_c])) == pytest.approx(of_c)
        assert NNGP(X, Y, amplitude=2.0, noise_prior_on=on).log_prior(np.array([log_v])) == pytest.approx(of_v)


@pytest.mark.parametrize("on", ["variance", "sd"])
def test_draws_from_the_prior_are_half_cauchy_on_the_root_of_the_amplitude(on):
    rng, model = np.random.default_rng(8), NNGP(X, Y, noise_prior_on=on)
    log_c, log_v = np.array([model.sample_prior(rng) for _ in range(2000)]).T
    assert kstest(np.exp(0.5 * log_c), halfcauchy.cdf).pvalue > 0.01
    assert kstest(np.exp({"variance": 1.0, "sd": 0.5}[on] * log_v), halfcauchy.cdf).pvalue > 0.01
    alone = np.array([NNGP(X, Y, noise_variance=0.3).sample_prior(rng) for _ in range(2000)])
    assert kstest(np.exp(0.5 * alone[:, 0]), halfcauchy.cdf).pvalue > 0.01


def test_maximum_is_one():
    model = NNGP(X, Y)
    at, said = model.maximise(RNG)
    assert said["converged"]
    assert np.abs(model.log_likelihood_gradient(at)[1]).max() < 1e-4
    grid = [model.log_likelihood(np.array([a, b])) for a in np.linspace(-6, 6, 60) for b in np.linspace(-12, 4, 80)]
    assert said["log_likelihood"] == pytest.approx(model.log_likelihood(at)) and max(grid) <= said["log_likelihood"]


def test_a_search_that_ends_at_a_bound_has_not_converged():
    """Responses that are all zero want no amplitude and no noise at all."""
    assert NNGP(X, np.zeros(N)).maximise(RNG)[1]["converged"] == 0.0


def test_sampled_posterior_against_quadrature():
    fitted = NNGPRegressor(standardize=False, n_draws=1000, n_chains=4, random_state=0).fit(X, Y)
    model = fitted.model_
    grid = np.stack(np.meshgrid(np.linspace(-8.0, 12.0, 160), np.linspace(-18.0, 8.0, 200), indexing="ij"), axis=-1)
    mass = np.exp([[model.log_target(at, 1.0) for at in row] for row in grid])
    for index, name in enumerate(("amplitude", "noise_variance")):
        wanted = float((mass * grid[..., index]).sum() / mass.sum())
        draws = np.log(fitted.posterior_[name])
        table = fitted.posterior_.summary()
        size = table["ess_bulk"][list(table["parameter"]).index(name)]
        assert abs(draws.mean() - wanted) < 4.0 * draws.std() / math.sqrt(size)


def test_amplitude_that_is_given_and_amplitude_that_is_one():
    ml = {"sampler": "ml", "noise_variance": 0.05}
    fixed, one = (NNGPRegressor(amplitude=value, **ml).fit(X, Y) for value in (1.0, False))
    np.testing.assert_array_equal(fixed.predict(NEW), one.predict(NEW))
    assert fixed.posterior_.positions.shape == (1, 1, 0)
    learned = NNGPRegressor(**ml).fit(X, Y)
    assert learned.diagnostics_["log_likelihood"] > one.diagnostics_["log_likelihood"]


def test_one_map_is_the_stable_kernel_process_at_alpha_two():
    """With one map and all scales 1 the paper's process has the same kernel, but for the factor ν₀."""
    settings = {"noise_variance": 0.1, "standardize": False}
    ours = NNGPRegressor(n_maps=1, amplitude=4.0, sampler="ml", **settings).fit(X, Y)
    theirs = StableKernelRegressor(alpha=2.0, fit_intercept=False, n_draws=1, n_warmup=1, n_chains=1, **settings)
    np.testing.assert_allclose(ours.predict(NEW), theirs.fit(X, Y).predict(NEW), rtol=1e-9)


@pytest.mark.parametrize("sampler", ["ml", "nuts"])
def test_save_and_load(tmp_path, sampler):
    model = NNGPRegressor(sampler=sampler, n_draws=20, n_warmup=50, n_chains=2, random_state=1).fit(X, Y)
    model.save(tmp_path / "m.cadlag")
    again = load(tmp_path / "m.cadlag")
    np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
    assert again.diagnostics_.keys() == model.diagnostics_.keys()


def test_refuses():
    with pytest.raises(ValueError, match="amplitude must be"):
        NNGPRegressor(amplitude=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="sampler must be one of"):
        NNGPRegressor(sampler="best").fit(X, Y)
    with pytest.raises(ValueError, match="nothing to extend"):
        NNGPRegressor(sampler="ml").fit(X, Y).extend(10)


@parametrize_with_checks([NNGPRegressor(n_draws=20, n_warmup=50, n_chains=1), NNGPRegressor(sampler="ml")])
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)
