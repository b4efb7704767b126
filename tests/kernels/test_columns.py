"""Kernels on some columns, chosen in every way and in every container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_selector

from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Exponential,
    Linear,
    Pairwise,
    Polynomial,
    distance,
    rbf_ladder,
    resolve_kernels,
)
from discernel.kernels.columns import column_indices

NAMES = ["height", "width", "depth", "gene_a", "gene_b", "gene_c"]


def make_rows(n_rows: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n_rows, len(NAMES)))
    X.flags.writeable = False
    return X


def pandas_frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES)


def polars_frame(X: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(X, schema=NAMES)


CONTAINERS = {
    "numpy": np.asarray,
    "pandas": pandas_frame,
    "polars": polars_frame,
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
}
every_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
every_frame = pytest.mark.parametrize(
    "container", [pandas_frame, polars_frame], ids=["pandas", "polars"]
)

BY_POSITION = [
    pytest.param(2, [2], id="int"),
    pytest.param(np.int64(2), [2], id="numpy int"),
    pytest.param(-1, [5], id="negative int"),
    pytest.param([4, 0], [4, 0], id="list"),
    pytest.param((4, 0), [4, 0], id="tuple"),
    pytest.param([-1, 0, -3], [5, 0, 3], id="negative in list"),
    pytest.param(np.array([1, 3]), [1, 3], id="array"),
    pytest.param(range(1, 4), [1, 2, 3], id="range"),
    pytest.param(slice(1, 4), [1, 2, 3], id="slice"),
    pytest.param(slice(None), [0, 1, 2, 3, 4, 5], id="full slice"),
    pytest.param(slice(None, None, 2), [0, 2, 4], id="slice with step"),
    pytest.param(slice(-2, None), [4, 5], id="slice from the end"),
    pytest.param([True, False, False, True, True, False], [0, 3, 4], id="mask as list"),
    pytest.param(np.array([1, 0, 0, 1, 1, 0], dtype=bool), [0, 3, 4], id="mask as array"),
    pytest.param(lambda frame: [0, frame.shape[1] - 1], [0, 5], id="callable"),
]

BY_NAME = [
    pytest.param("depth", [2], id="name"),
    pytest.param(["gene_b", "height"], [4, 0], id="list of names"),
    pytest.param(("gene_b", "height"), [4, 0], id="tuple of names"),
    pytest.param(np.array(["gene_b", "height"]), [4, 0], id="array of names"),
    pytest.param(slice("width", "gene_a"), [1, 2, 3], id="slice of names includes its end"),
    pytest.param(slice("gene_a", None), [3, 4, 5], id="slice from a name"),
    pytest.param(slice(None, "depth"), [0, 1, 2], id="slice to a name"),
    pytest.param(slice("depth", "depth"), [2], id="slice of one name"),
    pytest.param(
        lambda frame: [name for name in frame.columns if name.startswith("gene")],
        [3, 4, 5],
        id="callable",
    ),
]


@every_container
@pytest.mark.parametrize(("columns", "expected"), BY_POSITION)
def test_columns_by_position(columns: Any, expected: list[int], container: Callable) -> None:
    X, Z = make_rows(9, seed=0), make_rows(5, seed=1)
    kernel = Linear().on(columns)
    part, other = X[:, expected], Z[:, expected]
    assert_allclose(kernel(container(X)), part @ part.T, rtol=1e-12)
    assert_allclose(kernel(container(X), container(Z)), part @ other.T, rtol=1e-12)
    assert_allclose(kernel.diagonal(container(X)), np.sum(part**2, axis=1), rtol=1e-12)


@every_frame
@pytest.mark.parametrize(("columns", "expected"), BY_NAME)
def test_columns_by_name(columns: Any, expected: list[int], container: Callable) -> None:
    X, Z = make_rows(9, seed=0), make_rows(5, seed=1)
    kernel = Linear().on(columns)
    part, other = X[:, expected], Z[:, expected]
    assert_allclose(kernel(container(X)), part @ part.T, rtol=1e-12)
    assert_allclose(kernel(container(X), container(Z)), part @ other.T, rtol=1e-12)
    assert_allclose(kernel.diagonal(container(X)), np.sum(part**2, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (make_column_selector(pattern="^gene"), [3, 4, 5]),
        (make_column_selector(dtype_include="number"), [0, 1, 2, 3, 4, 5]),
        (make_column_selector(pattern="th$", dtype_include="number"), [1, 2]),
    ],
    ids=["pattern", "dtype", "both"],
)
def test_scikit_learns_column_selector(selector: Any, expected: list[int]) -> None:
    X = make_rows(9, seed=0)
    frame = pandas_frame(X).assign(growth="text")
    part = X[:, expected]
    assert_allclose(Linear().on(selector)(frame), part @ part.T, rtol=1e-12)


@every_frame
def test_columns_that_are_not_chosen_need_not_be_numbers(container: Callable) -> None:
    X = make_rows(4, seed=0)
    frame = container(X)
    if isinstance(frame, pd.DataFrame):
        frame = frame.assign(depth=["a", "b", "c", "d"])
    else:
        frame = frame.with_columns(depth=pl.Series(["a", "b", "c", "d"]))
    part = X[:, [0, 4]]
    assert_allclose(Linear().on(["height", "gene_b"])(frame), part @ part.T, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(width=1.5),
        Exponential(gamma=0.5),
        Polynomial(degree=3),
        2.0 * RBF(gamma=0.3),
        RBF(gamma=0.3) + Linear(),
        RBF(gamma=0.3) * Linear(),
        Pairwise("laplacian", (("gamma", 0.3),)),
    ],
    ids=repr,
)
def test_every_kernel_on_columns_is_the_kernel_of_these_columns(kernel: Any) -> None:
    X, Z = make_rows(9, seed=2), make_rows(5, seed=3)
    part, other = X[:, [4, 1]], Z[:, [4, 1]]
    assert_allclose(kernel.on([4, 1])(X, Z), kernel(part, other), rtol=1e-12)
    assert_allclose(kernel.on([4, 1]).diagonal(X), kernel.diagonal(part), rtol=1e-12)


def test_columns_of_columns_count_within_the_outer_choice() -> None:
    X = make_rows(9, seed=4)
    kernel = Linear().on([0, 2]).on([5, 3, 1])  # columns 0 and 2 of 5, 3, 1: that is 5 and 1
    part = X[:, [5, 1]]
    assert_allclose(kernel(X), part @ part.T, rtol=1e-12)


# --- fixing the choice on the training set ------------------------------------------------------


@every_frame
@pytest.mark.parametrize(("columns", "expected"), BY_NAME)
def test_resolve_fixes_names_as_positions(
    columns: Any, expected: list[int], container: Callable
) -> None:
    X, Z = make_rows(9, seed=0), make_rows(5, seed=1)
    resolved = Linear().on(columns).resolve(X, container(X))
    assert resolved.columns == tuple(expected)
    # Names are known at fit only; afterwards plain arrays will do.
    assert_allclose(resolved(X, Z), X[:, expected] @ Z[:, expected].T, rtol=1e-12)


@pytest.mark.parametrize(("columns", "expected"), BY_POSITION)
def test_resolve_fixes_positions(columns: Any, expected: list[int]) -> None:
    X = make_rows(9, seed=0)
    assert Linear().on(columns).resolve(X).columns == tuple(expected)


def test_resolve_keeps_the_users_words_as_the_name() -> None:
    X = make_rows(9, seed=0)
    frame = pandas_frame(X)
    by_name = Linear().on(["height", "gene_b"]).resolve(X, frame)
    assert by_name.name == "Linear() on height, gene_b"
    labelled = Linear().on(["height", "gene_b"], "two").resolve(X, frame)
    assert labelled.name == "Linear() on two"


def test_resolve_takes_the_median_on_the_columns_only() -> None:
    X = make_rows(10, seed=5) * np.array([1.0, 100.0, 1.0, 1.0, 1.0, 1.0])
    part = X[:, [0, 3]]
    distances = [np.linalg.norm(part[i] - part[j]) for i in range(10) for j in range(i)]
    resolved = RBF(width="2*median").on(["height", "gene_a"]).resolve(X, pandas_frame(X))
    assert resolved.parameters == pytest.approx({"width": 2.0 * np.median(distances)})


def test_resolve_fixes_the_open_gamma_of_the_columns() -> None:
    resolved = Pairwise("laplacian").on([0, 1, 2]).resolve(make_rows(9, seed=0))
    assert resolved.parameters == pytest.approx({"gamma": 1.0 / 3.0})


def test_resolve_reaches_columns_in_sums_and_products() -> None:
    X = make_rows(9, seed=0)
    kernel = 2.0 * (Linear().on("height") + Linear().on("gene_a") * Linear().on("gene_b"))
    expected = 2.0 * (X[:, [0]] @ X[:, [0]].T + np.outer(X[:, 3], X[:, 3]) * np.outer(*X.T[[4, 4]]))
    assert_allclose(kernel.resolve(X, pandas_frame(X))(X), expected, rtol=1e-12)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (2, "2"),
        (-1, "-1"),
        ([0, 3], "0, 3"),
        ([0, 2, 4], "0, 2, 4"),
        ([0, 1, 2, 5], "0..5"),
        ("depth", "depth"),
        (["depth", "height"], "depth, height"),
        (slice(1, 4), "1:4"),
        (slice("a", None), "a:"),
        (slice(None), ":"),
        ([False, True, False, True], "1, 3"),
        (make_column_selector(pattern="x"), "make_column_selector"),
        (len, "len"),
    ],
)
def test_name_and_repr_say_which_columns(columns: Any, text: str) -> None:
    kernel = RBF(width=2.0).on(columns)
    assert kernel.name == f"RBF(width=2) on {text}"
    assert repr(kernel) == f"RBF(width=2).on({text})"


def test_name_of_the_source_comes_before_the_columns() -> None:
    assert RBF(width=2.0).on([0, 1], "clinic").name == "RBF(width=2) on clinic"
    assert RBF(width=2.0).on([0, 1], name="").name == "RBF(width=2) on "


# --- choices that cannot work -------------------------------------------------------------------


@every_frame
@pytest.mark.parametrize("columns", ["dept", ["height", "dept"], slice("dept", None)])
def test_missing_name_error_lists_the_names(columns: Any, container: Callable) -> None:
    X = make_rows(9, seed=0)
    with pytest.raises(
        InvalidInputError, match=r"'dept'\)? is not among the columns \['height', 'width', 'depth'"
    ):
        Linear().on(columns)(container(X))
    with pytest.raises(InvalidInputError, match="is not among the columns"):
        Linear().on(columns).resolve(X, container(X))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["numpy", "csr"])
@pytest.mark.parametrize("columns", ["height", ["height"], slice(None, "height")])
def test_names_need_a_dataframe(columns: Any, container: Callable) -> None:
    with pytest.raises(
        InvalidInputError, match=r"by name only in a dataframe.*'height'.*(ndarray|csr_matrix)"
    ):
        Linear().on(columns)(container(make_rows(9, seed=0)))


def test_name_that_stands_twice_is_refused() -> None:
    frame = pd.DataFrame(make_rows(9, seed=0)[:, :3], columns=["a", "b", "a"])
    with pytest.raises(InvalidInputError, match=r"'a'\)? occurs 2 times among the columns"):
        Linear().on("a")(frame)
    assert_array_equal(column_indices("b", frame), [1])


@every_container
@pytest.mark.parametrize("columns", [6, -7, [0, 6], [-7, 0]])
def test_out_of_range_is_refused(columns: Any, container: Callable) -> None:
    with pytest.raises(InvalidInputError, match=r"must lie in the 6 columns of the data\. Got"):
        Linear().on(columns)(container(make_rows(9, seed=0)))


@every_container
@pytest.mark.parametrize(
    "columns", [[], (), slice(3, 3), slice(6, None), [False] * 6, lambda frame: []]
)
def test_no_columns_at_all_are_refused(columns: Any, container: Callable) -> None:
    with pytest.raises(InvalidInputError, match=r"at least one column\. .* chooses none of 6"):
        Linear().on(columns)(container(make_rows(9, seed=0)))


def test_names_in_the_wrong_order_choose_no_columns() -> None:
    with pytest.raises(InvalidInputError, match="chooses none of 6"):
        Linear().on(slice("gene_a", "width"))(pandas_frame(make_rows(9, seed=0)))


@pytest.mark.parametrize("columns", [[1, 1], [0, -6], ["width", "depth", "width"]])
def test_duplicates_are_refused(columns: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be named once each"):
        Linear().on(columns)(pandas_frame(make_rows(9, seed=0)))


@pytest.mark.parametrize("length", [1, 5, 7])
def test_mask_must_have_one_entry_a_column(length: int) -> None:
    with pytest.raises(InvalidInputError, match=f"one entry per column, that is 6. Got {length}"):
        Linear().on([True] * length)(make_rows(9, seed=0))


@pytest.mark.parametrize("columns", [1.0, [0.0, 1.0], np.array([0.5]), None, [None], [1j]])
def test_columns_must_be_indices_names_or_masks(columns: Any) -> None:
    with pytest.raises(InvalidInputError, match="chosen by index, name, slice, mask or a selector"):
        Linear().on(columns)(make_rows(9, seed=0))


def test_selector_that_returns_floats_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"a selector that returns one of .*Got \[0\.5\]"):
        Linear().on(lambda frame: [0.5])(make_rows(9, seed=0))


def test_what_kernels_need_of_the_same_columns_is_computed_once(monkeypatch):
    X, calls = make_rows(12, seed=1), []
    plain = distance.median_distance

    def count(X, norm):
        calls.append(X.shape)
        return plain(X, norm)

    monkeypatch.setattr(distance, "median_distance", count)
    views = [RBF(width=f"{s}*median").on([0, 2]) for s in (1, 2)]
    kernels = [*rbf_ladder(5), *views, RBF().on([1]) + RBF().on([1]), 2.0 * Exponential()]
    resolved = resolve_kernels(kernels, X)
    assert calls == [X.shape, (12, 2), (12, 1)]
    for kernel, one in zip(kernels, resolved, strict=True):
        assert_allclose(one(X), kernel.resolve(X)(X), rtol=1e-15)
