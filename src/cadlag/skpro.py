"""The estimators as skpro knows regressors: `predict_proba` gives a distribution object with one row for each input.

The distribution is the exact mixture of normals, so skpro's scores are exact too: E|X - x| is a sum over the atoms, and
E|X - X'| = 2 (E|X - x| - CRPS(x)) for any x. Needs the extra `skpro`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import clone
from skpro.distributions.base import BaseDistribution
from skpro.regression.base import BaseProbaRegressor

from cadlag.network.estimator import StableNetworkRegressor
from cadlag.predictive import FloatArray, Predictive

_ROOT_TWO_OVER_PI = np.sqrt(2.0 / np.pi)


class MixtureOfNormals(BaseDistribution):
    """A `Predictive` with pandas labels, one column wide; a scalar when it has no labels.

    Parameters
    ----------
    law
        The mixture at each row.
    index
        Labels of the rows.
    columns
        Label of the response.

    Examples
    --------
    >>> import pandas as pd
    >>> from cadlag.predictive import Predictive
    >>> from cadlag.skpro import MixtureOfNormals
    >>> law = Predictive([[0.0, 1.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])
    >>> MixtureOfNormals(law, pd.RangeIndex(2), pd.Index(["y"])).mean()
         y
    0  1.0
    1  1.0
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "nonparametric",
        "broadcast_init": "off",
    }

    def __init__(self, law: Predictive, index: pd.Index | None = None, columns: pd.Index | None = None) -> None:
        self.law = law
        super().__init__(index=index, columns=columns)

    def _rows(self, x: Any) -> FloatArray:
        """One number for each row, from what skpro has made as large as the distribution."""
        return np.broadcast_to(np.asarray(x, dtype=np.float64).reshape(-1), len(self.law))

    def _shaped(self, values: FloatArray) -> Any:
        """One number for each row as skpro wants it: a table of one column, or a scalar without labels."""
        return values.reshape(self.shape) if self.ndim else values[0]

    def _mean(self) -> Any:
        return self._shaped(self.law.mean)

    def _var(self) -> Any:
        return self._shaped(self.law.variance)

    def _pdf(self, x: Any) -> Any:
        return self._shaped(self.law.pdf(self._rows(x)))

    def _log_pdf(self, x: Any) -> Any:
        return self._shaped(self.law.logpdf(self._rows(x)))

    def _cdf(self, x: Any) -> Any:
        return self._shaped(self.law.cdf(self._rows(x)))

    def _ppf(self, p: Any) -> Any:
        levels = self._rows(p)
        out = np.empty(len(levels))
        for level in np.unique(levels):
            out[levels == level] = self.law[levels == level].quantile(level)
        return self._shaped(out)

    def _distances(self, x: FloatArray) -> FloatArray:
        """E|X - x| in each row."""
        gaps, sds = x - self.law.means, np.sqrt(self.law.variances)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(sds > 0.0, gaps / sds, np.where(gaps < 0.0, -np.inf, np.inf))
        return self.law.weights @ (gaps * (2.0 * ndtr(z) - 1.0) + sds * _ROOT_TWO_OVER_PI * np.exp(-0.5 * z**2))

    def _energy_x(self, x: Any) -> Any:
        distances = self._distances(self._rows(x))
        return distances if self.ndim else distances[0]

    def _energy_self(self) -> Any:
        mean = self.law.mean
        distances = 2.0 * (self._distances(mean) - self.law.crps(mean))
        return distances if self.ndim else distances[0]

    def _sample(self, n_samples: int | None = None) -> Any:
        # skpro's distributions take no seed: draws follow numpy's global state, as everywhere in skpro.
        drawn = self.law.sample(n_samples or 1, np.random.randint(2**31))  # noqa: NPY002
        if not self.ndim:
            return drawn[0, 0] if n_samples is None else pd.DataFrame(drawn, columns=self.columns)
        labels = self.index if n_samples is None else pd.MultiIndex.from_product([range(n_samples), self.index])
        return pd.DataFrame(drawn.reshape(-1, 1), index=labels, columns=self.columns)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> MixtureOfNormals:
        # There is one column: what is chosen of it is that column, once.
        rows = slice(None) if rowidx is None else rowidx
        columns = self.columns if colidx is None else self.columns[np.atleast_1d(colidx)]
        return MixtureOfNormals(self.law[rows], index=self.index[rows], columns=columns)

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> MixtureOfNormals:
        return MixtureOfNormals(self.law[rowidx])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for skpro's own tests.

        Parameters
        ----------
        parameter_set
            Which of them; there is one.

        Returns
        -------
        list of dict
            Keyword arguments.
        """
        law = Predictive([[0.0, 1.0, 2.0], [3.0, 1.0, -1.0]], [[1.0, 0.5, 2.0], [0.3, 1.0, 4.0]])
        labelled = {"law": law, "index": pd.RangeIndex(3), "columns": pd.Index(["y"])}
        return [labelled, {"law": law[0]}]


class ProbabilisticRegressor(BaseProbaRegressor):
    """Any estimator of this package as a skpro regressor.

    Parameters
    ----------
    estimator
        An estimator with `predict_distribution`; left alone, a clone of it is fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from cadlag import NNGPRegressor
    >>> from cadlag.skpro import ProbabilisticRegressor
    >>> X, y = pd.DataFrame({"x": [0.0, 0.3, 0.5, 0.8, 1.0]}), pd.DataFrame({"y": [0.0, 0.2, 0.1, 5.2, 5.0]})
    >>> regressor = ProbabilisticRegressor(NNGPRegressor(sampler="ml")).fit(X, y)
    >>> regressor.predict_interval(X, coverage=0.9).shape
    (5, 2)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capability:multioutput": False,
        "capability:missing": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> ProbabilisticRegressor:
        self.estimator_ = clone(self.estimator).fit(self._inputs(X), y.to_numpy()[:, 0])
        self._columns = y.columns
        return self

    def _inputs(self, X: pd.DataFrame) -> pd.DataFrame:
        """Names as strings, the only ones that scikit-learn keeps."""
        return X.set_axis([str(name) for name in X.columns], axis="columns")

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(self.estimator_.predict(self._inputs(X)), index=X.index, columns=self._columns)

    def _predict_proba(self, X: pd.DataFrame) -> MixtureOfNormals:
        law = self.estimator_.predict_distribution(self._inputs(X))
        return MixtureOfNormals(law, index=X.index, columns=self._columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for skpro's own tests.

        Parameters
        ----------
        parameter_set
            Which of them; there is one.

        Returns
        -------
        list of dict
            Keyword arguments.
        """
        short = StableNetworkRegressor(n_units=3, n_draws=4, n_warmup=4, n_chains=1, random_state=0)
        return [{"estimator": clone(short).set_params(bulk=bulk)} for bulk in (False, True)]
