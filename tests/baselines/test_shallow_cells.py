"""Cells of sign units: probabilities in closed form, counts, and how new inputs cut them."""

import math

import numpy as np
import pytest

from cadlag.baselines.shallow_stable.cells import (
    cells_by_simulation,
    cells_in_the_plane,
    cells_on_a_line,
    find_cells,
    find_neighbours,
)

RNG = np.random.default_rng(8)
LINE = RNG.standard_cauchy((9, 1))
PLANE = RNG.normal(size=(8, 2))


def grid(n):
    side = np.linspace(-1.0, 1.0, n)
    return np.array([(a, b) for b in side for a in side])


def kernel(X):
    """1 - 2θ/π, θ the angle between (1, x) and (1, x')."""
    rows = np.column_stack([np.ones(len(X)), X])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return 1.0 - 2.0 / math.pi * np.arccos(np.clip(rows @ rows.T, -1.0, 1.0))


def as_dict(cells):
    return {row.tobytes(): q for row, q in zip(cells.patterns, cells.probabilities, strict=True)}


@pytest.mark.parametrize(
    "X",
    [LINE, PLANE, grid(4), grid(7), 1e6 * PLANE, 1e-6 * PLANE, np.vstack([PLANE, PLANE[:3]]), LINE[[0, 1, 0, 2]],
     LINE[:1], PLANE[:1], PLANE[:2], np.column_stack([LINE, LINE]), np.zeros((3, 2))],
)  # fmt: skip
def test_probabilities_add_to_one_and_give_the_kernel(X):
    cells = find_cells(RNG, X)
    q, patterns = cells.probabilities, cells.patterns.astype(float)
    assert q.min() > 0.0
    assert q.sum() == pytest.approx(1.0, abs=1e-13)
    assert np.all(patterns[:, 0] == 1.0)
    assert np.all(np.abs(patterns) == 1.0)
    assert len(as_dict(cells)) == len(q)
    np.testing.assert_allclose((patterns.T * q) @ patterns, kernel(X), atol=3e-8)


def test_kernel_to_rounding():
    """Arccos loses digits near 0: the angle is a difference of atans on a line, an atan2 of products in the plane."""
    cells = cells_on_a_line(LINE)
    angles = np.abs(np.arctan(LINE) - np.arctan(LINE.T))
    np.testing.assert_allclose(
        (cells.patterns.T * cells.probabilities) @ cells.patterns, 1 - 2 * angles / np.pi, atol=1e-14
    )
    plane = cells_in_the_plane(PLANE)
    rows = np.column_stack([np.ones(len(PLANE)), PLANE])
    angles = np.arctan2(np.linalg.norm(np.cross(rows[:, None], rows[None]), axis=2), rows @ rows.T)
    np.testing.assert_allclose(
        (plane.patterns.T * plane.probabilities) @ plane.patterns, 1 - 2 * angles / np.pi, atol=1e-14
    )


@pytest.mark.parametrize(
    ("X", "count"), [(LINE, 9), (PLANE, 29), (RNG.normal(size=(20, 2)), 191), (grid(4), 87), (grid(7), 749)]
)
def test_counts(X, count):
    """N on a line, N(N - 1)/2 + 1 in general position in the plane; 87 on a grid of 16 is the specification's."""
    assert len(find_cells(RNG, X).probabilities) == count


def test_line_in_closed_form():
    cells = as_dict(cells_on_a_line(np.array([[0.0], [1.0], [-1.0]])))
    expected = {(1, 1, 1): 0.5, (1, -1, 1): 0.25, (1, 1, -1): 0.25}
    assert cells == pytest.approx({np.array(k, dtype=np.int8).tobytes(): q for k, q in expected.items()})


def test_points_on_a_line_in_the_plane():
    line, plane = as_dict(cells_on_a_line(LINE)), as_dict(cells_in_the_plane(np.column_stack([LINE, 0 * LINE])))
    assert line == pytest.approx(plane, abs=1e-13)


@pytest.mark.parametrize("X", [LINE, PLANE, grid(4)])
def test_dropping_a_point_adds_probabilities(X):
    merged = {}
    cells = find_cells(RNG, X)
    for row, q in zip(cells.patterns, cells.probabilities):
        rest = row[1:] * row[1]
        merged[rest.tobytes()] = merged.get(rest.tobytes(), 0.0) + q
    assert merged == pytest.approx(as_dict(find_cells(RNG, X[1:])), abs=1e-13)


def test_rotation_about_the_origin_changes_nothing():
    """The probabilities do not depend on where angles begin."""
    turn = np.array([[math.cos(1.0), -math.sin(1.0)], [math.sin(1.0), math.cos(1.0)]])
    assert as_dict(cells_in_the_plane(grid(4))) == pytest.approx(as_dict(cells_in_the_plane(grid(4) @ turn)), abs=1e-13)


def test_simulated_units_fall_in_the_cells():
    """An independent way to the same probabilities."""
    units = np.random.default_rng(3).standard_normal((50_000, 3))
    signs = np.where(units[:, :1] + units[:, 1:] @ PLANE.T > 0, 1, -1).astype(np.int8)
    names, counts = np.unique(signs * signs[:, :1], axis=0, return_counts=True)
    exact = as_dict(cells_in_the_plane(PLANE))
    found = {row.tobytes(): c / len(units) for row, c in zip(names, counts)}
    assert set(found) <= set(exact)
    for name, q in exact.items():
        assert found.get(name, 0.0) == pytest.approx(q, abs=4.5 * math.sqrt(q / len(units)) + 1e-5)


@pytest.mark.parametrize(
    ("X", "new"),
    [(LINE, RNG.standard_cauchy((12, 1))), (PLANE, 1.5 * RNG.normal(size=(12, 2))), (grid(4), 1.3 * grid(3)),
     (PLANE[:1], PLANE[1:3]), (LINE[:1], LINE[1:3]), (np.column_stack([LINE, 2.0 * LINE]), PLANE),
     (RNG.normal(size=(6, 3)), RNG.normal(size=(5, 3)))],
)  # fmt: skip
def test_shares_are_those_of_finer_cells(X, new):
    cells = find_cells(np.random.default_rng(1), X)
    shares = cells.shares(new)
    assert shares.shape == (len(new), len(cells.probabilities))
    for i in range(len(new)):
        finer = as_dict(cells.refine(new[i : i + 1]))
        for row, q, share in zip(cells.patterns, cells.probabilities, shares[i]):
            positive, negative = (finer.get(np.append(row, np.int8(s)).tobytes(), 0.0) for s in (1, -1))
            assert positive + negative == pytest.approx(q, abs=1e-12)
            assert positive == pytest.approx(share * q, abs=1e-12)


@pytest.mark.parametrize("X", [LINE, PLANE, grid(4)])
def test_training_points_cut_nothing(X):
    cells = find_cells(RNG, X)
    np.testing.assert_array_equal(cells.shares(X), (cells.patterns.T + 1) / 2)


def test_new_points_cut_few_cells():
    """One of a line's; of a plane's no more than one for each point."""
    shares = cells_on_a_line(LINE).shares(RNG.standard_cauchy((50, 1)))
    np.testing.assert_array_equal(((shares > 0.0) & (shares < 1.0)).sum(axis=1), 1)
    shares = cells_in_the_plane(PLANE).shares(RNG.normal(size=(50, 2)))
    np.testing.assert_array_equal(((shares > 0.0) & (shares < 1.0)).sum(axis=1), len(PLANE))


@pytest.mark.parametrize("X", [LINE, PLANE, np.vstack([PLANE, PLANE[:3]])])
def test_neighbours_differ_at_one_point(X):
    cells = find_cells(RNG, X)
    first, neighbours = find_neighbours(cells.patterns)
    distinct = np.unique(cells.patterns, axis=1)
    pairs = set()
    for i in range(len(distinct)):
        for j in neighbours[first[i] : first[i + 1]]:
            differ = int((distinct[i] != distinct[j]).sum())
            assert min(differ, distinct.shape[1] - differ) == 1
            pairs.add((i, int(j)))
    assert {(j, i) for i, j in pairs} == pairs
    by_hand = {
        (i, j)
        for i in range(len(distinct))
        for j in range(len(distinct))
        if int((distinct[i] != distinct[j]).sum()) in (1, distinct.shape[1] - 1)
    }
    assert pairs == by_hand


def test_published_probabilities():
    """The constant pattern has a plus sign; ranks of unsorted inputs permute the others; ties are truncated."""
    x = np.array([[1.0], [-1.0], [0.0]])
    cells = cells_on_a_line(x, emulate_published=True)
    ranked = np.array([0.25, 0.25, 1.5])[[2, 0, 1]]  # by the ranks 3, 1, 2
    np.testing.assert_allclose(cells.probabilities, ranked)
    np.testing.assert_array_equal(cells.patterns, [[1, -1, 1], [1, -1, -1], [1, 1, 1]])
    in_order = cells_on_a_line(np.sort(x, axis=0), emulate_published=True)
    np.testing.assert_allclose(in_order.probabilities, [0.25, 0.25, 1.5])
    ties = cells_on_a_line(np.array([[0.0], [0.0], [1.0]]), emulate_published=True)
    # ranks 1.5, 1.5, 3: both truncate to 1, whose gap is empty, so that row is deleted
    np.testing.assert_allclose(ties.probabilities, [1.25])


def test_simulation_in_more_dimensions():
    X = RNG.normal(size=(5, 3))
    cells = cells_by_simulation(np.random.default_rng(0), X)
    assert len(cells.probabilities) == 15  # of 1 + 4 + 6 + 4
    np.testing.assert_allclose((cells.patterns.T * cells.probabilities) @ cells.patterns, kernel(X), atol=0.03)
    many = cells_by_simulation(np.random.default_rng(0), RNG.normal(size=(100, 10)))
    assert 200 < len(many.probabilities) <= 400
