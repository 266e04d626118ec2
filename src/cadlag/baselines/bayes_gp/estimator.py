"""y ~ N(Fβ, σ²(K* + gI)), all unknowns sampled: the Bayesian Gaussian process of R's tgp, its scikit-learn face."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from cadlag.baselines.bayes_gp.least_squares import independent_columns
from cadlag.baselines.bayes_gp.model import LinearMeanProcess
from cadlag.baselines.bayes_gp.rounds import MetropolisRounds
from cadlag.data import Scaling, refuse_foreign, refuse_huge, refuse_not_finite
from cadlag.kernels.stationary import CORRELATIONS
from cadlag.names import distinct, input_names
from cadlag.predictive import Predictive
from cadlag.regressor import Array, Need, Regressor, exact_fit
from cadlag.sampling import SAMPLERS
from cadlag.sampling.progress import warn_caller
from cadlag.settings import SAMPLED, Either, Nothing, Number, Setting, Truth, Whole, Word, shared

# Correlation, whether the response is scaled, and BTE: rounds of burn-in, rounds in all, rounds between kept draws.
PRESETS: dict[str, tuple[str, bool, tuple[int, int, int]]] = {
    "tgp_default": ("expsep", True, (1000, 4000, 2)),
    "loria_bhadra": ("matern", False, (10_000, 20_000, 1)),
}


@dataclass(eq=False, repr=False)
class BayesGPRegressor(Regressor):
    """Hierarchical Bayesian Gaussian process about a linear mean, as `bgp` of R's tgp (Gramacy, 2007).

    The mean is linear with flat coefficients β, which are integrated out; ranges, nugget, variance and the parameters
    of the variance's prior are sampled. Inputs are mapped to the unit cube.

    A draw's law at a new input is normal about the generalised least squares fit. The variance of the function
    (`kind="function"`) is σ²(1 - kᵀK⁻¹k); an observation adds the nugget's σ²g. As in tgp neither has the uncertainty
    of β in it, unless `include_beta_var`.

    Parameters
    ----------
    preset
        "tgp_default": separable Gaussian correlation, response divided by its range. "loria_bhadra": isotropic Matérn,
        response as it is, on which the prior of the variance then acts. See :meth:`published` for their chains.
    correlation
        "expsep" exp(-Σ_i Δ_i²/d_i), "exp" exp(-‖Δ‖²/d), "matern"; None for the preset's.
    nu
        Smoothness of the Matérn correlation.
    m0r1
        Whether the response is brought to mean zero and range one; None for the preset's.
    scale_over
        What spans the unit cube: "train", or "train_and_test", as tgp does, which wants `fit(..., X_test=...)`.
    include_beta_var
        Whether variances include that of the linear mean's coefficients.
    emulate_tgp_matern_bug
        With the Matérn correlation tgp adds the nugget to the correlation of test row i and training row i whenever
        there are as many of the one as of the other. True does so too, for observations; such a row's prediction then
        depends on the others asked with it.
    sampler
        "nuts", "plain_nuts", "tempered" or "independence", as in :class:`~cadlag.StableKernelRegressor`, or "tgp": its
        own Metropolis rounds, which are cheap, move slowly and all start at the same place.
    n_draws
        Draws kept of each chain.
    n_warmup
        Draws before them, which are dropped.
    n_chains
        Number of chains.
    thin
        Rounds a draw of sampler "tgp", also during warm-up.
    n_jobs
        Workers, as in joblib; draws do not depend on it.
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
        Draws by name: ranges d in units of the cube, nugget g, variance σ² and noise variance σ²g in squared units of
        y, a0 and g0 of the prior IG(a0/2, g0/2) of σ².
    diagnostics_ : dict
        Worst R-hat and effective sample sizes, failures.
    model_ : LinearMeanProcess
        The model on scaled data.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from cadlag import BayesGPRegressor
    >>> x = np.linspace(-1, 1, 30)[:, None]
    >>> y = np.sin(3 * x[:, 0])
    >>> model = BayesGPRegressor(n_draws=200, n_warmup=200, n_chains=2, random_state=0).fit(x, y)
    >>> model.predict_interval([[0.5]]).shape
    (1, 2)
    """

    _method: ClassVar[str] = "bayes_gp"
    _settings: ClassVar[Mapping[str, Setting]] = {
        **shared(*SAMPLED),
        "preset": Word(tuple(PRESETS), of_run=True),
        "correlation": Either(
            f"None or one of {', '.join(CORRELATIONS)}", (Nothing(), Word(tuple(CORRELATIONS))), of_run=True
        ),
        "nu": Number(0.0, 50.0, of_run=True),
        "m0r1": Either("True, False, or None for the preset's", (Nothing(), Truth()), of_run=True),
        "scale_over": Word(("train", "train_and_test")),
        "include_beta_var": Truth(),
        "emulate_tgp_matern_bug": Truth(),
        "sampler": Word((*SAMPLERS, "tgp"), of_run=True),
        "thin": Whole(1, 10**6, of_run=True),
    }

    preset: str = "tgp_default"
    correlation: str | None = None
    nu: float = 1.5
    m0r1: bool | None = None
    scale_over: str = "train"
    include_beta_var: bool = False
    emulate_tgp_matern_bug: bool = False
    sampler: str = "nuts"
    n_draws: int = 1000
    n_warmup: int = 1000
    n_chains: int = 4
    thin: int = 1
    n_jobs: int | None = None
    point: str = "median"
    n_atoms: int = 1000
    max_memory: float | None = None
    progress: Any = False
    random_state: Any = None

    @classmethod
    def published(cls, preset: str = "tgp_default", **settings: Any) -> Self:
        """The regressor with the chain that the preset's users ran: one chain, tgp's burn-in, thinning and scaling.

        BTE = (1000, 4000, 2) for "tgp_default", 1,500 draws; (10000, 20000, 1) for "loria_bhadra", 10,000 draws.

        Parameters
        ----------
        preset
            "tgp_default" or "loria_bhadra".
        **settings
            Further parameters, which take precedence.

        Returns
        -------
        Self
            Not yet fitted; `fit` wants `X_test`, as tgp scales inputs over training and test rows.
        """
        cls._settings["preset"].require("preset", preset)
        burn, total, every = PRESETS[preset][2]
        kept = (total - burn) // every
        chain = {
            "n_warmup": burn // every,
            "n_draws": kept,
            "n_atoms": kept,
            "thin": every,
            "n_chains": 1,
            "sampler": "tgp",
        }
        return cls(**{"preset": preset, "scale_over": "train_and_test", **chain, **settings})

    @property
    def wants_test_inputs(self) -> bool:
        """Whether `fit` must be given the test inputs, as `X_test`."""
        return bool(self.scale_over == "train_and_test")

    # Data ------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, checkpoint: str | PathLike[str] | None = None, X_test: Any = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs, (n, n_features).
        y
            Responses, (n,).
        checkpoint
            A directory that makes the run durable; fitting again with the same data and settings resumes it.
        X_test
            Inputs that help to span the unit cube with `scale_over="train_and_test"`; nothing else is made of them.

        Returns
        -------
        Self
            The fitted regressor.
        """
        self._check_settings()
        if (X_test is None) == self.wants_test_inputs:
            raise ValueError('X_test and scale_over="train_and_test" go together: give both or neither')
        self._spanning = None if X_test is None else _checked(X_test)
        try:
            return super().fit(X, y, checkpoint)
        finally:
            del self._spanning

    def _learn_scaling(self, X: Array, y: Array) -> None:
        span = X
        if self._spanning is not None:
            if self._spanning.shape[1] != X.shape[1]:
                raise ValueError(
                    f"X_test has {self._spanning.shape[1]} columns, X has {X.shape[1]}: give the same ones"
                )
            span = np.concatenate([X, self._spanning])
        self.input_scaling_ = Scaling.to_unit_cube(span)
        scaled = PRESETS[self.preset][1] if self.m0r1 is None else self.m0r1
        self.response_scaling_ = Scaling.to_unit_range(y) if scaled else Scaling.learn(y, False)
        self._warn_of_dependent(X)

    def _warn_of_dependent(self, X: Array) -> None:
        """Name the inputs that the linear mean leaves out; constant ones have been named already."""
        varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
        names = distinct(input_names(self))
        dropped = [names[j] for j in varying if j not in independent_columns(self.input_scaling_.apply(X))]
        if dropped:
            warn_caller(
                f"X has columns that are linear combinations of others: {', '.join(dropped)} left out of the linear "
                "mean, but kept in the correlations"
            )

    def _model(self, X: Array, y: Array) -> LinearMeanProcess:
        correlation = self.correlation or PRESETS[self.preset][0]
        return LinearMeanProcess(X, y, correlation, float(self.nu), bool(self.include_beta_var))

    def _kernel(self) -> Any:
        return partial(MetropolisRounds, rounds=int(self.thin)) if self.sampler == "tgp" else self.sampler

    def _memory(self, n: int) -> Need:
        return exact_fit(24.0, n, self._n_workers())

    # Prediction as tgp's Matérn code has it --------------------------------------------------------------------------

    def _ties(self, n_rows: int) -> bool:
        matern = self.model_.correlation == "matern"
        return bool(self.emulate_tgp_matern_bug) and matern and n_rows == len(self.model_.y)

    def _predictives(self, X: Array, kind: str) -> Iterator[Predictive]:
        if not self._ties(len(X)):
            yield from super()._predictives(X, kind)
            return
        _refuse_tied(kind != "observation")
        moments = [self.model_.condition(position).moments_tied(X) for position in self._atoms()]
        yield Predictive(*np.stack(moments, axis=1))

    def _joint(self, X: Array, atoms: NDArray[np.int_]) -> Iterator[tuple[Array, Array, float]]:
        _refuse_tied(self._ties(len(X)))
        return super()._joint(X, atoms)


def _refuse_tied(asked: bool) -> None:
    if asked:
        raise ValueError(
            "emulate_tgp_matern_bug gives no law but that of single observations where there are as many rows as "
            'training rows: ask for kind="observation" without joint covariance, or for other rows'
        )


def _checked(X_test: Any) -> Array:
    refuse_foreign("X_test", X_test)
    refuse_not_finite("X_test", X_test)
    values = np.asarray(check_array(X_test, dtype=np.float64, input_name="X_test"))
    refuse_huge("X_test", values)
    return values
