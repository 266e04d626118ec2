"""The ReLU kernel of a Gram matrix written out, for tests of the deep inverse Wishart process."""

import numpy as np

from cadlag.baselines.diwp.gram import EPSILON


def dense_map(G, epsilon=EPSILON):
    """The ReLU kernel of a whole Gram matrix, from arccos."""
    own = np.diag(G) + epsilon
    lengths = np.sqrt(np.outer(own, own))
    cosine = G / lengths
    K = lengths * (np.sqrt(1.0 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine) / np.pi
    np.fill_diagonal(K, own)
    return K
