"""Centres and groups: the sum of kernel processes against dense algebra, its gradient, and the regressor's options."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import halfcauchy, kstest, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import StableKernelRegressor, load
from cadlag.kernel_process import groups
from cadlag.kernel_process.groups import GroupedProcess
from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian
from cadlag.sampling import SAMPLERS
from cadlag.sampling.leaps import NutsWithLeaps
from cadlag.sampling.probes import probe_rows
from statistical.checks import joint_law, paired, prior_uniforms, sample_until, worst
from statistical.kernels_under_test import leaps, nuts_with_leaps, small_grouped, tempered_with_leaps

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")
assert_allclose = np.testing.assert_allclose


def data(n=10, seed=0):
    """An intercept and two inputs."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.ones(n), rng.standard_normal((n, 2))]), rng.standard_normal(n)


def process(n_groups=3, n_centred=2, n=10, **settings):
    X, y = data(n)
    return GroupedProcess(X, y, n_groups=n_groups, n_centred=n_centred, **settings)


def ordinary(model, seed=1):
    return 0.6 * np.random.default_rng(seed).standard_normal(model.dimension)


def dense(model, position, X, plain_recursion):
    """G^(-2/α) Σ_g c_g Σ_K from natural scales and the recursion in plain numpy."""
    p, K, G = model.X.shape[1], model.depth, model.n_groups
    if model.alpha == 2.0:
        scales = np.ones((G, p + K))
    else:
        scales = np.exp(position[: G * (p + K)]).reshape(G, p + K)
    centres = np.zeros((G, p))
    if model.n_centred:
        first = 0 if model.alpha == 2.0 else G * (p + K)
        centres[:, p - model.n_centred :] = position[first : first + G * model.n_centred].reshape(G, -1)
    total = 0.0
    for own, m in zip(scales, centres):
        inner = np.r_[1.0, own[p : p + K - 1]]
        total = total + own[-1] * plain_recursion(X - m, own[:p], inner, model.order)[-1]
    return G ** (-2.0 / model.alpha) * total


# The model -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("preset", "depth"), [("theorem", 1), ("theorem", 3), ("prop2", 2), ("published_code", 2)])
def test_one_group_without_centre_is_the_kernel_process(preset, depth, order):
    X, y = data(20)
    plain = KernelProcess(X, y, order=order, depth=depth, preset=preset)
    model = GroupedProcess(X, y, order=order, depth=depth, preset=preset)
    assert model.dimension == plain.dimension
    rng, twin = np.random.default_rng(2), np.random.default_rng(2)
    for _ in range(20):
        position = plain.sample_prior(rng)
        np.testing.assert_array_equal(model.sample_prior(twin), position)
        (value, gradient), (expected, slope) = (m.log_target_gradient(position, 1.0) for m in (model, plain))
        assert value == expected == model.log_target(position, 1.0)
        np.testing.assert_array_equal(gradient, slope)
    np.testing.assert_array_equal(model.leave_one_out(position), plain.leave_one_out(position))
    for found, wanted in zip(model.condition(position).moments(X[:4]), plain.condition(position).moments(X[:4])):
        assert_allclose(found, wanted, rtol=1e-13)
    names = plain.named(position[None])
    assert model.named(position[None]).keys() == names.keys()
    for name, values in model.named(position[None]).items():
        np.testing.assert_array_equal(values, names[name])


@pytest.mark.parametrize("alpha", [0.7, 1.0, 2.0])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("n_groups", "n_centred"), [(1, 2), (3, 0), (3, 2)])
def test_against_dense_algebra(n_groups, n_centred, order, depth, alpha, plain_recursion):
    """Likelihood, moments, joint law and leave-one-out, noise one for each row."""
    noise = np.random.default_rng(3).uniform(0.1, 0.9, 10)
    model = process(n_groups, n_centred, alpha=alpha, order=order, depth=depth, likelihood=Gaussian(noise))
    position, new = ordinary(model), data(5, 5)[0]
    S = dense(model, position, np.r_[model.X, new], plain_recursion)
    covariance = S[:10, :10] + np.diag(noise)
    expected = -0.5 * (np.linalg.slogdet(2 * np.pi * covariance)[1] + model.y @ np.linalg.solve(covariance, model.y))
    assert model.log_likelihood(position) == pytest.approx(expected, rel=1e-8)
    assert_allclose(model.covariance(position, new), S[10:, 10:], rtol=1e-8)
    gain = np.linalg.solve(covariance, S[:10, 10:]).T
    mean, joint = gain @ model.y, S[10:, 10:] - gain @ S[:10, 10:]
    atom = model.condition(position)
    assert_allclose(atom.mean(new), mean, rtol=1e-7, atol=1e-9)
    assert_allclose(atom.moments(new)[0], mean, rtol=1e-7, atol=1e-9)
    assert_allclose(atom.moments(new)[1], np.diag(joint), rtol=1e-7, atol=1e-9)
    assert_allclose(atom.joint(new)[1], joint, rtol=1e-7, atol=1e-8)
    assert atom.noise_variance == pytest.approx(noise.mean())
    inverse = np.linalg.inv(covariance)
    variance, error = 1.0 / np.diag(inverse), inverse @ model.y / np.diag(inverse)
    assert_allclose(
        model.leave_one_out(position).log_density, -0.5 * (np.log(2 * np.pi * variance) + error**2 / variance)
    )


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("n_groups", "n_centred"), [(1, 2), (2, 0), (3, 2)])
def test_gradient_by_scales_centres_and_noise(n_groups, n_centred, order, depth, alpha, central_differences):
    model = process(n_groups, n_centred, alpha=alpha, order=order, depth=depth)
    for seed in range(3):
        position = ordinary(model, seed)
        value, gradient = model.log_target_gradient(position, 1.0)
        assert value == model.log_target(position, 1.0)
        expected = central_differences(lambda x: model.log_target(x, 1.0), position, 1e-3)
        assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("preset", ["prop2", "published_code"])
def test_gradient_of_a_centre_in_other_presets(preset, central_differences):
    model = process(1, 2, depth=2, preset=preset)
    position = ordinary(model)
    expected = central_differences(model.log_likelihood, position, 1e-3)
    assert_allclose(model.log_likelihood_gradient(position)[1], expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("order", [0, 1])
def test_gradient_of_a_steep_function(order, central_differences):
    """A large scale, rows twice and rows next to each other: the angles that differences are taken for."""
    X, y = data(8)
    X = np.r_[X, X[:2], X[2:4] + 1e-4]
    model = GroupedProcess(X, np.r_[y, y[:4]], order=order, n_groups=2, n_centred=2)
    position = ordinary(model)
    position[1] = 9.0
    expected = central_differences(model.log_likelihood, position, 1e-5)
    assert_allclose(model.log_likelihood_gradient(position)[1], expected, atol=1e-6 * np.abs(expected).max())


def test_symmetries():
    """Groups may change places; moving inputs and centres together changes nothing."""
    model = process()
    position = ordinary(model)
    size, turned = model.one.n_scales, position.copy()
    turned[: 3 * size] = np.roll(position[: 3 * size], size)
    turned[3 * size : -1] = np.roll(position[3 * size : -1], 2)
    assert model.log_target(turned, 1.0) == pytest.approx(model.log_target(position, 1.0), rel=1e-12)
    shift = np.array([0.0, 0.4, -1.1])
    moved = GroupedProcess(model.X + shift, model.y, n_groups=3, n_centred=2)
    there = position.copy()
    there[3 * size : -1] += np.tile(shift[1:], 3)
    assert moved.log_likelihood(there) == pytest.approx(model.log_likelihood(position), rel=1e-10)


def test_names():
    model = process(depth=2)
    rng = np.random.default_rng(4)
    position = model.sample_prior(rng)
    names = model.named(np.stack([position, position])[None])
    shapes = {"input_scales": (1, 2, 3, 3), "layer_scales": (1, 2, 3, 2), "centers": (1, 2, 3, 2)}
    assert {name: values.shape for name, values in names.items()} == {**shapes, "noise_variance": (1, 2)}
    assert_allclose(names["centers"][0, 0].ravel(), position[15:21], rtol=1e-15)


def test_prior_density_of_groups_is_the_product_of_its_parts():
    model = process(2, 2, alpha=1.4, depth=2)
    position = model.sample_prior(np.random.default_rng(6))
    scales, centres, log_v = np.split(position, [10, 14])
    expected = model.law.log_density(scales).sum() + norm.logpdf(centres).sum()
    expected += halfcauchy.logpdf(math.exp(log_v[0])) + log_v[0]
    assert model.log_prior(position) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("move", ["_walk", "_renew", "_shift", "_exchange"])
def test_every_leap_leaves_the_prior_alone(move):
    """Positions drawn from it are still draws from it afterwards, and most of them are others."""
    model, rng = process(2, 2, alpha=1.4), np.random.default_rng(7)
    before = np.array([model.sample_prior(rng) for _ in range(2500)])
    after = np.array([getattr(model, move)(rng, position) for position in before])
    assert np.mean((before != after).any(axis=1)) > 0.3
    scales, centres, log_v = np.split(after, [8, 12], axis=1)
    laws = [(scales, model.law.cdf), (centres, norm.cdf), (log_v, lambda x: halfcauchy.cdf(np.exp(x)))]
    for values, cdf in laws:
        for column in values.T:
            assert kstest(column, cdf).pvalue > 1e-4
    moved = centres[centres != before[:, 8:12]]
    if move != "_walk":
        assert abs(np.mean(moved**2) - 1.0) < 4.5 * math.sqrt(2.0 / len(moved))


@pytest.mark.parametrize("settings", [{}, {"n_centred": 0}, {"alpha": 2.0}, {"alpha": 2.0, "n_centred": 0}])
@pytest.mark.parametrize("noise", [None, 0.3])
def test_leaps_are_positions(noise, settings):
    model, rng = process(likelihood=Gaussian(noise), **settings), np.random.default_rng(4)
    position = model.sample_prior(rng)
    proposals = np.array([model.leap(rng, position) for _ in range(400)])
    assert proposals.shape == (400, model.dimension)
    if model.n_centred or model.n_scales:
        assert (np.ptp(proposals, axis=0) > 0.0).all()


def test_failures_extremes_and_pickle():
    X, y = data()
    hopeless = GroupedProcess(np.r_[X, X], np.r_[y, -y], likelihood=Gaussian(1e-40), n_groups=2, n_centred=2)
    value, gradient = hopeless.log_likelihood_gradient(np.zeros(hopeless.dimension))
    assert value == -math.inf
    assert (gradient == 0.0).all()
    rng = np.random.default_rng(0)
    for order in (0, 1, 2):
        model = process(order=order, depth=2)
        for size in (50.0, 600.0, 1e4):
            position = size * rng.choice([-1.0, 0.0, 1.0], model.dimension)
            value, gradient = model.log_target_gradient(position, 1.0)
            assert value < math.inf
            assert np.isfinite(gradient).all()
    position = ordinary(model)
    value = model.log_target(position, 1.0)
    assert len(pickle.dumps(model)) < 3000
    assert pickle.loads(pickle.dumps(model)).log_target(position, 1.0) == value


# The samplers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_leaps(monkeypatch):
    """The law is the same however many there are."""
    monkeypatch.setattr(groups, "LEAPS", 6)


@pytest.mark.usefixtures("few_leaps")
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"order": 0, "n_groups": 3}, marks=pytest.mark.slow),
        pytest.param({"n_centred": 0}, marks=pytest.mark.slow),
        {"n_groups": 1, "depth": 2},
    ],
)
def test_leaps_leave_the_joint_law_alone(options):
    assert worst(joint_law(small_grouped(**options), leaps, 21)) < 4.0


@pytest.mark.usefixtures("few_leaps")
def test_trajectories_with_leaps_leave_the_joint_law_alone():
    assert worst(paired(small_grouped(), nuts_with_leaps, 400, 22)) < 4.0


@pytest.mark.slow
@pytest.mark.usefixtures("few_leaps")
def test_exchanges_with_leaps_leave_the_joint_law_alone():
    assert worst(joint_law(small_grouped(), tempered_with_leaps, 24)) < 4.0


@pytest.mark.usefixtures("few_leaps")
def test_a_leap_that_is_not_reversible_is_caught(monkeypatch):
    """The check can fail: centres that shrink instead of moving."""
    right = GroupedProcess.leap

    def wrong(self, rng, position):
        proposal = right(self, rng, position)
        proposal[self.n_scales : -1] *= 0.8
        return proposal

    monkeypatch.setattr(GroupedProcess, "leap", wrong)
    assert 4.0 < worst(joint_law(small_grouped(), leaps, 21)) < math.inf


@pytest.mark.parametrize("maker", [NutsWithLeaps, "nuts", "plain_nuts"])
def test_no_data_gives_the_prior(maker):
    empty = small_grouped(n=0)
    draws, _, size = sample_until(empty, maker, 200, 300, 2, 23, 250.0)
    uniforms = prior_uniforms(empty, draws).reshape(-1, empty.dimension)
    for moment, mean, variance in ((uniforms, 0.5, 1 / 12), ((uniforms - 0.5) ** 2, 1 / 12, 1 / 180)):
        assert np.abs((moment.mean(axis=0) - mean) / math.sqrt(variance / size)).max() < 4.0


# The regressor -------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(42)
X = RNG.uniform([1.0, -2.0], [5.0, 2.0], (24, 2))
Y = 10.0 + 4.0 * (X[:, 0] > 3.3) + 0.3 * RNG.standard_normal(24)


def tiny(**settings):
    short = {"n_draws": 6, "n_warmup": 6, "n_chains": 2, "random_state": 3, "n_groups": 2, "centers": True}
    return StableKernelRegressor(**{**short, **settings})


@pytest.mark.slow
@parametrize_with_checks(
    [StableKernelRegressor(alpha=1.8, n_draws=5, n_warmup=30, n_chains=1, n_groups=2, centers=True)]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return tiny(n_draws=20, n_warmup=30).fit(X, Y)


def test_everything_the_interface_asks(fitted, tmp_path):
    assert fitted.predict(X).shape == (24,)
    assert fitted.predict_interval(X).shape == (24, 2)
    assert np.isfinite(fitted.predict(X, return_cov=True)[1]).all()
    assert fitted.sample_y(X, 3).shape == (24, 3)
    relevance = fitted.feature_relevance(n_atoms=10)
    assert len(relevance["scale"]) == len(relevance["relevance"]) == 2
    fitted.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
    longer = tiny(n_draws=25, n_warmup=30).fit(X, Y)
    np.testing.assert_array_equal(twin.extend(5).posterior_.positions, longer.posterior_.positions)
    tree = fitted.posterior_.to_arviz()
    assert tree["posterior"]["centers"].dims[2:] == ("group", "centers_entry")
    assert tree["posterior"]["function"].shape == (2, 20, 8)
    assert clone(fitted).get_params()["n_groups"] == 2


def test_checkpoint(tmp_path):
    first = tiny().fit(X, Y, checkpoint=tmp_path / "run")
    again = tiny(n_draws=9).fit(X, Y, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.posterior_.positions[:, :6], first.posterior_.positions)
    with pytest.raises(ValueError, match="settings"):
        tiny(n_groups=3).fit(X, Y, checkpoint=tmp_path / "run")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler(sampler):
    model = tiny(sampler=sampler, n_draws=4, n_warmup=4, n_chains=1).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    watched = model.posterior_["function"][0, :, 0]
    rows = model.model_.X[probe_rows(24)[:1]]
    mean = [model.model_.condition(position).mean(rows)[0] for position in model.posterior_.positions[0]]
    assert_allclose(watched, model._in_units(np.array(mean)), rtol=1e-9)


def test_groups_are_diagnosed_by_what_has_no_label(fitted):
    summary = fitted.posterior_.summary()
    rhat = dict(zip(summary["parameter"], summary["rhat"]))
    assert all(np.isnan(value) == (", " in name) for name, value in rhat.items())
    assert {"centers[0, x0]", "input_scales[1, intercept]", "noise_variance", "function[row 0]"} <= set(rhat)
    assert "[0, " not in fitted.diagnostics_["worst_rhat_parameter"]


def test_chains_that_disagree_are_named():
    with pytest.warns(ConvergenceWarning, match="The chains do not agree yet"):
        tiny().fit(X, Y)


def test_centres_are_in_the_units_of_the_inputs():
    model = tiny(n_groups=1, n_draws=20, n_warmup=100).fit(X, Y)
    raw = model.model_.named(model.posterior_.positions)["centers"]
    assert_allclose(model.posterior_["centers"], X.mean(axis=0) + X.std(axis=0, ddof=1) * raw)
    assert "centers[x1]" in model.posterior_.scalars()
    assert model.sample_kernels(n_draws=3).shape == (3, 24, 24)
    assert model.sample_features(n_draws=3).shape == (3, 2, 24)


def test_prior_tools():
    x = np.linspace(-1.0, 1.0, 5)[:, None]
    assert tiny().sample_prior(x, 4).shape == (5, 4)
    info, error = tiny().conditional_mutual_information(x[:2], x[2:4], n_samples=50)
    assert (info > 0.0).all()
    assert (error > 0.0).all()
    assert (tiny(alpha=2.0).conditional_mutual_information(x[:2], x[2:4], n_samples=50)[1] > 0.0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_groups": 0}, "n_groups must be an integer of at least 1, got 0"),
        ({"n_groups": 2.0}, "n_groups must be an integer of at least 1, got 2.0"),
        ({"n_groups": True}, "n_groups must be an integer of at least 1, got True"),
        ({"centers": 1}, "centers must be True or False, got 1"),
        ({"centers": "yes"}, "centers must be True or False, got 'yes'"),
        ({"preset": "prop2"}, 'n_groups > 1 needs a random output scale for each group: use preset "theorem"'),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        tiny(**settings).fit(X, Y)


def test_one_kernel_a_layer_is_not_there_with_groups(fitted):
    for ask in (fitted.sample_kernels, fitted.sample_features):
        with pytest.raises(ValueError, match="needs n_groups=1: with 2 groups a layer has as many kernels"):
            ask()


def test_a_jump_off_the_origin_wants_a_centre():
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    new = np.linspace(-1.0, 1.0, 201)[:, None]
    y = 5.0 * (x[:, 0] > 0.37) + 0.5 * np.random.default_rng(1).standard_normal(40)
    settings = {"n_draws": 150, "n_warmup": 150, "n_chains": 2, "random_state": 0}
    error = {}
    for centers in (False, True):
        model = StableKernelRegressor(centers=centers, **settings).fit(x, y)
        error[centers] = math.sqrt(np.mean((model.predict(new) - 5.0 * (new[:, 0] > 0.37)) ** 2))
    assert error[True] < 0.7 * error[False]
    assert abs(np.median(model.posterior_["centers"]) - 0.37) < 0.1
