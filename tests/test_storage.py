"""The file format: exact round trips, complete or absent, and no damaged file that is read as something else."""

import ast
import json
import os
import socket
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cadlag import storage
from cadlag.storage import read_tree, replacing, write_tree


def example_tree():
    rng = np.random.default_rng(5)
    return {
        "state": dict(rng.bit_generator.state),
        "floats": [0.1, -0.0, 1e22, 5e-324, float("inf"), -float("inf"), float("nan"), 3.0],
        "leaves": [True, False, None, 0, -1, 2**63, -(2**200), "", "é\ud800\n"],
        "dict": {"dict": {}, "array": "x", "float": "nan", "": []},
        "arrays": {
            "matrix": rng.standard_normal((3, 2)),
            "single": np.float32([1.5, np.nan, np.inf]),
            "scalar": np.array(2.5),
            "empty": np.empty((0, 4), dtype=np.int16),
            "flags": np.array([[True], [False]]),
            "words": np.array(["a", "çà", ""]),
            "complex": np.array([1 + 2j]),
            "bytes": np.arange(5, dtype=np.uint8),
        },
    }


def same(a, b):
    """Whether two nodes agree in type and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return repr(a) == repr(b)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.cadlag"


@pytest.fixture
def small(path):
    """Path and tree of a file of a few hundred bytes."""
    tree = {"draws": np.array([[1.5, -2.0]]), "seed": 3, "noise": 0.1}
    write_tree(path, tree, "posterior")
    return path, tree


def test_round_trip_is_exact(path):
    write_tree(path, example_tree(), "model")
    assert same(read_tree(path, "model"), example_tree())


def test_generator_state_resumes(path):
    rng = np.random.default_rng(8)
    write_tree(path, {"state": dict(rng.bit_generator.state)}, "state")
    other = np.random.default_rng(0)
    other.bit_generator.state = read_tree(path, "state")["state"]
    assert np.array_equal(other.random(5), rng.random(5))


def test_integer_of_many_digits(path):
    write_tree(path, {"n": -(10**6000)}, "k")
    assert read_tree(path, "k")["n"] == -(10**6000)


def test_arrays_come_back_native_contiguous_and_writeable(path):
    values = np.arange(6.0).reshape(2, 3)
    write_tree(path, {"a": np.asfortranarray(values).astype(">f8"), "b": np.broadcast_to(values[:, :1], (2, 5))}, "k")
    tree = read_tree(path, "k")
    assert tree["a"].dtype.isnative
    assert np.array_equal(tree["a"], values)
    assert np.array_equal(tree["b"], np.repeat(values[:, :1], 5, axis=1))
    tree["a"][0, 0] = 7.0
    assert tree["a"][0, 0] == 7.0


def test_equal_trees_give_equal_bytes(tmp_path):
    tree = example_tree()
    turned = {key: tree[key] for key in reversed(tree)}
    turned["arrays"] = {key: np.array(value, order="F") for key, value in reversed(tree["arrays"].items())}
    write_tree(tmp_path / "a", tree, "k")
    write_tree(tmp_path / "b", turned, "k")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_file_is_a_plain_zip_with_standard_json(small):
    with zipfile.ZipFile(small[0]) as archive:
        assert archive.namelist() == ["manifest.json", "0.npy"]
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        manifest = json.loads(archive.read("manifest.json"), parse_constant=pytest.fail)
        with archive.open("0.npy") as stream:
            assert np.array_equal(np.load(stream, allow_pickle=False), small[1]["draws"])
    assert (manifest["format"], manifest["version"], manifest["kind"]) == ("cadlag", 1, "posterior")


@pytest.mark.parametrize(
    "value",
    [
        *[(1, 2), {1}, b"x", np.float64(1.0), np.int64(1), 1j, object, {1: 2}, np.array([None]), np.array([b"x"])],
        *[np.array(["2020-01-01"], dtype="M8[D]"), np.ma.masked_array([1.0], [True])],
    ],
)
def test_what_would_not_come_back_is_refused_by_place(path, value):
    with pytest.raises(TypeError, match=r"tree\['outer'\]\[1\]"):
        write_tree(path, {"outer": [0, value]}, "k")
    assert not path.exists()


def test_endless_tree_is_refused(path):
    tree = {}
    tree["self"] = tree
    with pytest.raises(ValueError, match="nested more than"):
        write_tree(path, tree, "k")


def test_deepest_allowed_tree_is_readable(path):
    tree = node = {}
    for _ in range(storage.MAX_DEPTH):
        node["x"] = node = {}
    write_tree(path, tree, "k")
    assert same(read_tree(path, "k"), tree)


def test_overlong_manifest_is_refused_when_written(path, monkeypatch):
    monkeypatch.setattr(storage, "MAX_MANIFEST_BYTES", 1000)
    with pytest.raises(ValueError, match="numpy arrays"):
        write_tree(path, {"x": list(range(1000))}, "k")


def failing_write(*_args, **_kwargs):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("broken", ["write_array", "fsync", "replace"])
def test_failed_write_leaves_what_was_there(small, monkeypatch, broken):
    path, tree = small
    target = np.lib.format if broken == "write_array" else os
    monkeypatch.setattr(target, broken, failing_write)
    with pytest.raises(OSError, match="No space"):
        write_tree(path, {"new": np.zeros(3)}, "posterior")
    assert os.listdir(path.parent) == [path.name]
    assert same(read_tree(path, "posterior"), tree)


@pytest.fixture
def order_on_disk(monkeypatch):
    """What is made durable and put in place, in order: "file", "replace", or the directory."""
    done, fsync, replace = [], os.fsync, os.replace

    def watched_fsync(descriptor):
        found = os.fstat(descriptor)
        done.append((found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else "file")
        fsync(descriptor)

    def watched_replace(*paths):
        done.append("replace")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    return done


def identity(directory):
    found = directory.stat()
    return found.st_dev, found.st_ino


@pytest.mark.skipif(os.name != "posix", reason="directories cannot be synchronised here")
def test_replaced_file_and_then_its_name_are_durable(tmp_path, order_on_disk, monkeypatch):
    """After a power cut the new name may be missing unless its directory has been synchronised, after the file."""
    write_tree(tmp_path / "tree.cadlag", {"a": 1}, "k")
    assert order_on_disk == ["file", "replace", identity(tmp_path)]
    order_on_disk.clear()
    monkeypatch.chdir(tmp_path)
    write_tree("here.cadlag", {"a": 1}, "k")
    assert order_on_disk == ["file", "replace", identity(tmp_path)]


@pytest.mark.skipif(os.name != "posix", reason="directories cannot be synchronised here")
def test_records_are_durable_and_the_first_with_its_name(tmp_path, order_on_disk):
    records = storage.RecordFile(tmp_path / "rows.jsonl")
    records.append({"a": 1})
    assert order_on_disk == ["file", identity(tmp_path)]
    records.append({"a": 2})
    assert order_on_disk == ["file", identity(tmp_path), "file"]


def test_written_file_follows_the_umask(small):
    mask = os.umask(0)
    os.umask(mask)
    assert small[0].stat().st_mode & 0o777 == 0o666 & ~mask


def test_cut_at_every_byte(small):
    path, _ = small
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"tree\.cadlag is cut short or not a cadlag file"):
            read_tree(path, "posterior")


def test_cut_behind_a_file_held_inside(path):
    write_tree(path, {"inner": 1}, "k")
    inner = path.read_bytes()
    write_tree(path, {"file": np.frombuffer(inner, np.uint8)}, "k")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(inner) + len(inner)])
    with pytest.raises(ValueError, match="do not fill the file"):
        read_tree(path, "k")


def test_mutated_files_are_refused_or_identical(path):
    tree = example_tree()
    write_tree(path, tree, "model")
    whole = path.read_bytes()
    rng = np.random.default_rng(11)
    n_refused = 0
    for place, change in zip(rng.integers(len(whole), size=2000), rng.integers(1, 256, size=2000)):
        mutated = bytearray(whole)
        mutated[place] ^= change
        path.write_bytes(mutated)
        try:
            assert same(read_tree(path, "model"), tree)
        except ValueError as error:
            assert str(path) in str(error)
            n_refused += 1
    assert n_refused > 1000


def repack(path, changes, mode=zipfile.ZIP_STORED):
    """Write the zip again with other manifest fields and valid checksums."""
    with zipfile.ZipFile(path) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    manifest = json.loads(entries[0][1]) | changes
    with zipfile.ZipFile(path, "w", mode) as archive:
        for name, data in [("manifest.json", json.dumps(manifest).encode()), *entries[1:]]:
            archive.writestr(name, data)


def reference(shape, dtype="<f8", name="0.npy"):
    return {"array": name, "dtype": dtype, "shape": shape}


def test_repack_alone_changes_nothing(small):
    repack(small[0], {})
    assert same(read_tree(small[0], "posterior"), small[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "format version 2 and this cadlag reads up to 1; install a newer"),
        ({"kind": "model"}, "holds a 'model', not a 'posterior'"),
        ({"format": "other"}, "is not a cadlag file"),
        ({"version": "1"}, "is not a cadlag file"),
        ({"tree": 3.5}, "does not hold a tree"),
        ({"tree": {"dict": {"x": 1}}}, "unexpected entry '0.npy'"),
        ({"tree": {"dict": {"x": {"what": 1}}}}, "unknown node"),
        ({"tree": {"dict": {"x": float("nan")}}}, "NaN"),
        ({"tree": {"dict": {"x": {"float": "many"}}}}, "damaged"),
        ({"tree": {"dict": {"x": reference([1, 3])}}}, "size of 0.npy"),
        ({"tree": {"dict": {"x": reference([1, 2], "|O")}}}, "dtype or shape"),
        ({"tree": {"dict": {"x": reference([1, -2])}}}, "dtype or shape"),
        ({"tree": {"dict": {"x": reference([1, 2], name="1.npy")}}}, "1.npy"),
        ({"tree": {"dict": {"x": reference([1, 2]), "y": reference([1, 2])}}}, "damaged"),
    ],
)
def test_manifests_that_are_refused(small, changes, message):
    path, _ = small
    repack(path, changes)
    with pytest.raises(ValueError, match=message) as caught:
        read_tree(path, "posterior")
    assert str(caught.value).startswith(str(path))


def test_compressed_entries_are_refused(small):
    repack(small[0], {}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed entry"):
        read_tree(small[0], "posterior")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("name", "message"), [("0.npy", "two entries of one name"), ("evil.pkl", "unexpected entry")])
def test_added_entries_are_refused(small, name, message):
    with zipfile.ZipFile(small[0], "a") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(ValueError, match=message):
        read_tree(small[0], "posterior")


def test_encrypted_flag_is_refused(small):
    path, _ = small
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        read_tree(path, "posterior")


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip" * 100, b"\x80\x04N."])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a cadlag file"):
        read_tree(path, "k")


def test_other_zip_is_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", b"x")
    with pytest.raises(ValueError, match=r"without manifest\.json"):
        read_tree(path, "k")


def test_directory_and_missing_file(tmp_path):
    with pytest.raises(ValueError, match="directory"):
        read_tree(tmp_path, "k")
    with pytest.raises(FileNotFoundError, match=r"no file .*absent"):
        read_tree(tmp_path / "absent", "k")


def peak_of_reading(path):
    tracemalloc.start()
    try:
        read_tree(path, "posterior")
    except ValueError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def test_huge_declared_shape_allocates_nothing(small):
    repack(small[0], {"tree": {"dict": {"x": reference([10**12])}}})
    assert peak_of_reading(small[0]) < 10**6


def test_reading_takes_at_most_twice_the_file(path):
    write_tree(path, {"x": np.zeros(2 * 10**6), "y": np.ones(10**6)}, "posterior")
    assert peak_of_reading(path) < 2 * path.stat().st_size


def test_no_module_that_executes_files_is_imported():
    source = ast.parse(Path(storage.__file__).read_text())
    imported = {a.name for n in ast.walk(source) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    assert not imported & {"pickle", "marshal", "shelve", "joblib", "cloudpickle"}


# What stands where a result shall go ---------------------------------------------------------------------------------


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "deep").mkdir()
    real, link, second = tmp_path / "deep" / "real", tmp_path / "link", tmp_path / "second"
    real.write_bytes(b"before")
    link.symlink_to("deep/real")
    second.symlink_to(link)
    with replacing(str(second)) as stream:
        stream.write(b"after")
    assert link.is_symlink()
    assert second.is_symlink()
    assert real.read_bytes() == b"after"
    assert [path.name for path in tmp_path.glob("**/*.tmp")] == []


def test_a_link_to_nothing_makes_the_file(tmp_path):
    (tmp_path / "link").symlink_to("real")
    with replacing(str(tmp_path / "link")) as stream:
        stream.write(b"new")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="leads nowhere"), replacing(str(tmp_path / "a")):
        pass


def test_a_pipe_is_written_into(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        with replacing(str(fifo)) as stream:
            stream.write(b"all of it")
        assert reader.stdout.read() == b"all of it"
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_device_is_written_into():
    """A terminal of the test's own, which nothing can replace: no file of the system is put at risk."""
    ours, theirs = os.openpty()
    try:
        with replacing(os.ttyname(theirs)) as stream:
            stream.write(b"words")
        assert os.read(ours, 100) == b"words"
    finally:
        os.close(ours)
        os.close(theirs)


def test_standard_output_keeps_what_it_holds(tmp_path):
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    code = "import sys\nfrom cadlag.storage import replacing\nwith replacing(sys.argv[1]) as out: out.write(b'second')"
    with open(tmp_path / "log", "ab") as log:
        log.write(b"first ")
        log.flush()
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "stdout")], stdout=log, check=True)
    assert (tmp_path / "log").read_bytes() == b"first second"
    assert (tmp_path / "stdout").is_symlink()


def test_nothing_reaches_a_pipe_from_a_block_that_fails(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(["cat", str(tmp_path / "fifo")], stdout=subprocess.PIPE) as reader:
        with pytest.raises(ZeroDivisionError), replacing(str(tmp_path / "fifo")) as stream:
            stream.write(b"half")
            1 / 0  # noqa: B018
        with open(tmp_path / "fifo", "wb") as other:
            other.write(b"other")
        assert reader.stdout.read() == b"other"


def test_a_socket_is_refused(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="no result is written"), replacing(str(tmp_path / "s")):
            pass


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_permissions_of_a_file_that_is_replaced_stay(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    path.chmod(mode)
    with replacing(str(path)) as stream:
        (temporary,) = tmp_path.glob(".file.*.tmp")
        assert stat.S_IMODE(temporary.stat().st_mode) & 0o077 & ~mode == 0, "nobody may read it meanwhile either"
        stream.write(b"after")
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_owner_of_a_file_that_is_replaced_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    os.chown(path, 12345, 12346)
    with replacing(str(path)) as stream:
        stream.write(b"after")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


@pytest.mark.parametrize("header", ["(" * 9_000, "{'a': " + "[" * 9_000, "-" * 9_000 + "1", "{'a': 1", "(" * 60_000])
def test_an_absurd_array_header_is_a_sentence(small, header):
    path, _ = small
    text = header.encode()
    with zipfile.ZipFile(path) as archive:
        manifest = archive.read("manifest.json")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", manifest)
        archive.writestr("0.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(ValueError, match="is damaged"):
        read_tree(path, "posterior")
