"""x ↦ (x - centre)/scale with the training mean and standard deviation, safe up to 1e150; and what memory allows."""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LARGEST = 1e150


@dataclass(frozen=True)
class Scaling:
    """An affine map for each column.

    Attributes
    ----------
    centre
        Subtracted.
    scale
        Divided by; 1 where a column is constant.
    """

    centre: Array
    scale: Array

    @classmethod
    def learn(cls, values: Array, on: bool) -> "Scaling":
        """Mean and standard deviation (n - 1) of each column, or the identity.

        Parameters
        ----------
        values
            (n, p) or (n,).
        on
            False for the identity.

        Returns
        -------
        Scaling
            The map.
        """
        shape = values.shape[1:]
        if not on:
            return cls(np.zeros(shape), np.ones(shape))
        # Dividing by the largest magnitude first keeps squares of huge values finite.
        size = np.abs(values).max(axis=0)
        size = np.where(size > 0.0, size, 1.0)
        shrunk = values / size
        spread = shrunk.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(shape)
        constant = (values.max(axis=0) == values.min(axis=0)) | (spread == 0.0)
        return cls(shrunk.mean(axis=0) * size, np.where(constant, 1.0, spread * size))

    def apply(self, values: Array) -> Array:
        """To standard units.

        Parameters
        ----------
        values
            In the units of the data.

        Returns
        -------
        Array
            Standardised, C-ordered.
        """
        return np.ascontiguousarray((values - self.centre) / self.scale)


def refuse_huge(name: str, values: Array) -> None:
    """Refuse magnitudes whose squares overflow.

    Parameters
    ----------
    name
        What they are, for the message.
    values
        The values.
    """
    if values.size and np.abs(values).max() > LARGEST:
        place = np.unravel_index(int(np.abs(values).argmax()), values.shape)
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise ValueError(f"{name} holds {values[place]:.3g} at {where}: rescale so that nothing exceeds {LARGEST:g}")


def require_memory(n_bytes: float, what: str, advice: str, limit: float | None) -> None:
    """Refuse, before allocating, what would not fit.

    Parameters
    ----------
    n_bytes
        What is needed.
    what
        What for.
    advice
        What to do instead.
    limit
        Bytes allowed; None for half of the machine's memory.
    """
    allowed = limit if limit is not None else 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > allowed:
        raise MemoryError(
            f"{what} needs about {n_bytes / 2**30:.2g} GiB, more than the {allowed / 2**30:.2g} GiB allowed: {advice}"
        )
