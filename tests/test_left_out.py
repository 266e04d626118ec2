"""Each row predicted from all the others: weights of draws, quantiles, probability integral transforms, units."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from cadlag import NNGPRegressor, StableKernelRegressor
from cadlag.left_out import LeaveOneOut, importance_weights

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (15, 2))
Y = 2.0 + X[:, 0] + 0.3 * RNG.standard_normal(15)


@pytest.fixture(scope="module")
def fitted():
    return StableKernelRegressor(n_draws=40, n_warmup=60, n_chains=2, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def normal_mean():
    """y_i ~ N(μ, 1), μ ~ N(0, 3²): draws of μ given all rows, and the exact laws with a row left out."""
    y = np.array([-0.3, 0.2, 0.5, 1.9, 1.1])
    precision = 1.0 / 9.0 + len(y)
    draws = y.sum() / precision + RNG.standard_normal((40_000, 1)) / math.sqrt(precision)
    found = LeaveOneOut.reweighted(y, y - draws, np.ones((len(draws), len(y))))
    without = precision - 1.0
    return found, norm((y.sum() - y) / without, math.sqrt(1.0 + 1.0 / without))


def test_weights_carry_draws_to_the_posterior_without_the_row(normal_mean):
    found, exact = normal_mean
    assert found.is_trusted.all()
    assert_allclose(found.mean, exact.mean(), atol=0.02)
    assert_allclose(found.std, exact.std(), atol=0.01)  # 1.11, of which draws of the mean have a part
    assert_allclose(found.log_score, exact.logpdf(found.y), atol=0.02)
    plain = found.means.mean(axis=0), norm.logpdf(found.y, found.means, 1.0).mean(axis=0)
    assert np.abs(plain - np.array([exact.mean(), exact.logpdf(found.y)])).max(axis=1).min() > 0.1  # the weights matter
    assert_allclose(found.pit, exact.cdf(found.y), atol=0.01)
    assert_allclose(
        found.quantile([0.05, 0.5, 0.95]), np.stack([exact.ppf(p) for p in (0.05, 0.5, 0.95)], 1), atol=0.04
    )


def test_a_row_that_decides_all_is_not_trusted():
    """Weights with the tail of 1/U have k = 1: a few draws have all the weight. With that of U^-1/4, all is well."""
    uniform = np.random.default_rng(1).random((4000, 1))
    for k, trusted in ((1.0, False), (0.25, True)):
        errors = np.sqrt(-2.0 * k * np.log(uniform))
        found = LeaveOneOut.reweighted(np.zeros(1), errors, np.ones((4000, 1)))
        assert found.pareto_shape[0] == pytest.approx(k, abs=0.15)
        assert found.is_trusted[0] == trusted


def test_few_draws_are_weighted_plainly():
    errors, variances = np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]])
    found = LeaveOneOut.reweighted(np.zeros(1), errors, variances)
    inverse = 1.0 / norm.pdf(errors[:, 0], 0.0, np.sqrt(variances[:, 0]))
    assert_allclose(found.weights[:, 0], inverse / inverse.sum())
    assert not found.is_trusted[0]
    assert LeaveOneOut.reweighted(np.zeros(1), errors[:1], variances[:1]).is_trusted[0]


def test_given_a_draw_it_is_the_prediction_of_a_fit_without_the_row(fitted):
    """Means and variances of one draw against conditioning on the other rows."""
    found = fitted.leave_one_out(n_atoms=3)
    spread, model = float(fitted.response_scaling_.scale), fitted.model_
    for t, position in enumerate(fitted.posterior_.atoms(3)):
        K = model.covariance(position) + np.eye(15) * math.exp(position[-1])
        for k in (0, 9):
            rest = np.delete(np.arange(15), k)
            gain = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, k])
            mean = float(fitted.response_scaling_.centre) + spread * (gain @ model.y[rest])
            assert found.means[t, k] == pytest.approx(mean, rel=1e-6)
            assert found.variances[t, k] == pytest.approx(spread**2 * (K[k, k] - gain @ K[rest, k]), rel=1e-6)


def test_units(fitted):
    other = StableKernelRegressor(n_draws=40, n_warmup=60, n_chains=2, random_state=0).fit(X, 8.0 * Y)
    first, second = fitted.leave_one_out(), other.leave_one_out()
    assert_allclose(second.y, 8.0 * Y, rtol=1e-12)
    assert_allclose(second.pit, first.pit, atol=1e-8)
    assert_allclose(second.quantile([0.2, 0.9]), 8.0 * first.quantile([0.2, 0.9]), rtol=1e-8)


def test_training_data_come_back(fitted):
    inputs, responses = fitted.training_data()
    assert_allclose(inputs, X, rtol=1e-12, atol=1e-14)
    assert_allclose(responses, Y, rtol=1e-12)


def test_score_against_fits_without_the_row():
    """With nothing to learn there is one draw, and leaving out is exact."""
    settings = {"sampler": "ml", "amplitude": 2.0, "noise_variance": 0.3, "standardize": False}
    found = NNGPRegressor(**settings).fit(X, Y).leave_one_out()
    for k in (0, 5, 14):
        rest = np.delete(np.arange(15), k)
        law = NNGPRegressor(**settings).fit(X[rest], Y[rest]).predict_distribution(X[[k]])
        assert_allclose(found.mean[k], law.mean[0], rtol=1e-9)
        assert_allclose(found.std[k], law.std[0], rtol=1e-9)
        assert_allclose(found.pit[k], law.cdf(Y[k])[0], rtol=1e-9)
        assert_allclose(found.log_score[k], law.logpdf(Y[k])[0], rtol=1e-9)


def test_draws_that_are_all_alike_weigh_the_same():
    weights, shape = importance_weights(np.full((50, 3), -1.5))
    assert_allclose(weights, 1 / 50)
    assert np.isnan(shape).all()


def test_rows_that_the_others_do_not_determine():
    errors = RNG.standard_normal((30, 2))
    found = LeaveOneOut.reweighted(np.zeros(2), errors, np.where([True, False], np.inf, np.ones((30, 2))))
    assert found.is_known.tolist() == [False, True]
    assert not found.is_trusted[0]
    quantiles = found.quantile([0.1, 0.9])
    assert np.isnan(quantiles[0]).all()
    assert np.isfinite(quantiles[1]).all()


def test_gain_over_another(fitted):
    found = fitted.leave_one_out()
    doubled = LeaveOneOut(2.0 * found.y, 2.0 * found.means, 4.0 * found.variances, found.weights, found.pareto_shape)
    assert_allclose(found.gain_over(doubled), (15 * math.log(2.0), 0.0), atol=1e-6)


def test_gain_over_another_has_the_standard_error_of_a_sum():
    """Laws N(0, 1) and N(0, 4): row by row the gain is log 2 - (1 - ¼) y²/2, worked out by hand."""
    y = np.array([0.0, 1.0, -2.0, 3.0, 0.5])
    one, two = (LeaveOneOut.reweighted(y, y[None], np.full((1, 5), v)) for v in (1.0, 4.0))
    gains = math.log(2.0) - 0.375 * y**2
    total, error = one.gain_over(two)
    assert total == pytest.approx(gains.sum())
    assert error == pytest.approx(math.sqrt(5 * np.mean((gains - gains.mean()) ** 2)))
    assert two.gain_over(one) == pytest.approx((-total, error))
