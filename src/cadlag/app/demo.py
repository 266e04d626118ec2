"""The Nile at Aswan, 1871-1970: fit the flows, find the year in which they fell, and say in words what was found.

`cadlag demo --out DIRECTORY` writes nile.html (a page about the fit), nile.png (data, prediction, 90 % bands, posterior
of the break; after a few seconds already, of a first look), nile_predictions.csv and nile_breaks.csv (a row a year) and
nile.cadlag (the fitted model).
"""

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
from cadlag.frames import write_csv
from cadlag.methods import METHODS
from cadlag.names import plain_arrays
from cadlag.plots import plot_breaks, plot_fit
from cadlag.recipes import Recipe
from cadlag.report import write_report
from cadlag.storage import replacing
from cadlag.verdict import COVERAGE, gather, verdict

BREAK_YEAR = 1898  # the change point usually given for this series (Cobb, 1978)


def demo(folder: Path, seed: int) -> None:
    """Fit the flows and write what was found into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    years, flow = load_nile()
    _first_look(folder / "nile.png", years, flow, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict below says it in words
        model = METHODS["network"](random_state=seed, n_jobs=os.cpu_count() or 1, progress=True)
        model.fit(years[:, None], flow)
    model.set_params(progress=False)
    model.name_inputs(["year"], Recipe.of_numbers(["year"], "flow").to_tree()).save(folder / "nile.cadlag")
    _write_predictions(folder / "nile_predictions.csv", model, years, flow)
    breaks = model.break_points()
    cells = [[f"{value:.4g}" for value in row] for row in zip(*breaks.values())]
    write_csv(folder / "nile_breaks.csv", list(breaks), cells)
    _draw(folder / "nile.png", model, breaks, years, flow, "The Nile, stable network")
    write_report(model, folder / "nile.html", title="The Nile at Aswan, annual flow in 10⁸ m³")
    print("\n".join(finding.text for finding in verdict(gather(model))))
    print(f"The year usually given for the break is {BREAK_YEAR}.")
    names = ("nile.html", "nile.png", "nile_predictions.csv", "nile_breaks.csv", "nile.cadlag")
    print(f"Written: {', '.join(str(folder / name) for name in names)}")


def _first_look(path: Path, years: Any, flow: Any, seed: int) -> None:
    """A picture in seconds, of a fit that has not found all there is to find."""
    model = METHODS["network"](inference="fast", random_state=seed).fit(years[:, None], flow)
    _draw(path, model, model.break_points(), years, flow, "The Nile, stable network: a first look")
    print(f"Written: {path}, a first look and not the posterior; the whole fit follows.", flush=True)


def _write_predictions(path: Path, model: Any, years: Any, flow: Any) -> None:
    with plain_arrays():
        law = model.predict_distribution(years[:, None])
    values = np.column_stack([law.median, law.std, law.interval(COVERAGE)]).round(3)
    rows = [[int(year), float(seen), *map(float, row)] for year, seen, row in zip(years, flow, values)]
    write_csv(path, ("year", "flow", "prediction", "std", "lower", "upper"), rows)


def _draw(path: Path, model: Any, breaks: Any, years: Any, flow: Any, title: str) -> None:
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 6.5), sharex=True, height_ratios=(3, 1), layout="constrained"
    )  # fmt: skip
    plot_fit(model, years, flow, coverage=COVERAGE, ax=top)
    top.set(xlabel="", ylabel="annual flow at Aswan [10⁸ m³]")
    figure.suptitle(title)
    plot_breaks(breaks, ax=bottom)
    bottom.set(xlabel="year")
    with replacing(str(path)) as stream:
        figure.savefig(stream, format="png", dpi=130)
    plt.close(figure)
