"""Downloads against a server on loopback: fetched once, checked, complete or absent, and clear words on failure."""

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from cadlag.datasets import downloads, load_uci


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, counts requests, says nothing."""

    count = 0

    def do_GET(self):
        Quiet.count += 1
        super().do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def site(tmp_path):
    """Made-up data in the source's layout."""
    folder = tmp_path / "site" / "yacht" / "data"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    np.savetxt(folder / "data.txt", rng.normal(size=(20, 7)))
    np.savetxt(folder / "index_features.txt", np.arange(6))
    np.savetxt(folder / "index_target.txt", [6])
    for split in range(20):
        order = rng.permutation(20)
        np.savetxt(folder / f"index_train_{split}.txt", order[:18])
        np.savetxt(folder / f"index_test_{split}.txt", order[18:])
    return folder


@pytest.fixture
def server(site, monkeypatch, tmp_path):
    """A server of those data, where the loader looks, with an empty cache."""
    handler = functools.partial(Quiet, directory=str(site.parents[1]))
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    monkeypatch.delenv("CADLAG_DATA", raising=False)
    monkeypatch.setenv("CADLAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CADLAG_DATA_URL", f"http://127.0.0.1:{serving.server_port}")
    monkeypatch.setitem(downloads.CHECKSUMS, "yacht", downloads.checksum(site))
    Quiet.count = 0
    yield serving
    serving.shutdown()
    serving.server_close()


def leftovers(tmp_path):
    return [path.name for path in (tmp_path / "cache" / "uci").iterdir()]


def test_fetched_once_then_read_from_the_cache(server, site, tmp_path):
    data = load_uci("yacht", 3)
    table = np.loadtxt(site / "data.txt")
    test = np.loadtxt(site / "index_test_3.txt").astype(int)
    assert np.array_equal(data.y_test, table[test, 6])
    assert Quiet.count == len(downloads.FILES) == 43
    load_uci("yacht", 4)
    assert Quiet.count == 43
    assert leftovers(tmp_path) == ["yacht"]


def test_other_numbers_are_refused_and_nothing_is_left(server, site, tmp_path):
    table = np.loadtxt(site / "data.txt")
    table[3, 2] += 1e-9
    np.savetxt(site / "data.txt", table)
    with pytest.raises(FileNotFoundError, match=r"checksum differs.*set CADLAG_DATA"):
        load_uci("yacht", 0)
    assert leftovers(tmp_path) == []


def test_other_spelling_of_the_same_numbers_is_accepted(server, site):
    np.savetxt(site / "index_target.txt", [6], fmt="%d")
    assert load_uci("yacht", 0).X_train.shape == (18, 6)


def test_a_fetch_that_breaks_off_leaves_nothing_and_the_next_succeeds(server, site, tmp_path):
    shutil.move(site / "index_test_19.txt", tmp_path / "aside.txt")
    with pytest.raises(FileNotFoundError, match=r"index_test_19\.txt: File not found"):
        load_uci("yacht", 0)
    assert leftovers(tmp_path) == []
    shutil.move(tmp_path / "aside.txt", site / "index_test_19.txt")
    assert len(load_uci("yacht", 0).y_test) == 2


def test_no_server_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("CADLAG_DATA", raising=False)
    monkeypatch.setenv("CADLAG_CACHE", str(tmp_path))
    monkeypatch.setenv("CADLAG_DATA_URL", "http://127.0.0.1:9")
    with pytest.raises(FileNotFoundError, match=r"boston data are not in the cache .* set CADLAG_DATA"):
        load_uci("boston", 0)


def test_checksums_are_those_of_the_known_files(uci):
    """Where the files are at hand, what a download must match is what the loaders were tested with."""
    assert {name: downloads.checksum(uci / name) for name in downloads.CHECKSUMS} == downloads.CHECKSUMS


@pytest.mark.parametrize("damage", ["another number", "a file is gone"])
def test_a_damaged_cache_is_noticed_by_the_next_process(server, tmp_path, damage):
    load_uci("yacht", 0)
    folder = tmp_path / "cache" / "uci" / "yacht"
    if damage == "another number":
        np.savetxt(folder / "index_train_7.txt", np.arange(18))
    else:
        (folder / "index_test_7.txt").unlink()
    downloads._WHOLE.clear()  # what a new process starts with
    with pytest.raises(ValueError, match=r"yacht data in the cache are damaged; delete .*yacht, and they are fetched"):
        load_uci("yacht", 0)
    shutil.rmtree(folder)
    assert len(load_uci("yacht", 7).y_test) == 2


def test_a_directory_of_the_user_comes_first(server, monkeypatch, tmp_path):
    monkeypatch.setenv("CADLAG_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no .*yacht.data\.txt"):
        load_uci("yacht", 0)
    assert Quiet.count == 0


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the default of Linux")
def test_default_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("CADLAG_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert downloads.cache_folder() == tmp_path / "cadlag"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert downloads.cache_folder() == Path.home() / ".cache" / "cadlag"
