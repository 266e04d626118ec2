"""Bayesian regression on functions that jump."""
