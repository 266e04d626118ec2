"""f | y, draw ~ a Gaussian process: what a regressor asks of a model, and what follows from it.

A model is a frozen dataclass of standardised data (`X`, with a column of ones first where there is an intercept, and
`y`) and settings. It has a `dimension`, names its draws (`named`) and conditions each of them: `condition(position)` is
an atom with `moments`, `mean`, `joint` and `noise_variance` at new inputs, `leave_one_out(position)` each row given the
others. What samplers ask of it stands in :mod:`cadlag.sampling.contract`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cadlag.data import Scaling, refuse_overflow
from cadlag.linalg.gaussian import LeftOut
from cadlag.posterior import Posterior
from cadlag.sampling.contract import Forgetful
from cadlag.sampling.probes import probe_rows

Array = NDArray[np.float64]

_WORTH_WORKERS = 1e10  # operations
ROWS_AT_ONCE = 4096


class Model(Forgetful):
    """What a regressor asks of any model, with defaults: names, draws in units, predictions of each draw."""

    X: Array
    y: Array
    condition: Callable[..., Any]
    leave_one_out: Callable[..., LeftOut]
    named: Callable[..., dict[str, Array]]
    noise_variance: Any
    likelihood: Any

    @property
    def n_inputs(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    @property
    def operations_to_condition(self) -> float:
        """What one draw's predictions cost at least."""
        return 0.0

    def given(self, y: Array, relative: Array | None = None) -> Self:
        """The model of other responses, with relative variances of their noise, where there is a likelihood."""
        return replace(self, y=y, likelihood=self.likelihood.given(relative))  # type: ignore[type-var]

    # Names, units and what to say ------------------------------------------------------------------------------------

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the entries of each parameter that is a vector, from those of the inputs."""
        return {}

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """Draws by name, in the units of the data."""
        draws = self.named(positions)
        if "noise_variance" in draws:
            draws["noise_variance"] = draws["noise_variance"] * float(response.scale) ** 2
        return draws

    def interchangeable(self, draws: dict[str, Array]) -> frozenset[str]:
        """The draws whose entries may change places, so that chains need not agree on them."""
        return frozenset()

    def diagnostics(self, posterior: Posterior) -> dict[str, Any]:
        """How far the draws can be trusted, by name."""
        return posterior.diagnostics()

    def remarks(self, diagnostics: dict[str, Any]) -> list[str]:
        """What a user should know of a finished run besides its convergence."""
        return []

    def probe_labels(self) -> dict[str, list[str]]:
        """Names of the rows at which a kernel reports the function."""
        return {"function": [f"row {i}" for i in probe_rows(len(self.y))]}

    def function_at_probes(self, stats: dict[str, Array], response: Scaling) -> dict[str, Array]:
        """The function at these rows, draw by draw."""
        probes = [stats[f"probe{k}"] for k in range(len(probe_rows(len(self.y))))]
        return {"function": response.undo(np.stack(probes, axis=2))}

    # Given each draw -------------------------------------------------------------------------------------------------

    def moments(self, positions: Array, X: Array, n_jobs: int | None = None) -> tuple[Array, Array, Array]:
        """Means and variances of the function, (T, m), and noise variances, (T,), of each draw."""
        jobs = n_jobs if len(positions) * self.operations_to_condition > _WORTH_WORKERS else 1
        pieces = np.array_split(positions, min(len(positions), 8)) if jobs not in (None, 1) else [positions]
        workers = jobs and min(jobs, len(pieces))
        parts = Parallel(n_jobs=workers)(delayed(_moments_of)(self, piece, X) for piece in pieces)
        means, variances, noise = zip(*parts)
        return np.concatenate(means), np.concatenate(variances), np.concatenate(noise)

    def joint(self, positions: Array, which: NDArray[np.int_], X: Array) -> Iterator[tuple[Array, Array, float]]:
        """Mean, covariance and noise variance of each of some of the draws."""
        for index in which:
            atom = self.condition(positions[index])
            with np.errstate(over="ignore", invalid="ignore"):
                mean, covariance = atom.joint(X)
            refuse_overflow(mean, np.diagonal(covariance))
            yield mean, covariance, atom.noise_variance

    def left_out(self, positions: Array) -> LeftOut:
        """Each training row given the others, (T, n)."""
        with threadpool_limits(1, user_api="blas"):
            parts = [self.leave_one_out(position) for position in positions]
        return LeftOut(*(np.stack(part) for part in zip(*parts)))

    def pointwise(self, response: Scaling) -> Callable[[Array], Array] | None:
        """Maker of log p(y_k | y_-k, draw) in the units of y, picklable."""
        return partial(_log_densities, self, math.log(float(response.scale)))

    def lost_shares(self, position: Array, X: Array, variants: list[list[Array]]) -> Array:
        """E[(f(X) - f(X'))²] / (2 Var f(X)), f the mean given a draw, averaged over the X' of each variant."""
        atom = self.condition(position)
        own = atom.mean(X)
        spread = 2.0 * float(np.var(own))
        if spread == 0.0:
            return np.zeros(len(variants))
        lost = [[float(np.mean((own - atom.mean(changed)) ** 2)) for changed in column] for column in variants]
        return np.mean(lost, axis=1) / spread


def _moments_of(model: Model, positions: Array, X: Array) -> tuple[Array, Array, Array]:
    means, variances = np.empty((len(positions), len(X))), np.empty((len(positions), len(X)))
    noise = np.empty(len(positions))
    with threadpool_limits(1, user_api="blas"):
        for t, position in enumerate(positions):
            atom = model.condition(position)
            noise[t] = atom.noise_variance
            for start in range(0, len(X), ROWS_AT_ONCE):
                rows = slice(start, start + ROWS_AT_ONCE)
                means[t, rows], variances[t, rows] = atom.moments(X[rows])
    return means, variances, noise


def _log_densities(model: Model, log_scale: float, positions: Array) -> Array:
    """log p(y_k | y_-k, draw) in the units of y, (chains, draws, n)."""
    flat = positions.reshape(positions.shape[0] * positions.shape[1], positions.shape[2])
    return model.left_out(flat).log_density.reshape(*positions.shape[:2], -1) - log_scale
