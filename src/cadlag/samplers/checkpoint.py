"""A run on disk: one file a block, each complete or absent, so that a killed run loses at most the blocks in flight.

Directory layout: `run.cadlag` says which data and settings the run belongs to, `chain-CCCC-SSSSSSSSS.cadlag` holds
the block of chain C that starts at iteration S, with the chain's state after it.
"""

from pathlib import Path
from typing import Any

from cadlag.samplers.chains import Block, Store
from cadlag.storage import read_tree, write_tree


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
    """

    def __init__(self, directory: str | Path, n_chains: int, fingerprint: str, entropy: int) -> None:
        super().__init__(n_chains)
        self.directory = Path(directory)
        self.entropy = self._claim(fingerprint, entropy)
        for path in sorted(self.directory.glob("chain-*.cadlag")):
            self._take(path)

    def _claim(self, fingerprint: str, entropy: int) -> int:
        manifest = self.directory / "run.cadlag"
        if manifest.exists():
            found = read_tree(manifest, "run")
            if found["fingerprint"] != fingerprint:
                raise ValueError(
                    f"{self.directory} holds a run with other data or settings: "
                    "give another checkpoint directory, or remove this one"
                )
            return int(found["entropy"])
        # A run that was killed while it wrote its first file has left a temporary one, which does not count.
        if self.directory.exists() and any(path.suffix != ".tmp" for path in self.directory.iterdir()):
            raise ValueError(f"{self.directory} is not empty and is not a checkpoint: give another directory")
        self.directory.mkdir(parents=True, exist_ok=True)
        write_tree(manifest, {"fingerprint": fingerprint, "entropy": entropy}, "run")
        return entropy

    def _take(self, path: Path) -> None:
        tree: dict[str, Any] = read_tree(path, "block")
        chain = int(path.name.split("-")[1])
        # A gap means that a block was lost with the machine: what follows it cannot be used.
        if chain < len(self.blocks) and tree["start"] == self.reached(chain):
            super().add(chain, Block(tree["start"], tree["positions"], tree["stats"], tree["chain"], tree["seconds"]))

    def up_to(self, total: int) -> Store:
        """The store to use for a run of `total` iterations.

        Parameters
        ----------
        total
            Iterations wanted.

        Returns
        -------
        Store
            Itself; or, where an earlier run went further, a copy in memory of the blocks that end in time.
        """
        if all(self.reached(chain) <= total for chain in range(len(self.blocks))):
            return self
        shorter = Store(len(self.blocks))
        shorter.blocks = [[block for block in blocks if block.end <= total] for blocks in self.blocks]
        return shorter

    def add(self, chain: int, block: Block) -> None:
        """Write a block down, then keep it.

        Parameters
        ----------
        chain
            Which chain.
        block
            The block.
        """
        tree = {"start": block.start, "positions": block.positions, "stats": block.stats, "chain": block.chain,
                "seconds": block.seconds}  # fmt: skip
        write_tree(self.directory / f"chain-{chain:04d}-{block.start:09d}.cadlag", tree, "block")
        super().add(chain, block)
