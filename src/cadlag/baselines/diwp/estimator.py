"""y = f(x) + ε, f a Gaussian process whose kernel is drawn layer by layer from inverse Wishart laws: the face."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from cadlag.baselines.diwp.ascent import judge
from cadlag.baselines.diwp.model import InverseWishartProcess
from cadlag.inference import Ascent
from cadlag.regressor import Array, Need, Regressor
from cadlag.settings import (
    MOST_DRAWS,
    MOST_LAYERS,
    Either,
    Nothing,
    Number,
    Positives,
    Setting,
    Truth,
    Whole,
    Word,
    shared,
)
from cadlag.storage import checked


@dataclass(eq=False, repr=False)
class DIWPRegressor(Regressor):
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
    _extends = False
    _conditions = False
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("n_atoms", "standardize", "point", "max_memory", "progress", "random_state"),
        "n_maps": Whole(1, MOST_LAYERS),
        "n_inducing": Whole(1, 10**6),
        "n_steps": Whole(1, 10**8),
        "learning_rates": Positives(),
        "n_samples": Whole(1, 10**6),
        "batch_size": Either(
            f"an integer from 1 to {MOST_DRAWS:,}, or None for all rows", (Nothing(), Whole(1, MOST_DRAWS))
        ),
        "amplitude": Truth(),
        "learn_inputs": Truth(),
        "pt_mode": Word(("exact", "bayesfunc")),
        "noise_variance": Either("one positive number, or None to learn it", (Nothing(), Number())),
    }

    n_maps: int = 2
    n_inducing: int = 100
    n_steps: int = 8000
    learning_rates: Any = (1e-2, 1e-3)
    n_samples: int = 10
    batch_size: int | None = None
    amplitude: bool = True
    learn_inputs: bool = False
    pt_mode: str = "exact"
    noise_variance: float | None = None
    n_atoms: int = 100
    standardize: bool | str = True
    point: str = "median"
    max_memory: float | None = None
    progress: Any = False
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
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
        return super().fit(X, y)

    @property
    def parameters_(self) -> dict[str, Array]:
        """All variational parameters, in standard units."""
        return self.model_.parameters

    @property
    def trace_(self) -> Array:
        """The bound per datum at each step."""
        return self.model_.trace

    # The model -------------------------------------------------------------------------------------------------------

    def _model(self, X: Array, y: Array) -> InverseWishartProcess:
        rows, known = self._batch(len(y)), self._known_noise(len(y))
        wanted = {
            "log_noise": self.noise_variance is None, "log_amplitude": self.amplitude,
            "log_input_scales": self.learn_inputs, "input_shifts": self.learn_inputs,
        }  # fmt: skip
        # Without a layer nothing is random, and one evaluation is as good as many.
        n_samples = int(self.n_samples) if self.n_maps > 1 else 1
        return InverseWishartProcess(
            X, y, None if known is None else float(known), n_samples, rows,
            rows if self.pt_mode == "bayesfunc" else 1, int(self.n_maps) - 1, int(self.n_inducing), int(self.n_steps),
            tuple(float(rate) for rate in self.learning_rates), tuple(name for name, on in wanted.items() if on),
        )  # fmt: skip

    def _batch(self, n: int) -> int:
        return min(self.batch_size or n, n)

    def _inference(self) -> Ascent:
        return Ascent(int(self.n_atoms), self.progress)

    def _memory(self, n: int) -> Need:
        size = min(self.n_inducing, n)
        arrays = (12.0 + self.n_samples) * size * self._batch(n) + (30.0 + self.n_samples) * size**2
        atoms = 2.0 * self.n_atoms * (0.5 * size**2 + 1.5 * size + 1.0)
        n_bytes = 8.0 * (self.n_maps * (arrays + atoms) + 4.0 * self.n_steps)
        return Need(n_bytes, f"A fit to {n} rows", "use a smaller batch_size, n_inducing, n_atoms or n_steps")

    def _atoms(self) -> Array:
        # Without a layer all draws are the same.
        return self.posterior_.atoms(self.n_atoms if self.n_maps > 1 else 1)

    # Data and files --------------------------------------------------------------------------------------------------

    def _standardised_data(self) -> tuple[Array, Array]:
        if len(self.model_.y) == 0:
            raise ValueError("the file of this model holds no training data: fit again")
        return super()._standardised_data()

    def _own_tree(self) -> dict[str, Any]:
        model = self.model_
        return {
            "parameters": model.parameters, "trace": model.trace, "diagnostics": self.diagnostics_,
            "positions": self.posterior_.positions, "counted": model.counted, "joint_seed": model.seed,
            "data": {"X": model.X, "y": model.y} if len(model.y) else None,
        }  # fmt: skip

    def _restore(self, tree: dict[str, Any]) -> None:
        data, p = tree.get("data"), self.n_features_in_
        X, y = np.zeros((0, p)), np.zeros(0)
        if data is not None:
            y = checked(data["y"], (None,))
            X = checked(data["X"], (len(y), p))
        counted, seed = tree["counted"], tree["joint_seed"]
        if not all(type(number) is int and number >= 0 for number in (counted, seed)):
            raise ValueError("a number is missing")
        trace = checked(tree["trace"], (None,), finite=False)
        model = replace(self._model(X, y), parameters=tree["parameters"], trace=trace, counted=counted, seed=seed)
        parameters = {name: checked(tree["parameters"][name], shape) for name, shape in model.shapes.items()}
        self.model_, self.chains_ = replace(model, parameters=parameters), []
        size, n_layers = len(parameters["inducing"]), model.n_layers
        one = size * (size + 1) // 2 + 1 + size  # numbers of a layer in a position
        positions = checked(tree["positions"], (1, None, n_layers * one))
        self._set_posterior(positions, self.model_.said_of(positions[0]))
        self.diagnostics_ = {name: type(value)(tree["diagnostics"][name]) for name, value in judge(trace, 1).items()}
