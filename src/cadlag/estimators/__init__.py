"""The scikit-learn faces of the models."""
