"""p(y* | x*) = T⁻¹ Σ_t N(μ_t(x*), v_t(x*)): everything a regressor whose posterior is a set of atoms can be asked.

A method supplies `_n_atoms()`, `_moments(X)` (means, variances and noise variances of all atoms at standardised
inputs) and `_joint(X, atoms)`; prediction, quantiles, intervals, densities, joint draws and their units are the same
for all of them.
"""

import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from cadlag.data import (
    LEAST_SPREAD,
    Scaling,
    refuse_foreign,
    refuse_huge,
    refuse_not_finite,
    refuse_overflow,
    require_memory,
    warn_of_constants,
)
from cadlag.estimators.files import FiledRegressor
from cadlag.linalg.gaussian import sample_normal
from cadlag.names import refuse_twice
from cadlag.predictive import Predictive
from cadlag.settings import MOST_DRAWS, SHARED, Whole

Array = NDArray[np.float64]

KINDS = ("observation", "function")
_CHUNK_BYTES = 2**28


class AtomRegressor(FiledRegressor):
    """Base of all regressors: predictions from a finite mixture of normal laws."""

    max_memory: float | None
    point: str
    standardize: bool | str

    # What a method supplies ------------------------------------------------------------------------------------------

    def _n_atoms(self) -> int:
        raise NotImplementedError

    def _moments(self, X: Array) -> tuple[Array, Array, Array]:
        """Means and variances of the function, (T, m), and noise variances, (T,), in standard units."""
        raise NotImplementedError

    def _joint(self, X: Array, atoms: NDArray[np.int_]) -> Iterator[tuple[Array, Array, float]]:
        """Mean, covariance and noise variance for each of the given atoms, in standard units."""
        raise NotImplementedError

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """A fit that fails leaves the regressor as it was, fitted or not."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    # Input -----------------------------------------------------------------------------------------------------------

    def _take_training_data(self, X: Any, y: Any) -> tuple[Array, Array]:
        refuse_twice(getattr(X, "columns", ()), "X")
        refuse_foreign("X", X)
        refuse_foreign("y", y)
        refuse_not_finite("y", y)
        # One order, so that the sums and with them the draws do not depend on how the data lie in memory; and not
        # ensure_all_finite, which would say that there is a NaN, but not where.
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=True, ensure_all_finite=False)
        y = np.asarray(y, dtype=np.float64)
        refuse_not_finite("y", y)  # again: None has become NaN
        columns = getattr(self, "feature_names_in_", None)
        refuse_not_finite("X", X, columns)
        refuse_huge("X", X, columns)
        refuse_huge("y", y)
        warn_of_constants(X, columns)
        self.__dict__.pop("recipe_", None)  # that of other data
        self._remember_settings()
        self._learn_scaling(X, y)
        spread = float(self.response_scaling_.scale)
        if spread < LEAST_SPREAD:
            raise ValueError(f"y has a standard deviation of {spread:.3g}: rescale it to {LEAST_SPREAD:g} or more")
        return self.input_scaling_.apply(X), self.response_scaling_.apply(y)

    def _learn_scaling(self, X: Array, y: Array) -> None:
        inputs_only = isinstance(self.standardize, str)
        self.input_scaling_ = Scaling.learn(X, bool(self.standardize))
        response = Scaling.learn(y, bool(self.standardize))
        self.response_scaling_ = Scaling(response.centre, np.ones_like(response.scale)) if inputs_only else response

    def _take_new_inputs(self, X: Any) -> Array:
        self._require_fitted()
        refuse_foreign("X", X)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False, ensure_all_finite=False)
        columns = getattr(self, "feature_names_in_", None)
        refuse_not_finite("X", X, columns)
        refuse_huge("X", X, columns)
        return self.input_scaling_.apply(X)

    # Prediction ------------------------------------------------------------------------------------------------------

    def _predictives(self, X: Array, kind: str) -> Iterator[Predictive]:
        """The laws in standard units, in pieces of rows so that the moments of all atoms fit in a bounded space."""
        size = max(1, int(_CHUNK_BYTES / (16 * max(self._n_atoms(), 1))))
        for start in range(0, len(X), size):
            with np.errstate(over="ignore", invalid="ignore"):
                means, variances, noise = self._moments(X[start : start + size])
            refuse_overflow(means, variances, start)
            yield Predictive(means, variances + noise[:, None] if kind == "observation" else variances)

    def _in_units(self, values: Array) -> Array:
        return float(self.response_scaling_.centre) + float(self.response_scaling_.scale) * values

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, kind: str = "observation") -> Any:
        """Point prediction, with its uncertainty if asked.

        Parameters
        ----------
        X
            New inputs, (m, n_features).
        return_std
            Also return the standard deviation.
        return_cov
            Also return the joint covariance, (m, m).
        kind
            "observation" for new responses, "function" for the function without noise.

        Returns
        -------
        Any
            Predictions (m,), or a pair.
        """
        _check_kind(kind)
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be asked: the covariance holds the variances")
        inputs = self._take_new_inputs(X)
        parts = [(getattr(law, self.point), law.std) for law in self._predictives(inputs, kind)]
        point = self._in_units(np.concatenate([part[0] for part in parts]))
        if return_cov:
            return point, self._covariance(inputs, kind)
        std = float(self.response_scaling_.scale) * np.concatenate([part[1] for part in parts])
        return (point, std) if return_std else point

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), kind: str = "observation") -> Array:
        """Exact quantiles of the predictive mixture.

        Parameters
        ----------
        X
            New inputs.
        quantiles
            Probabilities, (q,).
        kind
            "observation" or "function".

        Returns
        -------
        Array
            (m, q).
        """
        _check_kind(kind)
        wanted = np.atleast_1d(np.asarray(quantiles, dtype=float))
        if not ((wanted >= 0.0) & (wanted <= 1.0)).all():
            raise ValueError(f"quantiles must be probabilities in [0, 1], got {quantiles!r}")
        inputs = self._take_new_inputs(X)
        return self._in_units(np.concatenate([law.quantile(wanted) for law in self._predictives(inputs, kind)]))

    def predict_interval(self, X: Any, coverage: float = 0.9, kind: str = "observation") -> Array:
        """Central interval.

        Parameters
        ----------
        X
            New inputs.
        coverage
            Its probability.
        kind
            "observation" or "function".

        Returns
        -------
        Array
            Lower and upper ends, (m, 2).
        """
        if not (isinstance(coverage, numbers.Real) and 0.0 < coverage < 1.0):
            raise ValueError(f"coverage must lie strictly between 0 and 1, got {coverage!r}")
        return self.predict_quantiles(X, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage], kind)

    def predict_distribution(self, X: Any, kind: str = "observation") -> Predictive:
        """The predictive law itself, at each row.

        Parameters
        ----------
        X
            New inputs.
        kind
            "observation" or "function".

        Returns
        -------
        Predictive
            A normal mixture at each row.
        """
        _check_kind(kind)
        inputs = self._take_new_inputs(X)
        require_memory(
            48.0 * self._n_atoms() * len(inputs), f"The distribution at {len(inputs)} rows",
            "ask for fewer rows at a time, or for predict_quantiles, which works in pieces", self.max_memory,
        )  # fmt: skip
        law = Predictive.concatenate(list(self._predictives(inputs, kind)))
        return law.affine(float(self.response_scaling_.centre), float(self.response_scaling_.scale))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, kind: str = "observation") -> Array:
        """Draws from the posterior predictive law, joint across rows.

        Parameters
        ----------
        X
            New inputs.
        n_samples
            How many draws.
        random_state
            Seed or generator.
        kind
            "observation" or "function".

        Returns
        -------
        Array
            (m, n_samples).
        """
        _check_kind(kind)
        Whole(1, MOST_DRAWS).require("n_samples", n_samples)
        inputs = self._take_new_inputs(X)
        self._require_square(len(inputs))
        rng = as_generator(random_state)
        picked, counts = np.unique(rng.integers(self._n_atoms(), size=n_samples), return_counts=True)
        draws = []
        for (mean, covariance, noise), count in zip(self._joint(inputs, picked), counts):
            values = sample_normal(rng, mean, covariance, int(count))
            if kind == "observation":
                values = values + np.sqrt(noise) * rng.standard_normal(values.shape)
            draws.append(values)
        shuffled = rng.permutation(np.concatenate(draws))
        return self._in_units(shuffled).T

    def _covariance(self, X: Array, kind: str) -> Array:
        """E cov + cov E over the atoms."""
        self._require_square(len(X))
        total, outer, mean = np.zeros((len(X), len(X))), np.zeros((len(X), len(X))), np.zeros(len(X))
        count = self._n_atoms()
        for mu, covariance, noise in self._joint(X, np.arange(count)):
            total += covariance
            if kind == "observation":
                total[np.diag_indices(len(X))] += noise
            outer += np.outer(mu, mu)
            mean += mu
        mean /= count
        return (total / count + outer / count - np.outer(mean, mean)) * float(self.response_scaling_.scale) ** 2

    def _require_square(self, m: int) -> None:
        require_memory(48.0 * m * m, f"A joint law of {m} rows", "ask for fewer rows at a time", self.max_memory)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f'kind must be "observation" or "function", got {kind!r}')


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn takes as random_state.

    Parameters
    ----------
    random_state
        None, an integer, a SeedSequence, a Generator or a RandomState.

    Returns
    -------
    np.random.Generator
        The generator.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(as_seed(random_state))


def as_seed(random_state: Any) -> np.random.SeedSequence:
    """A seed from whatever scikit-learn takes as random_state.

    Parameters
    ----------
    random_state
        As in :func:`as_generator`.

    Returns
    -------
    np.random.SeedSequence
        The seed; fresh entropy for None.
    """
    SHARED["random_state"].require("random_state", random_state)
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.SeedSequence):
        # A copy: spawning from the caller's own would make the next fit another one.
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    return np.random.SeedSequence(int(random_state))
