"""Kernels of strings, sets, histograms and identifiers, against loops that say what they are."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from discernel import MultipleKernelDiscriminant
from discernel.arrays import Buffers
from discernel.bank import TiledBank
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    ChiSquared,
    Intersection,
    Jaccard,
    Kernel,
    Lookup,
    Matching,
    NGram,
    Spectrum,
    Tanimoto,
    WhereKnown,
    as_kernel,
)
from discernel.kernels.columns import Table
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.weighted import WeightedKernels
from discernel.testing import check_kernel

RNG = np.random.default_rng(0)


def objects(cells: list[Any]) -> np.ndarray:
    return np.fromiter(cells, dtype=object, count=len(cells))


def random_strings(n: int, letters: str, longest: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, longest, n)
    return objects(["".join(rng.choice(list(letters), size)) for size in sizes])


def random_sets(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return objects([set(rng.choice(8, rng.integers(0, 6)).tolist()) for _ in range(n)])


# ---- the slow way ------------------------------------------------------------------------------


def pieces(string: str, shortest: int, longest: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for length in range(shortest, longest + 1):
        for start in range(len(string) - length + 1):
            found[string[start : start + length]] += 1
    return found


def slow_strings(x: str, z: str, shortest: int, longest: int, normalize: bool = True) -> float:
    def inner(a: Counter[str], b: Counter[str]) -> float:
        return sum(count * b[piece] for piece, count in a.items())

    left, right = pieces(x, shortest, longest), pieces(z, shortest, longest)
    size = (inner(left, left) * inner(right, right)) ** 0.5 if normalize else 1.0
    return inner(left, right) / size if size else 0.0


def slow_jaccard(x: set, z: set) -> float:
    return len(x & z) / len(x | z) if x | z else 1.0


def slow_tanimoto(x: np.ndarray, z: np.ndarray) -> float:
    whole = x @ x + z @ z - x @ z
    return x @ z / whole if whole else 1.0


def slow_chi(x: np.ndarray, z: np.ndarray) -> float:
    terms = [(a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0]
    return float(np.exp(-0.3 * sum(terms)))


def slow_intersection(x: np.ndarray, z: np.ndarray) -> float:
    x, z = x / (x.sum() or 1.0), z / (z.sum() or 1.0)
    return float(np.minimum(x, z).sum())


def folded(text: str) -> str:
    return " ".join(text.lower().split())


def slow_matching(x: np.ndarray, z: np.ndarray) -> float:
    return sum(a == b for a, b in zip(x, z, strict=True)) / len(x)


MATRIX = np.cov(RNG.normal(size=(12, 30)))
NAMES = [f"molecule {i}" for i in range(12)]
COUNTS = RNG.poisson(0.8, size=(40, 6)).astype(float)
COUNTS[[3, 7]] = 0.0
COUNTS[5] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
DNA, TEXTS = random_strings(40, "ACGT", 30, 0), random_strings(40, "ab Ä\n B", 20, 1)

CASES: dict[str, tuple[Kernel, Any, Any]] = {
    "Spectrum(3)": (Spectrum(3), DNA, lambda x, z: slow_strings(x, z, 3, 3)),
    "Spectrum, up to 3": (Spectrum(3, up_to=True), DNA, lambda x, z: slow_strings(x, z, 1, 3)),
    "Spectrum, plain": (
        Spectrum(2, normalize=False),
        DNA,
        lambda x, z: slow_strings(x, z, 2, 2, normalize=False),
    ),
    "NGram()": (NGram(), TEXTS, lambda x, z: slow_strings(folded(x), folded(z), 2, 4)),
    "NGram, capitals": (
        NGram(2, lowercase=False),
        TEXTS,
        lambda x, z: slow_strings(" ".join(x.split()), " ".join(z.split()), 2, 2),
    ),
    "Jaccard, sets": (Jaccard(), random_sets(40, 0), slow_jaccard),
    "Jaccard, text": (
        Jaccard(separator=";"),
        objects([" ; ".join(map(str, one)) for one in random_sets(40, 2)]),
        lambda x, z: slow_jaccard(set(x.split(" ; ")) - {""}, set(z.split(" ; ")) - {""}),
    ),
    "Jaccard, 0 and 1": (
        Jaccard(),
        np.minimum(COUNTS, 1.0),
        lambda x, z: slow_jaccard(set(np.flatnonzero(x)), set(np.flatnonzero(z))),
    ),
    "Matching": (
        Matching(),
        np.random.default_rng(3).choice(np.array(["a", "b", None], dtype=object), size=(40, 3)),
        slow_matching,
    ),
    "Matching, codes": (Matching(), COUNTS, slow_matching),
    "Tanimoto": (Tanimoto(), COUNTS, slow_tanimoto),
    "ChiSquared": (ChiSquared(gamma=0.3), COUNTS, slow_chi),
    "Intersection": (Intersection(), COUNTS, slow_intersection),
    "Intersection, plain": (
        Intersection(shares=False),
        COUNTS,
        lambda x, z: float(np.minimum(x, z).sum()),
    ),
    "Lookup": (
        Lookup(MATRIX, keys=NAMES),
        objects(list(np.random.default_rng(1).choice(NAMES, 40))),
        lambda x, z: MATRIX[NAMES.index(x), NAMES.index(z)],
    ),
    "Lookup, positions": (
        Lookup(MATRIX),
        np.random.default_rng(1).integers(0, 12, size=(40, 1)).astype(float),
        lambda x, z: MATRIX[int(x[0]), int(z[0])],
    ),
}
every_case = pytest.mark.parametrize(("kernel", "X", "slow"), CASES.values(), ids=CASES)


@every_case
def test_the_matrix_is_what_a_loop_says(kernel: Kernel, X: Any, slow: Any) -> None:
    expected = np.array([[slow(x, z) for z in X[25:]] for x in X])
    assert_allclose(kernel(X, X[25:]), expected, rtol=1e-12, atol=1e-14)


@every_case
def test_it_is_a_kernel_in_every_way_it_is_computed(kernel: Kernel, X: Any, slow: Any) -> None:
    check_kernel(kernel, X[:30], X[30:])


@every_case
def test_new_rows_meet_prepared_training_rows(kernel: Kernel, X: Any, slow: Any) -> None:
    kernels = KernelSet([kernel])
    training = kernels.prepare(X[:25])
    new = kernels.prepare(X[25:], training)
    [(_, matrix)] = kernels.matrices(new[2:9], training[np.array([4, 1, 20])], Buffers())
    assert_allclose(matrix, kernel(X[27:34], X[[4, 1, 20]]), rtol=1e-12, atol=1e-14)


@every_case
def test_in_a_table_beside_numbers_all_banks_fit_the_same(
    kernel: Kernel, X: Any, slow: Any
) -> None:
    table = pd.DataFrame({"height": RNG.normal(size=40), "text": "something"})
    names = ["source"] if X.ndim == 1 else [f"source {i}" for i in range(X.shape[1])]
    for i, name in enumerate(names):
        table[name] = list(X if X.ndim == 1 else X[:, i])
    y = np.arange(40) % 2
    kernels = {"height": RBF().on(["height"]), "source": kernel.on(names)}
    found = {}
    for bank in ("dense", "tiled", "iterative"):
        clf = MultipleKernelDiscriminant(
            kernels, criterion="uniform", bank=bank, regularization=0.1
        )
        found[bank] = clf.fit(table[:30], y[:30]).predict_proba(table[30:])
    assert_allclose(found["tiled"], found["dense"], atol=1e-6)
    assert_allclose(found["iterative"], found["dense"], atol=1e-3)


@pytest.mark.parametrize(
    ("kernel", "is_one"),
    [
        (Spectrum(2), DNA),
        (NGram(), TEXTS),
        (Intersection(), COUNTS),
        (Jaccard(), random_sets(9, 1)),
    ],
    ids=["Spectrum", "NGram", "Intersection", "Jaccard"],
)
def test_the_diagonal_is_one_where_there_is_anything(kernel: Kernel, is_one: Any) -> None:
    diagonal = kernel.diagonal(is_one)
    assert_allclose(diagonal[diagonal > 0], 1.0)
    assert (diagonal > 0).sum() > len(diagonal) / 2


@pytest.fixture
def counted(monkeypatch: Any) -> list[int]:
    """Return how many strings were counted, a number per call, as it grows."""
    found: list[int] = []
    original = Spectrum.rows

    def counting(self: Spectrum, X: Any, like: Any = None) -> Any:
        found.append(len(X))
        return original(self, X, like)

    monkeypatch.setattr(Spectrum, "rows", counting)
    return found


TABLE = Table.of(pd.DataFrame({"height": np.arange(40.0), "gene": DNA}))


@pytest.mark.parametrize(
    ("kernel", "X"), [(Spectrum(2), DNA), (Spectrum(2).on([1]), TABLE)], ids=["rows", "table"]
)
def test_strings_are_counted_once_per_row_and_not_once_per_tile(
    kernel: Kernel, X: Any, counted: list[int], monkeypatch: Any
) -> None:
    for name, value in (("_TILE_ENTRIES", 64), ("_TILE_ROWS", 8), ("_BLOCK_BYTES", 8 * 25 * 8)):
        monkeypatch.setattr(f"discernel.kernels.weighted.{name}", value)
    WeightedKernels([kernel], np.ones(1)).product(X, X[:25], np.ones((25, 1)))
    assert sum(counted) == 40 + 25


def test_a_bank_in_tiles_counts_its_strings_once(counted: list[int], monkeypatch: Any) -> None:
    monkeypatch.setattr("discernel.bank.tiled._ROWS", 16)
    monkeypatch.setattr("discernel.bank.tiled._COLUMNS", 16)
    bank = TiledBank([Spectrum(2).on([1]), RBF(1.0).on([0])], TABLE)
    for _ in range(3):
        bank.combined(np.full(2, 0.5))
    assert sum(counted) == 2 * 40  # once for all tiles, once for the diagonal


def test_counts_are_multiplied_dense_or_sparse_to_the_same_end(monkeypatch: Any) -> None:
    dense = Spectrum(2)(DNA)
    monkeypatch.setattr("discernel.kernels.objects._DENSE", 2.0)
    assert_allclose(Spectrum(2)(DNA), dense, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", [Tanimoto(), Jaccard(), ChiSquared(gamma=1.0), Intersection()])
def test_sparse_rows_are_the_same_as_dense_ones(kernel: Kernel) -> None:
    rows = np.minimum(COUNTS, 1.0)
    sparse = kernel(sp.csr_array(rows), sp.csr_array(rows[:5]))
    assert_allclose(sparse, kernel(rows, rows[:5]), rtol=1e-13)


def test_the_median_width_of_chi_squared_is_that_of_different_rows() -> None:
    kernel = ChiSquared(width="2*median").resolve(COUNTS)
    distances = -np.log(ChiSquared(gamma=1.0)(COUNTS))
    pairs = distances[np.tril_indices(40, -1)]
    assert_allclose(kernel.parameters["width"], 2.0 * np.median(pairs[pairs > 1e-12]))


# ---- estimators --------------------------------------------------------------------------------


def labelled_sequences(n: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(5)
    y = np.arange(n) % 2
    background = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(n)]
    return [
        ("GATTACA" if label else "TTTTTTT") + s for label, s in zip(y, background, strict=True)
    ], y


def test_a_list_of_sequences_is_all_an_estimator_needs() -> None:
    X, y = labelled_sequences(60)
    clf = MultipleKernelDiscriminant([Spectrum(2), Spectrum(3), Spectrum(4)])
    assert cross_val_score(clf, X, y, cv=5).mean() > 0.9
    assert copy.deepcopy(clone(clf).kernels) == clf.kernels


def test_lists_of_equal_length_are_sets_too() -> None:
    X = [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"]] * 5
    y = [1, 1, 0, 0] * 5
    assert MultipleKernelDiscriminant(Jaccard()).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize(
    ("word", "kernel"),
    [
        ("spectrum", Spectrum()),
        ("ngram", NGram()),
        ("jaccard", Jaccard()),
        ("matching", Matching()),
        ("tanimoto", Tanimoto()),
        ("intersection", Intersection()),
        ("chi_squared", ChiSquared()),
    ],
)
def test_kernels_have_names(word: str, kernel: Kernel) -> None:
    assert as_kernel(word) == kernel


# ---- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: Spectrum(0), "k of Spectrum must be an integer of at least 1. Got 0"),
        (lambda: NGram((4, 2)), r"n of NGram must be .* such as \(2, 4\). Got \(4, 2\)"),
        (lambda: NGram("2"), "n of NGram must be"),
        (lambda: Spectrum()(["A", 3]), "Row 1 holds 3. Restrict the kernel to a column of strings"),
        (lambda: Spectrum()(["A", None]), r"Row 1 is missing. .*WhereKnown\(Spectrum\(k=3"),
        (lambda: Spectrum()(np.array([["A", "B"]])), r"Got 2 columns. .*Spectrum\(...\).on"),
        (lambda: NGram()(sp.csr_array(COUNTS)), "Got a sparse matrix"),
        (
            lambda: Jaccard()(["a;b"]),
            r"holds 'a;b'. Give the separator of its items: Jaccard\(separator",
        ),
        (lambda: Jaccard()([{1}, 5]), "Row 1 holds 5"),
        (lambda: Jaccard()(COUNTS), r"needs 0 and 1.*Tanimoto\(\) takes counts"),
        (lambda: Jaccard(separator=""), "separator of Jaccard must be text"),
        (lambda: Tanimoto()(-COUNTS), "Tanimoto.* needs counts or shares of at least 0. Got -"),
        (lambda: ChiSquared(gamma=1.0)(COUNTS - 1.0), "Got -1 in row 0"),
        (lambda: Intersection()(-COUNTS), "Intersection.* needs counts or shares of at least 0"),
        (lambda: ChiSquared(width="mean"), "width must be a positive number, 'median'"),
        (lambda: Lookup(MATRIX, NAMES)(["molecule 3", "x"]), "no entry for 'x' in row 1"),
        (lambda: Lookup(MATRIX)([3, 12]), "no entry for 12 .* the positions of its rows"),
        (lambda: Lookup(MATRIX, NAMES[1:]), "one key per row of the matrix, here 12. Got 11"),
        (lambda: Lookup(MATRIX, ["a"] * 12), "Got 'a' twice"),
        (lambda: Lookup(MATRIX[:3]), r"one row and one column per item. Got the shape \(3, 12\)"),
    ],
)
def test_errors_say_what_to_do(work: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        work()


def test_a_matrix_with_names_brings_its_keys() -> None:
    frame = pd.DataFrame(MATRIX, index=NAMES, columns=NAMES)
    assert Lookup(frame) == Lookup(MATRIX, keys=NAMES)
    with pytest.raises(InvalidInputError, match="the same names in the same order"):
        Lookup(pd.DataFrame(MATRIX, index=NAMES))


def test_the_matrix_of_a_lookup_is_its_own_and_checked() -> None:
    matrix = MATRIX.copy()
    kernel = Lookup(matrix)
    matrix[:] = 0.0
    assert kernel([3], [3]).item() == MATRIX[3, 3]
    ids = pd.DataFrame({"id": np.arange(12), "x": np.arange(12.0)})
    indefinite = Lookup(-np.eye(12)).on("id")
    with pytest.raises(ValueError, match="positive semidefinite"):
        MultipleKernelDiscriminant([indefinite]).fit(ids, ids["id"] % 2)


def test_rows_may_lack_a_lookup() -> None:
    kernel = WhereKnown(Lookup(MATRIX, NAMES)).resolve(objects(["molecule 1", None]))
    assert kernel(objects([None]), objects(["molecule 1"])).item() == MATRIX[1, 1]
