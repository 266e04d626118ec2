"""Milliseconds of the units' part of a sweep, at an equal number of visits: this tree beside another revision.

    git worktree add /tmp/base 950e9a1
    python -m benchmarks.units_part --base /tmp/base [--data yacht,energy] [--rounds 3]

With the bulk and without, one chain of each revision warms up; then every unit is visited once with its scale and kind
and, as often again, some units' directions alone, from where that chain stands. The two revisions take turns; medians
over turns.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from cadlag import StableNetworkRegressor
from cadlag.datasets import load_dataset

DATA = ("yacht", "energy")
N_SWEEPS, WARMUP = 60, 150
TARGET = 3.0


def milliseconds(name: str, bulk: bool) -> float:
    """Of one sweep's visits, by whichever revision is imported."""
    data = load_dataset(name, 0)
    model = StableNetworkRegressor(n_warmup=WARMUP, n_draws=1, n_chains=1, bulk=bulk, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X_train, data.y_train)
    target, rng = model.model_, np.random.default_rng(0)
    kernel, units = _sweeps()(target, 0), target.read(model.posterior_.positions[0, -1])
    ground, spent = target.ground(units, 0.0), []
    for _ in range(N_SWEEPS):
        started = time.perf_counter()
        kernel._sweep(rng, units, ground, target.n_units)
        spent.append(time.perf_counter() - started)
    return 1e3 * float(np.median(spent))


def _sweeps() -> type:
    """The kernel, wherever the revision has it."""
    try:
        from cadlag.network.transition import Sweeps
    except ImportError:
        from cadlag.models.network.kernel import Sweeps  # type: ignore[import-not-found, no-redef]
    return Sweeps


def of_revision(source: Path, name: str, bulk: bool) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.units_part", "--time", name, *(["--bulk"] if bulk else [])]
    paths = os.pathsep.join([str(source), str(Path(__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(found.stdout))


def main() -> None:
    """Take turns, print medians and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.units_part")
    parser.add_argument("--base", type=Path)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--time", metavar="DATA")
    parser.add_argument("--bulk", action="store_true")
    options = parser.parse_args()
    if options.time:
        print(json.dumps(milliseconds(options.time, options.bulk)))
        return
    if options.base is None:
        parser.error("--base is missing: a worktree of the revision to compare with")
    own = Path(__file__).parents[1] / "src"
    for name in options.data.split(","):
        for bulk in (False, True):
            pairs = [(of_revision(options.base / "src", name, bulk), of_revision(own, name, bulk))
                     for _ in range(options.rounds)]  # fmt: skip
            before, now = np.median(pairs, axis=0)
            print(f"{name:8}{'with bulk' if bulk else 'without':>10}{before:9.2f} ms{now:9.2f} ms"
                  f"{before / now:7.2f} times (target {TARGET:g})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
