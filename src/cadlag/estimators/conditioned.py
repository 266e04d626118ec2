"""f | y, draw ~ a Gaussian process: what is shared by methods whose draws condition to one.

A model supplies `condition(position)`, an atom with `moments`, `mean`, `joint` and `noise_variance` at new inputs, and
`leave_one_out(position)`; predictions, relevance of inputs and pointwise log densities follow.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cadlag.data import refuse_overflow
from cadlag.estimators.base import as_generator
from cadlag.estimators.stored import StoredRegressor
from cadlag.left_out import LeaveOneOut
from cadlag.names import distinct, grouped_columns, input_names, labels_beside
from cadlag.posterior import Table
from cadlag.sampling.probes import probe_rows

Array = NDArray[np.float64]

_REPEATS = 4  # permutations averaged for the relevance of an input
_WORTH_WORKERS = 1e10  # operations


class ConditionedRegressor(StoredRegressor):
    """A regressor each of whose atoms is a Gaussian process given the data."""

    _least_noise: ClassVar[float] = 0.0  # of a known noise variance, in units of that of y
    fit_intercept: bool
    noise_variance: Any
    noise_prior_on: str
    random_state: Any
    n_jobs: int | None

    def _known_noise(self, n: int) -> float | Array | None:
        if self.noise_variance is None:
            return None
        with np.errstate(over="ignore", under="ignore"):
            known = np.asarray(self.noise_variance, dtype=float) / float(self.response_scaling_.scale) ** 2
        if known.ndim > 1 or (known.ndim == 1 and len(known) != n):
            raise ValueError(f"noise_variance must be one number or one for each of the {n} rows, got {known.shape}")
        if not np.all((known > 0.0) & np.isfinite(known)):
            raise ValueError("noise_variance is out of all proportion to y: it must be given in squared units of y")
        if np.min(known) < self._least_noise:
            raise ValueError(
                f"noise_variance is smaller than {self._least_noise:g} of the variance of y, which the arithmetic "
                "cannot tell from none: give a larger one"
            )
        return float(known) if known.ndim == 0 else known

    # A single atom ---------------------------------------------------------------------------------------------------

    def _fit_maximum(self, X: Any, y: Any) -> Self:
        """Fit by `maximise` of the model: one position, and what the search said of it."""
        with self._unchanged_on_failure():
            self._check_settings()
            X, y = self._take_training_data(X, y)
            self._require_fit_memory(len(y))
            self.model_ = self._make_model(X, y)
            with threadpool_limits(1, user_api="blas"):
                position, said = self.model_.maximise(as_generator(self.random_state))
            self.chains_: list[Any] = []
            self._set_posterior(position[None, None], {name: np.array([[value]]) for name, value in said.items()})
            if not said["converged"]:
                warnings.warn(
                    "The search for the largest marginal likelihood did not converge: the fit may be poor; "
                    "standardize=True and more rows help.", ConvergenceWarning, stacklevel=3,
                )  # fmt: skip
        return self

    # Inputs ---------------------------------------------------------------------------------------------------------

    def _training_inputs(self) -> Array:
        return np.ascontiguousarray(self.model_.X[:, 1:]) if self.fit_intercept else self.model_.X

    def _input_names(self) -> list[str]:
        """Labels of what belongs to a column of the model's inputs."""
        names = input_names(self)
        return labels_beside("intercept", names) if self.fit_intercept else distinct(names)

    def _with_intercept(self, X: Array) -> Array:
        return np.column_stack([np.ones(len(X)), X]) if self.fit_intercept else np.ascontiguousarray(X)

    # The function at a few rows, where a kernel reports it ------------------------------------------------------------

    def _probe_labels(self) -> dict[str, list[str]]:
        return {"function": [f"row {i}" for i in probe_rows(len(self.model_.y))]}

    def _function_at_probes(self, stats: dict[str, Array]) -> dict[str, Array]:
        probes = [stats[f"probe{k}"] for k in range(len(probe_rows(len(self.model_.y))))]
        return {"function": self._in_units(np.stack(probes, axis=2))}

    # Atoms -----------------------------------------------------------------------------------------------------------

    def _moments(self, X: Array) -> tuple[Array, Array, Array]:
        inputs, atoms = self._with_intercept(X), self._atoms()
        jobs = self.n_jobs if len(atoms) * self.model_.operations_to_condition > _WORTH_WORKERS else 1
        pieces = np.array_split(atoms, min(len(atoms), 8)) if jobs not in (None, 1) else [atoms]
        workers = jobs and min(jobs, len(pieces))
        parts = Parallel(n_jobs=workers)(delayed(_moments_of)(self.model_, piece, inputs) for piece in pieces)
        means, variances, noise = zip(*parts)
        return np.concatenate(means), np.concatenate(variances), np.concatenate(noise)

    def _joint(self, X: Array, atoms: NDArray[np.int_]) -> Iterator[tuple[Array, Array, float]]:
        inputs, positions = self._with_intercept(X), self._atoms()
        for index in atoms:
            atom = self.model_.condition(positions[index])
            with np.errstate(over="ignore", invalid="ignore"):
                mean, covariance = atom.joint(inputs)
            refuse_overflow(mean, np.diagonal(covariance))
            yield mean, covariance, atom.noise_variance

    def _pointwise(self) -> Callable[[Array], Array]:
        return partial(_leave_one_out, self.model_, math.log(float(self.response_scaling_.scale)))

    def leave_one_out(self, n_atoms: int = 500) -> LeaveOneOut:
        """Predictions of each training row from all the others, in closed form for each draw.

        Draws are reweighted to the posterior without the row by Pareto-smoothed importance sampling.

        Parameters
        ----------
        n_atoms
            Draws used.

        Returns
        -------
        LeaveOneOut
            The predictive law of each row, and how far to trust it.
        """
        self._require_fitted()
        with threadpool_limits(1, user_api="blas"):
            parts = [self.model_.leave_one_out(position) for position in self.posterior_.atoms(n_atoms)]
        errors, variances = (np.stack(part) for part in zip(*parts))
        spread = float(self.response_scaling_.scale)
        return LeaveOneOut.reweighted(self._in_units(self.model_.y), spread * errors, spread**2 * variances)

    def feature_relevance(
        self, n_atoms: int = 100, n_rows: int = 500, random_state: Any = 0,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> Table:  # fmt: skip
        """Share of the function's variance that is lost when an input is permuted, and the input's scale.

        For each draw the share is E[(f(X) - f(X with column j permuted))²] / (2 Var f(X)), f the posterior mean given
        that draw: the total-effect index of Sobol. All draws see the same few permutations, so the quantiles leave out
        their error, by which a share of nearly one may come out above it.

        Parameters
        ----------
        n_atoms
            Draws used.
        n_rows
            Training rows used.
        random_state
            Seed of the permutations.
        groups
            Name to the inputs that are permuted together, such as the columns of one category: a row of the table
            instead of theirs.

        Returns
        -------
        Table
            A row an input or a group of them: 5 %, 50 % and 95 % quantiles of the share, and of its stable scale (in
            any of the model's groups; the largest of those of inputs that are permuted together).
        """
        self._require_fitted()
        rng = as_generator(random_state)
        X = self.model_.X[rng.permutation(len(self.model_.X))[:n_rows]]
        parts = grouped_columns(input_names(self), groups)
        first = int(self.fit_intercept)
        variants = [[_permuted(rng, X, [first + j for j in part]) for _ in range(_REPEATS)] for _, part in parts]
        positions = self.posterior_.atoms(n_atoms)
        shares = np.array([_lost_shares(self.model_, position, X, variants) for position in positions])
        low, middle, high = np.quantile(shares, [0.05, 0.5, 0.95], axis=0)
        columns = {"input": [name for name, _ in parts], "relevance": middle, "q05": low, "q95": high}
        if "input_scales" in self.posterior_.draws:
            draws = self.posterior_["input_scales"]
            each = draws.reshape(-1, draws.shape[-1])[:, -self.n_features_in_ :]  # not the intercept's
            scales = [each[:, part].max(axis=1) for _, part in parts]
            columns |= dict(zip(("scale", "scale_q05", "scale_q95"), np.quantile(scales, [0.5, 0.05, 0.95], axis=1)))
        return Table(columns)


def _moments_of(model: Any, positions: Array, X: Array) -> tuple[Array, Array, Array]:
    means, variances = np.empty((len(positions), len(X))), np.empty((len(positions), len(X)))
    noise = np.empty(len(positions))
    with threadpool_limits(1, user_api="blas"):
        for t, position in enumerate(positions):
            atom = model.condition(position)
            noise[t] = atom.noise_variance
            for start in range(0, len(X), 4096):
                rows = slice(start, start + 4096)
                means[t, rows], variances[t, rows] = atom.moments(X[rows])
    return means, variances, noise


def _leave_one_out(model: Any, log_scale: float, positions: Array) -> Array:
    """log p(y_k | y_-k, draw) in the units of y, (chains, draws, n)."""
    flat = positions.reshape(positions.shape[0] * positions.shape[1], positions.shape[2])
    with threadpool_limits(1, user_api="blas"):
        values = np.stack([model.leave_one_out(position).log_density for position in flat])
    return values.reshape(*positions.shape[:2], -1) - log_scale


def _permuted(rng: np.random.Generator, X: Array, columns: list[int]) -> Array:
    changed = X.copy()
    changed[:, columns] = X[rng.permutation(len(X))][:, columns]
    return changed


def _lost_shares(model: Any, position: Array, X: Array, variants: list[list[Array]]) -> Array:
    atom = model.condition(position)
    plain = atom.mean(X)
    spread = 2.0 * float(np.var(plain))
    if spread == 0.0:
        return np.zeros(len(variants))
    lost = [[float(np.mean((plain - atom.mean(changed)) ** 2)) for changed in column] for column in variants]
    return np.mean(lost, axis=1) / spread
