"""Markov chains: the contract, the kernels, and the loop that runs them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from cadlag.sampling.hops import NutsWithHops
from cadlag.sampling.independence import Independence
from cadlag.sampling.leaps import NutsWithLeaps
from cadlag.sampling.nuts import Nuts
from cadlag.sampling.tempering import Tempered

# One row a sampler: a maker called with target and n_warmup.
SAMPLERS: dict[str, Callable[..., Any]] = {
    "nuts": NutsWithHops,
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
