"""y = Σ_j w_j sign(a_j + b_jᵀx) + ε, infinitely many units, w_j with infinite variance: Loría & Bhadra's "Stable"."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cadlag.baselines.shallow_stable.cells import MOST_CELLS, find_cells
from cadlag.baselines.shallow_stable.model import NOISE_LAWS, ShallowStable
from cadlag.baselines.shallow_stable.transition import CellSweeps, PublishedMoves
from cadlag.data import require_memory
from cadlag.regressor import Array, Need, Regressor
from cadlag.settings import SAMPLED, Number, Setting, Truth, Word, shared

KERNELS = {"gibbs": CellSweeps, "independence": PublishedMoves}
CELL_SEED = 2023  # simulated cells belong to the inputs, not to a run


@dataclass(eq=False, repr=False)
class ShallowStableRegressor(Regressor):
    """Bayesian regression with the infinitely wide network of sign units and α-stable output weights.

    The function is a sum of steps across hyperplanes. All ways in which a hyperplane divides the training inputs are
    enumerated with their exact probabilities, and the scale of each is sampled; new inputs divide some of these cells,
    and what belongs to either part is drawn. The number of cells is about n in one dimension and n²/2 in two; in more
    dimensions there are too many, a sample of them is used, and :class:`~cadlag.StableNetworkRegressor` does better.
    See Loría & Bhadra, "Posterior Inference on Shallow Infinitely Wide Bayesian Neural Networks under Weights with
    Unbounded Variance" (2024).

    Parameters
    ----------
    alpha
        Stability index in (0, 2]; smaller leaves more of the function to a few steps, 2 is a Gaussian process.
    nu
        ν: the output weights of M units have a scale proportional to (ν/M)^(1/α).
    noise_variance
        None to learn it, or a known value, or one for each training row, in squared units of y.
    noise_prior
        Prior of an unknown noise variance: "half_cauchy"(1), or "code", ``|N(0, 1)| / χ²₁`` as in the published code.
    sampler
        "gibbs": each scale from a lattice, exchanges between cells, joint moves; "independence": the published one.
    emulate_published
        Whether cells in one dimension have the wrong probabilities of the published code: the wrong sign, and those of
        other cells where training inputs are not sorted (test inputs, which it ranks with them, are left out).
    n_draws
        Draws kept of each chain.
    n_warmup
        Iterations before them, which are dropped.
    n_chains
        Number of chains.
    n_jobs
        Workers, as in joblib; draws do not depend on it.
    standardize
        Whether to standardise inputs and response by the training data; with "inputs" the response is only centred.
        The published simulations are raw.
    point
        Point prediction: "median" or "mean".
    n_atoms
        At most this many draws, evenly spaced, stand for the posterior in predictions.
    max_memory
        Bytes beyond which fit and predict refuse; None for half of the machine's memory.
    progress
        Whether to show progress on standard error; or a callable, see :func:`cadlag.sampling.chains.run`.
    random_state
        Seed.

    Attributes
    ----------
    posterior_ : Posterior
        Draws by name: noise variance in squared units of y, and the function at a few training rows; the scales of the
        cells are in its `positions`, as logarithms.
    diagnostics_ : dict
        Worst R-hat and effective sample sizes.
    model_ : ShallowStable
        The model on standardised data.
    n_features_in_ : int
        Number of inputs.

    Notes
    -----
    Rows asked for together (`return_cov`, `sample_y`) divide the cells jointly, with other random numbers than each row
    by itself: the diagonal of the covariance is the square of `return_std` up to Monte-Carlo error.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import ShallowStableRegressor
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> y = 5.0 * (x[:, 0] > 0.3) + 0.1 * np.sin(37.0 * x[:, 0])
    >>> model = ShallowStableRegressor(n_draws=300, n_warmup=200, n_chains=2, random_state=0).fit(x, y)
    >>> bool(model.predict([[0.2]])[0] < 1.0 < 4.0 < model.predict([[0.4]])[0])
    True
    """

    _method: ClassVar[str] = "shallow_stable"
    _least_noise: ClassVar[float] = 1e-10
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("alpha", "noise_variance", "standardize", *SAMPLED),
        "nu": Number(of_run=True),
        "noise_prior": Word(tuple(NOISE_LAWS), of_run=True),
        "sampler": Word(tuple(KERNELS), of_run=True),
        "emulate_published": Truth(of_run=True),
    }

    alpha: float = 1.0
    nu: float = 1.0
    noise_variance: Any = None
    noise_prior: str = "half_cauchy"
    sampler: str = "gibbs"
    emulate_published: bool = False
    n_draws: int = 1000
    n_warmup: int = 1000
    n_chains: int = 4
    n_jobs: int | None = None
    standardize: bool | str = True
    point: str = "median"
    n_atoms: int = 1000
    max_memory: float | None = None
    progress: Any = False
    random_state: Any = None

    # The model -------------------------------------------------------------------------------------------------------

    def _model(self, X: Array, y: Array) -> ShallowStable:
        cells = find_cells(np.random.default_rng(CELL_SEED), X, bool(self.emulate_published))
        return ShallowStable(
            X, y, cells, float(self.alpha), float(self.nu), self._known_noise(len(y)), self.noise_prior
        )

    def _kernel(self) -> Any:
        return KERNELS[self.sampler]

    def _n_cells(self, n: int) -> float:
        """About how many cells so many points have."""
        p = self.n_features_in_
        return float(n) if p == 1 else 0.5 * n * n + 1.0 if p == 2 else float(MOST_CELLS)

    def _memory(self, n: int) -> Need:
        cells = self._n_cells(n)
        rows = cells * (9.0 * n + 200.0) * self._n_workers()
        draws = 16.0 * self.n_chains * (self.n_draws + self.n_warmup) * cells
        advice = "use fewer rows or draws, or StableNetworkRegressor, whose cost does not grow so"
        return Need(rows + draws, f"A fit with {cells:.0f} cells to {n} rows", advice)

    def _require_square(self, m: int) -> None:
        super()._require_square(m)
        n = len(self.model_.y) + m
        require_memory(
            self._n_cells(n) * (9.0 * n + 200.0), f"A joint law of {m} rows beside {len(self.model_.y)}",
            "ask for fewer rows at a time", self.max_memory,
        )  # fmt: skip
