"""The Nile at Aswan, 1871-1970: fit the flows, find the year in which they fell, and say in words what was found.

`python -m cadlag.demo --out DIRECTORY` writes nile.png (data, prediction, 90 % bands, posterior of the break),
nile_predictions.csv and nile_breaks.csv (a row a year) and nile.cadlag (the fitted model).
"""

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cadlag.datasets import load_nile
from cadlag.methods import METHODS
from cadlag.plots import plot_breaks, plot_fit

COVERAGE = 0.9
BREAK_YEAR = 1898  # the change point usually given for this series (Cobb, 1978)


def main(argv: list[str] | None = None) -> int:
    """Run the demonstration.

    Parameters
    ----------
    argv
        Command-line arguments.

    Returns
    -------
    int
        Exit code.
    """
    parser = argparse.ArgumentParser(prog="cadlag.demo", description="Fit the Nile flows and write what was found.")
    parser.add_argument("--out", default="demo", help="directory for the results (default: demo)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the chains (default: 0)")
    options = parser.parse_args(argv)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    years, flow = load_nile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict below says it in words
        jobs = min(2, os.cpu_count() or 1)
        model = METHODS["network"](n_draws=2000, random_state=options.seed, n_jobs=jobs, progress=True)
        model.fit(years[:, None], flow)
    _write_predictions(folder / "nile_predictions.csv", model, years, flow)
    breaks = model.break_points()
    _write_breaks(folder / "nile_breaks.csv", breaks)
    _draw(folder / "nile.png", model, breaks, years, flow)
    model.save(folder / "nile.cadlag")
    print("\n".join(verdict(model, breaks, years, flow)))
    names = ("nile.png", "nile_predictions.csv", "nile_breaks.csv", "nile.cadlag")
    print(f"Written: {', '.join(str(folder / name) for name in names)}")
    return 0


def _write_predictions(path: Path, model: Any, years: Any, flow: Any) -> None:
    law = model.predict_distribution(years[:, None])
    columns = np.column_stack([years, flow, law.median, law.std, law.interval(COVERAGE)])
    _write_csv(path, columns, "year,flow,prediction,std,lower,upper", ["%d", "%g", *["%.3f"] * 4])


def _write_breaks(path: Path, breaks: Any) -> None:
    names = list(breaks)
    columns = np.column_stack([breaks[name] for name in names])
    _write_csv(path, columns, ",".join(names), ["%d", "%d", *["%.4g"] * (len(names) - 2)])


def _write_csv(path: Path, columns: Any, header: str, formats: list[str]) -> None:
    beside = path.with_suffix(".part")
    np.savetxt(beside, columns, delimiter=",", header=header, comments="", fmt=formats)
    os.replace(beside, path)


def _draw(path: Path, model: Any, breaks: Any, years: Any, flow: Any) -> None:
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 6.5), sharex=True, height_ratios=(3, 1), layout="constrained"
    )  # fmt: skip
    plot_fit(model, years, flow, coverage=COVERAGE, ax=top)
    top.set(xlabel="", ylabel="annual flow at Aswan [10⁸ m³]")
    figure.suptitle("The Nile, stable network")
    plot_breaks(breaks, ax=bottom)
    bottom.set(xlabel="year")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def verdict(model: Any, breaks: Any, years: Any, flow: Any) -> list[str]:
    """What was found, in a few lines.

    Parameters
    ----------
    model
        The fitted regressor.
    breaks
        Its break points.
    years
        Inputs.
    flow
        Responses.

    Returns
    -------
    list[str]
        Sentences.
    """
    inside = model.predict_interval(years[:, None], COVERAGE)
    covered = float(np.mean((flow >= inside[:, 0]) & (flow <= inside[:, 1])))
    noise = float(np.median(np.sqrt(model.posterior_["noise_variance"])))
    best = int(np.argmax(breaks["probability"]))
    low, high = breaks.interval(COVERAGE)
    found = model.diagnostics_
    agree = found["worst_rhat"] <= 1.01 and found["worst_ess_bulk"] >= 400
    return [
        f"The flow jumps with probability {breaks.probability_of_any:.2f} by more than the noise ({noise:.0f}, in 10^8 "
        f"m3 a year), most probably between {breaks['lower'][best]:.0f} and {breaks['upper'][best]:.0f} (probability "
        f"{breaks['probability'][best]:.2f}), by {breaks['size'][best]:+.0f} ({breaks['size_q05'][best]:+.0f} to "
        f"{breaks['size_q95'][best]:+.0f}).",
        f"The {100 * COVERAGE:.0f} % interval of the largest jump runs from {low:.1f} to {high:.1f}; the year usually "
        f"given is {BREAK_YEAR}.",
        f"{100 * covered:.0f} % of the years lie inside their {100 * COVERAGE:.0f} % bands (in sample).",
        f"The chains {'agree' if agree else 'do NOT agree yet'}: worst R-hat {found['worst_rhat']:.3f}, smallest bulk "
        f"effective sample size {found['worst_ess_bulk']:.0f} (of {found['worst_ess_bulk_parameter']}).",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
