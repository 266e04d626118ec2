"""p(y* | x*) = T⁻¹ Σ_t N(μ_t(x*), v_t(x*)): the one regressor, whose posterior is a set of draws, each a Gaussian law.

It has four parts: data (what came in, checked and standardised), a model (`model_`: prior, likelihood, what a draw
predicts), a way to infer (:mod:`cadlag.inference`) and a posterior (`posterior_`: the draws by name). A method supplies
its settings, `_model` and `_memory`; fitting, prediction in the units of the data, files and messages are the same for
all of them.
"""

import hashlib
import json
import math
import numbers
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

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
from cadlag.inference import Chains, Draws, Reach, Rounds, as_generator, as_seed, seed_from, seed_tree
from cadlag.left_out import LeaveOneOut
from cadlag.linalg.gaussian import sample_normal
from cadlag.names import grouped_columns, input_names, refuse_twice
from cadlag.posterior import Posterior, Table
from cadlag.predictive import Predictive
from cadlag.sampling.chains import checked_chain
from cadlag.sampling.checkpoint import Checkpoint
from cadlag.sampling.progress import warn_caller
from cadlag.settings import FREE, MOST_DRAWS, SHARED, Setting, Whole, plain, shown
from cadlag.storage import checked, write_tree
from cadlag.trust import FAST, UNFINISHED, Trust, probe_inputs

Array = NDArray[np.float64]

KINDS = ("observation", "function")
_CHUNK_BYTES = 2**28
_SAID_OF_A_DRAW = 16  # numbers, about
_REPEATS = 4  # permutations averaged for the relevance of an input
FIXED = Reach(4, 1000, 1000)  # chains, warm-up and draws that do not grow
_AUTO = "auto"
_COUNTS = ("n_chains", "n_warmup", "n_draws")
_LOOK = 3e10  # operations, about, for a look at how precise the predictions are
_FEWEST_SEEN, _FEWEST_LOOKED_AT = 20, 4  # draws of each chain in such a look, and for it to be worth one


class Need(NamedTuple):
    """Bytes that something takes, what it is, and what to do where they are too many."""

    n_bytes: float
    what: str
    advice: str


class Regressor(RegressorMixin, BaseEstimator):
    """Bayesian regression: predictions from a finite mixture of normal laws."""

    _method: ClassVar[str]
    _settings: ClassVar[Mapping[str, Setting]]
    _least_noise: ClassVar[float] = 0.0  # of a known noise variance, in units of that of y
    _extends: ClassVar[bool] = True  # whether there are chains to go on with
    _conditions: ClassVar[bool] = True  # whether a draw is a Gaussian process given the data, which leaves rows out
    _meets: ClassVar[int] = 1  # how many chains learn from each other where their number may grow
    _n_rows: int = 0
    _trust: Trust | None = None
    _seed: np.random.SeedSequence | None = None
    _fitted_with: Mapping[str, Any] = MappingProxyType({})
    fit_intercept: bool = False
    sampler: str
    n_draws: int | str
    n_warmup: int | str
    n_chains: int | str
    n_jobs: int | None = None
    precision: float
    max_seconds: float | None
    inference: str = "mcmc"
    n_atoms: int
    noise_variance: Any
    max_memory: float | None
    point: str
    standardize: bool | str
    progress: Any
    random_state: Any
    input_scaling_: Scaling
    response_scaling_: Scaling

    # What a method supplies ------------------------------------------------------------------------------------------

    def _model(self, X: Array, y: Array) -> Any:
        """The model of standardised data."""
        raise NotImplementedError

    def _memory(self, n: int) -> Need:
        """What a fit to so many rows takes."""
        raise NotImplementedError

    def _kernel(self) -> Any:
        """The sampler's name, or a maker of transition kernels."""
        return self.sampler

    def _first_round(self) -> Reach:
        """How far chains go, or go at first, where "auto" leaves it open."""
        return FIXED

    @property
    def _grows(self) -> bool:
        """Whether "auto" means rounds until the predictions are precise."""
        return True

    def _counts(self) -> Reach:
        """Chains, warm-up and draws, at first where they may grow."""
        given = [getattr(self, name) for name in _COUNTS]
        first = self._first_round() if _AUTO in given else given
        return Reach(*(int(own if count == _AUTO else count) for count, own in zip(given, first)))

    def _inference(self) -> Any:
        """How the posterior is found."""
        free = frozenset(name for name in _COUNTS if self._grows and getattr(self, name) == _AUTO)
        shared = (self._kernel(), *self._counts(), self.n_jobs, self.progress)
        if "precision" not in self._settings:
            return Chains(*shared)
        group = self._meets if "n_chains" in free or self._meets == 1 else None
        if not free:
            return Chains(*shared, group, self._trust_of)
        return Rounds(*shared, group, self._trust_of, float(self.precision), free, self.max_seconds, self._meets > 1)

    @property
    def _is_fast(self) -> bool:
        """Whether a first look is enough."""
        return self.inference == "fast"

    def _check_settings(self) -> None:
        """Refuse the first setting that it cannot have; a method adds what it asks of several together."""
        for name, setting in self._settings.items():
            setting.require(name, getattr(self, name))

    # Fitting ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, checkpoint: str | PathLike[str] | None = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs, (n, n_features).
        y
            Responses, (n,).
        checkpoint
            A directory that makes the run durable; fitting again with the same data and settings resumes it.

        Returns
        -------
        Self
            The fitted regressor.
        """
        with self._unchanged_on_failure():
            self._check_settings()
            X, y = self._take_training_data(X, y)
            self.model_ = self._make_model(X, y)
            inference = self._inference()
            self._require_draws_memory(inference)
            self._keep(inference.run(self.model_, self.random_state, self._open(checkpoint)), inference)
        return self

    @available_if(lambda self: self._extends)
    def extend(self, n_draws: int | None = None, precision: float | None = None) -> Self:
        """Go on with the chains bit for bit: for more draws, or until the predictions are more precise.

        Parameters
        ----------
        n_draws
            Draws to add to each chain; 1,000 where no precision is given.
        precision
            Standard error of the predictions that is wanted, in predictive standard deviations, for a fit whose
            numbers of chains or draws were "auto": as much is added as that takes.

        Returns
        -------
        Self
            The same regressor with more draws.
        """
        self._require_fitted()
        inference, before = self._inference(), self._draws()
        if not isinstance(inference, Chains) or not self.chains_:
            raise ValueError(f"there is nothing to extend: {self._without_chains()} has no chains")
        if precision is None:
            SHARED["n_draws"].require("n_draws", 1000 if n_draws is None else n_draws)
            found = inference.extend(self.model_, before, int(1000 if n_draws is None else n_draws))
        else:
            found = self._rounds(n_draws, precision, inference).sharpen(self.model_, before)
        self._keep(found, inference)
        return self

    def _draws(self) -> Draws:
        """What is known of the posterior, to go on from."""
        found = self.posterior_
        return Draws(found.positions, found.stats, self.chains_, trust=self._trust, seed=self._seed)

    def _without_chains(self) -> str:
        return 'inference="fast"' if self._is_fast else f"sampler={self.sampler!r}"

    def _rounds(self, n_draws: int | None, precision: float, inference: Any) -> Rounds:
        """Rounds to another precision, refused where it has no meaning."""
        if n_draws is not None:
            raise ValueError("n_draws and precision cannot both be given to extend: give one of them")
        if not isinstance(inference, Rounds) or self._seed is None:
            raise ValueError(
                'extend(precision=...) goes on with a fit whose n_chains, n_draws or n_warmup is "auto": give n_draws'
            )
        self._settings["precision"].require("precision", precision)
        return replace(inference, precision=float(precision))

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """A fit that fails leaves the regressor as it was, fitted or not."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _make_model(self, X: Array, y: Array, tree: Mapping[str, Any] | None = None) -> Any:
        """The model of standardised data, which came from a file where there is a tree."""
        self._n_rows = len(y)
        require_memory(*self._memory(len(y)), self.max_memory)
        return self._model(X, y)

    def _n_workers(self) -> int:
        """How many chains run at once."""
        jobs, n_chains = self.n_jobs or 1, self._counts().n_chains
        return max(1, min(jobs, n_chains) if jobs > 0 else n_chains)

    def _require_draws_memory(self, inference: Any) -> None:
        """Refuse draws that would not fit, those of warm-up among them, with what is said of each."""
        if isinstance(inference, Chains):
            total = inference.n_chains * (inference.n_warmup + inference.n_draws)
            require_memory(
                8.0 * total * (self.model_.dimension + _SAID_OF_A_DRAW), f"A run of {total:,} draws",
                "use fewer draws (n_draws) or chains (n_chains)", self.max_memory,
            )  # fmt: skip

    def _keep(self, draws: Draws, inference: Any) -> None:
        """Take over what was found, and say what is wrong with it."""
        self.model_ = draws.model or self.model_
        self.chains_, self._trust, self._seed = draws.chains, draws.trust, draws.seed
        self._set_posterior(draws.positions, draws.stats)
        complaint = self._complaint(inference)
        if complaint is not None:
            warn_caller(complaint, ConvergenceWarning)
        for remark in self.model_.remarks(self.diagnostics_):
            warn_caller(remark)

    def _complaint(self, inference: Any) -> str | None:
        """What to warn of, if anything."""
        if "verdict" not in self.diagnostics_:
            return inference.complaint(self.model_, self.posterior_)
        return None if self.diagnostics_["verdict"] != UNFINISHED else self._unfinished()

    def _unfinished(self) -> str:
        """Why the draws are not to be trusted, and what to do."""
        found, why = self.diagnostics_, self.posterior_.complaint() or "The chains agree."
        r = found["reproducibility"]
        told = "" if math.isnan(r) else f" Another seed would move the predictions by {math.sqrt(2.0) * r:.2f} sd"
        drift = "" if not found["drifting"] else ", and they still drift" if told else " The predictions still drift"
        return why + told + drift + ("." if told or drift else "")

    def _posterior_of(self, positions: Array, stats: dict[str, Array]) -> Posterior:
        model, response = self.model_, self.response_scaling_
        draws = model.draws(positions, stats, self.input_scaling_, response)
        labels, interchangeable = model.labels(input_names(self)), model.interchangeable(draws)
        return Posterior(positions, stats, draws, labels, model.pointwise(response), interchangeable)

    def _set_posterior(self, positions: Array, stats: dict[str, Array]) -> None:
        self.posterior_ = self._posterior_of(positions, stats)
        self.diagnostics_ = self.model_.diagnostics(self.posterior_) | self._verdict()

    def _verdict(self) -> dict[str, Any]:
        """What the draws may be used for, where that has been looked at."""
        if "precision" not in self._settings:
            return {}
        if self._is_fast:
            return {"verdict": FAST}
        if self._trust is None:
            return {}
        trust = self._trust
        return {"verdict": trust.verdict(float(self.precision)), "reproducibility": trust.reproducibility,
                "drifting": trust.drifting, "climbing": trust.climbing}  # fmt: skip

    @property
    def reproducibility_(self) -> float:
        """Standard error of the predictions in predictive standard deviations; NaN where it cannot be told."""
        check_is_fitted(self)
        return math.nan if self._trust is None else self._trust.reproducibility

    def _trust_of(self, draws: Draws, group: int) -> Trust | None:
        """How far draws can be trusted: a look at predictions, by no more draws than these are made of."""
        n_chains, n_draws, d = draws.positions.shape
        if n_chains < 2 or n_draws < _FEWEST_LOOKED_AT:
            return None
        each = n_chains * max(self.model_.operations_to_condition, 1.0)
        wanted = int(np.clip(min(_LOOK / each, self.n_atoms / n_chains), min(_FEWEST_SEEN, n_draws), n_draws))
        seen = np.unique(np.linspace(0, n_draws - 1, wanted).round().astype(int))
        atoms, probes = draws.positions[:, seen].reshape(n_chains * len(seen), d), probe_inputs(self.model_.X)
        means, variances, noise = self.model_.moments(atoms, probes, self.n_jobs)
        shape = n_chains, len(seen), len(probes)
        posterior = self._posterior_of(draws.positions, draws.stats)
        return Trust.of(posterior, means.reshape(shape), (variances + noise[:, None]).reshape(shape), group)

    def _open(self, checkpoint: str | PathLike[str] | None) -> Checkpoint | None:
        if checkpoint is None:
            return None
        if self._is_fast:
            raise ValueError('inference="fast" ends in seconds and has nothing to resume: leave the checkpoint out')
        entropy = as_seed(self.random_state).entropy
        # A generator moves on, so that the same run could not be asked for a second time.
        is_fixed = self.random_state is None or isinstance(self.random_state, int | np.integer)
        if not (is_fixed and isinstance(entropy, int)):
            raise ValueError("a checkpoint needs random_state to be None or an integer")
        directory = os.fspath(checkpoint)
        if not isinstance(directory, str):
            raise TypeError(f"checkpoint must be the path of a directory as text, got {shown(checkpoint)}")
        here = os.path.abspath(directory)  # whatever becomes of the working directory
        return Checkpoint(here, self._counts().n_chains, self._fingerprint(), entropy, self.model_.dimension)

    def _fingerprint(self) -> str:
        settings = {name: plain(getattr(self, name)) for name, setting in self._settings.items() if setting.of_run}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        # The known noise in standard units, since the same number means something else beside another y.
        known = self.model_.noise_variance
        for values in (self.model_.X, self.model_.y, np.asarray(math.nan if known is None else known)):
            digest.update(str(values.shape).encode() + values.tobytes())
        return digest.hexdigest()

    # Data ------------------------------------------------------------------------------------------------------------

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

    def _with_intercept(self, X: Array) -> Array:
        return np.column_stack([np.ones(len(X)), X]) if self.fit_intercept else np.ascontiguousarray(X)

    def _standardised_data(self) -> tuple[Array, Array]:
        """Training inputs and responses as the model sees them, without intercept."""
        X = self.model_.X
        return np.ascontiguousarray(X[:, 1:]) if self.fit_intercept else X, self.model_.y

    def training_data(self) -> tuple[Array, Array]:
        """The data that it was fitted to, in their own units.

        Returns
        -------
        tuple[Array, Array]
            Inputs (n, n_features) and responses (n,).
        """
        check_is_fitted(self)
        X, y = self._standardised_data()
        return self.input_scaling_.undo(X), self.response_scaling_.undo(y)

    def name_inputs(self, names: Sequence[str], recipe: dict[str, Any] | None = None) -> Self:
        """Name the inputs of a regressor that was fitted to an array.

        Parameters
        ----------
        names
            A name for each input.
        recipe
            How the inputs are made of a table, see :class:`cadlag.recipes.Recipe`; kept in the model's file.

        Returns
        -------
        Self
            The same regressor, its draws under these names.
        """
        check_is_fitted(self)
        if len(names) != self.n_features_in_:
            raise ValueError(f"{len(names)} names were given for {self.n_features_in_} inputs")
        refuse_twice(names, "the list of names")
        self.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        self._set_posterior(self.posterior_.positions, self.posterior_.stats)
        self.__dict__.pop("recipe_", None)
        if recipe is not None:
            self.recipe_ = recipe
        return self

    def _require_fitted(self) -> None:
        """Refuse a question before fit, or after a setting has been changed that the draws depend on."""
        check_is_fitted(self)
        self._check_settings()
        for name, then in self._fitted_with.items():
            now = plain(getattr(self, name))
            if not np.array_equal(now, then):
                raise ValueError(
                    f"{name} was {shown(then)} when the model was fitted and is {shown(now)}: set it back, or fit again"
                )

    def _remember_settings(self) -> None:
        """Keep what the fit depends on, to notice a change of it."""
        self._fitted_with = {name: plain(getattr(self, name)) for name in self._settings if name not in FREE}

    # Prediction ------------------------------------------------------------------------------------------------------

    def _predictives(self, X: Array, kind: str) -> Iterator[Predictive]:
        """The laws in standard units, in pieces of rows so that the moments of all atoms fit in a bounded space."""
        size = max(1, int(_CHUNK_BYTES / (16 * max(self._n_atoms(), 1))))
        for start in range(0, len(X), size):
            with np.errstate(over="ignore", invalid="ignore"):
                means, variances, noise = self._moments(X[start : start + size])
            refuse_overflow(means, variances, start)
            yield Predictive(means, variances + noise[:, None] if kind == "observation" else variances)

    def _atoms(self) -> Array:
        return self.posterior_.atoms(self.n_atoms)

    def _n_atoms(self) -> int:
        return len(self._atoms())

    def _moments(self, X: Array) -> tuple[Array, Array, Array]:
        """Means and variances of the function, (T, m), and noise variances, (T,), in standard units."""
        return self.model_.moments(self._atoms(), self._with_intercept(X), self.n_jobs)

    def _joint(self, X: Array, atoms: NDArray[np.int_]) -> Iterator[tuple[Array, Array, float]]:
        """Mean, covariance and noise variance for each of the given atoms, in standard units."""
        return self.model_.joint(self._atoms(), atoms, self._with_intercept(X))

    def _in_units(self, values: Array) -> Array:
        return self.response_scaling_.undo(values)

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

    # Rows left out, inputs permuted ----------------------------------------------------------------------------------

    @available_if(lambda self: self._conditions)
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
        errors, variances = self.model_.left_out(self.posterior_.atoms(n_atoms))
        spread = float(self.response_scaling_.scale)
        return LeaveOneOut.reweighted(self._in_units(self.model_.y), spread * errors, spread**2 * variances)

    @available_if(lambda self: self._conditions)
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
        shares = np.array([self.model_.lost_shares(position, X, variants) for position in positions])
        low, middle, high = np.quantile(shares, [0.05, 0.5, 0.95], axis=0)
        columns = {"input": [name for name, _ in parts], "relevance": middle, "q05": low, "q95": high}
        if "input_scales" in self.posterior_.draws:
            draws = self.posterior_["input_scales"]
            each = draws.reshape(-1, draws.shape[-1])[:, -self.n_features_in_ :]  # not the intercept's
            scales = [each[:, part].max(axis=1) for _, part in parts]
            columns |= dict(zip(("scale", "scale_q05", "scale_q95"), np.quantile(scales, [0.5, 0.05, 0.95], axis=1)))
        return Table(columns)

    # The file --------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted regressor to one file that needs no unpickling: :func:`cadlag.load` reads it.

        Parameters
        ----------
        path
            Where; the file is complete or absent.
        """
        self._require_fitted()
        names = getattr(self, "feature_names_in_", None)
        tree = {
            "method": self._method,
            "settings": {name: plain(value) for name, value in self.get_params(deep=False).items()},
            "feature_names": None if names is None else [str(name) for name in names],
            "n_features": int(self.n_features_in_),
            "input_scaling": {"centre": self.input_scaling_.centre, "scale": self.input_scaling_.scale},
            "response_scaling": {
                "centre": float(self.response_scaling_.centre), "scale": float(self.response_scaling_.scale)
            },
            "recipe": getattr(self, "recipe_", None),
            **self._own_tree(),
        }  # fmt: skip
        write_tree(path, tree, "model")

    @classmethod
    def _from_tree(cls, tree: dict[str, Any], max_memory: float | None = None) -> Self:
        """From a file; how much memory it may take is for whoever reads it to say, not for the file."""
        settings = {name: _as_now(cls._settings.get(name), value) for name, value in tree["settings"].items()}
        model = cls(**{**settings, "max_memory": max_memory})
        model._check_settings()
        model._remember_settings()
        p = model.n_features_in_ = _count(tree["n_features"])
        names = tree["feature_names"]
        if names is not None:
            if len(names) != p or not all(isinstance(name, str) for name in names):
                raise ValueError("its names do not fit its inputs")
            model.feature_names_in_ = np.array(names, dtype=object)
        inputs, response = tree["input_scaling"], tree["response_scaling"]
        model.input_scaling_ = Scaling(checked(inputs["centre"], (p,)), checked(inputs["scale"], (p,)))
        model.response_scaling_ = Scaling(_number(response["centre"]), _number(response["scale"]))
        if min(model.input_scaling_.scale.min(), float(model.response_scaling_.scale)) <= 0.0:
            raise ValueError("a scale is not positive")
        model._restore(tree)
        if tree.get("recipe") is not None:
            model.recipe_ = tree["recipe"]
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted once the scaling of the response is known and draws are there."""
        return hasattr(self, "posterior_")

    def _own_tree(self) -> dict[str, Any]:
        """What a file holds besides settings and scaling."""
        X, y = self._standardised_data()
        return {
            "data": {"X": X, "y": y}, "positions": self.posterior_.positions, "stats": self.posterior_.stats,
            "chains": self.chains_, "trust": None if self._trust is None else asdict(self._trust),
            "seed": None if self._seed is None else seed_tree(self._seed),
        }  # fmt: skip

    def _restore(self, tree: dict[str, Any]) -> None:
        """Become fitted again from what a file holds."""
        y = checked(tree["data"]["y"], (None,))
        self.model_ = self._make_model(checked(tree["data"]["X"], (len(y), self.n_features_in_)), y, tree)
        # A draw may be NaN or infinite; what comes of it is refused when it is used.
        positions = checked(tree["positions"], (None, None, self.model_.dimension), finite=False)
        stats = {name: checked(values, positions.shape[:2], finite=False) for name, values in tree["stats"].items()}
        self.chains_ = [checked_chain(chain, self.model_.dimension) for chain in tree["chains"]]
        self._trust = None if tree.get("trust") is None else Trust.from_tree(tree["trust"])
        self._seed = None if tree.get("seed") is None else seed_from(tree["seed"])
        self._set_posterior(positions, stats)


def exact_fit(n_bytes: float, n: int, n_workers: int = 1) -> Need:
    """What a fit takes that keeps a few numbers for each pair of rows, in each worker."""
    advice = "use fewer rows or fewer workers (n_jobs)" if n_workers > 1 else "use fewer rows"
    return Need(n_bytes * n**2 * n_workers, f"An exact fit to {n} rows", advice)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f'kind must be "observation" or "function", got {kind!r}')


def _permuted(rng: np.random.Generator, X: Array, columns: list[int]) -> Array:
    changed = X.copy()
    changed[:, columns] = X[rng.permutation(len(X))][:, columns]
    return changed


def _as_now(setting: Setting | None, value: Any) -> Any:
    """A setting that version 0.1 took, as this one takes it: 1 as True, True as 1, no workers as None."""
    if setting is None or not setting.wanted(value):
        return value
    others = [bool(value), None] if type(value) is int and value in (0, 1) else [int(value)] if value is True else []
    return next((other for other in others if not setting.wanted(other)), value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("its number of inputs is missing")
    return value


def _number(value: Any) -> Array:
    return checked(np.asarray(value), ())
