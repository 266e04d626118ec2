"""Gaussian process by maximum likelihood, as R's mlegp (Dancik and Dorman, 2008)."""
