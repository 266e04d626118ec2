"""The deep kernel process: prior, likelihood, conditioning, against the plain recursion and Monte Carlo."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian

assert_allclose = partial(np.testing.assert_allclose, equal_nan=False)
PRESETS = ("theorem", "prop2", "published_code")


def data(n=10, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal(n)


def natural_scales(model, position):
    """s, c_1..c_{K+1}, d₁ read off the table of presets, independently of the model's own reading."""
    p, K = model.X.shape[1], model.depth
    scales = np.exp(position)
    first = {"theorem": 2, "prop2": 2, "published_code": 1}[model.preset]
    last = {"theorem": K + 1, "prop2": K, "published_code": K}[model.preset]
    c = np.ones(K + 1)
    c[first - 1 : last] = scales[p : p + last - first + 1]
    return scales[:p], c, p if model.preset == "published_code" else 1


def dense_log_density(y, covariance):
    """log N(y; 0, Λ) from Λ scaled to unit diagonal, as its entries may differ by many powers of ten."""
    sd = np.sqrt(np.diag(covariance))
    P, z = covariance / np.outer(sd, sd), y / sd
    return -0.5 * (np.linalg.slogdet(2.0 * np.pi * P)[1] + z @ np.linalg.solve(P, z)) - np.log(sd).sum()


# The model -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "depth", "random"),
    [
        ("theorem", 1, (2,)), ("theorem", 2, (2, 3)), ("theorem", 5, (2, 3, 4, 5, 6)),
        ("prop2", 1, ()), ("prop2", 2, (2,)), ("prop2", 5, (2, 3, 4, 5)),
        ("published_code", 1, (1,)), ("published_code", 2, (1, 2)), ("published_code", 5, (1, 2, 3, 4, 5)),
    ],
)  # fmt: skip
def test_presets(preset, depth, random):
    """theorem I + L - 1, prop2 I + L - 2, published_code p + n_layers scales, L = K + 1."""
    X, y = data()
    count = {"theorem": 3 + depth, "prop2": 3 + depth - 1, "published_code": 3 + depth}[preset]
    unknown, known = (KernelProcess(X, y, depth=depth, preset=preset, likelihood=Gaussian(v)) for v in (None, 0.2))
    assert unknown.random_layers == random
    assert (unknown.n_scales, unknown.dimension) == (count, count + 1)
    assert (known.n_scales, known.dimension) == (count, count)
    position = unknown.sample_prior(np.random.default_rng(1))
    assert position.shape == (count + 1,)
    names = unknown.named(np.stack([position, position]))
    assert names["input_scales"].shape == (2, 3)
    assert names["noise_variance"] == pytest.approx(np.exp(position[-1]))
    assert ("layer_scales" in names) == (len(random) > 0)
    if random:
        assert_allclose(names["layer_scales"][0], np.exp(position[3:-1]), rtol=1e-14)
    assert "noise_variance" not in known.named(position[None, :-1])
    for layer in range(1, depth + 2):
        expected = position[3 + random.index(layer)] if layer in random else 0.0
        assert unknown.log_layer_scale(position, layer) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("preset", PRESETS)
def test_likelihood_and_covariances_are_the_plain_ones(preset, depth, order, plain_recursion):
    X, y = data()
    model = KernelProcess(X, y, order=order, depth=depth, preset=preset)
    position = 0.5 * np.random.default_rng([depth, order]).standard_normal(model.dimension)
    s, c, d1 = natural_scales(model, position)
    matrices = plain_recursion(X, s, c[:-1], order, d1)
    found = list(model.covariances(position))
    assert len(found) == depth + 1
    for S, expected in zip(found, matrices):
        assert_allclose(S, expected, rtol=1e-9, atol=1e-12)
    dense = c[-1] * matrices[-1] + math.exp(position[-1]) * np.eye(10)
    expected = dense_log_density(y, dense)
    assert model.log_likelihood(position) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_conditioning_is_the_plain_one(order, preset, plain_recursion):
    """Means, variances, joint covariance at new inputs and leave-one-out, noise one for each row."""
    X, y = data()
    new = data(5, 3, 5)[0]
    noise = np.random.default_rng(3).uniform(0.1, 0.9, 10)
    model = KernelProcess(X, y, order=order, depth=2, preset=preset, likelihood=Gaussian(noise))
    position = 0.5 * np.random.default_rng(4).standard_normal(model.dimension)
    s, c, d1 = natural_scales(model, position)
    S = c[-1] * plain_recursion(np.r_[X, new], s, c[:-1], order, d1)[-1]
    dense = S[:10, :10] + np.diag(noise)
    gain = np.linalg.solve(dense, S[:10, 10:]).T
    mean, covariance = gain @ y, S[10:, 10:] - gain @ S[:10, 10:]
    atom = model.condition(position)
    rtol = 1e-8
    means, variances = atom.moments(new)
    assert_allclose(means, mean, rtol=rtol)
    assert_allclose(variances, np.diag(covariance), rtol=rtol)
    assert_allclose(atom.mean(new), mean, rtol=rtol)
    means, joint = atom.joint(new)
    assert_allclose(means, mean, rtol=rtol)
    assert_allclose(joint, covariance, rtol=rtol, atol=1e-9)
    assert_allclose(np.diag(joint), variances, rtol=1e-9)
    assert atom.noise_variance == pytest.approx(noise.mean(), rel=1e-13)
    inverse = np.linalg.inv(dense)
    law = stats.norm(y - inverse @ y / np.diag(inverse), 1.0 / np.sqrt(np.diag(inverse)))
    left_out = model.leave_one_out(position)
    assert_allclose(left_out.log_density, law.logpdf(y), rtol=rtol)
    errors, variances = left_out
    assert_allclose(errors, y - law.mean(), rtol=1e-6)
    assert_allclose(variances, law.var(), rtol=rtol)


@pytest.mark.parametrize("order", range(4))
def test_prediction_at_a_training_input(order):
    """With next to no noise the process interpolates, whichever path computed the correlations."""
    X, y = data()
    model = KernelProcess(X, y, order=order, depth=2, likelihood=Gaussian(1e-9))
    means, variances = model.condition(np.zeros(5)).moments(X)
    assert_allclose(means, y, atol=1e-5)
    own = np.diag(list(model.covariances(np.zeros(5)))[-1])
    assert (variances < 1e-8 * np.maximum(own, 1.0)).all()


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("preset", PRESETS)
def test_alpha_two_is_the_deterministic_recursion(preset, order, plain_recursion):
    """Identity 7: all scales are one, the noise alone is unknown, and at order 1 the diagonal is K + (Σ_0)_ii."""
    X, y = data()
    model = KernelProcess(X, y, alpha=2.0, order=order, depth=3, preset=preset)
    assert (model.n_scales, model.dimension) == (0, 1)
    d1 = 3 if preset == "published_code" else 1
    position = np.array([0.4])
    matrices = plain_recursion(X, np.ones(3), np.ones(3), order, d1)
    for S, expected in zip(model.covariances(position), matrices, strict=True):
        assert_allclose(S, expected, rtol=1e-9, atol=1e-12)
    dense = matrices[-1] + math.exp(0.4) * np.eye(10)
    expected = dense_log_density(y, dense)
    assert model.log_likelihood(position) == pytest.approx(expected, rel=1e-9)
    if order == 1:
        assert_allclose(np.diag(matrices[-1]), 3.0 + np.sum(X**2, axis=1) / d1, rtol=1e-12)
    known = KernelProcess(X, y, alpha=2.0, order=order, depth=3, preset=preset, likelihood=Gaussian(math.exp(0.4)))
    assert known.dimension == 0
    assert known.sample_prior(np.random.default_rng(0)).shape == (0,)
    assert known.log_prior(np.empty(0)) == 0.0
    assert known.log_likelihood(np.empty(0)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
def test_principal_submatrix_consistency(preset):
    """Dropping rows changes nothing in the rest: Σ_k of a part, and predictions one by one or all together."""
    X, y = data(14)
    model = KernelProcess(X, y, depth=3, preset=preset)
    position = model.sample_prior(np.random.default_rng(2))
    rows = np.array([3, 0, 11, 7])
    for S, part in zip(model.covariances(position), model.covariances(position, X[rows])):
        assert_allclose(part, S[np.ix_(rows, rows)], rtol=1e-12)
    new = data(6, 3, 9)[0]
    atom = model.condition(position)
    means, variances = atom.moments(new)
    for k in range(6):
        mean, variance = atom.moments(new[k : k + 1])
        assert mean[0] == pytest.approx(means[k], rel=1e-12)
        assert variance[0] == pytest.approx(variances[k], rel=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("order", range(4))
def test_prior_draws_give_semidefinite_kernels(order, preset):
    """Identity 9 at scales as heavy tailed as the prior draws them."""
    x = np.linspace(-1.0, 1.0, 12)[:, None]
    rng = np.random.default_rng(order)
    model = KernelProcess(x, np.zeros(12), order=order, depth=2, preset=preset)
    for _ in range(20):
        last = list(model.covariances(model.sample_prior(rng)))[-1]
        values = np.linalg.eigvalsh(last / np.sqrt(np.outer(np.diag(last), np.diag(last))))
        assert values[0] > -1e-10 * values[-1]


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("preset", PRESETS)
def test_invariances_of_the_likelihood(preset, order):
    """Identity 10: signs, rotations at equal scales, and units of X against the scales."""
    X, y = data()
    model = KernelProcess(X, y, order=order, depth=2, preset=preset)
    position = 0.7 * np.random.default_rng(6).standard_normal(model.dimension)
    same = partial(pytest.approx, rel=1e-11)
    value = model.log_likelihood(position)

    def at(inputs, where):
        return KernelProcess(inputs, y, order=order, depth=2, preset=preset).log_likelihood(where)

    assert at(X * [-1.0, 1.0, -1.0], position) == same(value)
    shift = np.zeros(model.dimension)
    shift[:3] = 2.0 * math.log(5.0)
    assert at(5.0 * X, position - shift) == same(value)
    assert abs(at(5.0 * X, position) - value) > 1e-2
    rotation = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 3)))[0]
    equal = position.copy()
    equal[:3] = 0.3
    assert at(X @ rotation, equal) == same(at(X, equal))
    assert abs(at(X @ rotation, position) - value) > 1e-3
    if preset == "published_code":
        move = np.array([1.0, 1.0, 1.0, -1.0, 0.0, 0.0])
        assert model.log_likelihood(position + 1.7 * move) == same(value)


@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.6])
def test_prior_predictive_characteristic_function(alpha):
    """Identity 12: E cos(tᵀψ) = E exp{-2^(-α/2) (tᵀΣ_K t)^(α/2)} under `theorem`, to 4.5 s.e."""
    X, t = data(4)[0], np.array([0.5, -0.3, 0.2, 0.4])
    model = KernelProcess(X, np.zeros(4), alpha=alpha, depth=2, likelihood=Gaussian(1.0))
    rng = np.random.default_rng(11)
    difference = np.empty(6000)
    for i in range(len(difference)):
        position = model.sample_prior(rng)
        S = list(model.covariances(position))[-1]
        form = t @ S @ t
        # ψ given the scales is N(0, c_{K+1} Σ_K): one draw of tᵀψ
        psi = math.sqrt(math.exp(position[-1]) * form) * rng.standard_normal()
        difference[i] = math.cos(psi) - math.exp(-((0.5 * form) ** (0.5 * alpha)))
    error = difference.std() / math.sqrt(len(difference))
    assert error < 0.02
    assert abs(difference.mean()) < 4.5 * error


# Prior ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.2, 30.0])
@pytest.mark.parametrize("on", ["variance", "sd"])
def test_noise_prior(on, scale, central_differences):
    """A density of log σ²: integrates to one, is the half-Cauchy of the variance or the sd, has the right slope."""
    model = KernelProcess(*data(), alpha=2.0, likelihood=Gaussian(prior_on=on, scale=scale))
    centre = math.log(scale) * (1.0 if on == "variance" else 2.0)

    def density(log_v):
        return math.exp(model.log_prior(np.array([log_v])))

    pieces = [integrate.quad(density, centre + a, centre + a + 40.0, epsabs=1e-13)[0] for a in range(-120, 120, 40)]
    assert sum(pieces) == pytest.approx(1.0, abs=1e-10)
    for log_v in centre + np.array([-3.0, 0.0, 2.5]):
        root = math.exp(log_v) if on == "variance" else math.exp(0.5 * log_v)
        jacobian = root if on == "variance" else 0.5 * root
        assert density(log_v) == pytest.approx(stats.halfcauchy(scale=scale).pdf(root) * jacobian, rel=1e-12)
        position = np.array([log_v])
        value, gradient = model.log_prior_gradient(position)
        assert value == model.log_prior(position)
        assert_allclose(gradient, central_differences(model.log_prior, position), atol=1e-9)
    rng = np.random.default_rng(1)
    draws = np.exp([model.sample_prior(rng)[0] for _ in range(4000)])
    law = stats.halfcauchy(scale=scale)
    assert stats.kstest(draws if on == "variance" else np.sqrt(draws), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("alpha", [1.0, 1.4])
def test_prior_of_all_coordinates(alpha, central_differences):
    """A product of the laws of the coordinates, with its gradient; draws follow the law of the scales."""
    model = KernelProcess(*data(), alpha=alpha, depth=2, likelihood=Gaussian(prior_on="sd", scale=2.0))
    position = np.array([0.3, -0.9, 2.0, 6.0, -0.2, 0.4])
    value, gradient = model.log_prior_gradient(position)
    noise = KernelProcess(*data(), alpha=2.0, likelihood=Gaussian(prior_on="sd", scale=2.0)).log_prior(position[-1:])
    assert value == pytest.approx(model.law.log_density(position[:-1]).sum() + noise, rel=1e-12)
    if alpha == 1.0:
        levy = stats.invgamma(0.5, scale=0.25).logpdf(np.exp(position[:-1])) + position[:-1]
        assert value == pytest.approx(levy.sum() + noise, rel=1e-12)
    assert_allclose(gradient, central_differences(model.log_prior, position), atol=1e-8)
    rng = np.random.default_rng(2)
    draws = np.array([model.sample_prior(rng) for _ in range(3000)])
    for j in range(model.n_scales):
        assert stats.kstest(draws[:, j], model.law.cdf).pvalue > 1e-3


# Edges ---------------------------------------------------------------------------------------------------------------


def test_no_rows_is_the_prior():
    model = KernelProcess(np.empty((0, 3)), np.empty(0), depth=2)
    position = model.sample_prior(np.random.default_rng(1))
    assert model.log_likelihood(position) == 0.0
    value, gradient = model.log_likelihood_gradient(position)
    assert value == 0.0
    assert (gradient == 0.0).all()
    prior, slope = model.log_prior_gradient(position)
    target, target_slope = model.log_target_gradient(position, 1.0)
    assert model.log_target(position, 1.0) == target == prior
    assert (target_slope == slope).all()


def test_no_rows_condition_to_the_prior():
    model = KernelProcess(np.empty((0, 3)), np.empty(0), depth=2)
    position, new = model.sample_prior(np.random.default_rng(1)), data(4)[0]
    means, variances = model.condition(position).moments(new)
    S = list(model.covariances(position, new))[-1] * math.exp(model.log_layer_scale(position, 3))
    assert (means == 0.0).all()
    assert_allclose(variances, np.diag(S), rtol=1e-12)


def test_levels():
    """Level β is prior × likelihood^β; at zero the likelihood is not asked."""
    model = KernelProcess(*data(), depth=2)
    position = model.sample_prior(np.random.default_rng(5))
    prior, likelihood = model.log_prior(position), model.log_likelihood(position)
    assert model.exact_level == 1.0
    assert model.log_target(position, 0.0) == prior
    assert model.log_target(position, 0.25) == pytest.approx(prior + 0.25 * likelihood, rel=1e-14)
    assert model.log_target_gradient(position, 0.0)[0] == prior
    assert (model.log_target_gradient(position, 0.0)[1] == model.log_prior_gradient(position)[1]).all()
    value, gradient = model.log_target_gradient(position, 0.25)
    by_prior, by_likelihood = model.log_prior_gradient(position)[1], model.log_likelihood_gradient(position)[1]
    assert value == pytest.approx(prior + 0.25 * likelihood, rel=1e-14)
    assert_allclose(gradient, by_prior + 0.25 * by_likelihood, rtol=1e-13)


def test_same_bits_with_and_without_gradient():
    for order in range(4):
        model = KernelProcess(*data(40), order=order, depth=2)
        rng = np.random.default_rng(order)
        for _ in range(20):
            position = model.sample_prior(rng)
            value, _ = model.log_target_gradient(position, 1.0)
            assert value == model.log_target(position, 1.0)


def failing():
    """Rows twice, and next to no noise."""
    X, y = data()
    return KernelProcess(np.r_[X, X], np.r_[y, -y], depth=2, likelihood=Gaussian(1e-40)), np.zeros(5)


def test_failure_is_minus_infinity():
    model, position = failing()
    assert model.log_likelihood(position) == -math.inf
    assert model.log_target(position, 1.0) == -math.inf
    value, gradient = model.log_likelihood_gradient(position)
    assert value == -math.inf
    assert (gradient == 0.0).all()
    assert model.log_target_gradient(position, 1.0)[0] == -math.inf
    with pytest.raises(ArithmeticError):
        model.condition(position)


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("size", [50.0, 300.0, 600.0, 1e4])
def test_extreme_positions_never_raise(order, size):
    """Finite or -inf and no warning, with a finite gradient, wherever a sampler may try."""
    X, y = data()
    X[0] = 0.0
    model = KernelProcess(X, y, order=order, depth=2, preset="published_code")
    rng = np.random.default_rng(order)
    for _ in range(30):
        position = size * rng.choice([-1.0, 0.0, 1.0], model.dimension)
        value = model.log_likelihood(position)
        assert math.isfinite(value) or value == -math.inf
        with_gradient, gradient = model.log_target_gradient(position, 1.0)
        assert not math.isnan(with_gradient)
        assert with_gradient < math.inf
        assert np.isfinite(gradient).all()


def test_pickle_leaves_buffers_behind():
    model = KernelProcess(*data(50), depth=2)
    small = len(pickle.dumps(model))
    position = model.sample_prior(np.random.default_rng(3))
    value = model.log_target(position, 1.0)
    assert model._buffers
    state = pickle.dumps(model)
    assert len(state) <= small + 64
    copy = pickle.loads(state)
    assert copy._buffers == {}
    assert copy._buffers is not model._buffers
    assert set(vars(copy)) == set(copy.__dataclass_fields__)
    assert copy.log_target(position, 1.0) == value
    assert model.log_target(position, 1.0) == value
