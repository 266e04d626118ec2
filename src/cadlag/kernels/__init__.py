"""The only place of the arc-cosine functions and of the deep kernel recursion."""

from cadlag.kernels.arc_cosine import arc_cosine, normalised_arc_cosine
from cadlag.kernels.recursion import Layers, correlations, cross_correlations, layers
from cadlag.kernels.reverse import reverse

__all__ = ["Layers", "arc_cosine", "correlations", "cross_correlations", "layers", "normalised_arc_cosine", "reverse"]
