"""Mutated tables and model files through the command: exit 0 or 2, never a traceback, never long.

python -m tests.fuzz --csv 5000 --models 2000 --processes 50 --seed 1 prints what went wrong, with what did it.
"""

import argparse
import multiprocessing
import queue
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from cadlag.app.cli import app
from cadlag.frames import read_frame
from cadlag.methods import METHODS
from cadlag.storage import read_tree, write_tree

SECONDS = 60
SECONDS_TO_COMPILE = 1800
CHUNK = 100
REPORTED = 0.02  # share of models that a page is made of
TINY = {
    "ml_gp": ("--set", "n_starts=1"),
    "diwp": ("--set", "n_steps=3", "--set", "n_atoms=2", "--set", "n_inducing=5"),
    "network": ("--set", "n_units=3", "--set", "bulk=false"),
}
CELLS = (
    "", "NA", "inf", "-inf", "nan", "1e308", "-1e308", "1e-320", "9" * 400, "0x10", "1_0", "-0", "true", "1,5", '"',
    "'", "a;b", "é", "\u0661", "2024-02-30", "0000-01-01", "9999-12-31", "01/02/2024", "x" * 5000, "=1+1", "\t",
    "\x1b[31m", "[bold]", "[/]", "None", " ", "\n", "\r", "\0", "\ufeff", "day", "y",
    '"6 inches', '8"', '"a"b', '"a, b, c"', '"two\nlines"', "1" * 40_000 + "x", "9" * 40_000, "." * 40_000,
    "\x1b]0;title\x07", "\x9b2J", "\u202etxt", "y[/]", "[link=x]", "kind=a", "kind=b", "intercept", "amplitude",
    "20240131",
)  # fmt: skip
QUOTES = ('"6 inches', '8"', '"a"b', '"', '""', '"""', '"a;b"', 'a"b', '" a', 'b "', '"a,b"')
LEAVES = (
    None, True, -1, 0, 2**70, 1.5, float("nan"), float("inf"), "", "x", [], {}, [1], {"a": 1}, np.zeros(0),
    np.full(3, np.nan), np.zeros((2, 2, 2)), np.array(["a"]), np.arange(4), 10**9, 10**30, 1e300, "%Q(", "((((", "%d%",
    "kind=a", "Infinity",
)  # fmt: skip
SEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")  # by a terminal, which it must not be


def tiny(method):
    """Options of a fit that takes no time."""
    return "--draws", "2", "--warmup", "2", "--chains", "1", "--jobs", "1", *TINY.get(method, ())


def seed_tables():
    """Tables that are read without complaint."""
    rng = np.random.default_rng(0)
    rows = [
        (f"2024-01-{i + 1:02d}", "abc"[i % 3], f"{rng.normal():.3f}", f"{i * 0.5 + rng.normal():.3f}")
        for i in range(12)
    ]
    plain = "day,kind,x,y\n" + "".join(",".join(row) + "\n" for row in rows)
    other = "day;kind;x;y\r\n" + "".join(";".join(row).replace(".", ",") + "\r\n" for row in rows)
    return [plain.encode(), other.encode(), b"x,y\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(8))]


def mutate_bytes(rng, data):
    """A few bytes changed, cut, doubled or lost."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not data:
            break
        at, length = int(rng.integers(len(data))), int(rng.integers(1, 30))
        match rng.integers(5):
            case 0:
                data[at] = rng.integers(256)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case 3:
                data[at:at] = rng.bytes(length)
            case 4:
                del data[at:]
    return bytes(data)


def mutate_cells(rng, data):
    """Some cells, lines or names replaced."""
    mark = ";" if b";" in data else ","
    lines = [line.split(mark) for line in data.decode().splitlines()]
    for _ in range(rng.integers(1, 6)):
        line = lines[0 if rng.random() < 0.2 else int(rng.integers(len(lines)))]
        place, cell = int(rng.integers(len(line))), CELLS[int(rng.integers(len(CELLS)))]
        match rng.integers(6):
            case 0 | 1:
                line[place] = cell
            case 2:
                for other in lines[1:]:
                    other[place % len(other)] = cell
            case 3:
                line.append(cell)
            case 4:
                lines.append(list(line))
            case 5:
                del lines[2 : 2 + int(rng.integers(len(lines)))]
    return "\n".join(mark.join(line) for line in lines).encode()


def mutate_tree(rng, tree):
    """One node of a model's tree replaced or removed."""
    node = tree["settings"] if rng.random() < 0.2 else tree["recipe"] if rng.random() < 0.1 else tree
    while True:
        key = list(node)[int(rng.integers(len(node)))] if isinstance(node, dict) else int(rng.integers(len(node)))
        inner = node[key]
        if not (isinstance(inner, dict | list) and len(inner)) or rng.random() < 0.1:
            break
        node = inner
    if isinstance(inner, np.ndarray) and inner.size and inner.dtype.kind == "f" and rng.random() < 0.5:
        changed = inner.copy()
        changed.flat[int(rng.integers(inner.size))] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0])
        node[key] = changed
    elif rng.random() < 0.2:
        del node[key]
    else:
        node[key] = LEAVES[int(rng.integers(len(LEAVES)))]
    return tree


@contextmanager
def deadline(seconds):
    """A case that hangs is a failure."""

    def late(*_):
        raise TimeoutError(f"longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def complaint(*arguments, seconds=SECONDS):
    """What is wrong with how a command ended, or the empty text."""
    with deadline(seconds):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if found := SEEN.search(result.output):
        return f"the terminal is shown {found[0]!r}"
    if result.exit_code in (0, 2) and "Traceback" not in result.output and "longer than" not in result.output:
        return ""
    if result.exc_info is None:
        return f"exit code {result.exit_code}"
    return f"exit code {result.exit_code}\n" + "".join(traceback.format_exception(*result.exc_info)[-6:])


def complaint_of_process(*arguments):
    """The same of the program as a shell runs it."""
    command = [sys.executable, "-m", "cadlag.app.cli", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    fine = result.returncode in (0, 2) and "Traceback" not in result.stderr
    return "" if fine else f"exit code {result.returncode}\n{result.stderr[-2000:]}"


# Cases ---------------------------------------------------------------------------------------------------------------


def prepare(folder, methods=tuple(METHODS)):
    """A good table, and a good model of each method."""
    (folder / "good.csv").write_bytes(seed_tables()[0])
    for method in methods:
        out = folder / f"{method}.cadlag"
        arguments = "fit", folder / "good.csv", "-t", "y", "-m", method, "-o", out, *tiny(method)
        wrong = complaint(*arguments, seconds=SECONDS_TO_COMPILE)
        assert not wrong, f"{method}: {wrong}"
    return methods


def table_case(seed, i, folder, methods, check=complaint):
    """A mutated table through fit, or through predict with a good model."""
    rng = np.random.default_rng([seed, i])
    path, out = folder / "table.csv", folder / "out.cadlag"
    original = seed_tables()[int(rng.integers(3))]
    path.write_bytes((mutate_cells if rng.random() < 0.7 else mutate_bytes)(rng, original))
    drop = ["--drop-missing"] if rng.random() < 0.5 else []
    method = str(rng.choice(methods)) if rng.random() < 0.2 else methods[0]
    if rng.random() < 0.3:
        wrong = check("predict", folder / f"{method}.cadlag", path, *drop)
    else:
        wrong = check("fit", path, "-t", "y", "-o", out, "-m", method, *drop, *tiny(method))
    return wrong and f"table {i} of seed {seed}, {method}: {path.read_bytes()[:400]!r}: {wrong}"


def quote_case(seed, i, folder, methods, check=complaint):
    """A table with stray quotes in one line each: no row may vanish, whatever the quotes are taken for."""
    rng = np.random.default_rng([seed, i])
    mark = ",;"[int(rng.integers(2))]
    lines = [[f"2024-01-{k + 1:02d}", "abc"[k % 3], f"{k / 2}", f"{k}"] for k in range(12)]
    for _ in range(rng.integers(1, 5)):
        lines[int(rng.integers(12))][int(rng.integers(4))] = QUOTES[int(rng.integers(len(QUOTES)))]
    path = folder / "quotes.csv"
    path.write_text("\n".join(mark.join(line) for line in [["day", "kind", "x", "y"], *lines]) + "\n")
    try:
        n_rows = read_frame(path).n_rows
    except ValueError:
        return ""
    return "" if n_rows == 12 else f"quotes {i} of seed {seed}: {n_rows} rows of 12 in {path.read_text()!r}"


def model_case(seed, i, folder, methods, check=complaint):
    """A model file, mutated by bytes or by tree, through predict and now and then through report."""
    rng = np.random.default_rng([seed, i])
    method = methods[i % len(methods)]
    good, path = folder / f"{method}.cadlag", folder / "bad.cadlag"
    if rng.random() < 0.3:
        path.write_bytes(mutate_bytes(rng, good.read_bytes()))
    else:
        write_tree(path, mutate_tree(rng, read_tree(good, "model")), "model")
    wrong = check("predict", path, folder / "good.csv")
    if not wrong and rng.random() < REPORTED:
        wrong = check("report", path, "-o", folder / "page.html")
    return wrong and f"model {i} of seed {seed}, {method}: {wrong}"


def run_cases(case, numbers, seed, folder, methods, check=complaint):
    """What went wrong, case by case, in this process."""
    return [wrong for i in numbers if (wrong := case(seed, i, folder, methods, check))]


def run_apart(case, n, seed, folder, methods):
    """The same in children, for what kills a process must not end the run: then the case is named."""
    context, failures = multiprocessing.get_context("fork"), []
    for start in range(0, n, CHUNK):
        at, found = context.Value("i", start), context.Queue()

        def work(start=start, at=at, found=found):
            for i in range(start, min(start + CHUNK, n)):
                at.value = i
                found.put(run_cases(case, [i], seed, folder, methods))
            found.put(None)

        child = context.Process(target=work)
        child.start()
        while child.is_alive() or not found.empty():
            try:
                got = found.get(timeout=1.0)
            except queue.Empty:
                continue
            if got is None:
                break
            failures += got
        child.join()
        if child.exitcode != 0:
            failures.append(f"{case.__name__} {at.value} of seed {seed} ended the process: exit code {child.exitcode}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=int, default=2000, help="mutated tables")
    parser.add_argument("--models", type=int, default=1000, help="mutated model files")
    parser.add_argument("--processes", type=int, default=20, help="of each, as a program of its own")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        methods = prepare(folder)
        for case, n in ((quote_case, options.csv), (table_case, options.csv), (model_case, options.models)):
            start = time.perf_counter()
            failures += run_apart(case, n, options.seed, folder, methods)
            seconds = time.perf_counter() - start
            print(f"{case.__name__}: {n} in {seconds:.0f} s, {n / seconds:.1f} a second", flush=True)
            programs = range(n, n + options.processes)
            failures += run_cases(case, programs, options.seed, folder, methods, complaint_of_process)
    print("\n".join(failures))
    print(f"{options.csv} tables, {options.models} models, {options.processes} programs of each: {len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
