"""The library's samplers against nutpie's on the same log density, called from Python by both.

Worst-coordinate effective sample size a second of wall clock, warm-up included: chains one after the other from the
same starting points, 1000 + 1000 iterations each. One kernel map, preset of the theorem: the one-dimensional
simulation (a new replicate of the data for each seed) and Yacht split 0. nutpie's default adapts a diagonal metric;
its low-rank metric is shown as well.
"""

import time
from typing import Any

import numpy as np

from benchmarks.chains import N_CHAINS, Rate, Run, compare, coordinates, sample, say, shown, worst
from benchmarks.data import MissingError, jump, sampled
from benchmarks.report import Report, Settings
from cadlag.models.kernel_process import KernelProcess
from cadlag.samplers.chains import Plan, new_chains
from cadlag.samplers.contract import find_start

TARGET = 0.8
N_SEEDS = {"1d": 10, "yacht": 5}
_OURS = ("plain_nuts", "nuts")
_THEIRS = ("nutpie", "nutpie low rank")
_PAIRS = (("plain_nuts", "nutpie"), ("nuts", "nutpie"), ("plain_nuts", "nutpie low rank"))
_ORDER = ("nutpie", "plain_nuts", "nutpie low rank", "nuts")


def run(settings: Settings) -> Report:
    """Measure."""
    try:
        nutpie = _import()
    except ImportError as reason:
        return Report("nutpie", notes=[f"skipped: {reason}; `make bench` installs it"])
    length = settings.choose(1000, 100)
    report = Report("nutpie", notes=["an ESS below 5 is no measurement: see benchmarks/chains.py"])
    report.header = ["data, seed, sampler", "worst ESS", "of", "seconds", "CPU seconds", "ESS/s", "gradients"]
    _sample_theirs(nutpie, KernelProcess(*jump(0)), 0, 20, low_rank=False)  # threads and caches are there
    for data, n_seeds in N_SEEDS.items():
        rates: list[dict[str, Rate]] = []
        try:
            for seed in range(settings.n_seeds(n_seeds)):
                model = KernelProcess(*sampled(data, seed, settings))
                rates.append(_one_seed(nutpie, data, model, seed, length, report))
        except MissingError as reason:
            report.notes.append(f"{data} skipped: {reason}")
            continue
        for mine, other in _PAIRS:
            sense, target = (">=", TARGET) if (mine, other) == _PAIRS[0] else ("", float("nan"))
            pairs = [(seed[mine], seed[other]) for seed in rates]
            report.figures.append(compare(f"{data}: ESS a second, {mine} / {other}", pairs, sense, target))
    return report


def _import() -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nutpie
        import nutpie.compiled_pyfunc
    return nutpie


def _one_seed(nutpie: Any, data: str, model: KernelProcess, seed: int, length: int, report: Report) -> dict[str, Rate]:
    rates = {}
    for name in _ORDER[:: 1 if seed % 2 == 0 else -1]:
        cpu = time.process_time()
        if name in _THEIRS:
            run = _sample_theirs(nutpie, model, seed, length, low_rank=name != "nutpie")
        else:
            run = sample(model, Plan(name, length), length, seed, clock=time.perf_counter)
        size, whose = worst(coordinates(run))
        rates[name] = Rate(size, run.seconds)
        report.rows.append([f"{data}, {seed}, {name}", shown(size), whose, run.seconds, time.process_time() - cpu,
                            rates[name].text(), run.n_gradients])  # fmt: skip
        say(f"  nutpie: {data}, seed {seed}, {name}: {run.seconds:.1f} s")
    return rates


def _starts(model: KernelProcess, seed: int) -> list[np.ndarray]:
    """Where the library's own chains with this seed start."""
    starts = []
    for chain in new_chains(np.random.SeedSequence(seed), N_CHAINS):
        bits = np.random.PCG64()
        bits.state = chain["rng"]
        starts.append(find_start(np.random.Generator(bits), model))
    return starts


def _sample_theirs(nutpie: Any, model: KernelProcess, seed: int, length: int, low_rank: bool) -> Run:
    """nutpie's chains, one call each; reading the trace is off the clock."""
    counts = [0]

    def log_density(position: np.ndarray) -> tuple[float, np.ndarray]:
        counts[0] += 1
        return model.log_target_gradient(position, model.exact_level)

    draws, seconds = [], 0.0
    for c, start in enumerate(_starts(model, seed)):
        compiled = nutpie.compiled_pyfunc.from_pyfunc(
            model.dimension, lambda: log_density, lambda *_: lambda position: {"position": position},
            [np.dtype(float)], [(model.dimension,)], ["position"], make_initial_point_fn=lambda _, start=start: start,
        )  # fmt: skip
        began = time.perf_counter()
        trace = nutpie.sample(
            compiled, draws=length, tune=length, chains=1, cores=1, seed=N_CHAINS * seed + c, progress_bar=False,
            return_raw_trace=True, low_rank_modified_mass_matrix=low_rank,
        )  # fmt: skip
        seconds += time.perf_counter() - began
        draws.append(_read(trace, length, model.dimension))
    positions = np.stack(draws)
    return Run(positions, positions[:, :, -1], 0.0, seconds, 0, counts[0])


def _read(trace: Any, length: int, dimension: int) -> np.ndarray:
    """Draws after warm-up of a trace of one chain."""
    import pyarrow

    batch = trace.get_arrow_trace()[0][0]
    flat = pyarrow.array(batch.column("position")).flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, dimension)[-length:]
