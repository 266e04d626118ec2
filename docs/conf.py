"""Sphinx configuration."""

project = "cadlag"
author = "the cadlag developers"
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Bayesian regression on functions that jump", "page_width": "1100px"}
autodoc_typehints = "description"
