"""w_k w_h ρ_kh within many small sets of rows, and its reverse mode: the recursion where a row asks few others.

The functions of single rows are those of :mod:`cadlag.kernels.recursion`, :mod:`cadlag.kernels.reverse` and
:mod:`cadlag.kernels.both_orders`; here they see the inputs of one set, gathered. The pairs of a set stand in one
vector, row after row below the diagonal, so that loops over them are long. What the reverse mode leaves for the
diagonals (Q, E and the like) is given out for each member of each set; whoever has the sets adds it up, row by row, and
the diagonals are pulled back once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cadlag.kernels.arc_cosine import SUMS, Array, activate_row, activate_with_slope
from cadlag.kernels.both_orders import from_differences, pull_both_row
from cadlag.kernels.recursion import Layers, angle_rows, deepen_angles, dot_rows, map_row
from cadlag.kernels.reverse import add_products, pull_row, pull_step_row

Indices = NDArray[np.int32]


@njit(inline="always", **SUMS)
def _gather(features: Array, members: Indices, size: int, here: Array) -> None:
    """The features of one set, a row each, as columns."""
    for k in range(size):
        row = features[members[k]]
        for f in range(len(row)):
            here[f, k] = row[f]


@njit(inline="always", **SUMS)
def _dot_pairs(unit: Array, size: int, cosine: Array) -> int:
    """cos θ of all pairs; how many there are."""
    at = 0
    for k in range(size):
        dot_rows(unit[:, k], unit, k, cosine[at : at + k])
        at += k
    return at


@njit(inline="always", **SUMS)
def _map_pairs(b: Array, g: Array, size: int, rho: Array, cosine: Array) -> None:
    """One layer: cos θ = b_k b_h + g_k g_h ρ_kh."""
    at = 0
    for k in range(size):
        map_row(b[k], g[k], b, g, rho[at : at + k], cosine[at : at + k], k)
        at += k


@njit(inline="always", **SUMS)
def _write(size: int, weight: Array, rho: Array, matrix: Array) -> None:
    """The lower triangle of w_k w_h ρ_kh, and ones."""
    at = 0
    for k in range(size):
        row, w = matrix[k], weight[k]
        for h in range(k):
            row[h] = w * weight[h] * rho[at + h]
        row[k] = 1.0
        at += k


# Order 1 and higher ---------------------------------------------------------------------------------------------------


@njit(**SUMS)
def _fill_smooth(order: int, depth: int, features: Array, members: Indices, sizes: Indices, out: Array) -> None:
    n_features, width = features.shape[1], members.shape[1]
    p = n_features - 1 - 2 * depth
    here, n_pairs = np.zeros((n_features, width)), width * (width - 1) // 2
    cosine, rho = np.empty(n_pairs), np.empty(n_pairs)
    unit, b, g = here[:p], here[p + 1 : p + 1 + depth], here[p + 1 + depth :]
    for r in range(len(sizes)):
        _gather(features, members[r], sizes[r], here)
        stop = _dot_pairs(unit, sizes[r], cosine)
        activate_row(order, cosine, rho, stop)
        for layer in range(depth):
            _map_pairs(b[layer], g[layer], sizes[r], rho, cosine)
            activate_row(order, cosine, rho, stop)
        _write(sizes[r], here[p], rho, out[r])


@njit(**SUMS)
def _pull_smooth(
    order: int, depth: int, features: Array, members: Indices, sizes: Indices, adjoint: Array, sums: Array,
    totals: Array,
) -> None:  # fmt: skip
    n_features, width = features.shape[1], members.shape[1]
    p = n_features - 1 - 2 * depth
    here, n_pairs = np.zeros((n_features, width)), width * (width - 1) // 2
    cosine, slope, rho = np.empty((depth + 1, n_pairs)), np.empty((depth + 1, n_pairs)), np.empty(n_pairs)
    unit, b, g = here[:p], here[p + 1 : p + 1 + depth], here[p + 1 + depth :]
    q_sum, e_sum = np.empty((depth + 1, width)), np.empty((depth + 1, width))
    for r in range(len(sizes)):
        _gather(features, members[r], sizes[r], here)
        stop = _dot_pairs(unit, sizes[r], cosine[0])
        for layer in range(depth):
            activate_with_slope(order, cosine[layer], rho, slope[layer], stop)
            _map_pairs(b[layer], g[layer], sizes[r], rho, cosine[layer + 1])
        activate_with_slope(order, cosine[depth], rho, slope[depth], stop)
        q_sum[:], e_sum[:] = 0.0, 0.0
        at = 0
        for k in range(sizes[r]):
            row, scale = adjoint[r, k], here[p]
            for layer in range(depth, 0, -1):
                here_slope, here_cosine = slope[layer, at : at + k], cosine[layer, at : at + k]
                pull_row(k, row, here_slope, scale, here_cosine, b[layer - 1], q_sum[layer], e_sum[layer])
                scale = g[layer - 1]
            pull_row(k, row, slope[0, at : at + k], scale, cosine[0, at : at + k], unit[0], q_sum[0], e_sum[0])
            add_products(k, row, unit, totals)
            at += k
        for k in range(width):
            for layer in range(depth + 1):
                sums[r, k, layer], sums[r, k, depth + 1 + layer] = q_sum[layer, k], e_sum[layer, k]


# Order 0 --------------------------------------------------------------------------------------------------------------


@njit(**SUMS)
def _fill_step(
    depth: int, roots: Array, features: Array, members: Indices, sizes: Indices, out: Array
) -> None:  # fmt: skip
    n_features, width = features.shape[1], members.shape[1]
    p = len(roots)
    here, n_pairs = np.zeros((n_features, width)), width * (width - 1) // 2
    theta, work = np.empty(n_pairs), np.empty((4, width))
    norm, g, inputs = here[p + 1], here[p + 2 : p + 2 + depth], here[p + 2 + depth :]
    for r in range(len(sizes)):
        _gather(features, members[r], sizes[r], here)
        at = 0
        for k in range(sizes[r]):
            angle_rows(inputs[:, k], norm[k], inputs, roots, norm, k, theta[at : at + k], work)
            at += k
        for layer in range(depth):
            deepen_angles(g[layer, 0] * g[layer, 0], theta, at)
        for pair in range(at):
            theta[pair] = 1.0 - theta[pair] * (1.0 / np.pi)
        _write(sizes[r], here[p], theta, out[r])


@njit(**SUMS)
def _pull_step(
    depth: int, roots: Array, features: Array, members: Indices, sizes: Indices, adjoint: Array, sums: Array,
    totals: Array,
) -> None:  # fmt: skip
    n_features, width = features.shape[1], members.shape[1]
    p = len(roots)
    here = np.zeros((n_features, width))
    theta, work, versine = np.empty((depth + 1, width)), np.empty((4, width)), np.empty(width)
    unit, norm, g, inputs = here[:p], here[p + 1], here[p + 2 : p + 2 + depth], here[p + 2 + depth :]
    total, log_q, moved = totals[: p - 1], totals[p - 1 :], np.empty(0)
    for r in range(len(sizes)):
        _gather(features, members[r], sizes[r], here)
        versine[:] = 0.0
        for k in range(sizes[r]):
            pull_step_row(
                k, adjoint[r, k], unit, inputs, roots, norm, g, here[p], theta, work, versine, total, log_q, moved
            )  # fmt: skip
        for k in range(width):
            sums[r, k, 0] = versine[k]


# Both orders ----------------------------------------------------------------------------------------------------------


@njit(inline="always", **SUMS)
def _both_pairs(unit: Array, size: int, cosine: Array, rho: Array, angle: Array) -> None:
    """ρ_1 and ρ_0 of all pairs."""
    stop = _dot_pairs(unit, size, cosine)
    activate_with_slope(1, cosine, rho, angle, stop)
    at = 0
    for k in range(size):
        from_differences(unit[:, k], unit, k, cosine[at : at + k], angle[at : at + k])
        at += k


@njit(**SUMS)
def _fill_both(features: Array, members: Indices, sizes: Indices, out: Array) -> None:
    n_features, width = features.shape[1], members.shape[1]
    here, n_pairs = np.zeros((n_features, width)), width * (width - 1) // 2
    cosine, rho, angle = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
    unit, smooth, rough = here[:-2], here[n_features - 2], here[n_features - 1]
    for r in range(len(sizes)):
        _gather(features, members[r], sizes[r], here)
        _both_pairs(unit, sizes[r], cosine, rho, angle)
        at = 0
        for k in range(sizes[r]):
            row, one, other = out[r, k], smooth[k], rough[k]
            for h in range(k):
                row[h] = one * smooth[h] * rho[at + h] + other * rough[h] * angle[at + h]
            row[k] = 1.0
            at += k


@njit(**SUMS)
def _pull_both(
    features: Array, members: Indices, sizes: Indices, adjoint: Array, sums: Array, totals: Array
) -> None:  # fmt: skip
    n_features, width = features.shape[1], members.shape[1]
    here, n_pairs = np.zeros((n_features, width)), width * (width - 1) // 2
    cosine, rho, angle, c_bar = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs), np.empty(width)
    unit, smooth, rough = here[:-2], here[n_features - 2], here[n_features - 1]
    pulled, through = np.empty(width), np.empty((2, width))
    for r in range(len(sizes)):
        _gather(features, members[r], sizes[r], here)
        _both_pairs(unit, sizes[r], cosine, rho, angle)
        pulled[:], through[:] = 0.0, 0.0
        at = 0
        for k in range(sizes[r]):
            part = slice(at, at + k)
            pull_both_row(
                k, adjoint[r, k], unit, smooth, rough, cosine[part], rho[part], angle[part], c_bar, totals, pulled,
                through,
            )  # fmt: skip
            at += k
        for k in range(width):
            sums[r, k, 0], sums[r, k, 1], sums[r, k, 2] = pulled[k], through[0, k], through[1, k]


# What the sparse law asks of a kernel ---------------------------------------------------------------------------------


class LocalPairs(NamedTuple):
    """Correlations of the observations within sets of rows, one order.

    Attributes
    ----------
    order
        The order δ.
    depth
        Number of layers beyond the first.
    roots
        √w and the bias, as in :class:`cadlag.kernels.recursion.Layers`.
    features
        What each row contributes, (n, ·): unit vector, w, and b and g, or at δ = 0 norm, g and inputs.
    """

    order: int
    depth: int
    roots: Array
    features: Array

    @classmethod
    def of(cls, points: Layers, weight: Array) -> "LocalPairs":
        """With w of each row."""
        own = (points.inverse_norm[None], points.g, points.inputs) if points.order == 0 else (points.b, points.g)
        features = np.ascontiguousarray(np.concatenate((points.unit, weight[None], *own)).T)
        return cls(points.order, len(points.b), points.roots, features)

    def beside(self, other: "LocalPairs") -> "LocalPairs":
        """These rows, then others at the same scales."""
        return self._replace(features=np.concatenate((self.features, other.features)))

    @property
    def n_sums(self) -> int:
        """Q and E of every layer; at δ = 0 the sum of versines."""
        return 1 if self.order == 0 else 2 * (self.depth + 1)

    @property
    def n_totals(self) -> int:
        """One for each input; at δ = 0 also one for each layer."""
        return len(self.roots) + self.depth if self.order == 0 else len(self.roots) - 1

    def fill(self, members: Indices, sizes: Indices, out: Array) -> None:
        """Lower triangles of w_k w_h ρ_kh and unit diagonals, (c, m + 1, m + 1)."""
        if self.order == 0:
            _fill_step(self.depth, self.roots, self.features, members, sizes, out)
        else:
            _fill_smooth(self.order, self.depth, self.features, members, sizes, out)

    def pull(self, members: Indices, sizes: Indices, adjoint: Array, sums: Array, totals: Array) -> None:
        """Of the derivatives by the pairs: what belongs to each member; what belongs to none is added to `totals`."""
        if self.order == 0:
            _pull_step(self.depth, self.roots, self.features, members, sizes, adjoint, sums, totals)
        else:
            _pull_smooth(self.order, self.depth, self.features, members, sizes, adjoint, sums, totals)


class LocalPairsOfBoth(NamedTuple):
    """Correlations of the observations within sets of rows, orders 1 and 0 together.

    Attributes
    ----------
    features
        Unit vector and both ω of each row, (n, p + 3).
    """

    features: Array

    @classmethod
    def of(cls, unit: Array, shares: Array) -> "LocalPairsOfBoth":
        """With ω = shares, (2, n), order 1 first."""
        return cls(np.ascontiguousarray(np.concatenate((unit, shares)).T))

    def beside(self, other: "LocalPairsOfBoth") -> "LocalPairsOfBoth":
        """These rows, then others at the same scales."""
        return LocalPairsOfBoth(np.concatenate((self.features, other.features)))

    @property
    def n_sums(self) -> int:
        """Q, and what each part contributes."""
        return 3

    @property
    def n_totals(self) -> int:
        """One for each input."""
        return self.features.shape[1] - 3

    def fill(self, members: Indices, sizes: Indices, out: Array) -> None:
        """Lower triangles of the sum and unit diagonals, (c, m + 1, m + 1)."""
        _fill_both(self.features, members, sizes, out)

    def pull(self, members: Indices, sizes: Indices, adjoint: Array, sums: Array, totals: Array) -> None:
        """Of the derivatives by the pairs: what belongs to each member; what belongs to none is added to `totals`."""
        _pull_both(self.features, members, sizes, adjoint, sums, totals)
