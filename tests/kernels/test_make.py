"""Conversion of names, callables and lists to kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Function,
    GaussianProcess,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    Standardized,
    as_kernel,
    as_kernels,
    kernel_names,
    rbf_ladder,
    resolve_kernels,
)
from discernel.kernels.evaluate import KernelSet


def min_kernel(X: Any, Z: Any) -> np.ndarray:
    return np.minimum(X[:, None, :], Z[None, :, :]).sum(axis=2)


@pytest.fixture
def X() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(11, 3))
    X.flags.writeable = False
    return X


# --- one kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("linear", Linear()),
        ("rbf", RBF(width="median")),
        ("exponential", Exponential(width="median")),
        ("cosine", Cosine()),
        ("poly", Polynomial(degree=3, gamma=None)),
        ("polynomial", Polynomial(degree=3, gamma=None)),
        ("precomputed", Precomputed(0)),
        ("laplacian", Pairwise("laplacian")),
        ("chi2", Pairwise("chi2")),
        (min_kernel, Function(min_kernel)),
        (RBF(gamma=2.0), RBF(gamma=2.0)),
    ],
)
def test_as_kernel_gives_the_kernel_that_is_meant(given: Any, meant: Any) -> None:
    assert as_kernel(given) == meant


def test_kernels_stay_the_objects_they_are() -> None:
    kernel = 2.0 * RBF(gamma=2.0).on([0])
    assert as_kernel(kernel) is kernel


def test_gaussian_process_kernels_are_wrapped_and_not_called(X: np.ndarray) -> None:
    theirs = gp.RBF(1.3) + gp.WhiteKernel(0.2)  # which is callable as well
    kernel = as_kernel(theirs)
    assert isinstance(kernel, GaussianProcess)
    assert kernel.kernel is theirs
    assert_allclose(kernel(X), theirs(X), rtol=1e-14)


def test_unknown_name_error_lists_the_known() -> None:
    with pytest.raises(
        InvalidInputError, match=r"kernel name must be one of .*'chi2'.*'laplacian'.*Got 'gauss'"
    ):
        as_kernel("gauss")


@pytest.mark.parametrize("thing", [None, 3, 2.5, np.eye(2), object(), b"rbf"])
def test_unknown_object_error_names_its_type(thing: Any) -> None:
    with pytest.raises(
        InvalidInputError,
        match=f"(?s)A kernel must be an object of .* of type {type(thing).__name__}",
    ):
        as_kernel(thing)


# --- several kernels ----------------------------------------------------------------------------


def test_auto_is_nine_gaussians_around_the_median_and_linear() -> None:
    kernels = as_kernels("auto")
    widths = [2.0**power for power in range(-4, 5)]
    plain = [RBF(width=f"{width:.6g}*median") for width in widths] + [Linear()]
    assert kernels == [Standardized(kernel) for kernel in plain]


@pytest.mark.parametrize("n_matrices", [1, 2, 5])
def test_precomputed_is_one_kernel_a_matrix(n_matrices: int) -> None:
    kernels = as_kernels("precomputed", n_precomputed=n_matrices)
    assert kernels == [Precomputed(i) for i in range(n_matrices)]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (RBF(gamma=1.0), [RBF(gamma=1.0)]),
        ("linear", [Linear()]),
        (min_kernel, [Function(min_kernel)]),
        ([RBF(gamma=1.0)], [RBF(gamma=1.0)]),
        (["linear", RBF(gamma=1.0), min_kernel], [Linear(), RBF(gamma=1.0), Function(min_kernel)]),
        (("linear", "chi2"), [Linear(), Pairwise("chi2")]),
        (
            {"plain": "linear", "smooth": RBF(gamma=1.0)},
            [Linear().named("plain"), RBF(gamma=1.0).named("smooth")],
        ),
        ({0: "linear"}, [Linear().named("0")]),
    ],
)
def test_as_kernels_takes_one_a_list_or_a_mapping(given: Any, meant: list) -> None:
    assert as_kernels(given) == meant


def test_mapping_gives_the_names_and_is_left_as_it_was(X: np.ndarray) -> None:
    given = {"plain": "linear", "smooth": RBF(gamma=1.0)}
    kernels = as_kernels(given)
    assert kernel_names(kernels) == ["plain", "smooth"]
    assert_allclose(kernels[0](X), X @ X.T, rtol=1e-14)
    assert given == {"plain": "linear", "smooth": RBF(gamma=1.0)}


@pytest.mark.parametrize("nothing", [[], (), {}], ids=repr)
def test_no_kernels_are_refused(nothing: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"non-empty list of kernels\. Got .*Pass at least"):
        as_kernels(nothing)


def test_list_with_something_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="Got 3 of type int"):
        as_kernels([Linear(), 3])
    with pytest.raises(InvalidInputError, match="Got None of type NoneType"):
        as_kernels(None)


# --- ladders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_kernels", "center", "step", "widths"),
    [
        (1, 3.0, 2.0, [3.0]),
        (3, 10.0, 2.0, [5.0, 10.0, 20.0]),
        (3, 10, 10, [1.0, 10.0, 100.0]),
        (2, 1.0, 4.0, [0.5, 2.0]),
        (4, 1.0, 4.0, [0.125, 0.5, 2.0, 8.0]),
        (5, 2.0, 1.5, [2 / 2.25, 2 / 1.5, 2.0, 3.0, 4.5]),
    ],
)
def test_ladder_is_geometric_around_its_center(
    n_kernels: int, center: float, step: float, widths: list[float]
) -> None:
    ladder = rbf_ladder(n_kernels, center=center, step=step)
    assert all(isinstance(kernel, RBF) for kernel in ladder)
    assert_allclose([kernel.parameters["width"] for kernel in ladder], widths, rtol=1e-14)


@pytest.mark.parametrize(("n_kernels", "step"), [(1, 2.0), (3, 2.0), (4, 2.0), (5, 1.3)])
def test_median_ladder_is_the_numeric_ladder_at_the_median(
    n_kernels: int, step: float, X: np.ndarray
) -> None:
    distances = [np.linalg.norm(X[i] - X[j]) for i in range(len(X)) for j in range(i)]
    found = [kernel.resolve(X) for kernel in rbf_ladder(n_kernels, step=step)]
    expected = rbf_ladder(n_kernels, center=float(np.median(distances)), step=step)
    assert_allclose(  # the factors are written with six digits
        [kernel.parameters["width"] for kernel in found],
        [kernel.parameters["width"] for kernel in expected],
        rtol=5e-6,
    )


@pytest.mark.parametrize("center", [1.5, "median"])
def test_with_step_2_each_matrix_is_the_fourth_power_of_the_next(
    center: float | str, X: np.ndarray
) -> None:
    matrices = [kernel.resolve(X)(X) for kernel in rbf_ladder(9, center=center, step=2.0)]
    for narrow, wide in itertools.pairwise(matrices):
        assert_allclose(narrow, wide**4, rtol=1e-11, atol=1e-299)
    assert matrices[0][0, 1] < matrices[-1][0, 1] < 1.0


def test_ladder_has_nine_rungs_of_ratio_two_around_the_median_by_default() -> None:
    assert rbf_ladder() == rbf_ladder(9, center="median", step=2.0)
    assert rbf_ladder()[4] == RBF(width="1*median")
    assert rbf_ladder()[0] == RBF(width="0.0625*median")


@pytest.mark.parametrize(
    ("n_kernels", "step"), [(0, 2.0), (-1, 2.0), (3, 1.0), (3, 0.5), (3, -2.0), (3, np.nan)]
)
def test_ladder_needs_rungs_and_a_step_above_one(n_kernels: int, step: float) -> None:
    with pytest.raises(
        InvalidInputError,
        match=rf"one kernel and a step above 1\. Got n_kernels={n_kernels} and step={step}",
    ):
        rbf_ladder(n_kernels, step=step)


def test_ladder_center_must_be_a_positive_number_or_median() -> None:
    with pytest.raises(InvalidInputError, match=r"must be a number or 'median'\. Got 'mean'"):
        rbf_ladder(3, center="mean")
    with pytest.raises(InvalidInputError, match="width of RBF must be a positive number"):
        rbf_ladder(3, center=-1.0)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        ([], []),
        ([Linear(), Cosine()], ["Linear()", "Cosine()"]),
        ([Linear(), Cosine(), Linear()], ["Linear() #1", "Cosine()", "Linear() #2"]),
        ([Linear().named("a"), Exponential(gamma=1.0).named("a")], ["a #1", "a #2"]),
        (
            [RBF(width=1.0).on([0]), RBF(width=1.0).on([1])],
            ["RBF(width=1) on 0", "RBF(width=1) on 1"],
        ),
        # Different kernels whose short texts are the same.
        ([RBF(width=1.00001), RBF(width=1.00002)], ["RBF(width=1) #1", "RBF(width=1) #2"]),
        ([Precomputed(0), Precomputed(1)], ["matrix 0", "matrix 1"]),
    ],
)
def test_names_are_told_apart(kernels: list, names: list[str]) -> None:
    assert kernel_names(kernels) == names


def test_names_of_auto_are_all_different() -> None:
    names = kernel_names(as_kernels("auto"))
    assert len(set(names)) == 10
    assert names[-1] == "Linear()"


@pytest.mark.parametrize("n_kernels", [2, 9, 10])
def test_every_kernel_of_a_ladder_is_the_fourth_power_of_the_next(n_kernels):
    X = np.random.default_rng(0).standard_normal((30, 4))
    kernels = KernelSet(resolve_kernels(rbf_ladder(n_kernels), X))
    ((_, steps),) = kernels.groups.items()
    assert [squarings for _, squarings in steps] == [None] + [2] * (n_kernels - 1)
    assert len(repr(rbf_ladder(10)[0])) < 35, "a name fit for a table"


@pytest.mark.parametrize("columns", [None, [0, 2]])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", sorted(pairwise.PAIRWISE_KERNEL_FUNCTIONS))
def test_named_kernels_are_those_of_scikit_learn(name: str, container: Any, columns: Any) -> None:
    """But for the width of "rbf", which is the median distance."""
    X = np.abs(np.random.default_rng(0).standard_normal((12, 4)))
    X = X if columns is None else X[:, columns]
    if container is not np.asarray and "chi2" in name:
        pytest.skip("scikit-learn's chi2 takes dense rows")
    kernel = as_kernel(name).resolve(container(X))
    options = {"gamma": kernel.width**-2} if name == "rbf" else {}
    expected = pairwise.pairwise_kernels(X, X[:5], metric=name, **options)
    np.testing.assert_allclose(kernel(container(X), container(X[:5])), expected, rtol=1e-10)
    wide = np.column_stack([X, np.ones(12)])
    restricted = as_kernel(name).on(list(range(X.shape[1]))).resolve(wide)
    np.testing.assert_allclose(restricted(wide, wide[:5]), expected, rtol=1e-10)


def test_a_polynomial_kernel_without_gamma_must_be_resolved() -> None:
    kernel = Polynomial(gamma=None)
    assert kernel.parameters == {"coef0": 1.0}
    with pytest.raises(InvalidInputError, match=r"depends on the training set.*resolve"):
        kernel(np.ones((2, 3)))
    assert kernel.resolve(np.ones((2, 4))) == Polynomial(gamma=0.25)
