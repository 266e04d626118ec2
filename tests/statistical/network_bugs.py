"""Errors planted in the network's moves, one a function; run as a program, since compiled code cannot be patched.

    NUMBA_DISABLE_JIT=1 python -m statistical.network_bugs NAME

prints the largest |z| of the joint-law check of the move that shows the error.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from cadlag.kernel_process.rough import RoughProcess
from cadlag.network import circle, inputs, lattice, scales, sweep, window
from cadlag.network.model import StableNetwork
from cadlag.network.transition import Sweeps
from statistical.network_checks import MOVES, one_move, paired, small_network, sweeps


def lost_jacobian_of_the_input_scales() -> None:
    """S_k and the v_jk moved against each other without (S_k / S_k')^(M/2)."""

    def wrong(rng: Any, model: Any, units: Any) -> Any:
        for k in [*range(model.n_input_scales)] * inputs.N_HELD:
            step, now = inputs._step(rng), float(units.log_inputs[k])
            before, after = model.law.log_density(np.array([now, now + step]))
            squares = float((units.W[:, k + 1] ** 2).sum())
            if math.log(1.0 - rng.random()) < after - before - 0.5 * squares * math.expm1(min(-step, 700.0)):
                units = inputs._with_scale(units, k, now + step)
                units.W[:, k + 1] *= math.exp(-0.5 * step)
        return units

    inputs.hold_directions = wrong


def no_prior_along_the_circle() -> None:
    """θ taken as uniform on a circle through a guess, where its density is cos^(p-2) θ."""
    right = sweep.circle_directions

    def wrong(*arguments: Any) -> Any:
        e, f, _ = right(*arguments)
        return e, f, 0

    sweep.circle_directions = wrong


def stale_square() -> None:
    """φᵀVφ not renewed with the rows that flip."""
    right = window.flip

    def wrong(j: int, flipped: Any, signs: Any, square: float, rows: Any, fit: Any) -> None:
        right(j, flipped, signs, fit.gram[j, j], rows, fit)

    sweep.flip = wrong


def window_that_starts_at_the_unit() -> None:
    """The present angle not at a uniform place in its window, but at its beginning."""
    sweep.start_of_window = lambda rng, present, width: present


def rows_in_reach_overlooked() -> None:
    """Half as far as a window goes: some of the rows that flip in it are not looked at."""
    right = window.sine_between
    window.sine_between = lambda unit, direction: 0.5 * right(unit, direction)


def mass_that_falls_beyond_a_quarter() -> None:
    """∫cos^m where the window goes beyond ±π/2, for ∫|cos|^m."""
    circle.arc_mass = circle.cosine_integral


def stale_inverse() -> None:
    """A unit taken out without giving back what it explained."""

    def wrong(j: int, fit: Any) -> None:
        fit.C[j], fit.C[:, j] = 0.0, 0.0

    sweep.take_out = wrong


def density_of_s_for_log_s() -> None:
    """Candidates on the lattice of log scales weighed by the density of s."""
    right = sweep.scale_lattice

    def wrong(*arguments: Any) -> Any:
        values, log_prior = right(*arguments)
        return values, log_prior - values

    sweep.scale_lattice = wrong


def guess_that_knows_the_unit() -> None:
    """The circle goes through a point that depends on where the unit is."""

    def wrong(rng: Any, j: int, rows: Any, W: Any, fit: Any) -> Any:
        return np.abs(W[j])

    sweep.informed_direction = wrong


def scales_drawn_where_visits_depend_on_them() -> None:
    """Units visited in proportion to a_j have their scales drawn as well."""
    right = sweep.visit_units

    def wrong(rng: Any, n_visits: int, rows: Any, members: Any, fit: Any, law: Any) -> None:
        for _ in range(n_visits):
            reach = np.exp(0.5 * (members.log_s - members.log_s.max()))
            j = rng.choice(len(reach), size=1, p=reach / reach.sum())
            right(rng, j, rows, members, fit, law, sweep.POLISH._replace(scaled=True))

    sweep.polish_units = wrong


def wrong_length() -> None:
    """|w|² of a sign unit drawn with a degree of freedom too few."""
    right = circle.at_angle

    def wrong(rng: Any, theta: float, e: Any, f: Any) -> Any:
        direction = right(rng, theta, e, f)
        return direction * math.sqrt(rng.chisquare(len(e) - 1)) / np.linalg.norm(direction)

    sweep.at_angle = wrong


def missing_half() -> None:
    """a²t²/(1 + a²S) without the ½."""

    def wrong(variance: float, precision: float, pull: float) -> float:
        spread = variance * precision
        return -0.5 * math.log1p(spread) + variance * pull * pull / (1.0 + spread)

    lattice.gain = wrong


def lost_jacobian_of_the_amplitude() -> None:
    """The density of τ where that of log τ belongs."""
    right = scales.log_half_cauchy
    scales.log_half_cauchy = lambda log_z: right(log_z) - log_z


def largest_no_longer_largest() -> None:
    """The r largest scales shifted against τ though others overtake them."""

    def shift(rng: Any, log_s: Any, log_tau: float, noise: float, priors: Any, *rest: Any) -> Any:
        gram, products, square, n, value = rest
        r, step = min(int((len(log_s) + 1.0) ** rng.random()), len(log_s)), scales.width(rng)
        top, shifted = np.argsort(-log_s)[:r], log_s.copy()
        shifted[top] -= 2.0 * step
        density = lambda x: float(np.sum(scales.density_of_log(x, *priors.table)[0]))  # noqa: E731
        prior = scales.log_half_cauchy(log_tau + step) - scales.log_half_cauchy(log_tau)
        prior += density(shifted[top]) - density(log_s[top])
        variances = scales.all_variances(2.0 * (log_tau + step) + priors.log_factor, shifted, priors.fixed)
        proposed = scales.log_marginal_of_sums(gram, products, square, n, variances, noise)[0]
        if math.log(1.0 - rng.random()) < proposed - value + prior:
            log_s[:] = shifted
            return log_tau + step, proposed
        return log_tau, value

    scales.shift_largest = shift


def present_point_always_first() -> None:
    """A lattice of angles that starts at the present one."""

    right = lattice.ellipse

    def wrong(rng: Any, direction: Any, n_angles: int, X: Any) -> Any:
        angles = np.arange(n_angles) * 0.5 / n_angles
        return right(rng, direction, n_angles, X)._replace(cosines=np.cos(angles), sines=np.sin(angles), present=0)

    sweep.ellipse = wrong


def floor_that_stays() -> None:
    """The noise floor of warm-up still there in the sampling."""
    right = Sweeps._walk
    Sweeps._walk = lambda self, rng, model, units, sums, ground, floor: right(
        self, rng, model, units, sums, ground, 1.0
    )


def stale_bulk() -> None:
    """Units drawn against the bulk and noise of before these moved."""
    right = Sweeps._move_bulk

    def wrong(self: Sweeps, rng: Any, units: Any, state: Any, floor: float, iteration: int) -> Any:
        moved, *rest = right(self, rng, units, state, floor, iteration)
        stale = StableNetwork.ground(self.target, units, floor)
        self.target.__dict__["ground"] = lambda *_: stale
        return moved, *rest

    Sweeps._move_bulk = wrong


def step_size_that_adapts_for_ever() -> None:
    """The trajectory of the bulk shorter where the noise is small."""
    right = Sweeps._move_bulk

    def wrong(self: Sweeps, rng: Any, units: Any, state: Any, floor: float) -> Any:
        return right(self, rng, units, {**state, "step_size": 1.0 if units.log_v > 0.0 else 0.02}, floor)

    Sweeps._move_bulk = wrong


def density_of_c_for_log_c() -> None:
    """The amplitudes of the bulk's parts without the Jacobian of the logarithm."""
    right = RoughProcess.prior_of_scales

    def wrong(self: RoughProcess, log_scales: Any) -> tuple[float, Any]:
        value, slopes = right(self, log_scales)
        slopes[-2:] -= 0.5
        return value - 0.5 * float(log_scales[-2:].sum()), slopes

    RoughProcess.prior_of_scales = wrong


IN_PYTHON = {stale_bulk, density_of_c_for_log_c}  # patched where nothing is compiled, so that what is can stay so
LONG = {"n_replications": 8000}  # where a draw is moved so little that only many show it

# The move that shows each; "sweeps" are all of them together, with the settings of small_network that follow.
BUGS: dict[Callable[[], None], tuple[str, dict[str, Any]]] = {
    lost_jacobian_of_the_input_scales: ("inputs", {}),
    no_prior_along_the_circle: ("circle", {"n_inputs": 5, **LONG}),
    stale_square: ("circle, bulk", {}),
    stale_inverse: ("circle", {}),
    window_that_starts_at_the_unit: ("window of 2.0", {}),
    rows_in_reach_overlooked: ("window of 0.5, many rows", {}),
    mass_that_falls_beyond_a_quarter: ("window of 2.0", LONG),
    density_of_s_for_log_s: ("lattice", {}),
    guess_that_knows_the_unit: ("circle", LONG),
    scales_drawn_where_visits_depend_on_them: ("polish", {}),
    wrong_length: ("circle", {}),
    missing_half: ("lattice", {}),
    lost_jacobian_of_the_amplitude: ("scales", {}),
    largest_no_longer_largest: ("scales", {}),
    present_point_always_first: ("lattice", {"activation": "relu"}),
    floor_that_stays: ("scales", {}),
    stale_bulk: ("sweeps", {"bulk_depth": 1, "n_replications": 20_000}),
    step_size_that_adapts_for_ever: ("bulk", {}),
    density_of_c_for_log_c: ("bulk, rough", {}),
}


def settings_of(move: str) -> dict[str, Any]:
    """Those of the network that a move is checked on."""
    return MOVES[move][0] if move in MOVES else {}


def largest_z(move: str, options: dict[str, Any]) -> float:
    """The check of a move."""
    settings = {"activation": "auto", "alpha": 1.2, "n_replications": 2000, **settings_of(move), **options}
    n_replications = settings.pop("n_replications")
    advance = sweeps if move == "sweeps" else one_move(move)
    return float(np.nanmax(np.abs(paired(small_network(**settings), advance, n_replications, 71))))


if __name__ == "__main__":
    plant = {bug.__name__: bug for bug in BUGS}[sys.argv[1]]
    plant()
    print(largest_z(*BUGS[plant]))
