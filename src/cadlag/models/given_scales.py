"""f | y, scales: the kernel process once its scales are known, conditioned on all data or all but one row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadlag import gaussian
from cadlag.models.atom import Atom, Points, Scales

Array = NDArray[np.float64]


class GivenScales:
    """What follows from the covariance of the observations, for a process that gives it."""

    y: Array

    def scales(self, position: Array) -> Scales:
        """Read a position."""
        raise NotImplementedError

    def layers(self, scales: Any, X: Array | None = None) -> Any:
        """The recursion at given scales and inputs."""
        raise NotImplementedError

    def cross(self, rows: Any, columns: Any) -> Array:
        """Correlations of the function between two sets of inputs."""
        raise NotImplementedError

    def _observe(self, scales: Scales, floor: float = 0.0) -> tuple[Points, gaussian.Observed, Array]:
        """Layers of the training inputs, the observations, their correlations."""
        raise NotImplementedError

    def condition(self, position: Array) -> Atom:
        """The Gaussian process that one draw stands for, given the data.

        Parameters
        ----------
        position
            A draw.

        Returns
        -------
        Atom
            Conditions to a normal law at any new inputs.
        """
        return self.condition_observed(position)[0]

    def condition_observed(self, position: Array) -> tuple[Atom, gaussian.Observed]:
        """The same with the observations that it was conditioned on.

        Parameters
        ----------
        position
            A draw.

        Returns
        -------
        tuple[Atom, gaussian.Observed]
            The conditional process, and the observations in units of their standard deviations.
        """
        scales = self.scales(position)
        points, data, correlation = self._observe(scales)
        return Atom(self, scales, points, gaussian.condition(correlation, data)), data

    def leave_one_out(self, position: Array) -> gaussian.LeftOut:
        """Each row given the scales and all the others.

        Parameters
        ----------
        position
            A draw.

        Returns
        -------
        LeftOut
            Errors, variances and log densities.
        """
        _, data, correlation = self._observe(self.scales(position))
        return gaussian.leave_one_out(correlation, data)
