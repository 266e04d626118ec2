"""Gaussian algebra: dense covariances, and a few columns added to one or to white noise."""
