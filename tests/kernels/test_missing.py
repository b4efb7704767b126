"""Rows that lack a source, against the mean embedding written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.model_selection import cross_val_score

from discernel import MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Function,
    Kernel,
    Laplace,
    Linear,
    NGram,
    Spectrum,
    Standardized,
    WhereKnown,
)
from discernel.testing import check_kernel

N, M = 40, 15
LACK = np.arange(N) % 3 == 1
LACK_NEW = np.arange(M) % 4 == 0


def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, Z = rng.normal(2.0, 1.0, size=(N, 3)), rng.normal(2.0, 1.0, size=(M, 3))
    X[LACK], Z[LACK_NEW] = np.nan, np.nan
    return X, Z


def strings() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    made = ["".join(rng.choice(list("ACGT"), rng.integers(3, 12))) for _ in range(N + M)]
    cells = np.array(made, dtype=object)
    X, Z = cells[:N].copy(), cells[N:].copy()
    X[LACK], Z[LACK_NEW] = None, np.nan
    return X, Z


CASES = {
    "RBF": (RBF(), numbers),
    "Laplace": (Laplace(width=2.0), numbers),
    "Linear": (Linear(), numbers),
    "Standardized": (Standardized(RBF()), numbers),
    "Function": (Function(lambda A, B: (1.0 + A @ B.T) ** 2), numbers),
    "Spectrum": (Spectrum(2), strings),
    "NGram": (NGram(), strings),
}
every_case = pytest.mark.parametrize(("kernel", "make"), CASES.values(), ids=CASES)


def completed(kernel: Kernel, X: Any, Z: Any) -> np.ndarray:
    """Return the kernel of rows of Z and X, those that lack the source being a mean of features."""
    known = X[~LACK]
    kernel = kernel.resolve(known)
    means = np.full((len(known), len(known)), 1.0 / len(known))  # every row is the mean

    def shares(rows: Any, lack: np.ndarray) -> np.ndarray:
        # Each row as a combination of known rows: itself, or the mean of the training rows.
        n = int((~lack).sum())
        out = np.zeros((len(rows), n + len(known)))
        out[~lack, :n] = np.eye(n)
        out[lack, n:] = means[0]
        return out

    left = np.concatenate([Z[~LACK_NEW], known])
    right = np.concatenate([known, known])
    return shares(Z, LACK_NEW) @ kernel(left, right) @ shares(X, LACK).T


@every_case
def test_a_row_without_the_source_is_the_mean_of_those_that_have_it(
    kernel: Kernel, make: Any
) -> None:
    X, Z = make()
    resolved = WhereKnown(kernel).resolve(X)
    assert_allclose(resolved(Z, X), completed(kernel, X, Z), rtol=1e-10, atol=1e-12)


@every_case
def test_centred_rows_without_the_source_are_zero(kernel: Kernel, make: Any) -> None:
    X, _ = make()
    matrix = WhereKnown(kernel).resolve(X)(X)
    centred = matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean()
    assert_allclose(centred[LACK], 0.0, atol=1e-10 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix)[0] > -1e-10 * np.trace(matrix)


def test_it_is_a_kernel_in_every_way_it_is_computed() -> None:
    X, Z = strings()
    check_kernel(WhereKnown(Spectrum(2)), X, Z)
    # The checker compares rows with themselves, which NaN is never equal to.
    X, Z = (rows.astype(object) for rows in numbers())
    X[LACK], Z[LACK_NEW] = None, None
    first = Function(lambda A, B: np.outer(A[:, 0], B[:, 0]).astype(float))
    check_kernel(WhereKnown(first), X, Z)


def test_without_missing_rows_nothing_changes() -> None:
    X, Z = numbers()
    X, Z = X[~LACK], Z[~LACK_NEW]
    assert_allclose(WhereKnown(RBF()).resolve(X)(Z, X), RBF().resolve(X)(Z, X), rtol=1e-12)


def test_some_training_rows_meet_new_ones_as_all_do() -> None:
    X, Z = numbers()
    kernel = WhereKnown(RBF()).resolve(X)
    assert_allclose(kernel(Z, X[5:12]), kernel(Z, X)[:, 5:12], rtol=1e-12)
    assert_allclose(kernel(Z[:1], X), kernel(Z, X)[:1], rtol=1e-12)


def test_single_missing_cells_become_the_median_of_the_training_rows() -> None:
    X, Z = numbers()
    filled = Z.copy()
    filled[1, 2] = np.nanmedian(X[:, 2])
    Z[1, 2] = np.nan
    kernel = WhereKnown(RBF()).resolve(X)
    assert_allclose(kernel(Z, X), kernel(filled, X), rtol=1e-12)


# ---- estimators --------------------------------------------------------------------------------


def two_sources(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    notes = [("chest pain" if label else "broken leg") + f" bed {rng.integers(9)}" for label in y]
    table = pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.normal(size=n), "note": notes})
    table.loc[rng.random(n) < 0.3, "note"] = None
    table.loc[rng.random(n) < 0.3, ["a", "b"]] = np.nan
    return table, y


KERNELS = {
    "numbers": WhereKnown(Standardized(RBF())).on(["a", "b"], "numbers"),
    "wide": WhereKnown(RBF(width="2*median")).on(["a", "b"], "numbers"),
    "note": WhereKnown(NGram()).on("note"),
}


@pytest.mark.parametrize("bank", ["dense", "tiled", "lowrank"])
def test_estimators_take_rows_that_lack_a_source(bank: str) -> None:
    table, y = two_sources()
    clf = MultipleKernelDiscriminant(KERNELS, criterion="uniform", bank=bank)
    assert cross_val_score(clf, table, y, cv=3).mean() > 0.75


def test_numbers_alone_may_lack_a_source_too() -> None:
    table, y = two_sources()
    kernels = {"a": WhereKnown(RBF()).on([0]), "b": WhereKnown(RBF()).on([1])}
    X = table[["a", "b"]].to_numpy()
    assert MultipleKernelDiscriminant(kernels).fit(X, y).predict(X).shape == (len(y),)


def test_a_kernel_that_takes_no_missing_cells_says_so_at_fit_and_at_predict() -> None:
    table, y = two_sources()
    kernels = {"plain": RBF().on(["a"]), "note": WhereKnown(NGram()).on("note")}
    message = r"takes no missing cells, but row \d+ has one .* WhereKnown\(RBF\("
    with pytest.raises(InvalidInputError, match=message):
        MultipleKernelDiscriminant(kernels).fit(table, y)
    full = table.assign(a=table["a"].fillna(0.0), b=0.0)
    clf = MultipleKernelDiscriminant(kernels).fit(full, y)
    with pytest.raises(InvalidInputError, match=message):
        clf.predict(table)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: WhereKnown(RBF())(numbers()[0]), r"Call kernel.resolve\(X\) first"),
        (lambda: WhereKnown(RBF()).resolve(np.full((3, 2), np.nan)), "All 3 lack it"),
        (lambda: WhereKnown(RBF()).resolve(sp.csr_array(np.eye(3))), "needs dense rows"),
        (lambda: Standardized(WhereKnown(RBF())), r"WhereKnown\(Standardized\(RBF\(\)\)\)"),
        (
            lambda: WhereKnown(NGram()).resolve(np.array([["a", None], ["b", "c"]], dtype=object)),
            "Row 0 lacks some. Impute them",
        ),
    ],
)
def test_errors_say_what_to_do(work: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        work()
