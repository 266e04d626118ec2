"""The only place of the arc-cosine functions and of the deep kernel recursion."""

from cadlag.kernels.arc_cosine import arc_cosine, normalised_arc_cosine
from cadlag.kernels.both_orders import correlations_of_both, cross_correlations_of_both, reverse_of_both
from cadlag.kernels.local import LocalPairs, LocalPairsOfBoth
from cadlag.kernels.recursion import Layers, correlations, cross_correlations, layers
from cadlag.kernels.reverse import reverse

__all__ = [
    "Layers", "LocalPairs", "LocalPairsOfBoth", "arc_cosine", "correlations", "correlations_of_both",
    "cross_correlations", "cross_correlations_of_both", "layers", "normalised_arc_cosine", "reverse", "reverse_of_both",
]  # fmt: skip
