"""Columns of texts and of numbers in one model: each kernel gets what it understands."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.model_selection import cross_val_score

from discernel import (
    KernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    SeparabilityClassifier,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Cosine, Function, Linear, Spectrum, as_kernel

SEEN: list = []


def shared_letters(A, B):
    """Return the cosine of the letter counts of texts, which are the only column."""
    SEEN.append((type(A), A.dtype, A.shape[1:], type(A[0, 0])))

    def counts(X):
        rows = np.array([[text.count(letter) for letter in "abcd"] for text in X[:, 0]], float)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return counts(A) @ counts(B).T


def mixed(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    texts = [
        "".join(rng.choice(list("abcd"), 9, p=np.roll([0.55, 0.15, 0.15, 0.15], k))) for k in y
    ]
    numbers = rng.standard_normal((n, 2)) + y[:, None] * [2.0, 0.0]
    return {"n": numbers[:, 0], "s": texts, "m": numbers[:, 1], "k": np.arange(n)}, y


KERNELS = {"s": Function(shared_letters).on(["s"]), "n": RBF().on(["n", "m"])}
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pandas strings": lambda data: pd.DataFrame(data).astype({"s": "string", "k": "Int64"}),
    "categories": lambda data: pd.DataFrame(data).astype({"s": "category"}),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_texts_and_numbers_are_fused(frame):
    data, y = mixed()
    X = FRAMES[frame](data)
    new = FRAMES[frame](mixed(seed=1)[0])
    clf = MultipleKernelDiscriminant(KERNELS, criterion="uniform", regularization=0.1)
    SEEN.clear()
    clf.fit(X, y)
    assert {kind[0] for kind in SEEN} == {np.ndarray}
    assert {kind[1:] for kind in SEEN} == {(np.dtype(object), (1,), str)}
    assert list(clf.feature_names_in_) == ["n", "s", "m", "k"]
    assert clf.n_features_in_ == 4
    assert clf.kernel_names_ == ["s", "n"]
    assert clf.score(new, y) > 0.9

    def stack(A, B):
        texts = [np.array(rows["s"], dtype=object)[:, None] for rows in (A, B)]
        numbers = [np.column_stack([rows["n"], rows["m"]]) for rows in (A, B)]
        width = clf.kernels_[1].parameters["width"]
        return np.stack([shared_letters(*texts), RBF(width=width)(*numbers)], axis=-1)

    plain = MultipleKernelDiscriminant("precomputed", criterion="uniform", regularization=0.1)
    plain.fit(stack(data, data), y)
    there = mixed(seed=1)[0]
    assert_allclose(clf.predict_proba(new), plain.predict_proba(stack(there, data)), atol=1e-10)


def test_texts_and_numbers_under_cross_validation_and_clone():
    data, y = mixed()
    clf = clone(MultipleKernelDiscriminant(KERNELS, regularization=0.1))
    assert cross_val_score(clf, pd.DataFrame(data), y, cv=3).mean() > 0.85


@pytest.mark.parametrize("bank", ["dense", "tiled"])
def test_banks_agree_on_mixed_tables(bank):
    data, y = mixed()
    X = pd.DataFrame(data)
    kernels = [*KERNELS.values(), Linear().on("n"), Cosine().on(["m", "n"])]
    kernels += [as_kernel(Matern()).on(["k", "m"]), RBF().on("n") + KERNELS["s"]]
    options = {"criterion": "uniform", "regularization": 0.1}
    found = MultipleKernelDiscriminant(kernels, bank=bank, **options).fit(X, y)
    expected = MultipleKernelDiscriminant(kernels, **options).fit(X, y)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize(
    "estimator",
    [
        SeparabilityClassifier(KERNELS, require_unlabelled=False, share=0.9, alpha=1e4),
        KernelDiscriminant(KERNELS["n"], regularization=0.1),
        KernelDiscriminant(KERNELS["s"] + KERNELS["n"], regularization=0.1),
        MultipleKernelRidge(KERNELS, criterion="uniform", regularization=0.1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_all_estimators_take_mixed_tables(estimator):
    data, y = mixed()
    new, y_new = mixed(seed=1)
    assert clone(estimator).fit(pd.DataFrame(data), y).score(pd.DataFrame(new), y_new) > 0.7


def test_columns_may_be_named_by_position_in_an_array_of_objects():
    data, y = mixed()
    frame = pd.DataFrame(data)
    kernels = [Function(shared_letters).on([1]), RBF().on([0, 2])]
    options = {"criterion": "uniform", "regularization": 0.1}
    by_position = MultipleKernelDiscriminant(kernels, **options).fit(frame.to_numpy(), y)
    by_name = MultipleKernelDiscriminant(list(KERNELS.values()), **options).fit(frame, y)
    assert_allclose(
        by_position.predict_proba(frame.to_numpy()), by_name.predict_proba(frame), atol=1e-12
    )


def test_a_function_gets_floats_where_all_of_its_columns_are_numbers():
    data, y = mixed()
    seen = []

    def products(A, B):
        seen.append((A.dtype, B.dtype))
        return A @ B.T

    KernelDiscriminant(Function(products).on(["n", "k"]), regularization=0.1).fit(
        pd.DataFrame(data), y
    )
    assert set(seen) == {(np.dtype(float), np.dtype(float))}


def test_a_function_on_all_columns_gets_them_as_they_are():
    data, y = mixed()
    seen = []

    def kernel(A, B):
        seen.append(A[0].tolist())
        return np.equal.outer(A[:, 1], B[:, 1]).astype(float) + np.outer(A[:, 0], B[:, 0])

    kernel = Function(kernel)
    KernelDiscriminant(kernel, regularization=0.1).fit(pd.DataFrame(data), y)
    assert seen[0] == [data["n"][0], data["s"][0], data["m"][0], 0.0]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(), r"RBF\(width='median'\)"),
        (RBF(width=1.0), r"RBF\(width=1\)"),
        (Linear().on(["n", "s"]), r"Linear\(\)"),
        (2.0 * Cosine(), r"Cosine\(\)"),
        (Function(shared_letters).on("s") + RBF(width=1.0), r"RBF\(width=1\)"),
        (RBF(width=1.0).on("s").named("mine"), r"RBF\(width=1\)"),
    ],
)
def test_a_numeric_kernel_on_texts_is_refused(kernel, name, frame):
    data, y = mixed()
    clf = KernelDiscriminant(kernel, regularization=0.1)
    with pytest.raises(InvalidInputError, match=rf"{name} needs numbers, but the column 's' holds"):
        clf.fit(frame(data), y)


def test_new_rows_must_be_of_the_kinds_of_training():
    data, y = mixed()
    X = pd.DataFrame(data)
    clf = MultipleKernelDiscriminant(KERNELS, regularization=0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"column 'm' must hold numbers, as in training"):
        clf.predict(X.assign(m="text"))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(X.rename(columns={"s": "other"}))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(X[["n", "s", "m"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        assert_array_equal(clf.predict(X.to_numpy()), clf.predict(X))
    with pytest.raises(ValueError, match="contains NaN"):
        clf.predict(X.assign(m=np.nan))
    # Texts that happen to look like numbers stay texts, in prediction as in training.
    clf = KernelDiscriminant(Function(lambda A, B: np.equal.outer(A[:, 0], B[:, 0]) * 1.0).on("s"))
    digits = X.assign(s=[str(k) for k in y])
    assert_array_equal(clf.fit(digits, y).predict(digits), y)
    assert clf.combined_kernel_.rows.others[0, 0] == "0"


def test_numeric_training_refuses_texts_in_new_rows():
    data, y = mixed()
    X = pd.DataFrame(data)[["n", "m"]]
    clf = KernelDiscriminant(RBF(), regularization=0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"column 'm' must hold numbers, as in training"):
        clf.predict(X.assign(m="text"))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_numbers_beside_texts_are_refused(bad):
    data, y = mixed()
    X = pd.DataFrame(data)
    X.loc[3, "m"] = bad
    with pytest.raises(ValueError, match="contains"):
        MultipleKernelDiscriminant(KERNELS, regularization=0.1).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        MultipleKernelDiscriminant(KERNELS, regularization=0.1).fit(pd.DataFrame(data), y[:-1])


def test_an_unused_column_of_texts_does_no_harm():
    data, y = mixed()
    X = pd.DataFrame(data)
    with_texts = KernelDiscriminant(RBF().on(["n", "m"]), regularization=0.1).fit(X, y)
    without = KernelDiscriminant(RBF(), regularization=0.1).fit(X[["n", "m"]], y)
    assert_allclose(with_texts.predict_proba(X), without.predict_proba(X[["n", "m"]]), atol=1e-12)


def test_columns_of_text_alone_are_picked_from_arrays_too():
    words = np.array([["ab"], ["abc"], ["xy"], ["xyz"]] * 4, dtype=object)
    y = np.array([0, 0, 1, 1] * 4)
    common = Function(
        lambda A, B: np.array([[float(len({*a} & {*b})) for b in B.ravel()] for a in A.ravel()])
    )
    for kernel in (common.on([0]), Spectrum(1).on([0])):
        clf = MultipleKernelDiscriminant([kernel], criterion="uniform", regularization=0.1)
        assert clf.fit(words, y).score(words, y) == 1.0
