"""y ~ N(μ, σ²(R(β) + gI)), β, g, μ, σ² at their largest likelihood: the Gaussian process of mlegp."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from cadlag.baselines.ml_gp.model import MLProcess
from cadlag.inference import Maximum
from cadlag.regressor import Array, Need, Regressor, exact_fit
from cadlag.settings import Number, Setting, Whole, shared


@dataclass(eq=False, repr=False)
class MLGPRegressor(Regressor):
    """Gaussian process regression by maximum likelihood, with a Gaussian correlation and a range for each input.

    The model and the starting values are those of the R package mlegp (Dancik & Dorman, 2008); the search ends with
    exact gradients. Its intervals take the values found as if they were known.

    Parameters
    ----------
    n_starts
        Simplices from random starting values, the best of which is polished.
    nugget
        Variance of the noise at the start, in squared units of y after `standardize`.
    standardize
        Whether to standardise inputs and response by the training data; with "inputs" the response is only centred.
        mlegp takes raw data.
    point
        Point prediction: "median" or "mean", which are the same here.
    max_memory
        Bytes beyond which fit and predict refuse; None for half of the machine's memory.
    n_jobs
        Not used: there is one atom.
    random_state
        Seed of the starting values.

    Attributes
    ----------
    posterior_ : Posterior
        The one position found: inverse ranges β, mean, variance, noise variance.
    diagnostics_ : dict
        The log likelihood, whether the search converged, and how many likelihoods it took.
    model_ : MLProcess
        The model on standardised data.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import MLGPRegressor
    >>> x = np.linspace(-1, 1, 30)[:, None]
    >>> model = MLGPRegressor().fit(x, np.sin(3 * x[:, 0]))
    >>> model.predict_interval([[0.5]]).shape
    (1, 2)
    """

    _method: ClassVar[str] = "ml_gp"
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("standardize", "point", "max_memory", "n_jobs", "random_state"),
        "n_starts": Whole(1, 10**6),
        "nugget": Number(),
    }
    n_atoms = 1
    _extends = False

    n_starts: int = 5
    nugget: float = 1.0
    standardize: bool | str = True
    point: str = "median"
    max_memory: float | None = None
    n_jobs: int | None = None
    random_state: Any = 0

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Find the values that maximise the likelihood.

        Parameters
        ----------
        X
            Inputs, (n, n_features).
        y
            Responses, (n,).

        Returns
        -------
        Self
            The fitted regressor.
        """
        return super().fit(X, y)

    def _model(self, X: Array, y: Array) -> MLProcess:
        return MLProcess(X, y, int(self.n_starts), float(self.nugget))

    def _memory(self, n: int) -> Need:
        return exact_fit(40.0, n)

    def _inference(self) -> Maximum:
        return Maximum()
