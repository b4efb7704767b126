"""Tiles on workers: every pass of a distributed bank gives what the iterative one gives."""

import os
import signal
from collections import Counter

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.distributed import DistributedBank, Workers, _sum_parts
from discernel.bank.iterative import IterativeBank
from discernel.bank.tiled import Threads
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace, Linear

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

KERNELS = (RBF(width=1.0), RBF(width=3.0), RBF(width=300.0), Laplace(width=2.0), Linear())
N = 700


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def rows(n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (np.hypot(*X.T[:2]) + 0.3 * rng.normal(size=n) > 1.2).astype(int)


def count_passes(monkeypatch):
    """Return how often engines of each kind compute all tiles from now on, by precision."""
    found = {Threads: Counter(), Workers: Counter()}
    for kind, counter in found.items():

        def counted(self, task, run=kind.run, counter=counter, kind=kind):
            if type(self) is kind:  # and no band of one
                counter[self._is_single] += 1
            return run(self, task)

        monkeypatch.setattr(kind, "run", counted)
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_every_pass_is_that_of_the_iterative_bank(client, weighted, monkeypatch):
    rng = np.random.default_rng(1)
    options = {"cache_bytes": 2**21}
    if weighted:
        options["sample_weights"] = SampleWeights.of(rng.uniform(0.5, 2.0, N))
    X, _ = rows()
    one, other = (kind(KERNELS, X, **options) for kind in (IterativeBank, DistributedBank))
    assert other._engine.removed_means  # the widest is nearly constant
    passes = count_passes(monkeypatch)
    V, w = rng.normal(size=(N, 3)), np.array([0.4, 0.3, 0.0, 0.2, 0.1])
    close = {"rtol": 0, "atol": 1e-12}
    assert np.allclose(one.combined_product(w, V), other.combined_product(w, V), **close)
    assert np.allclose(one.products(V), other.products(V), **close)
    assert np.allclose(one.compressed(V), other.compressed(V), rtol=1e-12)
    assert np.allclose(one.inner_products(), other.inner_products(), rtol=1e-12)
    narrow = np.array([0.7, 0.3, 0.0, 0.0, 0.0])
    found = [bank.combined_product(narrow, V, bank.single_engine(narrow)) for bank in (one, other)]
    assert np.allclose(*found, rtol=0, atol=1e-6)
    ridge = 1e-3
    assert np.allclose(one.system(w, ridge).solve(V), other.system(w, ridge).solve(V), rtol=1e-6)
    picked = np.array([1, 3])
    assert np.allclose(one.select(picked).products(V), other.select(picked).products(V), **close)
    assert passes[Threads] == passes[Workers]
    assert len(passes[Workers]) == 2  # both precisions


def test_rows_are_sent_once(client):
    X, _ = rows()
    bank = DistributedBank(KERNELS, X)
    w = np.full(5, 0.2)
    for _ in range(3):
        bank.combined_product(w, X)
    assert len(bank._engine._held) == 1
    assert bank.select(np.array([0])).products(X).shape == (1, N, 4)
    assert len(bank._engine._held) == 1


def test_adding_up_changes_nothing_that_another_task_made():
    parts = [np.ones((2, 2)), 2 * np.ones((2, 2))]
    assert (_sum_parts(parts) == 3).all()
    assert (parts[0] == 1).all()


def test_a_fit_with_tiles_on_workers_of_rows_and_of_collections(client):
    X, y = rows()
    options = {"criterion": "rkda", "regularization": 1e-3}
    one = MultipleKernelDiscriminant(KERNELS[:2], bank="iterative", **options).fit(X, y)
    for given in ((X, y), (da.from_array(X, chunks=(90, 2)), da.from_array(y, chunks=100))):
        other = MultipleKernelDiscriminant(KERNELS[:2], bank="distributed", **options).fit(*given)
        assert other.bank_ == "distributed"
        assert np.allclose(one.kernel_weights_, other.kernel_weights_, rtol=0, atol=1e-8)
        assert np.allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-8)


def test_without_a_client_it_says_what_to_make():
    threads = dask.config.set(scheduler="threads")
    with threads, pytest.raises(InvalidInputError, match=r"bank='distributed' needs an active"):
        MultipleKernelDiscriminant(bank="distributed").fit(*rows(60))


@pytest.mark.cluster
def test_a_worker_that_is_killed_in_the_middle_changes_nothing():
    X, y = rows()
    options = {"criterion": "rkda", "regularization": 1e-3}
    one = MultipleKernelDiscriminant(KERNELS[:2], bank="iterative", **options).fit(X, y)
    killed = []
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:

        def kill(progress):
            if not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        clf = MultipleKernelDiscriminant(
            KERNELS[:2], bank="distributed", callback=kill, **options
        ).fit(X, y)
    assert killed
    assert np.allclose(one.kernel_weights_, clf.kernel_weights_, rtol=0, atol=1e-8)
    assert np.allclose(one.predict_proba(X), clf.predict_proba(X), rtol=0, atol=1e-8)
