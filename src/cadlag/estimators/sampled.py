"""fit = validate, standardise, run chains in blocks, keep the draws: what every sampled method shares.

A method supplies its settings, its model on standardised data and the names of its draws; fitting, extending,
checkpoints, convergence warnings and files are the same for all of them.
"""

import hashlib
import json
import math
import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cadlag.estimators.base import AtomRegressor, as_seed
from cadlag.estimators.scaling import Scaling
from cadlag.posterior import Posterior
from cadlag.samplers.chains import Plan, Store, new_chains, run
from cadlag.samplers.checkpoint import Checkpoint
from cadlag.samplers.progress import TextProgress
from cadlag.storage import write_tree

Array = NDArray[np.float64]


class SampledRegressor(AtomRegressor):
    """A regressor whose atoms are the draws of Markov chains."""

    _settings_of_a_run: ClassVar[tuple[str, ...]]
    sampler: str
    n_draws: int
    n_warmup: int
    n_chains: int
    n_jobs: int | None
    n_atoms: int
    progress: Any
    random_state: Any

    # What a method supplies ------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        raise NotImplementedError

    def _require_fit_memory(self, n: int) -> None:
        """Refuse, before allocating, what would not fit."""
        raise NotImplementedError

    def _make_model(self, X: Array, y: Array) -> Any:
        """The target, on standardised data."""
        raise NotImplementedError

    def _training_inputs(self) -> Array:
        """The standardised inputs that the model was made of."""
        raise NotImplementedError

    def _labels(self) -> dict[str, list[str]]:
        """Names of the entries of each parameter that is a vector."""
        raise NotImplementedError

    def _n_workers(self) -> int:
        """How many chains run at once."""
        jobs = self.n_jobs or 1
        return max(1, min(jobs, self.n_chains) if jobs > 0 else self.n_chains)

    def _kernel(self) -> Any:
        """The sampler's name, or a maker of kernels."""
        return self.sampler

    def _named_draws(self, positions: Array) -> dict[str, Array]:
        """Draws by name, in natural units."""
        draws = self.model_.named(positions)
        if "noise_variance" in draws:
            draws["noise_variance"] = draws["noise_variance"] * float(self.response_scaling_.scale) ** 2
        return draws

    def _interchangeable(self, draws: dict[str, Array]) -> frozenset[str]:
        """The draws whose entries may change places, so that chains need not agree on them."""
        return frozenset()

    def _derived_draws(self, stats: dict[str, Array]) -> dict[str, Array]:
        """Quantities that the kernel reported with each draw, in natural units."""
        return {}

    def _remarks(self) -> list[str]:
        """What a user should know of a finished run besides its convergence."""
        return []

    def _pointwise(self) -> Callable[[Array], Array]:
        """Maker of log p(y_k | y_-k, draw), picklable."""
        raise NotImplementedError

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
            self._require_fit_memory(len(y))
            self.model_ = self._make_model(X, y)
            seed = as_seed(self.random_state)
            total = int(self.n_warmup + self.n_draws)
            store: Store = Store(self.n_chains)
            if checkpoint is not None:
                durable = self._open_checkpoint(checkpoint, seed)
                seed, store = np.random.SeedSequence(durable.entropy), durable.up_to(total)
            self._run(new_chains(seed, self.n_chains), total, store, int(self.n_warmup))
        return self

    def extend(self, n_draws: int = 1000) -> Self:
        """More draws, continuing the chains bit for bit.

        Parameters
        ----------
        n_draws
            Draws to add to each chain.

        Returns
        -------
        Self
            The same regressor with more draws.
        """
        check_is_fitted(self)
        if not (isinstance(n_draws, int | np.integer) and n_draws >= 1):
            raise ValueError(f"n_draws must be an integer of at least 1, got {n_draws!r}")
        done = self.chains_[0]["done"]
        store = Store(len(self.chains_))
        self._run(self.chains_, done + int(n_draws), store, done, self.posterior_)
        return self

    def _open_checkpoint(self, checkpoint: str | PathLike[str], seed: np.random.SeedSequence) -> Checkpoint:
        entropy = seed.entropy
        if not isinstance(entropy, int) or seed.spawn_key:
            raise ValueError("a checkpoint needs random_state to be None or an integer")
        return Checkpoint(str(checkpoint), self.n_chains, self._fingerprint(), entropy)

    def _fingerprint(self) -> str:
        settings = {name: _plain(getattr(self, name)) for name in (*self._settings_of_a_run, "random_state")}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        # The known noise in standard units, since the same number means something else beside another y.
        known = self.model_.noise_variance
        for values in (self.model_.X, self.model_.y, np.asarray(math.nan if known is None else known)):
            digest.update(str(values.shape).encode() + values.tobytes())
        return digest.hexdigest()

    def _run(self, chains: Any, total: int, store: Store, keep_from: int, before: Posterior | None = None) -> None:
        plan = Plan(self._kernel(), int(self.n_warmup))
        progress = TextProgress() if self.progress is True else self.progress or None
        try:
            finished = run(self.model_, plan, chains, total, store, self.n_jobs, progress)
        except ArithmeticError as error:
            raise ValueError(f"these data cannot be fitted as they are: {error}") from error
        end = total if finished else _common_end(store)
        if end - keep_from < 1:
            raise KeyboardInterrupt("interrupted before the first draw was kept: there is nothing to return")
        if not finished:
            warnings.warn(
                f"interrupted: {end - keep_from} draws a chain are kept, extend() adds more", UserWarning, stacklevel=3
            )
        skip = keep_from - store.blocks[0][0].start
        positions = np.stack([store.history(c, end - store.blocks[c][0].start)[skip:] for c in range(len(chains))])
        stats = {name: _stat(store, name, keep_from, end) for name in store.blocks[0][0].stats}
        if before is not None:
            positions = np.concatenate([before.positions, positions], axis=1)
            stats = {name: np.concatenate([before.stats[name], stats[name]], axis=1) for name in stats}
        self.chains_ = [state for c in range(len(chains)) if (state := store.chain_at(c, end)) is not None]
        self._set_posterior(positions, stats)
        complaint = self.posterior_.complaint()
        if complaint is not None:
            warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
        for remark in self._remarks():
            warnings.warn(remark, UserWarning, stacklevel=3)

    def _set_posterior(self, positions: Array, stats: dict[str, Array]) -> None:
        draws = self._named_draws(positions) | self._derived_draws(stats)
        self.posterior_ = Posterior(
            positions, stats, draws, self._labels(), self._pointwise(), self._interchangeable(draws)
        )
        self.diagnostics_ = self.posterior_.diagnostics()

    def _n_atoms(self) -> int:
        return len(self._atoms())

    def _atoms(self) -> Array:
        return self.posterior_.atoms(self.n_atoms)

    # Files -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted regressor to one file that needs no unpickling: :func:`cadlag.load` reads it.

        Parameters
        ----------
        path
            Where; the file is complete or absent.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        tree = {
            "method": self._method,
            "settings": {name: _plain(value) for name, value in self.get_params(deep=False).items()},
            "data": {"X": self._training_inputs(), "y": self.model_.y},
            "feature_names": None if names is None else [str(name) for name in names],
            "n_features": int(self.n_features_in_),
            "input_scaling": {"centre": self.input_scaling_.centre, "scale": self.input_scaling_.scale},
            "response_scaling": {
                "centre": float(self.response_scaling_.centre), "scale": float(self.response_scaling_.scale)
            },
            "positions": self.posterior_.positions,
            "stats": self.posterior_.stats,
            "chains": self.chains_,
        }  # fmt: skip
        write_tree(path, tree, "model")

    @classmethod
    def _from_tree(cls, tree: dict[str, Any]) -> Self:
        model = cls(**tree["settings"])
        model._check_settings()
        model.n_features_in_ = tree["n_features"]
        if tree["feature_names"] is not None:
            model.feature_names_in_ = np.array(tree["feature_names"], dtype=object)
        model.input_scaling_ = Scaling(tree["input_scaling"]["centre"], tree["input_scaling"]["scale"])
        response = tree["response_scaling"]
        model.response_scaling_ = Scaling(np.array(response["centre"]), np.array(response["scale"]))
        model.model_ = model._make_model(tree["data"]["X"], tree["data"]["y"])
        model.chains_ = tree["chains"]
        model._set_posterior(tree["positions"], tree["stats"])
        return model


def _plain(value: Any) -> Any:
    """A setting as a file can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    array = np.asarray(value)
    return array if array.dtype.kind in "biuf" else None


def _common_end(store: Store) -> int:
    """The last iteration at which every chain has the end of a block."""
    ends = [{block.end for block in blocks} for blocks in store.blocks]
    return max(set.intersection(*ends), default=0)


def _stat(store: Store, name: str, start: int, end: int) -> Array:
    rows = []
    for blocks in store.blocks:
        offset = blocks[0].start
        rows.append(np.concatenate([block.stats[name] for block in blocks])[start - offset : end - offset])
    return np.stack(rows)
