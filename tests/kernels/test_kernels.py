"""The arc-cosine functions and the deep recursion, against mpmath, quadrature, networks and their own symmetries."""

import math
from functools import partial

import mpmath as mp
import numpy as np
import pytest

from cadlag import kernels
from cadlag.kernel_process.model import KernelProcess
from cadlag.likelihood import Gaussian

ORDERS = range(6)
DIGITS = 80  # cos θ - 1 reaches 1e-27 at scales of 1e12 and gaps of 1e-7; twice that and 50 digits besides
LOG_10 = math.log(10.0)

assert_allclose = partial(np.testing.assert_allclose, equal_nan=False)


def double_factorial(order):
    """(2δ-1)!!"""
    return math.prod(range(1, 2 * order, 2))


def correlation(points):
    """Correlations of Σ_K as a full matrix."""
    lower = np.tril(kernels.correlations(points, np.ones(points.unit.shape[1])))
    return lower + np.tril(lower, -1).T


def full(points):
    """Σ_K as a full matrix."""
    sd = np.exp(0.5 * points.log_variance)
    return correlation(points) * np.outer(sd, sd)


def inputs(n, p, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


# The recursion at many digits, straight from (1.4), (1.5) and (1.6) --------------------------------------------------


def exact_J(order, theta):
    """(1.4) from J_0 and J_1."""
    c, s = mp.cos(theta), mp.sin(theta)
    last, value = mp.pi - theta, s + (mp.pi - theta) * c
    if order == 0:
        return last
    for n in range(1, order):
        last, value = value, (2 * n + 1) * c * value + n**2 * s**2 * last
    return value


def exact_F(order, A, B, C):
    root = mp.sqrt(A * B)
    cosine = max(min(C / root, mp.mpf(1)), mp.mpf(-1))
    return root**order * exact_J(order, mp.acos(cosine)) / mp.pi


def exact_pair(x, z, log_weights, log_scales, order):
    """(Σ_K)_xx, (Σ_K)_zz, (Σ_K)_xz."""
    weights = [mp.exp(mp.mpf(float(w))) for w in log_weights]
    x, z = [mp.mpf(float(v)) for v in x], [mp.mpf(float(v)) for v in z]
    A, B, C = (mp.fsum(w * a * b for w, a, b in zip(weights, *pair)) for pair in ((x, x), (z, z), (x, z)))
    for log_c in (0.0, *log_scales):
        c = mp.exp(mp.mpf(float(log_c)))
        A, B, C = 1 + c * A, 1 + c * B, 1 + c * C
        A, B, C = exact_F(order, A, A, A), exact_F(order, B, B, B), exact_F(order, A, B, C)
    return A, B, C


def exact_log_likelihood(model, position):
    """log N(y; 0, c_{K+1} Σ_K + σ²I), all at the working precision; `position` may hold mpmath numbers."""
    n, p = model.X.shape
    position = [mp.mpf(v) for v in position]
    c = [mp.mpf(1)] * (model.depth + 1)
    for k, log_c in zip(model.random_layers, position[p:]):
        c[k - 1] = mp.exp(log_c)
    log_d1 = mp.log(p) if model.preset == "published_code" else mp.mpf(0)
    w = [mp.exp(v - log_d1) for v in position[:p]]
    X = [[mp.mpf(float(v)) for v in row] for row in model.X]
    S = mp.matrix(n, n)
    for a in range(n):
        for b in range(n):
            S[a, b] = mp.fsum(w[j] * X[a][j] * X[b][j] for j in range(p))
    for k in range(model.depth):
        M = c[k] * S + mp.ones(n, n)
        for a in range(n):
            for b in range(n):
                S[a, b] = exact_F(model.order, M[a, a], M[b, b], M[a, b])
    noise = mp.exp(position[-1]) if model.noise_variance is None else mp.mpf(float(model.noise_variance))
    factor = mp.cholesky(c[-1] * S + noise * mp.eye(n))
    z = mp.lu_solve(factor, mp.matrix([mp.mpf(float(v)) for v in model.y]))
    return -mp.fsum(mp.log(factor[i, i]) for i in range(n)) - (mp.fdot(z, z) + n * mp.log(2 * mp.pi)) / 2


def exact_gradient(model, position):
    """Central differences of the likelihood at a step that only many digits allow."""
    step, result = mp.mpf(10) ** -25, []
    for i in range(len(position)):
        up, down = [mp.mpf(float(v)) for v in position], [mp.mpf(float(v)) for v in position]
        up[i] += step
        down[i] -= step
        difference = exact_log_likelihood(model, up) - exact_log_likelihood(model, down)
        result.append(float(difference / (2 * step)))
    return np.array(result)


# J_n: identity 5 -----------------------------------------------------------------------------------------------------

ANGLES = np.concatenate([[1e-9, 1e-5, 0.01], np.linspace(0.1, 3.1, 31), math.pi - 10.0 ** -np.arange(2, 7)])


@pytest.mark.parametrize("order", ORDERS)
def test_J_is_its_integral(order):
    """n! sin^(2n+1)θ ∫ cos^n ψ/(1 - cos θ cos ψ)^(n+1) dψ, and the three-term recursion, are the same function."""
    with mp.workdps(30):
        for theta in (0.5, 1.2, math.pi / 2, 2.0, 2.9):
            c, s = mp.cos(theta), mp.sin(theta)
            integral = mp.quad(
                lambda psi, c=c: mp.cos(psi) ** order / (1 - c * mp.cos(psi)) ** (order + 1), [0, mp.pi / 2]
            )
            value = mp.factorial(order) * s ** (2 * order + 1) * integral
            assert abs(exact_J(order, mp.mpf(theta)) / value - 1) < 1e-18
            assert kernels.arc_cosine(order, theta) == pytest.approx(float(value), rel=1e-13)


def test_J_closed_forms():
    theta = np.linspace(0.0, 2.5, 101)
    c, s, rest = np.cos(theta), np.sin(theta), np.pi - theta
    closed = [
        rest,
        s + rest * c,
        3 * s * c + rest * (1 + 2 * c**2),
        4 * s**3 + 15 * s * c**2 + rest * (9 * c + 6 * c**3),
    ]
    for order, expected in enumerate(closed):
        assert_allclose(kernels.arc_cosine(order, theta), expected, rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_J_relative_accuracy_up_to_pi(order):
    """1e-13 relative, besides what half a unit in the last place of θ changes: J_n ~ (π-θ)^(2n+1)."""
    values = kernels.arc_cosine(order, ANGLES)
    with mp.workdps(120):  # (1.4) cancels to φ^(2n+1) near π
        for theta, value in zip(ANGLES, values):
            exact = exact_J(order, mp.mpf(float(theta)))
            allowed = 1e-13 + (2 * order + 1) * 0.5 * np.spacing(theta) / (math.pi - theta)
            assert abs(mp.mpf(float(value)) / exact - 1) < allowed, theta


@pytest.mark.parametrize("order", ORDERS)
def test_J_special_values(order):
    at_right_angle = [math.pi / 2, 1.0, math.pi / 2, 4.0, 4.5 * math.pi, 64.0][order]
    assert kernels.arc_cosine(order, 0.0) == pytest.approx(math.pi * double_factorial(order), rel=1e-15)
    assert kernels.arc_cosine(order, math.pi / 2) == pytest.approx(at_right_angle, rel=1e-14)
    assert kernels.arc_cosine(order, math.pi) == 0.0
    phi = np.array([1e-2, 1e-3])
    leading = math.factorial(order) ** 2 / double_factorial(order + 1) * phi ** (2 * order + 1)
    # The next term is of relative size at most φ² here.
    np.testing.assert_array_less(np.abs(kernels.arc_cosine(order, np.pi - phi) / leading - 1.0), phi**2)


@pytest.mark.parametrize("order", range(1, 6))
def test_J_derivative(order):
    """dJ_n/dcos θ = n² J_{n-1}."""
    c, h = np.linspace(-0.95, 0.95, 39), 1e-3
    J = [kernels.arc_cosine(order, np.arccos(c + k * h)) for k in (-2, -1, 1, 2)]
    slope = (8 * (J[2] - J[1]) - (J[3] - J[0])) / (12 * h)
    scale = order**2 * math.pi * double_factorial(order - 1)
    assert_allclose(slope, order**2 * kernels.arc_cosine(order - 1, np.arccos(c)), atol=1e-8 * scale, rtol=0)


def test_J0_derivative():
    """dJ_0/dcos θ = 1/sin θ."""
    c, h = np.linspace(-0.9, 0.9, 37), 1e-4
    slope = (kernels.arc_cosine(0, np.arccos(c + h)) - kernels.arc_cosine(0, np.arccos(c - h))) / (2 * h)
    assert_allclose(slope, 1.0 / np.sqrt(1.0 - c**2), rtol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_normalised_J(order):
    """Absolute accuracy on all of [-1, 1]; rounding past the ends is harmless."""
    rng = np.random.default_rng(order)
    near = 1.0 - 10.0 ** rng.uniform(-16, 0, 100)
    c = np.concatenate([np.linspace(-1.0, 1.0, 101), near, -near])
    values = kernels.normalised_arc_cosine(order, c)
    with mp.workdps(DIGITS):
        exact = [exact_J(order, mp.acos(mp.mpf(float(v)))) / (mp.pi * double_factorial(order)) for v in c]
        worst = max(abs(mp.mpf(float(v)) - e) for v, e in zip(values, exact))
    assert worst < 2e-15
    past = 1.0 + np.finfo(float).eps
    assert_allclose(kernels.normalised_arc_cosine(order, np.array([past, -past])), [1.0, 0.0], atol=2e-15)


# The kernel map: identities 6, 8, 9, 10, 11 --------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(4))
def test_map_is_twice_the_second_moment(order):
    """F_δ = 2 E[g(u) g(v)], the expectation by Gauss-Legendre over the positive quadrant of the normal density."""
    points = kernels.layers(np.array([[0.8], [-0.5], [1.5]]), np.log([1.7]), [], order)
    F, M = full(points), 1.0 + 1.7 * np.outer([0.8, -0.5, 1.5], [0.8, -0.5, 1.5])
    nodes, weights = np.polynomial.legendre.leggauss(160)
    for k in range(3):
        for h in range(k):
            block = M[np.ix_([k, h], [k, h])]
            reach = 11.0 * np.sqrt(np.diag(block))
            u, v = np.meshgrid(*(0.5 * r * (nodes + 1.0) for r in reach), indexing="ij")
            grid = np.stack([u, v])
            exponent = -0.5 * np.einsum("iab,ij,jab->ab", grid, np.linalg.inv(block), grid)
            density = np.exp(exponent) / (2.0 * np.pi * math.sqrt(np.linalg.det(block)))
            moment = np.einsum("a,b,ab->", weights, weights, (u * v) ** order * density) * reach.prod() / 4.0
            assert F[k, h] == pytest.approx(2.0 * moment, rel=1e-10)
    alone = kernels.layers(np.zeros((1, 1)), np.zeros(1), [], order)
    assert np.exp(alone.log_variance[0]) == pytest.approx(double_factorial(order), rel=1e-14)  # 2 E relu² = 1


@pytest.mark.parametrize("order", ORDERS)
def test_map_is_homogeneous(order):
    """An intercept of weight w makes M = (1 + w)(11ᵀ + Σ_0/(1 + w)): F_δ(rM) = r^δ F_δ(M)."""
    X, w, weights = inputs(6, 2), 3.7, np.array([0.4, 2.5])
    with_intercept = kernels.layers(np.c_[np.ones(6), X], np.log([w, *weights]), [], order)
    without = kernels.layers(X, np.log(weights / (1.0 + w)), [], order)
    assert_allclose(full(with_intercept), (1.0 + w) ** order * full(without), rtol=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_permutations_and_principal_submatrices(order, depth):
    X, log_weights, log_scales = inputs(23, 5), inputs(1, 5, 1)[0], np.linspace(-0.7, 1.0, depth - 1)
    S = full(kernels.layers(X, log_weights, log_scales, order))
    assert np.ptp(S) > 0.1
    rng = np.random.default_rng(3)
    for rows in (rng.permutation(23), rng.choice(23, 9, replace=False)):
        part = full(kernels.layers(X[rows], log_weights, log_scales, order))
        assert_allclose(part, S[np.ix_(rows, rows)], rtol=1e-12, atol=1e-14 * S.max())
    columns = rng.permutation(5)
    turned = full(kernels.layers(X[:, columns], log_weights[columns], log_scales, order))
    assert_allclose(turned, S, rtol=1e-12, atol=1e-14 * S.max())
    new, old = (kernels.layers(part, log_weights, log_scales, order) for part in (X[:9], X[9:]))
    cross = kernels.cross_correlations(new, old) * np.exp(0.5 * np.add.outer(new.log_variance, old.log_variance))
    assert_allclose(cross, S[:9, 9:], rtol=1e-12, atol=1e-14 * S.max())


@pytest.mark.parametrize("order", range(4))
def test_recursion_is_the_plain_one(order, plain_recursion):
    X, s, c = inputs(8, 3), np.array([0.3, 2.0, 1.1]), np.array([0.6, 1.7, 0.9])
    for depth in (1, 2, 3):
        points = kernels.layers(X, np.log(c[0] * s), np.log(c[1:depth]), order)
        assert_allclose(full(points), plain_recursion(X, s, c[:depth], order)[-1], rtol=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("order", ORDERS)
def test_positive_definite_though_rank_one_at_the_start(order, depth):
    """The bias makes inputs on one line pairwise non-parallel: Σ_0 has rank 1, Σ_K is positive definite."""
    x = np.linspace(-2.0, 2.0, 5)[:, None]
    values = np.linalg.eigvalsh(correlation(kernels.layers(x, np.array([0.5]), np.full(depth - 1, -1.0), order)))
    assert values[0] > 1e-8
    assert np.linalg.matrix_rank(x @ x.T) == 1
    X = inputs(40, 3)
    twice = kernels.layers(np.r_[X, X[:5]], np.array([3.0, 9.0, -2.0]), np.ones(depth - 1), order)
    values = np.linalg.eigvalsh(correlation(twice))
    assert values[0] > -1e-10 * values[-1]  # five rows twice: singular, but not negative
    assert values[4] < 1e-10 * values[-1]


@pytest.mark.parametrize("order", ORDERS)
def test_invariances(order):
    X, log_weights, log_scales = inputs(10, 3), np.array([0.4, -1.0, 2.0]), [0.7]
    S = full(kernels.layers(X, log_weights, log_scales, order))
    flipped = full(kernels.layers(X * [1.0, -1.0, 1.0], log_weights, log_scales, order))
    assert_allclose(flipped, S, rtol=1e-12)
    scaled = full(kernels.layers(3.0 * X, log_weights - 2.0 * math.log(3.0), log_scales, order))
    assert_allclose(scaled, S, rtol=1e-12)
    rotation = np.linalg.qr(inputs(3, 3, 5))[0]
    equal = np.full(3, 0.4)
    assert_allclose(
        full(kernels.layers(X @ rotation, equal, log_scales, order)),
        full(kernels.layers(X, equal, log_scales, order)),
        rtol=1e-11,
    )
    rotated = full(kernels.layers(X @ rotation, log_weights, log_scales, order))
    assert np.abs(rotated / S - 1.0).max() > 1e-2  # only if all scales are equal


@pytest.mark.parametrize("order", [1, 2])
def test_invariance_of_the_first_scales(order):
    """published_code: (s, c_1) -> (r s, c_1/r); the theorem has no such freedom."""
    X, y, position = inputs(12, 3), inputs(12, 1)[:, 0], np.array([0.3, -0.8, 1.1, 0.4, -0.2, -0.7])
    move = np.array([1.0, 1.0, 1.0, -1.0, 0.0, 0.0])
    code = KernelProcess(X, y, order=order, depth=2, preset="published_code")
    assert code.log_likelihood(position + 2.3 * move) == pytest.approx(code.log_likelihood(position), rel=1e-12)
    theorem = KernelProcess(X, y, order=order, depth=2)
    assert abs(theorem.log_likelihood(position + 2.3 * move) - theorem.log_likelihood(position)) > 0.1


def test_wide_network():
    """Second moments of two hidden ReLU layers of 10⁴ units with weights of variance s, c_2: F_1/2 within 4.5 s.e."""
    rng, width, c2 = np.random.default_rng(7), 10_000, 0.8
    X, s = inputs(5, 2), np.array([2.0, 0.5])
    first = np.maximum((rng.standard_normal((width, 2)) * np.sqrt(s)) @ X.T + rng.standard_normal((width, 1)), 0.0)
    moment = first.T @ first / width
    error = np.sqrt(((first**2).T @ (first**2) / width - moment**2) / width)
    expected = 0.5 * full(kernels.layers(X, np.log(s), [], 1))
    z = (moment - expected) / error
    assert np.abs(z).max() < 4.5
    # Given the first layer, the units of the second are independent normals with covariance 11ᵀ + c_2·moment.
    root = np.linalg.cholesky(1.0 + c2 * moment)
    second = np.maximum(rng.standard_normal((width, 5)) @ root.T, 0.0)
    moment2 = second.T @ second / width
    own = np.sqrt(((second**2).T @ (second**2) / width - moment2**2) / width)
    inherited = 0.5 * c2 * error.max()  # |∂F| <= 1 in the arguments of F_1, times ½
    expected2 = 0.5 * full(kernels.layers(X, np.log(s), [math.log(0.5 * c2)], 1))
    assert (np.abs(moment2 - expected2) < 4.5 * (own + inherited)).all()
    assert (np.abs(moment2 - 2.0 * expected2) > 10.0 * (own + inherited)).all()  # it does tell ½ from 1


# Fixed vectors: 16 and 17 --------------------------------------------------------------------------------------------

THEOREM = """
0,0.695913276,0.5,0.804086724,1,1,1,-20.558972323,2.407250984,0.403866796
1,1.1460714341,0.6752372371,1.029165803,3,1,1.5,-16.320172120,2.610862500,0.354069055
2,4.8300408543,2.25,3.4895407711,27,3,6.75,-8.720153748,2.697375054,0.375757106
3,33.3187757443,12.1542702681,19.5060354614,405,15,50.625,-8.352053162,2.473084553,0.487100793
"""
X3, Y3 = np.array([[-1.0], [0.0], [0.5]]), np.array([0.0, 1.0, 5.0])


@pytest.mark.parametrize("line", THEOREM.split())
def test_fixed_vectors_of_the_theorem(line):
    order, s12, s13, s23, s11, s22, s33, log_likelihood, mean, variance = map(float, line.split(","))
    model = KernelProcess(X3, Y3, order=int(order), depth=1, preset="theorem", likelihood=Gaussian(0.25))
    position = np.log([2.0, 0.6])
    S = list(model.covariances(position))[-1]
    expected = np.array([[s11, s12, s13], [s12, s22, s23], [s13, s23, s33]])
    assert_allclose(S, expected, rtol=1e-8)
    assert model.log_likelihood(position) == pytest.approx(log_likelihood, rel=1e-8)
    atom = model.condition(position)
    means, variances = atom.moments(np.array([[0.25]]))
    assert means[0] == pytest.approx(mean, rel=1e-8)
    assert variances[0] + atom.noise_variance == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize(
    ("order", "diagonal", "pairs", "log_likelihood"),
    [
        (1, [2.21, 1.61, 1.76], [1.6759915518, 1.5519355391, 1.6208680063], -18.5636234804),
        (0, [1.0, 1.0, 1.0], [0.8792849967, 0.8472701862, 0.9075669684], -22.5596301824),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_fixed_vectors_of_the_published_code(order, diagonal, pairs, log_likelihood, known):
    X = np.c_[np.ones(3), X3]
    options = {"likelihood": Gaussian(0.25)} if known else {}
    model = KernelProcess(X, Y3, order=order, depth=2, preset="published_code", **options)
    position = np.log([0.7, 2.0, 1.5, 0.4] + ([] if known else [0.25]))
    S = list(model.covariances(position))[-1]
    assert_allclose(np.diag(S), diagonal, rtol=1e-8)
    assert_allclose(S[[0, 0, 1], [1, 2, 2]], pairs, rtol=1e-8)
    assert model.log_likelihood(position) == pytest.approx(log_likelihood, rel=1e-8)


# Accuracy ------------------------------------------------------------------------------------------------------------


def random_pair(rng, p):
    """Two inputs: mostly as close as 1e-7, sometimes nearly opposite, sometimes unrelated."""
    x, kind = rng.standard_normal(p), rng.random()
    shift = rng.standard_normal(p)
    shift *= 10.0 ** rng.uniform(-7.0, 0.0) / np.linalg.norm(shift)
    if kind < 0.7:
        return x, x + shift
    return (x, shift - x) if kind < 0.85 else (x, rng.standard_normal(p))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_random_entries(order, depth):
    """112 entries a case, 2016 in all: 1e-12 of the geometric mean of the diagonals, at scales of 1e-4 to 1e12."""
    rng = np.random.default_rng([order, depth])
    errors, log_errors = [], []
    with mp.workdps(DIGITS):
        for i in range(112):
            p = 1 + i % 6
            x, z = random_pair(rng, p)
            log_weights, log_scales = LOG_10 * rng.uniform(-4, 12, p), LOG_10 * rng.uniform(-4, 12, depth - 1)
            A, B, C = exact_pair(x, z, log_weights, log_scales, order)
            both = kernels.layers(np.array([x, z]), log_weights, log_scales, order)
            one, other = (kernels.layers(row[None], log_weights, log_scales, order) for row in (x, z))
            rho = C / mp.sqrt(A * B)
            train = kernels.correlations(both, np.ones(2))[1, 0]
            cross = kernels.cross_correlations(one, other)[0, 0]
            errors += [float(abs(rho - mp.mpf(float(value)))) for value in (train, cross)]
            for exact, value in zip((A, B), both.log_variance):
                # Beyond e^700 only the logarithm exists, with its own rounding.
                log_errors.append(float(abs(mp.log(exact) - mp.mpf(float(value)))) / max(1.0, abs(value) / 700.0))
            log_mean = 0.5 * both.log_variance.sum()
            if abs(log_mean) < 690.0:
                entry = mp.mpf(float(train * math.exp(log_mean)))
                errors.append(float(abs(entry - C) / mp.sqrt(A * B)))
    assert max(errors) < 1e-12
    assert max(log_errors) < 1e-12


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_close_pairs_of_order_zero(depth):
    """ρ = 1 - θ/π feels θ^(1/2^(K-1)) of a pair 1e-7 apart: only exact differences of the inputs keep 1e-12."""
    rng = np.random.default_rng(depth)
    worst = 0.0
    with mp.workdps(DIGITS):
        for i in range(60):
            p = 1 + i % 3
            x, shift = rng.standard_normal(p), rng.standard_normal(p)
            z = x + 1e-7 * shift / np.linalg.norm(shift)
            log_weights, log_scales = LOG_10 * rng.uniform(-2, 4, p), LOG_10 * rng.uniform(0, 12, depth - 1)
            rho = exact_pair(x, z, log_weights, log_scales, 0)[2]
            points = kernels.layers(np.array([x, z]), log_weights, log_scales, 0)
            worst = max(worst, float(abs(rho - mp.mpf(float(kernels.correlations(points, np.ones(2))[1, 0])))))
    assert worst < 1e-12


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_nothing_overflows(order):
    """δ^16 log 1e12 is the log variance after 16 layers."""
    X = np.r_[inputs(6, 2), [[0.0, 0.0]], inputs(1, 2)]
    points = kernels.layers(X, np.full(2, 12 * LOG_10), np.full(15, 12 * LOG_10), order)
    assert np.isfinite(points.log_variance).all()
    assert points.log_variance.max() > 700.0
    rho = kernels.correlations(points, np.ones(8))
    assert np.isfinite(rho).all()
    assert np.abs(rho).max() <= 1.0 + 1e-12
    assert np.isfinite(kernels.cross_correlations(points, points)).all()
    distinct = KernelProcess(X[:7], inputs(7, 1, 2)[:, 0], order=order, depth=16)
    value, gradient = distinct.log_likelihood_gradient(np.append(np.full(18, 12 * LOG_10), 0.0))
    assert np.isfinite(gradient).all()
    assert math.isfinite(value) or value == -math.inf


# Reverse mode --------------------------------------------------------------------------------------------------------

NOISE = ["unknown", "known", "sd"]


def gradient_model(order, depth, preset, noise, alpha=1.0):
    """Nine rows, two of them twice and two 1e-7 apart, and a position with noise of a tenth of the process variance.

    More noise than that is not needed and less makes Λ, with rows twice, too ill conditioned for differences.
    """
    rng = np.random.default_rng([order, depth, len(preset), len(noise)])
    X = rng.standard_normal((9, 3))
    X = np.r_[X, X[:2], X[4:6] + 1e-7 * rng.standard_normal((2, 3))]
    bare = KernelProcess(X, rng.standard_normal(13), alpha, order, depth, preset)
    position = rng.standard_normal(bare.dimension)
    variance = np.diag(list(bare.covariances(position))[-1]).mean() * math.exp(
        bare.log_layer_scale(position, depth + 1)
    )
    if noise == "known":
        known = 0.1 * variance * rng.uniform(0.5, 2.0, 13)
        return KernelProcess(X, math.sqrt(variance) * bare.y, alpha, order, depth, preset, Gaussian(known)), position[
            :-1
        ]
    position[-1] = math.log(0.1 * variance)
    on = "sd" if noise == "sd" else "variance"
    y = math.sqrt(variance) * bare.y
    return KernelProcess(X, y, alpha, order, depth, preset, likelihood=Gaussian(prior_on=on, scale=0.7)), position


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("preset", ["theorem", "prop2", "published_code"])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("order", range(4))
def test_gradient_against_differences(order, depth, preset, noise, central_differences):
    for alpha in (1.0, 1.5):
        model, position = gradient_model(order, depth, preset, noise, alpha)
        for level in (1.0, 0.3):
            value, gradient = model.log_target_gradient(position, level)
            numerical = central_differences(lambda x, m=model, b=level: m.log_target(x, b), position)
            assert value == model.log_target(position, level)
            assert np.linalg.norm(gradient) > 1e-3
            assert np.linalg.norm(gradient - numerical) < 1e-6 * np.linalg.norm(gradient)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("order", range(4))
def test_gradient_against_exact_one(order, depth):
    """To 1e-11, from many digits, where differences of rounded values say little."""
    X = inputs(4, 2, 11)
    X = np.r_[X, X[:1], X[1:2] + 1e-7]
    model = KernelProcess(X, inputs(6, 1, 12)[:, 0], order=order, depth=depth, preset="published_code")
    position = np.append([0.5, -0.7, 0.3, 0.2][: 2 + depth], 0.0)
    position[-1] = math.log(0.1 * np.trace(list(model.covariances(position))[-1]) / 6)
    with mp.workdps(70):
        exact, value = exact_gradient(model, position), float(exact_log_likelihood(model, position))
    found, gradient = model.log_likelihood_gradient(position)
    assert found == pytest.approx(value, rel=1e-11)
    assert_allclose(gradient, exact, rtol=0, atol=1e-11 * np.linalg.norm(exact))


@pytest.mark.parametrize("scale", [1e4, 1e8, 1e12, 1e16, 1e20, 1e24])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gradient_of_order_zero_at_jumps(depth, scale):
    """One input, rows 1e-7 apart and rows across a steep step: θ and π - θ far below rounding of cos θ and of π."""
    X, y = np.array([[0.7], [-0.4], [1.3], [0.7 + 1e-7]]), np.array([1.0, -1.0, 2.0, -0.5])
    for noise in (0.1, 1e-4):
        model = KernelProcess(X, y, order=0, depth=depth, likelihood=Gaussian(noise))
        position = np.append(math.log(scale), np.zeros(depth))
        with mp.workdps(100):
            exact = exact_gradient(model, position)
        _, gradient = model.log_likelihood_gradient(position)
        assert_allclose(gradient, exact, rtol=0, atol=1e-6 * np.linalg.norm(exact))
