"""f(x*) = φ(x*)ᵀAg, g | y ~ N(L⁻ᵀc, B⁻¹): one draw of the network, conditioned on the data."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, solve_triangular

from cadlag.kernel_process.atom import Asked, Atom, LocalAtom, Points
from cadlag.linalg.gaussian import Observed
from cadlag.linalg.low_rank import log_marginal_of_sums, solve_upper, sums_of_columns

Array = NDArray[np.float64]

AT_ONCE = 256  # rows whose neighbours' columns are gathered


class Units(NamedTuple):
    """A position of the network by parts: units, scales, amplitude and noise."""

    W: Array
    log_s: Array
    kinds: NDArray[np.int64]
    log_inputs: Array
    log_bulk: Array
    log_tau: float
    log_v: float

    def copy(self) -> "Units":
        """Units in arrays of their own, for moves that change them."""
        log_inputs, log_bulk = self.log_inputs.copy(), self.log_bulk.copy()
        W, log_s, kinds = self.W.copy(), self.log_s.copy(), self.kinds.copy()
        return Units(W, log_s, kinds, log_inputs, log_bulk, self.log_tau, self.log_v)


class Network(Protocol):
    """What an atom asks of its network."""

    def columns(self, units: Units, X: Array | None = None) -> Array:
        """Φ at given inputs."""


class Taken(NamedTuple):
    """The process at new inputs given the units' mean weights: mean, (co)variance, and what it takes of the columns."""

    mean: Array
    variance: Array
    columns: Array


@dataclass(frozen=True)
class Bulk:
    """The kernel process given the units and their mean weights.

    Attributes
    ----------
    atom
        The process conditioned on what the units, with their mean weights, leave of the responses.
    whitened
        U⁻ᵀD^-½Φ, (n, M).
    """

    atom: Atom
    whitened: Array

    @classmethod
    def given(cls, atom: Atom, data: Observed, Phi: Array, variances: Array) -> "tuple[Bulk, Array, Array]":
        """Condition units and process together, by one factorisation; also L and c of the units' weights."""
        whitened, given = np.asfortranarray(Phi * np.exp(-0.5 * data.log_total)[:, None]), atom.conditioner
        z = data.scaled
        if len(z):
            whitened = blas.dtrsm(1.0, given.factor, whitened, trans_a=1, lower=0)
            z = blas.dtrsv(given.factor, z, lower=0, trans=1)
        sums = whitened.T @ whitened, whitened.T @ z, float(z @ z)
        _, factor, half = log_marginal_of_sums(*sums, len(z), variances, 1.0)
        left = z - whitened @ (np.sqrt(variances) * solve_upper(factor, half))
        beta = blas.dtrsv(given.factor, left, lower=0) if len(left) else left
        return cls(replace(atom, conditioner=replace(given, beta=beta)), whitened), factor, half

    def _project(self, X: Array) -> tuple[Array, Array, Points]:
        """Mean of the process over its standard deviation, U⁻ᵀ times its covariances with the data, its layers."""
        new = self.atom.model.layers(self.atom.scales, X)
        return *self.atom.conditioner.project(self.atom.model.cross(new, self.atom.points)), new

    def moments(self, X: Array) -> Taken:
        """With the variance of each row."""
        mean, half, new = self._project(X)
        log_signal = new.log_variance + self.atom.scales.log_output
        left = np.exp(log_signal) * np.maximum(1.0 - (half * half).sum(axis=0), 0.0)
        sd = np.exp(0.5 * log_signal)
        return Taken(mean * sd, left, sd[:, None] * (half.T @ self.whitened))

    def joint(self, X: Array) -> Taken:
        """With the covariance."""
        mean, half, new = self._project(X)
        sd = np.exp(0.5 * (new.log_variance + self.atom.scales.log_output))
        left = (self.atom.model.cross(new, new) - half.T @ half) * np.outer(sd, sd)
        return Taken(mean * sd, left, sd[:, None] * (half.T @ self.whitened))

    def mean(self, X: Array) -> Array:
        """Mean of the process alone."""
        return self.atom.mean(X)


@dataclass(frozen=True)
class LocalBulk:
    """The same where a row asks its neighbours: a new row takes b*ᵀ of what they are.

    Attributes
    ----------
    atom
        The process conditioned, row by row, on what the units, with their mean weights, leave of the responses.
    columns
        D^-½Φ, (n, M).
    """

    atom: LocalAtom
    columns: Array

    @classmethod
    def given(cls, atom: LocalAtom, data: Observed, Phi: Array, variances: Array) -> "tuple[LocalBulk, Array, Array]":
        """Condition units and process together; also L and c of the units' weights."""
        process, columns = atom.model, Phi * np.exp(-0.5 * data.log_total)[:, None]
        V, _ = process.form.precision(process, atom.points, data)
        whitened, z = V.whiten(columns), V.whiten(data.scaled)
        _, factor, half = log_marginal_of_sums(*sums_of_columns(whitened, z), float(z @ z), len(z), variances, 1.0)
        left = data.scaled - columns @ (np.sqrt(variances) * solve_upper(factor, half))
        return cls(replace(atom, data=replace(data, scaled=left)), columns), factor, half

    def _taken(self, asked: Asked) -> Array:
        of_columns = np.empty((len(asked.b), self.columns.shape[1]))
        for start in range(0, len(of_columns), AT_ONCE):  # what is gathered of them is small then
            some = slice(start, start + AT_ONCE)
            of_columns[some] = np.einsum("mk,mkj->mj", asked.b[some], self.columns[asked.rows[some]])
        return np.exp(0.5 * asked.log_signal)[:, None] * of_columns

    def moments(self, X: Array) -> Taken:
        """With the variance of each row."""
        asked = self.atom.given_neighbors(X)
        return Taken(self.atom.mean_of(asked), np.exp(asked.log_signal) * asked.d, self._taken(asked))

    def joint(self, X: Array) -> Taken:
        """With the covariance."""
        return Taken(*self.atom.joint(X), self._taken(self.atom.given_neighbors(X)))

    def mean(self, X: Array) -> Array:
        """Mean of the process alone."""
        return self.atom.mean(X)


@dataclass(frozen=True)
class NetworkAtom:
    """One draw, conditioned on the data.

    With a bulk, the weights w are drawn given the data first and the process given the weights: the law of the sum at
    new inputs is that of the process given w̄, and more uncertain by w - w̄ times the columns less what the process takes
    of them.

    Attributes
    ----------
    model
        The network.
    units
        Its units.
    spread
        a_j.
    factor
        L.
    half
        c.
    noise_variance
        Variance of the noise on a new observation (the mean of the rows' when they differ).
    bulk
        The kernel process, or None.
    """

    model: Network
    units: Units
    spread: Array
    factor: Array
    half: Array
    noise_variance: float
    bulk: Bulk | LocalBulk | None = None

    def weights(self) -> Array:
        """Mean output weights, A L⁻ᵀc."""
        return self.spread * np.asarray(solve_triangular(self.factor, self.half, lower=True, trans="T"))

    def sample_weights(self, rng: np.random.Generator) -> Array:
        """Output weights, A g."""
        noisy = self.half + rng.standard_normal(len(self.half))
        return self.spread * np.asarray(solve_triangular(self.factor, noisy, lower=True, trans="T"))

    def _half_columns(self, columns: Array) -> Array:
        """L⁻¹A times columns at new inputs, (M, m)."""
        return np.asarray(solve_triangular(self.factor, (columns * self.spread).T, lower=True))

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at new inputs, a column of ones first."""
        columns = self.model.columns(self.units, X)
        if self.bulk is None:
            H = self._half_columns(columns)
            return H.T @ self.half, (H * H).sum(axis=0)
        taken = self.bulk.moments(X)
        H = self._half_columns(columns - taken.columns)
        return columns @ self.weights() + taken.mean, taken.variance + (H * H).sum(axis=0)

    def mean(self, X: Array) -> Array:
        """Mean of the function alone."""
        mean = self.model.columns(self.units, X) @ self.weights()
        return mean if self.bulk is None else mean + self.bulk.mean(X)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Mean and covariance of the function."""
        columns = self.model.columns(self.units, X)
        if self.bulk is None:
            H = self._half_columns(columns)
            return H.T @ self.half, H.T @ H
        taken = self.bulk.joint(X)
        H = self._half_columns(columns - taken.columns)
        return columns @ self.weights() + taken.mean, taken.variance + H.T @ H
