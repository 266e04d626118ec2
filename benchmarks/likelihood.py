"""One likelihood at n = 730 (two kernel maps, 8 inputs and intercept) against LAPACK's part of it.

The value is compared with `dpotrf` of the same matrix, the gradient with `dpotrf` and `dpotri`, call by call in turn.
"""

from benchmarks.data import energy
from benchmarks.report import Figure, Report, Settings, summarise
from benchmarks.timing import alternate, likelihood_tasks, ordinary_position
from cadlag.kernel_process.model import KernelProcess

N_ROWS = 730
VALUE_TARGET, GRADIENT_TARGET = 1.5, 1.35


def run(settings: Settings) -> Report:
    """Measure."""
    X, y, source = energy(N_ROWS)
    model = KernelProcess(X, y, depth=2, order=1, preset="theorem")
    n_rounds = settings.choose(200, 40)
    seconds = alternate(likelihood_tasks(model, ordinary_position(model)), n_rounds)
    report = Report("likelihood", notes=[f"{source}; {n_rounds} alternations; quartiles of the paired ratios"])
    report.header = ["milliseconds", "lower quartile", "median", "upper quartile"]
    for name, values in seconds.items():
        median, (low, high) = summarise(1e3 * values)
        report.rows.append([name, low, median, high])
    for name, alone, target in (("value", "dpotrf", VALUE_TARGET), ("gradient", "dpotrf+dpotri", GRADIENT_TARGET)):
        median, quartiles = summarise(seconds[name] / seconds[alone])
        report.figures.append(Figure(f"{name} / {alone}", median, "<=", target, quartiles))
    return report
