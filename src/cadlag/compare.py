"""Every method on the same folds: RMSE, MAE, CRPS, log score, coverage, width and seconds of each.

Beside the methods of the registry stand three of scikit-learn's: a Gaussian process, whose predictive law is normal,
and two that give points only, a random forest and gradient boosting. Theirs is a normal law about the point whose
variance is that of the residuals of rows that were not used: out of the bag, or in five inner folds. Where stochtree is
installed its BART stands there too, whose law is a normal mixture over its draws.
"""

import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import RepeatedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cadlag import metrics, registry
from cadlag.methods import METHODS, whole_fits, with_settings
from cadlag.predictive import Predictive

Array = NDArray[np.float64]
Law = Callable[[Array], Predictive]

SCORES = ("rmse", "mae", "crps", "log_score", "coverage", "width", "seconds")


def _normal(mean: Array, std: Any) -> Predictive:
    return Predictive(mean[None], np.broadcast_to(np.asarray(std, dtype=float) ** 2, mean.shape)[None].copy())


def _gaussian_process(X: Array, y: Array, seed: int) -> Law:
    kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1])) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed)
    model = make_pipeline(StandardScaler(), process).fit(X, y)
    return lambda new: _normal(*model.predict(new, return_std=True))


def _random_forest(X: Array, y: Array, seed: int) -> Law:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a row that is in every tree's bag
        model = RandomForestRegressor(300, oob_score=True, random_state=seed).fit(X, y)
    std = float(np.sqrt(np.nanmean((y - model.oob_prediction_) ** 2)))
    return lambda new: _normal(model.predict(new), std)


def _boosting(X: Array, y: Array, seed: int) -> Law:
    model = HistGradientBoostingRegressor(random_state=seed)
    left_out = cross_val_predict(model, X, y, cv=min(5, len(y)))
    std = float(np.sqrt(np.mean((y - left_out) ** 2)))
    model.fit(X, y)
    return lambda new: _normal(model.predict(new), std)


def _bart(X: Array, y: Array, seed: int) -> Law:
    from stochtree import BARTModel  # noqa: PLC0415  optional

    model = BARTModel()
    # Grown trees first, as its authors advise, then draws of a length that its sigma settles in.
    model.sample(X, y, num_gfr=10, num_burnin=500, num_mcmc=1000, general_params={"random_seed": seed})
    noise = np.asarray(model.global_var_samples, dtype=float)[:, None]

    def law(new: Array) -> Predictive:
        means = np.ascontiguousarray(np.transpose(model.predict(new, terms="y_hat")))
        return Predictive(means, np.broadcast_to(noise, means.shape).copy())

    return law


RIVALS: dict[str, Callable[[Array, Array, int], Law]] = dict(
    zip(registry.RIVALS, (_gaussian_process, _random_forest, _boosting, _bart), strict=True)
)


class Fold(NamedTuple):
    """One method on one fold.

    Attributes
    ----------
    method
        Its name.
    fold
        Number of the fold, counted through the repetitions.
    scores
        Name to value.
    error
        Why there are none, or the empty text.
    """

    method: str
    fold: int
    scores: dict[str, float]
    error: str = ""


def names() -> list[str]:
    """Every method that can be compared."""
    return [*METHODS, *RIVALS]


def lacks(name: str) -> str:
    """What has to be installed before a method can be compared.

    Parameters
    ----------
    name
        The method.

    Returns
    -------
    str
        The package and how to get it, or the empty text.
    """
    absent = name == "bart" and importlib.util.find_spec("stochtree") is None
    return "stochtree: pip install 'cadlag[bart]'" if absent else ""


def compare(
    X: Array, y: Array, methods: Sequence[str], n_folds: int = 5, n_repeats: int = 1, seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Fold]:  # fmt: skip
    """Score methods on the same folds, one after the other.

    Parameters
    ----------
    X
        Inputs.
    y
        Responses.
    methods
        Names, see `names`.
    n_folds
        Folds.
    n_repeats
        Repetitions, each with folds of its own.
    seed
        Of the folds and of the methods.
    settings
        Keyword arguments for those registered methods that have them, such as n_draws.

    Yields
    ------
    Fold
        As each is done, fold by fold; a method that fails says why and is not tried again.
    """
    if not 2 <= n_folds <= len(y):
        raise ValueError(f"there can be 2 to {len(y)} folds of {len(y)} rows, got {n_folds}")
    splits = RepeatedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed).split(X)
    failed: set[str] = set()
    for number, (train, test) in enumerate(splits):
        for name in methods:
            if name in failed:
                continue
            try:
                yield Fold(name, number, _score(name, X, y, train, test, seed, settings or {}))
            except (ValueError, MemoryError, ArithmeticError) as error:
                failed.add(name)
                yield Fold(name, number, {}, str(error))


def _score(
    name: str, X: Array, y: Array, train: Any, test: Any, seed: int, settings: Mapping[str, Any]
) -> dict[str, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with whole_fits():
            law = fit_law(name, X[train], y[train], seed, settings)(X[test])
        return {**metrics.score(law, y[test]), "seconds": time.perf_counter() - start}


def fit_law(name: str, X: Array, y: Array, seed: int, settings: Mapping[str, Any]) -> Law:
    """Fit a method by its name.

    Parameters
    ----------
    name
        See `names`.
    X
        Inputs.
    y
        Responses.
    seed
        Its random state.
    settings
        Keyword arguments, of which those that it has are used.

    Returns
    -------
    Law
        From new inputs to the predictive law.
    """
    if name in RIVALS:
        return RIVALS[name](X, y, seed)
    return with_settings(name, {**settings, "random_state": seed}).fit(X, y).predict_distribution


def summarise(folds: Sequence[Fold]) -> list[dict[str, Any]]:
    """Mean and standard deviation over the folds of each method, the best CRPS first.

    Parameters
    ----------
    folds
        What `compare` gave.

    Returns
    -------
    list[dict[str, Any]]
        A row a method: method, folds, and mean and `_sd` of each score.
    """
    rows = []
    for name in dict.fromkeys(fold.method for fold in folds if fold.scores):
        own = [fold.scores for fold in folds if fold.method == name and fold.scores]
        values = {key: np.array([scores[key] for scores in own]) for key in SCORES}
        row: dict[str, Any] = {"method": name, "folds": len(own)}
        for key, series in values.items():
            row[key] = float(series.mean())
            row[f"{key}_sd"] = float(series.std(ddof=1)) if len(series) > 1 else 0.0
        rows.append(row)
    return sorted(rows, key=lambda row: row["crps"])
