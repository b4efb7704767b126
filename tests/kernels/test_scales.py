"""Kernels of distances with a factor per column."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.arrays import Buffers
from discernel.bank import DenseBank, FeatureBank, TiledBank, gram_stack
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Exponential,
    Laplace,
    Linear,
    Standardized,
    pairs,
    resolve_kernels,
)
from discernel.kernels import distance as module
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import Decay
from discernel.testing import check_kernel

KINDS = [RBF, Exponential, Laplace]
SCALES = (0.5, 2.0, 0.0, 1.0)


def rows(n=40, columns=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, columns))


# ---- what they mean --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_kernel_of_scaled_rows(kind):
    X, Z = rows(), rows(9, seed=1)
    kernel, by = kind(width=2.0, scales=SCALES), np.array(SCALES)
    np.testing.assert_allclose(kernel(X), kind(width=2.0)(X * by), rtol=1e-12)
    np.testing.assert_allclose(kernel(X, Z), kind(width=2.0)(X * by, Z * by), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_kernel(kind):
    check_kernel(kind(width=2.0, scales=SCALES))
    check_kernel(kind(scales=[1.0, 0.0, 0.0, 0.0]))
    check_kernel(Standardized(kind(scales=SCALES)))
    check_kernel(kind(scales=[2.0, 0.5]).on([3, 0]))
    check_kernel(kind(scales=[2.0, 0.5, 1.3]).on([3, 0, 1]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_median_is_that_of_scaled_rows(kind):
    X, by = rows(), np.array(SCALES)
    expected = kind(width="0.5*median").resolve(X * by).width
    assert kind(width="0.5*median", scales=SCALES).resolve(X).width == pytest.approx(expected)
    assert kind().resolve(X).width != pytest.approx(2.0 * expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_scale_0_is_not_looked_at(kind):
    X = rows()
    wild = X.copy()
    wild[:, 2] = 1e300
    kernel = kind(scales=SCALES)
    assert kernel.resolve(wild) == kernel.resolve(X)
    np.testing.assert_array_equal(kernel.resolve(X)(wild), kernel.resolve(X)(X))
    ((_, (atom,)),) = kernel.resolve(X).terms()
    assert atom.view.of(X).shape == (40, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows(kind, container):
    X, Z = rows(), rows(9, seed=1)
    X[np.abs(X) < 0.7] = Z[np.abs(Z) < 0.7] = 0.0
    kernel = kind(scales=SCALES).resolve(X)
    assert kind(scales=SCALES).resolve(container(X)).width == pytest.approx(kernel.width)
    np.testing.assert_allclose(kernel(container(X)), kernel(X), atol=1e-7)
    np.testing.assert_allclose(kernel(container(Z), container(X)), kernel(Z, X), atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_standardized_columns_are_divided_first(kind):
    X = rows() * np.array([1.0, 10.0, 0.1, 1e4])
    made = Standardized(kind(scales=SCALES)).resolve(X)
    divided = X / np.array(made.spreads)
    np.testing.assert_allclose(made(X), kind(scales=SCALES).resolve(divided)(divided), rtol=1e-12)


def test_on_some_columns_there_is_one_scale_per_chosen_column():
    X = rows()
    made = RBF(width=2.0, scales=[2.0, 0.5]).on([3, 0])
    expected = RBF(width=2.0)(X[:, [3, 0]] * [2.0, 0.5])
    np.testing.assert_allclose(made(X), expected, rtol=1e-12)
    with pytest.raises(InvalidInputError, match=r"one scale per column, here 3\. Got 2"):
        RBF(width=2.0, scales=[2.0, 0.5]).on([0, 1, 2])(X)


# ---- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [[1, 2, 0], np.array([1.0, 2.0, 0.0]), (1.0, 2.0, 0.0)])
def test_they_are_stored_as_a_tuple(kind, given):
    kernel = kind(width=2.0, scales=given)
    assert kernel.scales == (1.0, 2.0, 0.0)
    assert all(type(scale) is float for scale in kernel.scales)
    same = kind(width=2.0, scales=(1.0, 2.0, 0.0))
    assert kernel == same
    assert hash(kernel) == hash(same)
    assert kernel != kind(width=2.0)
    assert kernel != kind(width=2.0, scales=(1.0, 2.0, 1.0))
    assert pickle.loads(pickle.dumps(kernel)) == copy.deepcopy(kernel) == kernel


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("scales", "words"),
    [
        ([1.0, -0.5], "-0.5 among them"),
        ([1.0, np.nan], "no finite number"),
        ([np.inf, 1.0], "no finite number"),
        ([0.0, 0.0], "zeros only"),
        ([], "shape"),
        (2.0, "shape"),
        ([[1.0, 2.0]], "shape"),
        ("many", "no finite number"),
    ],
)
def test_what_is_no_list_of_scales_is_refused(kind, scales, words):
    with pytest.raises(InvalidInputError, match=f"(?s)one per column, at least 0.*{words}"):
        kind(scales=scales)


@pytest.mark.parametrize("kind", KINDS)
def test_there_must_be_one_per_column(kind):
    with pytest.raises(InvalidInputError, match=r"one scale per column, here 4\. Got 2"):
        kind(width=1.0, scales=[1.0, 2.0])(rows())
    with pytest.raises(InvalidInputError, match=r"one scale per column, here 4\. Got 2"):
        kind(scales=[1.0, 2.0]).resolve(rows())


def test_repr_is_short():
    assert repr(RBF(width=2.0, scales=[1, 0.5])) == "RBF(width=2, scales=(1, 0.5))"
    many = repr(Laplace(scales=np.linspace(0.0, 1.0, 100)))
    assert many == "Laplace(width='median', scales=(0, ..., 1))"


@pytest.mark.parametrize("kind", KINDS)
def test_settings(kind):
    kernel = kind(width=2.0, scales=[1.0, 2.0])
    assert kernel.settings["scales"] == (1.0, 2.0)
    assert kernel.with_settings(gamma=3.0) == kind(gamma=3.0, scales=[1.0, 2.0])
    assert kernel.with_settings(scales=[3, 4]) == kind(width=2.0, scales=[3.0, 4.0])
    assert kernel.with_settings(scales=None) == kind(width=2.0)
    assert kernel.with_settings(scales=None, width="median") == kind()
    assert kernel.with_parameters(width=5.0) == kind(width=5.0, scales=[1.0, 2.0])
    assert kernel.parameters == {"width": 2.0}
    assert kernel.resolve(rows(columns=2)) == kernel


def test_a_search_over_scales():
    X = rows(120)
    y = (X[:, 0] > 0).astype(int)
    noisy = X * np.array([1.0, 5.0, 5.0, 5.0])
    grid = {"kernel__scales": [None, [0.0, 1.0, 1.0, 1.0], (1.0, 0.0, 0.0, 0.0)]}
    search = GridSearchCV(KernelDiscriminant(RBF()), grid, cv=3).fit(noisy, y)
    assert search.best_params_ == {"kernel__scales": (1.0, 0.0, 0.0, 0.0)}
    assert search.best_estimator_.get_params()["kernel__scales"] == (1.0, 0.0, 0.0, 0.0)
    assert clone(search.best_estimator_).kernel == RBF(scales=(1.0, 0.0, 0.0, 0.0))
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(noisy), search.predict_proba(noisy))


def test_kernels_that_were_pickled_before_there_were_scales():
    old = RBF(width=2.0)
    vars(old).pop("scales")
    assert old == RBF(width=2.0)
    np.testing.assert_array_equal(old(rows()), RBF(width=2.0)(rows()))


# ---- shared ----------------------------------------------------------------------------------


def groups():
    """Return ladders on plain and on scaled columns, of two distances, standardized."""
    ladder = [f"{2.0**k}*median" for k in range(-2, 3)]
    return [
        Standardized(kind(width=width, scales=scales))
        for kind in (RBF, Laplace)
        for scales in (None, SCALES)
        for width in ladder
    ] + [Standardized(Exponential()), Standardized(Exponential(scales=SCALES)), Linear()]


def test_kernels_of_the_same_scales_share_a_matrix_and_others_do_not():
    kernels = [RBF(width=1.0, scales=SCALES), Exponential(width=1.0, scales=list(SCALES))]
    assert len(set(KernelSet(kernels).keys)) == 1
    options = [{}, {"scales": SCALES}, {"scales": (1.0,) * 4}]
    different = [RBF(width=1.0, **one) for one in options]
    different += [Laplace(width=1.0, **one) for one in options[:2]]
    assert len(set(KernelSet(different).keys)) == 5
    together = KernelSet(resolve_kernels(groups(), rows()))
    assert sorted(len(steps) for steps in together.groups.values()) == [1, 5, 5, 6, 6]


def test_nothing_is_computed_twice(monkeypatch):
    """One matrix of distances per group, and one exponential per ladder; the others are powers."""
    X, calls = rows(), []

    def watch(place, name):
        right = getattr(place, name)

        def watched(*args, **options):
            calls.append(name)
            return right(*args, **options)

        monkeypatch.setattr(place, name, watched)

    watch(module, "median_distance")
    kernels = resolve_kernels(groups(), X)
    assert calls == ["median_distance"] * 4
    calls.clear()
    watch(pairs, "city_distances")
    watch(pairs.ShiftedRows, "squared_distances")
    watch(Decay, "write")
    together = KernelSet(kernels)
    list(together.matrices(together.prepare(X), None, Buffers()))
    counts = {name: calls.count(name) for name in calls}
    assert counts == {"city_distances": 2, "squared_distances": 2, "write": 6}


def test_all_ways_to_compute_them_agree():
    X = rows(60)
    kernels = resolve_kernels(groups(), X)
    expected = np.array([kernel(X) for kernel in kernels])
    np.testing.assert_allclose(gram_stack(kernels, X), expected, rtol=1e-10, atol=1e-12)
    dense = DenseBank(expected)
    weights = np.linspace(1.0, 2.0, len(kernels))
    for bank in (
        TiledBank(kernels, X, n_threads=2, cache_bytes=2**16),
        FeatureBank.from_kernels(kernels, X),
    ):
        np.testing.assert_allclose(bank.combined(weights), dense.combined(weights), atol=1e-8)


@pytest.mark.parametrize("bank", ["dense", "tiled"])
def test_an_estimator_takes_them(bank):
    X, by = rows(100), np.array(SCALES)
    y = (X[:, 1] + X[:, 3] ** 2 > 1.0).astype(int)
    options = {"criterion": "rkda", "regularization": 1e-2, "bank": bank}
    kernels = [RBF(scales=SCALES), Laplace(scales=SCALES), Exponential(scales=SCALES)]
    found = MultipleKernelDiscriminant(kernels, **options).fit(X, y)
    plain = MultipleKernelDiscriminant([RBF(), Laplace(), Exponential()], **options).fit(X * by, y)
    new = rows(20, seed=4)
    np.testing.assert_allclose(
        found.predict_proba(new), plain.predict_proba(new * by), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_subclass_with_another_distance_scales_what_it_is_given(kind):
    """Columns are not dropped before it has seen them."""
    metric = np.array([1.0, 2.0, 3.0, 4.0])

    class Other(kind):
        def __call__(self, X, Z=None):
            return super().__call__(X * metric, None if Z is None else Z * metric)

    X, kernel = rows(), Other(width=5.0, scales=SCALES)
    expected = kind(width=5.0)(X * metric * SCALES)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    np.testing.assert_allclose(gram_stack([kernel, kind(width=5.0)], X)[0], expected, rtol=1e-10)


def test_a_saved_model_keeps_them(tmp_path):
    pytest.importorskip("skops")
    from discernel.persistence import SavedModel, read_model, write_model
    from discernel.rows.columns import TableSchema

    X = rows(60)
    y = (X[:, 1] > 0).astype(int)
    kernels = [RBF(scales=SCALES), Standardized(Laplace(scales=SCALES)), Laplace()]
    options = {"criterion": "uniform", "regularization": 0.1}
    pipeline = make_pipeline(StandardScaler(), MultipleKernelDiscriminant(kernels, **options))
    made = SavedModel(pipeline.fit(X, y), TableSchema(dict.fromkeys("abcd", "number")), "y", "rows")
    again = read_model(write_model(made, tmp_path / "model.skops")).pipeline
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))
    assert again[-1].kernels == kernels
