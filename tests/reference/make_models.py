"""Model files of this version, as small as they can be, and what they predict at a few new inputs.

python -m tests.reference.make_models writes the folder models_MAJOR_MINOR beside this file, once for each version that
is published; `test_model_files` reads those of every version. A folder that is there is left as it is.
"""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np

import cadlag

HERE = Path(__file__).parent
COVERAGE = 0.9
CHAINS = {"n_chains": 2, "n_draws": 3, "n_warmup": 12, "random_state": 1}
WITH_JUMPS = {"n_warmup": 80}  # the shortest after which the state of a chain holds what its jumps have learned
CLIMB = {"n_inducing": 5, "n_steps": 200, "learning_rates": (0.05,), "n_samples": 3, "n_atoms": 3, "random_state": 1}
FITS = {
    "kernel": ("StableKernelRegressor", {"depth": 2, **CHAINS, **WITH_JUMPS}),
    "network": ("StableNetworkRegressor", {"n_units": 4, **CHAINS}),
    "nngp": ("NNGPRegressor", {"noise_prior_on": "sd", **CHAINS}),
    "bayes_gp": ("BayesGPRegressor", {"sampler": "tgp", **CHAINS}),
    "ml_gp": ("MLGPRegressor", {"n_starts": 1, "random_state": 1}),
    "shallow_stable": ("ShallowStableRegressor", {"alpha": 1.5, **CHAINS}),
    "diwp": ("DIWPRegressor", CLIMB),
}
COLUMNS = ("point", "std", "lower", "upper")
FIT_BY_COMMAND = ("-m", "kernel", "--draws", "3", "--warmup", "12", "--chains", "2", "--jobs", "1", "--set", "order=0")


def training_data():
    """A step and a slope under much noise, so that predictions are well conditioned."""
    rng = np.random.default_rng(950)
    X = rng.uniform(-2.0, 2.0, (9, 2)).round(3)
    return X, (2.0 * (X[:, 0] > 0.0) + X[:, 1] + 0.5 * rng.standard_normal(9)).round(3)


def new_inputs():
    """Three among the training inputs and one beyond them."""
    return np.array([[0.31, -0.72], [-1.13, 0.44], [0.86, 1.57], [3.4, -2.9]])


def table(n, first, target=True):
    """Text of a table with a date, a category and a number, and the target if wanted."""
    rng = np.random.default_rng(n)
    header = "day,kind,size,y\n" if target else "day,kind,size\n"
    rows = []
    for i in range(n):
        size = rng.normal()
        y = f",{2.0 * (i % 3) + size + 0.5 * rng.normal():.3f}" if target else ""
        rows.append(f"2024-03-{first + i:02d},{('red', 'blue', 'green')[i % 3]},{size:.3f}{y}\n")
    return header + "".join(rows)


def predictions(model, X):
    """Point, standard deviation and the ends of the interval, by name."""
    point, std = model.predict(X, return_std=True)
    lower, upper = model.predict_interval(X, COVERAGE).T
    return {name: values.tolist() for name, values in zip(COLUMNS, (point, std, lower, upper))}


def command(*arguments):
    """What the command says on standard output."""
    from typer.testing import CliRunner  # noqa: PLC0415  an extra, which models of arrays do not need

    from cadlag.app.cli import app  # noqa: PLC0415

    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def predictions_by_command(model, rows):
    """The same by the command, of a table."""
    said = json.loads(command("predict", model, rows, "--coverage", COVERAGE, "--json"))
    return {name: said[name] for name in COLUMNS}


def write(folder):
    """All files of a version."""
    X, y = training_data()
    expected = {}
    for name, (method, settings) in FITS.items():
        model = getattr(cadlag, method)(**settings).fit(X, y)
        model.save(folder / f"{name}.cadlag")
        expected[name] = predictions(model, new_inputs())
    (folder / "table.csv").write_text(table(9, 1))
    (folder / "new.csv").write_text(table(3, 11, target=False))
    command("fit", folder / "table.csv", "-t", "y", "-o", folder / "table.cadlag", *FIT_BY_COMMAND)
    by_command = {"table": predictions_by_command(folder / "table.cadlag", folder / "new.csv")}
    said = {"version": cadlag.__version__, "X": new_inputs().tolist(), "arrays": expected, "tables": by_command}
    (folder / "predictions.json").write_text(json.dumps(said, indent=1) + "\n")


def main():
    folder = HERE / f"models_{'_'.join(cadlag.__version__.split('.')[:2])}"
    if folder.exists():
        raise SystemExit(f"{folder} is there, and an earlier cadlag wrote it: remove it to write it anew")
    folder.mkdir()
    warnings.simplefilter("ignore")  # so short a run has not converged
    try:
        write(folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    for path in sorted(folder.iterdir()):
        print(f"{path.relative_to(HERE)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
