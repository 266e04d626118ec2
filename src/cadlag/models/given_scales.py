"""f | y, scales: the kernel process once its scales are known, conditioned on all data or all but one row."""

from dataclasses import replace
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
        return self.condition_on(position, self.y)[0]

    def condition_on(self, position: Array, y: Array) -> tuple[Atom, Array]:
        """The same given other responses at the training inputs.

        Parameters
        ----------
        position
            A draw.
        y
            Responses.

        Returns
        -------
        tuple[Atom, Array]
            The conditional process, and one over the standard deviation of each response.
        """
        scales = self.scales(position)
        points, data, correlation = self._observe(scales)
        omega = np.exp(-0.5 * data.log_total)
        given = gaussian.condition(correlation, replace(data, scaled=y * omega))
        return Atom(self, scales, points, given), omega

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
