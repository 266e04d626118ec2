"""f ~ N(0, cK_L), y = f + ε: the neural network Gaussian process, which has the paper's kernel and no random scales."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cadlag.baselines.nngp.model import NNGP
from cadlag.inference import Ascent, Chains, Maximum
from cadlag.regressor import Array, Need, Regressor, exact_fit
from cadlag.settings import MOST_LAYERS, SAMPLED, Either, Number, Setting, Truth, Whole, Word, shared


@dataclass(eq=False, repr=False)
class NNGPRegressor(Regressor):
    """Gaussian process regression with the kernel of a deep, infinitely wide ReLU network.

    The limit of wide networks whose weights have finite variance: a kernel without unknowns, but for the amplitude of
    the function and the variance of the noise. It is what the deep α-stable kernel process becomes when nothing is
    left to learn in its kernel; see Lee et al. (2018) and Aitchison, Yang & Ober (2021), whose maps it uses.

    Parameters
    ----------
    n_maps
        Number of kernel maps, that is of hidden layers.
    amplitude
        True to learn the variance factor c of the function, False for c = 1 in units of the response's variance, as in
        the published comparison, or a number.
    noise_variance
        None to learn it, or a known value, or one for each training row, in squared units of y.
    noise_prior_on
        Whether the half-Cauchy(1) prior is on the "variance" or the "sd" of the noise.
    sampler
        "nuts" to sample amplitude and noise, "ml" for the values that maximise the marginal likelihood.
    n_draws
        Draws kept of each chain.
    n_warmup
        Iterations before them, which adapt and are dropped.
    n_chains
        Number of chains.
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

    Attributes
    ----------
    posterior_ : Posterior
        Draws of amplitude and noise variance; one draw with "ml".
    diagnostics_ : dict
        Worst R-hat and effective sample sizes; with "ml" the log likelihood and whether the search converged.
    model_ : NNGP
        The model on standardised data.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import NNGPRegressor
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> model = NNGPRegressor(sampler="ml").fit(x, np.sin(3 * x[:, 0]))
    >>> model.predict_interval([[0.5]]).shape
    (1, 2)
    """

    _method: ClassVar[str] = "nngp"
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared("noise_variance", "noise_prior_on", "standardize", *SAMPLED),
        "n_maps": Whole(1, MOST_LAYERS, of_run=True),
        "amplitude": Either("True, False or a positive number", (Truth(), Number()), of_run=True),
        "sampler": Word(("nuts", "ml"), of_run=True),
    }

    n_maps: int = 2
    amplitude: Any = True
    noise_variance: Any = None
    noise_prior_on: str = "variance"
    sampler: str = "nuts"
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

    def _model(self, X: Array, y: Array) -> NNGP:
        return NNGP(X, y, int(self.n_maps), self._known_amplitude(), self._known_noise(len(y)), self.noise_prior_on)

    def _known_amplitude(self) -> float | None:
        if isinstance(self.amplitude, bool | np.bool_):
            return None if self.amplitude else 1.0
        return float(self.amplitude)

    def _memory(self, n: int) -> Need:
        return exact_fit(32.0, n, self._n_workers())

    def _inference(self) -> Chains | Maximum | Ascent:
        return Maximum() if self.sampler == "ml" else super()._inference()

    def _kernel(self) -> Any:
        return "plain_nuts"
