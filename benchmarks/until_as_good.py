"""CPU seconds until held-out rows are predicted as well as by another revision's default: network, the same machine.

    git worktree add /tmp/base 950e9a1
    python -m benchmarks.until_as_good --base /tmp/base --rows FILE [--data yacht,energy] [--seeds 3] [--chains 8]

The base had four chains of 1000 + 1000 sweeps. With --curves K its chains are run for the first K seeds, one after the
other, and their CRPS and CPU seconds measured; elsewhere its CRPS is in the rows of the paper's tables, which that
revision made with the same seeds, and what a sweep of it costs is measured beside ours, in turn, on one chain. Ours are
the chains of the first round of the present default, one after the other: after each the CRPS of all so far, and the
CPU seconds that they took. A line a data set and seed is added to FILE, and what is there is not done again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cadlag import StableNetworkRegressor, metrics
from cadlag.datasets import load_dataset
from cadlag.predictive import Predictive

DATA = ("sim1d", "sim2d", "sim10d", "yacht", "boston", "energy", "concrete")
OLD_CHAINS, OLD_SWEEPS = 4, 1000  # sweeps of warm-up, and as many kept
TIMED = 60
OLD = '{"n_chains":4,"n_draws":1000,"n_warmup":1000}'
TABLES = Path(__file__).parents[1] / "src/cadlag/papers/loria2025/rows/tables.jsonl"


def seconds_a_sweep(name: str, seed: int) -> dict[str, float]:
    """CPU seconds of a sweep in warm-up and after it, by whichever revision is imported."""
    data, spent = load_dataset(name, seed), {}

    def of(n_warmup: int, n_draws: int) -> float:
        model = StableNetworkRegressor(n_warmup=n_warmup, n_draws=n_draws, n_chains=1, random_state=0)
        started = time.process_time()
        model.fit(data.X_train, data.y_train)
        return time.process_time() - started

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of(4, 4)  # what is compiled or read from disk
        spent["fit"] = of(TIMED, TIMED)
        spent["kept"] = (of(TIMED, 2 * TIMED) - spent["fit"]) / TIMED
    return {"kept": spent["kept"], "warming": spent["fit"] / TIMED - spent["kept"]}


def ask_base(base: Path, what: str, name: str, seed: int) -> Any:
    """What this program prints when it imports the base."""
    command = [sys.executable, "-m", "benchmarks.until_as_good", what, name, "--seeds", str(seed)]
    environment = {**os.environ, "PYTHONPATH": f"{base / 'src'}{os.pathsep}{Path(__file__).parents[1]}"}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def old_crps(name: str, seed: int) -> float | None:
    """CRPS of the base's default, from its rows, where there is one."""
    rows = map(json.loads, TABLES.read_text().splitlines())
    key = (name, "network", OLD, seed)
    wanted = [row for row in rows if (row["data"], row["method"], row["configuration"], row["seed"]) == key]
    return float(wanted[-1]["metrics"]["crps"]) if wanted else None


def old_curve(base: Path, name: str, seed: int, measured: bool) -> list[tuple[float, float]]:
    """CPU seconds and CRPS of the base's default; after each of its chains where they are to be run."""
    crps = old_crps(name, seed)
    if measured or crps is None:
        return [(seconds, value) for seconds, value in ask_base(base, "--old", name, seed)]
    cost = ask_base(base, "--time", name, seed)
    return [(OLD_CHAINS * OLD_SWEEPS * (cost["kept"] + cost["warming"]), crps)]


def curve(name: str, seed: int, n_chains: int, n_warmup: int, n_draws: int) -> list[tuple[float, float]]:
    """CPU seconds and CRPS after one, two, three .. chains."""
    data, spent, laws, found = load_dataset(name, seed), 0.0, [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        StableNetworkRegressor(n_chains=1, n_warmup=5, n_draws=5).fit(data.X_train, data.y_train)  # what is compiled
        for chain in range(n_chains):
            model = StableNetworkRegressor(
                n_chains=1, n_warmup=n_warmup, n_draws=n_draws, random_state=1000 * seed + chain
            )
            started = time.process_time()
            model.fit(data.X_train, data.y_train)
            spent += time.process_time() - started
            laws.append(model.predict_distribution(data.X_test))
            parts = [np.concatenate([getattr(law, part) for law in laws]) for part in ("means", "variances")]
            found.append((spent, metrics.mean_crps(Predictive(*parts), data.y_test)))
    return found


def first_round(name: str, seed: int) -> tuple[int, int]:
    """Sweeps of warm-up and draws of each chain, as the present default begins."""
    data = load_dataset(name, seed)
    model = StableNetworkRegressor(n_chains=1, n_warmup=1, n_draws=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X_train, data.y_train)
    first = model._first_round()
    return first.n_dropped, first.n_kept


def compare(base: Path, name: str, seed: int, n_chains: int, measured: bool) -> dict[str, Any]:
    """One data set and seed."""
    old, ours = old_curve(base, name, seed, measured), curve(name, seed, n_chains, *first_round(name, seed))
    cost, wanted = old[-1]
    reached = next((seconds for seconds, crps in ours if crps <= wanted), None)
    return {"data": name, "seed": seed, "old_seconds": cost, "old_crps": wanted, "old_curve": old, "curve": ours,
            "times_fewer": None if reached is None else cost / reached}  # fmt: skip


def report(rows: list[dict[str, Any]]) -> str:
    """A line a data set and seed, and the median."""
    lines = ["data    seed  old s  old CRPS  ours: s, CRPS of one chain .. of all          times fewer"]
    for row in rows:
        (a, b), (c, d) = row["curve"][0], row["curve"][-1]
        times = "not reached" if row["times_fewer"] is None else f"{row['times_fewer']:.1f}"
        lines.append(f"{row['data']:8}{row['seed']:4}{row['old_seconds']:7.1f}{row['old_crps']:10.4f}"
                     f"  {a:6.1f} {b:.4f} .. {c:6.1f} {d:.4f}{times:>20}")  # fmt: skip
    ratios = [0.0 if row["times_fewer"] is None else row["times_fewer"] for row in rows]
    return "\n".join([*lines, f"median {np.median(ratios):.1f} (not reached counts as 0; target >= 5)"])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """CRPS against CPU seconds, both in units of the base's default, a panel a data set, a colour a seed."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plt.subplots(2, -(-len(names) // 2), figsize=(10, 5.5), layout="constrained", squeeze=False)
    for ax, name in zip(axes.flat, names):
        for row in (row for row in rows if row["data"] == name):
            seconds, crps = np.array(row["curve"]).T
            (line,) = ax.plot(seconds / row["old_seconds"], crps / row["old_crps"], marker="o", ms=3)
            seconds, crps = np.array(row["old_curve"]).T
            ax.plot(seconds / row["old_seconds"], crps / row["old_crps"], ":", marker="s", ms=3, color=line.get_color())
        ax.plot(1.0, 1.0, "k*", ms=10)
        ax.axhline(1.0, color="0.7", lw=0.8)
        ax.set(title=name, xscale="log")
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    figure.supxlabel(
        "CPU seconds after one, two .. chains (lines; dotted: the old default's) over those of the old default (star)"
    )
    figure.supylabel("CRPS over that of the old default")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure what is missing, print all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.until_as_good")
    parser.add_argument("--base", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--curves", type=int, default=1, help="seeds for which the base's chains are run")
    parser.add_argument("--time", metavar="DATA")
    parser.add_argument("--old", metavar="DATA")
    parser.add_argument("--picture", type=Path, help="also draw the curves")
    options = parser.parse_args()
    if options.time:
        print(json.dumps(seconds_a_sweep(options.time, options.seeds)))
        return
    if options.old:
        print(json.dumps(curve(options.old, options.seeds, OLD_CHAINS, OLD_SWEEPS, OLD_SWEEPS)))
        return
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()] if options.rows.exists() else []
    done = {(row["data"], row["seed"]) for row in rows}
    for name, seed in ((name, seed) for seed in range(options.seeds) for name in options.data.split(",")):
        if (name, seed) not in done:
            rows.append(compare(options.base, name, seed, options.chains, seed < options.curves))
            with options.rows.open("a") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    rows.sort(key=lambda row: (DATA.index(row["data"]) if row["data"] in DATA else len(DATA), row["seed"]))
    print(report(rows))
    if options.picture:
        draw(rows, options.picture)


if __name__ == "__main__":
    main()
