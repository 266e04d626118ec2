"""Tables of jumps in the units of the data: between neighbouring inputs, or across hyperplanes."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cadlag.data import Scaling
from cadlag.names import distinct
from cadlag.network.breaks import cluster_planes, jumps_between, sample_planes
from cadlag.network.model import StableNetwork
from cadlag.posterior import Table

Array = NDArray[np.float64]

_LEVELS = (0.05, 0.5, 0.95)
_MOST_ROWS = 1000


def _size_columns(net: Array, least: float) -> dict[str, Any]:
    """Probability of a jump above `least`, and quantiles of those jumps; (draws, jumps) in."""
    counted = np.abs(net) > least
    sizes = np.full((3, net.shape[1]), np.nan)
    for k in np.flatnonzero(counted.any(axis=0)):
        sizes[:, k] = np.quantile(net[counted[:, k], k], _LEVELS)
    return {"probability": counted.mean(axis=0), "size": sizes[1], "size_q05": sizes[0], "size_q95": sizes[2]}


class BreakPoints(Table):
    """Jumps between neighbouring inputs in one dimension.

    Parameters
    ----------
    columns
        lower, upper, probability, size, size_q05, size_q95: a row an interval.
    places
        Where each draw has its largest jump.
    sizes
        That jump.
    min_size
        Smallest jump that counts.
    """

    def __init__(self, columns: Mapping[str, Any], places: Array, sizes: Array, min_size: float) -> None:
        super().__init__(columns)
        self.places, self.sizes, self.min_size = places, sizes, min_size

    @classmethod
    def find(
        cls, rng: np.random.Generator, model: StableNetwork, positions: Array, least: float, spread: float,
        inputs: Scaling, names: Sequence[str],
    ) -> Self:  # fmt: skip
        """From posterior draws on standardised data."""
        edges = np.unique(model.X[:, 1])
        if len(edges) < 2:
            raise ValueError("break points lie between inputs, and all training inputs are the same")
        net, where = jumps_between(sample_planes(rng, model, positions), edges, len(positions))
        centre, scale = float(inputs.centre[0]), float(inputs.scale[0])
        largest = np.argmax(np.abs(net), axis=1)
        rows = np.arange(len(net))
        bounds = {"lower": centre + scale * edges[:-1], "upper": centre + scale * edges[1:]}
        return cls(
            {**bounds, **_size_columns(net * spread, least * spread)}, centre + scale * where[rows, largest],
            net[rows, largest] * spread, least * spread,
        )  # fmt: skip

    @property
    def probability_of_any(self) -> float:
        """Posterior probability that there is a jump of at least `min_size`."""
        return float(np.mean(np.abs(self.sizes) > self.min_size))

    def interval(self, coverage: float = 0.9) -> tuple[float, float]:
        """Central interval of the place of the largest jump.

        Parameters
        ----------
        coverage
            Its posterior probability.

        Returns
        -------
        tuple[float, float]
            Lower and upper end, in units of the input.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")
        low, high = np.quantile(self.places, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        return float(low), float(high)

    def likely(self, least: float = 0.05) -> Table:
        """The intervals whose probability of a jump is at least this.

        Parameters
        ----------
        least
            Smallest probability shown.

        Returns
        -------
        Table
            Those rows, in the order of the input.
        """
        shown = self["probability"] >= least
        return Table({name: values[shown] for name, values in self.items()})


class BreakPlanes(Table):
    """Jumps across hyperplanes n·x = offset in several dimensions.

    Parameters
    ----------
    columns
        probability, size, size_q05, size_q95, share (of training rows on the upper side), offset, and the normal's
        coefficients by input ("normal of size" for an input whose name is taken); a row a hyperplane.
    normals
        The coefficients, (hyperplanes, inputs), of unit length on standardised inputs.
    draws
        For each hyperplane where the draws that jump across it have it: (offset, normal) each, (jumps, 1 + inputs).
    min_size
        Smallest jump that counts.
    """

    def __init__(self, columns: Mapping[str, Any], normals: Array, draws: Sequence[Array], min_size: float) -> None:
        super().__init__(columns)
        self.normals, self.draws, self.min_size = normals, draws, min_size

    @classmethod
    def find(
        cls, rng: np.random.Generator, model: StableNetwork, positions: Array, least: float, spread: float,
        inputs: Scaling, names: Sequence[str],
    ) -> Self:  # fmt: skip
        """From posterior draws on standardised data."""
        X = model.X[rng.permutation(len(model.X))[:_MOST_ROWS]]
        planes = sample_planes(rng, model, positions)
        found = [c for c in cluster_planes(planes, X, len(positions), least) if (np.abs(c.net) > least).any()]
        leaders = np.array([c.leader / np.linalg.norm(c.leader[1:]) for c in found]).reshape(-1, model.n_inputs)
        net = np.array([c.net for c in found]).reshape(len(found), len(positions)).T
        offsets, normals = np.split(_in_units(leaders, inputs), [1], axis=1)
        columns = {
            **_size_columns(net * spread, least * spread), "share": np.array([c.share for c in found]),
            "offset": offsets[:, 0],
        }  # fmt: skip
        labels = distinct([f"normal of {name}" if name in columns else name for name in names])
        own = dict(zip(labels, normals.T))
        draws = [_in_units(c.middles, inputs) for c in found]
        return cls({**columns, **own}, normals, draws, least * spread)

    def crossing(self, plane: int, j: int, at: Array, coverage: float = 0.9) -> tuple[float, float, float]:
        """Where one input meets a hyperplane while the others stay: posterior median and central interval.

        Parameters
        ----------
        plane
            Which hyperplane, a row of this table.
        j
            Which input.
        at
            Values of all inputs; that of the input itself does not matter.
        coverage
            Posterior probability of the interval.

        Returns
        -------
        tuple[float, float, float]
            Median, lower and upper end, in units of the input; infinite where draws never meet it.
        """
        offsets, normals = self.draws[plane][:, 0], self.draws[plane][:, 1:]
        others = normals @ at - normals[:, j] * at[j]
        with np.errstate(divide="ignore"):
            places = (offsets - others) / normals[:, j]
        low, middle, high = np.quantile(places, [0.5 - 0.5 * coverage, 0.5, 0.5 + 0.5 * coverage])
        return float(middle), float(low), float(high)


def _in_units(coordinates: Array, inputs: Scaling) -> Array:
    """(offset, normal) in units of the data from (b, v) on standardised inputs."""
    normals = coordinates[:, 1:] / inputs.scale
    return np.column_stack([normals @ inputs.centre - coordinates[:, 0], normals])
