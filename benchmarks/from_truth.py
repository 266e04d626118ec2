"""A mixing test with a known answer: chains of the network on the 10-d simulation that start at the true function.

    python -m benchmarks.from_truth [--seeds N] [--jobs N]

The truth is six sign units. A chain starts with those and with the other units at vanishing scales, has the last fifth
of an ordinary warm-up, in which trajectories adapt without a noise floor, and is then a chain of the posterior that may
not have left the truth's surroundings. Two chains are averaged here, and four, in several places, by the cold fits of
the tables, which is in favour of the latter. If chains from the truth are far better, what cold ones lack is mixing.
"""

import argparse
import math

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cadlag import StableNetworkRegressor, metrics
from cadlag.datasets import NOISE_STD, Dataset, simulate
from cadlag.network.columns import RELU, SIGN
from cadlag.network.model import StableNetwork
from cadlag.network.transition import Sweeps
from cadlag.predictive import Predictive

N_SEEDS, N_CHAINS = 20, 2
N_WARMUP, N_SKIPPED, N_DRAWS, EVERY = 1000, 800, 600, 4
# 6 sgn(x1) + 8 sgn(x2 + x3) + 6 sgn(x4 + x5) + 6 sgn(x6 + x7) + 6 sgn(x8 + x9) + 6 sgn(x10)
HEIGHTS, GROUPS = np.array([6.0, 8.0, 6.0, 6.0, 6.0, 6.0]), ((0,), (1, 2), (3, 4), (5, 6), (7, 8), (9,))
LOG_NOTHING = -12.0  # log scale of a unit that explains nothing


def true_position(model: StableNetwork, data: Dataset, rng: np.random.Generator) -> np.ndarray:
    """The truth in the units of standardised data, as a position of the network."""
    mean, scale = data.X_train.mean(axis=0), data.X_train.std(axis=0)
    units = model.read(model.sample_prior(rng))
    units.kinds[:], units.log_s[:] = RELU, LOG_NOTHING
    for j, (height, group) in enumerate(zip(HEIGHTS, GROUPS)):
        normal = np.zeros(data.X_train.shape[1])
        normal[list(group)] = 1.0
        direction = np.append(normal @ mean, normal * scale)
        units.W[j] = direction * math.sqrt(len(direction) / (direction @ direction))
        units.kinds[j] = SIGN
        units.log_s[j] = 2.0 * math.log(height / data.y_train.std()) - model.log_factor
    log_v = 2.0 * math.log(NOISE_STD / data.y_train.std())
    return model.write(units._replace(log_tau=0.0, log_bulk=np.full_like(units.log_bulk, -2.0), log_v=log_v))


def fit(seed: int, chain: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of observations at the test inputs, a row a draw, in units of y."""
    data, rng = simulate("10d", seed), np.random.default_rng([seed, chain])
    default = StableNetworkRegressor()
    mean, scale = data.X_train.mean(axis=0), data.X_train.std(axis=0)
    X, new = (np.column_stack([np.ones(len(x)), (x - mean) / scale]) for x in (data.X_train, data.X_test))
    y_mean, y_scale = data.y_train.mean(), data.y_train.std()
    model = StableNetwork(X, (data.y_train - y_mean) / y_scale, default.n_units, default.alpha, bulk_depth=1)
    kernel, laws = Sweeps(model, N_WARMUP), []
    with threadpool_limits(1):
        state = {**kernel.start_from(true_position(model, data, rng)), "iteration": N_SKIPPED}
        for sweep in range(N_WARMUP - N_SKIPPED + N_DRAWS):
            state, _ = kernel.step(rng, state, model.exact_level)
            if sweep >= N_WARMUP - N_SKIPPED and sweep % EVERY == 0:
                atom = model.condition(state["position"])
                means, variances = atom.moments(new)
                laws.append((y_mean + y_scale * means, y_scale**2 * (variances + atom.noise_variance)))
    means, variances = zip(*laws)
    return np.array(means), np.array(variances)


def scores(seed: int, chains: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Of the law of all chains together."""
    law = Predictive(*(np.concatenate(parts) for parts in zip(*chains)))
    return metrics.score(law, simulate("10d", seed).y_test)


def main() -> None:
    """Print scores by seed, then their means."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.from_truth", description="Chains that start at the truth."
    )
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="replicates")
    parser.add_argument("--jobs", type=int, default=1, help="chains at the same time")
    arguments = parser.parse_args()
    work = Parallel(n_jobs=arguments.jobs, return_as="generator", batch_size=1)
    drawn = work(delayed(fit)(seed, chain) for seed in range(arguments.seeds) for chain in range(N_CHAINS))
    names, found = ("rmse", "mae", "crps", "coverage"), []
    print("seed  " + "  ".join(f"{name:>8}" for name in names))
    for seed in range(arguments.seeds):
        values = scores(seed, [next(drawn) for _ in range(N_CHAINS)])
        found.append([values[name] for name in names])
        print(f"{seed:4}  " + "  ".join(f"{value:8.4f}" for value in found[-1]), flush=True)
    print("mean  " + "  ".join(f"{value:8.4f}" for value in np.mean(found, axis=0)))


if __name__ == "__main__":
    main()
