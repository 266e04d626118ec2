"""Run benchmarks by name: `python -m benchmarks [NAME ...] [--seeds N] [--quick] [--json FILE]`."""

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from benchmarks import against_nutpie, likelihood, neighbors, network_cost, order0, samplers, scaling, startup
from benchmarks.report import Report, Settings

# One row a benchmark.
BENCHMARKS: dict[str, Callable[[Settings], Report]] = {
    "likelihood": likelihood.run,
    "scaling": scaling.run,
    "samplers": samplers.run,
    "nutpie": against_nutpie.run,
    "startup": startup.run,
    "order0": order0.run,
    "network_cost": network_cost.run,
    "neighbors": neighbors.run,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, as ratios taken in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--seeds", type=int, help="seeds of the sampler benchmarks, instead of each one's own number")
    parser.add_argument("--quick", action="store_true", help="short runs that rehearse but do not measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to FILE")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; choose from {', '.join(BENCHMARKS)}")
    if arguments.seeds is not None and arguments.seeds < 1:
        parser.error("--seeds must be at least 1")
    return arguments


def _machine() -> dict[str, str]:
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
    return {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
            "machine": platform.machine(), "cores": str(os.cpu_count()), "load": load}  # fmt: skip


def _run(name: str, settings: Settings) -> Report:
    """One benchmark; a failure is reported and does not stop the others."""
    started = time.perf_counter()
    try:
        report = BENCHMARKS[name](settings)
    except Exception:
        report = Report(name, notes=["FAILED", *traceback.format_exc().splitlines()])
    print(f"\n== {name} ({time.perf_counter() - started:.0f} s)\n\n{report.text()}", flush=True)
    return report


def main() -> int:
    """Run, print, and write down if asked."""
    arguments = _arguments()
    settings = Settings(arguments.seeds, arguments.quick)
    machine = _machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()) + (", QUICK" if settings.quick else ""))
    with threadpool_limits(1):
        reports = [_run(name, settings) for name in arguments.names or BENCHMARKS]
    missed = [f"{report.name}: {f.what}" for report in reports for f in report.figures if f.verdict == "MISSED"]
    print("\n" + ("missed: " + "; ".join(missed) if missed else "no target missed"))
    if arguments.json:
        content = {"machine": machine, "quick": settings.quick, "reports": [report.plain() for report in reports]}
        arguments.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return int(any(report.notes[:1] == ["FAILED"] for report in reports))


if __name__ == "__main__":
    sys.exit(main())
