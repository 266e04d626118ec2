"""Model files of every version so far: each is read, predicts what it did when it was written, and goes on."""

import json

import numpy as np
import pytest
from make_models import COLUMNS, HERE, predictions, predictions_by_command

import cadlag
from cadlag.methods import METHODS
from cadlag.storage import read_tree, write_tree

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree yet:sklearn.exceptions.ConvergenceWarning")

FOLDERS = sorted(HERE.glob("models_*"))
SAID = {folder: json.loads((folder / "predictions.json").read_text()) for folder in FOLDERS}
EXPECTED = {
    folder / f"{name}.cadlag": values
    for folder, said in SAID.items()
    for name, values in {**said["arrays"], **said["tables"]}.items()
}
every_file = pytest.mark.parametrize("path", EXPECTED, ids=lambda path: f"{path.parent.name}-{path.stem}")


def check(path, model):
    """The predictions of a file, at the inputs of its version, are those of when the model was written."""
    said = SAID[model.parent]
    if model.stem in said["tables"]:
        found = predictions_by_command(path, model.parent / "new.csv")
    else:
        found = predictions(cadlag.load(path), np.array(said["X"]))
    for column in COLUMNS:
        np.testing.assert_allclose(found[column], EXPECTED[model][column], rtol=1e-9, err_msg=column)


def test_a_file_of_every_method_is_kept():
    assert sorted(path for folder in FOLDERS for path in folder.glob("*.cadlag")) == sorted(EXPECTED)
    assert {*SAID[HERE / "models_0_1"]["arrays"]} == {*METHODS}


@every_file
def test_an_old_model_predicts_as_it_did(path):
    check(path, path)


@every_file
def test_an_old_model_goes_on(path, tmp_path):
    """Its chains hold all that further draws need; the draws it has stay, also in a file that is written now."""
    model = cadlag.load(path)
    before = model.posterior_.positions
    n_more = 2 if hasattr(model, "extend") else 0
    if n_more:
        model.extend(n_more)
    model.save(tmp_path / "again.cadlag")
    after = cadlag.load(tmp_path / "again.cadlag").posterior_.positions
    assert after.shape[1] == before.shape[1] + n_more
    assert np.isfinite(after).all()
    np.testing.assert_array_equal(after[:, : before.shape[1]], before)


@every_file
def test_the_comparison_sees_another_draw(path, tmp_path):
    """Draws that differ in the seventh digit are not taken for the same."""
    tree = read_tree(path, "model")
    tree["positions"] = tree["positions"] + 1e-6
    write_tree(tmp_path / "other.cadlag", tree, "model")
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(tmp_path / "other.cadlag", path)
