"""step(rng, state, level) -> state, info: what a target offers to samplers, and what a transition kernel is.

A *level* names a rung of a ladder of targets. The target's `exact_level` is the posterior itself; other levels are
flatter (a temperature, a noise floor: the target decides), and exchanges between rungs use `log_target` alone. A
kernel's state is a plain tree (dict of arrays and numbers) that holds positions and adaptation but no caches, so that
a run can stop after any step, be written down, and go on bit for bit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
State = dict[str, Any]
Info = dict[str, float]


class InterruptedFitWarning(UserWarning):
    """A fit was interrupted, and returns what it has."""


class Forgetful:
    """A frozen dataclass that leaves behind, when pickled, what it has remembered: cached values, private fields."""

    def __getstate__(self) -> dict[str, Any]:
        """The fields that it was made of; private ones as they were at first."""
        fields: Mapping[str, Any] = self.__dataclass_fields__  # type: ignore[attr-defined]
        return {
            name: field.default_factory() if name.startswith("_") else getattr(self, name)
            for name, field in fields.items()
        }


class Levels(Protocol):
    """A log density at every rung of a ladder: all that exchanges need."""

    @property
    def exact_level(self) -> float:
        """The level at which the target is the posterior."""

    def log_target(self, position: Array, level: float) -> float:
        """Log density, -inf where it cannot be evaluated."""


class Target(Levels, Protocol):
    """A log density on R^d with a prior to start from."""

    @property
    def dimension(self) -> int:
        """Number of coordinates."""

    def log_target_gradient(self, position: Array, level: float) -> tuple[float, Array]:
        """Log density and its gradient."""

    def log_likelihood_at(self, position: Array, level: float) -> float:
        """log_target less log_prior, without the cost of the prior."""

    def log_prior(self, position: Array) -> float:
        """Log prior density."""

    def sample_prior(self, rng: np.random.Generator) -> Array:
        """One draw from the prior."""


class Kernel(Protocol):
    """A transition that leaves the target at a level invariant once its warm-up is over."""

    @property
    def rendezvous(self) -> Sequence[int]:
        """Iterations (of warm-up) after which the chains meet in :meth:`pool`."""

    def init(self, rng: np.random.Generator) -> State:
        """A starting state."""

    def step(self, rng: np.random.Generator, state: State, level: float) -> tuple[State, Info]:
        """One iteration; `state["position"]` is the draw."""

    def pool(self, states: Sequence[State], history: Sequence[Array]) -> list[State]:
        """Let the chains learn from each other's warm-up (positions so far, one array a chain)."""


class Apart:
    """What a kernel inherits whose chains never meet."""

    rendezvous: Sequence[int] = ()

    def pool(self, states: Sequence[State], history: Sequence[Array]) -> list[State]:
        """Leave the chains as they are."""
        return list(states)


def described(
    log_target: float, accept: float, n_gradients: int = 0, diverging: bool = False, n_failures: float = 0,
    step_size: float = 0.0,
) -> Info:  # fmt: skip
    """What every kernel here says of an iteration."""
    return {
        "log_target": log_target, "accept": accept, "n_gradients": float(n_gradients), "diverging": float(diverging),
        "n_failures": float(n_failures), "step_size": step_size,
    }  # fmt: skip


def find_start(rng: np.random.Generator, target: Target, best_of: int = 1, attempts: int = 100) -> Array:
    """A prior draw at which the target is finite."""
    found: list[tuple[float, Array]] = []
    for _ in range(attempts):
        position = target.sample_prior(rng)
        value = target.log_likelihood_at(position, target.exact_level)
        if np.isfinite(value) and np.isfinite(target.log_prior(position)):
            found.append((value, position))
        if len(found) == best_of:
            break
    if found:
        return max(found, key=lambda pair: pair[0])[1]
    raise ArithmeticError(
        f"the likelihood could not be evaluated at any of {attempts} prior draws: "
        "check the scale of the data, or standardize them"
    )
