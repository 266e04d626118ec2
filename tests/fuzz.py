"""Mutated tables and model files through the command: exit 0 or 2, never a traceback, never long.

python tests/fuzz.py --tables 5000 --models 2000 --seed 1 prints what went wrong, with the file that did it.
"""

import argparse
import signal
import sys
import tempfile
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from cadlag.cli import app
from cadlag.storage import read_tree, write_tree

SECONDS = 60
FUZZED = ("nngp", "kernel", "network")
TINY = ("--method", "nngp", "--draws", "2", "--warmup", "2", "--chains", "1", "--jobs", "1")
CELLS = (
    "", "NA", "inf", "-inf", "nan", "1e308", "-1e308", "1e-320", "9" * 400, "0x10", "1_0", "-0", "true", "1,5", '"',
    "'", "a;b", "é", "\u0661", "2024-02-30", "0000-01-01", "9999-12-31", "01/02/2024", "x" * 5000, "=1+1", "\t",
    "\x1b[31m", "[bold]", "[/]", "None", " ", "\n", "\r", "\0", "\ufeff", "day", "y",
)  # fmt: skip
LEAVES = (
    None, True, -1, 0, 2**70, 1.5, float("nan"), float("inf"), "", "x", [], {}, [1], {"a": 1}, np.zeros(0),
    np.full(3, np.nan), np.zeros((2, 2, 2)), np.array(["a"]), np.arange(4),
)  # fmt: skip


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
        line = lines[int(rng.integers(len(lines)))]
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
    node = tree
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
def deadline():
    """A case that hangs is a failure."""

    def late(*_):
        raise TimeoutError(f"longer than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def complaint(*arguments):
    """What is wrong with how a command ended, or the empty text."""
    with deadline():
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code in (0, 2) and "Traceback" not in result.output and "longer than" not in result.output:
        return ""
    if result.exc_info is None:
        return f"exit code {result.exit_code}"
    return f"exit code {result.exit_code}\n" + "".join(traceback.format_exception(*result.exc_info)[-6:])


def fuzz_tables(n, seed, folder):
    """Fit mutated tables, and give what went wrong."""
    tables, failures = seed_tables(), []
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        original = tables[int(rng.integers(len(tables)))]
        path = folder / "table.csv"
        path.write_bytes((mutate_cells if rng.random() < 0.7 else mutate_bytes)(rng, original))
        drop = ["--drop-missing"] if rng.random() < 0.5 else []
        method = ("--method", "nngp" if rng.random() < 0.7 else str(rng.choice(FUZZED)))
        if wrong := complaint("fit", path, "--target", "y", "--out", folder / "out.cadlag", *drop, *TINY, *method):
            failures.append(f"table {i} of seed {seed}: {path.read_bytes()[:400]!r}: {wrong}")
    return failures


def fuzz_models(n, seed, folder):
    """Predict with mutated models, by bytes and by tree, and give what went wrong."""
    table, model, path = folder / "new.csv", folder / "good.cadlag", folder / "bad.cadlag"
    table.write_bytes(seed_tables()[0])
    failures = []
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        if i % max(n // len(FUZZED), 1) == 0:
            method = FUZZED[i * len(FUZZED) // n % len(FUZZED)]
            assert not complaint("fit", table, "--target", "y", "--out", model, *TINY, "--method", method)
        if rng.random() < 0.3:
            path.write_bytes(mutate_bytes(rng, model.read_bytes()))
        else:
            write_tree(path, mutate_tree(rng, read_tree(model, "model")), "model")
        if wrong := complaint("predict", path, table):
            failures.append(f"model {i} of seed {seed}: {wrong}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = fuzz_tables(options.tables, options.seed, Path(folder))
        failures += fuzz_models(options.models, options.seed, Path(folder))
    print("\n".join(failures))
    print(f"{options.tables} tables and {options.models} models: {len(failures)} went wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
