"""The table of planted faults fits the tree, and the runner tells who was caught; `make mutants` plants them."""

import ast
import os
from pathlib import Path

import pytest

from mutants import (
    Copy,
    Mutant,
    StaleError,
    dependants,
    find_source,
    find_tests,
    judge,
    main,
    read_mutants,
    read_sources,
)

ROOT = Path(__file__).parents[1]


def test_every_fault_has_its_place_and_its_tests():
    """So that moving or rewording the source does not leave a fault behind that nothing plants any more."""
    mutants, sources = read_mutants(), read_sources(ROOT)
    assert len(mutants) >= 60
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        path = find_source(mutant, sources)
        changed = sources[path].replace(mutant.find, mutant.put)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(sources[path])), mutant.name
        assert find_tests(mutant, ROOT), mutant.name


@pytest.fixture
def tree(tmp_path):
    """A tree with a function that two modules use, a test that looks at it, and one that does not."""
    files = {
        "src/cadlag/__init__.py": "from cadlag.top import answer\n",
        "src/cadlag/low.py": "def double(x):\n    return 2 * x\n",
        "src/cadlag/middle.py": "from cadlag import low\n\n\ndef four(x):\n    return low.double(low.double(x))\n",
        "src/cadlag/top.py": "from cadlag.middle import four\n\n\ndef answer():\n    return four(10) + 2\n",
        "src/cadlag/aside.py": "LIMIT = 3\n",
        "tests/test_top.py": "import cadlag\n\n\ndef test_answer():\n    assert cadlag.answer() == 42\n\n\n"
        "def test_nothing():\n    pass\n\n\ndef test_wrong():\n    assert False\n",
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def write_table(tree, *faults):
    entries = [
        f"[[mutant]]\nname = '{name}'\nfind = '{find}'\nput = '{put}'\ntests = ['{test}']\n"
        for name, find, put, test in faults
    ]
    (tree / "tests" / "mutants.toml").write_text("\n".join(entries))


def test_faults_are_caught_survive_or_are_broken(tree, capsys):
    """In the order of the table but for equal tests, by two workers; a test that fails anyway has caught nothing."""
    three = "return 2 * x", "return 3 * x"
    write_table(
        tree, ("low: three for two", *three, "test_answer"), ("low: seen by nobody", *three, "test_nothing"),
        ("low: no Python", "return 2 * x", "return 2 *", "test_answer"), ("low: in vain", *three, "test_wrong"),
    )  # fmt: skip
    assert main(["--jobs", "2", "--only", "low"], tree) == 1
    caught, broken, survived, vain, total = capsys.readouterr().out.splitlines()
    assert caught.startswith("low: three for two")
    assert "caught by test_top.py::test_answer" in caught
    assert "low: no Python" in broken
    assert "BROKEN" in broken
    assert "low: seen by nobody" in survived
    assert "SURVIVED" in survived
    assert "BROKEN without the fault test_top.py::test_wrong fails" in vain
    assert total.startswith("1 caught, 1 survived, 2 broken")
    assert (tree / "src/cadlag/low.py").read_text() == "def double(x):\n    return 2 * x\n"


def test_a_name_that_no_fault_has_is_refused(tree, capsys):
    """Or a misspelt ONLY would say that all is well."""
    write_table(tree, ("low: three for two", "return 2 * x", "return 3 * x", "test_answer"))
    assert main(["--only", "three,high"], tree) == 2
    assert capsys.readouterr().err == "there is no mutant with 'high' in its name\n"


@pytest.mark.parametrize(
    ("find", "test", "message"),
    [("return 5", "test_answer", "found 0 times (nowhere)"), ("import", "test_answer", "found 3 times"),
     ("return 2 * x", "test_gone", "there are 0 tests 'test_gone'")],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused(tree, capsys, find, test, message):
    write_table(tree, ("low: old", find, "return 3 * x", test))
    assert main([], tree) == 2
    assert f"stale mutant 'low: old': {message}" in capsys.readouterr().err.replace("its text is ", "")


def test_what_was_compiled_of_a_changed_module_or_its_users_is_set_aside(tree, tmp_path):
    """Numba looks at the file of a function alone: a caller in another file would still hold the old code."""
    root = tmp_path / "copy"
    root.mkdir()
    copy = Copy(tree, root)
    assert {path.stem for path in dependants(copy.sources, copy.package, copy.package / "low.py")} == {
        "low", "middle", "top", "__init__",
    }  # fmt: skip
    cache = copy.package / "__pycache__"
    kept = {name: cache / f"{name}.f-1.py311.nbi" for name in ("low", "middle", "top", "aside")}
    for name, path in kept.items():
        path.write_text(name)
    before = os.stat(copy.package / "low.py").st_mtime_ns
    with copy.planted(Mutant("low", "return 2 * x", "return 3 * x", ())):
        assert [name for name, path in kept.items() if path.exists()] == ["aside"]
        assert os.stat(copy.package / "low.py").st_mtime_ns != before
        (cache / "middle.f-1.py311.nbi").write_text("of the fault")
        (cache / "middle.f-1.py311.1.nbc").write_text("of the fault")
    assert {name: path.read_text() for name, path in kept.items()} == {name: name for name in kept}
    assert not (cache / "middle.f-1.py311.1.nbc").exists()
    assert os.stat(copy.package / "low.py").st_mtime_ns == before


def test_a_run_without_end_is_caught_only_where_the_table_says_so():
    endless = Mutant("a", "b", "c", (), timeout_counts=True)
    assert judge(endless, None, "")[0] == "caught"
    assert judge(Mutant("a", "b", "c", ()), None, "")[0] == "BROKEN"


def test_a_fault_found_twice_has_no_place():
    with pytest.raises(StaleError, match="found 2 times"):
        find_source(Mutant("twice", "x", "y", ()), {Path("a.py"): "x = x", Path("b.py"): "z = 1"})
