"""J_k = Σ_j 2 w_j sgn(v_j) over the sign units that switch between x_k and x_{k+1}: where draws of the network jump.

In one dimension jumps are summed over the units that switch between neighbouring inputs. In several, a jump is a
hyperplane, and hyperplanes are told apart by how they divide the training rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadlag.network.columns import SIGN
from cadlag.network.model import StableNetwork

Array = NDArray[np.float64]

SIMILAR = 0.8  # correlation of the sides of the rows beyond which two hyperplanes count as one
MOST_CLUSTERS, MOST_LEADERS = 20, 2000


@dataclass(frozen=True)
class Planes:
    """Sign units of many draws.

    Attributes
    ----------
    draw
        Which draw each belongs to.
    size
        Height of its jump, 2w, when its coordinates b + vᵀx turn positive.
    coordinates
        (b, v) on standardised inputs, (units, q).
    """

    draw: NDArray[np.int64]
    size: Array
    coordinates: Array


def sample_planes(rng: np.random.Generator, model: StableNetwork, positions: Array) -> Planes:
    """The sign units of each draw with weights drawn given the data."""
    draws, sizes, coordinates = [], [], []
    for t, position in enumerate(positions):
        atom = model.condition(position)
        weights, units = atom.sample_weights(rng)[: model.n_units], atom.units
        chosen = units.kinds == SIGN
        scales = np.exp(0.5 * np.append(0.0, units.log_inputs)) if model.n_input_scales else 1.0
        draws.append(np.full(int(chosen.sum()), t))
        sizes.append(2.0 * weights[chosen])
        coordinates.append(units.W[chosen] * scales)
    return Planes(np.concatenate(draws), np.concatenate(sizes), np.concatenate(coordinates))


def jumps_between(planes: Planes, edges: Array, n_draws: int) -> tuple[Array, Array]:
    """Net jump of each draw between neighbouring edges, and where: (draws, intervals) each; in one dimension."""
    b, v = planes.coordinates.T
    with np.errstate(divide="ignore", invalid="ignore"):
        place = -b / v
    interval = np.searchsorted(edges, place) - 1
    inside = (interval >= 0) & (interval < len(edges) - 1) & np.isfinite(place)
    at = planes.draw[inside], interval[inside]
    signed = (planes.size * np.sign(v))[inside]
    net, moment, mass = (np.zeros((n_draws, len(edges) - 1)) for _ in range(3))
    np.add.at(net, at, signed)
    np.add.at(moment, at, np.abs(signed) * place[inside])
    np.add.at(mass, at, np.abs(signed))
    middle = 0.5 * (edges[:-1] + edges[1:])
    return net, np.where(mass > 0.0, moment / np.where(mass > 0.0, mass, 1.0), middle)


@dataclass(frozen=True)
class Cluster:
    """Hyperplanes that divide the rows alike.

    Attributes
    ----------
    leader
        (b, v), the median of its hyperplanes, turned so that its net jump is mostly upwards.
    net
        Net jump of each draw across it, (draws,).
    middles
        (b, v) of each draw with a jump, the mean of its hyperplanes by their jumps, with |v| = 1; (jumps, q).
    share
        Share of the training rows on its upper side.
    """

    leader: Array
    net: Array
    middles: Array
    share: float


def cluster_planes(planes: Planes, X: Array, n_draws: int, least: float) -> list[Cluster]:
    """Clusters in falling order of the posterior mass with a net jump above `least`."""
    sides = np.where(X @ planes.coordinates.T >= 0.0, 1.0, -1.0).astype(np.float32)
    divides = np.abs(sides.mean(axis=0)) < 1.0
    large = np.abs(planes.size) > 0.1 * least
    kept = np.flatnonzero(divides & large)
    sides = sides[:, kept]
    clusters: list[Cluster] = []
    weight = np.minimum(np.abs(planes.size[kept]), 10.0 * least).astype(np.float32)
    left = np.ones(len(kept), dtype=bool)
    centred = sides - sides.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=0)
    leaders = np.sort(np.argsort(-weight, kind="stable")[:MOST_LEADERS])
    alike = np.abs(centred[:, leaders].T @ centred) >= SIMILAR
    while left[leaders].any() and len(clusters) < MOST_CLUSTERS:
        first = int(np.argmax(np.where(left[leaders], alike @ (weight * left), -1.0)))
        leader, members = leaders[first], np.flatnonzero(alike[first] & left)
        turned = np.sign(centred[:, members].T @ centred[:, leader])
        net = np.zeros(n_draws)
        np.add.at(net, planes.draw[kept[members]], turned * planes.size[kept[members]])
        up = 1.0 if np.median(net[net != 0.0]) >= 0.0 else -1.0
        middles = _middles(planes, kept[members], up * turned, np.abs(net) > least)
        middle = np.median(middles, axis=0) if len(middles) else up * planes.coordinates[kept[leader]]
        clusters.append(Cluster(middle, up * net, middles, float((X @ middle >= 0.0).mean())))
        left[members] = False
    return sorted(clusters, key=lambda cluster: -float((np.abs(cluster.net) > least).mean()))


def _middles(planes: Planes, members: NDArray[np.int64], turned: Array, has_jump: NDArray[np.bool_]) -> Array:
    """The mean hyperplane of each draw with a jump, its members turned alike and weighted by their jumps."""
    units = planes.coordinates[members] / np.linalg.norm(planes.coordinates[members, 1:], axis=1, keepdims=True)
    sums = np.zeros((len(has_jump), units.shape[1]))
    np.add.at(sums, planes.draw[members], (turned * np.abs(planes.size[members]))[:, None] * units)
    return sums[has_jump] / np.linalg.norm(sums[has_jump, 1:], axis=1, keepdims=True)
