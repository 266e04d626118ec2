"""The package's front door: instant to import, and with the promised names behind it."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import cadlag
from cadlag.papers.loria2025.figures import FIGURES

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "src/cadlag/papers/loria2025/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
DRAWN = [f"_paper/{name}.png" for name in FIGURES]  # by docs/conf.py, when the pages are built


def modules_after(code):
    """Names of the modules that a fresh process has loaded after running some code."""
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    return set(json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout))


def test_import_is_instant():
    loaded = modules_after("import cadlag\nassert cadlag.__version__\ndir(cadlag)")
    assert "cadlag" in loaded
    assert not loaded & {"numpy", "scipy", "numba", "sklearn", "joblib", "matplotlib", "pandas", "polars", "xarray"}


def test_estimator_needs_no_optional_library():
    """Nor loads it one that is installed, unless scikit-learn does."""
    loaded = modules_after("from cadlag import StableKernelRegressor, load\nStableKernelRegressor()")
    assert {"cadlag", "numpy", "sklearn"} <= loaded
    assert not loaded & {"matplotlib", "polars", "xarray", "arviz", "arviz_base"}
    assert "pandas" not in loaded or "pandas" in modules_after("import sklearn.base")


@pytest.mark.parametrize("name", cadlag.__all__)
def test_public_names(name):
    value = getattr(cadlag, name)
    assert value.__name__ == name
    assert name in dir(cadlag)
    namespace = {}
    exec(f"from cadlag import {name}", namespace)
    assert namespace[name] is value


def test_promised_names_are_public():
    assert {"StableKernelRegressor", "load"} <= set(cadlag.__all__)
    assert set(cadlag.__all__) == set(cadlag._HOMES)
    assert {"__version__", "__doc__"} <= set(dir(cadlag))


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'cadlag' has no attribute 'Regressor'"):
        _ = cadlag.Regressor
    with pytest.raises(ImportError, match="Regressor"):
        exec("from cadlag import Regressor", {})
    assert not hasattr(cadlag, "__path_to_nowhere__")


def links_of(page):
    """What a Markdown page links to or shows."""
    return re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in links_of(page):
        assert link.startswith("http") or link in DRAWN or (page.parent / link).exists(), link


def test_every_figure_of_the_paper_is_shown():
    assert [link for link in links_of(ROOT / "docs/figures.md") if link.endswith(".png")] == DRAWN


def test_functions_of_formulas_exist():
    text = (ROOT / "docs/mathematics.md").read_text(encoding="utf-8").partition("| formula | function |")[2]
    rows = re.findall(r"^\| .+ \| (.+) \|$", text.partition("\n\n")[0], flags=re.MULTILINE)
    assert len(rows) > 10
    for row in rows:
        source = "".join((ROOT / "docs" / link).read_text(encoding="utf-8") for link in re.findall(r"\(([^)]+)\)", row))
        for name in re.findall(r"`([^`]+)`", row):
            assert re.search(rf"\b{name.rpartition('.')[2]}\b", source), name


def test_the_citation_is_of_this_version_and_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "type", "license", "version"} <= set(citation)
    assert (citation["cff-version"], citation["type"], citation["license"]) == ("1.2.0", "software", "MIT")
    assert citation["version"] == cadlag.__version__
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Loría", "Bhadra"]
    references = (ROOT / "docs/references.md").read_text(encoding="utf-8")
    for fact in (paper["title"], paper["conference"]["name"], str(paper["year"])):
        assert f"{{{fact}}}" in references  # as the entry in BibTeX has it


def test_the_version_is_written_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "cadlag.__version__"}
    assert re.search(r"^version = release = __version__$", (ROOT / "docs/conf.py").read_text(), flags=re.MULTILINE)


def test_the_changelog_opens_with_this_version_and_dates_every_other():
    headings = re.findall(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    release, _, development = cadlag.__version__.partition(".dev")
    assert headings[0][0] == release
    assert (headings[0][1] == "unreleased") == bool(development)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in headings[bool(development) :])


def test_notation_lists_every_class_of_the_library():
    """With its file, so that a reader of either finds the other; what draws pictures or runs studies is left out."""
    root = Path(cadlag.__file__).parent
    listed = re.findall(r"^\| `(\w+)` \| `([\w/]+)` \|", (ROOT / "docs/notation.md").read_text(), re.M)
    found = [
        (node.name, str(path.relative_to(root).with_suffix("")))
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in ("app", "papers", "report", "plots", "verdict")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted(listed) == sorted(found)
