"""A few hundred mutated tables and model files through the command; `make fuzz` runs more."""

import pytest

from fuzz import complaint, fuzz_models, fuzz_tables

pytestmark = pytest.mark.filterwarnings("ignore")


def test_tables(tmp_path):
    assert fuzz_tables(250, 0, tmp_path) == []


def test_models(tmp_path):
    assert fuzz_models(120, 0, tmp_path) == []


def test_the_test_can_fail(tmp_path, monkeypatch):
    def broken(*arguments):
        raise TypeError("a bug")

    monkeypatch.setattr("cadlag.commands.predicting.read_frame", broken)
    monkeypatch.setattr("cadlag.commands.predicting.load", lambda path: None)
    assert "TypeError: a bug" in complaint("predict", tmp_path / "a", tmp_path / "b")
