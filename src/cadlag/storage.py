"""One file = one tree: a stored zip of `manifest.json` and an `.npy` for each array; complete or absent, never pickle.

A tree is a dict with string keys whose values are dicts, lists, strings, integers of any size, floats, booleans, None
and numpy arrays (boolean, integer, float, complex or fixed-width text). The manifest is standard JSON,

    {"format": "cadlag", "version": 1, "kind": ..., "tree": node}

in which a dict is `{"dict": {...}}`, an array `{"array": name, "dtype": ..., "shape": [...]}`, a float that is not
finite `{"float": "nan" | "inf" | "-inf"}` and an integer beyond 63 bits `{"int": hexadecimal}`; all else stands for
itself. Equal trees give equal bytes. Keys come back in sorted order. Reading allocates an array only after its declared
shape has been found to fit the bytes that the file holds for it, and checks every byte of data against its CRC-32.

What grows record by record is a `RecordFile`: JSON lines, each with its CRC-32, each whole or torn.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

if sys.platform != "win32":
    import fcntl

FORMAT = "cadlag"
VERSION = 1
MANIFEST = "manifest.json"

# Parsed JSON takes many times its text's memory, so bulk belongs in arrays. Writing obeys what reading enforces.
MAX_MANIFEST_BYTES = 16 * 2**20
MAX_DEPTH = 100

_CHUNK = 2**20
_MOST_LINKS = 40
_BINARY = getattr(os, "O_BINARY", 0)  # of Windows
_DTYPE = re.compile(r"\|[biu]1|<[iu][248]|<f[248]|<c8|<c16|<U[0-9]{1,9}")
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_LINE_START = b'{"crc32":"'
_END_RECORD = struct.Struct("<4s16sH")
# What the zip, JSON and npy readers raise on bytes that were changed at random.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, TypeError, LookupError, RuntimeError, OverflowError),
)


class _UnreadableError(ValueError):
    """Why a file is refused, as a clause that follows its path."""


def write_tree(path: str | os.PathLike[str], tree: dict[str, Any], kind: str) -> None:
    """Write a tree to one file, which is then either complete or, after any failure, what it was before."""
    if type(tree) is not dict:
        raise TypeError(f"A tree is a dict, not a {type(tree).__name__}; wrap the value in one.")
    arrays: list[np.ndarray] = []
    node = _encode(tree, "tree", arrays, 0)
    manifest = _manifest_bytes({"format": FORMAT, "version": VERSION, "kind": kind, "tree": node})
    with replacing(os.fspath(path)) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(MANIFEST, len(manifest)), manifest)
        for number, array in enumerate(arrays):
            # The announced size only decides whether the entry needs 64-bit lengths.
            with archive.open(_entry(f"{number}.npy", array.nbytes + 2**16), "w") as entry:
                np.lib.format.write_array(entry, array, version=(1, 0), allow_pickle=False)


def read_tree(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read a tree that `write_tree` wrote.

    A file that is cut, changed, of another kind, of a newer format or not such a file at all is a ValueError that names
    it; nothing in a file is ever executed.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no file {path}; check the path.")
    if not os.path.isfile(path):
        raise ValueError(f"{path} is a directory or a device, not a cadlag file; give the path of a file.")
    with open(path, "rb") as stream:
        try:
            return _read_archive(stream, kind)
        except _UnreadableError as reason:
            raise ValueError(f"{path} {reason}.") from None
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is damaged ({str(error) or type(error).__name__}); write it again or take a copy."
            ) from error


class RecordFile:
    """An append-only file of JSON objects, one a line, which several processes may extend at the same time.

    Parameters
    ----------
    path
        The file; the first append creates it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def append(self, record: dict[str, Any]) -> None:
        """Add one record, durably, or leave the file as it was; a torn last line goes."""
        body = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii")
        line = _LINE_START + b'%08x",' % zlib.crc32(body) + body[1:] + b"\n"
        with open(self.path, "ab+", buffering=0) as stream:
            if sys.platform != "win32":
                fcntl.flock(stream, fcntl.LOCK_EX)
            size = self._drop_torn_tail(stream)
            try:
                if os.write(stream.fileno(), line) < len(line):
                    raise OSError(f"{self.path} took only a part of a line; free some space on its disk.")
                os.fsync(stream.fileno())
            except BaseException:
                stream.truncate(size)
                raise
        if size == 0:
            sync_directory(os.path.dirname(self.path))

    def read(self) -> list[dict[str, Any]]:
        """Return the records; a torn last line does not count, and a damaged line is an error."""
        if not os.path.exists(self.path):
            return []
        with open(self.path, "rb") as stream:
            *lines, tail = stream.read().split(b"\n")
        self._check_torn(tail)
        return [self._parse(line, number) for number, line in enumerate(lines, 1)]

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        """Return the record of a line after comparing its CRC-32."""
        head, body = line[: len(_LINE_START) + 10], b"{" + line[len(_LINE_START) + 10 :]
        if head != _LINE_START + b'%08x",' % zlib.crc32(body):
            raise ValueError(f"{self.path}, line {number} is damaged or no record; delete it or choose another path.")
        return json.loads(body)

    def _drop_torn_tail(self, stream: Any) -> int:
        """Cut the file behind its last whole line and return the size."""
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - 1))
        if stream.read(1) in (b"", b"\n"):
            return size
        stream.seek(0)
        tail = stream.read().rpartition(b"\n")[2]
        self._check_torn(tail)
        return stream.truncate(size - len(tail))

    def _check_torn(self, tail: bytes) -> None:
        """Refuse a last line that no torn append can have left, such as another program's file."""
        # A power cut may leave zeros where the data had not arrived.
        if not _LINE_START.startswith(tail.rstrip(b"\0")[: len(_LINE_START)]):
            raise ValueError(f"{self.path} is not a file of records; choose another path.")


def sync_directory(path: str) -> None:
    """Make the names in a directory durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place_of(path: str) -> str:
    """Where a result that is written to a path ends up: a link is followed, and stays."""
    link = path
    for _ in range(_MOST_LINKS):
        if not os.path.islink(link):
            return path if link == path else os.path.realpath(path)
        if os.path.realpath(os.path.dirname(link)).startswith("/proc/"):
            return link
        link = os.path.join(os.path.dirname(link), os.readlink(link))
    raise OSError(f"{path} is a link that leads nowhere; give another path.")


def is_replaced(place: str) -> bool:
    """Whether a new file takes the place of what is there; a pipe or a terminal is written into."""
    if os.path.islink(place):  # of an open file
        return False
    if not os.path.exists(place) or os.path.isfile(place) or os.path.isdir(place):
        return True
    if stat.S_ISFIFO(mode := os.stat(place).st_mode) or stat.S_ISCHR(mode):
        return False
    raise OSError(f"{place} is a disk or a socket, to which no result is written; give another path.")


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Open a temporary neighbour that takes the place of `path` when the block ends well and vanishes otherwise.

    A link is followed, and the file that it leads to is replaced; owner and permissions stay. What is no regular file,
    such as a pipe or /dev/null, is not replaced: all of the result is written into it when the block has ended well.
    """
    place = place_of(path)
    if not is_replaced(place):
        with tempfile.TemporaryFile() as stream:
            yield stream
            stream.seek(0)
            with open(os.open(place, os.O_WRONLY | os.O_APPEND), "wb") as target:
                shutil.copyfileobj(stream, target)
        return
    directory, name = os.path.split(place)
    # Not tempfile: its files are readable by their owner only, and a new file should follow the user's umask.
    temporary = os.path.join(directory, f".{name[:100]}.{uuid.uuid4().hex}.tmp")
    before = os.stat(place) if os.path.exists(place) else None
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    try:
        with open(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, mode & 0o666), "wb") as stream:
            if before is not None:
                _inherit(temporary, before)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, place)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            reason = f"{path} cannot be written ({error.strerror}); free some space on its disk, or give another path."
            raise OSError(error.errno, reason) from error
        raise
    sync_directory(directory)


def _inherit(path: str, before: os.stat_result) -> None:
    """Give a file the owner, where that is allowed, and the permissions of the one that it replaces."""
    if os.name == "posix" and (os.stat(path).st_uid, os.stat(path).st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, stat.S_IMODE(before.st_mode))


def _encode(node: Any, place: str, arrays: list[np.ndarray], depth: int) -> Any:
    """Turn a node into JSON, putting its arrays aside."""
    if depth > MAX_DEPTH:
        raise ValueError(f"The tree is nested more than {MAX_DEPTH} levels deep at {place[:80]}...; flatten it.")
    if isinstance(node, np.ndarray):
        return _encode_array(node, place, arrays)
    if type(node) is list:
        return [_encode(item, f"{place}[{i}]", arrays, depth + 1) for i, item in enumerate(node)]
    if type(node) is dict:
        if others := [key for key in node if type(key) is not str]:
            raise TypeError(f"{place} has the key {others[0]!r} of type {type(others[0]).__name__}; keys must be str.")
        return {"dict": {key: _encode(node[key], f"{place}[{key!r}]", arrays, depth + 1) for key in sorted(node)}}
    return _encode_scalar(node, place)


def _encode_scalar(node: Any, place: str) -> Any:
    """Turn a leaf into JSON; exact types only, since a subclass would not come back as itself."""
    if node is None or type(node) in (bool, str):
        return node
    if type(node) is int:
        return node if abs(node) < 2**63 else {"int": hex(node)}
    if type(node) is float:
        return node if math.isfinite(node) else {"float": repr(node)}
    raise TypeError(
        f"{place} is a {type(node).__module__}.{type(node).__name__}, which cannot be stored; "
        "convert it to a dict, list, str, int, float, bool, None or numpy array."
    )


def _encode_array(array: np.ndarray, place: str, arrays: list[np.ndarray]) -> dict[str, Any]:
    """Put an array aside, little-endian and in C order, and return the reference to it."""
    little = array.dtype.newbyteorder("<")
    if isinstance(array, np.ma.MaskedArray) or not _DTYPE.fullmatch(little.str):
        raise TypeError(
            f"{place} is a {type(array).__name__} of dtype {array.dtype}, which cannot be stored; convert it to a "
            "plain array of booleans, integers, float64 or smaller, complex128 or smaller, or fixed-width text."
        )
    arrays.append(np.asarray(array, dtype=little, order="C"))
    return {"array": f"{len(arrays) - 1}.npy", "dtype": little.str, "shape": list(array.shape)}


def _manifest_bytes(manifest: dict[str, Any]) -> bytes:
    """Return the manifest's JSON text, in ASCII."""
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_MANIFEST_BYTES:
        raise ValueError(
            f"The tree without its arrays takes {len(text)} bytes, more than the {MAX_MANIFEST_BYTES} allowed; "
            "hold long lists as numpy arrays."
        )
    return text


def _entry(name: str, size: int) -> zipfile.ZipInfo:
    """Describe a zip entry with nothing in it that depends on when and where it is written."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    info.file_size = size
    return info


def _read_archive(stream: BinaryIO, kind: str) -> dict[str, Any]:
    """Read the tree from an open file."""
    size = os.fstat(stream.fileno()).st_size
    _check_end(stream, size)
    with zipfile.ZipFile(stream) as archive:
        entries = _checked_entries(archive, size)
        if MANIFEST not in entries:
            raise _UnreadableError(f"is a zip without {MANIFEST}, not a cadlag file; check the path")
        node = _checked_manifest(_read_manifest(archive, entries.pop(MANIFEST)), kind)
        tree = _decode(node, archive, entries)
    if not isinstance(tree, dict):
        raise _UnreadableError("does not hold a tree; write it again")
    if entries:
        raise _UnreadableError(f"holds the unexpected entry {min(entries)!r}; take a copy that nothing was added to")
    return tree


def _check_end(stream: BinaryIO, size: int) -> None:
    """Require the zip's end record as the very last bytes: the first thing that a cut file loses."""
    stream.seek(max(0, size - _END_RECORD.size))
    tail = stream.read(_END_RECORD.size)
    if len(tail) < _END_RECORD.size or _END_RECORD.unpack(tail)[::2] != (b"PK\x05\x06", 0):
        raise _UnreadableError("is cut short or not a cadlag file; write it again or take a copy")


def _checked_entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the entries by name; refuse those that could hide data or unfold to more than the file's size."""
    infos = archive.infolist()
    entries = {info.filename: info for info in infos}
    if len(entries) < len(infos):
        raise _UnreadableError("holds two entries of one name; write it again")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise _UnreadableError(f"holds the compressed entry {info.filename!r}; pack it again with `zip -0`")
    # A zip may start anywhere and its entries may overlap; here the first starts the file and all fit in it.
    if sum(info.file_size for info in infos) > size or min((info.header_offset for info in infos), default=1) != 0:
        raise _UnreadableError("is damaged (its entries do not fill the file); write it again or take a copy")
    return entries


def _read_manifest(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    """Parse the manifest."""
    if info.file_size > MAX_MANIFEST_BYTES:
        raise _UnreadableError(f"has a {MANIFEST} of {info.file_size} bytes, over the limit of {MAX_MANIFEST_BYTES}")
    return json.loads(archive.read(info).decode("ascii"), parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    """Refuse the tokens NaN and Infinity, which standard JSON does not have."""
    raise ValueError(f"{word} in {MANIFEST}")


def _checked_manifest(manifest: Any, kind: str) -> Any:
    """Return the manifest's tree after checking format, version and kind."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or type(manifest.get("version")) is not int:
        raise _UnreadableError("is not a cadlag file; check the path")
    if manifest["version"] > VERSION:
        raise _UnreadableError(
            f"has format version {manifest['version']} and this cadlag reads up to {VERSION}; install a newer cadlag"
        )
    if manifest["kind"] != kind:
        raise _UnreadableError(f"holds a {manifest['kind']!r}, not a {kind!r}; check the path")
    return manifest["tree"]


def _decode(node: Any, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> Any:
    """Turn JSON back into a node; an array's entry is taken out of `entries`, so none can be read twice."""
    match node:
        case list():
            return [_decode(item, archive, entries) for item in node]
        case {"dict": dict(items)}:
            return {key: _decode(item, archive, entries) for key, item in items.items()}
        case {"array": str(name), "dtype": str(dtype), "shape": list(shape)}:
            return _read_array(archive, entries.pop(name), dtype, shape)
        case {"float": str(word)}:
            return _NOT_FINITE[word]
        case {"int": str(digits)}:
            return int(digits, 16)
        case dict():
            raise ValueError(f"unknown node in {MANIFEST}")
    return node


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, dtype_text: str, lengths: list[Any]) -> np.ndarray:
    """Read one array whose manifest entry, npy header and stored size all agree."""
    if not _DTYPE.fullmatch(dtype_text) or not all(type(length) is int and length >= 0 for length in lengths):
        raise ValueError(f"dtype or shape of {info.filename}")
    dtype, shape = np.dtype(dtype_text), tuple(lengths)
    n_bytes = math.prod(shape) * dtype.itemsize
    with archive.open(info) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"npy version of {info.filename}")
        header = _read_header(stream, info.filename)
        if header != (shape, False, dtype) or info.file_size - stream.tell() != n_bytes:
            raise ValueError(f"size of {info.filename}")
        data = _read_exactly(stream, n_bytes)
    array: np.ndarray = np.ndarray(shape, dtype, buffer=data)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(stream: Any, name: str) -> Any:
    """Parse an npy header, which is Python's text for a dict: nested deeply enough it exhausts the parser."""
    try:
        return np.lib.format.read_array_header_1_0(stream)
    except (MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"header of {name}") from error


def _read_exactly(stream: Any, n_bytes: int) -> bytearray:
    """Fill a buffer piece by piece, to the entry's end, where zipfile compares the CRC."""
    data = bytearray(n_bytes)
    for start in range(0, n_bytes, _CHUNK):
        piece = stream.read(min(_CHUNK, n_bytes - start))
        data[start : start + len(piece)] = piece
    if stream.read(1):
        raise ValueError("bytes after an array")
    return data


def checked(array: Any, shape: Sequence[int | None], finite: bool = True) -> NDArray[np.float64]:
    """An array of a file in double precision, if its numbers have this shape; None is any length of at least one."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError("an array is missing")
    fits = array.ndim == len(shape) and all(
        found >= 1 if wanted is None else found == wanted for found, wanted in zip(array.shape, shape)
    )
    if not fits:
        raise ValueError(f"its arrays do not fit each other: one is {array.shape}")
    if finite and not np.isfinite(array).all():
        raise ValueError("a number is missing")
    return np.asarray(array, dtype=np.float64, order="C")
