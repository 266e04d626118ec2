"""Coverage of held-out observations by 90 % intervals of the function alone, beside that by intervals of observations.

    python -m benchmarks.noise_free [METHOD [CONFIGURATION [SEEDS]]]

A configuration is JSON; by default the NNGP as it was published, 20 seeds or splits of each data set.
"""

import json
import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cadlag.datasets import DATASETS, load_dataset
from cadlag.methods import METHODS

KINDS = ("function", "observation")


def coverages(name: str, method: str, configuration: dict, seed: int) -> list[float]:
    """Shares of test rows inside the intervals of each kind."""
    data = load_dataset(name, seed)
    model = METHODS[method](**configuration, random_state=seed).fit(data.X_train, data.y_train)
    intervals = [model.predict_interval(data.X_test, 0.9, kind=kind).T for kind in KINDS]
    return [float(np.mean((low <= data.y_test) & (data.y_test <= high))) for low, high in intervals]


def main(method: str = "nngp", configuration: str = '{"amplitude": false, "sampler": "ml"}', seeds: str = "20") -> None:
    """Print a line for each data set."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in DATASETS:
        shares = np.mean(
            [coverages(name, method, json.loads(configuration), seed) for seed in range(int(seeds))], axis=0
        )
        print(f"{name:8}", "  ".join(f"{kind} {share:.3f}" for kind, share in zip(KINDS, shares)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
