"""Estimators and Dask: the model is that of the same chunks at home, and predictions are lazy."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge, open_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
SIZES = (200, 7, 0, 93, 150, 50)


def rings(n_classes=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(SIZES), 4))
    edges = [0.8, 1.6][: n_classes - 1]
    return X, np.array(["in", "mid", "out"])[np.digitize(np.hypot(*X.T[:2]), edges)]


def parts(*arrays, sizes=SIZES):
    ends = np.cumsum(sizes)
    return [tuple(each[e - n : e] for each in arrays) for n, e in zip(sizes, ends, strict=True)]


def estimator(**options):
    given = {"criterion": "rkda", "regularization": 1e-3, **options}
    return MultipleKernelDiscriminant([RBF(width=1.0), Laplace(width=2.0)], **given)


def table():
    X, y = rings()
    rng = np.random.default_rng(1)
    town = rng.choice(["Bath", "Ely"], len(X)).astype(object)
    town[-40:] = "Wells"  # in the last partition only
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=town, y=y)
    frame.loc[3, "a"] = np.nan
    return frame


def partitions(frames):
    return dd.from_map(lambda i: frames[i], range(len(frames)), meta=frames[0].iloc[:0])


def same(one, other, X, tol=1e-8):
    assert np.allclose(one.kernel_weights_, other.kernel_weights_, rtol=0, atol=tol)
    assert np.isclose(one.regularization_, other.regularization_, rtol=tol)
    for name in PREDICTIONS[1:]:
        first, second = getattr(one, name)(X), getattr(other, name)(X)
        assert np.allclose(first, second, rtol=tol, atol=tol), name
    assert (one.predict(X) == other.predict(X)).all()


def test_the_model_is_that_of_the_same_chunks_at_home():
    X, y = rings()
    weights = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
    one = estimator().fit(open_rows(parts(X, y, weights)))
    rows = da.from_array(X, chunks=(SIZES, 2))
    given = (da.from_array(each, chunks=(SIZES,)) for each in (y, weights))
    seen = []
    other = estimator(callback=seen.append).fit(rows, *given)
    same(one, other, X)
    rows_seen = [step for step in seen if hasattr(step, "fraction")]
    assert rows_seen[-1].fraction == 1.0
    assert {step.stage for step in rows_seen} == {0, 1}


def test_the_default_learns_from_a_dataframe_with_a_category_that_comes_late():
    frame = table()
    pieces = [piece for (piece,) in parts(frame)]
    one = MultipleKernelDiscriminant().fit(open_rows(pieces, "y"))
    away = partitions(pieces)
    other = MultipleKernelDiscriminant().fit(away, "y")
    assert "town=Wells" in other.encoder_.get_feature_names_out().tolist()
    rows = frame.drop(columns="y")
    same(one, other, rows)
    lazy = other.predict_proba(away.drop(columns="y"))
    assert np.allclose(lazy.compute(), other.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["array", "dataframe"])
def test_predictions_are_dask_arrays_of_the_same_partitions(kind, n_classes):
    X, y = rings(n_classes)
    frame = pd.DataFrame(X, columns=list("abcd"))
    rows, given = da.from_array(X, chunks=(SIZES, 3)), X
    if kind == "dataframe":
        rows, given = partitions([piece for (piece,) in parts(frame)]), frame
    clf = estimator().fit(given, y)
    for name in PREDICTIONS:
        found, expected = getattr(clf, name)(rows), getattr(clf, name)(given)
        assert isinstance(found, da.Array)
        assert found.dtype == expected.dtype
        assert found.ndim == expected.ndim
        assert found.shape[1:] == expected.shape[1:]
        assert found.numblocks[0] == len(SIZES)
        if kind == "array":
            assert found.chunks[0] == SIZES
        computed = found.compute()
        assert computed.dtype == expected.dtype
        if name == "predict":
            assert (computed == expected).all()
        else:
            assert np.allclose(computed, expected, rtol=0, atol=1e-12)
    assert (
        clf.predict(rows).map_blocks(np.char.upper).compute() == np.char.upper(clf.predict(given))
    ).all()


def test_numbers_of_a_dataframe_and_their_lazy_predictions():
    rows = table()
    rows["y"] = 1e4 + np.sin(rows["b"]) + (rows["town"] == "Ely")
    given = [part for (part,) in parts(rows)]
    frame = partitions(given)
    reg = MultipleKernelRidge().fit(frame, "y")
    here = MultipleKernelRidge().fit(open_rows([part for part in given if len(part)], "y"))
    X = rows.drop(columns="y")
    np.testing.assert_allclose(reg.predict(X), here.predict(X), rtol=0, atol=1e-2)
    assert reg.score(X, rows["y"]) > 0.9
    lazy = reg.predict(frame.drop(columns="y"))
    assert lazy.npartitions == frame.npartitions
    np.testing.assert_allclose(lazy.compute(), reg.predict(X), rtol=1e-12)


def test_nothing_is_computed_before_it_is_asked_for_and_later_fits_change_nothing():
    X, y = rings()
    clf = estimator().fit(X, y)
    asked = []

    def noted(block):
        asked.append(len(block))
        return block

    rows = da.from_array(X, chunks=(SIZES, 4)).map_blocks(noted, meta=np.empty((0, 4)))
    lazy, before = clf.predict_proba(rows), clf.predict_proba(X)
    assert asked == []
    clf.fit(X[:, ::-1], y[::-1])
    first = lazy[:100].compute()
    assert asked == [200]
    assert np.allclose(first, before[:100], rtol=0, atol=1e-12)


def test_the_model_is_one_task_for_all_partitions():
    X, y = rings()
    lazy = estimator().fit(X, y).predict(da.from_array(X, chunks=(100, 4)))
    models = [key for key in dict(lazy.__dask_graph__()) if str(key).startswith("model-")]
    assert len(models) == 1


def test_rows_that_cannot_be_predicted():
    X, y = rings()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = estimator().fit(frame, y)
    with pytest.raises(NotFittedError):
        estimator().predict(da.ones((3, 4)))
    with pytest.raises(ValueError, match="expecting 4 features"):
        estimator().fit(X, y).predict(da.ones((3, 5)))
    pieces = [piece for (piece,) in parts(frame)]
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(partitions(pieces).rename(columns={"a": "z"}))
    broken = frame.copy()
    broken.iloc[210, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"(?s)NaN.*row 0 of partition 3"):
        clf.predict(partitions([piece for (piece,) in parts(broken)])).compute()
    pieces[4] = pieces[4].drop(columns="c")
    lazy = clf.predict(partitions(pieces))
    with pytest.raises(InvalidInputError, match=r"partition 4 has no 'c'"):
        lazy.compute()


def test_a_fit_that_comes_to_no_end_leaves_the_model_as_it_was():
    X, y = rings()
    clf = estimator().fit(X, y)
    before, attributes = clf.predict_proba(X), set(vars(clf))

    def stop(progress):
        if getattr(progress, "stage", 0) == 1:
            raise KeyboardInterrupt

    clf.callback = stop
    with pytest.raises(KeyboardInterrupt):
        clf.fit(da.from_array(3.0 * X, chunks=(SIZES, 4)), y[::-1])
    assert set(vars(clf)) == attributes
    assert np.array_equal(clf.predict_proba(X), before)


def test_partial_fit_takes_rows_in_memory():
    with pytest.raises(InvalidInputError, match=r"Got a Dask collection\. Call fit"):
        estimator().partial_fit(da.ones((10, 4)), np.arange(10) % 2)
