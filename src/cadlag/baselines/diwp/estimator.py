"""y = f(x) + ε, f a Gaussian process whose kernel is drawn layer by layer from inverse Wishart laws: the face."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cadlag.baselines.diwp.ascent import Ascent, initial_parameters, judge, parameter_shapes
from cadlag.baselines.diwp.atoms import Atoms
from cadlag.data import refuse_overflow, require_memory
from cadlag.estimators.base import AtomRegressor, as_seed
from cadlag.estimators.files import checked
from cadlag.linalg.gaussian import NotPositiveDefiniteError
from cadlag.names import distinct, input_names
from cadlag.posterior import Posterior
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.sampling.progress import TextProgress
from cadlag.settings import (
    MOST_DRAWS,
    MOST_LAYERS,
    Either,
    Nothing,
    Number,
    Numbers,
    Setting,
    Truth,
    Whole,
    Word,
    shared,
)

Array = NDArray[np.float64]


class DIWPRegressor(AtomRegressor):
    """Variational regression with the deep inverse Wishart process.

    The kernel of the function is itself random: each layer's Gram matrix is drawn from an inverse Wishart law about
    the ReLU kernel of the layer before. The posterior is approximated with global inducing inputs by climbing the
    evidence bound. See Aitchison, Yang & Ober, "Deep kernel processes" (ICML 2021).

    Parameters
    ----------
    n_maps
        Number of kernel maps; one fewer inverse Wishart layers lie between them, so 1 is a Gaussian process.
    n_inducing
        Number of inducing inputs, at most the number of rows.
    n_steps
        Steps of Adam.
    learning_rates
        Of its steps, each for an equal share of them.
    n_samples
        Draws of the Gram matrices a step.
    batch_size
        Rows a step; None for all.
    amplitude
        Whether the function has a learned amplitude; the published one has none.
    learn_inputs
        Whether a scale and a shift of each input are learned.
    pt_mode
        "exact", or "bayesfunc" for the published code's degrees of freedom of a row, which count its whole batch. New
        rows then count as many as a batch in training had.
    noise_variance
        None to learn it, or a known value in squared units of y.
    n_atoms
        Draws of the Gram matrices that stand for the posterior in predictions.
    standardize
        Whether to standardise inputs and response by the training data; with "inputs" the response is only centred.
    point
        Point prediction: "median" or "mean".
    max_memory
        Bytes beyond which fit and predict refuse; None for half of the machine's memory.
    progress
        Whether to show progress on standard error; or a callable, see :class:`cadlag.sampling.progress.TextProgress`.
    random_state
        Seed.

    Attributes
    ----------
    posterior_ : Posterior
        One chain of independent draws. `delta`, `gamma` (a number a layer), the noise variance in squared units of y,
        the amplitude and what else is learned by the bound are the same in each of them, so they are shown but not
        diagnosed.
    diagnostics_ : dict
        `elbo` per datum in standard units, `elbo_rise` at the end of the run, `rising`, `n_steps` and `n_failures`.
    parameters_ : dict
        All variational parameters, in standard units.
    trace_ : ndarray
        The bound per datum at each step.
    n_features_in_ : int
        Number of inputs.

    Notes
    -----
    At each row the law is exact given a draw. A joint law of several rows (`return_cov`, `sample_y`) draws the rows'
    part of the Gram matrix jointly, so that its variances agree with those of single rows only up to the error of
    `n_atoms` draws.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import DIWPRegressor
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> y = 5.0 * (x[:, 0] > 0)
    >>> model = DIWPRegressor(n_inducing=10, n_steps=200, random_state=0).fit(x, y)
    >>> model.predict_interval([[0.5]]).shape
    (1, 2)
    """

    _method: ClassVar[str] = "diwp"
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("n_atoms", "standardize", "point", "max_memory", "progress", "random_state"),
        "n_maps": Whole(1, MOST_LAYERS),
        "n_inducing": Whole(1, 10**6),
        "n_steps": Whole(1, 10**8),
        "learning_rates": Numbers(),
        "n_samples": Whole(1, 10**6),
        "batch_size": Either(
            f"an integer from 1 to {MOST_DRAWS:,}, or None for all rows", (Nothing(), Whole(1, MOST_DRAWS))
        ),
        "amplitude": Truth(),
        "learn_inputs": Truth(),
        "pt_mode": Word(("exact", "bayesfunc")),
        "noise_variance": Either("one positive number, or None to learn it", (Nothing(), Number())),
    }

    def __init__(
        self,
        n_maps: int = 2,
        n_inducing: int = 100,
        n_steps: int = 8000,
        learning_rates: Any = (1e-2, 1e-3),
        n_samples: int = 10,
        batch_size: int | None = None,
        amplitude: bool = True,
        learn_inputs: bool = False,
        pt_mode: str = "exact",
        noise_variance: float | None = None,
        n_atoms: int = 100,
        standardize: bool | str = True,
        point: str = "median",
        max_memory: float | None = None,
        progress: Any = False,
        random_state: Any = None,
    ) -> None:
        self.n_maps = n_maps
        self.n_inducing = n_inducing
        self.n_steps = n_steps
        self.learning_rates = learning_rates
        self.n_samples = n_samples
        self.batch_size = batch_size
        self.amplitude = amplitude
        self.learn_inputs = learn_inputs
        self.pt_mode = pt_mode
        self.noise_variance = noise_variance
        self.n_atoms = n_atoms
        self.standardize = standardize
        self.point = point
        self.max_memory = max_memory
        self.progress = progress
        self.random_state = random_state

    # What settings stand for -----------------------------------------------------------------------------------------

    def _rates(self) -> Array:
        rates = np.asarray(self.learning_rates, dtype=float)
        steps = int(self.n_steps)
        return rates[np.arange(steps) * len(rates) // steps]

    def _known_noise(self) -> float | None:
        if self.noise_variance is None:
            return None
        with np.errstate(over="ignore", under="ignore"):
            known = float(np.float64(self.noise_variance) / float(self.response_scaling_.scale) ** 2)
        if not 0.0 < known < np.inf:
            raise ValueError("noise_variance is out of all proportion to y: it must be given in squared units of y")
        return known

    def _optional(self) -> list[str]:
        wanted = {
            "log_noise": self.noise_variance is None, "log_amplitude": self.amplitude,
            "log_input_scales": self.learn_inputs, "input_shifts": self.learn_inputs,
        }  # fmt: skip
        return [name for name, on in wanted.items() if on]

    def _require_fit_memory(self, n: int, rows: int) -> None:
        size = min(self.n_inducing, n)
        arrays = (12.0 + self.n_samples) * size * rows + (30.0 + self.n_samples) * size**2
        atoms = 2.0 * self.n_atoms * (0.5 * size**2 + 1.5 * size + 1.0)
        require_memory(
            8.0 * (self.n_maps * (arrays + atoms) + 4.0 * self.n_steps), f"A fit to {n} rows",
            "use a smaller batch_size, n_inducing, n_atoms or n_steps", self.max_memory,
        )  # fmt: skip

    # Fitting ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Climb the evidence bound, and draw atoms from the posterior found.

        Parameters
        ----------
        X
            Inputs, (n, n_features).
        y
            Responses, (n,).

        Returns
        -------
        Self
            The fitted regressor.
        """
        with self._unchanged_on_failure():
            self._check_settings()
            X, y = self._take_training_data(X, y)
            rows = min(self.batch_size or len(y), len(y))
            self._require_fit_memory(len(y), rows)
            self._data: tuple[Array, Array] | None = (X, y)
            rng = np.random.default_rng(as_seed(self.random_state))
            self._counted = rows if self.pt_mode == "bayesfunc" else 1
            with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
                self._climb(rng, X, y, rows)
                positions = Atoms(self.parameters_, self._counted).draw(rng, int(self.n_atoms))
            self._joint_seed = int(rng.integers(2**63))
            self._set_posterior(positions)
            self.diagnostics_ = judge(self.trace_, len(y))
        self._complain()
        return self

    def _climb(self, rng: np.random.Generator, X: Array, y: Array, rows: int) -> None:
        n_layers = self.n_maps - 1
        self.parameters_ = initial_parameters(rng, X, y, self.n_inducing, n_layers, self._optional())
        # Without a layer nothing is random, and one evaluation is as good as many.
        draws = int(self.n_samples) if n_layers else 1
        ascent = Ascent(X, y, self._known_noise(), draws, rows, self._counted)
        progress = (
            self.progress if callable(self.progress) else TextProgress(label="climbing") if self.progress else None
        )
        self.trace_ = ascent.climb(rng, self.parameters_, self._rates(), progress)
        if not np.isfinite(self.trace_).any():
            if len(self.trace_) < self.n_steps:
                raise KeyboardInterrupt("interrupted before the first step: there is nothing to return")
            raise ValueError("these data cannot be fitted as they are: every step failed; set standardize=True")

    def _complain(self) -> None:
        found, parts = self.diagnostics_, []
        if found["n_steps"] < self.n_steps:
            warnings.warn(f"interrupted after {found['n_steps']} steps", InterruptedFitWarning, stacklevel=3)
        if found["rising"]:
            rise = found["elbo_rise"]
            known = f"by {rise:.3g} a datum over the last tenth of the steps" if np.isfinite(rise) else "as far as seen"
            parts.append(f"the evidence bound still rises, {known}: a larger n_steps helps")
        if found["n_failures"]:
            parts.append(f"{found['n_failures']} of {found['n_steps']} steps failed: smaller learning_rates help")
        if parts:
            warnings.warn(f"The fit has not converged: {'; '.join(parts)}.", ConvergenceWarning, stacklevel=3)

    # Posterior -------------------------------------------------------------------------------------------------------

    def _set_posterior(self, positions: Array) -> None:
        learned = self._learned()
        count = len(positions)
        draws = {name: np.broadcast_to(values, (1, count, *values.shape)) for name, values in learned.items()}
        with threadpool_limits(1, user_api="blas"):
            ratios = Atoms(self.parameters_, self._counted).log_ratios(positions)
        layers = [f"layer {k + 1}" for k in range(self.n_maps - 1)]
        inputs = distinct(input_names(self))
        labels = {"delta": layers, "gamma": layers, "input_scales": inputs, "input_shifts": inputs}
        self.posterior_ = Posterior(positions[None], {"log_ratio": ratios[None]}, draws, labels, None, frozenset(draws))

    def _learned(self) -> dict[str, Array]:
        """What the bound has chosen, on natural scales and in the units of y."""
        scale = float(self.response_scaling_.scale)
        known = {name: np.exp(self.parameters_[f"log_{name}"]) for name in ("delta", "gamma") if self.n_maps > 1}
        if "log_noise" in self.parameters_:
            known["noise_variance"] = np.asarray((scale * np.exp(self.parameters_["log_noise"])) ** 2)
        if "log_amplitude" in self.parameters_:
            known["amplitude"] = np.asarray(scale * np.exp(self.parameters_["log_amplitude"]))
        if "input_shifts" in self.parameters_:
            known["input_scales"] = np.exp(self.parameters_["log_input_scales"])
            known["input_shifts"] = self.parameters_["input_shifts"]
        return known

    def _noise(self) -> float:
        """Variance of the noise in standard units."""
        known = self._known_noise()
        return float(np.exp(2.0 * self.parameters_["log_noise"])) if known is None else known

    # Atoms -----------------------------------------------------------------------------------------------------------

    def _n_atoms(self) -> int:
        return len(self._atoms())

    def _atoms(self) -> Array:
        # Without a layer all draws are the same.
        return self.posterior_.atoms(self.n_atoms if self.n_maps > 1 else 1)

    def _moments(self, X: Array) -> tuple[Array, Array, Array]:
        positions = self._atoms()
        with threadpool_limits(1, user_api="blas"):
            means, variances = Atoms(self.parameters_, self._counted).moments(positions, X)
        return means, variances, np.full(len(positions), self._noise())

    def _joint(self, X: Array, atoms: NDArray[np.int_]) -> Iterator[tuple[Array, Array, float]]:
        positions, noise = self._atoms()[atoms], self._noise()
        rngs = [np.random.default_rng([self._joint_seed, int(t)]) for t in atoms]
        try:
            with threadpool_limits(1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
                for mean, covariance in Atoms(self.parameters_, self._counted).joint(positions, rngs, X):
                    refuse_overflow(mean, np.diagonal(covariance))
                    yield mean, covariance, noise
        except NotPositiveDefiniteError:
            raise ValueError(
                "a joint law of these rows is beyond rounding: leave out rows far from the training data"
            ) from None

    # Data and files --------------------------------------------------------------------------------------------------

    def _standardised_data(self) -> tuple[Array, Array]:
        if self._data is None:
            raise ValueError("the file of this model holds no training data: fit again")
        return self._data

    def _relabel(self) -> None:
        self._set_posterior(self.posterior_.positions[0])

    def _own_tree(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters_, "trace": self.trace_, "diagnostics": self.diagnostics_,
            "positions": self.posterior_.positions, "counted": self._counted, "joint_seed": self._joint_seed,
            "data": None if self._data is None else dict(zip("Xy", self._data)),
        }  # fmt: skip

    def _restore(self, tree: dict[str, Any]) -> None:
        size, p, n_layers = len(tree["parameters"]["inducing"]), self.n_features_in_, self.n_maps - 1
        shapes = parameter_shapes(size, p, n_layers, self._optional())
        self.parameters_ = {name: checked(tree["parameters"][name], shape) for name, shape in shapes.items()}
        self.trace_ = checked(tree["trace"], (None,), finite=False)
        self.diagnostics_ = {
            name: type(value)(tree["diagnostics"][name]) for name, value in judge(self.trace_, 1).items()
        }
        self._counted, self._joint_seed = tree["counted"], tree["joint_seed"]
        if not all(type(number) is int and number >= 0 for number in (self._counted, self._joint_seed)):
            raise ValueError("a number is missing")
        data = tree.get("data")
        if data is not None:
            y = checked(data["y"], (None,))
            data = checked(data["X"], (len(y), p)), y
        self._data = data
        one = size * (size + 1) // 2 + 1 + size  # numbers of a layer in a position
        self._set_posterior(checked(tree["positions"], (1, None, n_layers * one))[0])
