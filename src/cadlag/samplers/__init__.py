"""Markov chains: the contract, the kernels, and the loop that runs them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from cadlag.samplers.independence import Independence
from cadlag.samplers.jumps import NutsWithJumps
from cadlag.samplers.leaps import NutsWithLeaps
from cadlag.samplers.nuts import Nuts
from cadlag.samplers.tempering import Tempered

# One row a sampler: a maker called with target and n_warmup.
SAMPLERS: dict[str, Callable[..., Any]] = {
    "nuts": NutsWithJumps,
    "plain_nuts": Nuts,
    "tempered": Tempered,
    "independence": Independence,
}

# The same names for a target that knows moves between its modes.
LEAPING: dict[str, Callable[..., Any]] = {
    **SAMPLERS,
    "nuts": NutsWithLeaps,
    "tempered": partial(Tempered, make=NutsWithLeaps),
}
