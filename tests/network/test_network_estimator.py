"""The network's scikit-learn face: predictions, files, chains, and where it jumps."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import StableNetworkRegressor, load
from cadlag.network.break_tables import BreakPoints, _size_columns
from cadlag.plots import plot_break_lines, plot_breaks

QUIET = "ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning"
pytestmark = pytest.mark.filterwarnings(QUIET)

RNG = np.random.default_rng(0)
YEARS = np.arange(1900.0, 1960.0)
FLOW = 100.0 - 30.0 * (YEARS > 1937.5) + 4.0 * RNG.standard_normal(60)
PLANE = RNG.uniform(-1.0, 1.0, (80, 3))
HEIGHT = 5.0 * (PLANE[:, 0] + PLANE[:, 1] > 0.2) + 0.3 * RNG.standard_normal(80)


def regressor(**settings):
    return StableNetworkRegressor(
        **{"n_units": 8, "n_draws": 60, "n_warmup": 150, "n_chains": 2, "random_state": 1, **settings}
    )


@pytest.fixture(scope="module")
def line():
    return regressor().fit(YEARS[:, None], FLOW)


@pytest.fixture(scope="module")
def plane():
    return regressor(activation="sign", n_warmup=300).fit(pd.DataFrame(PLANE, columns=["a", "b", "c"]), HEIGHT)


@parametrize_with_checks([StableNetworkRegressor(n_units=5, n_draws=20, n_warmup=30, n_chains=1)])
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)


def test_interval_of_the_largest_jump_holds_what_it_says():
    places = np.random.default_rng(3).permutation(np.linspace(0.0, 100.0, 1001) ** 2)
    breaks = BreakPoints({"lower": [0.0], "upper": [1.0]}, places, np.ones(1001), 0.5)
    for coverage, ends in ((0.9, (5.0, 95.0)), (0.5, (25.0, 75.0)), (0.98, (1.0, 99.0))):
        assert breaks.interval(coverage) == pytest.approx(tuple(np.square(ends)))
        low, high = breaks.interval(coverage)
        assert np.mean((places >= low) & (places <= high)) == pytest.approx(coverage, abs=0.002)


def test_sizes_are_of_the_draws_that_jump():
    """Three draws of four jump in the first interval, none in the second: the fourth has a say in the probability."""
    net = np.array([[2.0, 0.1], [0.2, -0.3], [4.0, 0.0], [-6.0, 0.4]])
    found = _size_columns(net, 0.5)
    np.testing.assert_array_equal(found["probability"], [0.75, 0.0])
    assert found["size"][0] == 2.0
    assert (found["size_q05"][0], found["size_q95"][0]) == pytest.approx((-5.2, 3.8))
    assert np.isnan([found[name][1] for name in ("size", "size_q05", "size_q95")]).all()


def test_the_break_is_where_it_is(line):
    breaks = line.break_points()
    low, high = breaks.interval(0.9)
    assert 1935.0 < low <= high < 1940.0
    assert low <= 1938.0
    assert high >= 1937.0
    best = int(np.argmax(breaks["probability"]))
    assert breaks["lower"][best] == pytest.approx(1937.0)
    assert breaks["upper"][best] == pytest.approx(1938.0)
    assert breaks["size_q05"][best] <= breaks["size"][best] <= breaks["size_q95"][best] < 0.0
    assert breaks["size"][best] == pytest.approx(-30.0, abs=8.0)
    assert breaks.probability_of_any > 0.95
    assert len(breaks.likely(0.5)["lower"]) == 1


def test_no_jump_is_found_where_min_size_is_larger(line):
    breaks = line.break_points(min_size=200.0)
    assert breaks["probability"].max() == 0.0
    assert np.all(np.isnan(breaks["size"]))


def test_breaks_do_not_depend_on_units_of_measurement():
    """Without bulk, whose trajectories part after a rounding error."""
    plain = regressor(bulk=False).fit(YEARS[:, None], FLOW)
    scaled = regressor(bulk=False).fit(YEARS[:, None] / 7.0 - 3.0, 1000.0 * FLOW)
    one, other = plain.break_points(), scaled.break_points()
    np.testing.assert_allclose(other["lower"], one["lower"] / 7.0 - 3.0)
    np.testing.assert_allclose(other["probability"], one["probability"], atol=0.02)
    np.testing.assert_allclose(np.median(other.sizes), 1000.0 * np.median(one.sizes), rtol=0.02)


def test_a_hyperplane_is_found_in_three_dimensions(plane):
    breaks = plane.break_points()
    assert breaks["probability"][0] > 0.9
    assert breaks["size"][0] == pytest.approx(5.0, abs=1.0)
    normal = np.array([breaks[name][0] for name in "abc"])
    normal /= np.linalg.norm(normal)
    assert normal @ np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0) > 0.95
    sides = PLANE @ normal > breaks["offset"][0] / np.linalg.norm([breaks[name][0] for name in "abc"])
    assert np.mean(sides == (PLANE[:, 0] + PLANE[:, 1] > 0.2)) > 0.93
    assert breaks["share"][0] == pytest.approx(sides.mean())


def test_irrelevant_inputs_are_seen_to_be(plane):
    table = plane.feature_relevance(n_atoms=20)
    assert list(table["input"]) == ["a", "b", "c"]
    assert table["relevance"][2] < 0.1 < min(table["relevance"][:2])


def test_relu_networks_have_no_breaks():
    model = regressor(activation="relu", n_draws=4, n_warmup=10, n_chains=1).fit(YEARS[:, None], FLOW)
    with pytest.raises(ValueError, match="continuous"):
        model.break_points()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"activation": "tanh"}, "activation must be one of sign, relu, auto"),
        ({"n_units": 0}, "n_units must be an integer of at least 1"),
        ({"amplitude": -1.0}, "amplitude must be a positive number"),
        ({"amplitude": "a"}, "amplitude must be a positive number"),
        ({"noise_variance": 1e-20}, "noise_variance is smaller than 1e-14 of the variance of y"),
        ({"input_scales": "yes"}, "input_scales must be True or False"),
        ({"alpha": 2.5}, r"alpha must be a number in \(0, 2\]"),
        ({"alpha": "sample"}, "reserved for a later version"),
        ({"sampler": "nuts"}, "sampler must be one of gibbs, tempered"),
        ({"bulk": "yes"}, 'bulk must be True, False, "smooth" or "auto"'),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        regressor(**setting).fit(YEARS[:, None], FLOW)


def test_min_size_must_be_positive(line):
    with pytest.raises(ValueError, match="min_size must be positive"):
        line.break_points(min_size=0.0)


def test_intervals_need_a_probability(line):
    with pytest.raises(ValueError, match="between 0 and 1"):
        line.break_points().interval(90)


@pytest.mark.parametrize(
    "setting",
    [{}, {"bulk": False, "input_scales": True}, {"noise_variance": 9.0}, {"amplitude": 1.0}, {"sampler": "tempered"}],
)
def test_saved_and_loaded(tmp_path, setting):
    model = regressor(n_draws=8, n_warmup=20, **setting).fit(PLANE, HEIGHT)
    model.save(tmp_path / "m.cadlag")
    other = load(tmp_path / "m.cadlag")
    np.testing.assert_array_equal(model.predict(PLANE), other.predict(PLANE))
    np.testing.assert_array_equal(model.break_points()["probability"], other.break_points()["probability"])
    model.extend(4)
    other.extend(4)
    np.testing.assert_array_equal(model.posterior_.positions, other.posterior_.positions)


@pytest.mark.parametrize("bulk", [False, True])
def test_draws_do_not_depend_on_workers_or_checkpoints(tmp_path, bulk):
    one = regressor(bulk=bulk, n_draws=10, n_warmup=20).fit(PLANE, HEIGHT)
    two = regressor(bulk=bulk, n_draws=10, n_warmup=20, n_jobs=2).fit(PLANE, HEIGHT, checkpoint=tmp_path / "run.d")
    np.testing.assert_array_equal(one.posterior_.positions, two.posterior_.positions)


def test_known_noise_of_each_row():
    known = np.linspace(1.0, 400.0, 60)
    model = regressor(noise_variance=known).fit(YEARS[:, None], FLOW)
    assert "noise_variance" not in model.posterior_.draws
    first, last = model.predict(YEARS[[0, -1], None], return_std=True)[1]
    assert first == pytest.approx(last, rel=0.3)  # a new observation has the rows' mean noise


def test_a_row_is_predicted_alike_in_any_company(plane):
    rows = pd.DataFrame(PLANE[:5], columns=["a", "b", "c"])
    np.testing.assert_allclose(plane.predict(rows)[2], plane.predict(rows.iloc[[2]])[0], rtol=1e-12)


def test_posterior_names_and_diagnostics(line):
    names = set(line.posterior_.scalars())
    assert {"noise_variance", "amplitude", "log_likelihood", "function[row 0]", "function[row 59]"} <= names
    middle = line.posterior_["function"][..., 0]
    assert np.median(middle) == pytest.approx(100.0, abs=5.0)
    assert clone(line).get_params() == line.get_params()


@pytest.mark.parametrize("model", ["line", "plane"])
def test_breaks_are_drawn(model, request):
    ax = plot_breaks(request.getfixturevalue(model).break_points())
    assert len(ax.patches) > 0
    assert "P(jump" in ax.get_ylabel() + ax.get_xlabel()


def test_lines_of_breaks_are_those_of_the_draws(plane):
    breaks = plane.break_points()
    ax = plot_break_lines(plane, breaks)
    drawn = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert len(drawn) > 0
    offsets, normals, middle = breaks.draws[0][:, 0], breaks.draws[0][:, 1:], np.median(PLANE[:, 2])
    for line in drawn[:5]:
        ends = np.column_stack([line.get_xdata(), line.get_ydata(), [middle, middle]])
        assert np.isclose(normals @ ends.T, offsets[:, None], rtol=1e-6, atol=1e-9).all(axis=1).any()
    assert ax.get_xlim()[1] < PLANE[:, 0].max() + 0.2 * np.ptp(PLANE[:, 0])  # lines do not widen the picture


def test_lines_of_breaks_need_several_inputs(line):
    with pytest.raises(ValueError, match="plot_breaks"):
        plot_break_lines(line)


def test_too_few_units_are_said_to_be():
    x = np.linspace(-1.0, 1.0, 200)[:, None]
    steps = np.floor(4.5 * (x[:, 0] + 1.0)) * np.array([1.0, -1.0])[(np.arange(200) // 13) % 2]
    y = steps + 0.01 * RNG.standard_normal(200)
    with pytest.warns(UserWarning, match="of the 3 units are in use: the function may need more, fit with n_units=6"):
        few = regressor(n_units=3, bulk=False).fit(x, y)
    assert few.diagnostics_["units_in_use"] > 0.8 * 3


def test_bulk_serves_what_is_smooth():
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    truth = np.sin(5.0 * x[:, 0])
    y = truth + 0.05 * RNG.standard_normal(60)
    model = regressor(n_warmup=200).fit(x, y)
    assert model.model_.bulk_depth == 1
    assert model.posterior_["bulk_scales"].shape == (2, 60, 4)
    assert np.sqrt(np.mean((model.predict(x, kind="function") - truth) ** 2)) < 0.05


def test_a_smooth_bulk_has_one_amplitude_that_is_never_small():
    model = regressor(n_draws=20, n_warmup=30, bulk="smooth").fit(PLANE, HEIGHT)
    assert not model.model_.rough
    assert model.posterior_["bulk_scales"].shape[-1] == 1 + PLANE.shape[1] + 1
    assert model.posterior_["bulk_scales"][..., -1].min() > 0.01


def test_scales_stand_beside_the_inputs_that_they_belong_to():
    model = regressor(n_draws=11, n_warmup=20, bulk=False, input_scales=True).fit(PLANE, HEIGHT)
    expected = np.median(model.posterior_["input_scales"].reshape(-1, 3), axis=0)
    np.testing.assert_allclose(model.feature_relevance(n_atoms=4)["scale"], expected)


def test_names_of_inputs_do_not_hide_columns():
    frame = pd.DataFrame(PLANE, columns=["size", "offset", "c"])
    breaks = regressor(activation="sign", n_draws=20, n_warmup=100, bulk=False).fit(frame, HEIGHT).break_points()
    assert {"size", "offset", "normal of size", "normal of offset", "c"} <= set(breaks)
    assert breaks["size"][0] == pytest.approx(5.0, abs=1.5)


def test_threads_share_a_model_but_no_buffers():
    with parallel_backend("threading", n_jobs=2):
        model = regressor(n_draws=10, n_warmup=20, n_jobs=2).fit(PLANE, HEIGHT)
    values = [[model.model_.log_target(x, 0.0) for x in chain] for chain in model.posterior_.positions]
    np.testing.assert_allclose(model.posterior_.stats["log_target"], values, rtol=1e-8, atol=1e-6)
    expected = model.predict(PLANE)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: model.predict(PLANE), range(6)):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("bulk", ["smooth", True])
def test_a_bulk_without_random_scales_of_inputs(bulk, tmp_path):
    """At α = 2 nothing is stable, and of a smooth bulk nothing is random."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1.0, 1.0, (20, 2)), rng.standard_normal(20)
    model = StableNetworkRegressor(alpha=2.0, bulk=bulk, n_chains=2, n_warmup=10, n_draws=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y).save(tmp_path / "two.cadlag")
        gone_on, loaded = model.extend(n_draws=3), load(tmp_path / "two.cadlag").extend(n_draws=3)
    np.testing.assert_array_equal(gone_on.predict(X), loaded.predict(X))
    assert np.isfinite(gone_on.predict(X)).all()
