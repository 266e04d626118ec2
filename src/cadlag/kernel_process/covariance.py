"""Λ = D^½PD^½, P in full or with a precision V = UUᵀ that is sparse: what a kernel process asks of either.

The process supplies the correlations (`correlate`, a matrix, or `local`, those within sets of rows) and pulls back what
the gradient finds; the form of the covariance does the algebra.
"""

from dataclasses import dataclass
from typing import Any

from cadlag.kernel_process.atom import Atom, LocalAtom, Points, Process
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.linalg import gaussian, low_rank, vecchia
from cadlag.linalg.gaussian import Array, LeftOut, MarginalGradient, Observed
from cadlag.linalg.low_rank import Columns


class Dense:
    """P in full: n²/2 numbers, n³/3 operations."""

    def operations(self, n: int) -> float:
        """What conditioning costs at least."""
        return float(n) ** 3 / 3.0

    def log_marginal(self, process: Process, points: Points, data: Observed, columns: Columns | None) -> float:
        """ℓ, with columns if there are any."""
        correlation = process.correlate(points, data.weight)
        if columns is None:
            return gaussian.log_marginal(correlation, data)
        return low_rank.log_marginal_with_columns(correlation, data, *columns)

    def log_marginal_gradient(
        self, process: Process, points: Points, data: Observed, columns: Columns | None
    ) -> MarginalGradient:
        """ℓ with its gradient."""
        correlation = process.correlate(points, data.weight)
        if columns is None:
            return gaussian.log_marginal_gradient(correlation, data)
        return low_rank.log_marginal_gradient_with_columns(correlation, data, *columns)

    def condition(self, process: Process, scales: Any, points: Points, data: Observed) -> Atom:
        """The process given the observations."""
        return Atom(process, scales, points, gaussian.condition(process.correlate(points, data.weight), data))

    def leave_one_out(self, process: Process, points: Points, data: Observed) -> LeftOut:
        """Each row given all the others."""
        return gaussian.leave_one_out(process.correlate(points, data.weight), data)

    def precision(self, process: Process, points: Points, data: Observed) -> tuple[Array, float]:
        """P⁻¹ and its log determinant."""
        inverse, log_det = gaussian.inverse(process.correlate(points, data.weight))
        return inverse, -log_det


@dataclass(frozen=True)
class Sparse:
    """Each row given its neighbours: nm numbers, nm³/3 operations.

    Attributes
    ----------
    neighbors
        Whom each row asks.
    """

    neighbors: Neighbors

    def operations(self, n: int) -> float:
        """What conditioning costs at least: one new row."""
        return float(self.neighbors.n_asked) ** 3 / 3.0

    def log_marginal(self, process: Process, points: Points, data: Observed, columns: Columns | None) -> float:
        """ℓ, with columns if there are any."""
        pairs = process.local(points, data.weight)
        return vecchia.log_marginal(pairs, self.neighbors.sets, data, columns, self.neighbors.n_threads)

    def log_marginal_gradient(
        self, process: Process, points: Points, data: Observed, columns: Columns | None
    ) -> MarginalGradient:
        """ℓ with its gradient."""
        pairs = process.local(points, data.weight)
        return vecchia.log_marginal_gradient(pairs, self.neighbors.sets, data, columns, self.neighbors.n_threads)

    def condition(self, process: Process, scales: Any, points: Points, data: Observed) -> LocalAtom:
        """The process given the observations, found row by row."""
        return LocalAtom(process, scales, points, data, self.neighbors)

    def leave_one_out(self, process: Process, points: Points, data: Observed) -> LeftOut:
        """Each row given all the others."""
        return vecchia.leave_one_out(self.precision(process, points, data)[0], data)

    def precision(self, process: Process, points: Points, data: Observed) -> tuple[vecchia.Precision, float]:
        """V and its log determinant."""
        found = vecchia.factorise(process.local(points, data.weight), self.neighbors.sets, self.neighbors.n_threads)
        return found, found.log_det


DENSE = Dense()
