"""The Nile at Aswan, 1871-1970: fit the flows, draw them, and say in words what was found.

`python -m cadlag.demo --out DIRECTORY` writes nile.png (data, prediction, 90 % bands), nile_predictions.csv (a row a
year) and nile.cadlag (the fitted model).
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
from cadlag.plots import plot_fit

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
        model = METHODS["kernel"](random_state=options.seed, n_jobs=min(2, os.cpu_count() or 1), progress=True)
        model.fit(years[:, None], flow)
    _write_predictions(folder / "nile_predictions.csv", model, years, flow)
    _draw(folder / "nile.png", model, years, flow)
    model.save(folder / "nile.cadlag")
    print("\n".join(verdict(model, years, flow)))
    print(f"Written: {', '.join(str(folder / name) for name in ('nile.png', 'nile_predictions.csv', 'nile.cadlag'))}")
    return 0


def _write_predictions(path: Path, model: Any, years: Any, flow: Any) -> None:
    law = model.predict_distribution(years[:, None])
    columns = np.column_stack([years, flow, law.median, law.std, law.interval(COVERAGE)])
    beside = path.with_suffix(".part")
    header = "year,flow,prediction,std,lower,upper"
    np.savetxt(beside, columns, delimiter=",", header=header, comments="", fmt=["%d", "%g", *["%.3f"] * 4])
    os.replace(beside, path)


def _draw(path: Path, model: Any, years: Any, flow: Any) -> None:
    ax = plot_fit(model, years, flow, coverage=COVERAGE)
    ax.axvline(BREAK_YEAR, color="#b03a2e", ls="--", lw=1)
    ax.annotate(f"{BREAK_YEAR}", (BREAK_YEAR, 0.02), xycoords=("data", "axes fraction"), color="#b03a2e", fontsize=9,
                xytext=(4, 0), textcoords="offset points")  # fmt: skip
    ax.set(xlabel="year", ylabel="annual flow at Aswan [10⁸ m³]", title="The Nile, deep α-stable kernel process")
    ax.figure.savefig(path, dpi=130)
    plt.close(ax.figure)


def verdict(model: Any, years: Any, flow: Any) -> list[str]:
    """What was found, in a few lines.

    Parameters
    ----------
    model
        The fitted regressor.
    years
        Inputs.
    flow
        Responses.

    Returns
    -------
    list[str]
        Sentences.
    """
    ends = model.predict(np.array([[years[0]], [years[-1]]]))
    inside = model.predict_interval(years[:, None], COVERAGE)
    covered = float(np.mean((flow >= inside[:, 0]) & (flow <= inside[:, 1])))
    noise = float(np.median(np.sqrt(model.posterior_["noise_variance"])))
    grid = np.arange(years[0], years[-1] + 1)
    level = model.predict(grid[:, None])
    steepest = int(grid[np.argmax(np.abs(np.diff(level)))])
    found = model.diagnostics_
    agree = found["worst_rhat"] <= 1.01 and found["worst_ess_bulk"] >= 400
    return [
        f"The flow falls from about {ends[0]:.0f} to {ends[1]:.0f} (10^8 m3 a year); the fitted curve is steepest "
        f"after {steepest}.",
        f"Noise standard deviation {noise:.0f}; {100 * covered:.0f} % of the years lie inside their "
        f"{100 * COVERAGE:.0f} % bands (in sample).",
        f"The break of {BREAK_YEAR} is spread over some years: this model can only jump at the centre of the inputs.",
        f"The chains {'agree' if agree else 'do NOT agree yet'}: worst R-hat {found['worst_rhat']:.3f}, smallest bulk "
        f"effective sample size {found['worst_ess_bulk']:.0f} (of {found['worst_ess_bulk_parameter']}).",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
