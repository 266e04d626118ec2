"""The skpro face, where skpro is installed (extra `skpro`)."""

import doctest

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("skpro", reason="needs the extra skpro")

from scipy.integrate import quad  # noqa: E402
from skpro.utils import check_estimator  # noqa: E402

from cadlag import skpro as face  # noqa: E402
from cadlag.predictive import Predictive  # noqa: E402


@pytest.fixture
def law():
    rng = np.random.default_rng(3)
    return Predictive(rng.normal(size=(5, 4)), rng.gamma(2.0, size=(5, 4)))


@pytest.fixture
def labelled(law):
    return face.MixtureOfNormals(law, pd.Index(list("abcd")), pd.Index(["y"]))


def test_energies_are_expected_distances(law, labelled):
    x = np.array([-1.0, 0.0, 0.5, 3.0])
    for i, point in enumerate(x):
        expected, _ = quad(lambda t, i=i, point=point: abs(t - point) * law[i].pdf(t)[0], -30, 30, points=[point])
        assert labelled.energy(x[:, None]).to_numpy()[i, 0] == pytest.approx(expected, rel=1e-8)
    score = labelled.energy(x[:, None]) - 0.5 * labelled.energy()
    np.testing.assert_allclose(score.to_numpy()[:, 0], law.crps(x), rtol=1e-10)


def test_rows_are_found_by_label_and_place(law, labelled):
    part = labelled.loc[["c", "a"]]
    np.testing.assert_array_equal(part.mean().to_numpy()[:, 0], law.mean[[2, 0]])
    assert list(part.index) == ["c", "a"]
    assert labelled.iat[1, 0].cdf(0.3) == law.cdf(0.3)[1]


def test_quantiles_of_each_row(law, labelled):
    levels = np.array([[0.1], [0.5], [0.5], [0.9]])
    expected = [law[i].quantile(p)[0] for i, p in enumerate(levels[:, 0])]
    np.testing.assert_array_equal(labelled.ppf(levels).to_numpy()[:, 0], expected)


def test_examples():
    assert doctest.testmod(face).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MixtureOfNormals", "ProbabilisticRegressor"])
def test_checks_of_skpro(name):
    results = check_estimator(getattr(face, name), raise_exceptions=False, verbose=False)
    assert {key: result for key, result in results.items() if result != "PASSED"} == {}
