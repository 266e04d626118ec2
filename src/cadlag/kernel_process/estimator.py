"""y = ψ(x) + ε, ψ the deep α-stable kernel process of Loría & Bhadra (2025): the scikit-learn face."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array

from cadlag.data import require_memory
from cadlag.inference import Reach, Weighing, as_generator
from cadlag.kernel_process.asking import NEIGHBORS, Asking
from cadlag.kernel_process.groups import GroupedProcess
from cadlag.kernel_process.model import PRESETS, KernelProcess
from cadlag.likelihood import Gaussian
from cadlag.linalg.gaussian import Array, sample_normal
from cadlag.regressor import FIXED, KINDS, Need, exact_fit
from cadlag.sampling import LEAPING, SAMPLERS
from cadlag.sampling.probes import Watched
from cadlag.settings import MOST_LAYERS, SAMPLED, SHARED, UNTIL_DONE, Setting, Truth, Whole, Word, shared

FIRST = Reach(4, 100, 100)  # chains, iterations dropped, draws kept: where "auto" begins
LEARNED = 20  # iterations dropped for each unknown, where that is more
N_WEIGHED = 500  # draws of a first look


@dataclass(eq=False, repr=False)
class StableKernelRegressor(Asking):
    """Bayesian regression with the deep α-stable kernel process.

    A priori the function is a deep, infinitely wide network whose weights have infinite variance; given its positive
    stable scales it is a Gaussian process, and the scales are sampled. See Loría & Bhadra, "Deep Kernel Posterior
    Learning under Infinite Variance Prior Weights" (ICLR 2025).

    Parameters
    ----------
    alpha
        Stability index in (0, 2]; smaller allows steeper functions, 2 is the Gaussian limit.
    depth
        Number of kernel maps, that is of hidden layers.
    order
        Order of the activation: 0 step, 1 ReLU, 2 squared ReLU, and so on.
    preset
        "theorem", "prop2" or "published_code": which layer scales are random.
    fit_intercept
        Whether inputs get a column of ones with a scale of its own.
    noise_variance
        None to learn it, or a known value, or one for each training row, in squared units of y.
    noise_prior_on
        Whether the half-Cauchy(1) prior is on the "variance" or the "sd" of the noise.
    sampler
        "nuts" (NUTS joined by jumps learned from all chains or, with several groups, by moves of whole groups),
        "plain_nuts", "tempered" (replica exchange), or "independence" (the paper's own).
    n_draws
        Draws kept of each chain; "auto" for as many as `precision` takes.
    n_warmup
        Iterations before them, in which the samplers adapt, which are dropped; "auto" for as many as it takes until
        predictions no longer drift.
    n_chains
        Number of chains; "auto" for as many as `precision` takes; chains then meet in fours.
    precision
        Standard error of the predictions that is wanted, in predictive standard deviations, where any of these numbers
        is "auto": another seed then moves predictions by about 1.4 times as much.
    max_seconds
        With "auto", no further round of chains begins after so many seconds; None for no limit.
    inference
        "mcmc", or "fast" for a first look in seconds, draws about a few modes that are weighed, not sampled.
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
    centers
        Whether the function may be steep about a learned centre instead of the origin: jumps anywhere. A priori the
        centre is standard normal, in standardised inputs.
    n_groups
        Number of groups of hidden units, each with scales and, with `centers`, a centre of its own: steep in so many
        places. More than one wants a random output scale, that is preset "theorem".
    neighbors
        How many rows each row asks in the likelihood, whose cost is then linear in the number of rows; None for the
        full covariance, "auto" for that up to 1,000 rows and for 30 neighbours beyond them.

    Attributes
    ----------
    posterior_ : Posterior
        Draws by name, in the units of y for the noise variance, of the inputs for the centres and of standardised
        inputs for the scales. Groups may change places from draw to draw: what is said of one by its number is shown
        but not diagnosed, and the function at a few training rows is.
    diagnostics_ : dict
        Worst R-hat and effective sample sizes, failures, divergences; with neighbours also how many rows each row asks
        in the likelihood (`n_neighbors`) and how many a new one (`n_asked`), which is chosen by their predictive score.
    model_ : KernelProcess
        The model on standardised data, a GroupedProcess with centres or groups.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import StableKernelRegressor
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> y = 5.0 * (x[:, 0] > 0)
    >>> model = StableKernelRegressor(n_draws=200, n_warmup=200, n_chains=2, random_state=0).fit(x, y)
    >>> model.predict_interval([[0.5]]).shape
    (1, 2)
    """

    _method: ClassVar[str] = "kernel"
    _meets: ClassVar[int] = FIRST.n_chains
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("alpha", "noise_variance", "noise_prior_on", "standardize", *SAMPLED),
        **UNTIL_DONE,
        "depth": Whole(1, MOST_LAYERS, of_run=True),
        "order": Whole(0, 100, of_run=True),  # beyond which moments of the activation overflow
        "preset": Word(tuple(PRESETS), of_run=True),
        "fit_intercept": Truth(of_run=True),
        "sampler": Word(tuple(SAMPLERS), of_run=True),
        "centers": Truth(of_run=True),
        "n_groups": Whole(1, 100, of_run=True),
        "neighbors": NEIGHBORS,
    }

    alpha: float = 1.0
    depth: int = 1
    order: int = 1
    preset: str = "theorem"
    fit_intercept: bool = True
    noise_variance: Any = None
    noise_prior_on: str = "variance"
    sampler: str = "nuts"
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
    centers: bool = False
    n_groups: int = 1
    neighbors: int | str | None = "auto"
    _asks: int | None = field(default=None, init=False)

    # The model -------------------------------------------------------------------------------------------------------

    def _model(self, X: Array, y: Array) -> KernelProcess:
        return self._process(X, y, self._known_noise(len(y)))

    def _process(self, X: Array, y: Array, noise_variance: Any) -> KernelProcess:
        settings = (
            self._with_intercept(X), y, float(self.alpha), int(self.order), int(self.depth), self.preset,
            Gaussian(noise_variance, self.noise_prior_on),
        )  # fmt: skip
        if not self._has_groups:
            return KernelProcess(*settings)
        return GroupedProcess(*settings, n_groups=int(self.n_groups), n_centred=X.shape[1] if self.centers else 0)

    def _may_ask(self, n: int) -> bool:
        return not self._has_groups

    @property
    def _has_groups(self) -> bool:
        return self.n_groups > 1 or self.centers

    def _kernel(self) -> Any:
        return self.sampler if self.n_groups == 1 else partial(Watched, LEAPING[self.sampler])

    @property
    def _grows(self) -> bool:
        return bool(self.sampler == "nuts")

    def _first_round(self) -> Reach:
        learned = LEARNED * (self.n_features_in_ + 3)
        return FIRST._replace(n_dropped=max(FIRST.n_dropped, learned)) if self._grows else FIXED

    def _inference(self) -> Any:
        return Weighing(N_WEIGHED) if self._is_fast else super()._inference()

    def _memory(self, n: int) -> Need:
        if self._asks is not None:
            n_bytes = 8.0 * n * (min(self._asks, n - 1) + 1) * (2 * self.depth + 6) * self._n_workers()
            return Need(
                n_bytes, f"A fit to {n} rows that ask {self._asks} others", "use fewer neighbors or workers (n_jobs)"
            )
        matrices = 1.5 if not self._has_groups else 1.5 + self.n_groups
        return exact_fit(8.0 * matrices, n, self._n_workers())

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.n_groups > 1 and self.preset != "theorem":
            raise ValueError(
                f'n_groups > 1 needs a random output scale for each group: use preset "theorem", got {self.preset!r}'
            )

        if self._has_groups and self.neighbors not in ("auto", None):
            raise ValueError(
                f"neighbors go with one group without a centre: use neighbors=None, got {self.neighbors!r}"
            )

    def _refuse_groups(self, what: str) -> None:
        if self.n_groups > 1:
            raise ValueError(f"{what} needs n_groups=1: with {self.n_groups} groups a layer has as many kernels")

    # What the paper asks of it ---------------------------------------------------------------------------------------

    def sample_kernels(self, layer: int | None = None, X: Any = None, n_draws: int = 100) -> Array:
        """Posterior draws of the kernel matrix of a layer.

        Parameters
        ----------
        layer
            k of Σ_k, 0 for the input kernel, the last by default.
        X
            Inputs; the training inputs by default.
        n_draws
            How many, evenly spaced over the posterior.

        Returns
        -------
        Array
            (n_draws, m, m), in standard units.
        """
        self._require_fitted()
        self._refuse_groups("sample_kernels")
        layer = self.depth if layer is None else layer
        if layer not in range(self.depth + 1):
            raise ValueError(f"layer must be an integer between 0 and depth = {self.depth}, got {layer!r}")
        SHARED["n_draws"].require("n_draws", n_draws)
        inputs = self.model_.X if X is None else self._with_intercept(self._take_new_inputs(X))
        positions = self.posterior_.atoms(n_draws)
        require_memory(
            8.0 * len(positions) * len(inputs) ** 2, f"{len(positions)} kernel matrices", "ask for fewer draws",
            self.max_memory,
        )  # fmt: skip
        return np.stack([_nth(self.model_.covariances(position, inputs), layer) for position in positions])

    def sample_features(
        self, layer: int = 1, n_features: int = 2, X: Any = None, n_draws: int = 100, scaled: bool = True,
        random_state: Any = 0,
    ) -> Array:  # fmt: skip
        """Posterior draws of hidden features (Proposition 3): N(0, c_ℓ Σ_{ℓ-1}), independent given the scales.

        Parameters
        ----------
        layer
            Hidden layer ℓ in 1..depth. At the output the feature is the function itself: use sample_y.
        n_features
            Features a draw.
        X
            Inputs; the training inputs by default.
        n_draws
            Posterior draws used.
        scaled
            False for N(0, Σ_{ℓ-1}), as section 4.2 of the paper writes it.
        random_state
            Seed.

        Returns
        -------
        Array
            (n_draws, n_features, m).
        """
        self._refuse_groups("sample_features")
        if layer not in range(1, self.depth + 1):
            raise ValueError(
                f"hidden layers run from 1 to depth = {self.depth}, got {layer!r}; for the output use sample_y"
            )
        rng = as_generator(random_state)
        kernels = self.sample_kernels(layer - 1, X, n_draws)
        positions = self.posterior_.atoms(n_draws)
        draws = []
        for position, kernel in zip(positions, kernels):
            factor = math.exp(self.model_.log_layer_scale(position, layer)) if scaled else 1.0
            draws.append(sample_normal(rng, np.zeros(len(kernel)), factor * kernel, n_features))
        return np.stack(draws)

    def sample_prior(self, X: Any, n_samples: int = 10, random_state: Any = 0, kind: str = "function") -> Array:
        """Draws of the function from the prior, needing no fit.

        Parameters
        ----------
        X
            Inputs in standard units: they are used as they are.
        n_samples
            How many.
        random_state
            Seed.
        kind
            "function", or "observation" for draws with noise.

        Returns
        -------
        Array
            (m, n_samples).
        """
        if kind not in KINDS:
            raise ValueError(f'kind must be "observation" or "function", got {kind!r}')
        model = self._prior_model(check_array(X, dtype=np.float64))
        rng = as_generator(random_state)
        draws = []
        for _ in range(n_samples):
            position = model.sample_prior(rng)
            values = sample_normal(rng, np.zeros(len(model.X)), model.covariance(position), 1)[0]
            noise = np.sqrt(np.exp(model.scales(position).log_noise)) if kind == "observation" else 0.0
            draws.append(values + noise * rng.standard_normal(len(values)))
        return np.stack(draws, axis=1)

    def conditional_mutual_information(
        self, X1: Any, X2: Any, n_samples: int = 10_000, random_state: Any = 0
    ) -> tuple[Array, Array]:
        """I(ψ(x); ψ(x') | scales) = -½ E log(1 - ρ²) under the prior, for each pair of rows.

        Parameters
        ----------
        X1
            First inputs, (m, n_features), used as they are.
        X2
            Second inputs.
        n_samples
            Prior draws of the scales.
        random_state
            Seed.

        Returns
        -------
        tuple[Array, Array]
            Estimates and their Monte-Carlo standard errors, (m,) each.
        """
        first, second = (check_array(X, dtype=np.float64, input_name=name) for X, name in ((X1, "X1"), (X2, "X2")))
        if first.shape != second.shape:
            raise ValueError(f"X1 and X2 must have the same shape, got {first.shape} and {second.shape}")
        model = self._prior_model(np.concatenate([first, second]))
        rng = as_generator(random_state)
        n_samples = n_samples if model.dimension > model.likelihood.n_unknown else 1
        values = np.array([model.information(model.sample_prior(rng)) for _ in range(n_samples)])
        error = values.std(axis=0, ddof=1) / math.sqrt(n_samples) if n_samples > 1 else np.zeros(len(first))
        return values.mean(axis=0), error

    def _prior_model(self, X: Array) -> KernelProcess:
        self._check_settings()
        known = None if self.noise_variance is None else float(np.mean(self.noise_variance))
        return self._process(X, np.zeros(len(X)), known)


def _nth(matrices: Iterator[Array], n: int) -> Array:
    return next(matrix for k, matrix in enumerate(matrices) if k == n)
