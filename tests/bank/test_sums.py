"""Sums over rows: those of parts add up, and the fit is that of all rows in memory."""

import numpy as np
import pytest

from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank
from discernel.bank import sums as module
from discernel.bank.sums import (
    FeatureSums,
    Labelled,
    SummedSystem,
    SumPass,
    check_room,
    sums_are_of_kernels,
)
from discernel.criteria import KernelLeastSquares
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace, Linear
from discernel.kernels.features import NystromMap
from discernel.streams import open_rows
from discernel.targets import ClassTarget

N = 300


def task(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = (np.hypot(*X.T[:2]) > 1.2).astype(int) + (X[:, 2] > 1)
    weights = rng.integers(1, 4, N).astype(float) if weighted else None
    return X, y, weights


def features(X, smooth=False):
    """Return features of a kernel; a smooth one is too near to singular to be summed up itself."""
    if smooth:
        found = NystromMap([RBF(width=3.0), Linear()], [0.9, 0.1], X[:40])
    else:
        kernels = [RBF(width=1.0), Laplace(width=2.0), Linear()]
        found = NystromMap(kernels, [0.5, 0.3, 0.2], X[:40])
    assert sums_are_of_kernels(found) is not smooth
    return found


def folding(phi, n_classes=3):
    def prepare(chunk):
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        return Labelled(chunk.X, np.eye(n_classes)[chunk.y], weights)

    return SumPass(phi, n_classes, prepare=prepare)


def summary_of(weighted=False, chunk_rows=64, smooth=False):
    X, y, weights = task(weighted)
    source = open_rows(X, y, weights=weights, chunk_rows=chunk_rows)
    return source.reduce(folding(features(X, smooth)))


ARRAYS = ("all_values", "all_cross", "diagonal", "n_rows")


def same(one, other, tol=1e-10):
    assert np.allclose(
        np.tril(one.products), np.tril(other.products), rtol=0, atol=tol * one.weight
    )
    for name in ARRAYS:
        first, second = (np.asarray(getattr(each, name)) for each in (one, other))
        assert np.allclose(first, second, rtol=1e-11, atol=tol), name


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_many_features_are_summed_in_parts(weighted, n_threads, monkeypatch):
    monkeypatch.setattr(module, "free_threads", lambda _: n_threads)
    rng, rank = np.random.default_rng(0), 2 * module._COLUMNS + 7
    F, V = rng.normal(size=(50, rank)), rng.normal(size=(50, 2))
    weights = rng.uniform(0.5, 2.0, 50) if weighted else np.ones(50)
    U = weights[:, None] * np.column_stack([np.ones(50), V])
    found = FeatureSums(rank, 2)
    for rows in (slice(0, 30), slice(30, 50)):
        found.add_features(F[rows].copy(), U[rows])
    assert np.allclose(found.all_cross, F.T @ U, rtol=0, atol=1e-12)
    expected = (F * weights[:, None]).T @ F
    assert np.allclose(np.tril(found.products), np.tril(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_all_rows(weighted, smooth):
    X, y, weights = task(weighted)
    weights = np.ones(N) if weights is None else weights
    phi, found = features(X, smooth), summary_of(weighted, smooth=smooth)
    F, V = phi(X) if smooth else phi.kernel(X, phi.landmarks), np.eye(3)[y]
    assert found.n_rows == N
    assert np.isclose(found.weight, weights.sum())
    assert np.allclose(found.all_cross[:, 0], weights @ F)
    assert np.allclose(np.tril(found.products), np.tril(F.T @ (weights[:, None] * F)))
    assert np.allclose(found.all_cross[:, 1:], F.T @ (weights[:, None] * V))
    assert np.allclose(found.values, weights @ V)
    assert np.isclose(found.diagonal, weights @ phi.kernel.diagonal(X))


@pytest.mark.parametrize("chunk_rows", [1, 7, 300])
def test_sums_do_not_depend_on_chunks(chunk_rows):
    same(summary_of(chunk_rows=chunk_rows), summary_of())


def test_sums_of_parts_add_up_in_any_order_and_blocks_change_nothing(monkeypatch):
    X, y, _ = task(False)
    fold = folding(features(X))
    parts = [fold.add(fold.start(), chunk) for chunk in open_rows(X, y, chunk_rows=90).chunks()]
    total = fold.start()
    for part in parts[::-1]:
        total = fold.merge(total, part)
    same(total, summary_of())
    monkeypatch.setattr("discernel.bank.sums.rows_for_threads", lambda *_: 11)
    same(summary_of(), total)


def test_what_decays_counts_less():
    X, y, _ = task(False)
    fold, chunks = folding(features(X)), list(open_rows(X, y, chunk_rows=150).chunks())
    found = fold.add(fold.start(), chunks[0]).decay(0.25)
    found = fold.add(found, chunks[1])
    weights = np.repeat([0.25, 1.0], 150)
    expected = open_rows(X, y, weights=weights).reduce(fold)
    same(found, expected)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-6])
def test_the_fit_is_that_of_all_rows_in_memory(weighted, lam, smooth):
    """Against a Cholesky factor of λI + the low-rank kernel matrix of all rows."""
    X, y, given = task(weighted)
    weights = None if given is None else SampleWeights.of(given)
    target = ClassTarget.from_labels(y, weights)
    phi, ones = features(X, smooth), np.ones(N) if weights is None else weights.values
    F = phi(X)
    system = SummedSystem(summary_of(weighted, smooth=smooth), phi)
    # the centred trace of k itself; the mean of rows lies within the landmarks' reach
    mean = ones @ F / ones.sum()
    unit = ones @ phi.kernel.diagonal(X) - ones.sum() * mean @ mean
    assert np.isclose(system.unit, unit)
    bank = DenseBank((F @ F.T)[None], normalization="centered_trace", sample_weights=weights)
    own = ones @ np.sum((F - mean) ** 2, axis=1)  # what the bank divides by
    assert np.isclose(system.captured, own / unit)
    ridge = np.full(N, lam * unit / own)
    fit = KernelLeastSquares(bank.system(np.ones(1), ridge), ridge, target.scores, weights)
    table = class_table(target)
    beta, intercept = system.fit(table, lam)
    assert np.allclose(F @ beta + intercept, fit.fitted, rtol=0, atol=1e-8)
    assert np.allclose(phi.kernel(X, phi.landmarks) @ phi.expansion(beta), F @ beta, atol=1e-8)
    rows = np.arange(0, N, 3)
    at = system.sampled(F[rows].copy(), (ones if given is None else given)[rows], table)
    fitted, left = at(lam)
    truth = target.scores / np.sqrt(ones)[:, None]
    assert np.allclose(fitted, fit.fitted[rows], rtol=0, atol=1e-8)
    left_out = truth[rows] - (truth[rows] - fitted) / left[:, None]
    assert np.allclose(left_out, fit.leave_one_out[rows], rtol=0, atol=1e-8)
    beta, same_left = system.influence(
        F[rows].copy(), (ones if given is None else given)[rows], lam
    )
    assert np.allclose(same_left, left, rtol=0, atol=1e-10)  # weights of any scale
    codes = np.random.default_rng(1).integers(0, 20, len(rows))
    groups = np.append(codes, np.arange(20, 20 + N - len(rows)))  # in the order of `order`
    order = np.append(rows, np.setdiff1d(np.arange(N), rows))
    every = np.empty(N, dtype=int)
    every[order] = groups
    errors = system.errors_without(
        F[rows].copy(),
        (ones if given is None else given)[rows],
        Groups(codes),
        truth[rows] - fitted,
        lam,
    )
    grouped = KernelLeastSquares(
        bank.system(np.ones(1), ridge), ridge, target.scores, weights, Groups(every)
    )
    expected = truth[rows] - grouped.leave_one_out[rows]
    assert np.allclose(errors, expected, rtol=0, atol=1e-8)
    penalty = system.penalty(table, lam)
    assert np.allclose(penalty, fit.penalty * (unit / own), rtol=1e-6)


def class_table(target):
    table = np.empty((target.n_classes, target.n_classes - 1))
    table[target.codes] = target.truth
    return table


def test_numbers_are_fitted_as_classes_are():
    X, _, _ = task(False)
    values = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2 + 5])
    phi = features(X)
    fold = SumPass(phi, 2, prepare=lambda chunk: Labelled(chunk.X, values, np.ones(N)))
    summary = open_rows(X, np.zeros(N)).reduce(fold)
    beta, intercept = SummedSystem(summary, phi).fit(np.eye(2), 1e-4)
    F = phi(X)
    centered, unit = F - F.mean(axis=0), SummedSystem(summary, phi).unit
    gram = centered.T @ centered / unit + 1e-4 * np.eye(phi.rank)
    expected = np.linalg.solve(gram, centered.T @ (values - values.mean(axis=0)) / unit)
    assert np.allclose(F @ beta + intercept, centered @ expected + values.mean(axis=0), atol=1e-8)


def test_a_kernel_that_does_not_vary_and_too_little_memory_are_refused(monkeypatch):
    X = np.ones((20, 1))
    phi = NystromMap([RBF(width=1.0)], [1.0], X[:1])
    summary = open_rows(X, np.arange(20) % 2).reduce(folding(phi, 2))
    with pytest.raises(InvalidInputError, match="must vary over the rows"):
        SummedSystem(summary, phi)
    monkeypatch.setattr("discernel.bank.sums.memory_limit", lambda: 2**20)
    with pytest.raises(InvalidInputError, match="6 matrices of 1,500 × 1,500"):
        check_room(1500)
