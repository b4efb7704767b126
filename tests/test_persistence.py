"""Models in files: each is the same after `save` and `load`, here and in another process."""

import io
import json
import subprocess
import sys
import zipfile
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from typer.testing import CliRunner

import discernel
from discernel import criteria, solvers
from discernel.bank import LowRank, Tiled
from discernel.exceptions import FileWriteError, InvalidInputError
from discernel.kernels import RBF, Cosine, Exponential, Function, Linear, Polynomial

skops_io = pytest.importorskip("skops.io")

QUICK = {"criterion": "uniform", "regularization": 0.1}


def wine(n_classes=3):
    X, y = load_wine(return_X_y=True, as_frame=True)
    known = y < n_classes
    return X[known].iloc[::2, :5].reset_index(drop=True), y[known].iloc[::2].to_numpy()


def with_unknown(y):
    return np.where(np.arange(len(y)) % 3 > 0, y, -1)


def dot(A, B):
    return A @ B.T


#: Every public estimator: how it is made, how its labels are, and how many classes it takes.
ESTIMATORS = {
    "AKFDClassifier": (discernel.AKFDClassifier, np.asarray, 2),
    "KernelDiscriminant": (discernel.KernelDiscriminant, np.asarray, 3),
    "LearnedKernelTransformer": (discernel.LearnedKernelTransformer, np.asarray, 3),
    "MultiLabelKernelDiscriminant": (
        discernel.MultiLabelKernelDiscriminant,
        lambda y: np.stack([y == 0, y == 1], axis=1).astype(int),
        3,
    ),
    "MultipleKernelDiscriminant": (discernel.MultipleKernelDiscriminant, np.asarray, 3),
    "MultipleKernelRidge": (discernel.MultipleKernelRidge, lambda y: y + 0.5, 3),
    "SeparabilityClassifier": (discernel.SeparabilityClassifier, with_unknown, 3),
}
OUTPUTS = ("predict", "predict_proba", "decision_function", "transform")


def outputs(model, X):
    return {name: getattr(model, name)(X) for name in OUTPUTS if hasattr(model, name)}


def fitted(name):
    make, labels, n_classes = ESTIMATORS[name]
    X, y = wine(n_classes)
    return make().fit(X, labels(y)), X


def test_every_public_estimator_is_here():
    public = {name for name in discernel.__all__ if hasattr(getattr(discernel, name), "fit")}
    assert set(ESTIMATORS) == public


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_the_same_after_saving(name, tmp_path):
    model, X = fitted(name)
    again = discernel.load(discernel.save(model, tmp_path / "model.skops"))
    assert type(again) is type(model)
    assert again.get_params().keys() == model.get_params().keys()
    assert again.feature_names_in_.tolist() == X.columns.tolist()
    expected, found = outputs(model, X), outputs(again, X)
    assert expected
    for method, values in expected.items():
        assert_array_equal(found[method], values)
    with pytest.raises(ValueError, match="feature names should match"):
        outputs(again, X[X.columns[::-1]])


def test_every_estimator_is_the_same_in_another_process(tmp_path):
    expected, wines = {}, {}
    for name in ESTIMATORS:
        model, X = fitted(name)
        discernel.save(model, tmp_path / f"{name}.skops")
        X.to_csv(tmp_path / f"{name}.csv", index=False)
        method, values = next(iter(outputs(model, X).items()))
        wines[name], expected[name] = method, np.asarray(values, dtype=float).ravel().tolist()
    code = (
        "import json, sys, discernel, pandas as pd\n"
        "folder, methods = sys.argv[1], json.loads(sys.argv[2])\n"
        "found = {}\n"
        "for name, method in methods.items():\n"
        "    model = discernel.load(f'{folder}/{name}.skops')\n"
        "    X = pd.read_csv(f'{folder}/{name}.csv')\n"
        "    found[name] = getattr(model, method)(X).astype(float).ravel().tolist()\n"
        "print(json.dumps(found))\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path), json.dumps(wines)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for name, values in json.loads(said).items():
        assert_allclose(values, expected[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": criteria.RKDA(), "solver": solvers.Newton()},
        {"criterion": criteria.Margin()},
        {"criterion": criteria.Alignment()},
        {"criterion": "auto", "bank": LowRank(60)},
        {"bank": Tiled(memory="1GB"), "criterion": "rkda"},
        {"max_time": 5.0},
    ],
    ids=str,
)
def test_parameters_that_are_objects_are_saved_too(options, tmp_path):
    X, y = wine(2)
    kernels = [2 * RBF() + Linear(), RBF() * Polynomial(2), Exponential().on([0, 1]), Cosine() ** 2]
    clf = discernel.MultipleKernelDiscriminant(kernels, **options).fit(X, y)
    again = discernel.load(discernel.save(clf, tmp_path / "model.skops"))
    assert again.kernels == kernels
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    with (tmp_path / "other.skops").open("wb") as file:
        file.write(skops_io.dumps(clf.for_prediction()))
    loaded = skops_io.load(tmp_path / "other.skops", trusted=discernel.trusted_types())
    assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def test_a_pipeline_and_a_table_of_anything_are_saved(tmp_path):
    X, y = wine()
    scaled = make_pipeline(StandardScaler(), discernel.MultipleKernelDiscriminant(**QUICK))
    again = discernel.load(discernel.save(scaled.fit(X, y), tmp_path / "model.skops"))
    assert_array_equal(again.predict_proba(X), scaled.predict_proba(X))
    mixed = X.assign(ward=np.where(y == 0, "east", None), age=np.where(y == 1, np.nan, 3.0))
    clf = discernel.MultipleKernelDiscriminant(**QUICK).fit(mixed, y)
    again = discernel.load(discernel.save(clf, tmp_path / "model.skops"))
    assert_array_equal(again.predict_proba(mixed), clf.predict_proba(mixed))


@pytest.mark.filterwarnings("default")  # those of MLflow's own dependencies are not ours
def test_mlflow_logs_and_loads_models_through_skops(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    X, y = wine()
    mixed = X.assign(ward=np.where(y == 0, "east", None))
    clf = discernel.MultipleKernelDiscriminant(**QUICK).fit(mixed, y)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = mlflow.create_experiment("wine", artifact_location=(tmp_path / "runs").as_uri())
    with mlflow.start_run(experiment_id=experiment):
        logged = mlflow.sklearn.log_model(
            clf,
            name="wine",
            serialization_format="skops",
            skops_trusted_types=discernel.trusted_types(),
            pip_requirements=["discernel"],
        )
    again = mlflow.sklearn.load_model(logged.model_uri)
    assert type(again) is discernel.MultipleKernelDiscriminant
    assert_array_equal(again.predict_proba(mixed), clf.predict_proba(mixed))
    assert_array_equal(again.predict(mixed), clf.predict(mixed))
    untrusted = pytest.raises(mlflow.MlflowException, match="untrusted types")
    with mlflow.start_run(experiment_id=experiment), untrusted:
        mlflow.sklearn.log_model(clf, name="wine", serialization_format="skops")


def test_what_is_no_model_is_not_saved(tmp_path):
    X, y = wine()
    path = tmp_path / "model.skops"
    with pytest.raises(InvalidInputError, match="must be an estimator of discernel, or a Pipeline"):
        discernel.save(StandardScaler().fit(X), path)
    with pytest.raises(ValueError, match="not fitted yet"):
        discernel.save(discernel.KernelDiscriminant(), path)
    own = discernel.MultipleKernelDiscriminant([Function(dot)], **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"must contain only types of discernel.*dot"):
        discernel.save(own, path)
    other = make_pipeline(MinMaxScaler(), discernel.MultipleKernelDiscriminant(**QUICK))
    with pytest.raises(InvalidInputError, match=r"MinMaxScaler.*trusted_types"):
        discernel.save(other.fit(X, y), path)
    assert not path.exists()
    with pytest.raises((InvalidInputError, FileWriteError)):
        discernel.save(other[-1], tmp_path / "no folder" / "model.skops")


@pytest.mark.parametrize(
    ("number", "words"),
    [(5, r"no longer reads\. Fit the model again"), (99, r"a newer version\. Update discernel")],
)
def test_files_of_another_format_are_refused(number, words, tmp_path):
    X, y = wine()
    path = discernel.save(discernel.KernelDiscriminant().fit(X, y), tmp_path / "model.skops")

    def change(schema):
        schema["content"]["format"]["content"] = json.dumps(number)

    rewrite_schema(path, change)
    with pytest.raises(InvalidInputError, match=rf"written by discernel .*{words}"):
        discernel.load(path)


def rewrite_schema(path, change):
    """Change the schema of a saved model in place."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema)
    parts["schema.json"] = json.dumps(schema).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize("loader", ["MethodNode", "ReduceNode", "FunctionNode"])
def test_a_known_type_through_an_unknown_loader_is_refused(loader, tmp_path):
    X, y = wine()
    path = discernel.save(discernel.KernelDiscriminant().fit(X, y), tmp_path / "model.skops")

    def change(schema):
        schema["content"]["model"]["__loader__"] = loader

    rewrite_schema(path, change)
    with pytest.raises(
        InvalidInputError, match=rf"was not loaded.*KernelDiscriminant through {loader}"
    ):
        discernel.load(path)


def test_the_command_line_takes_what_python_saved_and_the_other_way_round(tmp_path, monkeypatch):
    from discernel.cli.app import app

    monkeypatch.chdir(tmp_path)
    X, y = wine()
    X = X.assign(ward=np.where(y == 0, "east", "west"))
    clf = discernel.MultipleKernelDiscriminant(**QUICK).fit(X, y)
    discernel.save(clf, "wine.skops")
    X.to_csv("wine.csv", index=False)

    def run(*words):
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, result.output
        return result

    run("predict", "wine.skops", "wine.csv", "-o", "found.csv")
    assert_array_equal(pd.read_csv("found.csv")["predicted"], clf.predict(X))
    facts = json.loads(run("info", "wine.skops", "--json").stdout)
    assert facts["name"] == "wine"
    assert facts["classes"] == {"0": 30, "1": 35, "2": 24}
    run("report", "wine.skops")
    X.assign(y=y).to_csv("again.csv", index=False)
    run("fit", "again.csv", "--target", "y", "-o", "again.skops")
    assert discernel.load("again.skops").score(X, y) > 0.9


def test_a_regression_of_python_predicts_on_the_command_line(tmp_path, monkeypatch):
    from discernel.cli.app import app

    monkeypatch.chdir(tmp_path)
    model, X = fitted("MultipleKernelRidge")
    discernel.save(model, "ridge.skops")
    X.to_csv("wine.csv", index=False)
    assert CliRunner().invoke(app, ["info", "ridge.skops"]).exit_code == 0
    result = CliRunner().invoke(app, ["predict", "ridge.skops", "wine.csv", "--out", "found.csv"])
    assert result.exit_code == 0
    found = pd.read_csv("found.csv")["predicted"]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-12)


def test_callbacks_and_the_state_of_partial_fit_are_not_saved(tmp_path):
    X, y = wine()
    clf = discernel.MultipleKernelDiscriminant(**QUICK, callback=lambda progress: None)
    path = discernel.save(clf.partial_fit(X, y), tmp_path / "model.skops")
    again = discernel.load(path)
    assert again.callback is None
    assert again.model_.stream is None
    assert clf.model_.stream is not None
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    # It would start over, and forget all rows so far.
    with pytest.raises(InvalidInputError, match="sums, which are not saved"):
        again.partial_fit(X, y)
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert clone(again).partial_fit(X, y).streamed_.n_rows == len(X)


def test_trusted_types_exist():
    for name in discernel.trusted_types():
        module, _, kind = name.rpartition(".")
        found = getattr(import_module(module), kind)
        assert isinstance(found, type)
        assert found.__module__ == module
