"""Sphinx configuration."""

from pathlib import Path

import matplotlib

from cadlag import __version__
from cadlag.papers.loria2025 import reproduce
from cadlag.papers.loria2025.figures import FIGURES

matplotlib.use("Agg")
reproduce(Path(__file__).parent / "_paper", only=list(FIGURES), progress=False)

project = "cadlag"
author = "the cadlag developers"
project_copyright = "the cadlag developers, MIT licence"
version = release = __version__
html_title = f"cadlag {release}"
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
numpydoc_show_class_members = False
exclude_patterns = ["_build", "gallery"]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "capture_repr": (),
    "remove_config_comments": True,
}
# The gallery is served by name, and configuration values that hold functions cannot be kept between builds.
suppress_warnings = ["config.cache"]
html_theme = "alabaster"
html_theme_options = {
    "description": f"Bayesian regression on functions that jump, version {release}", "page_width": "1100px",
    "font_family": "sans-serif", "head_font_family": "sans-serif",
}  # fmt: skip
html_static_path = ["_static"]
html_css_files = ["pages.css"]
autodoc_typehints = "description"
