"""Fixtures: seeded problems, and the papers' data where the folder exists."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from discernel.arrays.loops import SWITCH, compiled_loops


def make_problem(n_samples, n_classes, n_kernels, seed=0):
    """Return raw Gram matrices of mixed families and labels of overlapping classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    centers = 1.5 * rng.standard_normal((n_classes, 4))
    X = centers[y] + rng.standard_normal((n_samples, 4))
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    inner = X @ X.T
    candidates = [np.exp(-squared / width**2) for width in np.geomspace(0.3, 30, n_kernels - 1)]
    grams = np.array([*candidates, (1.0 + inner) ** 2])
    grams.flags.writeable = y.flags.writeable = False
    return grams, y


@pytest.fixture
def numpy_alone(monkeypatch):
    """Without compiled loops, as where there is no compiler."""
    monkeypatch.setenv(SWITCH, "0")
    compiled_loops.cache_clear()
    yield
    monkeypatch.undo()
    compiled_loops.cache_clear()


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """An empty working directory, and a terminal of 100 characters."""
    from discernel.cli import shared  # needs packages that not every test needs

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shared.out, "width", 100)


@pytest.fixture
def narrow(own_folder, monkeypatch):
    """A terminal of 80 characters."""
    from discernel.cli import shared

    monkeypatch.setattr(shared.out, "width", 80)


@pytest.fixture(scope="session")
def two_classes():
    return make_problem(40, 2, 5)


@pytest.fixture(scope="session")
def three_classes():
    return make_problem(45, 3, 6, seed=1)


@pytest.fixture(scope="session")
def blobs():
    """Rows of three classes that overlap, some of them unbalanced."""
    X, y = make_blobs([40, 25, 35], n_features=5, cluster_std=3.5, random_state=0)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture(scope="session")
def paper_data():
    """A function from a name to X, y of the papers' data; skips where the folder is absent."""
    folder = os.environ.get("DISCERNEL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("DISCERNEL_DATA names no folder with the papers' data sets")

    def load(name):
        table = np.genfromtxt(Path(folder) / f"{name}.csv", delimiter=",", dtype=str)[1:]
        return table[:, :-1].astype(float), table[:, -1]

    return load
