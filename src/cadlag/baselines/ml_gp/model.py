"""V = σ²(R(β) + gI), R_kh = exp(-Σ_i β_i (x_ki - x_hi)²), constant mean μ: the process that mlegp maximises.

With C = R + gI, μ̂ = 1ᵀC⁻¹y / 1ᵀC⁻¹1, e = y - μ̂, σ̂² = eᵀC⁻¹e / n, what is minimised over (log β, log g) is

    ½ (n log 2π + n log σ̂² + log|C| + n),   by θ in (β, g):  ½ θ (tr(C⁻¹C_θ) - wᵀC_θ w / σ̂²),  w = C⁻¹e.

Dancik & Dorman (2008), whose finite differences are replaced by this gradient.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.spatial.distance import pdist

from cadlag.baselines.bayes_gp.atom import LinearMean, LinearMeanAtom
from cadlag.baselines.bayes_gp.least_squares import Regression
from cadlag.data import Scaling
from cadlag.kernels.stationary import Stationary
from cadlag.linalg.gaussian import LOG_2PI, Array, LeftOut, NotPositiveDefiniteError
from cadlag.names import distinct

_CLOSEST = (0.65, 0.3)  # correlation of the closest pair at the starting values
_LEAST_VARIANCE = 1e-200  # of a response that the mean explains in full
_BOUNDS_BETA, _BOUNDS_NUGGET = (-35.0, 35.0), (math.log(1e-10), 25.0)
_FLAT = 0.01  # gradient over position at which a search has converged
_EVALUATIONS, _TOLERANCE, _STEP = 500, 1e-8, 0.1  # of each simplex


@dataclass(frozen=True)
class MLProcess(LinearMean):
    """The profile likelihood of (log β, log g).

    Attributes
    ----------
    X
        Inputs, (n, p).
    y
        Responses, (n,).
    n_starts
        Simplices from random starting values.
    nugget
        Variance of the noise at the start.
    """

    X: Array
    y: Array
    n_starts: int = 5
    nugget: float = 1.0

    stationary = Stationary("expsep")

    @property
    def dimension(self) -> int:
        """Length of a position."""
        return self.X.shape[1] + 1

    def basis(self, X: Array) -> Array:
        """The constant mean."""
        return np.ones((len(X), 1))

    # Likelihood ------------------------------------------------------------------------------------------------------

    def fit(self, position: Array) -> Regression:
        """μ̂ and what follows from it; raises where C cannot be factorised."""
        return self.regression(np.exp(-position[:-1]), math.exp(position[-1]))

    def objective(self, position: Array) -> float:
        """Minus the log profile likelihood, infinite where C cannot be factorised."""
        try:
            return self._value(self.fit(position))
        except NotPositiveDefiniteError:
            return math.inf

    def objective_gradient(self, position: Array) -> tuple[float, Array]:
        """Negative profile log likelihood and its gradient."""
        try:
            found = self.fit(position)
        except NotPositiveDefiniteError:
            return math.inf, np.zeros(len(position))
        pairs = found.inverse()
        pairs -= np.outer(found.errors, found.errors / self._variance(found))
        by_range = self.stationary.pull_back(self.X, np.exp(-position[:-1]), pairs)
        by_nugget = 0.5 * math.exp(position[-1]) * float(np.trace(pairs))
        return self._value(found), np.append(-by_range, by_nugget)

    def _variance(self, found: Regression) -> float:
        return max(found.square / len(self.y), _LEAST_VARIANCE)

    def _value(self, found: Regression) -> float:
        return 0.5 * (len(self.y) * (LOG_2PI + math.log(self._variance(found)) + 1.0) + found.log_det)

    # The search ------------------------------------------------------------------------------------------------------

    @cached_property
    def closest(self) -> float:
        """Smallest squared distance between rows that differ."""
        squares = pdist(self.X, "sqeuclidean")
        apart = squares[squares > 0.0]
        return float(apart.min()) if len(apart) else 1.0

    def sample_start(self, rng: np.random.Generator) -> Array:
        """log β such that the closest pair has a correlation of 0.3 to 0.65 if all are equal, and log g."""
        low, high = (-math.log(correlation) / self.closest for correlation in _CLOSEST)
        variance = float(np.var(self.y, ddof=1)) if len(self.y) > 1 else 1.0
        log_nugget = math.log(self.nugget / variance) if variance > 0.0 else 0.0
        start = np.append(np.log(rng.uniform(low, high, self.n_inputs)), log_nugget)
        return np.clip(start, *np.transpose(self._bounds))

    @property
    def _bounds(self) -> list[tuple[float, float]]:
        return [_BOUNDS_BETA] * self.n_inputs + [_BOUNDS_NUGGET]

    def maximise(self, rng: np.random.Generator) -> tuple[Array, dict[str, float]]:
        """Simplices from several starts, then L-BFGS from the best, and what the search said."""
        found = [self._simplex(self.sample_start(rng)) for _ in range(self.n_starts)]
        best = min(found, key=lambda result: float(result.fun))
        polished = minimize(
            self.objective_gradient, best.x, jac=True, method="L-BFGS-B", bounds=self._bounds,
            options={"maxiter": 500, "maxcor": 6, "ftol": 1e-13, "gtol": 1e-6},
        )  # fmt: skip
        chosen = polished if polished.fun <= best.fun else best
        said = {"log_likelihood": -float(chosen.fun), "converged": float(self._is_flat(chosen.x))}
        return chosen.x, said | {"n_evaluations": float(polished.nfev + sum(result.nfev for result in found))}

    def _is_flat(self, position: Array) -> bool:
        """mlegp's own criterion, on the gradient less what pushes against a bound."""
        value, gradient = self.objective_gradient(position)
        low, high = np.transpose(self._bounds)
        left = position - np.clip(position - gradient, low, high)
        return math.isfinite(value) and float(np.linalg.norm(left)) < _FLAT * max(1.0, float(np.linalg.norm(position)))

    def _simplex(self, start: Array) -> OptimizeResult:
        corners = np.vstack([start, start + _STEP * np.abs(start).max() * np.eye(len(start))])
        return minimize(
            self.objective, start, method="Nelder-Mead", bounds=self._bounds,
            options={"initial_simplex": np.clip(corners, *np.transpose(self._bounds)), "maxfev": _EVALUATIONS,
                     "fatol": _TOLERANCE, "xatol": math.sqrt(_TOLERANCE)},
        )  # fmt: skip

    # Given the maximum -----------------------------------------------------------------------------------------------

    def condition(self, position: Array) -> LinearMeanAtom:
        """The process given the data; nothing is allowed for the estimation of μ."""
        found = self.fit(position)
        return LinearMeanAtom(self, np.exp(-position[:-1]), math.exp(position[-1]), self._variance(found), found)

    def named(self, positions: Array) -> dict[str, Array]:
        """`inverse_ranges` β, `mean`, `variance` σ̂² and `noise_variance` gσ̂²."""
        found = [self.fit(position) for position in positions.reshape(-1, positions.shape[-1])]
        shape, variance = positions.shape[:-1], np.array([self._variance(fit) for fit in found])
        return {
            "inverse_ranges": np.exp(positions[..., :-1]),
            "mean": np.array([fit.coefficients[0] for fit in found]).reshape(shape),
            "variance": variance.reshape(shape),
            "noise_variance": np.exp(positions[..., -1]) * variance.reshape(shape),
        }

    def labels(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Names of the inverse ranges: those of the inputs."""
        return {"inverse_ranges": distinct(names)}

    def draws(self, positions: Array, stats: dict[str, Array], inputs: Scaling, response: Scaling) -> dict[str, Array]:
        """Draws by name, in the units of the data."""
        draws = super().draws(positions, stats, inputs, response)
        draws["inverse_ranges"] = draws["inverse_ranges"] / inputs.scale**2
        return {**draws, "mean": response.undo(draws["mean"])}

    def leave_one_out(self, position: Array) -> LeftOut:
        """Each row given all the others at the values found, μ̂ and σ̂² among them."""
        found = self.fit(position)
        variance = self._variance(found)
        return LeftOut.solved(found.errors / variance, np.diagonal(found.inverse()) / variance)
