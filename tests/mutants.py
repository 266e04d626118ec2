"""Faults planted one at a time, each of which must fail a test that is named for it: tests that can fail.

`make mutants`, or python -m tests.mutants [--only WORDS,...] [--jobs N]. The faults are in `mutants.toml`. A fault is a
piece of source text, which must occur exactly once in src/cadlag wherever that is, and what takes its place.

Each worker copies the tree once. It runs a fault's tests without the fault, once for each selection, then with it, and
restores the file with its time. Numba recompiles a function when the file that defines it has another time, but not
when a function or constant that it took from another file changed: so the compiled code of the changed module, and of
every module that imports it directly or not, is set aside while the fault is in place, and what was compiled meanwhile
is thrown away. Bytecode is compiled before and checked by the hash of its source, and no run writes any.
"""

import argparse
import ast
import compileall
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

HERE = Path(__file__).parent
SECONDS = 300.0
_FIRST = re.compile(r"^(?:FAILED|ERROR) \S*?([^\s/]+\.py::\w+)", re.MULTILINE)  # without folders and parameters
_COMPILED = (".nbi", ".nbc")


@dataclass(frozen=True)
class Mutant:
    """A fault, and the tests that must catch it.

    Attributes
    ----------
    name
        The room and what is wrong.
    find
        Source text.
    put
        What takes its place.
    tests
        Names of test functions, or of test files without their ending.
    timeout_counts
        Whether tests that do not end have caught it.
    """

    name: str
    find: str
    put: str
    tests: tuple[str, ...]
    timeout_counts: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: `word` is "caught", "SURVIVED" or "BROKEN", and `by` the test or the reason."""

    mutant: Mutant
    word: str
    by: str
    seconds: float


class StaleError(ValueError):
    """The table and the tree do not fit each other."""


# The table -----------------------------------------------------------------------------------------------------------


def read_mutants(path: Path = HERE / "mutants.toml") -> list[Mutant]:
    """The faults, in the order of the table."""
    with path.open("rb") as stream:
        return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in tomllib.load(stream)["mutant"]]


def read_sources(root: Path) -> dict[Path, str]:
    """The text of every source file."""
    return {path: path.read_text("utf-8") for path in sorted((root / "src" / "cadlag").rglob("*.py"))}


def find_source(mutant: Mutant, sources: dict[Path, str]) -> Path:
    """The one file that holds a fault's source text, once."""
    holders = [path for path, text in sources.items() for _ in range(text.count(mutant.find))]
    if len(holders) != 1:
        places = ", ".join(path.name for path in holders) or "nowhere"
        raise StaleError(f"stale mutant {mutant.name!r}: its text is found {len(holders)} times ({places})")
    return holders[0]


def find_tests(mutant: Mutant, root: Path) -> list[str]:
    """Where its tests are, as pytest wants them."""
    files = sorted((root / "tests").rglob("test_*.py"))
    found = []
    for name in mutant.tests:
        pattern = re.compile(rf"^def {re.escape(name)}\(", re.MULTILINE)
        places = [path for path in files if path.stem == name]
        nodes = [f"{path.relative_to(root)}::{name}" for path in files if pattern.search(path.read_text("utf-8"))]
        places = [str(path.relative_to(root)) for path in places] + nodes
        if len(places) != 1:
            raise StaleError(f"stale mutant {mutant.name!r}: there are {len(places)} tests {name!r}")
        found += places
    return found


# What depends on what ------------------------------------------------------------------------------------------------


def module_name(path: Path, package: Path) -> str:
    """The dotted name of a source file below the package's directory."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST, name: str, is_package: bool, known: set[str]) -> Iterator[str]:
    """Modules among the known ones that a module imports, or takes names from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            up = name.split(".")[: len(name.split(".")) - node.level + is_package] if node.level else []
            source = ".".join([*up, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield from (found for found in (inner if inner in known else source,) if found in known)


def dependants(sources: dict[Path, str], package: Path, changed: Path) -> set[Path]:
    """A source file, and all that import it directly or not."""
    paths = {module_name(path, package): path for path in sources}
    users: dict[str, set[str]] = {}
    for name, path in paths.items():
        for used in _imports(ast.parse(sources[path]), name, path.stem == "__init__", set(paths)):
            users.setdefault(used, set()).add(name)
    reached, new = set(), {module_name(changed, package)}
    while new:
        reached |= new
        new = {user for name in new for user in users.get(name, ())} - reached
    return {paths[name] for name in reached}


# A copy of the tree --------------------------------------------------------------------------------------------------


class Copy:
    """A copy of the tree in which faults are planted.

    Parameters
    ----------
    origin
        The tree.
    root
        Where the copy goes.
    """

    def __init__(self, origin: Path, root: Path) -> None:
        self.root, self.package = root, root / "src" / "cadlag"
        for name in ("src", "tests"):
            shutil.copytree(origin / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for path in origin.iterdir():
            if path.name not in ("src", "tests") and not path.name.startswith("."):
                (root / path.name).symlink_to(path)
        compileall.compile_dir(root, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self.sources = read_sources(root)

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The fault is in place inside, with nothing compiled that depends on the changed file."""
        path = find_source(mutant, self.sources)
        text, before = self.sources[path], path.stat()
        stale = dependants(self.sources, self.package, path)
        with tempfile.TemporaryDirectory(dir=self.root) as aside:
            kept = [(old, Path(aside) / str(k)) for k, old in enumerate(_compiled(stale))]
            for old, new in kept:
                old.rename(new)
            path.write_text(text.replace(mutant.find, mutant.put), "utf-8")
            try:
                yield
            finally:
                path.write_text(text, "utf-8")
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
                for made in _compiled(stale):
                    made.unlink()
                for old, new in kept:
                    new.rename(old)

    def run(self, tests: Sequence[str]) -> tuple[int | None, str]:
        """Exit code of pytest, or None after too long, and what it said."""
        # Its own options in place of the project's, whose -q and another would leave out how many passed.
        options = ("-o", "addopts=", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-rfE", "--tb=no")
        command = [sys.executable, "-m", "pytest", *options, *tests]
        process = subprocess.Popen(
            command, cwd=self.root, env=self._environment(), start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=SECONDS)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            _end(process)

    def _environment(self) -> dict[str, str]:
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        own = {"PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and loading them takes longer than many tests
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTEST_"))}
        return {**inherited, **own, **dict.fromkeys(threads, "1")}

    def check_import(self) -> None:
        """Refuse to go on where the interpreter would test another tree than this copy."""
        command = [sys.executable, "-c", "import cadlag; print(cadlag.__file__)"]
        said = subprocess.run(command, cwd=self.root, env=self._environment(), capture_output=True, text=True)
        if not said.stdout.startswith(str(self.package)):
            raise StaleError(f"cadlag is imported from {said.stdout.strip() or said.stderr}, not from the copied tree")


def _compiled(paths: set[Path]) -> list[Path]:
    """What numba has kept of source files: index and code of each function, named after the file."""
    return [
        found
        for path in sorted(paths)
        for found in sorted((path.parent / "__pycache__").glob(f"{path.stem}.*"))
        if found.suffix in _COMPILED
    ]


def _end(process: subprocess.Popen) -> None:
    """End a process that we started, and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# Runs ----------------------------------------------------------------------------------------------------------------


def judge(mutant: Mutant, code: int | None, said: str) -> tuple[str, str]:
    """What a run of its tests says of a fault: word and test or reason."""
    first = _FIRST.search(said)
    if code is None:
        return ("caught", "its tests do not end") if mutant.timeout_counts else ("BROKEN", f"no end in {SECONDS:.0f} s")
    if code == 0:
        return "SURVIVED", ""
    if code == 1 and first is not None:
        return "caught", first[1]
    last = said.strip().splitlines()[-1:] or [""]
    return "BROKEN", f"pytest ended with {code}: {last[0]}"


def check_sound(copy: Copy, tests: Sequence[str]) -> str:
    """Why the tests cannot be used, or the empty text: without a fault they must pass, and not be skipped."""
    code, said = copy.run(tests)
    if code == 0 and re.search(r"\b[1-9]\d* passed", said):
        return ""
    first = _FIRST.search(said)
    return f"without the fault {first[1] if first else 'no test'} {'fails' if first else 'passes'}"


def run_group(copy: Copy, mutants: Sequence[Mutant]) -> list[Outcome]:
    """Faults that have the same tests, one after the other."""
    tests = find_tests(mutants[0], copy.root)
    reason = check_sound(copy, tests)
    done = []
    for mutant in mutants:
        start = time.perf_counter()
        word, by = ("BROKEN", reason) if reason else _try(copy, mutant, tests)
        done.append(Outcome(mutant, word, by, time.perf_counter() - start))
    return done


def _try(copy: Copy, mutant: Mutant, tests: Sequence[str]) -> tuple[str, str]:
    with copy.planted(mutant):
        return judge(mutant, *copy.run(tests))


def grouped(mutants: Sequence[Mutant]) -> list[list[Mutant]]:
    """Faults by their tests, in the order in which they first stand."""
    groups: dict[tuple[str, ...], list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault(mutant.tests, []).append(mutant)
    return list(groups.values())


def run_all(origin: Path, mutants: Sequence[Mutant], n_jobs: int) -> Iterator[Outcome]:
    """Outcomes group by group, in the same order whatever the number of workers."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(n_jobs) as pool:
        copies: Queue[Copy] = Queue()
        for k in range(n_jobs):
            (Path(place) / str(k)).mkdir()
            copies.put(Copy(origin, Path(place).resolve() / str(k)))
        copies.queue[0].check_import()

        def work(group: Sequence[Mutant]) -> list[Outcome]:
            copy = copies.get()
            try:
                return run_group(copy, group)
            finally:
                copies.put(copy)

        for outcomes in pool.map(work, grouped(mutants)):
            yield from outcomes


def choose(mutants: Sequence[Mutant], only: str) -> list[Mutant]:
    """The faults whose name holds one of some words, with commas between; all without any."""
    words = [word.strip() for word in only.split(",") if word.strip()]
    for word in words:
        if not any(word in mutant.name for mutant in mutants):
            raise StaleError(f"there is no mutant with {word!r} in its name")
    return [mutant for mutant in mutants if not words or any(word in mutant.name for word in words)]


def check_table(mutants: Sequence[Mutant], origin: Path) -> None:
    """Refuse faults that have no place or no tests, before anything is run."""
    sources = read_sources(origin)
    for mutant in mutants:
        find_source(mutant, sources)
        find_tests(mutant, origin)


def report(outcomes: Iterator[Outcome]) -> int:
    """Print outcomes as they come, and their numbers; the exit code."""
    start, counts = time.perf_counter(), {"caught": 0, "SURVIVED": 0, "BROKEN": 0}
    for found in outcomes:
        counts[found.word] += 1
        verdict = f"caught by {found.by}" if found.word == "caught" else f"{found.word} {found.by}".rstrip()
        print(f"{found.mutant.name:<72} {verdict}  {found.seconds:.1f} s", flush=True)
    broken = f", {counts['BROKEN']} broken" if counts["BROKEN"] else ""
    print(f"{counts['caught']} caught, {counts['SURVIVED']} survived{broken} ({time.perf_counter() - start:.0f} s)")
    return 0 if counts["caught"] == sum(counts.values()) else 1


def main(arguments: Sequence[str] | None = None, origin: Path = HERE.parent) -> int:
    """Run the command line; 0 if all were caught, 1 if one was not, 2 if the table does not fit the tree."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant faults and see who notices.")
    parser.add_argument("--only", default="", help="faults whose name holds one of these words, with commas between")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that work at the same time")
    asked = parser.parse_args(arguments)
    try:
        mutants = choose(read_mutants(origin / "tests" / "mutants.toml"), asked.only)
        check_table(mutants, origin)
        return report(run_all(origin, mutants, asked.jobs))
    except StaleError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
