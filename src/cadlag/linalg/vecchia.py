"""log p(y) = -½ Σ log D + Σ_i log N(ỹ_i; b_iᵀỹ_N(i), d_i): the Gaussian law in which a row asks few earlier rows.

As in :mod:`cadlag.linalg.gaussian`, ỹ = D^-½y has correlations P. With `b_i = P_NN⁻¹P_Ni`, `d_i = 1 - b_iᵀP_Ni` the
precision of ỹ is V = UUᵀ, column i of U being a_i/√d_i on S_i = {i} ∪ N(i), a_i = (1; -b_i): n(m + 1) numbers. The
small matrices are factorised as P_SS = LᵀL, L lower and row i first, so that `L a = √d e_1` and d is the last pivot.

With columns, y ~ N(0, D^½V⁻¹D^½ + ΦA²Φᵀ): `C = (A⁻² + Φ̃ᵀVΦ̃)⁻¹`, `w̄ = CΦ̃ᵀVỹ`. Since d = aᵀP_SS a is a least value,
∂d = aᵀ(∂P_SS)a, and the derivative by P_SS is of rank two: with `u = a/√d`, `ε = uᵀ(ỹ - Φ̃w̄)_S`, `ω = Φ̃_Sᵀu`,

    ½(ε² + ωᵀCω - 1) uuᵀ + sym{(0; γ) uᵀ},   γ = P_NN⁻¹[ε (ỹ - Φ̃w̄)_N + Φ̃_N Cω],   sym X = ½(X + Xᵀ).

V commutes with the scaling by D, so that the derivatives by log variances are those of the dense law, with V for P⁻¹.
Rows are worked on in blocks whose matrices stay in the cache, blocks in chunks that threads share; what is summed over
rows is summed in one order, so that the bits do not depend on the number of threads.

References: Vecchia (1988); Katzfuss & Guinness (2021), "A general framework for Vecchia approximations".
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cadlag.linalg.gaussian import LOG_2PI, Array, LeftOut, MarginalGradient, NotPositiveDefiniteError, Observed
from cadlag.linalg.low_rank import Columns, log_marginal_of_sums, precision_of_sums, solve_upper, sums_of_columns

Indices = NDArray[np.int32]
Places = NDArray[np.int64]
MOST_ENTRIES = 2**31 - 1  # of U, whose places are numbers of 32 bits

CHUNK = 4096  # rows that one thread takes at a time
_BLOCK = 2**15  # entries of the matrices that are worked on together
_ROUNDING = float(np.finfo(float).eps)

_COMPILED = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


class Sets(NamedTuple):
    """S_i = {i} ∪ N(i), and for each row the sets that it is in.

    Attributes
    ----------
    members
        i, then N(i), then -1: (n, m + 1).
    sizes
        How many there are, (n,).
    starts
        Row i is in the sets `columns[starts[i] : starts[i + 1]]`, (n + 1,).
    columns
        Which sets, in order.
    places
        Where the row stands among all n(m + 1) members.
    """

    members: Indices
    sizes: Indices
    starts: Places
    columns: Indices
    places: Indices

    @classmethod
    def of(cls, neighbors: Indices) -> "Sets":
        """From the neighbours of each row, (n, m), -1 where there are fewer."""
        n, m = neighbors.shape
        if n * (m + 1) > MOST_ENTRIES:
            raise ValueError(f"{n} rows of {m} neighbours are too many for one precision: use fewer neighbours")
        members = np.empty((n, m + 1), dtype=np.int32)
        members[:, 0], members[:, 1:] = np.arange(n), neighbors
        sizes = (members >= 0).sum(axis=1, dtype=np.int32)
        if not (np.arange(m + 1) < sizes[:, None])[members >= 0].all() or members.max(initial=-1) >= n:
            raise ValueError("neighbours must be rows, with -1 behind the last of them")
        return cls(members, sizes, *_transposed(members, sizes))

    @property
    def n_neighbors(self) -> int:
        """m."""
        return self.members.shape[1] - 1


@njit(**_COMPILED)
def _transposed(members: Indices, sizes: Indices) -> tuple[Places, Indices, Indices]:
    n, width = members.shape
    starts = np.zeros(n + 1, np.int64)
    for i in range(n):
        for k in range(sizes[i]):
            starts[members[i, k] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    columns, places, filled = np.empty(starts[n], np.int32), np.empty(starts[n], np.int32), starts[:-1].copy()
    for i in range(n):
        for k in range(sizes[i]):
            at = filled[members[i, k]]
            columns[at], places[at] = i, i * width + k
            filled[members[i, k]] += 1
    return starts, columns, places


@njit(**_COMPILED)
def add_up(members: Indices, sizes: Indices, values: Array, out: Array) -> None:
    """What each row has in some sets, (c, m + 1, k), added to what it has in others, (k, n)."""
    for r in range(len(sizes)):
        for k in range(sizes[r]):
            for q in range(len(out)):
                out[q, members[r, k]] += values[r, k, q]


class Pairs(Protocol):
    """Correlations of the observations within sets of rows, and their reverse mode: what the kernels supply."""

    n_sums: int
    n_totals: int

    def fill(self, members: Indices, sizes: Indices, out: Array) -> None:
        """Lower triangles of w_k w_h ρ_kh and unit diagonals, (c, m + 1, m + 1)."""

    def pull(self, members: Indices, sizes: Indices, adjoint: Array, sums: Array, totals: Array) -> None:
        """Of the derivatives by the pairs: what belongs to each member, (c, m + 1, n_sums), and to none, added."""


# Small matrices -------------------------------------------------------------------------------------------------------


@njit(inline="always", **_COMPILED)
def _take_root(row: Array, k: int, least: float, inverse: Array) -> bool:
    """Row k of L from what is left of that of P, and 1/L_kk; zeros and False if nothing is left."""
    is_left = row[k] > least
    inverse[k] = 1.0 / math.sqrt(row[k]) if is_left else 0.0
    for h in range(k):
        row[h] *= inverse[k]
    return is_left


@njit(**_COMPILED)
def _eliminate(matrix: Array, size: int, inverse: Array) -> bool:
    """P = LᵀL from the last row to the second, two at a time, which leaves d in the corner.

    A row that those behind it determine gets zeros, as if it were not there; whether there was none.
    """
    least, k, is_regular = size * _ROUNDING, size - 1, True
    while k > 0:
        one, two = matrix[k], matrix[k - 1]
        is_regular &= _take_root(one, k, least, inverse)
        factor = one[k - 1]
        for h in range(k):
            two[h] -= factor * one[h]
        if k > 1:
            is_regular &= _take_root(two, k - 1, least, inverse)
        for i in range(k - 1):
            first, second, target = one[i], two[i], matrix[i]
            for h in range(i + 1):
                target[h] -= first * one[h] + second * two[h]
        k -= 2
    return is_regular


@njit(**_COMPILED)
def _dot(x: Array, y: Array, start: int, stop: int) -> float:
    """Σ x_h y_h by four accumulators, so that the order is no matter of the compiler."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    h = start
    while h + 4 <= stop:
        a += x[h] * y[h]
        b += x[h + 1] * y[h + 1]
        c += x[h + 2] * y[h + 2]
        d += x[h + 3] * y[h + 3]
        h += 4
    while h < stop:
        a += x[h] * y[h]
        h += 1
    return (a + b) + (c + d)


@njit(**_COMPILED)
def _solve_lower(matrix: Array, size: int, inverse: Array, x: Array) -> None:
    """x <- L⁻¹x among the neighbours; with x_1 = 1 and zeros below, x <- a."""
    for k in range(1, size):
        x[k] = (x[k] - _dot(matrix[k], x, 0, k)) * inverse[k]


@njit(**_COMPILED)
def _solve_both(matrix: Array, size: int, inverse: Array, x: Array) -> None:
    """x <- P_NN⁻¹x; x_1 must be zero."""
    for k in range(size - 1, 0, -1):
        x[k] *= inverse[k]
        row, value = matrix[k], x[k]
        for h in range(1, k):
            x[h] -= value * row[h]
    _solve_lower(matrix, size, inverse, x)


@njit(**_COMPILED)
def _factorise(matrices: Array, sizes: Indices, inverses: Array, coefficients: Array, variances: Array) -> int:
    """a_i and d_i of each set; the number of the first whose neighbours are singular, or -1."""
    failed = -1
    for r in range(len(sizes)):
        size, a = sizes[r], coefficients[r]
        if not _eliminate(matrices[r], size, inverses[r]) and failed < 0:
            failed = r
        a[0] = 1.0
        a[1:] = 0.0
        _solve_lower(matrices[r], size, inverses[r], a)
        variances[r] = matrices[r, 0, 0]
    return failed


@njit(**_COMPILED)
def _normalise(coefficients: Array, variances: Array, sizes: Indices) -> int:
    """a_i <- a_i/√d_i; the number of the first row that its neighbours determine, or -1."""
    for r in range(len(variances)):
        if not variances[r] > sizes[r] * _ROUNDING:
            return r
        inverse = 1.0 / math.sqrt(variances[r])
        for k in range(sizes[r]):
            coefficients[r, k] *= inverse
    return -1


@njit(**_COMPILED)
def _differentiate(
    matrices: Array, inverses: Array, members: Indices, sizes: Indices, values: Array, unexplained: Array,
    errors: Array, columns: Array, solved: Array, squares: Array, diagonal: Array,
) -> None:  # fmt: skip
    """L <- derivatives by the pairs P_kh, k > h; those by P_kk as if the diagonal were free."""
    gamma = np.zeros(members.shape[1])
    for r in range(len(sizes)):
        size, u, matrix = sizes[r], values[r], matrices[r]
        gamma[0] = 0.0
        for k in range(1, size):
            row = members[r, k]
            gamma[k] = errors[r] * unexplained[row] + _dot(columns[row], solved[r], 0, columns.shape[1])
        _solve_both(matrix, size, inverses[r], gamma)
        excess = squares[r] - 1.0
        for k in range(size):
            of_u, of_gamma, row = excess * u[k] + gamma[k], u[k], matrix[k]
            for h in range(k):
                row[h] = of_u * u[h] + of_gamma * gamma[h]
            diagonal[r, k, 0] = 0.5 * excess * u[k] * u[k] + gamma[k] * u[k]
        diagonal[r, size:, 0] = 0.0


# The precision --------------------------------------------------------------------------------------------------------


@njit(**_COMPILED)
def _times_transposed(members: Indices, sizes: Indices, values: Array, x: Array) -> Array:
    n, q = len(sizes), x.shape[1]
    out = np.zeros((n, q))
    for i in range(n):
        for k in range(sizes[i]):
            value, row = values[i, k], x[members[i, k]]
            for j in range(q):
                out[i, j] += value * row[j]
    return out


@njit(**_COMPILED)
def _times(starts: Places, columns: Indices, places: Indices, values: Array, x: Array) -> Array:
    n, q = len(starts) - 1, x.shape[1]
    out = np.zeros((n, q))
    for i in range(n):
        for at in range(starts[i], starts[i + 1]):
            value, row = values[places[at]], x[columns[at]]
            for j in range(q):
                out[i, j] += value * row[j]
    return out


def _by_columns(function: Callable[[Array], Array], x: Array) -> Array:
    """A function of columns, of a vector too."""
    columns = np.ascontiguousarray(x.reshape(len(x), -1))
    return function(columns).reshape(x.shape)


class Precision(NamedTuple):
    """V = UUᵀ.

    Attributes
    ----------
    sets
        Where U has its entries.
    values
        a_i/√d_i on S_i, (n, m + 1).
    """

    sets: Sets
    values: Array

    def whiten(self, x: Array) -> Array:
        """Uᵀx, of a vector or of columns."""
        return _by_columns(partial(_times_transposed, self.sets.members, self.sets.sizes, self.values), x)

    def spread(self, x: Array) -> Array:
        """Ux."""
        own = self.sets
        return _by_columns(partial(_times, own.starts, own.columns, own.places, self.values.ravel()), x)

    def apply(self, x: Array) -> Array:
        """Vx."""
        return self.spread(self.whiten(x))

    @property
    def diagonal(self) -> Array:
        """V_ii."""
        out = np.zeros((1, len(self.values)))
        add_up(self.sets.members, self.sets.sizes, self.values[:, :, None] ** 2, out)
        return out[0]

    @property
    def log_det(self) -> float:
        """log |V|."""
        return 2.0 * float(np.log(self.values[:, 0]).sum())


# The likelihood -------------------------------------------------------------------------------------------------------


class Pulled(NamedTuple):
    """What `Pairs.pull` found: for each row, (n_sums, n), and for none of them, (n_totals,)."""

    sums: Array
    totals: Array


def _chunks(n: int, n_threads: int, work: Callable[[slice], Any]) -> Iterator[Any]:
    """What is found for each chunk of rows, in their order."""
    chunks = [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
    if n_threads == 1 or len(chunks) == 1:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, chunks)


def _blocks(chunk: slice, width: int) -> Iterator[slice]:
    """A chunk in pieces whose matrices stay in the cache."""
    step = max(1, _BLOCK // width**2)
    return (slice(start, min(start + step, chunk.stop)) for start in range(chunk.start, chunk.stop, step))


class _Block(NamedTuple):
    """Arrays for the matrices of one block of rows."""

    matrices: Array
    inverses: Array

    @classmethod
    def of(cls, width: int) -> "_Block":
        """For sets of at most so many members."""
        step = max(1, _BLOCK // width**2)
        return cls(np.empty((step, width, width)), np.empty((step, width)))

    def condition(
        self, pairs: Pairs, members: Indices, sizes: Indices, coefficients: Array, variances: Array, strict: bool
    ) -> None:
        """a_i and d_i of each set, and L in the arrays."""
        pairs.fill(members, sizes, self.matrices)
        failed = _factorise(self.matrices, sizes, self.inverses, coefficients, variances)
        if failed >= 0 and strict:
            raise NotPositiveDefiniteError(f"the neighbours of row {members[failed, 0]} have a singular covariance")


def conditionals(
    pairs: Pairs, members: Indices, sizes: Indices, n_threads: int = 1, strict: bool = False
) -> tuple[Array, Array]:
    """a_i = (1; -b_i) and d_i of each set, whose first member may be a new row; d may be zero or less by rounding.

    Neighbours that others determine are left out, or refused where `strict`.
    """
    coefficients, variances = np.empty(members.shape), np.empty(len(sizes))

    def work(chunk: slice) -> None:
        block = _Block.of(members.shape[1])
        for rows in _blocks(chunk, members.shape[1]):
            block.condition(pairs, members[rows], sizes[rows], coefficients[rows], variances[rows], strict)

    for _ in _chunks(len(sizes), n_threads, work):
        pass
    return coefficients, variances


def log_density_of_first(errors: Array, variances: Array, log_total: Array) -> Array:
    """log p(y_i | y_N) in units of y, from aᵀỹ and its variance."""
    variances = np.maximum(variances, np.finfo(float).tiny)
    return -0.5 * (LOG_2PI + np.log(variances) + errors**2 / variances + log_total)


def _normalise_rows(coefficients: Array, variances: Array, members: Indices, sizes: Indices) -> None:
    failed = _normalise(coefficients, variances, sizes)
    if failed >= 0:
        raise NotPositiveDefiniteError(f"row {members[failed, 0]} has no variance left given its neighbours")


def factorise(pairs: Pairs, sets: Sets, n_threads: int = 1) -> Precision:
    """U."""
    values, variances = conditionals(pairs, sets.members, sets.sizes, n_threads, strict=True)
    _normalise_rows(values, variances, sets.members, sets.sizes)
    return Precision(sets, values)


class _Given(NamedTuple):
    """ℓ, Φ̃, ỹ - Φ̃w̄ and Uᵀ(ỹ - Φ̃w̄); UᵀΦ̃C, and ωᵀCω of each row."""

    value: float
    Phi: Array
    unexplained: Array
    errors: Array
    solved: Array
    squares: Array


def _explain(precision: Precision, data: Observed, columns: Columns | None) -> _Given:
    n, errors = len(data.scaled), precision.whiten(data.scaled)
    constant, square = 0.5 * (precision.log_det - float(data.log_total.sum())), float((errors * errors).sum())
    if columns is None:
        none = np.empty((n, 0))
        value = constant - 0.5 * square - 0.5 * n * LOG_2PI
        return _Given(value, none, data.scaled, errors, none, np.zeros(n))
    Phi = columns.Phi * np.exp(-0.5 * data.log_total)[:, None]
    whitened = precision.whiten(Phi)
    value, factor, half = log_marginal_of_sums(*sums_of_columns(whitened, errors), square, n, columns.variances, 1.0)
    weights = np.sqrt(columns.variances) * solve_upper(factor, half)
    errors -= whitened @ weights
    squares = _solve_columns(whitened, precision_of_sums(factor, columns.variances, 1.0))
    return _Given(value + constant, Phi, data.scaled - Phi @ weights, errors, whitened, squares)


def _solve_columns(whitened: Array, C: Array) -> Array:
    """UᵀΦ̃ <- UᵀΦ̃C, some rows at a time; ωᵀCω of each row."""
    squares = np.empty(len(whitened))
    for start in range(0, len(whitened), CHUNK):
        rows = slice(start, start + CHUNK)
        solved = whitened[rows] @ C
        squares[rows] = (solved * whitened[rows]).sum(axis=1)
        whitened[rows] = solved
    return squares


def log_marginal(pairs: Pairs, sets: Sets, data: Observed, columns: Columns | None = None, n_threads: int = 1) -> float:
    """ℓ, with columns if there are any."""
    return _explain(factorise(pairs, sets, n_threads), data, columns).value


class _Reverse(NamedTuple):
    """The reverse mode of rows: U is filled in."""

    pairs: Pairs
    precision: Precision
    unexplained: Array
    given: _Given | None

    def pulled(self, chunk: slice) -> tuple[slice, Array, Array, Array]:
        """Of a chunk of rows: what belongs to each member, the derivatives by P_kk, and totals."""
        sets, width, totals = self.precision.sets, self.precision.values.shape[1], np.zeros(self.pairs.n_totals)
        size, block = chunk.stop - chunk.start, _Block.of(width)
        sums, diagonal = np.empty((size, width, self.pairs.n_sums)), np.empty((size, width, 1))
        for rows in _blocks(chunk, width):
            members, sizes, values = sets.members[rows], sets.sizes[rows], self.precision.values[rows]
            here, variances = slice(rows.start - chunk.start, rows.stop - chunk.start), np.empty(len(sizes))
            block.condition(self.pairs, members, sizes, values, variances, strict=True)
            _normalise_rows(values, variances, members, sizes)
            _differentiate(
                block.matrices, block.inverses, members, sizes, values, self.unexplained, *self._of(rows),
                diagonal[here],
            )  # fmt: skip
            self.pairs.pull(members, sizes, block.matrices, sums[here], totals)
        return chunk, sums, diagonal, totals

    def _of(self, rows: slice) -> tuple[Array, Array, Array, Array]:
        """ε, Φ̃, UᵀΦ̃C, and ε² + ωᵀCω of some rows."""
        if self.given is not None:
            errors, solved = self.given.errors[rows], self.given.solved[rows]
            return errors, self.given.Phi, solved, errors**2 + self.given.squares[rows]
        sets, values = self.precision.sets, self.precision.values[rows]
        errors = _times_transposed(sets.members[rows], sets.sizes[rows], values, self.unexplained[:, None])[:, 0]
        return errors, np.empty((len(self.unexplained), 0)), np.empty((len(errors), 0)), errors**2


def log_marginal_gradient(
    pairs: Pairs, sets: Sets, data: Observed, columns: Columns | None = None, n_threads: int = 1
) -> MarginalGradient:
    """ℓ with its derivatives, `pairs` being :class:`Pulled`: one pass over the rows, or two where there are columns."""
    n, width = sets.members.shape
    precision, given, unexplained = Precision(sets, np.empty((n, width))), None, data.scaled
    if columns is not None:
        precision = factorise(pairs, sets, n_threads)
        given = _explain(precision, data, columns)
        unexplained = given.unexplained
    reverse = _Reverse(pairs, precision, unexplained, given)
    pulled, diagonal = Pulled(np.zeros((pairs.n_sums, n)), np.zeros(pairs.n_totals)), np.zeros((1, n))
    for rows, sums, own, totals in _chunks(n, n_threads, reverse.pulled):
        add_up(sets.members[rows], sets.sizes[rows], sums, pulled.sums)
        add_up(sets.members[rows], sets.sizes[rows], own, diagonal)
        np.add(pulled.totals, totals, out=pulled.totals)
    given = _explain(precision, data, None) if given is None else given
    by_signal, by_noise = _by_variances(precision, given, data, diagonal[0])
    return MarginalGradient(given.value, pulled, by_signal, by_noise)


def _by_variances(precision: Precision, given: _Given, data: Observed, diagonal: Array) -> tuple[Array, Array]:
    """Derivatives by the log variances of process and noise; of both together ½(β(ỹ - Φ̃w̄) - share)."""
    own, beta = precision.sets, precision.spread(given.errors)
    share = 1.0 - _times_rows(own.starts, own.columns, own.places, precision.values.ravel(), given.solved, given.Phi)
    by_noise = (1.0 - data.weight**2) * diagonal
    return 0.5 * (beta * given.unexplained - share) - by_noise, by_noise


@njit(**_COMPILED)
def _times_rows(starts: Places, columns: Indices, places: Indices, values: Array, x: Array, y: Array) -> Array:
    """The diagonal of Uxyᵀ."""
    n, q = len(starts) - 1, x.shape[1]
    out = np.zeros(n)
    for i in range(n):
        for at in range(starts[i], starts[i + 1]):
            out[i] += values[places[at]] * _dot(x[columns[at]], y[i], 0, q)
    return out


def leave_one_out(precision: Precision, data: Observed) -> LeftOut:
    """Each row given all the others, in units of y."""
    return LeftOut.solved(precision.apply(data.scaled), precision.diagonal, np.exp(0.5 * data.log_total))
