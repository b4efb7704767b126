"""Matrices that are not Gram matrices are refused, with a message that says where and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from discernel.bank import DenseBank
from discernel.bank.grams import check_grams, check_no_indefinite
from discernel.exceptions import DiscernelError, InvalidGramError, InvalidInputError


@pytest.fixture
def gram() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(9, 4))
    gram = X @ X.T
    gram.flags.writeable = False
    return gram


def spectrum(*eigenvalues: float, seed: int = 1) -> np.ndarray:
    """Return a symmetric matrix with these eigenvalues."""
    n = len(eigenvalues)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    matrix = (Q * np.array(eigenvalues)) @ Q.T
    return (matrix + matrix.T) / 2


# --- good matrices ------------------------------------------------------------------------------


def test_good_stack_comes_back_with_names(gram: np.ndarray) -> None:
    stack = np.stack([gram, 2 * gram])
    checked, names = check_grams(stack, None, None)
    assert np.shares_memory(checked, stack)
    assert_array_equal(checked, [gram, 2 * gram])
    assert names == ["kernel 0", "kernel 1"]
    assert check_grams(stack, ("a", "b"), None)[1] == ["a", "b"]


def test_lists_integers_and_turned_stacks_become_one_contiguous_array() -> None:
    one, two = np.eye(3, dtype=int), 2 * np.eye(3, dtype=int)
    for given in [[one, two], np.moveaxis(np.stack([one, two], axis=-1), -1, 0)]:
        checked, _ = check_grams(given, None, None)
        assert checked.dtype == np.float64
        assert checked.flags.c_contiguous
        assert_array_equal(checked, [np.eye(3), 2 * np.eye(3)])


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")], ids=str
)
@pytest.mark.parametrize("trusted", [None, [True, True]], ids=["checked", "trusted"])
def test_not_finite_error_names_kernel_row_and_column(
    gram: np.ndarray, value: float, text: str, trusted: Any
) -> None:
    stack = np.stack([gram, gram])
    stack[1, 3, 5] = value
    message = rf"must not contain NaN or infinity\. second has {text} at row 3, column 5"
    with pytest.raises(InvalidInputError, match=message):
        DenseBank(stack, ["first", "second"], trusted=trusted)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (2, 7), (8, 8)])
def test_first_bad_number_is_named_also_if_it_has_a_mirror_image(
    gram: np.ndarray, row: int, column: int
) -> None:
    bad = gram.copy()
    bad[row, column] = bad[column, row] = np.nan
    with pytest.raises(InvalidInputError, match=f"kernel 0 has nan at row {row}, column {column}"):
        DenseBank(bad[None])


# --- symmetry -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "column"), [(1, 6), (6, 1)])
def test_asymmetric_error_names_the_place_and_both_values(
    gram: np.ndarray, row: int, column: int
) -> None:
    bad = gram.copy()
    bad[row, column] = 0.25
    values = rf"{0.25 if row < column else gram[1, 6]:.6g}", rf"{bad[6, 1]:.6g}"
    message = (
        rf"must be symmetric\. odd has {re.escape(values[0])} at row 1, column 6 "
        rf"and {re.escape(values[1])} at its mirror image.*\(K \+ K\.T\) / 2"
    )
    with pytest.raises(InvalidGramError, match=message):
        DenseBank(np.stack([gram, bad]), ["even", "odd"])


@pytest.mark.parametrize(("share", "accepted"), [(1e-10, True), (1e-6, False)])
def test_asymmetry_of_rounding_is_accepted(gram: np.ndarray, share: float, accepted: bool) -> None:
    bad = gram.copy()
    bad[1, 6] += share * np.abs(gram).max()
    assert bad[1, 6] != bad[6, 1]
    if accepted:
        assert DenseBank(bad[None]).n_kernels == 1
    else:
        with pytest.raises(InvalidGramError, match="must be symmetric"):
            DenseBank(bad[None])


# --- definiteness -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        spectrum(-3.21987, 1.0, 2.0, 8.0, 9.0),
        spectrum(-0.0123456, 1.0, 2.0, 8.0, 9.0),
        spectrum(-54321.9, -1.0, 2.0, 8.0, 9.0),
        spectrum(-1e-3, 0.0, 0.0, 0.0, 1.0),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        -np.eye(4),
        np.array([[1.0, 1.7], [1.7, 1.0]]),
    ],
    ids=["clear", "small", "large", "near zero", "zero diagonal", "negative", "two by two"],
)
def test_indefinite_error_names_the_most_negative_eigenvalue(bad: np.ndarray) -> None:
    with pytest.raises(InvalidGramError, match="culprit has the eigenvalue") as caught:
        DenseBank(np.stack([np.eye(len(bad)), bad]), ["fine", "culprit"])
    named = re.search(r"eigenvalue (\S+) \(its largest is (\S+)\)", str(caught.value))
    assert named is not None
    eigenvalues = np.linalg.eigvalsh(bad)
    assert [float(text) for text in named.groups()] == pytest.approx(eigenvalues[[0, -1]], rel=1e-5)


@pytest.mark.parametrize(
    "good",
    [
        spectrum(-1e-9, 0.0, 1e-12, 0.5, 1.0),
        spectrum(-1e-4, -1e-5, 1.0, 10.0, 1e4),
        np.outer(np.arange(9.0), np.arange(9.0)),
        spectrum(0.0, 0.0, 0.0, 0.0, 3.0),
    ],
    ids=["tiny", "relative to the largest", "rank one", "many zeros"],
)
def test_slightly_indefinite_by_rounding_is_accepted(good: np.ndarray) -> None:
    assert np.linalg.eigvalsh(good)[0] <= 1e-12
    assert DenseBank(good[None]).n_kernels == 1


def test_matrix_of_zeros_is_semidefinite(gram: np.ndarray) -> None:
    checked, _ = check_grams(np.stack([gram, np.zeros((9, 9))]), None, None)
    assert_array_equal(checked[1], np.zeros((9, 9)))


def test_trusted_matrices_are_not_checked(gram: np.ndarray) -> None:
    asymmetric = gram.copy()
    asymmetric[0, 1] += 1.0
    indefinite = spectrum(-3.0, *range(1, 9))
    stack = np.stack([asymmetric, indefinite])
    checked, _ = check_grams(stack, None, [True, True])
    assert_array_equal(checked, stack)
    with pytest.raises(InvalidGramError, match="kernel 0 has"):
        check_grams(stack, None, [False, True])
    with pytest.raises(InvalidGramError, match="kernel 1 has the eigenvalue -3 "):
        check_grams(stack, None, [True, False])


def test_indefiniteness_that_no_400_rows_show_is_found_on_all_rows() -> None:
    n = 1100
    # I − c 11ᵀ has the eigenvalue 1 − c k on any k of its rows: positive up to 1,050 of them.
    hidden = np.eye(n) - 1.0 / 1050.0
    assert 1.0 - 400.0 / 1050.0 > 0 > 1.0 - n / 1050.0
    stack, names = check_grams(hidden[None], ["hidden"], None)
    with pytest.raises(InvalidGramError, match=r"hidden has the eigenvalue -0\.047619"):
        check_no_indefinite(stack, names)
    with pytest.raises(InvalidGramError, match=r"hidden has the eigenvalue -0\.047619"):
        DenseBank(hidden[None], ["hidden"]).check_definite()


def test_indefiniteness_of_many_rows_is_seen_on_400_of_them() -> None:
    n = 1100
    bad = np.eye(n) - 1.0 / 200.0  # −1 on any 400 rows
    with pytest.raises(InvalidGramError, match="kernel 0 has the eigenvalue -1 "):
        check_grams(bad[None], None, None)


def test_no_indefinite_is_content_with_gram_matrices(gram: np.ndarray) -> None:
    stack = np.stack([gram, np.eye(9), spectrum(-2.0, *range(1, 9))])
    assert check_no_indefinite(stack[:2], ["a", "b"]) is None
    with pytest.raises(InvalidGramError, match="c has the eigenvalue -2 "):
        check_no_indefinite(stack, ["a", "b", "c"])
    assert_array_equal(stack[0], gram)


# --- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((4, 4), r"pass K\[None\]"),
        ((4, 5), r"pass K\[None\]"),
        ((4, 4, 3), r"np\.moveaxis\(stack, -1, 0\)"),
        ((3, 4, 5), r"np\.moveaxis\(stack, -1, 0\)"),
        ((4,), ""),
        ((1, 2, 4, 4), ""),
    ],
    ids=str,
)
def test_wrong_shape_error_gives_the_shape_and_the_remedy(shape: tuple, hint: str) -> None:
    message = (
        r"must have shape \(n_kernels, n_samples, n_samples\)\. "
        rf"Got {re.escape(str(shape))}\..*{hint}"
    )
    with pytest.raises(InvalidInputError, match=message):
        DenseBank(np.ones(shape))


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (lambda gram: gram, lambda K: K[None]),
        (lambda gram: gram[:, :, None], lambda stack: np.moveaxis(stack, -1, 0)),
    ],
    ids=["one matrix", "kernels last"],
)
def test_remedy_in_the_message_works(gram: np.ndarray, wrong: Callable, remedy: Callable) -> None:
    with pytest.raises(InvalidInputError, match="must have shape"):
        DenseBank(wrong(gram))
    assert DenseBank(remedy(wrong(gram))).n_samples == 9


@pytest.mark.parametrize(
    "grams",
    [[np.eye(3), np.eye(4)], [[1.0, 2.0], [3.0]], [["a", "b"], ["c", "d"]], [{}], object()],
    ids=["two sizes", "ragged rows", "text", "mapping", "object"],
)
def test_what_is_no_array_of_numbers_is_refused(grams: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be one array of numbers of shape"):
        DenseBank(grams)


@pytest.mark.parametrize("shape", [(0,), (0, 4, 4), (2, 0, 0)], ids=str)
def test_empty_stacks_are_refused(shape: tuple) -> None:
    with pytest.raises(
        InvalidInputError, match=rf"at least one kernel matrix\. Got shape {re.escape(str(shape))}"
    ):
        DenseBank(np.empty(shape))


def test_empty_list_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"at least one kernel matrix\. Got shape \(0,\)"):
        DenseBank([])


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b", "c"]], ids=repr)
def test_there_must_be_one_name_a_kernel(gram: np.ndarray, names: list[str]) -> None:
    message = rf"one name per kernel, that is 2\. Got {len(names)}"
    with pytest.raises(InvalidInputError, match=message):
        DenseBank(np.stack([gram, gram]), names)


# --- errors are what callers expect -------------------------------------------------------------


@pytest.mark.parametrize("expected", [ValueError, DiscernelError, InvalidInputError])
def test_bad_matrices_are_value_errors_too(expected: type[Exception]) -> None:
    with pytest.raises(expected, match="positive semidefinite"):
        DenseBank(-np.eye(3)[None])
