"""The same draws as another revision, bit for bit: the cases of `tests/draws.py` on both source trees.

python -m tests.same_draws --base REVISION prints a line a case: equal, new (the base lacks the setting), or the first
difference and its size. A case with a twin, such as a run that was resumed, must equal that in this tree as well.
"""

import argparse
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / ".same-draws"
DRIVER = ROOT / "tests" / "draws.py"
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "joblib", "arviz-stats")
CHOICES = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_DISABLE_JIT")
KEPT = 3  # compiled versions of this tree
EQUAL, NEW, DIFFERENT = "equal", "new", "different"

Arrays = Mapping[str, Any]


# Comparison ----------------------------------------------------------------------------------------------------------


def unequal(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Where two arrays of one shape and type differ in any bit, all NaN being alike."""
    differ = ours != theirs
    if ours.dtype.kind == "f":
        differ = (differ | (np.signbit(ours) != np.signbit(theirs))) & ~(np.isnan(ours) & np.isnan(theirs))
    return np.asarray(differ)


def difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> str:
    """What differs first in an array and by how much, or the empty text."""
    both_text = ours.dtype.kind == theirs.dtype.kind == "U"  # whose type has a length
    if ours.shape != theirs.shape or not (both_text or ours.dtype == theirs.dtype):
        return f"{name} is {ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    places = np.argwhere(unequal(ours, theirs))
    if not len(places):
        return ""
    first = tuple(int(i) for i in places[0])
    where = f"{name}{list(first) if first else ''}"
    if ours.dtype.kind not in "biuf":
        return f"{where} is {ours[first]} instead of {theirs[first]}"
    gaps = np.abs(ours.astype(float) - theirs.astype(float))
    most = f" and at most {np.nanmax(gaps):.3g}" if len(places) > 1 and not np.isnan(gaps).all() else ""
    return f"{where} is {float(ours[first])!r} instead of {float(theirs[first])!r}, off by {gaps[first]:.3g}{most}"


def differences(ours: Arrays, theirs: Arrays) -> str:
    """The first difference between two cases, and how many arrays have one; what only ours has is no difference."""
    found = [difference(name, ours[name], theirs[name]) if name in ours else f"{name} is missing" for name in theirs]
    found = [text for text in found if text]
    if not found:
        return "" if theirs else "there is nothing to compare"
    return f"{found[0]}; {len(found)} of {len(theirs)} arrays differ"


@dataclass(frozen=True)
class Result:
    """What came of a case in one tree: arrays, or why there are none."""

    arrays: Arrays
    seconds: float = 0.0
    unknown: str = ""
    error: str = ""

    @classmethod
    def read(cls, path: Path) -> "Result":
        """From a file of the driver."""
        with np.load(path, allow_pickle=False) as file:
            arrays = {name.removeprefix("array/"): file[name] for name in file.files if name.startswith("array/")}
            unknown, error = (str(file[key]) if key in file else "" for key in ("unknown", "error"))
            return cls(arrays, float(file["seconds"]), unknown, error)


def judge(ours: Result, theirs: Result, twin: Result | None = None) -> tuple[str, str]:
    """Equal, new or different, and what there is to say of it."""
    if ours.error or ours.unknown:
        return DIFFERENT, f"no result in this tree: {ours.error or ours.unknown}"
    if twin is not None and (text := differences(ours.arrays, twin.arrays)):
        return DIFFERENT, f"not what its twin in this tree is: {text}"
    if theirs.unknown:
        return NEW, f"the base lacks it: {theirs.unknown}"
    if theirs.error:
        return DIFFERENT, f"no result in the base: {theirs.error}"
    if text := differences(ours.arrays, theirs.arrays):
        return DIFFERENT, text
    added = [name for name in ours.arrays if name not in theirs.arrays]
    return EQUAL, f"{len(theirs.arrays)} arrays" + (f"; only in this tree: {', '.join(added)}" if added else "")


# Source trees --------------------------------------------------------------------------------------------------------


def git(*arguments: str) -> bytes:
    """What git says of this repository."""
    command = ["git", "-C", str(ROOT), *arguments]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode:
        raise SystemExit(f"git {' '.join(arguments)} failed: {result.stderr.decode(errors='replace').strip()}")
    return result.stdout


def checkout(revision: str) -> Path:
    """The sources of a revision, kept under its hash so that they are compiled once; complete or absent."""
    commit = git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    place = STORE / commit
    if not (place / "src").is_dir():
        place.mkdir(exist_ok=True)
        archive = io.BytesIO(git("archive", "--format=tar", commit, "src"))
        with tempfile.TemporaryDirectory(dir=place) as part, tarfile.open(fileobj=archive) as files:
            files.extractall(part, filter="data")
            os.rename(Path(part) / "src", place / "src")
    return place


def mark_of_sources(source: Path) -> str:
    """A hash of all that is compiled: numba does not see that a function changed which another file inlines."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def mark_of_results() -> str:
    """A hash of all that results depend on besides the sources: cases, libraries, processor."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    choices = [f"{name} {os.environ.get(name)}" for name in CHOICES]
    about = [platform.python_version(), platform.platform(), processor(), *versions, *choices]
    return hashlib.sha256(DRIVER.read_bytes() + "\n".join(about).encode()).hexdigest()[:16]


def processor() -> str:
    """The processor's name and abilities, by which compiled code is chosen."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


def drop_all_but(kept: Path, most: int) -> None:
    """Leave one folder and the newest of those beside it."""
    others = sorted((path for path in kept.parent.iterdir() if path != kept), key=lambda path: path.stat().st_mtime)
    for path in others[: max(len(others) - most + 1, 0)]:
        shutil.rmtree(path, ignore_errors=True)


# Runs ----------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """The driver at work on one tree."""

    process: subprocess.Popen
    results: Path

    def wait_for(self, name: str) -> Result:
        """What came of a case, as soon as it is there."""
        path = self.results / f"{name}.npz"
        while not path.exists():
            code = self.process.poll()
            if code is not None and not path.exists():
                return Result({}, error=f"the process ended with exit code {code}{self._last_words()}")
            time.sleep(0.05)
        return Result.read(path)

    def _last_words(self) -> str:
        said = (self.results / "log").read_text(errors="replace").strip().splitlines()
        return f": {said[-1]}" if said else ""


@contextmanager
def started(source: Path, results: Path, compiled: Path, scratch: str, only: str) -> Iterator[Run]:
    """The driver on a source tree, with one thread, ended with the context whatever happens."""
    for folder in (results, compiled):
        folder.mkdir(parents=True, exist_ok=True)
    places = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(compiled), "TMPDIR": scratch}
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    command = [sys.executable, str(DRIVER), str(results), "--source", str(source), "--only", only]
    with (results / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **places, **threads}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield Run(process, results)
    finally:
        process.terminate()
        process.wait()


def cases(only: str) -> dict[str, str | None]:
    """Names of the cases, with their twins."""
    command = [sys.executable, str(DRIVER), "--list", "--only", only]
    names = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    if not names:
        raise SystemExit(f"no case has {only!r} in its name: python tests/draws.py --list prints them")
    return names


def results_of_base(base: Path, fresh: bool) -> Path:
    """Where results of the base are kept, for as long as they would come out again; never failures."""
    results = base / "results" / mark_of_results()
    if fresh:
        shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True, exist_ok=True)
    drop_all_but(results, 1)
    for path in results.glob("*.npz"):
        if Result.read(path).error:
            path.unlink()
    return results


@contextmanager
def both(revision: str, mark: str, only: str, fresh: bool) -> Iterator[tuple[Run, Run]]:
    """This tree, known by the mark of its sources, and the base at work side by side."""
    STORE.mkdir(exist_ok=True)
    base = checkout(revision)
    compiled = STORE / "compiled" / mark
    compiled.mkdir(parents=True, exist_ok=True)
    drop_all_but(compiled, KEPT)
    theirs = results_of_base(base, fresh)
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        here = stack.enter_context(started(ROOT / "src", Path(scratch) / "results", compiled, scratch, only))
        there = stack.enter_context(started(base / "src", theirs, base / "compiled", scratch, only))
        yield here, there


def compare(revision: str, only: str = "", fresh: bool = False) -> int:
    """A line a case and one for all of them; 1 if any differs."""
    began, names, mark = time.perf_counter(), cases(only), mark_of_sources(ROOT / "src")
    counts = dict.fromkeys((EQUAL, DIFFERENT, NEW), 0)
    width = max(map(len, names))
    with both(revision, mark, only, fresh) as (here, there):
        for name, twin in names.items():
            ours = here.wait_for(name)
            verdict, text = judge(ours, there.wait_for(name), None if twin is None else here.wait_for(twin))
            counts[verdict] += 1
            print(f"{name:<{width}}  {verdict:<9}  {ours.seconds:5.1f} s  {text}", flush=True)
    new = f", {counts[NEW]} new" if counts[NEW] else ""
    seconds = time.perf_counter() - began
    print(f"{counts[EQUAL]} equal, {counts[DIFFERENT]} different{new}: this tree and {revision}, {seconds:.0f} s")
    if changed := mark != mark_of_sources(ROOT / "src"):
        print("this tree was changed while it ran, so that nothing is known of it: run again")
    return int(changed or counts[DIFFERENT] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="HEAD", help="the revision to compare with")
    parser.add_argument("--only", default="", help="words that a case's name holds")
    parser.add_argument("--fresh", action="store_true", help="run the base again, though its results are kept")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: nothing stays behind
    try:
        return compare(options.base, options.only, options.fresh)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
