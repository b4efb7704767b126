"""A cluster of processes: the same model, though a worker dies in the middle, and clear words."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discernel import MultipleKernelDiscriminant, open_rows
from discernel.exceptions import ClusterError, InvalidInputError
from discernel.kernels import RBF, Laplace

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster

N_PARTS = 12


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread, in processes of their own, that are started anew if they die."""
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GiB"}
    with (
        distributed.LocalCluster(processes=True, dashboard_address=":0", **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def rows(part):
    rng = np.random.default_rng(part)
    X = rng.normal(size=(60 + part, 3))
    y = np.where(np.hypot(*X.T[:2]) + 0.3 * rng.normal(size=len(X)) > 1.2, "out", "in")
    return pd.DataFrame(X, columns=list("abc")).assign(y=y)


class Rows:
    """Rows of a partition, and what happens to the worker that makes them.

    Parameters
    ----------
    folder : Path
        Where calls are noted.
    deadly : int
        The partition of which a call kills the worker.
    calls : range
        Which calls, from 0.
    """

    def __init__(self, folder, deadly, calls):
        self.folder, self.deadly, self.calls = str(folder), deadly, calls

    def __call__(self, part):
        if part == self.deadly:
            call = len(list(Path(self.folder).iterdir()))
            (Path(self.folder) / str(call)).touch()
            if call in self.calls:
                os.kill(os.getpid(), signal.SIGKILL)
        return rows(part)


def table(make):
    return dd.from_map(make, range(N_PARTS), meta=rows(0).iloc[:0])


def estimator(**options):
    kernels = [RBF(width=1.0), Laplace(width=2.0)]
    return MultipleKernelDiscriminant(kernels, criterion="uniform", **options)


def at_home():
    return estimator().fit(open_rows([rows(part) for part in range(N_PARTS)], "y"))


def same(one, other):
    X = rows(100).drop(columns="y")
    assert one.regularization_ == other.regularization_
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-8)
    assert np.allclose(one.transform(X), other.transform(X), rtol=1e-8, atol=1e-8)


def test_a_worker_that_is_killed_in_the_second_pass_changes_nothing(client, tmp_path):
    """Partition 7 is made once by the survey; whoever makes it for the sums is killed."""
    seen = []
    make = Rows(tmp_path, deadly=7, calls=range(1, 2))
    clf = estimator(callback=seen.append).fit(table(make), "y")
    assert len(list(tmp_path.iterdir())) == 3  # survey, the one killed, and again
    same(clf, at_home())
    assert seen[-1].fraction == 1.0
    rows_seen = [each.rows for each in seen if getattr(each, "stage", None) == 1]
    assert len(rows_seen) == N_PARTS
    lazy = clf.predict_proba(table(rows).drop(columns="y"))
    whole = pd.concat([rows(part) for part in range(N_PARTS)]).drop(columns="y")
    assert np.allclose(lazy.compute(), clf.predict_proba(whole), rtol=0, atol=1e-12)


def test_rows_that_workers_hold_and_landmarks_that_are_large(client, monkeypatch):
    """What is sent is more than Dask would warn of, were it sent with every task."""
    monkeypatch.setattr("discernel.kernels.features._LANDMARKS", 1_200)
    held = table(rows).persist()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1MiB"}):
        clf = estimator().fit(held, "y")
    assert clf.streamed_.rank > 600
    same(clf, estimator().fit(open_rows([rows(part) for part in range(N_PARTS)], "y")))


def test_errors_of_workers_name_the_partition(client):
    def broken(part):
        frame = rows(part)
        frame.loc[7, "b"] = np.inf if part == 9 else 0.0
        return frame

    with pytest.raises(InvalidInputError, match="Got inf in column 'b', row 7 of partition 9,"):
        estimator().fit(table(broken), "y")


def test_a_partition_that_kills_every_worker_or_fits_into_none(client, tmp_path):
    import dask.array as da

    large = da.ones((10**8, 1), chunks=(5 * 10**7, 1))
    with pytest.raises(InvalidInputError, match=r"must fit 3 times.*1,024 MiB.*up to 381 MiB"):
        estimator().fit(large, da.zeros(10**8, chunks=5 * 10**7))
    client.cluster.scheduler.allowed_failures = 0
    clf = estimator()
    with pytest.raises(
        ClusterError, match=r"died while they processed the same partition.*partitions smaller"
    ):
        clf.fit(table(Rows(tmp_path, deadly=7, calls=range(100))), "y")
    assert not hasattr(clf, "classes_")


def test_a_scheduler_that_goes_away_is_an_error_and_nothing_is_half_fitted():
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(processes=False, **options)
    client = distributed.Client(cluster, timeout=1)

    def slow(part):
        time.sleep(0.02)
        return rows(part)

    def leave(progress):
        if getattr(progress, "stage", 0) == 1:
            cluster.close()

    clf = estimator(callback=leave)
    try:
        with (
            client.as_current(),
            pytest.raises(ClusterError, match="connection to the scheduler was lost"),
        ):
            clf.fit(table(slow), "y")
        assert vars(clf).keys() == vars(estimator()).keys()
    finally:
        client.close()
        cluster.close()
