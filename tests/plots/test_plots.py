"""Pictures: what is drawn, read back from the axes."""

import importlib.util
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from cadlag import StableKernelRegressor, plots
from cadlag.partial_dependence import partial_dependence
from cadlag.plots.calibration import coverage_curve
from cadlag.plots.style import words

QUIET = "ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning"
pytestmark = pytest.mark.filterwarnings(QUIET)

RNG = np.random.default_rng(0)
LINE = np.linspace(10.0, 30.0, 24)[:, None]
HEIGHT = 7.0 + 3.0 * (LINE[:, 0] > 20.0) + 0.2 * RNG.standard_normal(24)
ODD = ["cost $/m$", "_b<i>", "c\x07"]
PLANE = pd.DataFrame(RNG.uniform(-1.0, 1.0, (30, 3)), columns=ODD)
SLOPE = 4.0 * PLANE[ODD[0]].to_numpy() + 0.1 * RNG.standard_normal(30)


def regressor(**settings):
    return StableKernelRegressor(**{"n_draws": 40, "n_warmup": 80, "n_chains": 2, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def line():
    return regressor().fit(LINE, HEIGHT)


@pytest.fixture(scope="module")
def plane():
    return regressor().fit(PLANE, SLOPE)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(ax):
    """Render, so that what only fails in drawing fails here."""
    ax.figure.canvas.draw()
    return ax


def curve(ax, label):
    return next(found for found in ax.get_lines() if found.get_label() == label).get_xydata()


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def band(ax, k):
    """Lower and upper end of a filled band, by x."""
    points = ax.collections[k].get_paths()[0].vertices
    x = np.unique(points[:, 0])
    low, high = (np.array([end(points[points[:, 0] == value, 1]) for value in x]) for end in (np.min, np.max))
    return x, low, high


# The function --------------------------------------------------------------------------------------------------------


def test_fit_shows_prediction_bands_and_data(line):
    grid = np.linspace(10.0, 30.0, 21)
    ax = drawn(plots.plot_fit(line, grid=grid, coverage=0.8))
    np.testing.assert_allclose(curve(ax, "prediction")[:, 1], line.predict(grid[:, None]))
    np.testing.assert_allclose(curve(ax, "data"), np.column_stack([LINE[:, 0], HEIGHT]), rtol=1e-12)
    for k, kind in enumerate(("observation", "function")):
        _, low, high = band(ax, k)
        np.testing.assert_allclose(np.column_stack([low, high]), line.predict_interval(grid[:, None], 0.8, kind))
    assert "80 % band, function" in labels(ax)
    assert ax.get_xlabel() == "x0"


def test_given_axes_are_drawn_on_and_returned(line):
    mine = plt.subplots()[1]
    assert plots.plot_fit(line, LINE, HEIGHT, ax=mine) is mine
    assert plots.plot_trace(line.posterior_, ax=mine) is mine


def test_fit_of_several_inputs_is_refused(plane):
    with pytest.raises(ValueError, match="has 3: use plot_slice"):
        plots.plot_fit(plane)


def test_several_methods_together():
    x, curves = np.arange(5.0), {"one": np.ones(5), "_two": 2.0 * np.ones(5)}
    ax = drawn(plots.plot_fits(x, curves, {"one": np.column_stack([np.zeros(5), 3.0 * np.ones(5)])}, (x, x)))
    np.testing.assert_array_equal(curve(ax, "one")[:, 1], 1.0)
    assert labels(ax) == ["data", "one", words("_two")]
    np.testing.assert_allclose(band(ax, 0)[1:], [np.zeros(5), 3.0 * np.ones(5)])
    colours = {line.get_color() for line in ax.get_lines()}
    assert len(colours) == 3
    ax = drawn(plots.plot_fits(x, curves, colours=["red", "blue"], bare=True))
    assert [line.get_color() for line in ax.get_lines()] == ["red", "blue"]
    assert (ax.get_legend(), ax.get_xlabel(), ax.get_ylabel()) == (None, "", "")


def test_slice_is_the_prediction_along_one_input(plane):
    row = np.array([0.1, 0.2, 0.3])
    ax = drawn(plots.plot_slice(plane, 1, row, n_grid=7))
    rows = np.tile(row, (7, 1))
    rows[:, 1] = np.linspace(PLANE[ODD[1]].min(), PLANE[ODD[1]].max(), 7)
    np.testing.assert_allclose(curve(ax, "prediction")[:, 1], plane.predict(pd.DataFrame(rows, columns=ODD)))
    with pytest.raises(ValueError, match="one row of 3 inputs, got 2"):
        plots.plot_slice(plane, 1, [0.0, 0.0])


def test_partial_dependence_is_the_average_over_rows(plane):
    """With one draw and one row it is the prediction itself; with several, the law of their mean."""
    rows, grid = PLANE.to_numpy()[:4], np.array([-0.5, 0.5])
    law = partial_dependence(plane, rows, 0, grid, n_rows=4)
    each = []
    for value in grid:
        changed = rows.copy()
        changed[:, 0] = value
        frame = pd.DataFrame(changed, columns=ODD)
        _, covariance = plane.predict(frame, return_cov=True, kind="function")
        each.append((plane.predict_distribution(frame, kind="function").mean.mean(), covariance.mean()))
    np.testing.assert_allclose(law.mean, [mean for mean, _ in each], rtol=1e-8)
    np.testing.assert_allclose(law.variance, [variance for _, variance in each], rtol=1e-6)


def test_partial_dependence_is_drawn_with_its_band(plane):
    ax = drawn(plots.plot_partial_dependence(plane, ODD[0], n_grid=9, n_rows=6, coverage=0.5))
    rows = PLANE.to_numpy()
    x = np.linspace(rows[:, 0].min(), rows[:, 0].max(), 9)
    law = partial_dependence(plane, rows, 0, x, n_rows=6)
    np.testing.assert_allclose(curve(ax, "median"), np.column_stack([x, law.median]))
    np.testing.assert_allclose(np.column_stack(band(ax, 0)[1:]), law.interval(0.5))
    assert 3.0 * np.ptp(x) < np.ptp(law.median) < 5.0 * np.ptp(x)
    with pytest.raises(ValueError, match="no input 'd': give one of"):
        plots.plot_partial_dependence(plane, "d")


def test_an_input_of_few_values_is_drawn_at_these():
    X = np.column_stack([np.tile([0.0, 1.0, 5.0], 8), np.linspace(0.0, 1.0, 24)])
    model = regressor(n_draws=10, n_warmup=20, n_chains=1).fit(X, X[:, 0] + 0.1 * RNG.standard_normal(24))
    ax = drawn(plots.plot_partial_dependence(model, 0, n_rows=3))
    np.testing.assert_array_equal(curve(ax, "median")[:, 0], [0.0, 1.0, 5.0])


def test_categories_of_an_input_are_set_in_turn():
    sites = np.tile(np.eye(3), (8, 1))
    X = pd.DataFrame(np.column_stack([sites, np.linspace(0.0, 1.0, 24)]), columns=["at=a", "at=b", "at=c", "t"])
    model = regressor(n_draws=10, n_warmup=20, n_chains=1).fit(X, sites @ [0.0, 3.0, 9.0] + 0.1 * SLOPE[:24])
    ax = drawn(plots.plot_partial_dependence(model, ["at=a", "at=b", 2], n_rows=3))
    rows = X.to_numpy()
    at = [partial_dependence(model, rows, [0, 1, 2], [which], n_rows=3).median[0] for which in np.eye(3)]
    np.testing.assert_allclose(curve(ax, "median"), np.column_stack([np.arange(3), at]))
    assert ([label.get_text() for label in ax.get_xticklabels()], ax.get_xlabel()) == (["a", "b", "c"], "at")
    changed = rows[:1].copy()
    changed[0, :3] = 0.0, 0.0, 1.0
    alone = partial_dependence(model, rows[:1], [0, 1, 2], [[0.0, 0.0, 1.0]]).mean
    law = model.predict_distribution(pd.DataFrame(changed, columns=X.columns), kind="function")
    np.testing.assert_allclose(alone, law.mean, rtol=1e-8)


def test_surface_puts_values_where_they_belong():
    X = np.array([[0.0, 10.0], [1.0, 10.0], [0.0, 20.0], [1.0, 20.0], [0.0, 30.0], [1.0, 30.0]])
    order = [3, 0, 5, 1, 4, 2]
    ax = drawn(plots.plot_surface(X[order], (X[:, 0] + X[:, 1])[order], limits=(0.0, 50.0), names=("a", "b")))
    mesh = ax.collections[0]
    np.testing.assert_array_equal(mesh.get_array().reshape(3, 2), [[10.0, 11.0], [20.0, 21.0], [30.0, 31.0]])
    assert mesh.get_clim() == (0.0, 50.0)
    with pytest.raises(ValueError, match="full grid: 2 x 3 pairs, got 5 rows"):
        plots.plot_surface(X[:5], np.zeros(5))


def test_prediction_surface_holds_the_other_inputs(plane):
    ax = drawn(plots.plot_prediction_surface(plane, (1, 0), n_grid=4))
    values = ax.collections[0].get_array().reshape(4, 4)
    rows = np.tile(PLANE.median().to_numpy(), (1, 1))
    rows[0, 1], rows[0, 0] = PLANE[ODD[1]].min(), PLANE[ODD[0]].max()
    assert values[3, 0] == pytest.approx(plane.predict(pd.DataFrame(rows, columns=ODD), kind="function")[0])
    std = drawn(plots.plot_prediction_surface(plane, kind="std", n_grid=3)).collections[0].get_array()
    assert (np.asarray(std) > 0.0).all()
    with pytest.raises(ValueError, match='"prediction" or "std"'):
        plots.plot_prediction_surface(plane, kind="both")


def test_relevance_is_sorted_and_named(plane):
    table = plane.feature_relevance(n_atoms=10)
    ax = drawn(plots.plot_relevance(table))
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert shown[0] == words(ODD[0])
    points = ax.get_lines()[0].get_xydata()
    np.testing.assert_array_equal(points[:, 0], np.sort(table["relevance"])[::-1])
    assert len(drawn(plots.plot_relevance(table, most=2)).get_yticklabels()) == 2


# Words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a$b", "$x_{$", r"\$", "$", "$$", "a_{b", "_hidden", "x" * 99, "tab\tbell\x07"])
def test_any_name_can_be_drawn(name):
    ax = plt.subplots()[1]
    ax.set_title(words(name))
    drawn(ax)
    shown = ax.title._preprocess_math(ax.title.get_text())
    assert shown[1] is False, "read as a formula"
    if len(name) < 20 and name.isprintable() and not name.startswith("_"):
        assert shown[0] == name
    assert len(shown[0]) <= 29


def test_no_warning_about_names_of_columns(plane):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.plot_slice(plane, 0, n_grid=3)
        plots.plot_prediction_surface(plane, n_grid=3)
        plots.plot_partial_dependence(plane, 0, n_grid=3, n_rows=2)


# Calibration ---------------------------------------------------------------------------------------------------------


def test_pit_histogram_counts_rows():
    pit = np.array([0.05, 0.15, 0.15, 0.95, 1.0, 0.0])
    ax = drawn(plots.plot_pit(pit, n_bins=10))
    counts = [patch.get_height() for patch in ax.patches if patch.get_width() == pytest.approx(0.1)]
    assert counts == [2, 2, 0, 0, 0, 0, 0, 0, 0, 2]
    with pytest.raises(ValueError, match="between 0 and 1"):
        plots.plot_pit([1.5])


def heights(ax, is_band):
    """Lower and upper end of a horizontal band, the only patch that is one."""
    (patch,) = filter(is_band, ax.patches)
    ends = patch.get_window_extent().transformed(ax.transData.inverted())
    return ends.y0, ends.y1


@pytest.mark.parametrize(("n", "bins"), [(200, 20), (37, 5), (1000, 20)])
def test_band_of_the_histogram_is_where_nine_of_ten_bars_lie(n, bins):
    ax = drawn(plots.plot_pit((np.arange(n) + 0.5) / n))
    low, high = heights(ax, lambda patch: "90 %" in patch.get_label())
    bars = np.random.default_rng(5).binomial(n, 1 / bins, 4000)
    for end, share in ((low, 0.05), (high, 0.95)):
        assert np.mean(bars < end - 1e-6) < share < np.mean(bars <= end + 1e-6)
    (level,) = {line.get_ydata()[0] for line in ax.get_lines()}
    assert level == pytest.approx(n / bins)


def test_coverage_curve_counts_rows_inside_intervals():
    """The same as asking of each interval whether the response is inside."""
    rng = np.random.default_rng(3)
    y, mean, sd = rng.standard_normal(200), rng.standard_normal(200), 0.5 + rng.random(200)
    levels = np.array([0.0, 0.3, 0.9, 1.0])
    found = coverage_curve(norm.cdf(y, mean, sd), levels)
    ends = [norm.interval(level, mean, sd) for level in levels]
    np.testing.assert_allclose(found, [np.mean((low <= y) & (y <= high)) for low, high in ends])


def test_coverage_plot_has_curve_and_chance_band():
    pit = (np.arange(50) + 0.5) / 50
    ax = drawn(plots.plot_coverage(pit))
    found = curve(ax, "this model")
    assert np.abs(found[:, 1] - found[:, 0]).max() <= 0.03
    x, low, high = band(ax, 0)
    np.testing.assert_allclose(low[50], binom(50, x[50]).ppf(0.05) / 50)
    np.testing.assert_allclose(high[50], binom(50, x[50]).ppf(0.95) / 50)


def test_residuals_mark_rows_outside_their_intervals():
    y, point = np.array([1.0, 2.0, 9.0, 4.0]), np.array([1.5, 2.0, 3.0, 5.5])
    ax = drawn(plots.plot_residuals(y, point, np.column_stack([point - 1.0, point + 2.0])))
    np.testing.assert_array_equal(curve(ax, "residual"), [[1.5, -0.5], [2.0, 0.0]])
    np.testing.assert_array_equal(curve(ax, "outside (2)"), [[3.0, 6.0], [5.5, -1.5]])
    bars = np.array([path.vertices[:, 1] for path in ax.collections[0].get_paths()])
    np.testing.assert_array_equal(bars, np.tile([-1.0, 2.0], (4, 1)))
    ax = drawn(plots.plot_residuals(y, point, bare=True))
    assert len(ax.collections) == 0
    assert (ax.get_legend(), ax.get_xlabel(), ax.get_ylabel()) == (None, "", "")


# Chains --------------------------------------------------------------------------------------------------------------


def test_trace_has_a_line_a_chain(line):
    ax = drawn(plots.plot_trace(line.posterior_, "noise_variance"))
    for chain, shown in zip(line.posterior_["noise_variance"], ax.get_lines(), strict=True):
        np.testing.assert_array_equal(shown.get_ydata(), chain)
    with pytest.raises(ValueError, match="'nonsense' is not among"):
        plots.plot_trace(line.posterior_, "nonsense")


def test_trace_of_plain_draws():
    draws = np.arange(6.0).reshape(2, 3)
    ax = drawn(plots.plot_trace(draws, "some $ name"))
    np.testing.assert_array_equal([shown.get_ydata() for shown in ax.get_lines()], draws)
    assert ax.get_ylabel() == words("some $ name")


def test_ranks_of_chains_apart_do_not_overlap(line):
    class Apart:
        def scalars(self):
            return {"q": np.stack([np.arange(50.0), 100.0 + np.arange(50.0)])}

    ax = drawn(plots.plot_ranks(Apart(), "q", n_bins=10))
    counts = [patch.get_data().values for patch in ax.patches if hasattr(patch, "get_data")]
    np.testing.assert_array_equal(counts, [[10] * 5 + [0] * 5, [0] * 5 + [10] * 5])
    assert heights(ax, lambda patch: not hasattr(patch, "get_data")) == pytest.approx(binom(50, 0.1).ppf([0.05, 0.95]))


# The paper's ---------------------------------------------------------------------------------------------------------


def test_kernel_quantiles_are_entrywise_and_share_a_scale(line):
    kernels = line.sample_kernels(n_draws=9)
    panels = plots.plot_kernel_quantiles(kernels)
    drawn(panels[0])
    assert len(panels) == 3
    for panel, p in zip(panels, (0.25, 0.5, 0.75)):
        np.testing.assert_allclose(panel.images[0].get_array(), np.quantile(kernels, p, axis=0))
    assert len({panel.images[0].get_clim() for panel in panels}) == 1
    with pytest.raises(ValueError, match="3 quantiles need as many axes, got 1"):
        plots.plot_kernel_quantiles(kernels, ax=plt.subplots()[1])


def test_features_and_their_boxes(line):
    features = line.sample_features(n_draws=60)
    ax = drawn(plots.plot_features(features, row=2))
    above, aside = ax.child_axes
    middle = [line.get_xdata()[0] for line in above.get_lines() if len(set(line.get_xdata())) == 1]
    assert np.isclose(np.median(features[:, 0, 2]), middle, rtol=1e-12, atol=0.0).any()  # rounded in two ways
    middle = [line.get_ydata()[0] for line in aside.get_lines() if len(set(line.get_ydata())) == 1]
    assert np.isclose(np.median(features[:, 1, 2]), middle, rtol=1e-12, atol=0.0).any()
    assert ax.collections[0].get_array().max() > 0
    with pytest.raises(ValueError, match="sample_features gives it"):
        plots.plot_features(features[:, :1])


def test_normal_quantiles_lie_on_a_line_only_for_normal_draws():
    def gap(values):
        ax = drawn(plots.plot_normal_quantiles(values))
        x, y = curve(ax, "draws").T
        rule = next(found for found in ax.get_lines() if found.get_label() == "line of a normal law")
        (x0, y0), slope = rule.get_xy1(), rule.get_slope()
        return np.abs(y - (y0 + slope * (x - x0))).max()

    even = norm.ppf((np.arange(200) + 0.5) / 200)
    assert gap(3.0 + 2.0 * even) < 0.3  # the two kinds of plotting positions differ at the ends
    assert gap(np.sinh(2.0 * even)) > 10.0


def test_mutual_information_curves():
    x, values = np.linspace(0.1, 1.0, 4), {"α = 1": np.arange(4.0), "α = 2": np.ones(4)}
    ax = drawn(plots.plot_mutual_information(x, values, {"α = 1": np.full(4, 0.5)}))
    np.testing.assert_array_equal(curve(ax, "α = 1")[:, 1], np.arange(4.0))
    np.testing.assert_allclose(band(ax, 0)[1:], [np.arange(4.0) - 1.0, np.arange(4.0) + 1.0])
    assert len(ax.collections) == 1


def test_arviz_draws_what_to_arviz_gives(line):
    """Whichever ArviZ is installed: to_arviz() gives the form that it takes."""
    name = next((name for name in ("arviz_plots", "arviz") if importlib.util.find_spec(name)), None)
    if name is None:
        pytest.skip("no ArviZ that draws is installed: pip install arviz")
    library = importlib.import_module(name)
    library.plot_trace(line.posterior_.to_arviz(), var_names=["noise_variance"])
    shown = [drawn.get_ydata() for ax in plt.gcf().axes for drawn in ax.get_lines()]
    for chain in line.posterior_["noise_variance"]:
        assert any(np.array_equal(chain, values) for values in shown)


def test_arviz_finds_what_we_find(line):
    """Names, R-hat and leave-one-out scores, in whichever major version is installed."""
    arviz = pytest.importorskip("arviz")
    tree, own = line.posterior_.to_arviz(), line.posterior_.summary()
    found = arviz.summary(tree, round_to="none")
    assert set(found.index) | {"log_likelihood"} == set(own["parameter"])
    ours = dict(zip(own["parameter"], own["rhat"]))
    np.testing.assert_allclose(found["r_hat"].astype(float), [ours[name] for name in found.index], rtol=1e-6)
    score = arviz.loo(tree)  # whose smoothing allows for the effective number of draws, and so differs a little
    elpd = score.elpd if hasattr(score, "elpd") else score.elpd_loo
    assert float(elpd) == pytest.approx(line.leave_one_out().log_score.sum(), abs=0.1)
    arviz.plot_rank(tree, var_names=["noise_variance"])
