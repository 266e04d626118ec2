"""The power of the network's checks: each planted error is caught by the joint-law check of one move."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from statistical.network_bugs import BUGS, IN_PYTHON

CAUGHT = 4.75  # what the checks themselves demand


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bug_is_caught(bug: Callable[[], None]) -> None:
    name = bug.__name__
    command = [sys.executable, "-m", "statistical.network_bugs", name]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    if bug not in IN_PYTHON:
        environment["NUMBA_DISABLE_JIT"] = "1"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(f"\n{name}: |z| = {float(done.stdout):.1f}")
    assert float(done.stdout) > CAUGHT
