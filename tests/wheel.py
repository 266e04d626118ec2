"""The wheel holds the package, whole and alone, and works in an empty environment outside of the repository.

python -m tests.wheel DIRECTORY looks at the sdist and the wheel that `python -m build` left there (`make wheel`).
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import cadlag

ROOT = Path(__file__).parents[1]
NEEDED = (
    *("cadlag/py.typed", "cadlag/*.html", "cadlag/papers/loria2025/printed.csv"),
    *("cadlag/papers/loria2025/README.md", "cadlag/papers/loria2025/rows/tables.jsonl"),
    *("cadlag-*.dist-info/licenses/LICENSE", "cadlag-*.dist-info/entry_points.txt"),
)
ALIEN = ("*test_*", "*conftest*", "*benchmark*", "*experiments/*", "*__pycache__*")
ROUND_TRIP = """
import sys
from pathlib import Path

import numpy as np

import cadlag

assert Path(cadlag.__file__).is_relative_to(sys.prefix), cadlag.__file__
x = np.linspace(-1.0, 1.0, 30)[:, None]
model = cadlag.StableKernelRegressor(n_chains=2, n_warmup=100, n_draws=100, random_state=0)
model.fit(x, 5.0 * (x[:, 0] > 0.0) + np.random.default_rng(0).normal(0.0, 0.5, 30))
model.save("model.cadlag")
assert np.array_equal(cadlag.load("model.cadlag").predict_interval(x), model.predict_interval(x))
"""


def main(folder: Path) -> None:
    """Check the only sdist and the only wheel in a folder; an exception says what is not right."""
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    for path in (sdist, wheel):
        assert path.name.startswith(f"cadlag-{cadlag.__version__}"), f"{path.name} is not of {cadlag.__version__}"
    check_contents(wheel)
    with tempfile.TemporaryDirectory(prefix="cadlag-wheel-") as elsewhere:
        check_use(wheel.resolve(), Path(elsewhere).resolve())


def check_contents(wheel: Path) -> None:
    """What is below src/cadlag is in the wheel, and nothing else but its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = (path for path in (ROOT / "src/cadlag").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    wanted = {path.relative_to(ROOT / "src").as_posix() for path in sources}
    metadata = {name for name in names if fnmatch(name, "cadlag-*.dist-info/*")}
    unmet = [pattern for pattern in NEEDED if not any(fnmatch(name, pattern) for name in names)]
    alien = sorted(name for name in names if any(fnmatch(name, pattern) for pattern in ALIEN))
    assert not unmet, f"{wheel.name} has no {', '.join(unmet)}: see package-data in pyproject.toml"
    assert not alien, f"{wheel.name} holds {', '.join(alien)}"
    differing = sorted((names - metadata) ^ wanted)
    assert not differing, f"{wheel.name} and src/cadlag differ in {', '.join(differing)}"
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.2f} MB")


def check_use(wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment, and do there what a newcomer does."""
    assert not folder.is_relative_to(ROOT), f"{folder} is in the repository; set TMPDIR to another directory"
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(folder, programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[cli]")
    said = run(folder, programs / "cadlag", "--version")
    assert said == f"cadlag {cadlag.__version__}\n", said
    run(folder, programs / "cadlag", "demo", "--out", "demo")
    (folder / "round_trip.py").write_text(ROUND_TRIP)
    run(folder, programs / "python", "-W", "ignore", "round_trip.py")
    run(folder, programs / "cadlag", "reproduce", "loria2025", "--out", "paper")
    for made in ("demo/nile.html", "demo/nile.cadlag", "paper/table-1.md", "paper/figure-1.png"):
        assert (folder / made).stat().st_size, f"{made} is empty"


def run(folder: Path, *command: str | Path) -> str:
    """What a command says in a folder, with nothing of ours in its environment; also how long it took."""
    words = [str(word) for word in command]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CADLAG_"))}
    start = time.perf_counter()
    done = subprocess.run(words, cwd=folder, env=clean, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    print(f"{time.perf_counter() - start:7.1f} s  {Path(words[0]).name} {' '.join(words[1:])}", flush=True)
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
