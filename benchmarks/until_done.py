"""Likelihoods that the kernel process takes until it is done: warm-up, climbs and looks included.

    python -m benchmarks.until_done --rows FILE [--data yacht,boston] [--seeds 2] [--published]

A gradient counts for as many likelihoods as it costs, which is measured on the same data. A line a fit is added to
FILE, and what is there is not done again. With --published the settings of the paper's tables (preset published_code,
depth 2).
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cadlag import StableKernelRegressor, metrics
from cadlag.datasets import load_dataset
from cadlag.kernel_process.model import KernelProcess

DATA = ("sim1d", "sim2d", "sim10d", "yacht", "boston", "energy")
MEDIAN, WORST = 10_000, 25_000
COUNTED = ("log_likelihood", "log_likelihood_gradient", "condition")


def counting(counts: dict[str, int], name: str) -> Callable[..., Any]:
    """A method of the model that also counts."""
    right = getattr(KernelProcess, name)

    def counted(self: KernelProcess, *args: Any, **options: Any) -> Any:
        counts[name] += 1
        return right(self, *args, **options)

    return counted


def price(model: KernelProcess, n_rounds: int = 9) -> float:
    """What a gradient costs, in likelihoods."""
    position = model.sample_prior(np.random.default_rng(0))
    spent: dict[str, list[float]] = {name: [] for name in COUNTED[:2]}
    for _ in range(n_rounds):
        for name, seconds in spent.items():
            started = time.process_time()
            for _ in range(3):
                getattr(model, name)(position)
            seconds.append(time.process_time() - started)
    value, gradient = (float(np.median(seconds[1:])) for seconds in spent.values())
    return gradient / value


def fit(name: str, seed: int, published: bool) -> dict[str, Any]:
    """One fit with the default numbers."""
    data, counts = load_dataset(name, seed), dict.fromkeys(COUNTED, 0)
    settings = {"preset": "published_code", "depth": 2} if published else {}
    model = StableKernelRegressor(random_state=seed, **settings)
    right = {method: getattr(KernelProcess, method) for method in COUNTED}
    started = time.process_time()
    try:
        for method in COUNTED:
            setattr(KernelProcess, method, counting(counts, method))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X_train, data.y_train)
    finally:
        for method, original in right.items():
            setattr(KernelProcess, method, original)
    seconds, found = time.process_time() - started, model.diagnostics_
    each = price(model.model_)
    likelihoods = counts["log_likelihood"] + counts["condition"] + each * counts["log_likelihood_gradient"]
    score = metrics.score(model.predict_distribution(data.X_test), data.y_test)
    return {
        "data": name, "seed": seed, "published": published, "likelihoods": likelihoods, "gradient": each,
        "seconds": seconds, "verdict": found["verdict"], "rhat": found["worst_rhat"], "ess": found["worst_ess_bulk"],
        "chains": model.posterior_.n_chains, "crps": score["crps"],
    }  # fmt: skip


def main() -> None:
    """Fit what is missing, print all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.until_done")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--published", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()] if options.rows.exists() else []
    done = {(row["data"], row["seed"], row["published"]) for row in rows}
    for name, seed in ((name, seed) for name in options.data.split(",") for seed in range(options.seeds)):
        if (name, seed, options.published) not in done:
            rows.append(fit(name, seed, options.published))
            with options.rows.open("a") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    print("data    seed settings   likelihoods  gradient  CPU s  R-hat    ESS  chains  CRPS    verdict")
    for row in rows:
        words = "published" if row["published"] else "default"
        cost = f"{row['likelihoods']:12.0f}{row['gradient']:10.2f}{row['seconds']:7.1f}"
        found = f"{row['rhat']:7.3f}{row['ess']:7.0f}{row['chains']:8}  {row['crps']:.4f}  {row['verdict']}"
        print(f"{row['data']:8}{row['seed']:4} {words:10}{cost}{found}")
    spent = [row["likelihoods"] for row in rows]
    print(f"median {np.median(spent):.0f} (target <= {MEDIAN}), worst {max(spent):.0f} (target <= {WORST})")


if __name__ == "__main__":
    main()
