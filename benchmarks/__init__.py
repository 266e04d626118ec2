"""Speed, and speed only: every figure is a ratio of two things measured in turn in one run.

`python -m benchmarks` runs all, `python -m benchmarks NAME ...` some; `--quick` is a rehearsal, not a measurement.
"""
