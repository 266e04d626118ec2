"""CPU seconds and memory of a sweep of the stable network against rows and against units, each size in a fresh process.

A sweep is one `step` of `Sweeps` at level 0, without warm-up, on 10 standard normal inputs and the intercept; the
response is a step across an oblique hyperplane with noise. The process first sweeps a problem of 50 rows, so that
nothing is compiled or read from disk on the clock. Its resident memory then, when the data do not exist yet, is the
base; the peak is the largest resident memory from there until after the last sweep, data included. Both are read from
/proc/self/status, since ru_maxrss of a child starts at the peak of its parent.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Figure, Report, Settings
from benchmarks.timing import fresh_process
from cadlag.kernel_process.neighbors import Neighbors
from cadlag.network.model import StableNetwork
from cadlag.network.transition import Sweeps

N_INPUTS, N_UNITS = 10, 30
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
UNITS, ROWS_OF_UNITS = (10, 20, 50, 100, 200), 10_000
SLOPE_TARGET = 1.1
_MEASURED_FROM = 10_000  # rows below which the allocator's own pages blur the memory of the arrays
_MEGABYTE = 1e6
_BLOCK = 10_000
_STATUS = Path("/proc/self/status")
_MEASURE = "import json; from benchmarks.network_cost import measure; print(json.dumps(measure({}, {}, {})))"


def run(settings: Settings) -> Report:
    """Measure."""
    report = Report("network_cost")
    report.header = [
        "rows", "units", "sweeps", "median CPU s", "µs a row and unit", "base MB", "peak - base MB", "bound MB",
        "bytes a row",
    ]  # fmt: skip
    fresh_process(_MEASURE.format(50, N_UNITS, 1))  # which leaves the compiled loops on disk
    by_rows = [_measured(n, N_UNITS, report) for n in settings.choose(ROWS, ROWS[:3])]
    by_units = [_measured(ROWS_OF_UNITS, m, report) for m in settings.choose(UNITS, UNITS[:3])]
    slope = _slope([sizes["rows"] for sizes in by_rows], [sizes["seconds"] for sizes in by_rows])
    report.figures.append(Figure("log-log slope of seconds by rows", slope, "<=", SLOPE_TARGET))
    slope = _slope([sizes["units"] for sizes in by_units], [sizes["seconds"] for sizes in by_units])
    report.figures.append(Figure(f"log-log slope of seconds by units at {ROWS_OF_UNITS} rows", slope))
    large = [sizes for sizes in by_rows if sizes["rows"] >= _MEASURED_FROM]
    worst = max(sizes["grown"] / bound(sizes["rows"], N_UNITS) for sizes in large)
    what = f"largest (peak - base) / 8n(I + 3M) from {_MEASURED_FROM} rows"
    report.figures.append(Figure(what, worst, "<=", 1.0))
    report.notes.append(f"I = {N_INPUTS} inputs; the bound is 8n(I + 3M) bytes beyond the base, data included")
    return report


def bound(n_rows: int, n_units: int) -> float:
    """Bytes beyond the base that a run of sweeps may take."""
    return 8.0 * n_rows * (N_INPUTS + 3 * n_units)


def _measured(n_rows: int, n_units: int, report: Report) -> dict[str, Any]:
    """One size, in a fresh process, as a line of the report."""
    n_sweeps = int(np.clip(1e9 / (n_rows * n_units**2), 1, 9))
    found = fresh_process(_MEASURE.format(n_rows, n_units, n_sweeps))
    sizes = {"rows": n_rows, "units": n_units, "seconds": float(np.median(found["seconds"])), "grown": found["grown"]}
    report.rows.append([
        n_rows, n_units, n_sweeps, sizes["seconds"], 1e6 * sizes["seconds"] / (n_rows * n_units),
        found["base"] / _MEGABYTE, found["grown"] / _MEGABYTE, bound(n_rows, n_units) / _MEGABYTE,
        found["grown"] / n_rows,
    ])  # fmt: skip
    return sizes


def _slope(sizes: list[int], seconds: list[float]) -> float:
    """Of the least-squares line through the logs."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(n_rows: int, n_units: int, n_sweeps: int, n_neighbors: int = 0) -> dict[str, Any]:
    """CPU seconds of each sweep, resident bytes before the data exist, and bytes beyond them at the peak."""
    _sweep(50, n_units, 2, n_neighbors)
    _forget_peak()
    base = _resident("VmRSS")
    seconds = _sweep(n_rows, n_units, n_sweeps, n_neighbors)
    return {"seconds": seconds, "base": base, "grown": _resident("VmHWM") - base}


def _sweep(n_rows: int, n_units: int, n_sweeps: int, n_neighbors: int = 0) -> list[float]:
    """CPU seconds of each of several sweeps in a row, from a fresh start; on a sparse bulk, with so many neighbours."""
    rng, seconds = np.random.default_rng(0), []
    model = StableNetwork(*_data(n_rows), n_units)
    if n_neighbors:
        neighbors = Neighbors.find(model.X, np.zeros(model.n_inputs), n_neighbors)
        model = replace(model, bulk_depth=1, rough=True, neighbors=neighbors)
    kernel = Sweeps(model, 0)
    state = kernel.init(rng)
    for _ in range(n_sweeps):
        started = time.process_time()
        state, _ = kernel.step(rng, state, 0.0)
        seconds.append(time.process_time() - started)
    return seconds


def _data(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with intercept and responses, made in blocks so that making them leaves no peak."""
    rng = np.random.default_rng(1)
    X, y = np.ones((n_rows, N_INPUTS + 1)), np.empty(n_rows)
    for start in range(0, n_rows, _BLOCK):
        block = slice(start, min(start + _BLOCK, n_rows))
        inputs = rng.standard_normal((block.stop - start, N_INPUTS))
        X[block, 1:] = inputs
        y[block] = np.sign(inputs[:, 0] + inputs[:, 1] - 0.5) + 0.3 * rng.standard_normal(len(inputs))
    return X, y


def _resident(field: str) -> float:
    """Bytes of resident memory, now (VmRSS) or at the peak (VmHWM); not a number where the system does not tell."""
    if not _STATUS.is_file():
        return float("nan")
    return 1024.0 * next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith(field))


def _forget_peak() -> None:
    """Let the peak start anew from what is resident now."""
    if _STATUS.is_file():
        _STATUS.with_name("clear_refs").write_text("5")
