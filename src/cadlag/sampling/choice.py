"""P(i) ∝ e^log_weight_i: a draw from a few candidates, in compiled moves."""

import math

import numpy as np
from numba import njit

from cadlag.sampling.contract import Array


@njit(cache=True, nogil=True, error_model="numpy")
def pick(rng: np.random.Generator, log_weights: Array, largest: float) -> int:
    """An index with probability ∝ e^log_weight."""
    total = 0.0
    for i in range(len(log_weights)):
        if log_weights[i] > largest - 40.0:
            total += math.exp(log_weights[i] - largest)
    wanted = rng.random() * total
    for i in range(len(log_weights)):
        if log_weights[i] > largest - 40.0:
            wanted -= math.exp(log_weights[i] - largest)
            if wanted < 0.0:
                return i
    return int(np.argmax(log_weights))
