"""θ ← θ + r m̂/(√ŝ + ε), m̂ and ŝ running means of the gradient and of its squares: Adam on the evidence bound.

Where parameters start, the steps, and whether the bound still rose at the end.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cadlag.baselines.diwp.bound import Bound
from cadlag.baselines.diwp.output import Parameters
from cadlag.linalg.gaussian import Array, NotPositiveDefiniteError

_FIRST_DECAY, _SECOND_DECAY, _STABILISER = 0.9, 0.999, 1e-8
_FIRST_LOG_FACTOR = -2.0  # log precision of -4: the posterior of the output starts near the prior
_REPORT_SECONDS = 2.0
_FEWEST_STEPS = 40
_CLEAR_RISE = 3.0  # standard errors
_LEAST_RISE = 0.1  # nats of all data together


def initial_parameters(
    rng: np.random.Generator, X: Array, y: Array, n_inducing: int, n_layers: int, optional: Sequence[str] = ()
) -> Parameters:
    """Where the published code starts: inducing inputs on data, δ = γ = d = 1, V standard normal."""
    chosen = np.sort(rng.permutation(len(X))[:n_inducing])
    shapes = parameter_shapes(len(chosen), X.shape[1], n_layers, optional)
    return {
        **{name: np.zeros(shape) for name, shape in shapes.items()},
        "inducing": X[chosen].copy(), "targets": y[chosen].copy(), "V": rng.standard_normal(shapes["V"]),
        "factor": np.eye(len(chosen)), "log_factor": np.array(_FIRST_LOG_FACTOR),
    }  # fmt: skip


def parameter_shapes(size: int, p: int, n_layers: int, optional: Sequence[str] = ()) -> dict[str, tuple[int, ...]]:
    """Shapes of all parameters of the bound, by name; `optional` ones only where they are learned."""
    several = {"log_input_scales": (p,), "input_shifts": (p,)}
    return {
        "inducing": (size, p), "targets": (size,), "log_delta": (n_layers,), "log_gamma": (n_layers,),
        "log_weight": (n_layers,), "V": (n_layers, size, size), "factor": (size, size), "log_factor": (),
        **{name: several.get(name, ()) for name in optional},
    }  # fmt: skip


class Adam:
    """The optimiser of Kingma & Ba (2015), upwards.

    Parameters
    ----------
    parameters
        What is moved, in place.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters, self.count = parameters, 0
        self.means = {name: np.zeros_like(values) for name, values in parameters.items()}
        self.squares = {name: np.zeros_like(values) for name, values in parameters.items()}

    def step(self, gradient: Parameters, rate: float) -> None:
        """One step along a gradient."""
        self.count += 1
        first, second = 1.0 - _FIRST_DECAY**self.count, 1.0 - _SECOND_DECAY**self.count
        for name, by in gradient.items():
            mean, square = self.means[name], self.squares[name]
            mean += (1.0 - _FIRST_DECAY) * (by - mean)
            square += (1.0 - _SECOND_DECAY) * (by**2 - square)
            self.parameters[name] += rate * (mean / first) / (np.sqrt(square / second) + _STABILISER)


@dataclass(frozen=True)
class Climb:
    """What climbs the bound: data, draws a step, rows a step.

    Attributes
    ----------
    X
        Inputs, (n, p).
    y
        Responses.
    noise_variance
        Known variance of the noise, or None.
    n_samples
        Draws of the Gram matrices a step.
    batch_size
        Rows a step.
    counted
        Rows that the degrees of freedom of a row count.
    """

    X: Array
    y: Array
    noise_variance: float | None
    n_samples: int
    batch_size: int
    counted: int

    def ascend(
        self, rng: np.random.Generator, parameters: Parameters, rates: Array,
        progress: Callable[[Sequence[int], int, int, float], Any] | None = None,
    ) -> Array:  # fmt: skip
        """Move the parameters, in place, until all steps are done or the user interrupts."""
        optimiser, trace, done = Adam(parameters), np.full(len(rates), math.nan), 0
        started = told = time.perf_counter()
        try:
            for k, rate in enumerate(rates):
                trace[k] = self._step(rng, optimiser, float(rate))
                done, now = k + 1, time.perf_counter()
                if progress is not None and (now > told + _REPORT_SECONDS or done == len(rates)):
                    progress([done], len(rates), int(np.isnan(trace[:done]).sum()), now - started)
                    told = now
        except KeyboardInterrupt:
            return trace[:done]
        return trace

    def _step(self, rng: np.random.Generator, optimiser: Adam, rate: float) -> float:
        bound = self._batch(rng)
        try:
            noises = [bound.draw_noise(rng, optimiser.parameters) for _ in range(self.n_samples)]
            value, gradient = bound.evaluate(optimiser.parameters, noises)
        except NotPositiveDefiniteError:
            return math.nan
        if not (math.isfinite(value) and all(np.isfinite(by).all() for by in gradient.values())):
            return math.nan
        optimiser.step(gradient, rate)
        return value

    def _batch(self, rng: np.random.Generator) -> Bound:
        n = len(self.y)
        rows = slice(None) if self.batch_size >= n else rng.permutation(n)[: self.batch_size]
        return Bound(self.X[rows], self.y[rows], n, self.noise_variance, self.counted)


def judge(trace: Array, n: int) -> dict[str, Any]:
    """Where the bound ended, and whether it still rose over the last fifth of the steps."""
    tenth = max(len(trace) // 10, 1)
    ends = [part[~np.isnan(part)] for part in (trace[-2 * tenth : -tenth], trace[-tenth:])]
    found = {"elbo": math.nan, "elbo_rise": math.nan, "rising": True}
    if len(trace) and len(ends[1]):
        found["elbo"] = float(ends[1].mean())
    if len(trace) >= _FEWEST_STEPS and min(map(len, ends)) > 1:
        rise = float(ends[1].mean() - ends[0].mean())
        error = math.sqrt(sum(part.var(ddof=1) / len(part) for part in ends))
        found |= {"elbo_rise": rise, "rising": rise > _CLEAR_RISE * error and rise * n > _LEAST_RISE}
    return {**found, "n_steps": len(trace), "n_failures": int(np.isnan(trace).sum())}
