"""What a longer warm-up of the network buys, and whether drift tells: eight chains of 120 draws after other lengths.

    python -m benchmarks.warm_up [--data sim10d,yacht] [--seeds 10] [--lengths 300,600,1200]

After each length: CPU seconds, CRPS of held-out rows, the standard error r of the predictions; the rise of the log
target from the first half of the kept draws to the second, and the drift of the predictions between the halves (root
mean square over the probe inputs, in predictive standard deviations), each with its standard error and the probability
that signs at random would make as much of it.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np

from cadlag import StableNetworkRegressor, metrics
from cadlag.datasets import load_dataset
from cadlag.trust import half_widths, probability_of_signs, probe_inputs, standard_error

N_CHAINS, N_DRAWS = 8, 120


def halves(values: np.ndarray) -> np.ndarray:
    """Second half of each chain's draws less the first, (K, m), from (K, draws, m)."""
    half = values.shape[1] // 2
    return values[:, -half:].mean(axis=1) - values[:, :half].mean(axis=1)


def look(name: str, seed: int, length: int) -> dict[str, Any]:
    """One fit."""
    data, started = load_dataset(name, seed), time.process_time()
    model = StableNetworkRegressor(n_chains=N_CHAINS, n_warmup=length, n_draws=N_DRAWS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X_train, data.y_train)
    seconds = time.process_time() - started
    law = model.predict_distribution(model.input_scaling_.undo(probe_inputs(model.model_.X)[:, 1:]))
    means, widths = law.means.reshape(N_CHAINS, -1, law.means.shape[1]), half_widths(law.means, law.variances)
    rise, drift = halves(model.posterior_.stats["log_target"][:, :, None]), halves(means) / widths
    return {
        "seconds": seconds, "crps": metrics.mean_crps(model.predict_distribution(data.X_test), data.y_test),
        "r": standard_error(means.mean(axis=1), widths),
        "rise": float(rise.mean()), "rise_error": float(rise.std(ddof=1)) / N_CHAINS**0.5,
        "rise_chance": probability_of_signs(rise),
        "drift": float(np.sqrt((drift.mean(axis=0) ** 2).mean())),
        "drift_error": float(np.sqrt((drift.var(axis=0, ddof=1) / N_CHAINS).mean())),
        "drift_chance": probability_of_signs(drift),
    }  # fmt: skip


def main() -> None:
    """A line a fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm_up")
    parser.add_argument("--data", default="sim10d,yacht")
    parser.add_argument("--seeds", default="10")
    parser.add_argument("--lengths", default="300,600,1200")
    options = parser.parse_args()
    words = "log target rises (error), chance  predictions drift (error), chance"
    print(f"data    seed  warm-up  CPU s   CRPS      r     {words}")
    for name in options.data.split(","):
        for seed in map(int, options.seeds.split(",")):
            for length in map(int, options.lengths.split(",")):
                f = look(name, seed, length)
                print(
                    f"{name:8}{seed:4}{length:9}{f['seconds']:7.1f}{f['crps']:8.4f}{f['r']:7.3f}"
                    f"{f['rise']:14.1f} ({f['rise_error']:.1f}), {f['rise_chance']:.3f}"
                    f"{f['drift']:23.3f} ({f['drift_error']:.3f}), {f['drift_chance']:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
