"""A run on disk: one file a block, each complete or absent, so that a killed run loses at most the blocks in flight.

Directory layout: `run.cadlag` says which data and settings the run belongs to, `chain-CCCC-SSSSSSSSS.cadlag` holds
the block of chain C that starts at iteration S, with the chain's state after it.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from cadlag.sampling.chains import Block, Store, checked_chain
from cadlag.storage import read_tree, write_tree

_NAME = re.compile(r"chain-(?P<chain>\d{4,9})-(?P<start>\d{9,18})\.cadlag", re.ASCII)
_ELSEWHERE = "give another checkpoint directory, or remove this one"


class Checkpoint(Store):
    """A store that writes every block down, and reads what an earlier run left.

    Parameters
    ----------
    directory
        Where; made if it does not exist.
    n_chains
        Number of chains.
    fingerprint
        What tells this run's data and settings from any other's.
    entropy
        Seed of the run; that of the earlier run, where there is one, takes its place in `self.entropy`.
    dimension
        Length of a position.
    """

    def __init__(self, directory: str | Path, n_chains: int, fingerprint: str, entropy: int, dimension: int) -> None:
        super().__init__(n_chains)
        self.directory = Path(directory)
        self.entropy = self._claim(fingerprint, entropy)
        for path in sorted(self.directory.glob("chain-*.cadlag")):
            self._take(path, dimension)

    def _claim(self, fingerprint: str, entropy: int) -> int:
        manifest = self.directory / "run.cadlag"
        if manifest.exists():
            found = read_tree(manifest, "run")
            if not isinstance(found.get("fingerprint"), str) or type(found.get("entropy")) is not int:
                raise ValueError(f"{manifest} does not say which run it belongs to: {_ELSEWHERE}")
            if found["fingerprint"] != fingerprint:
                raise ValueError(f"{self.directory} holds a run with other data or settings: {_ELSEWHERE}")
            return int(found["entropy"])
        # A run that was killed while it wrote its first file has left a temporary one, which does not count.
        if self.directory.exists() and any(path.suffix != ".tmp" for path in self.directory.iterdir()):
            raise ValueError(f"{self.directory} is not empty and is not a checkpoint: give another directory")
        self.directory.mkdir(parents=True, exist_ok=True)
        write_tree(manifest, {"fingerprint": fingerprint, "entropy": entropy}, "run")
        return entropy

    def _take(self, path: Path, dimension: int) -> None:
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise ValueError(f"{path} is no block of a run by its name: move it elsewhere")
        try:
            block = _block(read_tree(path, "block"), int(name["start"]), dimension)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{path} is no block of this run ({error}): remove it, and the run goes on from the blocks before it"
            ) from error
        chain = int(name["chain"])
        # A gap means that a block was lost with the machine: what follows it cannot be used.
        if chain < len(self.blocks) and block.start == self.reached(chain):
            super().add(chain, block)

    def up_to(self, total: int) -> Store:
        """The store to use for a run of `total` iterations."""
        if all(self.reached(chain) <= total for chain in range(len(self.blocks))):
            return self
        shorter = Store(len(self.blocks))
        shorter.blocks = [[block for block in blocks if block.end <= total] for blocks in self.blocks]
        return shorter

    def add(self, chain: int, block: Block) -> None:
        """Write a block down, then keep it."""
        tree = {"start": block.start, "positions": block.positions, "stats": block.stats, "chain": block.chain,
                "seconds": block.seconds}  # fmt: skip
        write_tree(self.directory / f"chain-{chain:04d}-{block.start:09d}.cadlag", tree, "block")
        super().add(chain, block)


def _block(tree: dict[str, Any], start: int, dimension: int) -> Block:
    """What a file holds as a block, if all of it fits."""
    positions, stats, chain = tree["positions"], tree["stats"], checked_chain(tree["chain"], dimension)
    if positions.ndim != 2 or positions.shape[1] != dimension or positions.dtype != np.float64 or not len(positions):
        raise ValueError("its draws are of another shape")
    if not all(values.shape == positions.shape[:1] and values.dtype.kind in "biuf" for values in stats.values()):
        raise ValueError("its statistics do not fit its draws")
    if tree["start"] != start or chain["done"] != start + len(positions):
        raise ValueError("it starts or ends at another iteration")
    return Block(start, positions, stats, chain, float(tree["seconds"]))
