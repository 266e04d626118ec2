"""Is the gradient sampler usable with step activations? All samplers on the one-dimensional simulation, order 0.

Worst effective sample size (log likelihood and every coordinate) a CPU second with warm-up, one kernel map, preset of
the theorem. The likelihood is smooth in the scales at order 0 too, but steep where inputs nearly coincide.
"""

import numpy as np

from benchmarks.chains import Rate, Run, compare, coordinates, effective, prepare, sample, say, shown, worst
from benchmarks.data import jump
from benchmarks.report import Report, Settings, summarise
from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling.chains import Plan

SAMPLERS = ("nuts", "plain_nuts", "tempered", "independence")


def run(settings: Settings) -> Report:
    """Measure."""
    length = settings.choose(1000, 100)
    seeds = range(settings.n_seeds(5))
    runs: dict[str, list[Run]] = {name: [] for name in SAMPLERS}
    prepare(SAMPLERS, order=0)
    for seed in seeds:
        model = KernelProcess(*jump(seed), order=0)
        for name in SAMPLERS[:: 1 if seed % 2 == 0 else -1]:
            n_draws = 2 * length if name == "independence" else length
            runs[name].append(sample(model, Plan(name, length), n_draws, seed))
            say(f"  order0: seed {seed}, {name}: {runs[name][-1].seconds:.1f} s")
    report = Report("order0", notes=[f"medians over {len(seeds)} seeds; no target"])
    report.header = ["sampler", "worst ESS", "smallest of all seeds", "ESS of log lik", "seconds", "ESS/s",
                     "gradients a draw", "diverging %"]  # fmt: skip
    rates = {name: [Rate(_worst(run), run.seconds) for run in own] for name, own in runs.items()}
    report.rows = [_row(name, runs[name], rates[name]) for name in SAMPLERS]
    for other in SAMPLERS[1:]:
        report.figures.append(compare(f"ESS a second, nuts / {other}", list(zip(rates["nuts"], rates[other]))))
    return report


def _worst(run: Run) -> float:
    return worst({"log likelihood": run.log_likelihood, **coordinates(run)})[0]


def _row(name: str, runs: list[Run], rates: list[Rate]) -> list:
    def median(values: list[float]) -> float:
        return summarise(values)[0]

    sizes = [rate.size for rate in rates]
    return [
        name, shown(median(sizes)), shown(min(sizes)), shown(median([effective(run.log_likelihood) for run in runs])),
        median([run.seconds for run in runs]), Rate(median(sizes), median([rate.cost for rate in rates])).text(),
        median([run.stats["n_gradients"] for run in runs]),
        float(100.0 * np.mean([run.stats["diverging"] for run in runs])),
    ]  # fmt: skip
