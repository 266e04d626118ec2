"""The power of the network's checks: each planted error is caught by the joint-law check of one move."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statistical.network_bugs import BUGS

CAUGHT = 4.75  # what the checks themselves demand


@pytest.mark.slow
@pytest.mark.parametrize("name", [bug.__name__ for bug in BUGS])
def test_planted_bug_is_caught(name: str) -> None:
    command = [sys.executable, "-m", "statistical.network_bugs", name]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(f"\n{name}: |z| = {float(done.stdout):.1f}")
    assert float(done.stdout) > CAUGHT
