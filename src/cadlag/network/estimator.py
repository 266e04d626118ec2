"""y = Σ_j w_j φ_j(x) + ε, w_j with infinite variance: the stable network's scikit-learn face."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cadlag.inference import Chains, Reach, as_generator
from cadlag.kernel_process.asking import NEIGHBORS, Asking
from cadlag.likelihood import Gaussian
from cadlag.names import input_names, labels_beside
from cadlag.network.break_tables import BreakPlanes, BreakPoints
from cadlag.network.model import ACTIVATIONS, StableNetwork
from cadlag.network.transition import LADDER, ExchangedSweeps, Sweeps
from cadlag.regressor import Need
from cadlag.settings import SAMPLED, UNTIL_DONE, Either, Nothing, Number, Open, Setting, Truth, Word, shared

Array = NDArray[np.float64]

KERNELS = {"gibbs": Sweeps, "tempered": ExchangedSweeps}
SMOOTH = "smooth"  # a bulk of order 1 alone
BULK_VERSION = 2  # of what `bulk` means: in files of version 0.1, which say nothing, a smooth one
BULK_ROWS = 1000  # beyond which version 0.1 added none unless asked to
N_UNITS, N_UNITS_OF_MANY, MANY_ROWS = 20, 40, 1000  # units, up to so many rows and beyond
FIRST = Reach(8, 600, 120)  # chains, iterations dropped, draws kept: where "auto" begins
FIRST_OF_FEW = Reach(8, 200, 60)
FIRST_OF_WIDE = Reach(8, 1000, 120)  # directions are harder to find among many
FIRST_OF_MANY = Reach(8, 300, 60)  # where a sweep costs so much more
FEW_ROWS, FEW_INPUTS = 150, 8
GLANCE = Reach(4, 80, 20)  # of a first look


@dataclass(eq=False, repr=False)
class StableNetworkRegressor(Asking):
    """Bayesian regression with a network whose output weights are α-stable: jumps anywhere, in any dimension.

    A few of the units carry most of the function, each a step or a hinge across a hyperplane anywhere in the space of
    inputs; units and scales are sampled, the weights are integrated out. A sweep over the units costs a time linear in
    the number of rows.

    Parameters
    ----------
    alpha
        Stability index in (0, 2]; smaller leaves more of the function to a few units, 2 is the Gaussian limit.
    n_units
        Number of units; "auto" for 20 up to 1,000 rows and 40 beyond.
    activation
        "sign" (steps), "relu" (hinges) or "auto", which samples the kind of each unit.
    bulk
        Whether a kernel process is added to the units, for what of the function they do not carry; "auto" adds it. It
        is smooth, rough or absent, as the data have it; "smooth" adds one that is always there and smooth.
    input_scales
        Whether the inputs have positive stable scales, shared by all units, that can switch an input off; at alpha 2
        all scales are 1.
    amplitude
        τ, the scale of all output weights, or None to learn it.
    noise_variance
        None to learn it, or a known value, or one for each training row, in squared units of y.
    noise_prior_on
        Whether the half-Cauchy(1) prior is on the "variance" or the "sd" of the noise.
    sampler
        "gibbs": sweeps over units, scales and noise; "tempered": the same on a ladder of noise floors whose replicas
        are exchanged, eight times the work an iteration.
    n_draws
        Draws kept of each chain; "auto" for as many as `precision` takes.
    n_warmup
        Iterations before them, under a falling noise floor, which are dropped; "auto" for as many as it takes until
        predictions no longer drift.
    n_chains
        Number of chains; "auto" for as many as `precision` takes.
    precision
        Standard error of the predictions that is wanted, in predictive standard deviations, where any of these numbers
        is "auto": another seed then moves predictions by about 1.4 times as much.
    max_seconds
        With "auto", no further round of chains begins after so many seconds; None for no limit.
    inference
        "mcmc", or "fast" for a first look in seconds, four short chains that have not found all there is to find.
    n_jobs
        Workers, as in joblib; draws do not depend on it.
    standardize
        Whether to standardise inputs and response by the training data; with "inputs" the response is only centred.
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
    neighbors
        How many rows each row asks in the likelihood of the bulk, whose cost is then linear in the number of rows; None
        for the full covariance, at a cost of n³ a draw, "auto" for that up to 1,000 rows and for 20 neighbours beyond.

    Attributes
    ----------
    posterior_ : Posterior
        Draws by name: noise variance in squared units of y, amplitude, the function at a few training rows.
    diagnostics_ : dict
        Worst R-hat and effective sample sizes; the median number of units that the data want; with neighbours also how
        many rows each row asks in the likelihood (`n_neighbors`) and how many a new one (`n_asked`).
    model_ : StableNetwork
        The model on standardised data.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import StableNetworkRegressor
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> y = 5.0 * (x[:, 0] > 0.3) + 0.1 * np.sin(37.0 * x[:, 0])
    >>> model = StableNetworkRegressor(n_draws=200, n_warmup=300, n_chains=2, random_state=0).fit(x, y)
    >>> low, high = model.break_points().interval(0.9)
    >>> bool(0.2 < low < high < 0.4)
    True
    """

    _method: ClassVar[str] = "network"
    _least_noise: ClassVar[float] = 1e-14
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("alpha", "noise_variance", "noise_prior_on", "standardize", *SAMPLED),
        **UNTIL_DONE,
        "n_units": Open(1, 10_000, of_run=True),
        "activation": Word(ACTIVATIONS, of_run=True),
        "bulk": Either('True, False, "smooth" or "auto"', (Truth(), Word((SMOOTH, "auto"))), of_run=True),
        "input_scales": Truth(of_run=True),
        "amplitude": Either("a positive number, or None to learn it", (Nothing(), Number()), of_run=True),
        "sampler": Word(tuple(KERNELS), of_run=True),
        "neighbors": NEIGHBORS,
    }
    _neighbors_asked: ClassVar[int] = 20
    fit_intercept = True

    alpha: float = 1.0
    n_units: int | str = "auto"
    activation: str = "auto"
    bulk: bool | str = "auto"
    input_scales: bool = False
    amplitude: float | None = None
    noise_variance: Any = None
    noise_prior_on: str = "variance"
    sampler: str = "gibbs"
    n_draws: int | str = "auto"
    n_warmup: int | str = "auto"
    n_chains: int | str = "auto"
    precision: float = 0.2
    max_seconds: float | None = None
    inference: str = "mcmc"
    n_jobs: int | None = None
    standardize: bool | str = True
    point: str = "median"
    n_atoms: int = 1000
    max_memory: float | None = None
    progress: Any = False
    random_state: Any = None
    neighbors: int | str | None = "auto"
    _asks: int | None = field(default=None, init=False)

    # The model -------------------------------------------------------------------------------------------------------

    def _model(self, X: Array, y: Array) -> StableNetwork:
        return StableNetwork(
            self._with_intercept(X), y, self._count_units(len(y)), float(self.alpha), self.activation,
            None if self.amplitude is None else float(self.amplitude), bool(self.input_scales),
            Gaussian(self._known_noise(len(y)), self.noise_prior_on), bulk_depth=int(self._has_bulk),
            rough=self._has_bulk and self.bulk != SMOOTH,
        )  # fmt: skip

    def _count_units(self, n: int) -> int:
        if self.n_units != "auto":
            return int(self.n_units)
        return N_UNITS if n <= MANY_ROWS else N_UNITS_OF_MANY

    @property
    def _has_bulk(self) -> bool:
        return bool(self.bulk)

    def _may_ask(self, n: int) -> bool:
        return self._has_bulk

    def _check_settings(self) -> None:
        super()._check_settings()
        if not self._has_bulk and self.neighbors not in ("auto", None):
            raise ValueError(
                f'neighbors are those of the bulk: use neighbors="auto" with bulk=False, got {self.neighbors!r}'
            )

    def _kernel(self) -> Any:
        return KERNELS[self.sampler]

    def _first_round(self) -> Reach:
        if self._n_rows <= FEW_ROWS:
            return FIRST_OF_FEW
        if self._n_rows > MANY_ROWS:
            return FIRST_OF_MANY
        return FIRST if self.n_features_in_ <= FEW_INPUTS else FIRST_OF_WIDE

    def _inference(self) -> Any:
        return Chains(self._kernel(), *GLANCE, self.n_jobs, self.progress) if self._is_fast else super()._inference()

    def _memory(self, n: int) -> Need:
        m, workers = self._count_units(n), self._n_workers()
        rows = 8.0 * n * (2 * self.n_features_in_ + 3 * m + 24) * workers
        if self._asks is not None:
            rows += 8.0 * n * (8.0 * (min(self._asks, n - 1) + 1) + 4 * m) * workers
        elif self._has_bulk:
            replicas = len(LADDER) if self.sampler == "tempered" else 1
            rows += (24.0 + 8.0 * replicas) * n * n * workers  # each remembers an inverse
        first = self._counts()
        draws = 8.0 * first.n_chains * first.n_kept * m * (self.n_features_in_ + 3)
        what = f"A network of {m} units on {n} rows"
        return Need(rows + 2.0 * draws, what, "use fewer units, neighbors, draws or workers (n_jobs)")

    def _own_tree(self) -> dict[str, Any]:
        return {**super()._own_tree(), "bulk": BULK_VERSION}

    def _restore(self, tree: dict[str, Any]) -> None:
        """In version 0.1 every bulk was smooth, and always there where there was one."""
        if tree.get("bulk") is None and self.bulk is not False:
            self.bulk = SMOOTH if self.bulk != "auto" or len(tree["data"]["y"]) <= BULK_ROWS else False
            self._remember_settings()
        super()._restore(tree)

    # Where it jumps --------------------------------------------------------------------------------------------------

    def break_points(
        self, min_size: float | None = None, n_atoms: int = 500, random_state: Any = 0
    ) -> BreakPoints | BreakPlanes:
        """Where the function jumps, how probably, and by how much.

        With one input: a row for each interval between neighbouring training inputs. With several: a row for each
        hyperplane, hyperplanes being told apart by how they divide the training rows.

        Parameters
        ----------
        min_size
            Smallest net jump that counts, in units of y; one standard deviation of the noise by default.
        n_atoms
            Draws used.
        random_state
            Seed of the output weights, which are drawn given each posterior draw.

        Returns
        -------
        BreakPoints or BreakPlanes
            A table, with the draws of the largest jump's place behind it in one dimension.
        """
        self._require_fitted()
        if self.model_.activation == "relu":
            raise ValueError('a network of ReLU units is continuous: fit with activation "auto" or "sign"')
        positions = self.posterior_.atoms(n_atoms)
        spread = float(self.response_scaling_.scale)
        noise = np.sqrt([self.model_.new_noise(self.model_.read(p)) for p in positions])
        if min_size is not None and not (isinstance(min_size, numbers.Real) and 0.0 < min_size < math.inf):
            raise ValueError(f"min_size must be positive, got {min_size!r}")
        least = float(np.median(noise)) if min_size is None else float(min_size) / spread
        make = BreakPoints.find if self.n_features_in_ == 1 else BreakPlanes.find
        return make(
            as_generator(random_state), self.model_, positions, least, spread, self.input_scaling_,
            labels_beside("intercept", input_names(self))[1:],
        )  # fmt: skip
