"""fit = validate, standardise, run chains in blocks, keep the draws: what every sampled method shares.

A method supplies what :mod:`~cadlag.estimators.stored` asks for; fitting, extending, checkpoints and convergence
warnings are the same for all of them.
"""

import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from cadlag.data import require_memory
from cadlag.estimators.base import as_seed
from cadlag.estimators.files import plain
from cadlag.estimators.stored import StoredRegressor
from cadlag.posterior import Posterior
from cadlag.sampling.chains import Plan, Store, new_chains, run
from cadlag.sampling.checkpoint import Checkpoint
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.sampling.progress import TextProgress
from cadlag.settings import SHARED, shown

Array = NDArray[np.float64]

_SAID_OF_A_DRAW = 16  # numbers, about


class SampledRegressor(StoredRegressor):
    """A regressor whose atoms are the draws of Markov chains."""

    sampler: str
    n_draws: int
    n_warmup: int
    n_chains: int
    n_jobs: int | None
    n_atoms: int
    progress: Any
    random_state: Any

    def _n_workers(self) -> int:
        """How many chains run at once."""
        jobs = self.n_jobs or 1
        return max(1, min(jobs, self.n_chains) if jobs > 0 else self.n_chains)

    def _kernel(self) -> Any:
        """The sampler's name, or a maker of kernels."""
        return self.sampler

    def _remarks(self) -> list[str]:
        """What a user should know of a finished run besides its convergence."""
        return []

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
            self._require_draws_memory()
            seed = as_seed(self.random_state)
            total = int(self.n_warmup) + int(self.n_draws)
            store: Store = Store(self.n_chains)
            if checkpoint is not None:
                durable = self._open_checkpoint(checkpoint, seed)
                seed, store = np.random.SeedSequence(durable.entropy), durable.up_to(total)
            with _blaming(checkpoint if store.reached(0) else None):
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
        self._require_fitted()
        SHARED["n_draws"].require("n_draws", n_draws)
        done = self.chains_[0]["done"]
        store = Store(len(self.chains_))
        self._run(self.chains_, done + int(n_draws), store, done, self.posterior_)
        return self

    def _require_draws_memory(self) -> None:
        """Refuse draws that would not fit, those of warm-up among them, with what is said of each."""
        total = int(self.n_chains) * (int(self.n_warmup) + int(self.n_draws))
        require_memory(
            8.0 * total * (self.model_.dimension + _SAID_OF_A_DRAW), f"A run of {total:,} draws",
            "use fewer draws (n_draws) or chains (n_chains)", self.max_memory,
        )  # fmt: skip

    def _open_checkpoint(self, checkpoint: str | PathLike[str], seed: np.random.SeedSequence) -> Checkpoint:
        entropy = seed.entropy
        # A generator moves on, so that the same run could not be asked for a second time.
        is_plain = self.random_state is None or isinstance(self.random_state, int | np.integer)
        if not (is_plain and isinstance(entropy, int)):
            raise ValueError("a checkpoint needs random_state to be None or an integer")
        directory = os.fspath(checkpoint)
        if not isinstance(directory, str):
            raise TypeError(f"checkpoint must be the path of a directory as text, got {shown(checkpoint)}")
        here = os.path.abspath(directory)  # whatever becomes of the working directory
        return Checkpoint(here, self.n_chains, self._fingerprint(), entropy, self.model_.dimension)

    def _fingerprint(self) -> str:
        settings = {name: plain(getattr(self, name)) for name, setting in self._settings.items() if setting.of_run}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        # The known noise in standard units, since the same number means something else beside another y.
        known = self.model_.noise_variance
        for values in (self.model_.X, self.model_.y, np.asarray(math.nan if known is None else known)):
            digest.update(str(values.shape).encode() + values.tobytes())
        return digest.hexdigest()

    def _run(self, chains: Any, total: int, store: Store, keep_from: int, before: Posterior | None = None) -> None:
        plan = Plan(self._kernel(), int(self.n_warmup))
        progress = self.progress if callable(self.progress) else TextProgress() if self.progress else None
        try:
            finished = run(self.model_, plan, chains, total, store, self.n_jobs, progress)
        except ArithmeticError as error:
            raise ValueError(f"these data cannot be fitted as they are: {error}") from error
        end = total if finished else _common_end(store)
        if end - keep_from < 1:
            raise KeyboardInterrupt("interrupted before the first draw was kept: there is nothing to return")
        if not finished:
            warnings.warn(
                f"interrupted: {end - keep_from} draws a chain are kept, extend() adds more",
                InterruptedFitWarning, stacklevel=3,
            )  # fmt: skip
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


@contextmanager
def _blaming(checkpoint: str | PathLike[str] | None) -> Iterator[None]:
    """Say of chains that came from files and cannot go on that the files are to blame."""
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        if checkpoint is None:
            raise
        raise ValueError(
            f"{checkpoint} holds chains that cannot go on ({type(error).__name__}: {error}): give another checkpoint "
            "directory, or remove this one"
        ) from error


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
