"""The positive stable law against its closed forms, its transforms and 40-digit quadrature."""

import itertools
import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from mpmath.calculus.quadrature import GaussLegendre
from scipy import special, stats

from cadlag.stable import PositiveStable, positive_stable

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 1.99)
NINE = np.array([1e-10, 1e-5, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-5, 1 - 1e-10])
DENSE = np.concatenate([np.logspace(-10, -1, 10), np.linspace(0.15, 0.85, 11), 1 - np.logspace(-1, -10, 10)])
TABLE = {
    0.5: (0.0102236, 0.169023, 2.31936, 70.3825, 65067.5),
    1.0: (0.130159, 0.377842, 1.09905, 4.9246, 127.157),
    1.5: (0.391183, 0.580112, 0.891588, 1.7697, 10.9249),
    1.9: (0.790, 0.845, 0.913976, 1.06023, 1.99417),
    1.95: (0.876, 0.905, 0.941086, 1.01516, 1.46546),
    1.99: (0.966, 0.973, 0.980, 0.996, 1.085),
}


def draws(alpha: float, seed: int, n: int = 400_000) -> np.ndarray:
    return positive_stable(alpha).sample_log(np.random.default_rng(seed), n)


def panel_edges(a: float, b: float, y: float, n_panels: int) -> list[float]:
    """Points theta, u = pi (1 - exp(-theta)), between which log A rises evenly, to a few digits."""
    theta = np.concatenate([np.logspace(-9, -2, 2000), np.linspace(0.0101, 60.0, 60_000)])
    u, v = -np.pi * np.expm1(-theta), np.pi * np.exp(-theta)
    sin_au = np.sin(a * u) if a < 0.5 else np.sin((1 - a) * np.pi + a * v)
    log_a = b * np.log(sin_au) + np.log(np.sin((1 - a) * u)) - (1 + b) * np.log(np.sin(np.minimum(u, v)))
    rise = np.maximum.accumulate(log_a - math.log(1 - a) - b * math.log(a))
    levels = np.linspace(max(0.0, -y - 40 / a), np.logaddexp(0.0, math.log(60) - y), n_panels + 1)
    edges = np.interp(levels, rise, theta)
    edges[0] = edges[0] if levels[0] > 0 else 0.0
    return np.unique(np.append(edges, np.linspace(edges[0], edges[-1], 5))).tolist()


def zolotarev(alpha: float, log_s: float, digits: int, degree: int, n_panels: int) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """Log density of log S, its slope and the distribution function by Gauss-Legendre panels in `digits` digits."""
    with mp.workdps(digits):
        a, x = mp.mpf(alpha) / 2, mp.mpf(log_s)
        b = a / (1 - a)
        y = mp.log(1 - a) + b * (mp.log(a) - x)
        edges = [mp.mpf(t) for t in panel_edges(float(a), float(b), float(y), n_panels)]
        nodes = GaussLegendre(mp.mp).get_nodes(-1, 1, degree, mp.mp.prec)
        moments = [-mp.expm1(-edges[0]), mp.mpf(0), mp.mpf(0)]
        for left, right in itertools.pairwise(edges):
            for node, weight in nodes:
                rest = mp.exp(-(left + right) / 2 - (right - left) / 2 * node)
                # sin u = sin(pi - u), which keeps its digits near pi
                sin_u, sin_au = mp.sin(mp.pi * rest), mp.sin(mp.pi * (1 - a + a * rest))
                rate = mp.exp(b * (mp.log(sin_au / sin_u) - x)) * mp.sin((1 - a) * mp.pi * (1 - rest)) / sin_u
                mass = (right - left) / 2 * weight * rest * mp.exp(-rate)
                for k in range(3):
                    moments[k] += mass * rate**k
        # f s = b/pi int R e^-R, R = A s^-b, and dR/dlog s = -b R
        return mp.log(b * moments[1]), b * (moments[2] / moments[1] - 1), moments[0]


def check_against_zolotarev(alpha: float, p: np.ndarray, digits: int, degree: int, n_panels: int) -> None:
    law = positive_stable(alpha)
    x = law.quantile(p)
    value, slope = law.log_density_and_slope(x)
    cdf = law.cdf(x)
    for i, log_s in enumerate(x):
        log_density, log_slope, probability = zolotarev(alpha, float(log_s), digits, degree, n_panels)
        assert abs(mp.expm1(value[i] - log_density)) < 1e-11
        assert abs(slope[i] - log_slope) < 1e-9 * (1 + abs(log_slope))
        assert abs(cdf[i] / probability - 1) < 1e-11


@pytest.mark.parametrize("alpha", (0.1, 0.5, 1.0, 1.5, 1.9, 1.99))
def test_density_slope_and_cdf_match_zolotarev_integrals(alpha):
    check_against_zolotarev(alpha, NINE, digits=20, degree=4, n_panels=16)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", (0.02, *ALPHAS, 1.95, 1.999))
def test_density_slope_and_cdf_match_zolotarev_integrals_densely(alpha):
    check_against_zolotarev(alpha, DENSE, digits=40, degree=4, n_panels=40)


def right_series(alpha: float, log_s: float) -> tuple[float, float, float]:
    """Log density of log S, slope and survival function by the series in s^-a."""
    with mp.workdps(40):
        a = mp.mpf(alpha) / 2
        terms = [
            (-1) ** (k + 1) * mp.gamma(k * a + 1) / mp.factorial(k) * mp.sin(mp.pi * k * a) * mp.exp(-k * a * log_s)
            for k in range(1, 200)
        ]
        f = mp.fsum(terms)
        slope = -a * mp.fsum(k * term for k, term in enumerate(terms, 1)) / f
        return (
            float(mp.log(f / mp.pi)),
            float(slope),
            float(mp.fsum(t / (k * a) for k, t in enumerate(terms, 1)) / mp.pi),
        )


@pytest.mark.parametrize("alpha", (0.1, 0.5, 1.0, 1.5, 1.9, 1.99))
def test_right_tail_matches_the_series(alpha):
    law = positive_stable(alpha)
    for log_s in (1.0, 3.0, 10.0, 40.0, 150.0, 700.0):
        value, slope = law.log_density_and_slope(log_s)
        expected, expected_slope, sf = right_series(alpha, log_s)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert slope == pytest.approx(expected_slope, rel=1e-10)
        assert law.sf(log_s) == pytest.approx(sf, rel=1e-11)


@pytest.mark.parametrize("alpha", (0.1, 0.5, 1.5, 1.9, 1.99))
def test_left_tail_follows_the_saddle_point(alpha):
    # f(x) ~ [2 pi (1-a)]^(-1/2) a^(1/(2(1-a))) x^(-(2-a)/(2(1-a))) exp{-(1-a)(a/x)^b}, with an error of order 1/(a z)
    a = alpha / 2
    law = positive_stable(alpha)
    for log_z in (math.log(1e6 / a), 40.0, 300.0):
        log_s = math.log(a) - (log_z - math.log(1 - a)) * (1 - a) / a
        z = (1 - a) * math.exp(a / (1 - a) * (math.log(a) - log_s))
        expected = (
            -0.5 * math.log(2 * math.pi * (1 - a))
            + math.log(a) / (2 * (1 - a))
            - (2 - a) / (2 * (1 - a)) * log_s
            + log_s
            - z
        )
        value, slope = law.log_density_and_slope(log_s)
        assert abs(value - expected) < 1e-6 + 1e-13 * z * log_z
        assert slope == pytest.approx(a / (1 - a) * z, rel=1e-5)


@pytest.mark.parametrize("alpha", (0.02, 0.1, 0.5, 1.0, 1.5, 1.9, 1.99, 1.9999))
def test_everything_is_defined_from_minus_to_plus_700(alpha):
    law = positive_stable(alpha)
    x = np.concatenate([[-np.inf], np.linspace(-700.0, 700.0, 1401), [np.inf]])
    value, slope = law.log_density_and_slope(x)
    assert not np.isnan(value).any()
    assert not np.isnan(slope).any()
    right = x[1:-1] >= 0
    assert np.isfinite(value[1:-1][right]).all()
    # z = (1-a)(a/s)^b is representable up to 1.7e308
    b = alpha / (2 - alpha)
    log_z = math.log(1 - alpha / 2) + b * (math.log(alpha / 2) - x[1:-1])
    assert np.isfinite(value[1:-1][log_z < 709]).all()
    assert np.all(value[1:-1][log_z > 710] == -np.inf)
    assert value[0] == value[-1] == -np.inf
    np.testing.assert_array_equal(law.cdf(x[[0, -1]]), [0.0, 1.0])
    np.testing.assert_array_equal(law.sf(x[[0, -1]]), [1.0, 0.0])
    assert np.isnan(law.log_density(np.nan))


def test_closed_form_at_alpha_1():
    x = np.linspace(-6.0, 60.0, 200)
    law = positive_stable(1.0)
    value, slope = law.log_density_and_slope(x)
    np.testing.assert_allclose(value, -x / 2 - np.exp(-x) / 4 - math.log(2 * math.sqrt(math.pi)), rtol=1e-14)
    np.testing.assert_allclose(slope, -0.5 + np.exp(-x) / 4, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(law.cdf(x), special.erfc(0.5 * np.exp(-x / 2)), rtol=1e-11)
    np.testing.assert_allclose(law.sf(x), special.erf(0.5 * np.exp(-x / 2)), rtol=1e-11)


def test_closed_form_at_alpha_two_thirds():
    x = np.linspace(-10.0, 40.0, 200)
    argument = 2 / np.sqrt(27) * np.exp(-x / 2)
    expected = -x / 2 + np.log(special.kve(1 / 3, argument)) - argument - math.log(3 * math.pi)
    np.testing.assert_allclose(positive_stable(2 / 3).log_density(x), expected, rtol=1e-12, atol=1e-12)


def test_closed_form_at_alpha_four_thirds():
    with mp.workdps(30):
        for x in np.linspace(-2.5, 20.0, 30):
            t = 4 / (27 * mp.exp(2 * mp.mpf(x)))
            expected = mp.log(mp.sqrt(3 / mp.pi) * mp.exp(-t / 2) * mp.whitw(mp.mpf(1) / 2, mp.mpf(1) / 6, t))
            assert positive_stable(4 / 3).log_density(x) == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("alpha", (0.1, 0.5, 1.0, 1.5, 1.9, 1.99))
def test_slope_matches_finite_differences(alpha):
    law = positive_stable(alpha)
    x = law.quantile(np.linspace(0.001, 0.999, 101))
    step = 1e-4 * (2 - alpha) / alpha
    points = law.log_density(x[:, None] + step * np.array([-2.0, -1.0, 1.0, 2.0]))
    slope = law.log_density_and_slope(x)[1]
    np.testing.assert_allclose(slope, points @ np.array([1.0, -8.0, 8.0, -1.0]) / (12 * step), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_density_integrates_to_the_distribution_function(alpha):
    law = positive_stable(alpha)
    edges = law.quantile(np.linspace(0.02, 0.98, 49))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges) / 2
    x = edges[:-1, None] + half[:, None] * (1 + nodes)
    np.testing.assert_allclose((np.exp(law.log_density(x)) @ weights) * half, np.full(48, 0.02), rtol=1e-9)


@pytest.mark.parametrize("alpha", (0.02, 0.1, 0.5, 1.0, 1.3, 1.7, 1.9, 1.99, 1.9999))
def test_quantile_inverts_cdf_and_sf(alpha):
    law = positive_stable(alpha)
    p = np.concatenate([np.logspace(-300, -1, 300), np.linspace(0.1, 0.9, 81)])
    np.testing.assert_allclose(law.cdf(law.quantile(p)), p, rtol=1e-11)
    upper = 1 - 2.0 ** -np.arange(1.0, 54.0)
    np.testing.assert_allclose(law.sf(law.quantile(upper)), 1 - upper, rtol=1e-11)
    assert np.all(np.diff(law.quantile(np.linspace(1e-4, 1 - 1e-4, 5001))) > 0)
    np.testing.assert_array_equal(law.quantile([0.0, 1.0]), [-np.inf, np.inf])


@pytest.mark.parametrize("alpha", TABLE)
def test_quantile_table(alpha):
    s = np.exp(positive_stable(alpha).quantile([0.05, 0.25, 0.5, 0.75, 0.95]))
    # three decimals stand in the table where it was simulated
    np.testing.assert_allclose(s, TABLE[alpha], rtol=1e-5 if alpha <= 1.5 else 1e-3)


@pytest.mark.parametrize("p", (-0.1, 1.1, np.nan))
def test_quantile_rejects_what_is_no_probability(p):
    with pytest.raises(ValueError, match=r"p must lie in \[0, 1\]"):
        positive_stable(1.5).quantile([0.5, p])


@pytest.mark.parametrize("alpha", (0.5, 1.0, 1.5, 1.9))
def test_laplace_transform_of_draws(alpha):
    s = np.exp(draws(alpha, seed=1))
    for rate in (0.1, 1.0, 3.0):
        values = np.exp(-rate * s)
        error = values.mean() - math.exp(-(rate ** (alpha / 2)))
        assert abs(error) < 4 * values.std() / math.sqrt(values.size)


def test_draws_at_alpha_1_are_inverse_gamma():
    s = np.exp(draws(1.0, seed=2))
    assert stats.kstest(s, stats.invgamma(0.5, scale=0.25).cdf).pvalue > 0.001


@pytest.mark.parametrize("alpha", (0.1, 0.5, 1.3, 1.9, 1.99))
def test_draws_follow_the_distribution_function(alpha):
    law = positive_stable(alpha)
    assert stats.kstest(draws(alpha, seed=3), law.cdf).pvalue > 0.001


def var_log(alpha):
    """Var log S."""
    return math.pi**2 / 6 * (4 / alpha**2 - 1)


@pytest.mark.parametrize("alpha", (0.5, 1.0, 1.5, 1.9))
def test_log_moments_of_draws(alpha):
    law, x = positive_stable(alpha), draws(alpha, seed=4)
    root_n = math.sqrt(x.size)
    assert abs(x.mean() - law.mean_log) < 4 * x.std() / root_n
    square = (x - law.mean_log) ** 2
    assert abs(square.mean() - var_log(alpha)) < 4 * square.std() / root_n
    inverse = np.exp(-x)
    assert abs(inverse.mean() - special.gamma(1 + 2 / alpha)) < 4 * inverse.std() / root_n


@pytest.mark.parametrize("alpha", (0.5, 1.0, 1.5, 1.9))
def test_sum_of_two_draws_is_stable(alpha):
    total = np.logaddexp(draws(alpha, seed=5, n=100_000), draws(alpha, seed=6, n=100_000)) - 2 / alpha * math.log(2)
    assert stats.ks_2samp(total, draws(alpha, seed=7, n=100_000)).pvalue > 0.001


@pytest.mark.parametrize("alpha", (0.3, 0.9, 1.6, 1.95))
def test_moments_are_those_of_the_density(alpha):
    law = positive_stable(alpha)
    edges = np.linspace(law.quantile(1e-18), law.quantile(1e-2), 400)
    edges = np.append(edges, np.linspace(edges[-1], 220 / alpha, 4000)[1:])
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges) / 2
    x = edges[:-1, None] + half[:, None] * (1 + nodes)
    mass = np.exp(law.log_density(x)) * weights * half[:, None]
    for r in (-1.0, -0.5, alpha / 8):
        moment = special.gamma(1 - 2 * r / alpha) / special.gamma(1 - r)
        assert np.sum(mass * np.exp(r * x)) == pytest.approx(moment, rel=1e-8)
    assert np.sum(mass * x) == pytest.approx(law.mean_log, rel=1e-8, abs=1e-8)
    assert np.sum(mass * (x - law.mean_log) ** 2) == pytest.approx(var_log(alpha), rel=1e-8)


class ExtremeGenerator(np.random.Generator):
    """Returns the ends of the range of U and E."""

    def uniform(self, low=0.0, high=1.0, size=None):
        return np.array([low, low, high, high, np.nextafter(high, 0.0)])

    def standard_exponential(self, size=None):
        return np.array([0.0, 40.0, 0.0, 40.0, 1e-300])


@pytest.mark.parametrize("alpha", (0.1, 1.0, 1.99, 1.9999))
def test_draws_are_finite_at_the_ends_of_the_angle(alpha):
    rng = ExtremeGenerator(np.random.PCG64(0))
    assert np.isfinite(positive_stable(alpha).sample_log(rng, 5)).all()


def test_draws_come_in_the_shape_asked_for_and_repeat():
    law = positive_stable(1.4)
    assert law.sample_log(np.random.default_rng(8)).shape == ()
    block = law.sample_log(np.random.default_rng(8), (3, 4))
    assert block.shape == (3, 4)
    np.testing.assert_array_equal(block, law.sample_log(np.random.default_rng(8), (3, 4)))


def test_shapes_are_kept():
    law = positive_stable(1.4)
    x = np.random.default_rng(9).normal(size=(4, 6))
    flat = law.log_density(x.ravel())
    np.testing.assert_array_equal(law.log_density(x), flat.reshape(4, 6))
    np.testing.assert_array_equal(law.log_density(x.T), flat.reshape(4, 6).T)
    np.testing.assert_array_equal(law.log_density(x[:, 2]), flat.reshape(4, 6)[:, 2])
    assert law.log_density(0.3).shape == law.cdf(0.3).shape == law.quantile(0.3).shape == ()
    assert law.log_density([]).shape == (0,)


def test_one_object_an_alpha_even_through_pickle():
    law = positive_stable(1.4)
    law.log_density(0.0)
    assert positive_stable(1.4) is law
    assert len(pickle.dumps(law)) < 200
    assert pickle.loads(pickle.dumps(law)) is law
    with pytest.raises(AttributeError):
        law.alpha = 1.0


def test_alpha_2_is_the_point_mass_at_1():
    law = positive_stable(2.0)
    np.testing.assert_array_equal(law.sample_log(np.random.default_rng(0), 3), np.zeros(3))
    np.testing.assert_array_equal(law.cdf([-1e-9, 0.0, 1.0]), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(law.sf([-1e-9, 0.0, 1.0]), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(law.quantile([0.1, 0.9]), [0.0, 0.0])
    assert law.mean_log == 0.0
    with pytest.raises(ValueError, match="point mass"):
        law.log_density(0.0)


@pytest.mark.parametrize("alpha", (0.0, -1.0, 2.5, np.inf, np.nan))
def test_bad_alpha(alpha):
    with pytest.raises(ValueError, match=r"alpha must lie in \(0, 2\], got"):
        positive_stable(alpha)
    with pytest.raises(ValueError, match=r"alpha must lie in \(0, 2\], got"):
        PositiveStable(alpha)


@pytest.mark.parametrize("alpha", (1e-7, 2 - 1e-7))
def test_alpha_too_close_to_an_end_has_draws_but_no_table(alpha):
    law = PositiveStable(alpha)
    assert np.isfinite(law.sample_log(np.random.default_rng(0), 1000)).all()
    with pytest.raises(ValueError, match="for the density to be resolved"):
        law.log_density(0.0)
    with pytest.raises(ValueError, match="for the density to be resolved"):
        law.cdf(0.0)


@pytest.mark.parametrize("alpha", (1e-6, 2 - 1e-6))
def test_tables_hold_at_the_ends_of_their_range(alpha):
    law = PositiveStable(alpha)
    assert stats.kstest(law.sample_log(np.random.default_rng(10), 100_000), law.cdf).pvalue > 0.001
    x = law.quantile(np.array([1e-10, 0.01, 0.5, 0.99]))
    step = 1e-4 * (2 - alpha) / alpha
    mass = (law.cdf(x + step) - law.cdf(x - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(law.log_density(x)), mass, rtol=1e-5)
