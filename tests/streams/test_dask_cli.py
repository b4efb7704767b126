"""The command line with a scheduler: workers read the files, and the answer is the same."""

import numpy as np
import pandas as pd
import pytest

from tests.command_line import invoke

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for i in range(3):
        X = rng.normal(size=(100, 3))
        frame = pd.DataFrame(X, columns=["a", "b", "id"])
        frame["when"] = pd.date_range("2024-01-01", periods=100, freq="7h")
        frame["kind"] = np.where(np.hypot(X[:, 0], X[:, 1]) > 1.2, "out", "in")
        frame.to_parquet(tmp_path / "data" / f"{i}.parquet")
    return tmp_path / "data"


@pytest.fixture(scope="module")
def address():
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=False, **options) as cluster:
        yield cluster.scheduler_address


def test_fit_and_predict_on_a_cluster(folder, address):
    away = "--scheduler", address
    for more, name in ((away, "away"), ((), "home")):
        words = ("--target", "kind", "--drop", "id", *more)
        output = invoke("fit", f"{folder}/*.parquet", "-o", f"{name}.model", *words).output
        assert "300 rows in chunks, 3 columns, 2 classes" in output
        output = invoke("predict", f"{name}.model", folder, "-o", f"{name}.parquet", *more).output
        assert "on 300 rows" in output
    one, other = (pd.read_parquet(f"{name}.parquet") for name in ("away", "home"))
    assert (one[["row", "predicted"]] == other[["row", "predicted"]]).all(axis=None)
    assert np.allclose(one.iloc[:, 2:], other.iloc[:, 2:], rtol=0, atol=1e-8)


def test_a_scheduler_that_is_not_there_and_files_that_workers_do_not_read(
    folder, address, monkeypatch
):
    monkeypatch.setattr("discernel.arrays.cluster._TIMEOUT", 0.5)
    words = "fit", folder, "-o", "m.model", "--target", "kind", "--scheduler"
    output = " ".join(invoke(*words, "tcp://127.0.0.1:9", code=1).output.split())
    assert "No Dask scheduler answers at 'tcp://127.0.0.1:9'" in output
    frame = pd.read_parquet(folder)
    for path in folder.iterdir():
        path.unlink()
    frame.to_csv(folder / "rows.csv", index=False)
    output = " ".join(invoke(*words, address, code=1).output.split())
    assert "Workers read Parquet files" in output
