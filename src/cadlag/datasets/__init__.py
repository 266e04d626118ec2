"""The data of the experiments: the Nile flows, three simulations of functions that jump, six UCI regressions.

The simulations are y = f(x) + 0.5 e with e standard normal and

    1d    f(x) = 5 1{x > 0}                                  40 and 100 equispaced inputs on [-1, 1]
    2d    f(x) = 5 1{x1 > 0} + 5 1{x2 > 0}                   7 x 7 and 9 x 9 grids on [-1, 1]^2
    10d   f(x) = 6 sgn(x1) + 8 sgn(x2 + x3) + 6 sgn(x4 + x5) + 6 sgn(x6 + x7) + 6 sgn(x8 + x9) + 6 sgn(x10)
                                                             300 and 300 uniform inputs on (-1/2, 1/2)^10

In one and two dimensions replicates differ in the noise only; in ten also in the inputs.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from cadlag.datasets import downloads

_T = TypeVar("_T")

NOISE_STD = 0.5

UCI_FEATURES: dict[str, tuple[str, ...]] = {
    "boston": ("crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax", "ptratio", "b", "lstat"),
    "concrete": (
        *("cement", "slag", "fly_ash", "water"),
        *("superplasticizer", "coarse_aggregate", "fine_aggregate", "age"),
    ),
    "energy": (
        *("relative_compactness", "surface_area", "wall_area", "roof_area"),
        *("overall_height", "orientation", "glazing_area", "glazing_area_distribution"),
    ),
    "kin8nm": tuple(f"theta{k}" for k in range(1, 9)),
    "power": ("temperature", "exhaust_vacuum", "ambient_pressure", "relative_humidity"),
    "yacht": (
        *("buoyancy_position", "prismatic_coefficient", "length_displacement_ratio"),
        *("beam_draught_ratio", "length_beam_ratio", "froude_number"),
    ),
}

# Annual flow of the Nile at Aswan in 10^8 m^3, 1871 to 1970.
# fmt: off
_NILE_FLOW = (
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
)
# fmt: on


@dataclass(frozen=True, eq=False)
class Dataset:
    """A regression problem divided into training and test rows, in raw units.

    Parameters
    ----------
    name
        The name by which `load_dataset` knows it.
    X_train, y_train
        Inputs (n, p) and responses (n,) to learn from.
    X_test, y_test
        Inputs (m, p) and responses (m,) to predict.
    f_test
        The function without noise at the test inputs (m,), or None where nobody knows it.
    feature_names
        The p names of the inputs.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    f_test: np.ndarray | None
    feature_names: tuple[str, ...]


def load_nile() -> tuple[np.ndarray, np.ndarray]:
    """Return the annual flow of the Nile at Aswan, which drops near 1898.

    Returns
    -------
    years
        1871 to 1970 (100,).
    flow
        The flow in 10^8 m^3 (100,).
    """
    return np.arange(1871.0, 1971.0), np.array(_NILE_FLOW, dtype=float)


def _steps(X: np.ndarray) -> np.ndarray:
    """Return Σ_j 5 1{x_j > 0}; `linspace` may put the grid's zero at 1e-17, which does not count."""
    return 5.0 * (X > 1e-9).sum(axis=1)


def _step_10d(X: np.ndarray) -> np.ndarray:
    """Return the truth of the ten-dimensional simulation."""
    inner = [X[:, 0], X[:, 1] + X[:, 2], X[:, 3] + X[:, 4], X[:, 5] + X[:, 6], X[:, 7] + X[:, 8], X[:, 9]]
    return np.array([6.0, 8.0, 6.0, 6.0, 6.0, 6.0]) @ np.sign(inner)


def _grid(n_points: int, p: int) -> np.ndarray:
    """Return a grid on [-1, 1]^p, first coordinate fastest, (n_points^p, p)."""
    axis = np.linspace(-1.0, 1.0, n_points)
    return np.stack(np.meshgrid(*[axis] * p), axis=-1).reshape(-1, p)


_Inputs = Callable[[np.random.Generator], Iterable[np.ndarray]]  # of training and test
SIMULATIONS: dict[str, tuple[_Inputs, Callable[[np.ndarray], np.ndarray]]] = {
    "1d": (lambda _: (_grid(40, 1), _grid(100, 1)), _steps),
    "2d": (lambda _: (_grid(7, 2), _grid(9, 2)), _steps),
    "10d": (lambda rng: rng.uniform(-0.5, 0.5, size=(2, 300, 10)), _step_10d),
}


def simulate(name: str, seed: int) -> Dataset:
    """Draw one replicate of a simulation.

    Parameters
    ----------
    name
        "1d", "2d" or "10d".
    seed
        The replicate; each name has its own streams.

    Returns
    -------
    Dataset
        Noisy responses at training and test inputs, and the truth at the test inputs.
    """
    inputs, truth = lookup(SIMULATIONS, name, "simulation")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(name.encode())))
    X_train, X_test = inputs(rng)
    f_train, f_test = truth(X_train), truth(X_test)
    return Dataset(
        name=f"sim{name}",
        X_train=X_train,
        y_train=f_train + NOISE_STD * rng.standard_normal(len(f_train)),
        X_test=X_test,
        y_test=f_test + NOISE_STD * rng.standard_normal(len(f_test)),
        f_test=f_test,
        feature_names=tuple(f"x{j + 1}" for j in range(X_train.shape[1])),
    )


def load_uci(name: str, split: int, directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Read one of the 20 standard 90/10 splits of a UCI regression, in raw units.

    Parameters
    ----------
    name
        "boston", "concrete", "energy", "kin8nm", "power" or "yacht".
    split
        0 to 19.
    directory
        The directory that holds NAME/data.txt, NAME/index_train_0.txt, ...; if None, the environment's CADLAG_DATA,
        and without that a cache that is filled from the network.

    Returns
    -------
    Dataset
        Training and test rows of that split.
    """
    names = lookup(UCI_FEATURES, name, "UCI dataset")
    if split not in range(downloads.N_SPLITS):
        raise ValueError(f"{name} has the splits 0 to {downloads.N_SPLITS - 1}, not {split!r}.")
    folder = _uci_folder(name, directory)
    table = _read_numbers(folder / "data.txt")
    features = _read_indices(folder / "index_features.txt", table.shape[1])
    target = _read_indices(folder / "index_target.txt", table.shape[1])
    train = _read_indices(folder / f"index_train_{split}.txt", len(table))
    test = _read_indices(folder / f"index_test_{split}.txt", len(table))
    return Dataset(
        name=name,
        X_train=table[np.ix_(train, features)],
        y_train=table[train, target[0]],
        X_test=table[np.ix_(test, features)],
        y_test=table[test, target[0]],
        f_test=None,
        feature_names=tuple(names[j] for j in features),
    )


def load_dataset(name: str, seed: int) -> Dataset:
    """Return any dataset of the experiments by name.

    Parameters
    ----------
    name
        "sim1d", "sim2d", "sim10d", "boston", "concrete", "energy", "kin8nm", "power" or "yacht".
    seed
        The replicate of a simulation or the split of a UCI regression.

    Returns
    -------
    Dataset
        The replicate or split.
    """
    return lookup(DATASETS, name, "dataset")(seed)


DATASETS: dict[str, Callable[[int], Dataset]] = {
    **{f"sim{name}": partial(simulate, name) for name in SIMULATIONS},
    **{name: partial(load_uci, name) for name in UCI_FEATURES},
}


def lookup(table: dict[str, _T], name: str, noun: str) -> _T:
    """Return a row of a registry, or say which rows there are."""
    if name not in table:
        raise ValueError(f"There is no {noun} {name!r}; choose one of {', '.join(table)}.")
    return table[name]


def _uci_folder(name: str, directory: str | os.PathLike[str] | None) -> Path:
    """Return the folder of one UCI dataset; the single place that decides where data come from."""
    root = directory if directory is not None else os.environ.get("CADLAG_DATA")
    if not root:
        return downloads.cached(name)
    folder = Path(root) / name
    if not (folder / "data.txt").is_file():
        raise FileNotFoundError(f"There is no {folder / 'data.txt'}; set CADLAG_DATA to a directory that holds it.")
    return folder


def _read_numbers(path: Path) -> np.ndarray:
    """Read a whitespace-separated table; blank lines do not count."""
    try:
        return np.loadtxt(path, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path} is not a table of numbers ({error}); fetch it again.") from error


def _read_indices(path: Path, n_rows: int) -> np.ndarray:
    """Read 0-based indices below `n_rows`."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}; set CADLAG_DATA to a directory that holds the 20 splits.")
    values = _read_numbers(path).ravel()
    indices = values.astype(int)
    if not np.array_equal(indices, values) or len(indices) == 0 or indices.min() < 0 or indices.max() >= n_rows:
        raise ValueError(f"{path} should hold whole numbers from 0 to {n_rows - 1}; fetch it again.")
    return indices
