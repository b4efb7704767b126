"""Several sources: joined to one table, with kernels and weights of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Function,
    Jaccard,
    Linear,
    Matching,
    NGram,
    Spectrum,
    Standardized,
    WhereKnown,
)
from discernel.rows.reader import refuse_views
from discernel.views import join_views, source_kernels, source_weights, weights_spread

N = 60
Y = np.arange(N) % 2
RNG = np.random.default_rng(0)
SCAN, BLOOD = RNG.normal(size=(N, 3)) + Y[:, None], RNG.normal(size=(N, 2))
NOTES = [f"patient {i} has a {'cough' if label else 'broken leg'}" for i, label in enumerate(Y)]
GENES = ["".join(RNG.choice(list("ACGT"), 20)) for _ in range(N)]
TAGS = [{"a", "b"} if label else {"b", "c"} for label in Y]
CLINIC = pd.DataFrame({"age": RNG.normal(size=N), "ward": np.where(Y, "east", "west")})


# ---- joining -----------------------------------------------------------------------------------


def test_arrays_of_numbers_become_one_array_and_slices() -> None:
    table, columns = join_views([SCAN, BLOOD.tolist(), np.arange(N)])
    assert_array_equal(table, np.column_stack([SCAN, BLOOD, np.arange(N)]))
    assert columns == {"view 0": slice(0, 3), "view 1": slice(3, 5), "view 2": slice(5, 6)}


def test_with_a_sparse_view_the_table_is_sparse() -> None:
    table, columns = join_views({"a": SCAN, "b": sp.csr_array(BLOOD)})
    assert_array_equal(table.toarray(), np.hstack([SCAN, BLOOD]))
    clf = MultipleKernelDiscriminant(source_kernels(columns, "rbf")).fit(table, Y)
    assert clf.kernel_names_ == ["a: RBF(width='median')", "b: RBF(width='median')"]


@pytest.mark.parametrize("clinic", [CLINIC, pl.DataFrame(CLINIC)], ids=["pandas", "polars"])
def test_anything_else_becomes_a_dataframe(clinic: Any) -> None:
    views = {"scan": SCAN, "clinic": clinic, "note": NOTES, "tags": TAGS, "dose": np.arange(N)}
    table, columns = join_views(views)
    assert columns["scan"] == ["scan[0]", "scan[1]", "scan[2]"]
    assert columns["clinic"] == ["clinic[age]", "clinic[ward]"]
    assert columns["note"] == ["note"]
    assert_array_equal(table[columns["scan"]], SCAN)
    assert table["note"].tolist() == NOTES
    assert table["tags"].tolist() == TAGS
    assert table["clinic[ward]"].tolist() == CLINIC["ward"].tolist()


def test_an_index_is_kept_and_must_be_the_same() -> None:
    index = [f"p{i}" for i in range(N)]
    one, other = CLINIC.set_axis(index), pd.DataFrame({"x": BLOOD[:, 0]}, index=index)
    assert join_views([one, other, SCAN]).table.index.tolist() == index
    with pytest.raises(InvalidInputError, match=r"'a' and 'b' differ.*reset_index\(drop=True\)"):
        join_views({"a": one, "b": other.iloc[::-1]})


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ([], "at least one view"),
        ({"a": SCAN, "b": BLOOD[:9]}, "60 rows in 'a', 9 rows in 'b'. If a row lacks a view"),
        ([np.zeros((4, 2, 2))], r"'view 0' of shape \(4, 2, 2\). Flatten it"),
        ({"a": pd.DataFrame({"x]": NOTES}), "a[x": pd.DataFrame({"]": NOTES})}, None),
        ({"a": pd.DataFrame({"0": NOTES}), "a[0]": NOTES}, r"Two views have a column 'a\[0\]'"),
    ],
)
def test_views_that_do_not_fit_together(views: Any, message: str | None) -> None:
    if message is None:
        assert join_views(views).table.shape == (N, 2)
        return
    with pytest.raises(InvalidInputError, match=message):
        join_views(views)


SIMILAR = RBF(width=2.0)(SCAN)
APART = np.linalg.norm(SCAN[:, None] - SCAN, axis=2)


@pytest.mark.parametrize(
    "matrix",
    [
        SIMILAR,
        SIMILAR.tolist(),
        APART,
        SCAN @ SCAN.T,
        SIMILAR > 0.5,
        sp.csr_array(np.where(SIMILAR > 0.5, SIMILAR, 0.0)),
        pd.DataFrame(SIMILAR),
        pd.DataFrame(SIMILAR, index=NOTES, columns=NOTES),
    ],
    ids=["rbf", "list", "distances", "linear", "graph", "sparse", "dataframe", "named"],
)
def test_similarities_between_rows_are_no_columns(matrix: Any) -> None:
    message = r"must be features. Got 'graph', a symmetric matrix of 60 rows.*Lookup\(matrix\)"
    with pytest.raises(InvalidInputError, match=message):
        join_views({"graph": matrix, "blood": BLOOD})


def test_masked_cells_of_a_view_are_missing() -> None:
    hidden = np.ma.array(SCAN, mask=SCAN > 1)
    for other in (BLOOD, NOTES):
        table, columns = join_views({"scan": hidden, "other": other})
        cells = table[:, columns["scan"]] if other is BLOOD else table[columns["scan"]]
        assert_array_equal(np.isnan(np.asarray(cells, dtype=float)), SCAN > 1)


def test_as_many_columns_as_rows_may_be_a_table() -> None:
    square = RNG.normal(size=(N, N))
    names = [f"gene {i}" for i in range(N)]
    features = pd.DataFrame(SIMILAR, columns=names)
    for view in (square, features, np.ones((N, N)), pl.DataFrame(SIMILAR, schema=names)):
        assert join_views({"genes": view}).table.shape == (N, N)
    assert join_views([np.eye(2)]).table.shape == (2, 2)


@pytest.mark.parametrize(
    "X", [[SCAN, BLOOD], (SCAN, SCAN), {"a": SCAN, "b": BLOOD}, [CLINIC, CLINIC]]
)
@pytest.mark.parametrize("kernels", ["auto", [RBF()], [Function(lambda A, B: A @ B.T)]])
def test_estimators_say_how_to_join_views(X: Any, kernels: Any) -> None:
    with pytest.raises(
        InvalidInputError, match=r"one table. .*join_views\(X\).*\(views\).*views\.table"
    ):
        MultipleKernelDiscriminant(kernels).fit(X, Y)
    with pytest.raises(InvalidInputError, match="X must be one table"):
        KernelDiscriminant(RBF()).fit(SCAN, Y).predict(X)


def test_rows_that_are_matrices_are_no_views() -> None:
    refuse_views([np.eye(2)] * N, Y)
    refuse_views([np.eye(2), np.eye(3)])
    refuse_views([[1.0, 2.0], [3.0, 4.0]])
    stack = [SCAN @ SCAN.T, BLOOD @ BLOOD.T]
    with pytest.raises(InvalidInputError, match=r"np\.stack"):
        MultipleKernelDiscriminant("precomputed").fit(stack, Y)


# ---- kernels -----------------------------------------------------------------------------------


def test_kernels_given_for_all_sources_or_for_each() -> None:
    views = join_views({"scan": SCAN, "blood": BLOOD})
    both = source_kernels(views, [RBF(), Linear()])
    assert list(both) == [
        *("scan: RBF(width='median')", "scan: Linear()"),
        *("blood: RBF(width='median')", "blood: Linear()"),
    ]
    each = source_kernels(views, {"scan": "linear", "blood": [RBF(1.0), RBF(2.0)]})
    assert list(each) == ["scan: Linear()", "blood: RBF(width=1)", "blood: RBF(width=2)"]
    assert_allclose(each["scan: Linear()"](views.table), SCAN @ SCAN.T)


@pytest.mark.parametrize(
    ("view", "kinds"),
    [
        (SCAN, [Standardized] * 4),
        (NOTES, [NGram]),
        (GENES, [Spectrum, Spectrum]),
        (TAGS, [Jaccard]),
        (CLINIC, [*[Standardized] * 4, Matching]),
        (np.where(np.arange(N) == 3, None, np.array(GENES, dtype=object)), [WhereKnown] * 2),
        (np.where(np.arange(N) == 3, np.nan, SCAN[:, 0]), [WhereKnown] * 4),
        (CLINIC[["ward"]], [Matching]),
    ],
)
def test_auto_looks_at_what_there_is(view: Any, kinds: list[type]) -> None:
    views = join_views({"only": view, "scan": SCAN})
    made = source_kernels(views, {"only": "auto", "scan": "rbf"})
    inner = [kernel.kernel.kernel for name, kernel in made.items() if name.startswith("only")]
    assert [type(kernel) for kernel in inner] == kinds
    clf = MultipleKernelDiscriminant(made).fit(views.table, Y)
    assert list(source_weights(clf)) == ["only", "scan"]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: source_kernels({}), "mapping of names to columns"),
        (lambda: source_kernels({"a": [0]}), "Got only columns. Pass table="),
        (lambda: source_kernels({"a": [0]}, {"b": "rbf"}), "Got none for 'a'"),
        (lambda: source_kernels({"a": [0]}, {"a": "rbf", "b": "rbf"}), "Got kernels for 'b'"),
        (
            lambda: source_kernels({"a": ["age", "note"]}, table=CLINIC.assign(note=NOTES)),
            "column 'note' of texts.*Make it a separate source",
        ),
    ],
)
def test_sources_that_cannot_work(work: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        work()


# ---- weights -----------------------------------------------------------------------------------


def all_sources() -> tuple[Any, dict[str, Any]]:
    views = join_views({"scan": SCAN, "blood": BLOOD, "note": NOTES, "genes": GENES})
    return views.table, source_kernels(views)


def test_weights_of_sources_are_sums_over_their_kernels() -> None:
    table, kernels = all_sources()
    clf = MultipleKernelDiscriminant(kernels).fit(table, Y)
    weights = source_weights(clf)
    assert list(weights) == ["scan", "blood", "note", "genes"]
    for source, weight in weights.items():
        own = [w for name, w in zip(clf.kernel_names_, clf.kernel_weights_, strict=True)]
        of = [name.startswith(f"{source}: ") for name in clf.kernel_names_]
        assert weight == pytest.approx(np.array(own)[of].sum())
    pipeline = make_pipeline(FunctionTransformer(), clf)
    assert source_weights(pipeline) == weights
    with pytest.raises(NotFittedError, match="not fitted yet"):
        source_weights(MultipleKernelDiscriminant())
    with pytest.raises(InvalidInputError, match="one of discernel with kernel_weights_"):
        source_weights(StandardScaler().fit(SCAN))


def test_the_spread_of_weights_is_that_of_fits_on_parts_of_the_rows() -> None:
    table, kernels = all_sources()
    clf = MultipleKernelDiscriminant(kernels)
    spread = weights_spread(clf, table, Y, cv=3)
    by_hand = [
        source_weights(MultipleKernelDiscriminant(kernels).fit(table.iloc[rows], Y[rows]))
        for rows, _ in StratifiedKFold(3).split(table, Y)
    ]
    expected = np.array([list(weights.values()) for weights in by_hand])
    assert_allclose(spread.weights, expected, atol=1e-12)
    assert_allclose(list(spread.mean.values()), expected.mean(axis=0))
    assert_allclose(list(spread.std.values()), expected.std(axis=0))
    assert str(spread).splitlines()[0].startswith("scan   ")
    assert not hasattr(clf, "kernels_")


def test_joined_views_go_through_cross_validation() -> None:
    table, kernels = all_sources()
    assert cross_val_score(MultipleKernelDiscriminant(kernels), table, Y, cv=3).mean() > 0.9


def test_weights_over_splits_of_precomputed_kernels() -> None:
    grams = np.stack([SCAN @ SCAN.T, BLOOD @ BLOOD.T], axis=-1)
    spread = weights_spread(MultipleKernelDiscriminant("precomputed"), grams, Y, cv=3)
    assert spread.names == ["matrix 0", "matrix 1"]
    assert_allclose(spread.weights.sum(axis=1), 1.0)
    assert [fit.n_features_in_ for fit in spread.estimators] == [40, 40, 40]
