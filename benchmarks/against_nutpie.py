"""The library's samplers against nutpie's on the same log density, called from Python by both.

Worst-coordinate effective sample size a second of wall clock, warm-up included: chains one after the other from the
same starting points, 1000 + 1000 iterations each. One kernel map, preset of the theorem: the one-dimensional
simulation, a new replicate of the data for each seed. nutpie's default adapts a diagonal metric; its low-rank metric is
shown as well.
"""

import time
from typing import Any

import numpy as np

from benchmarks.chains import N_CHAINS, Rate, Run, compare, coordinates, prepare, sample, say, shown, worst
from benchmarks.data import MissingError, jump, sampled
from benchmarks.report import Report, Settings
from cadlag.kernel_process.model import KernelProcess
from cadlag.sampling.chains import Plan, new_chains
from cadlag.sampling.contract import find_start

TARGET = 0.8
N_SEEDS = {"1d": 10}
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
    report.header = ["data, seed, sampler", "worst ESS", "of", "seconds", "CPU seconds", "ESS/s", "values", "gradients"]
    prepare(_OURS)
    _sample_theirs(nutpie, KernelProcess(*jump(0)), 0, 20, low_rank=False)
    for data, n_seeds in N_SEEDS.items():
        runs: list[dict[str, Run]] = []
        try:
            for seed in range(settings.n_seeds(n_seeds)):
                model = KernelProcess(*sampled(data, seed, settings))
                runs.append(_one_seed(nutpie, data, model, seed, length, report))
        except MissingError as reason:
            report.notes.append(f"{data} skipped: {reason}")
            continue
        _conclude(data, runs, report)
    return report


def _import() -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nutpie
        import nutpie.compiled_pyfunc
    return nutpie


def _one_seed(nutpie: Any, data: str, model: KernelProcess, seed: int, length: int, report: Report) -> dict[str, Run]:
    runs = {}
    for name in _ORDER[:: 1 if seed % 2 == 0 else -1]:
        if name in _THEIRS:
            run = _sample_theirs(nutpie, model, seed, length, low_rank=name != "nutpie")
        else:
            run = sample(model, Plan(name, length), length, seed)
        size, whose = worst(coordinates(run))
        report.rows.append([f"{data}, {seed}, {name}", shown(size), whose, run.wall_seconds, run.seconds,
                            Rate(size, run.wall_seconds).text(), run.n_values, run.n_gradients])  # fmt: skip
        say(f"  nutpie: {data}, seed {seed}, {name}: {run.wall_seconds:.1f} s")
        runs[name] = run
    return runs


def _conclude(data: str, runs: list[dict[str, Run]], report: Report) -> None:
    for mine, other in _PAIRS:
        judged = (">=", TARGET) if (mine, other) == _PAIRS[0] else ()
        pairs = [tuple(_rate(seed[name], "wall_seconds") for name in (mine, other)) for seed in runs]
        report.figures.append(compare(f"{data}: ESS a second, {mine} / {other}", pairs, *judged))
    mine, other = _PAIRS[0]
    pairs = [tuple(_rate(seed[name], "seconds") for name in (mine, other)) for seed in runs]
    report.figures.append(compare(f"{data}: ESS a CPU second, {mine} / {other}", pairs))


def _rate(run: Run, cost: str) -> Rate:
    return Rate(worst(coordinates(run))[0], getattr(run, cost))


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

    draws, seconds, wall = [], 0.0, 0.0
    for c, start in enumerate(_starts(model, seed)):
        compiled = nutpie.compiled_pyfunc.from_pyfunc(
            model.dimension, lambda: log_density, lambda *_: lambda position: {"position": position},
            [np.dtype(float)], [(model.dimension,)], ["position"], make_initial_point_fn=lambda _, start=start: start,
        )  # fmt: skip
        began, started = time.perf_counter(), time.process_time()
        trace = nutpie.sample(
            compiled, draws=length, tune=length, chains=1, cores=1, seed=N_CHAINS * seed + c, progress_bar=False,
            return_raw_trace=True, low_rank_modified_mass_matrix=low_rank,
        )  # fmt: skip
        wall += time.perf_counter() - began
        seconds += time.process_time() - started
        draws.append(_read(trace, length, model.dimension))
    positions = np.stack(draws)
    return Run(positions, positions[:, :, -1], 0.0, seconds, wall, 0, counts[0])


def _read(trace: Any, length: int, dimension: int) -> np.ndarray:
    """Draws after warm-up of a trace of one chain."""
    import pyarrow

    batch = trace.get_arrow_trace()[0][0]
    flat = pyarrow.array(batch.column("position")).flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, dimension)[-length:]
