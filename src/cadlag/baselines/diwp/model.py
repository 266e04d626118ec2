"""K_ℓ | K_{ℓ-1} inverse Wishart, f | K_L Gaussian, all by a bound: the deep inverse Wishart process before and after.

Before it has climbed, the model holds data and settings; afterwards the variational parameters too, by which draws of
the Gram matrices predict (:mod:`~cadlag.baselines.diwp.atoms`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cadlag.baselines.diwp.ascent import Climb, initial_parameters, judge, parameter_shapes
from cadlag.baselines.diwp.atoms import Atoms
from cadlag.baselines.diwp.output import Parameters
from cadlag.data import Scaling, refuse_overflow
from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.model import Array, Model
from cadlag.names import distinct
from cadlag.posterior import Posterior
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.sampling.progress import warn_caller


@dataclass(frozen=True)
class InverseWishartProcess(Climb, Model):
    """The process, its bound, and what has been learned.

    Attributes
    ----------
    n_layers
        Number of inverse Wishart layers.
    n_inducing
        Largest number of inducing inputs.
    n_steps
        Steps of the ascent.
    learning_rates
        Of its steps, each for an equal share of them.
    optional
        Which parameters are learned besides those that always are.
    parameters
        What was learned.
    trace
        The bound per datum at each step.
    seed
        Of what rows asked for together add to a draw's randomness.
    """

    n_layers: int
    n_inducing: int
    n_steps: int
    learning_rates: tuple[float, ...]
    optional: tuple[str, ...] = ()
    parameters: Parameters = field(default_factory=dict)
    trace: Array = field(default_factory=lambda: np.zeros(0))
    seed: int = 0

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameters, given how many inducing inputs there are."""
        size = len(self.parameters["inducing"])
        return parameter_shapes(size, self.X.shape[1], self.n_layers, self.optional)

    @property
    def rates(self) -> Array:
        """Learning rate of each step."""
        rates = np.asarray(self.learning_rates)
        return rates[np.arange(self.n_steps) * len(rates) // self.n_steps]

    # Learning --------------------------------------------------------------------------------------------------------

    def climb(self, rng: np.random.Generator, progress: Callable[..., Any] | None) -> "InverseWishartProcess":
        """Climb the bound, and return the model that has learned."""
        start = initial_parameters(rng, self.X, self.y, self.n_inducing, self.n_layers, self.optional)
        trace = self.ascend(rng, start, self.rates, progress)
        if not np.isfinite(trace).any():
            if len(trace) < self.n_steps:
                raise KeyboardInterrupt("interrupted before the first step: there is nothing to return")
            raise ValueError("these data cannot be fitted as they are: every step failed; set standardize=True")
        if len(trace) < self.n_steps:
            warn_caller(f"interrupted after {len(trace)} steps", InterruptedFitWarning)
        return replace(self, parameters=start, trace=trace)

    def complaint(self) -> str | None:
        """What a ConvergenceWarning should say."""
        found, parts = judge(self.trace, len(self.y)), []
        if found["rising"]:
            rise = found["elbo_rise"]
            known = f"by {rise:.3g} a datum over the last tenth of the steps" if np.isfinite(rise) else "as far as seen"
            parts.append(f"the evidence bound still rises, {known}: a larger n_steps helps")
        if found["n_failures"]:
            parts.append(f"{found['n_failures']} of {found['n_steps']} steps failed: smaller learning_rates help")
        return f"The fit has not converged: {'; '.join(parts)}." if parts else None

    def diagnostics(self, posterior: Posterior) -> dict[str, Any]:
        """Where the bound ended."""
        return judge(self.trace, len(self.y))

    # Draws -----------------------------------------------------------------------------------------------------------

    @property
    def _atoms(self) -> Atoms:
        return Atoms(self.parameters, self.counted)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Positions of independent draws, (count, d)."""
        return self._atoms.draw(rng, count)

    def said_of(self, positions: Array) -> dict[str, Array]:
        """log P - log Q of each draw, as one chain."""
        with threadpool_limits(1, user_api="blas"):
            return {"log_ratio": self._atoms.log_ratios(positions)[None]}

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the layers' and inputs' parameters."""
        layers, inputs = [f"layer {k + 1}" for k in range(self.n_layers)], distinct(names)
        return {"delta": layers, "gamma": layers, "input_scales": inputs, "input_shifts": inputs}

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """What the bound has chosen, the same in every draw, on natural scales and in the units of y."""
        learned, scale = self.parameters, float(response.scale)
        known = {name: np.exp(learned[f"log_{name}"]) for name in ("delta", "gamma") if self.n_layers}
        if "log_noise" in learned:
            known["noise_variance"] = np.asarray((scale * np.exp(learned["log_noise"])) ** 2)
        if "log_amplitude" in learned:
            known["amplitude"] = np.asarray(scale * np.exp(learned["log_amplitude"]))
        if "input_shifts" in learned:
            known["input_scales"] = np.exp(learned["log_input_scales"])
            known["input_shifts"] = learned["input_shifts"]
        count = positions.shape[1]
        return {name: np.broadcast_to(values, (1, count, *values.shape)) for name, values in known.items()}

    def interchangeable(self, draws: dict[str, Array]) -> frozenset[str]:
        """All of them: there is nothing to agree on."""
        return frozenset(draws)

    def pointwise(self, response: Scaling) -> None:
        """None: rows cannot be left out of a bound in closed form."""
        return

    # The function at new rows ----------------------------------------------------------------------------------------

    @property
    def new_noise(self) -> float:
        """Variance of the noise on a new observation."""
        known = self.noise_variance
        return float(np.exp(2.0 * self.parameters["log_noise"])) if known is None else known

    def moments(self, positions: Array, X: Array, n_jobs: int | None = None) -> tuple[Array, Array, Array]:
        """Means and variances of the function, (T, m), and noise variances, (T,), of each draw."""
        with threadpool_limits(1, user_api="blas"):
            means, variances = self._atoms.moments(positions, X)
        return means, variances, np.full(len(positions), self.new_noise)

    def joint(self, positions: Array, which: NDArray[np.int_], X: Array) -> Iterator[tuple[Array, Array, float]]:
        """Mean, covariance and noise variance of each of some of the draws."""
        rngs = [np.random.default_rng([self.seed, int(t)]) for t in which]
        try:
            with threadpool_limits(1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
                for mean, covariance in self._atoms.joint(positions[which], rngs, X):
                    refuse_overflow(mean, np.diagonal(covariance))
                    yield mean, covariance, self.new_noise
        except NotPositiveDefiniteError:
            raise ValueError(
                "a joint law of these rows is beyond rounding: leave out rows far from the training data"
            ) from None
