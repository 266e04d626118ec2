"""Functions that jump off the origin, along lines and round a disc, and two that do not jump; noise of sd 0.5.

Each replicate is drawn from a name and a seed.

    one        one jump                                       60 equispaced inputs on [-1, 1]
    two, five  two jumps, five jumps                          100 of them
    trend      f(x) = 2 sin 4x + 4 1{x > u}                   60 of them
    oblique2   two jumps across oblique lines                 200 uniform inputs on [-1, 1]²
    oblique5   the same in x1 and x2, three inputs idle       300 uniform inputs on [-1, 1]⁵
    disc       f(x) = 5·1{|x - c| < r} + x1                   300 uniform inputs on [-1, 1]²
    smooth     f(x) = 2 sin 4x, no jump                       60 equispaced inputs on [-1, 1]
    friedman   half of Friedman's (1991) function, no jump    200 uniform inputs on [-1, 1]¹⁰, five idle

Places are uniform on [-0.85, 0.85], at least 0.15 apart; heights are ±U(4, 6), 4 on the trend. An oblique line's normal
makes an angle of 15° to 75° with both axes, one line in either diagonal direction, 0.4 at most from the origin. The
disc's centre is uniform on [-0.4, 0.4]², its radius on [0.3, 0.6]. A cell
is the spacing of the training inputs: 2 / (n - 1) on the line, and in several dimensions 2 / √n, the spacing of as many
rows on a square grid over the two inputs that matter. Test inputs, 500 equispaced or 1000 uniform, are near a jump when
at most a cell from its place or its line.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadlag.datasets import NOISE_STD

Array = NDArray[np.float64]

_EDGE, _APART = 0.85, 0.15
_HEIGHTS, _TREND_HEIGHT = (4.0, 6.0), 4.0
_TILTS, _FARTHEST = (15.0, 75.0), 0.4
_RADII, _DISC_HEIGHT = (0.3, 0.6), 5.0
_N_TEST_LINE, _N_TEST = 500, 1000


@dataclass(frozen=True, eq=False)
class Problem:
    """One replicate: rows to learn from, rows to predict, and where the function jumps.

    Attributes
    ----------
    X, y
        Training inputs (n, p) and responses (n,).
    X_test, f_test, y_test
        Test inputs (m, p), the function there, and responses.
    places
        Where it jumps on the line, in increasing order; empty in several dimensions.
    distance
        Of each test input to the nearest jump.
    cell
        Distance below which an input is near a jump.
    """

    X: Array
    y: Array
    X_test: Array
    f_test: Array
    y_test: Array
    places: Array
    distance: Array
    cell: float

    @property
    def near(self) -> NDArray[np.bool_]:
        """Which test inputs are near a jump."""
        return self.distance <= self.cell


@dataclass(frozen=True, eq=False)
class Jumps:
    """Steps Σ_k height_k 1{normal_k·x > offset_k}, the normals of unit length."""

    normals: Array
    offsets: Array
    heights: Array

    def gaps(self, X: Array) -> Array:
        """Signed distances to the places, (n, k)."""
        return X @ self.normals.T - self.offsets

    def __call__(self, X: Array) -> Array:
        """The sum of the steps."""
        return (self.gaps(X) > 0.0) @ self.heights


@dataclass(frozen=True, eq=False)
class Discs(Jumps):
    """Steps Σ_k height_k 1{|x - centre_k| < radius_k}, with centres for normals and radii for offsets."""

    def gaps(self, X: Array) -> Array:
        """Signed distances to the edges, positive inside, (n, k)."""
        return self.offsets - np.linalg.norm(X[:, None] - self.normals, axis=2)


@dataclass(frozen=True)
class Scenario:
    """What is drawn: sizes, the law of the jumps, and a smooth function to add to them."""

    n_rows: int
    n_inputs: int
    jumps: Callable[[np.random.Generator, int], Jumps]
    n_jumps: int
    smooth: Callable[[Array], Array] | None = None

    @property
    def on_line(self) -> bool:
        """Whether there is one input."""
        return self.n_inputs == 1

    @property
    def has_places(self) -> bool:
        """Whether there are jumps on the line."""
        return self.on_line and self.n_jumps > 0


def _heights(rng: np.random.Generator, n_jumps: int) -> Array:
    return rng.choice([-1.0, 1.0], size=n_jumps) * rng.uniform(*_HEIGHTS, size=n_jumps)


def _on_line(rng: np.random.Generator, n_jumps: int) -> Jumps:
    """Jumps at sorted places that keep their distance."""
    free = rng.uniform(-_EDGE, _EDGE - _APART * (n_jumps - 1), size=n_jumps)
    places = np.sort(free) + _APART * np.arange(n_jumps)
    return Jumps(np.ones((n_jumps, 1)), places, _heights(rng, n_jumps))


def _upwards(rng: np.random.Generator, n_jumps: int) -> Jumps:
    """Jumps on the line, all of the trend's height."""
    drawn = _on_line(rng, n_jumps)
    return Jumps(drawn.normals, drawn.offsets, np.full(n_jumps, _TREND_HEIGHT))


def _oblique(n_inputs: int) -> Callable[[np.random.Generator, int], Jumps]:
    """Jumps across lines in the plane of the first two inputs."""

    def draw(rng: np.random.Generator, n_jumps: int) -> Jumps:
        angles = np.deg2rad(rng.uniform(*_TILTS, size=n_jumps) + 90.0 * (np.arange(n_jumps) % 2))
        normals = np.zeros((n_jumps, n_inputs))
        normals[:, 0], normals[:, 1] = np.cos(angles), np.sin(angles)
        return Jumps(normals, rng.uniform(-_FARTHEST, _FARTHEST, size=n_jumps), _heights(rng, n_jumps))

    return draw


def _discs(rng: np.random.Generator, n_jumps: int) -> Discs:
    """Discs in the plane."""
    centres = rng.uniform(-_FARTHEST, _FARTHEST, size=(n_jumps, 2))
    return Discs(centres, rng.uniform(*_RADII, size=n_jumps), np.full(n_jumps, _DISC_HEIGHT))


def _slope(X: Array) -> Array:
    return X[:, 0]


def _wave(X: Array) -> Array:
    return 2.0 * np.sin(4.0 * X[:, 0])


def _friedman(X: Array) -> Array:
    u = 0.5 * (X + 1.0)
    return 5.0 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 10.0 * (u[:, 2] - 0.5) ** 2 + 5.0 * u[:, 3] + 2.5 * u[:, 4]


SCENARIOS: dict[str, Scenario] = {
    "one": Scenario(60, 1, _on_line, 1),
    "two": Scenario(100, 1, _on_line, 2),
    "five": Scenario(100, 1, _on_line, 5),
    "trend": Scenario(60, 1, _upwards, 1, _wave),
    "oblique2": Scenario(200, 2, _oblique(2), 2),
    "oblique5": Scenario(300, 5, _oblique(5), 2),
    "disc": Scenario(300, 2, _discs, 1, _slope),
    "smooth": Scenario(60, 1, _on_line, 0, _wave),
    "friedman": Scenario(200, 10, _oblique(10), 0, _friedman),
}


def _inputs(rng: np.random.Generator, scenario: Scenario) -> tuple[Array, Array, float]:
    """Training inputs, test inputs, and the length of a cell."""
    n = scenario.n_rows
    if scenario.on_line:
        edges = np.linspace(-1.0, 1.0, _N_TEST_LINE + 1)
        return np.linspace(-1.0, 1.0, n)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None], 2.0 / (n - 1)
    X, X_test = (rng.uniform(-1.0, 1.0, size=(rows, scenario.n_inputs)) for rows in (n, _N_TEST))
    return X, X_test, 2.0 / n**0.5


def make_problem(name: str, seed: int) -> Problem:
    """Draw one replicate; each name has its own streams."""
    scenario = SCENARIOS[name]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(name.encode())))
    jumps = scenario.jumps(rng, scenario.n_jumps)
    X, X_test, cell = _inputs(rng, scenario)
    f, f_test = (jumps(x) + (scenario.smooth(x) if scenario.smooth else 0.0) for x in (X, X_test))
    y, y_test = (values + NOISE_STD * rng.standard_normal(len(values)) for values in (f, f_test))
    places = jumps.offsets if scenario.on_line else np.empty(0)
    return Problem(X, y, X_test, f_test, y_test, places, np.abs(jumps.gaps(X_test)).min(axis=1, initial=np.inf), cell)
