"""The normal mixture against closed forms, brute force and its own symmetries."""

import pickle
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from cadlag.metrics import _half_spread, _lattice_term, _pair_term
from cadlag.predictive import Predictive

LEVELS = [1e-12, 1e-4, 0.05, 0.3, 0.5, 0.9, 0.95, 1 - 1e-9]
SHAPES = ("typical", "heavy", "isolated", "one wild atom", "two scales", "points", "points and normals")


@pytest.fixture(autouse=True)
def _silence_is_tested() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def mixture(shape: str, n_atoms: int = 200, n_inputs: int = 3, seed: int = 0) -> Predictive:
    """Mixtures that are hard in different ways."""
    rng = np.random.default_rng(seed)
    size = (n_atoms, n_inputs)
    means, scales = rng.normal(size=size), np.exp(0.5 * rng.normal(size=size))
    if shape == "heavy":
        scales = 1.0 / rng.normal(size=size) ** 2
        means *= scales
    elif shape == "isolated":
        means, scales = 1e3 * rng.standard_cauchy(size=size), np.full(size, 1e-3)
    elif shape == "one wild atom":
        means, scales = 1e-3 * means, np.full(size, 1e-3)
        scales[0] = 1e6
    elif shape == "two scales":
        scales[::2] = 1e-6
    elif shape == "points":
        scales[:] = 0.0
    elif shape == "points and normals":
        scales[::3] = 0.0
    return Predictive(means, scales**2)


numbers = st.floats(-50.0, 50.0)
scales = st.one_of(st.just(0.0), st.floats(1e-3, 100.0))
probabilities = st.floats(1e-6, 1 - 1e-6)


@st.composite
def mixtures(draw: st.DrawFn, scale: st.SearchStrategy[float] = scales, max_atoms: int = 12) -> Predictive:
    """A mixture at one input, with weights in any unit."""
    n = draw(st.integers(1, max_atoms))
    means, sds, weights = (draw(st.lists(s, min_size=n, max_size=n)) for s in (numbers, scale, st.floats(0.01, 10.0)))
    return Predictive(np.array(means)[:, None], np.array(sds)[:, None] ** 2, weights)


property_test = settings(deadline=None, max_examples=60, derandomize=True)


def normal_crps(y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    z = (y - mean) / sd
    return sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


# Quantiles


def assert_inverts(law: Predictive, p: float) -> None:
    """F(quantile(p)) = p, up to what moving the quantile by a few units in its last place does."""
    x = law.quantile(p)
    room = 2e-13 * min(p, 1 - p) + 4e-16 + 4 * np.spacing(np.abs(x)) * law.pdf(x)
    assert (np.abs(law.cdf(x) - p) <= room).all()


@pytest.mark.parametrize("shape", [s for s in SHAPES if "points" not in s])
def test_cdf_inverts_quantile(shape: str) -> None:
    law = mixture(shape)
    for p in LEVELS:
        assert_inverts(law, p)


@pytest.mark.parametrize("shape", ["typical", "heavy", "one wild atom"])
def test_quantile_agrees_with_a_plain_root_search(shape: str) -> None:
    law = mixture(shape, n_atoms=50, n_inputs=2)
    sds = np.sqrt(law.variances)
    for i in range(2):
        for p in (0.02, 0.5, 0.97):
            lower, upper = -1e8, 1e8
            while np.nextafter(lower, upper) < upper:
                middle = 0.5 * (lower + upper)
                above = stats.norm.cdf(middle, law.means[:, i], sds[:, i]).mean() >= p
                lower, upper = (lower, middle) if above else (middle, upper)
            assert law.quantile(p)[i] == pytest.approx(upper, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("n_atoms", [1, 7, 10, 100])
def test_points_give_order_statistics(n_atoms: int) -> None:
    law = mixture("points", n_atoms)
    ordered = np.sort(law.means, axis=0)
    for k in range(1, n_atoms):
        p = k / n_atoms
        np.testing.assert_array_equal(law.quantile(p), ordered[k - 1])
        np.testing.assert_array_equal(law.quantile(np.nextafter(p, 1.0)), ordered[k])
        np.testing.assert_array_equal(law.cdf(ordered[k - 1]), p)


def test_quantile_stops_on_a_point_mass_and_passes_it() -> None:
    law = Predictive([[0.0], [0.0], [3.0], [3.0]], [[1.0], [1.0], [0.0], [0.0]])
    jump = 0.5 * stats.norm.cdf(3.0)
    assert law.quantile(0.25)[0] == pytest.approx(0.0, abs=1e-12)
    assert law.quantile([jump + 1e-6, 0.7, jump + 0.5 - 1e-6]).tolist() == [[3.0, 3.0, 3.0]]
    assert law.quantile(jump + 0.5 + 1e-5)[0] == pytest.approx(stats.norm.isf(2 * (0.5 - jump - 1e-5)), rel=1e-9)


def test_quantile_of_one_normal() -> None:
    law = Predictive([[1.0, -2.0]], [[4.0, 1e-10]])
    expected = np.array([1.0, -2.0])[:, None] + np.array([2.0, 1e-5])[:, None] * stats.norm.ppf(LEVELS)
    np.testing.assert_allclose(law.quantile(LEVELS), expected, rtol=1e-14)


@property_test
@given(mixtures(), st.lists(probabilities, min_size=2, max_size=6))
def test_quantiles_are_monotone_and_the_smallest_with_enough_mass(law: Predictive, levels: list[float]) -> None:
    quantiles = law.quantile(sorted(levels))[0]
    spread = float(law.std[0]) + float(np.abs(law.means).max())
    assert (np.diff(quantiles) >= -1e-10 * spread).all()
    for p, x in zip(sorted(levels), quantiles, strict=True):
        assert law.cdf(x)[0] >= p - 1e-12
        assert law.cdf(x - 1e-9 * spread - 1e-300)[0] <= p + 1e-12


@property_test
@given(mixtures(st.floats(1e-3, 100.0)), probabilities)
def test_cdf_of_quantile_is_p(law: Predictive, p: float) -> None:
    assert_inverts(law, p)


def test_quantile_shapes_ends_and_errors() -> None:
    law = mixture("points and normals")
    assert law.quantile(0.3).shape == (3,)
    assert law.quantile([0.3]).shape == (3, 1)
    assert law.quantile([]).shape == (3, 0)
    np.testing.assert_array_equal(law.quantile([0.0, 1.0]), np.tile([-np.inf, np.inf], (3, 1)))
    np.testing.assert_array_equal(law.quantile([0.9, 0.1])[:, ::-1], law.quantile([0.1, 0.9]))
    for bad in (-0.1, 1.1, np.nan, [[0.5]]):
        with pytest.raises(ValueError, match="probability"):
            law.quantile(bad)


def test_interval() -> None:
    law = mixture("typical")
    np.testing.assert_allclose(law.interval(0.8), law.quantile([0.1, 0.9]), rtol=1e-12)
    for bad in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="coverage"):
            law.interval(bad)


# Moments, distribution function, density


@pytest.mark.parametrize("shape", SHAPES)
def test_moments(shape: str) -> None:
    law = mixture(shape)
    mean = law.means.mean(axis=0)
    variance = law.variances.mean(axis=0) + law.means.var(axis=0)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(law.variance, variance, rtol=1e-11)
    np.testing.assert_allclose(law.std, np.sqrt(variance), rtol=1e-11)
    np.testing.assert_array_equal(law.median, law.quantile(0.5))


def test_cdf_and_density_are_means_over_atoms() -> None:
    law, y = mixture("heavy"), np.array([-3.0, 0.1, 40.0])
    sds = np.sqrt(law.variances)
    np.testing.assert_allclose(law.cdf(y), stats.norm.cdf(y, law.means, sds).mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(law.pdf(y), stats.norm.pdf(y, law.means, sds).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(law.logpdf(y), np.log(stats.norm.pdf(y, law.means, sds).mean(axis=0)), rtol=1e-12)


def test_logpdf_far_out_does_not_underflow() -> None:
    law = Predictive([[0.0], [1.0]], [[1.0], [1.0]])
    expected = -0.5 * 99.0**2 - 0.5 * np.log(2 * np.pi) - np.log(2) + np.log1p(np.exp(-99.5))
    assert law.logpdf(100.0)[0] == pytest.approx(expected, rel=1e-14)
    assert law.cdf(-30.0)[0] == pytest.approx(0.5 * stats.norm.cdf(-30.0), rel=1e-12)


def test_point_masses_in_cdf_and_density() -> None:
    law = Predictive([[0.0, 0.0], [2.0, 2.0]], np.zeros((2, 2)))
    np.testing.assert_array_equal(law.cdf([0.0, 1.0]), [0.5, 0.5])
    np.testing.assert_array_equal(law.cdf([-1e-9, 2.0]), [0.0, 1.0])
    np.testing.assert_array_equal(law.logpdf([2.0, 1.0]), [np.inf, -np.inf])
    np.testing.assert_array_equal(law.pdf([2.0, 1.0]), [np.inf, 0.0])


def test_infinite_y() -> None:
    law = mixture("points and normals")
    np.testing.assert_array_equal(law.cdf([-np.inf, np.inf, np.inf]), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(law.pdf(np.inf), 0.0)
    np.testing.assert_array_equal(law.crps(-np.inf), np.inf)


# CRPS


@pytest.mark.parametrize("shape", SHAPES)
def test_crps_is_the_pairwise_formula(shape: str) -> None:
    law, y = mixture(shape, n_atoms=300), np.array([-1.0, 0.0, 2.0])
    for i in range(3):
        mu, v = law.means[:, i], law.variances[:, i]
        d = mu[:, None] - mu
        sd = np.sqrt(v[:, None] + v)
        z = np.divide(d, sd, out=np.copysign(40.0, d), where=sd > 0)
        half = 0.5 * (d * (2 * stats.norm.cdf(z) - 1) + 2 * sd * stats.norm.pdf(z)).mean()
        e, s = y[i] - mu, np.sqrt(v)
        z = np.divide(e, s, out=np.copysign(40.0, e), where=s > 0)
        error = (e * (2 * stats.norm.cdf(z) - 1) + 2 * s * stats.norm.pdf(z)).mean()
        assert law.crps(y)[i] == pytest.approx(error - half, rel=1e-10, abs=1e-13 * error)


@pytest.mark.parametrize(("narrow", "first"), [(1.0, 0), (1e-1, 250), (1e-5, 250), (1e-5, 499)])
def test_lattice_and_pairs_agree(narrow: float, first: int) -> None:
    rng = np.random.default_rng(5)
    means, weights = rng.normal(size=500), rng.uniform(size=500)
    sds = np.sort(rng.uniform(0.3, 1.2, size=500))
    sds[:first] *= narrow
    step = sds[first] / 2.8
    by_lattice = _lattice_term(first, -20.0, step, int(40.0 / step), means, sds**2, weights)
    assert by_lattice == pytest.approx(_pair_term(first, means, sds**2, weights), rel=1e-12)


def test_lattice_is_what_large_mixtures_use() -> None:
    rng = np.random.default_rng(6)
    means, sds, weights = rng.normal(size=2000), np.sort(rng.lognormal(0.0, 2.0, size=2000)), np.full(2000, 1 / 2000)
    fast, plain = _half_spread(means, sds**2, weights), _pair_term(0, means, sds**2, weights)
    assert fast == pytest.approx(plain, rel=1e-12)
    assert fast != plain


@pytest.mark.parametrize("n_atoms", [2, 20, 400])
def test_crps_is_the_integral(n_atoms: int) -> None:
    law, y = mixture("typical", n_atoms, n_inputs=1, seed=3), 0.7
    sds = np.sqrt(law.variances)
    reach = float(np.max(np.abs(law.means) + 9 * sds))

    def cdf(x: np.ndarray) -> np.ndarray:
        return stats.norm.cdf(x[:, None], law.means[:, 0], sds[:, 0]).mean(axis=1)

    below, above = np.linspace(-reach, y, 4001), np.linspace(y, reach, 4001)
    brute = integrate.simpson(cdf(below) ** 2, x=below) + integrate.simpson((1 - cdf(above)) ** 2, x=above)
    assert law.crps(y)[0] == pytest.approx(brute, rel=1e-9)


def test_crps_of_points_is_that_of_an_ensemble() -> None:
    law, y = mixture("points", n_atoms=40), np.array([0.0, 5.0, -1.0])
    pairs = np.abs(law.means[:, None] - law.means[None]).mean(axis=(0, 1))
    np.testing.assert_allclose(law.crps(y), np.abs(law.means - y).mean(axis=0) - 0.5 * pairs, rtol=1e-12)
    assert Predictive([[1.5]], [[0.0]]).crps(1.5)[0] == 0.0


@property_test
@given(numbers, numbers, st.floats(1e-3, 100.0))
def test_crps_of_one_normal(y: float, mean: float, sd: float) -> None:
    score = Predictive([[mean]], [[sd**2]]).crps(y)[0]
    assert score == pytest.approx(normal_crps(y, mean, sd), rel=1e-11, abs=1e-13 * (abs(y - mean) + sd))


@property_test
@given(mixtures(), numbers)
def test_crps_lies_between_zero_and_the_absolute_error(law: Predictive, y: float) -> None:
    expected_error = law.weights @ np.abs(law.means[:, 0] - y) + law.weights @ np.sqrt(law.variances[:, 0])
    assert 0.0 <= law.crps(y)[0] <= expected_error + 1e-9


@property_test
@given(mixtures(), numbers)
def test_crps_is_proper(law: Predictive, shift: float) -> None:
    # E CRPS(F, Y) under Y ~ F is ½ E|X - X'|, and no other law does better.
    draws = law.quantile((np.arange(200) + 0.5) / 200)[0]
    own = np.mean([law.crps(y)[0] for y in draws])
    other = np.mean([law.affine(shift, 1.0).crps(y)[0] for y in draws])
    assert own <= other + 0.01 * float(law.std[0]) + 1e-9


# The object


@property_test
@given(mixtures(st.floats(1e-2, 100.0)), numbers, st.floats(0.01, 100.0), probabilities, numbers)
def test_affine_equivariance(law: Predictive, shift: float, scale: float, p: float, y: float) -> None:
    moved, z = law.affine(shift, scale), shift + scale * y
    near = {"rel": 1e-9, "abs": 1e-9 * scale * (100.0 + float(law.std[0]))}
    assert moved.mean[0] == pytest.approx(shift + scale * law.mean[0], **near)
    assert moved.std[0] == pytest.approx(scale * law.std[0], **near)
    assert moved.crps(z)[0] == pytest.approx(scale * law.crps(y)[0], **near)
    assert moved.logpdf(z)[0] == pytest.approx(law.logpdf(y)[0] - np.log(scale), rel=1e-6, abs=1e-6)
    assert moved.cdf(shift + scale * law.quantile(p))[0] == pytest.approx(p, abs=1e-8)
    assert law.affine(0.0, -1.0).cdf(-y)[0] == pytest.approx(1.0 - law.cdf(y)[0], abs=1e-12)


def test_affine_by_input() -> None:
    law = mixture("typical")
    shift, scale = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 10.0])
    moved = law.affine(shift, scale)
    np.testing.assert_allclose(moved.mean, shift + scale * law.mean, rtol=1e-12)
    np.testing.assert_allclose(moved.std, np.abs(scale) * law.std, rtol=1e-12)
    np.testing.assert_allclose(moved.quantile(0.2)[[0, 2]], [1 - law.quantile(0.8)[0], 3 + 10 * law.quantile(0.2)[2]])
    assert moved.quantile(0.2)[1] == 2.0


def test_weights_count_like_repeated_atoms() -> None:
    law, repeats = mixture("points and normals", n_atoms=30), np.arange(30) % 4
    weighted = Predictive(law.means, law.variances, repeats * 0.1)
    repeated = Predictive(np.repeat(law.means, repeats, axis=0), np.repeat(law.variances, repeats, axis=0))
    y = np.array([-1.0, 0.3, 2.0])
    for name in ("mean", "variance", "median"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-11)
    for name in ("cdf", "logpdf", "crps"):
        np.testing.assert_allclose(getattr(weighted, name)(y), getattr(repeated, name)(y), rtol=1e-11)
    assert weighted.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_input_does_not_depend_on_the_others(shape: str) -> None:
    law = mixture(shape, n_inputs=6)
    y = np.linspace(-1.0, 1.0, 6)
    parts = [law[:2], law[[2, 3]], law[4], law[np.arange(6) == 5]]
    assert [len(part) for part in parts] == [2, 2, 1, 1]
    for whole in (Predictive.concatenate(parts), law):
        for name in ("mean", "std", "median"):
            np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in parts]), getattr(whole, name))
    for name in ("cdf", "logpdf", "crps"):
        pieces = [getattr(part, name)(z) for part, z in zip(parts, np.split(y, [2, 4, 5]), strict=True)]
        np.testing.assert_array_equal(np.concatenate(pieces), getattr(law, name)(y))


def test_concatenate_refuses_different_atoms() -> None:
    law = mixture("typical")
    with pytest.raises(ValueError, match="same atoms"):
        Predictive.concatenate([law, mixture("typical", n_atoms=5)])
    with pytest.raises(ValueError, match="same atoms"):
        Predictive.concatenate([law, Predictive(law.means, law.variances, np.arange(200.0))])
    with pytest.raises(ValueError, match="at least one"):
        Predictive.concatenate([])


def test_sample_follows_the_law() -> None:
    law = Predictive([[-2.0, 0.0], [3.0, 1.0]], [[0.25, 0.0], [1.0, 4.0]], [1.0, 3.0])
    draws = law.sample(4000, random_state=7)
    assert draws.shape == (4000, 2)
    assert stats.kstest(draws[:, 0], lambda x: np.array([law[0].cdf(v)[0] for v in x])).pvalue > 0.01
    assert np.mean(draws[:, 1] == 0.0) == pytest.approx(0.25, abs=0.03)
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.05
    np.testing.assert_array_equal(draws, law.sample(4000, random_state=np.random.default_rng(7)))


def test_sizes_and_pickle() -> None:
    law = mixture("typical")
    assert (len(law), law.n_atoms) == (3, 200)
    assert repr(law) == "Predictive(n_atoms=200, n_inputs=3)"
    assert [len(part) for part in law] == [1, 1, 1]
    again = pickle.loads(pickle.dumps(law))
    np.testing.assert_array_equal(again.quantile(LEVELS), law.quantile(LEVELS))
    assert law[:0].quantile([0.1, 0.9]).shape == (0, 2)


@pytest.mark.parametrize(
    ("means", "variances", "weights", "message"),
    [
        ([1.0], [1.0], None, "shape"),
        ([[1.0]], [[1.0, 2.0]], None, "shape"),
        (np.empty((0, 2)), np.empty((0, 2)), None, "n_atoms"),
        ([[np.nan]], [[1.0]], None, "means must be finite"),
        ([[1.0]], [[-1e-9]], None, "not negative"),
        ([[1.0]], [[np.inf]], None, "variances must be finite"),
        ([[1.0]], [[np.nan]], None, "variances must be finite"),
        ([[1.0]], [[1.0]], [1.0, 1.0], "weights"),
        ([[1.0]], [[1.0]], [0.0], "weights"),
        ([[1.0], [1.0]], [[1.0], [1.0]], [2.0, -1.0], "weights"),
    ],
)
def test_bad_atoms(means: object, variances: object, weights: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predictive(means, variances, weights)


@pytest.mark.parametrize("method", ["cdf", "logpdf", "pdf", "crps"])
def test_bad_responses(method: str) -> None:
    law = mixture("typical")
    with pytest.raises(ValueError, match="3 of them"):
        getattr(law, method)([1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        getattr(law, method)([1.0, 2.0, np.nan])
