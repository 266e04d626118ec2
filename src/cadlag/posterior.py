"""R̂ and effective sample sizes of draws by name: what the chains found, and whether they agree.

Draws are kept as the positions the samplers moved in; names, units and summaries are derived. R̂ is the rank-normalised
split version and effective sizes are those of Vehtari et al. (2021), from arviz-stats.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RHAT_LIMIT = 1.01  # beyond what the R-hat of as many chains of one law comes to
ESS_LIMIT = 400.0
_FEWEST_EFFECTIVE = 100.0  # draws, below which R-hat itself is too uncertain to allow for
_FEWEST_DRAWS = 4
_UNKNOWN = (float("nan"), float("nan"), float("nan"))


class Table(Mapping[str, Any]):
    """Columns of equal length that print as a table and turn into a data frame.

    Parameters
    ----------
    columns
        Name to values.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}

    def __getitem__(self, name: str) -> Any:
        """One column."""
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        """Column names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Number of columns."""
        return len(self._columns)

    def to_pandas(self) -> Any:
        """The table as a data frame.

        Returns
        -------
        Any
            A pandas DataFrame.
        """
        import pandas  # noqa: PLC0415  optional

        return pandas.DataFrame(self._columns)

    def to_polars(self) -> Any:
        """The table as a data frame.

        Returns
        -------
        Any
            A polars DataFrame.
        """
        import polars  # noqa: PLC0415  optional

        return polars.DataFrame(self._columns)

    def __repr__(self) -> str:
        """Aligned text."""
        cells = [[name, *map(_cell, values)] for name, values in self._columns.items()]
        widths = [max(map(len, column)) for column in cells]
        rows = zip(*cells)
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


@dataclass(frozen=True)
class Posterior:
    """Draws of all chains.

    Attributes
    ----------
    positions
        Where the samplers were, (chains, draws, d).
    stats
        What they said of each draw, by name, (chains, draws).
    draws
        The same positions by parameter, on their natural scale, (chains, draws[, k]), or (chains, draws, groups, k).
    labels
        Names of the entries of each parameter that is a vector.
    pointwise
        Maker of ``log p(y_k | y_-k, draw)``, or None.
    interchangeable
        Parameters of groups that may change places: shown, but not diagnosed, as chains need not agree on them.
    """

    positions: Array
    stats: dict[str, Array]
    draws: dict[str, Array]
    labels: dict[str, list[str]] = field(default_factory=dict)
    pointwise: Callable[[Array], Array] | None = field(default=None, repr=False)
    interchangeable: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Array:
        """Draws of one parameter, (chains, draws[, k])."""
        return self.draws[name]

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.positions.shape[0]

    @property
    def n_draws(self) -> int:
        """Draws a chain."""
        return self.positions.shape[1]

    def atoms(self, most: int | None = None) -> Array:
        """Positions of all chains in one list, evenly thinned to at most `most`.

        Parameters
        ----------
        most
            Largest number wanted; None for all.

        Returns
        -------
        Array
            (T, d).
        """
        flat = self.positions.reshape(self.n_chains * self.n_draws, self.positions.shape[2])
        if most is None or len(flat) <= most:
            return flat
        return flat[np.linspace(0, len(flat) - 1, most).round().astype(int)]

    def scalars(self) -> dict[str, Array]:
        """Every scalar quantity that is diagnosed: each parameter entry and the log likelihood.

        Returns
        -------
        dict[str, Array]
            Name to (chains, draws).
        """
        out: dict[str, Array] = {}
        for name, values in self.draws.items():
            if values.ndim == 2:
                out[name] = values
                continue
            labels = self.labels.get(name, [str(k) for k in range(values.shape[-1])])
            groups = [()] if values.ndim == 3 else [(g,) for g in range(values.shape[2])]
            for group in groups:
                prefix = "".join(f"{g}, " for g in group)
                out.update({f"{name}[{prefix}{label}]": values[:, :, *group, k] for k, label in enumerate(labels)})
        if "log_likelihood" in self.stats and self.draws:
            out["log_likelihood"] = self.stats["log_likelihood"]
        return out

    def summary(self) -> Table:
        """Median, 90 % interval, R-hat, bulk and tail ESS of every scalar, in natural units.

        Returns
        -------
        Table
            A row a scalar.
        """
        scalars = self.scalars()
        quantiles = [np.quantile(values, [0.05, 0.5, 0.95]) for values in scalars.values()]
        checks = [
            _UNKNOWN if name.split("[")[0] in self.interchangeable else _diagnose(values)
            for name, values in scalars.items()
        ]
        low, median, high = np.array(quantiles).reshape(-1, 3).T
        rhat, bulk, tail = np.array(checks).reshape(-1, 3).T
        return Table(
            {"parameter": list(scalars), "median": median, "q05": low, "q95": high,
             "rhat": rhat, "ess_bulk": bulk, "ess_tail": tail}
        )  # fmt: skip

    def diagnostics(self) -> dict[str, Any]:
        """The worst of each check, with the parameter it belongs to, and what failed on the way.

        Returns
        -------
        dict[str, Any]
            Numbers, and names under keys that end in `_parameter`.
        """
        table = self.summary()
        out: dict[str, Any] = {"n_chains": self.n_chains, "n_draws": self.n_draws}
        for key, worst in (("rhat", np.nanargmax), ("ess_bulk", np.nanargmin), ("ess_tail", np.nanargmin)):
            values = table[key]
            known = len(values) and not np.all(np.isnan(values))
            out[f"worst_{key}"] = float(values[worst(values)]) if known else float("nan")
            out[f"worst_{key}_parameter"] = str(table["parameter"][worst(values)]) if known else ""
            if key == "rhat":
                out["rhat_limit"] = rhat_limit(self.n_chains, float(table["ess_bulk"][worst(values)]) if known else 0.0)
        for key in ("n_failures", "diverging"):
            if key in self.stats:
                out["n_divergences" if key == "diverging" else key] = int(np.nansum(self.stats[key]))
        if "converged" in self.stats:  # found by a search, not by chains
            out |= {key: float(values[0, 0]) for key, values in self.stats.items()}
        for key in ("accept", "jump_accept", "leap_accept", "swap_accept"):
            if key in self.stats and not np.all(np.isnan(self.stats[key])):
                out[f"mean_{key}"] = float(np.nanmean(self.stats[key]))
        return out

    def complaint(self) -> str | None:
        """What a ConvergenceWarning should say, or None when the chains agree.

        Returns
        -------
        str or None
            One or two sentences.
        """
        found = self.diagnostics()
        parts = []
        if self.draws and self.n_draws < _FEWEST_DRAWS:
            parts.append(f"{self.n_draws} draws a chain are too few to tell")
        if found["worst_rhat"] > found["rhat_limit"]:
            parts.append(
                f"R-hat of {found['worst_rhat_parameter']} is {found['worst_rhat']:.3f} "
                f"(wanted at most {found['rhat_limit']:.3f})"
            )
        if found["worst_ess_bulk"] < ESS_LIMIT:
            parts.append(
                f"bulk ESS of {found['worst_ess_bulk_parameter']} is {found['worst_ess_bulk']:.0f} "
                f"(wanted at least {ESS_LIMIT:.0f})"
            )
        if not parts:
            return None
        return f"The chains do not agree yet: {' and '.join(parts)}. More draws help: model.extend(n_draws=...)."

    def to_arviz(self) -> Any:
        """For ArviZ: posterior, sample_stats, and ``log p(y_k | y_-k, draw)`` as pointwise log likelihood.

        The likelihood does not factorise over rows, so its pointwise form is the leave-one-out predictive density in
        closed form for each draw, which is what Pareto-smoothed leave-one-out cross-validation needs. ArviZ's
        `p_loo` is then no effective number of parameters: each draw's density has left the row out already.

        Returns
        -------
        Any
            InferenceData (ArviZ 0.x) or DataTree (ArviZ 1.x).
        """
        groups: dict[str, dict[str, Any]] = {"posterior": self.draws, "sample_stats": dict(self.stats)}
        if "diverging" in self.stats:  # ArviZ picks the draws that diverged by it
            groups["sample_stats"]["diverging"] = self.stats["diverging"] > 0.0
        if self.pointwise is not None:
            groups["log_likelihood"] = {"y": self.pointwise(self.positions)}
        named = {name: labels for name, labels in self.labels.items() if name in self.draws}
        dims = {name: ["group", f"{name}_entry"][4 - self.draws[name].ndim :] for name in named}
        coords = {f"{name}_entry": labels for name, labels in named.items()}
        return _to_arviz(groups, dims, coords)


def rhat_limit(n_chains: int, n_effective: float) -> float:
    """1.01 and K/ESS, by which R-hat of K chains of one law exceeds one."""
    return RHAT_LIMIT + n_chains / max(n_effective, _FEWEST_EFFECTIVE)


def _diagnose(values: Array) -> tuple[float, float, float]:
    """R̂, bulk and tail ESS; too short a run cannot be diagnosed, and one that never moved is as bad as can be."""
    if values.shape[1] < _FEWEST_DRAWS:
        return _UNKNOWN
    if np.ptp(values) == 0.0:
        return float("inf"), 1.0, 1.0
    from arviz_stats.base import array_stats  # noqa: PLC0415  loads xarray and matplotlib where they are installed

    # One chain is compared with itself in halves, which is what the split version does anyway.
    chains = values if len(values) > 1 else values[0, : 2 * (values.shape[1] // 2)].reshape(2, -1)
    with np.errstate(all="ignore"):
        return (
            float(array_stats.rhat(chains)),
            float(array_stats.ess(values, method="bulk")),
            float(array_stats.ess(values, method="tail", prob=0.9)),
        )


def _to_arviz(groups: dict[str, dict[str, Any]], dims: dict[str, list[str]], coords: dict[str, list[str]]) -> Any:
    """In the form that the installed ArviZ draws: versions below 1 take no trees, and version 1 nothing else."""
    if not _has_older_arviz():
        try:
            import arviz_base  # noqa: PLC0415  optional
        except ImportError:
            raise ImportError("to_arviz() needs ArviZ: pip install 'cadlag[arviz]'") from None
        return arviz_base.from_dict(groups, dims=dims, coords=coords)
    import arviz  # noqa: PLC0415  optional

    return arviz.from_dict(**groups, dims=dims, coords=coords)


def _has_older_arviz() -> bool:
    try:
        return metadata.version("arviz").startswith("0.") and find_spec("arviz_plots") is None
    except metadata.PackageNotFoundError:
        return False
