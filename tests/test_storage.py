"""The file format: exact round trips, complete or absent, and no damaged file that is read as something else."""

import ast
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cadlag import storage
from cadlag.storage import read_tree, write_tree


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
