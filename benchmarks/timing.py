"""Two things timed in turn, so that whatever else the machine does hits both alike; and fresh processes."""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lapack

from cadlag.kernel_process.model import KernelProcess


def alternate(tasks: Mapping[str, Callable[[], float]], n_rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each task in each round; a task times itself, and the first round is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    gc.collect()
    gc.disable()
    try:
        for _ in range(n_rounds + 1):
            for name, task in tasks.items():
                seconds[name].append(task())
    finally:
        gc.enable()
    return {name: np.array(values[1:]) for name, values in seconds.items()}


def seconds_of(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def lapack_tasks(matrix: np.ndarray) -> dict[str, Callable[[], float]]:
    """Cholesky alone, and Cholesky with inverse, of a C-ordered lower triangle; the copy is made off the clock."""
    work = np.empty_like(matrix)

    def factorise() -> np.ndarray:
        factor, info = lapack.dpotrf(work.T, lower=0, clean=0, overwrite_a=1)
        if info:
            raise ArithmeticError("the matrix of the benchmark is not positive definite")
        return factor

    def invert() -> None:
        lapack.dpotri(factorise(), lower=0, overwrite_c=1)

    def on_copy(call: Callable[[], object]) -> float:
        np.copyto(work, matrix)
        return seconds_of(call)

    return {"dpotrf": lambda: on_copy(factorise), "dpotrf+dpotri": lambda: on_copy(invert)}


def likelihood_tasks(model: KernelProcess, position: np.ndarray) -> dict[str, Callable[[], float]]:
    """Value and gradient of a model, each followed by LAPACK's part of it on the very same matrix."""
    _, correlation = model.observe(position)
    alone = lapack_tasks(correlation.copy())
    return {
        "value": lambda: seconds_of(lambda: model.log_likelihood(position)),
        "dpotrf": alone["dpotrf"],
        "gradient": lambda: seconds_of(lambda: model.log_likelihood_gradient(position)),
        "dpotrf+dpotri": alone["dpotrf+dpotri"],
    }


def ordinary_position(model: KernelProcess, seed: int = 0) -> np.ndarray:
    """Scales near one and a noise variance of e^-2."""
    position = 0.3 * np.random.default_rng(seed).standard_normal(model.dimension)
    position[-1] = -2.0
    return position


def fresh_process(code: str, **environment: str) -> Any:
    """The last line that a fresh interpreter prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        cwd=Path(__file__).resolve().parents[1],
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"a child process failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
