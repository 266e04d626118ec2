"""ZZ.mean, ZZ.q1, ZZ.med, ZZ.q2 of R's tgp on three simulations: what `tests/reference/test_tgp.py` compares with.

`make tgp-reference` runs `tgp_reference.R` and writes two files. `tgp_quantiles.csv` has a row for each test input: the
mean over several chains, each with a seed of its own, of each statistic, and its standard deviation from chain to
chain. `tgp_states.csv` has a row for each of a few states of a chain: its unknowns, and what tgp computes of them at
the test inputs. The last problem has as many test as training rows, where tgp ties row i to row i. With `--long-chains`
it writes only `tgp_long_chains.csv`: states of two long chains on the problem where chains move most slowly.
"""

import argparse
import csv
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cadlag.datasets import simulate

STATISTICS = ("mean", "q05", "q50", "q95")
STATE = ("lambda", "ldetK", "s2", "nug")
BURN, TOTAL, EVERY = 2000, 12_000, 2
LONG_SEEDS, LONG_ROUNDS = (11, 12), (2000, 52_000, 10)
HERE = Path(__file__).parent


class Problem(NamedTuple):
    """The first `n_train` rows of a simulation, and every `step`-th of its test rows up to `stop`."""

    data: str
    correlation: str
    scaled: bool
    n_train: int
    stop: int
    step: int


PROBLEMS = (
    Problem("1d", "expsep", True, 40, 100, 5),
    Problem("1d", "matern", False, 40, 100, 5),
    Problem("2d", "expsep", True, 49, 81, 4),
    Problem("2d", "matern", False, 49, 81, 4),
    Problem("10d", "expsep", True, 40, 20, 1),
    Problem("10d", "matern", False, 40, 20, 1),
    Problem("10d", "matern", False, 40, 40, 1),
)
SLOW = PROBLEMS[3]  # its nugget moves so slowly that ten thousand rounds are too few


def r_is_there() -> bool:
    """Whether R and tgp can be run."""
    command = ["Rscript", "-e", "stopifnot(requireNamespace('tgp', quietly = TRUE))"]
    return shutil.which("Rscript") is not None and subprocess.run(command, capture_output=True).returncode == 0


def run_script(script: str, problem: Problem, settings: tuple[object, ...], names: tuple[str, ...]) -> list[np.ndarray]:
    """The tables that a script of R writes, columns by name."""
    data = simulate(problem.data, 0)
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(f"{folder}/x.csv", data.X_train[: problem.n_train], delimiter=",")
        np.savetxt(f"{folder}/y.csv", data.y_train[: problem.n_train])
        np.savetxt(f"{folder}/xx.csv", data.X_test[: problem.stop : problem.step], delimiter=",")
        command = ["Rscript", HERE / script, folder, problem.correlation, str(problem.scaled).upper(), *settings]
        # While it runs tgp writes its traces to the working directory.
        subprocess.run([str(part) for part in command], check=True, cwd=folder)
        return [np.genfromtxt(f"{folder}/{name}.csv", delimiter=",", names=True) for name in names]


def run_r(problem: Problem, repeats: int, rounds: tuple[int, int, int]) -> list[np.ndarray]:
    """Statistics of each chain, and states of a short one."""
    return run_script("tgp_reference.R", problem, (repeats, *rounds), ("runs", "states"))


def long_chain_rows(seed: int) -> list[list[object]]:
    """Every tenth kept state of a long chain."""
    (chain,) = run_script("tgp_chains.R", SLOW, (seed, *LONG_ROUNDS), ("chain",))
    return [[seed, *(f"{value:.6g}" for value in state)] for state in chain[9::10]]


def quantile_rows(problem: Problem, runs: np.ndarray, repeats: int) -> list[list[object]]:
    """A row for each test input."""
    table = np.stack([runs[name].reshape(repeats, -1) for name in STATISTICS], axis=2)
    numbers = np.stack([table.mean(axis=0), table.std(axis=0, ddof=1)], axis=2).reshape(table.shape[1], -1)
    return [
        [*problem, row, repeats, *(f"{value:.6g}" for value in line)]
        for row, line in zip(range(0, problem.stop, problem.step), numbers)
    ]


def state_rows(problem: Problem, states: np.ndarray) -> list[list[object]]:
    """A row for each state; ranges, means and variances are lists."""
    names = states.dtype.names or ()
    lists = [
        [name for name in names if name.startswith(start) and name not in STATE] for start in ("d", "mean", "variance")
    ]
    return [
        [*problem, *(state[name] for name in STATE), *(" ".join(str(state[name]) for name in part) for part in lists)]
        for state in states
    ]


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    """A file that is complete or absent."""
    aside = path.with_suffix(".tmp")
    with aside.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    aside.replace(path)
    print(path)


def main() -> None:
    """Run everything and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE.parent / "tests" / "reference", help="directory")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--states-only", action="store_true", help="leave out the long chains and their file")
    parser.add_argument("--long-chains", action="store_true", help="only the file of long chains")
    options = parser.parse_args()
    if not r_is_there():
        parser.exit(2, "This needs R with its package tgp: on Debian, apt-get install r-base-core r-cran-tgp\n")
    if options.long_chains:
        rows = [row for seed in LONG_SEEDS for row in long_chain_rows(seed)]
        write(options.out / "tgp_long_chains.csv", ["seed", "d", "nug", "s2", "a0", "g0"], rows)
        return
    repeats, rounds = (1, (2, 4, 2)) if options.states_only else (options.repeats, (BURN, TOTAL, EVERY))
    tables = [(problem, *run_r(problem, repeats, rounds)) for problem in PROBLEMS]
    lists = [row for problem, _, states in tables for row in state_rows(problem, states)]
    write(options.out / "tgp_states.csv", [*Problem._fields, *STATE, "ranges", "means", "variances"], lists)
    if not options.states_only:
        spread = [name for each in STATISTICS for name in (each, f"{each}_sd")]
        lines = [row for problem, runs, _ in tables for row in quantile_rows(problem, runs, repeats)]
        write(options.out / "tgp_quantiles.csv", [*Problem._fields, "row", "repeats", *spread], lines)


if __name__ == "__main__":
    main()
