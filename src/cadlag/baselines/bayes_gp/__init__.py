"""The Bayesian Gaussian process about a linear mean of R's tgp (Gramacy, 2007)."""
