"""The deep inverse Wishart process against scipy's inverse Wishart law, dense algebra and differences."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammainc, gammaincinv

from cadlag.baselines.diwp.ascent import Adam, Climb, initial_parameters, judge
from cadlag.baselines.diwp.atoms import Atoms
from cadlag.baselines.diwp.bound import Bound, layer_values
from cadlag.baselines.diwp.gram import EPSILON, Gram, ReluMap
from cadlag.baselines.diwp.layer import Layer, LayerValues
from cadlag.baselines.diwp.noise import Noise, draw_noise, gamma_move
from cadlag.baselines.diwp.output import Output
from cadlag.baselines.nngp.model import NNGP
from cadlag.kernels import arc_cosine
from statistical.wishart import dense_map

SMALL_P = 1e-4  # of a test that is right


def rng_of(seed):
    return np.random.default_rng(seed)


def full_gram(size, seed=0, n_features=7):
    F = rng_of(seed).standard_normal((size, n_features))
    return F @ F.T / n_features


def parts(G, size, joint=False):
    tt = G[size:, size:]
    return Gram(G[:size, :size].copy(), G[:size, size:].copy(), tt.copy() if joint else np.diag(tt).copy())


def values(size, delta=8.0, gamma=3.0, weight=0.7, seed=5):
    return LayerValues(delta, gamma, weight, rng_of(seed).standard_normal((size, size)))


def prior(size, delta=8.0):
    """Parameters for which Q is P."""
    return LayerValues(delta, 0.0, 0.0, np.zeros((size, size)))


def noise_of(layer, seed, n=1, counted=1):
    one = layer.values
    return draw_noise(rng_of(seed) if isinstance(seed, int) else seed, one.delta, one.gamma, len(one.V), n, counted)


def laws(layer):
    """P and Q of G_ii as scipy has them."""
    one, size = layer.values, len(layer.root)
    K, freedom = layer.kernel.ii, one.delta + size + 1.0
    scale = one.delta * K + one.weight * one.V @ one.V.T / size
    return stats.invwishart(freedom, one.delta * K), stats.invwishart(freedom + one.gamma, scale)


def some_parameters(rng, X, y, size, n_layers, learn_inputs=True):
    """Parameters away from where a fit starts, so that nothing is zero or one."""
    optional = ["log_noise", "log_amplitude"] + (["log_input_scales", "input_shifts"] if learn_inputs else [])
    found = initial_parameters(rng, X, y, size, n_layers, optional)
    found = {name: value + 0.2 * rng.standard_normal(value.shape) for name, value in found.items()}
    found["log_delta"] += 1.0
    return found


def problem(n=6, p=2, size=4, n_layers=1, seed=0, **settings):
    rng = rng_of(seed)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    return X, y, some_parameters(rng, X, y, size, n_layers, **settings)


# Kernel --------------------------------------------------------------------------------------------------------------


def test_relu_map_is_the_arc_cosine_kernel():
    G = full_gram(6)
    K = ReluMap.of(parts(G, 4, joint=True), epsilon=0.0).kernel
    sd = np.sqrt(np.diag(G))
    cosine = np.clip(G / np.outer(sd, sd), -1.0, 1.0)
    expected = np.outer(sd, sd) * arc_cosine(1, np.arccos(cosine)) / np.pi
    np.testing.assert_allclose(K.ii, expected[:4, :4], rtol=1e-12)
    np.testing.assert_allclose(K.it, expected[:4, 4:], rtol=1e-12)
    np.testing.assert_allclose(K.tt, expected[4:, 4:], rtol=1e-12)
    np.testing.assert_array_equal(np.diag(K.ii), np.diag(G)[:4])


def test_relu_map_is_homogeneous_without_epsilon():
    G = parts(full_gram(6), 4)
    once, scaled = ReluMap.of(G, 0.0).kernel, ReluMap.of(Gram(*(9.0 * part for part in G)), 0.0).kernel
    for one, other in zip(once, scaled):
        np.testing.assert_allclose(other, 9.0 * one, rtol=1e-12)


def test_relu_map_keeps_rows_that_coincide_apart():
    """The published ε makes a row given twice two rows."""
    F = np.repeat(rng_of(3).standard_normal((3, 2)), 2, axis=0)
    K = ReluMap.of(parts(F @ F.T, 6)).kernel.ii
    np.testing.assert_allclose(K, dense_map(F @ F.T), rtol=1e-9)
    assert np.linalg.eigvalsh(K).min() > 0.1 * EPSILON


# Inverse Wishart layer -----------------------------------------------------------------------------------------------


def test_log_ratio_is_that_of_the_densities():
    layer = Layer(parts(dense_map(full_gram(5)), 4), values(4))
    below, above = laws(layer)
    for seed in range(5):
        noise = noise_of(layer, seed)
        G = layer.draw(noise).gram.ii
        assert layer.log_ratio(noise.A) == pytest.approx(below.logpdf(G) - above.logpdf(G), abs=1e-9)


def test_draws_have_the_mean_and_the_marginals_of_the_law():
    layer, rng = Layer(parts(dense_map(full_gram(5)), 4), values(4)), rng_of(1)
    draws = np.array([layer.draw(noise_of(layer, rng)).gram.ii for _ in range(2000)])
    _, law = laws(layer)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.abs((draws.mean(axis=0) - law.mean()) / error).max() < 4.5
    freedom = layer.values.delta + layer.values.gamma + 2.0  # of each diagonal entry, whatever the number of rows
    for k in range(4):
        marginal = stats.invgamma(0.5 * freedom, scale=0.5 * law.scale[k, k])
        assert stats.kstest(draws[:, k, k], marginal.cdf).pvalue > SMALL_P


def test_a_corner_of_a_draw_is_a_draw_of_fewer_rows():
    G, one = dense_map(full_gram(6)), values(4)
    few = one._replace(V=np.linalg.cholesky((one.V @ one.V.T)[:2, :2] / 2.0))
    noise = noise_of(large := Layer(parts(G, 4), one), 3)
    small = Layer(parts(G[np.ix_([0, 1, 4], [0, 1, 4])], 2), few)
    corner = Noise(np.ascontiguousarray(noise.A[:2, :2]), noise.moves[:2], *noise[2:4], noise.normals[:2])
    np.testing.assert_allclose(large.draw(noise).gram.ii[:2, :2], small.draw(corner).gram.ii, rtol=1e-10)


def test_rows_added_jointly_make_the_larger_matrix():
    """(3.1) for all rows at once is the Bartlett factor of the larger matrix, cut in two: to rounding."""
    K, size, m = dense_map(full_gram(6)), 4, 2
    large = Layer(parts(np.pad(K, (0, 1), constant_values=1.0), 6), prior(6))
    noise = noise_of(large, 7)
    whole = large.draw(noise).gram.ii
    A = noise.A
    inner = Noise(np.ascontiguousarray(A[:size, :size]), np.zeros(size), np.ones(1), np.zeros(1), np.zeros((size, 1)))
    layer = Layer(parts(K, size, joint=True), prior(size))
    found = layer.draw_jointly(inner, np.ascontiguousarray(A[size:, size:]), -A[:size, size:])
    np.testing.assert_allclose(found.ii, whole[:size, :size], rtol=1e-9)
    np.testing.assert_allclose(found.it, whole[:size, size:], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.tt, whole[size:, size:], rtol=1e-8, atol=1e-10)
    assert found.tt.shape == (m, m)


def row_draws(counted, count=1500):
    K, rng = dense_map(full_gram(4)), rng_of(11)
    layer = Layer(parts(K, 3), prior(3))
    found = [layer.draw(noise_of(layer, rng, counted=counted)).gram for _ in range(count)]
    return np.array([[one.tt[0], one.it[0, 0], one.it[2, 0]] for one in found]), K


def test_a_row_added_alone_has_the_law_of_the_larger_matrix():
    """(3.1) with P_t = 1 against scipy's inverse Wishart draws of one row more; the published P_t is seen to differ."""
    found, K = row_draws(1)
    whole = stats.invwishart(8.0 + 4 + 1, 8.0 * K).rvs(1500, random_state=2)
    expected = np.stack([whole[:, 3, 3], whole[:, 0, 3], whole[:, 2, 3]], axis=1)
    for column in range(3):
        assert stats.ks_2samp(found[:, column], expected[:, column]).pvalue > SMALL_P
    assert abs(found[:, 0].mean() - K[3, 3]) < 4.5 * found[:, 0].std() / np.sqrt(len(found))
    wrong, _ = row_draws(60)
    assert stats.ks_2samp(wrong[:, 0], expected[:, 0]).pvalue < 1e-8


def test_importance_weights_average_to_one():
    layer, rng = Layer(parts(dense_map(full_gram(4)), 3), values(3, gamma=1.0, weight=0.3)), rng_of(2)
    ratios = np.array([layer.log_ratio(noise_of(layer, rng).A) for _ in range(3000)])
    weights = np.exp(ratios)
    assert weights.std() < 2.0  # else the next line says nothing
    assert abs(weights.mean() - 1.0) < 4.5 * weights.std() / np.sqrt(len(weights))
    assert ratios.mean() < 0.0
    assert abs(ratios.mean() + layer.divergence()) < 4.5 * ratios.std() / np.sqrt(len(ratios))


def test_posterior_without_data_is_the_prior():
    layer = Layer(parts(dense_map(full_gram(4)), 3), prior(3))
    assert layer.divergence() == pytest.approx(0.0, abs=1e-12)
    assert layer.log_ratio(noise_of(layer, 1).A) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("shape", [1.2, 3.0, 20.0, 150.0])
def test_gamma_draws_move_along_quantiles(shape):
    probabilities = np.array([1e-4, 0.02, 0.3, 0.5, 0.8, 0.99, 0.9999])
    step = 1e-3 * shape
    up, down = (gammaincinv(shape + sign * step, probabilities) for sign in (1, -1))
    far_up, far_down = (gammaincinv(shape + sign * 2 * step, probabilities) for sign in (1, -1))
    expected = (8 * (up - down) - (far_up - far_down)) / (12 * step)
    np.testing.assert_allclose(gamma_move(shape, gammaincinv(shape, probabilities)), expected, rtol=2e-6)


# Output --------------------------------------------------------------------------------------------------------------


def dense_output(parameters, K, size):
    """Q(f_i) and, at the other rows, the mean and covariance of f by conditioning on noisy pseudo-targets."""
    L = parameters["factor"] * np.exp(parameters["log_factor"]) / np.mean(np.diag(parameters["factor"]))
    K = K * np.exp(2.0 * parameters["log_amplitude"])
    gain = np.linalg.solve(K[:size, :size] + np.linalg.inv(L @ L.T), K[:size]).T
    return gain @ parameters["targets"], K - gain @ K[:size], K


def test_output_is_a_gaussian_process_given_pseudo_targets():
    _, _, parameters = problem()
    G = dense_map(full_gram(6, 1))
    mean, covariance, K = dense_output(parameters, G, 4)
    output, joint = Output(parameters, parts(G, 4)), Output(parameters, parts(G, 4, joint=True))
    np.testing.assert_allclose(output.means, mean[4:], rtol=1e-10)
    np.testing.assert_allclose(output.variances, np.diag(covariance)[4:], rtol=1e-9)
    assert output.total_variance == pytest.approx(np.diag(covariance)[4:].sum(), rel=1e-9)
    np.testing.assert_allclose(joint.covariance, covariance[4:, 4:], rtol=1e-9, atol=1e-12)
    prior_scale, S = K[:4, :4], covariance[:4, :4]
    ratio = np.linalg.solve(prior_scale, S)
    expected = 0.5 * (np.trace(ratio) + mean[:4] @ np.linalg.solve(prior_scale, mean[:4]) - 4)
    expected += 0.5 * (np.linalg.slogdet(prior_scale)[1] - np.linalg.slogdet(S)[1])
    assert output.divergence() == pytest.approx(expected, rel=1e-9)


def exact_parameters(X, y, noise_variance, n_layers=0):
    """Inducing inputs at the data with their own responses: the output's posterior is exact."""
    found = initial_parameters(rng_of(0), X, y, len(X), n_layers)
    return found | {"log_factor": np.array(-0.5 * np.log(noise_variance)), "log_amplitude": np.zeros(())}


def test_bound_is_the_evidence_where_the_posterior_is_exact():
    rng, noise_variance = rng_of(4), 0.3
    X, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    K = dense_map(full_gram(6, 2))
    output = Output(exact_parameters(X, y, noise_variance), Gram(K, K, np.diag(K).copy()))
    likelihood = -0.5 * np.sum((y - output.means) ** 2 + output.variances) / noise_variance
    likelihood -= 3.0 * np.log(2.0 * np.pi * noise_variance)
    evidence = stats.multivariate_normal(np.zeros(6), K + noise_variance * np.eye(6)).logpdf(y)
    assert likelihood - output.divergence() == pytest.approx(evidence, abs=1e-9)
    jointly = Output(exact_parameters(X, y, noise_variance), Gram(K, K, K))
    posterior = stats.multivariate_normal(jointly.means, jointly.covariance)
    for f in posterior.rvs(20, random_state=0):  # for every sample, not only in the mean
        joint = stats.norm(f, noise_variance**0.5).logpdf(y).sum()
        joint += stats.multivariate_normal(np.zeros(6), K).logpdf(f)
        assert joint - posterior.logpdf(f) == pytest.approx(evidence, abs=1e-8)


def test_whole_bound_is_the_evidence_where_the_posterior_is_exact():
    """But for the 1e-6 that is added to the kernel's diagonal."""
    rng, noise_variance = rng_of(4), 0.3
    X, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    parameters = exact_parameters(X, y, noise_variance)
    K = input_kernel(parameters, X)[6:, 6:]
    evidence = stats.multivariate_normal(np.zeros(6), K + noise_variance * np.eye(6)).logpdf(y)
    gap = 6.0 * Bound(X, y, 6, noise_variance).evaluate(parameters, [[]])[0] - evidence
    assert -1e-3 < gap <= 0.0


def test_ascent_starts_where_the_published_code_does():
    X, y = rng_of(0).standard_normal((9, 2)), rng_of(1).standard_normal(9)
    at = initial_parameters(rng_of(0), X, y, 5, 2, ["log_noise"])
    assert not any(at[name].any() for name in ("log_delta", "log_gamma", "log_weight", "log_noise"))
    assert at["log_factor"] == -2.0  # half of a log precision of -4
    np.testing.assert_array_equal(at["factor"], np.eye(5))
    places = [int(np.abs(X - row).sum(axis=1).argmin()) for row in at["inducing"]]
    np.testing.assert_array_equal(at["inducing"], X[places])
    np.testing.assert_array_equal(at["targets"], y[places])
    assert 0.5 < at["V"].std() < 1.5


def input_kernel(parameters, X):
    stacked = np.vstack([parameters["inducing"], X])
    if "input_shifts" in parameters:
        stacked = stacked * np.exp(parameters["log_input_scales"]) + parameters["input_shifts"]
    F = np.column_stack([stacked, np.ones(len(stacked))])
    return dense_map(F @ F.T / F.shape[1])


@pytest.mark.parametrize("seed", range(10))
def test_bound_is_below_the_evidence(seed):
    X, y, parameters = problem(n_layers=0, seed=seed)
    bound = Bound(X, y, 6)
    value, _ = bound.evaluate(parameters, [[]])
    K = input_kernel(parameters, X)[4:, 4:] * np.exp(2.0 * parameters["log_amplitude"])
    evidence = stats.multivariate_normal(np.zeros(6), K + np.exp(2.0 * parameters["log_noise"]) * np.eye(6)).logpdf(y)
    assert 6 * value < evidence


# Gradient ------------------------------------------------------------------------------------------------------------


def at_same_quantiles(noises, before, after, size, counted):
    """The noise of the same quantiles under other parameters."""
    found = []
    for k, noise in enumerate(noises):
        (old, new), count = (layer_values(one, k) for one in (before, after)), np.arange(1, size + 1)
        A = noise.A.copy()
        shapes = [0.5 * (one.delta + one.gamma + 1.0 + count) for one in (old, new)]
        A[np.diag_indices(size)] = np.sqrt(2.0 * gammaincinv(shapes[1], gammainc(shapes[0], 0.5 * np.diag(A) ** 2)))
        rows = [0.5 * (one.delta + size + 1.0 + counted) for one in (old, new)]
        found.append(noise._replace(A=A, squares=2.0 * gammaincinv(rows[1], gammainc(rows[0], 0.5 * noise.squares))))
    return found


@pytest.mark.parametrize(("n_layers", "counted"), [(0, 1), (1, 1), (1, 5), (2, 1)])
def test_gradient_of_the_bound(n_layers, counted, central_differences):
    """By every parameter, noise and amplitude and scales of inputs included."""
    X, y, parameters = problem(n=5, size=3, n_layers=n_layers, seed=n_layers)
    bound = Bound(X, y, 9, None, counted)
    rng = rng_of(8)
    noises = [bound.draw_noise(rng, parameters) for _ in range(2)]
    gradient = bound.evaluate(parameters, noises)[1]
    for name, start in parameters.items():

        def value(flat, name=name, start=start):
            moved = {**parameters, name: flat.reshape(start.shape)}
            same = [at_same_quantiles(noise, parameters, moved, 3, counted) for noise in noises]
            return bound.evaluate(moved, same)[0]

        expected = central_differences(value, start.ravel())
        np.testing.assert_allclose(gradient[name].ravel(), expected, rtol=1e-6, atol=1e-8, err_msg=name)


# The whole process ---------------------------------------------------------------------------------------------------


def test_rotating_the_inputs_changes_nothing():
    X, y, parameters = problem(p=3, n_layers=2, learn_inputs=False)
    Q, _ = np.linalg.qr(rng_of(9).standard_normal((3, 3)))
    bound = Bound(X, y, 6)
    noises = [bound.draw_noise(rng_of(1), parameters)]
    turned = {**parameters, "inducing": parameters["inducing"] @ Q}
    value, _ = Bound(X @ Q, y, 6).evaluate(turned, noises)
    assert value == pytest.approx(bound.evaluate(parameters, noises)[0], rel=1e-10)


def test_bound_of_parts_averages_to_that_of_the_whole():
    X, y, parameters = problem(n_layers=2)
    noises = Bound(X, y, 6).draw_noise(rng_of(1), parameters)
    whole = Bound(X, y, 6).evaluate(parameters, [noises])[0]
    pieces = []
    for rows in (slice(0, 2), slice(2, 6)):
        some = [one._replace(
            squares=one.squares[rows], square_moves=one.square_moves[rows], normals=one.normals[:, rows]
        ) for one in noises]  # fmt: skip
        pieces.append(Bound(X[rows], y[rows], 6).evaluate(parameters, [some])[0])
    assert (2 * pieces[0] + 4 * pieces[1]) / 6 == pytest.approx(whole, rel=1e-10)


def test_published_degrees_of_freedom_depend_on_the_batch():
    """The exact ones do not."""
    shares = [
        [draw_noise(rng_of(2), 4.0, 1.0, 5, 2000, counted).squares.mean() for counted in (1, n)] for n in (10, 40)
    ]
    assert shares[0][0] == shares[1][0] == pytest.approx(4.0 + 5 + 2, rel=0.02)
    assert shares[0][1] == pytest.approx(4.0 + 5 + 1 + 10, rel=0.02)
    assert shares[1][1] == pytest.approx(4.0 + 5 + 1 + 40, rel=0.02)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_large_delta_is_the_deterministic_kernel(n_layers):
    """δ → ∞: the Gaussian process whose kernel maps follow each other, conditioned densely, to order δ^-½."""
    rng, noise_variance = rng_of(6), 0.1
    X, y, new = rng.standard_normal((6, 2)), rng.standard_normal(6), rng.standard_normal((4, 2))
    parameters = exact_parameters(X, y, noise_variance, n_layers)
    K = input_kernel(parameters, new)
    for _ in range(n_layers):
        K = dense_map(K)
    mean, covariance, _ = dense_output(parameters, K, 6)
    errors = []
    for delta in (1e6, 1e12):
        parameters |= {"log_delta": np.full(n_layers, np.log(delta)), "log_weight": np.full(n_layers, -30.0)}
        atoms = Atoms(parameters)
        positions = atoms.draw(rng_of(3), 3)
        means, variances = atoms.moments(positions, new)
        errors.append(max(np.abs(means - mean[6:]).max(), np.abs(variances - np.diag(covariance)[6:]).max()))
        rngs = [rng_of(k) for k in range(3)]
        for joint_mean, joint in atoms.joint(positions, rngs, new):
            assert max(np.abs(joint_mean - mean[6:]).max(), np.abs(joint - covariance[6:, 6:]).max()) < 10 / delta**0.5
    assert errors[0] < 1e-2
    assert errors[1] < 1e-5


def test_large_delta_predicts_as_the_network_process():
    rng, noise_variance = rng_of(6), 0.1
    X, y, new = rng.standard_normal((6, 2)), rng.standard_normal(6), rng.standard_normal((4, 2))
    large = {"log_delta": np.full(1, np.log(1e12)), "log_weight": np.full(1, -30.0)}
    atoms = Atoms(exact_parameters(X, y, noise_variance, 1) | large)
    moments = NNGP(X, y, 2, 1.0, noise_variance).condition(np.zeros(0)).moments(new)
    for found, wanted in zip(atoms.moments(atoms.draw(rng_of(3), 3), new), moments):
        np.testing.assert_allclose(found, np.tile(wanted, (3, 1)), atol=1e-4)


def test_atoms_extend_the_draws_of_the_bound():
    """Predictions at training rows with a row's own noise are what the bound is made of."""
    X, y, parameters = problem(n_layers=2)
    atoms = Atoms(parameters)
    position = atoms.draw(rng_of(5), 1)[0]
    means, variances = atoms.moments(position[None], X)
    noises = [one._replace(squares=np.repeat(one.squares, 6), square_moves=np.zeros(6),
                           normals=np.repeat(one.normals, 6, axis=1)) for one in atoms.noises(position)]  # fmt: skip
    value, _ = Bound(X, y, 10**12).evaluate(parameters, [noises])  # so many data that divergences do not count
    log_noise = parameters["log_noise"]
    misfit = np.mean((y - means[0]) ** 2 + variances[0]) * np.exp(-2.0 * log_noise)
    assert value == pytest.approx(-0.5 * misfit - log_noise - 0.5 * np.log(2.0 * np.pi), rel=1e-9)


def test_joint_law_of_one_row_is_its_own():
    X, _, parameters = problem(n_layers=2)
    atoms = Atoms(parameters)
    positions = atoms.draw(rng_of(5), 4)
    means, variances = atoms.moments(positions, X[:1])
    for t, (mean, covariance) in enumerate(atoms.joint(positions, [rng_of(t) for t in range(4)], X[:3])):
        assert mean[0] == pytest.approx(means[t, 0], rel=1e-8)
        assert covariance[0, 0] == pytest.approx(variances[t, 0], rel=1e-7)


def test_rows_asked_together_continue_the_bartlett_factor():
    """A_jj² ~ χ²(δ + P + 1 + j), A_ij ~ N(0, 1): as in the larger matrix, of which the first row is the draw's own."""
    _, _, parameters = problem(n_layers=1)
    atoms, rng, delta = Atoms(parameters), rng_of(3), 2.5
    (noise,) = atoms.noises(atoms.draw(rng, 1)[0])
    drawn = [atoms._rows_noise(rng, noise, delta, 3) for _ in range(2000)]
    A, normals = (np.array(part) for part in zip(*drawn))
    np.testing.assert_allclose(A[:, 0, 0] ** 2, noise.squares[0])
    np.testing.assert_array_equal(normals[:, :, 0], np.tile(noise.normals[:, 0], (2000, 1)))
    for j in (1, 2):
        law = stats.chi2(delta + atoms.size + 1 + (j + 1))
        assert stats.kstest(A[:, j, j] ** 2, law.cdf).pvalue > SMALL_P
        assert stats.kstest(normals[:, 1, j], "norm").pvalue > SMALL_P
    assert stats.kstest(A[:, 0, 2], "norm").pvalue > SMALL_P
    assert not np.tril(A, -1).any()


# Climb --------------------------------------------------------------------------------------------------------------


def test_adam_takes_steps_of_the_rate():
    parameters = {"a": np.zeros(2)}
    optimiser = Adam(parameters)
    optimiser.step({"a": np.array([3.0, -1e-3])}, 0.01)
    np.testing.assert_allclose(parameters["a"], [0.01, -0.01], rtol=1e-4)
    optimiser.step({"a": np.array([3.0, 0.0])}, 0.01)
    mean, square = (0.9 * 0.1 * 1e-3) / (1 - 0.81), (0.999 * 0.001 * 1e-6) / (1 - 0.999**2)
    np.testing.assert_allclose(parameters["a"], [0.02, -0.01 - 0.01 * mean / np.sqrt(square)], rtol=1e-4)


def test_ascent_reaches_the_evidence():
    """Without a Wishart layer and with an inducing input at every row the bound's maximum is the evidence."""
    rng = rng_of(0)
    X = rng.standard_normal((8, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(8)
    parameters = initial_parameters(rng, X, y, 8, 0)
    rates = np.r_[np.full(400, 0.05), np.full(300, 0.005)]
    trace = Climb(X, y, 0.09, 1, 8, 1).ascend(rng, parameters, rates)
    K = input_kernel({**parameters, "inducing": X}, X)[8:, 8:]
    evidence = stats.multivariate_normal(np.zeros(8), K + 0.09 * np.eye(8)).logpdf(y)
    assert evidence - 0.3 < 8 * trace[-1] < evidence


def test_posterior_of_useless_data_is_the_prior():
    """Noise that drowns the data leaves the divergences to be removed, and the prior's law of the function."""
    rng = rng_of(1)
    X, y = rng.standard_normal((5, 1)), rng.standard_normal(5)
    parameters = initial_parameters(rng, X, y, 5, 1)
    rates = np.r_[np.full(600, 0.05), np.full(200, 0.005)]
    trace = Climb(X, y, 1e4, 2, 5, 1).ascend(rng, parameters, rates)
    nothing = -0.5 * np.log(2.0 * np.pi * 1e4) - 0.5 * np.mean(y**2) / 1e4
    assert 5 * trace[0] < 5 * nothing - 1.0
    assert 5 * trace[-1] == pytest.approx(5 * nothing, abs=0.1)
    new = np.array([[0.3]])
    atoms = Atoms(parameters)
    means, variances = atoms.moments(atoms.draw(rng, 400), new)
    own = (0.3**2 + 1.0) / 2.0
    spread = (means**2 + variances)[:, 0]
    assert abs(spread.mean() - own) < 5.0 * spread.std() / 20.0 + 0.05 * own


def test_failed_steps_move_nothing():
    X, y = np.full((3, 1), 1e200), np.ones(3)
    parameters = initial_parameters(rng_of(0), X, y, 3, 1, ["log_noise"])
    before = {name: value.copy() for name, value in parameters.items()}
    with np.errstate(all="ignore"):
        trace = Climb(X, y, None, 2, 3, 1).ascend(rng_of(0), parameters, np.full(4, 0.01))
    assert np.isnan(trace).all()
    for name, value in before.items():
        np.testing.assert_array_equal(parameters[name], value)
    assert judge(trace, 3)["n_failures"] == 4


def test_judge():
    noise = 0.01 * rng_of(0).standard_normal(1000)
    flat, steep = judge(noise - 1.0, 50), judge(noise + np.linspace(-2.0, -1.0, 1000), 50)
    assert not flat["rising"]
    assert steep["rising"]
    assert flat["elbo"] == pytest.approx(-1.0, abs=0.01)
    assert steep["elbo_rise"] == pytest.approx(0.1, abs=0.01)
    assert judge(noise[:5], 50)["rising"]
