"""`discernel export`: a saved model as ONNX or as a Python file."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from discernel import KernelDiscriminant
from discernel.cli import exporting
from discernel.export import numpy_scorer
from discernel.export._scorer import Scorer
from discernel.persistence import read_model
from tests.command_line import invoke

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def model(tmp_path, own_folder):
    """A model of a small file."""
    rng = np.random.default_rng(0)
    with (tmp_path / "plants.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "leaf weight", "species"])
        for i in range(60):
            writer.writerow([*(rng.normal(size=2) + 2.0 * (i % 2)), "ab"[i % 2]])
    invoke("fit", "plants.csv", "--target", "species", "-o", "model.skops")
    return tmp_path / "model.skops"


ROWS = [[0.0, 0.0], [2.0, 2.0], [1.0, 1.2]]


def expected(model):
    import pandas as pd

    pipeline = read_model(model).pipeline
    first = pipeline[0]
    named = hasattr(first, "feature_names_in_")
    rows = pd.DataFrame(ROWS, columns=["size", "leaf weight"]) if named else np.array(ROWS)
    return pipeline.predict(rows), pipeline.predict_proba(rows)


def test_a_model_becomes_onnx(model):
    printed = invoke("export", model, "--to", "model.onnx").output
    assert "model.onnx" in printed
    assert "columns: 'size', 'leaf weight'" in printed
    assert "classes: 'a', 'b'" in printed
    assert "note" not in printed
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(None, {"X": np.array(ROWS)})
    found, right = expected(model)
    assert labels.tolist() == found.tolist()
    np.testing.assert_allclose(probabilities, right, rtol=0, atol=1e-6)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["columns"]) == ["size", "leaf weight"]
    size = (model.parent / "model.onnx").stat().st_size
    invoke("export", model, "--to", "small.onnx", "--float32")
    assert (model.parent / "small.onnx").stat().st_size < 0.8 * size


def test_a_model_becomes_a_python_file(model):
    printed = invoke("export", model, "--to", "scorer.py").output
    assert "scorer.py" in printed
    assert "scorer.npz" in printed
    rows = [dict(zip(["size", "leaf weight"], row, strict=True)) for row in ROWS]
    code = f"import json, scorer; r = {rows}; "
    code += "print(json.dumps([scorer.predict(r).tolist(), scorer.predict_proba(r).tolist()]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    labels, probabilities = json.loads(run.stdout)
    found, right = expected(model)
    assert labels == found.tolist()
    np.testing.assert_allclose(probabilities, right, rtol=0, atol=1e-9)


@pytest.mark.parametrize("to", ["equal.onnx", "equal.py"])
def test_a_model_of_equal_weights_is_exported_too(model, to):
    """`fit` puts an encoder and a scaler before kernels that are given."""
    invoke("fit", "plants.csv", "-t", "species", "--criterion", "uniform", "-o", "equal.skops")
    printed = invoke("export", "equal.skops", "--to", to).output
    assert "columns: 'size', 'leaf weight'\n" in printed
    found, right = expected(model.parent / "equal.skops")
    if to.endswith("py"):
        scorer = Scorer.load("equal.npz")
        labels, probabilities = scorer.predict(ROWS), scorer.predict_proba(ROWS)
    else:
        session = onnxruntime.InferenceSession(to, providers=["CPUExecutionProvider"])
        labels, probabilities = session.run(None, {"X": np.array(ROWS)})
    assert labels.tolist() == found.tolist()
    np.testing.assert_allclose(probabilities, right, rtol=0, atol=1e-6)


def test_columns_that_a_file_does_not_have_are_named(capsys):
    scorer = numpy_scorer(KernelDiscriminant().fit([[0.0, 1.0], [1.0, 0.0]] * 5, [0, 1] * 5))
    exporting._say_columns(scorer, ["x0", "day"])
    told = capsys.readouterr()
    assert told.out == "columns: 'x0', 'x1'\nclasses: 0, 1\n"
    assert told.err.startswith("note: compute 'x1' from")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.skops", "--to", "model.txt"], "must end with .onnx or .py"),
        (["model.skops", "--to", "scorer.py", "--float32"], "--float32 works with .onnx only"),
        (["model.skops", "--to", "none/model.onnx"], "an existing folder"),
        (["none.skops", "--to", "model.onnx"], "Found no file at"),
    ],
)
def test_what_is_wrong_is_said_on_one_line(model, words, said):
    printed = invoke("export", *words, code=1).output
    assert printed.startswith("error: ")
    assert said in printed
    assert printed.count("\n") == 1
    assert sorted(path.name for path in model.parent.iterdir()) == ["model.skops", "plants.csv"]
