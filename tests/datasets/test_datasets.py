"""Datasets: the simulations as specified, the UCI splits as shipped, and clear words where files are missing."""

import numpy as np
import pytest

from cadlag import datasets
from cadlag.datasets import load_dataset, load_nile, load_uci, simulate

# name: rows, inputs, training rows, test rows, first row's target
UCI_SHAPES = {
    "boston": (506, 13, 455, 51, 24.0),
    "concrete": (1030, 8, 927, 103, 79.99),
    "energy": (768, 8, 691, 77, 15.55),
    "yacht": (308, 6, 277, 31, 0.11),
}


def test_nile():
    years, flow = load_nile()
    assert years.shape == flow.shape == (100,)
    assert (years[0], years[-1]) == (1871, 1970)
    # Mean and total are those of R's datasets::Nile.
    assert flow.sum() == 91935
    assert flow[years == 1913] == 456
    assert flow[:28].mean() - flow[28:].mean() == pytest.approx(247.78, abs=0.01)


def test_1d_inputs_and_truth():
    data = simulate("1d", 0)
    assert np.allclose(data.X_train[:, 0], -1 + 2 * np.arange(40) / 39)
    assert np.allclose(data.X_test[:, 0], -1 + 2 * np.arange(100) / 99)
    assert np.array_equal(data.f_test, [0.0] * 50 + [5.0] * 50)
    assert data.feature_names == ("x1",)


def test_2d_grid_has_first_coordinate_fastest_and_zero_not_positive():
    data = simulate("2d", 0)
    assert data.X_train.shape == (49, 2)
    assert data.X_test.shape == (81, 2)
    assert np.allclose(data.X_train[:8, 0], [*np.arange(-3, 4) / 3, -1])
    assert np.allclose(data.X_train[:8, 1], [-1] * 7 + [-2 / 3])
    by_sums = data.f_test.reshape(9, 9)
    assert np.array_equal(by_sums[0], [0] * 5 + [5] * 4)
    assert np.array_equal(by_sums[:, 0], [0] * 5 + [5] * 4)
    assert by_sums[4, 4] == 0
    assert by_sums[8, 8] == 10


def test_tolerance_at_zero():
    assert np.array_equal(datasets._steps(np.array([[1e-17, 1e-17], [1e-3, -1e-17]])), [0, 5])


def test_10d_truth_against_the_formula_term_by_term():
    data = simulate("10d", 4)
    s = np.sign
    expected = [
        6 * s(x[0]) + 8 * s(x[1] + x[2]) + 6 * s(x[3] + x[4]) + 6 * s(x[5] + x[6]) + 6 * s(x[7] + x[8]) + 6 * s(x[9])
        for x in data.X_test
    ]
    assert np.array_equal(data.f_test, expected)
    assert data.X_train.shape == data.X_test.shape == (300, 10)
    assert 0.49 < np.abs(data.X_train).max() <= 0.5


@pytest.mark.parametrize("name", ["1d", "2d", "10d"])
def test_noise_has_standard_deviation_one_half(name):
    residuals = np.concatenate([(d := simulate(name, seed)).y_test - d.f_test for seed in range(40)])
    # Four standard errors of a standard deviation and of a mean.
    assert abs(residuals.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * len(residuals))
    assert abs(residuals.mean()) < 4 * 0.5 / np.sqrt(len(residuals))


def test_training_noise_has_standard_deviation_one_half():
    residuals = np.concatenate([(d := simulate("1d", s)).y_train - datasets._steps(d.X_train) for s in range(40)])
    assert abs(residuals.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * len(residuals))


def test_least_squares_anchor_of_the_10d_simulation():
    """The published anchor: RMSE of linear regression 8.81 with standard deviation 0.43 over replicates."""
    errors = []
    for seed in range(10):
        d = simulate("10d", seed)
        design, test = (np.column_stack([np.ones(len(X)), X]) for X in (d.X_train, d.X_test))
        fitted = test @ np.linalg.lstsq(design, d.y_train, rcond=None)[0]
        errors.append(np.sqrt(np.mean((d.y_test - fitted) ** 2)))
    assert abs(np.mean(errors) - 8.81) < 4 * 0.43 / np.sqrt(10)


@pytest.mark.parametrize("name", ["1d", "2d", "10d"])
def test_seeds_repeat_and_differ(name):
    first, again, other = simulate(name, 3), simulate(name, 3), simulate(name, 4)
    assert np.array_equal(first.y_train, again.y_train)
    assert np.array_equal(first.y_test, again.y_test)
    assert not np.isclose(first.y_train, other.y_train).any()
    assert np.array_equal(first.X_train, other.X_train) == (name != "10d")


def test_simulations_do_not_share_noise():
    noise = [simulate(name, 0).y_test - simulate(name, 0).f_test for name in ("1d", "2d")]
    assert not np.isin(np.round(noise[0], 12), np.round(noise[1], 12)).any()


@pytest.mark.parametrize("name", UCI_SHAPES)
def test_uci_shapes_and_raw_units(uci, name):
    n_rows, n_features, n_train, n_test, first_target = UCI_SHAPES[name]
    data = load_uci(name, 0, uci)
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_test.shape == (n_test, n_features)
    assert len(data.feature_names) == n_features
    assert data.f_test is None
    rows = np.vstack([np.column_stack([data.X_train, data.y_train]), np.column_stack([data.X_test, data.y_test])])
    table = np.loadtxt(uci / name / "data.txt")
    assert len(rows) == n_rows
    assert table[0, -1] == first_target
    assert sorted(map(tuple, rows)) == sorted(map(tuple, table))


def test_uci_rows_follow_the_index_files(uci):
    data = load_uci("yacht", 19, uci)
    index = np.loadtxt(uci / "yacht" / "index_test_19.txt", dtype=int)
    table = np.loadtxt(uci / "yacht" / "data.txt")
    assert np.array_equal(data.X_test, table[index, :6])
    assert np.array_equal(data.y_test, table[index, 6])


def test_load_dataset_is_one_door(uci, monkeypatch):
    monkeypatch.setenv("CADLAG_DATA", str(uci))
    uci_names = ["boston", "concrete", "energy", "kin8nm", "power"]
    assert sorted(datasets.DATASETS) == [*uci_names, "sim10d", "sim1d", "sim2d", "yacht"]
    for name in datasets.DATASETS:
        assert load_dataset(name, 2).name == name
    assert np.array_equal(load_dataset("sim2d", 2).y_train, simulate("2d", 2).y_train)
    assert np.array_equal(load_dataset("yacht", 2).y_train, load_uci("yacht", 2).y_train)


def test_missing_data_say_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setenv("CADLAG_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"yacht.data\.txt; set CADLAG_DATA"):
        load_uci("yacht", 0)


def small_uci(root, train="0\n1\n"):
    folder = root / "yacht"
    folder.mkdir()
    files = {"data": "1 2 3\n4 5 6\n7 8 9\n\n", "index_features": "0\n1\n", "index_target": "2\n"}
    for name, text in {**files, "index_train_0": train, "index_test_0": "2\n"}.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_blank_lines_and_one_test_row(tmp_path):
    small_uci(tmp_path)
    data = load_uci("yacht", 0, tmp_path)
    assert np.array_equal(data.X_train, [[1, 2], [4, 5]])
    assert np.array_equal(data.X_test, [[7, 8]])
    assert np.array_equal(data.y_test, [9])


@pytest.mark.parametrize("train", ["0\n3\n", "-1\n", "0.5\n", "a\n"])
def test_bad_index_file_is_named(tmp_path, train):
    small_uci(tmp_path, train)
    with pytest.raises(ValueError, match=r"index_train_0\.txt"):
        load_uci("yacht", 0, tmp_path)


def test_missing_split_file_is_named(tmp_path):
    small_uci(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"index_train_1\.txt"):
        load_uci("yacht", 1, tmp_path)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: simulate("3d", 0), "no simulation '3d'; choose one of 1d, 2d, 10d"),
        (lambda: load_uci("wine", 0), "no UCI dataset 'wine'"),
        (lambda: load_uci("yacht", 20), "splits 0 to 19, not 20"),
        (lambda: load_dataset("1d", 0), "no dataset '1d'; choose one of sim1d"),
    ],
)
def test_unknown_names_list_the_known(load, message):
    with pytest.raises(ValueError, match=message):
        load()
