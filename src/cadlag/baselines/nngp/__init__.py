"""The wide-network Gaussian process of Lee et al. (2018)."""
