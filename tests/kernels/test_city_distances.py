"""Distances of the 1-norm, in tiles and threads, are sums of differences."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from discernel.arrays import city_distances, in_threads, machine, pairs
from discernel.arrays.loops import Loops, compiled_loops


@pytest.fixture(params=["compiled", "SciPy"])
def way(request):
    """Compute distances by compiled loops, then by SciPy."""
    if request.param == "SciPy":
        request.getfixturevalue("numpy_alone")
    elif compiled_loops() is None:
        pytest.skip("the loops are not compiled: python hatch_build.py")
    return request.param


def plain(X, Z):
    """Return ‖x − z‖₁ pair by pair."""
    return np.array([[np.abs(x - z).sum() for z in Z] for x in X])


def rows(n=40, columns=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, columns))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("columns", [1, 2, 7, 65, 150])
@pytest.mark.parametrize("shape", [(30, 20), (1, 5), (300, 290), (513, 260)])
def test_distances_are_sums_of_differences(shape, columns):
    """Within one tile and over several, on the diagonal and off it."""
    X, Z = rows(shape[0], columns), rows(shape[1], columns, seed=1)
    np.testing.assert_allclose(city_distances(X, Z), plain(X, Z), rtol=1e-13)
    own = city_distances(X)
    np.testing.assert_allclose(own, plain(X, X), rtol=1e-13)
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_array_equal(own.diagonal(), 0.0)


@pytest.mark.usefixtures("way")
def test_missing_and_infinite_cells_are_seen():
    X = rows(70)
    X[3, 1], X[69, 4] = np.nan, np.inf
    found = city_distances(X, X[:40])
    np.testing.assert_array_equal(np.isnan(found[:, 0]), np.arange(70) == 3)
    assert np.isinf(found[69, 0])


@pytest.mark.usefixtures("way")
def test_far_rows_lose_no_digits():
    near = rows(300) + 1e9
    np.testing.assert_allclose(city_distances(near), plain(near, near), rtol=1e-13)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", [20, 300])
def test_distances_are_written_where_they_are_asked_for(n):
    X, Z = rows(n), rows(11, seed=1)
    for other, shape in ((None, (n, n)), (Z, (n, 11))):
        out = np.full(shape, np.nan)
        assert city_distances(X, other, out) is out
        np.testing.assert_allclose(out, plain(X, X if other is None else Z), rtol=1e-13)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads_give_the_same_distances(n_threads, way, monkeypatch):
    monkeypatch.setattr(machine, "_ONE_THREAD_BELOW", 100)
    monkeypatch.setattr("joblib.cpu_count", lambda: n_threads)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    X, Z, seen = rows(700), rows(600, seed=1), set()
    right = pairs.cdist
    owner, name = (Loops, "city_distances") if way == "compiled" else (pairs, "cdist")
    watched = getattr(owner, name)

    def watch(*args, **options):
        seen.add(threading.get_ident())
        return watched(*args, **options)

    monkeypatch.setattr(owner, name, watch)
    np.testing.assert_allclose(city_distances(X, Z), right(X, Z, "cityblock"), rtol=1e-13)
    np.testing.assert_allclose(city_distances(X), right(X, X, "cityblock"), rtol=1e-13)
    assert (seen == {threading.get_ident()}) == (n_threads == 1)


def test_within_threads_no_more_are_started(monkeypatch):
    monkeypatch.setattr(machine, "_ONE_THREAD_BELOW", 1)
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = {}

    def work(job, _):
        found[job] = machine.free_threads(10)

    in_threads(work, ["two", "threads"], [None, None])
    assert machine.free_threads(10) == 3
    in_threads(work, ["one"], [None])
    assert found == {"two": 1, "threads": 1, "one": 1}
    assert machine.free_threads(10) == 3


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_distances_of_sparse_rows(container):
    X, Z = rows(), rows(9, seed=1)
    X[np.abs(X) < 0.7] = Z[np.abs(Z) < 0.7] = 0.0
    for left, right in ((container(X), container(Z)), (container(X), Z), (X, container(Z))):
        np.testing.assert_allclose(city_distances(left, right), plain(X, Z), rtol=1e-12)
    np.testing.assert_allclose(city_distances(container(X)), plain(X, X), rtol=1e-12)
