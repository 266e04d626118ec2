"""The default sampler against the independence sampler of the paper, on the same posterior.

Effective sample size of the worst identified quantity (log likelihood, noise variance, products c_1 s_j, c_2) a CPU
second, all chains on one core, with warm-up counted and without; and a thousand likelihood evaluations, a gradient
counted as as many values as it costs. Preset of the published code, two kernel maps, intercept: Yacht split 0
(standardised) and the one-dimensional simulation (raw), a new replicate of the data for each seed of the latter.
"""

from benchmarks.chains import Rate, Run, compare, gradient_cost, identified, prepare, sample, say, shown, worst
from benchmarks.data import MissingError, sampled
from benchmarks.report import Report, Settings, summarise
from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling.chains import Plan

OURS, THEIRS = "nuts", "independence"
TARGETS = {"yacht": 300.0, "1d": 50.0}
FIRST_SEED = 100  # no choice of the samplers was made on these


def run(settings: Settings) -> Report:
    """Measure."""
    report = Report("samplers", notes=["an ESS below 5 is no measurement: see benchmarks/chains.py"])
    report.header = ["data, seed, sampler", "worst ESS", "of", "seconds", "warm-up s", "ESS/s", "ESS/s after warm-up",
                     "ESS/1000 values", "values", "gradients", "R-hat of log lik"]  # fmt: skip
    prepare((OURS, THEIRS), depth=2, preset="published_code")
    for data in TARGETS:
        rates: list[dict[str, list[Rate]]] = []
        try:
            for seed in range(FIRST_SEED, FIRST_SEED + settings.n_seeds(5)):
                rates.append(_one_seed(data, seed, settings, report))
        except MissingError as reason:
            report.notes.append(f"{data} skipped: {reason}")
            continue
        _conclude(data, rates, report)
    return report


def _one_seed(data: str, seed: int, settings: Settings, report: Report) -> dict[str, list[Rate]]:
    """Both samplers, the one first that was last before."""
    model = KernelProcess(*sampled(data, seed, settings), depth=2, preset="published_code")
    n_warmup, n_draws = settings.choose((1000, {OURS: 1000, THEIRS: 2000}), (100, {OURS: 100, THEIRS: 200}))
    runs: dict[str, Run] = {}
    for name in (OURS, THEIRS)[:: 1 if seed % 2 == 0 else -1]:
        runs[name] = sample(model, Plan(name, n_warmup), n_draws[name], seed)
        say(f"  samplers: {data}, seed {seed}, {name}: {runs[name].seconds:.1f} s")
    cost = gradient_cost(model, runs[OURS])
    rates = {}
    for name in (OURS, THEIRS):
        rates[name] = _rates(model, runs[name], cost)
        report.rows.append(_row(f"{data}, {seed}, {name}", model, runs[name], rates[name]))
    return rates


def _rates(model: KernelProcess, run: Run, gradient: float) -> list[Rate]:
    size, _ = worst(identified(model, run))
    thousands = (run.n_values + gradient * run.n_gradients) / 1000.0
    return [Rate(size, cost) for cost in (run.seconds, run.draw_seconds, thousands)]


def _row(label: str, model: KernelProcess, run: Run, rates: list[Rate]) -> list:
    from arviz_stats.base import array_stats

    size, whose = worst(identified(model, run))
    return [label, shown(size), whose, run.seconds, run.warmup_seconds, *(rate.text() for rate in rates),
            run.n_values, run.n_gradients, float(array_stats.rhat(run.log_likelihood))]  # fmt: skip


def _conclude(data: str, rates: list[dict[str, list[Rate]]], report: Report) -> None:
    for i, cost in enumerate(("second", "second after warm-up", "likelihood evaluation")):
        pairs = [(seed[OURS][i], seed[THEIRS][i]) for seed in rates]
        sense, target = (">=", TARGETS[data]) if i == 0 else ("", float("nan"))
        report.figures.append(compare(f"{data}: ESS a {cost}, {OURS} / {THEIRS}", pairs, sense, target))
    own, _ = summarise([seed[OURS][0].value for seed in rates])
    report.notes.append(f"{data}: {OURS} gives {own:.3g} effective draws a CPU second (median, warm-up included)")
