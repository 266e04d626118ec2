"""Errors of the true function on the test rows of the simulations: what no method can be expected to go below.

python -m benchmarks.truth
"""

import numpy as np

from cadlag.datasets import SIMULATIONS, simulate
from cadlag.metrics import rmse

N_SEEDS = 20


def main() -> None:
    """Print mean and standard deviation over the seeds of the tables."""
    for name in SIMULATIONS:
        errors = [rmse(data.y_test, data.f_test) for data in (simulate(name, seed) for seed in range(N_SEEDS))]
        print(f"sim{name:4} {np.mean(errors):.4f} ({np.std(errors, ddof=1):.4f})")


if __name__ == "__main__":
    main()
