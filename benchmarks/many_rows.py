"""CPU seconds and memory of a sweep of 30 units on 10 inputs, 1,000 to 1,000,000 rows, beside another revision.

    git worktree add /tmp/base 950e9a1
    python -m benchmarks.many_rows --base /tmp/base [--rows 1000,10000,100000] [--kinds sign,auto,bulk]

Steps alone, both kinds of units, and both on a sparse bulk of 20 neighbours, which the other revision does not have:
there a sweep is the mean of five, in which the bulk moves once. Each size runs in a fresh process, revisions in turn;
without warm-up, all rows from the first sweep on.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

OWN = Path(__file__).resolve().parents[1]
ROWS = (1_000, 10_000, 100_000, 1_000_000)
KINDS = ("sign", "auto", "bulk")
N_INPUTS, N_UNITS, N_NEIGHBORS = 10, 30, 20
N_SWEEPS = {"sign": 3, "auto": 3, "bulk": 5}
SLOPE, TARGETS = 1.1, {"sign": 20.0, "auto": 8.0}
MEASURED_FROM = 10_000  # rows below which the allocator's own pages blur the memory of the arrays

PROGRAM = """
import json
from functools import partial
import benchmarks.network_cost as cost
cost.StableNetwork = partial(cost.StableNetwork, activation={activation!r})
print(json.dumps(cost.measure({arguments})))
"""


def measured(tree: Path, kind: str, n: int) -> dict[str, Any]:
    """What `measure` of a revision finds, in a process of its own."""
    activation = "sign" if kind == "sign" else "auto"
    arguments = [n, N_UNITS, N_SWEEPS[kind], *([N_NEIGHBORS] if kind == "bulk" else [])]
    program = PROGRAM.format(activation=activation, arguments=", ".join(map(str, arguments)))
    paths = os.pathsep.join([str(tree / "src"), str(tree)])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    seconds = found["seconds"]
    return {**found, "sweep": float(np.mean(seconds) if kind == "bulk" else np.median(seconds))}


def bound(n: int, kind: str) -> float:
    """Bytes that a run of sweeps may take beyond its base."""
    return 8.0 * n * (N_INPUTS + 3 * N_UNITS + (4 * N_NEIGHBORS if kind == "bulk" else 0))


def line(kind: str, n: int, own: dict[str, Any], base: dict[str, Any] | None) -> str:
    """Seconds, ratio, memory."""
    text = f"{kind:6}{n:9}{own['sweep']:12.4f} s{own['grown'] / 1e6:10.1f} MB of {bound(n, kind) / 1e6:9.1f}"
    return text if base is None else f"{text}{base['sweep']:12.4f} s {base['sweep'] / own['sweep']:7.1f} times"


def main() -> None:
    """Measure, print lines and what was aimed at."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_rows")
    parser.add_argument("--base", type=Path)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    sizes = [int(word) for word in options.rows.split(",")]
    print("kind       rows       sweep      beyond the base  bound        before", flush=True)
    for kind in options.kinds.split(","):
        seconds, shares = [], []
        for n in sizes:
            base = measured(options.base, kind, n) if options.base and kind != "bulk" else None
            own = measured(OWN, kind, n)
            seconds.append(own["sweep"])
            if n >= MEASURED_FROM:
                shares.append(own["grown"] / bound(n, kind))
            print(line(kind, n, own, base), flush=True)
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else float("nan")
        wanted = f", {TARGETS[kind]:.0f} times faster wanted at the last" if kind in TARGETS else ""
        memory = f"memory at most {max(shares):.2f} of its bound" if shares else ""
        print(f"{kind}: log-log slope {slope:.2f} (target <= {SLOPE}), {memory}{wanted}", flush=True)


if __name__ == "__main__":
    main()
