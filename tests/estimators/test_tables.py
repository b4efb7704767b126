"""Tables as they are: with ``kernels="auto"``, any columns go into `fit`."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    SeparabilityClassifier,
)
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning
from discernel.kernels import RBF, Laplace
from discernel.tables import TableEncoder

QUICK = {"criterion": "uniform", "regularization": 0.1}


def table(n=120, seed=0, frame=pd.DataFrame):
    """Return rows of every kind, with missing cells, and classes that depend on three columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    height = rng.normal(170.0, 10.0, n) + 8.0 * y
    height[rng.random(n) < 0.1] = np.nan
    colour = np.where(rng.random(n) < 0.3, "grey", np.where(y, "red", "blue")).astype(object)
    colour[rng.random(n) < 0.1] = None
    X = {
        "height": [None if np.isnan(h) else float(h) for h in height],
        "colour": colour.tolist(),
        "member": (rng.random(n) < 0.2 + 0.6 * y).tolist(),
        "rooms": rng.integers(1, 6, n).tolist(),
        "city": rng.choice(["A", "B", "C", "D"], n, p=[0.5, 0.3, 0.19, 0.01]).tolist(),
    }
    return frame(X), y


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "nullable": lambda X: pd.DataFrame(X).convert_dtypes(),
    "category": lambda X: pd.DataFrame(X).astype({"colour": "category", "city": "category"}),
    "objects": lambda X: pd.DataFrame(X).astype(object).to_numpy(),
    "rows": lambda X: pd.DataFrame(X).astype(object).to_numpy().tolist(),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_table_goes_in_as_it_is(frame):
    expected = MultipleKernelDiscriminant().fit(*table())
    X, y = table(frame=FRAMES[frame])
    new, y_new = table(seed=1, frame=FRAMES[frame])
    clf = MultipleKernelDiscriminant().fit(X, y)
    assert clf.score(new, y_new) > 0.85
    assert_allclose(clf.predict_proba(new), expected.predict_proba(table(seed=1)[0]), atol=1e-12)
    assert clf.n_features_in_ == 5
    if hasattr(X, "columns"):
        assert list(clf.feature_names_in_) == ["height", "colour", "member", "rooms", "city"]
    assert isinstance(clf.encoder_, TableEncoder)


@pytest.mark.parametrize(
    "estimator",
    [
        MultipleKernelDiscriminant(**QUICK),
        MultipleKernelDiscriminant(criterion="rkda", bank="tiled"),
        MultipleKernelDiscriminant(bank="factored", **QUICK),
        MultiLabelKernelDiscriminant(),
        AKFDClassifier(nu=0.1),
        make_pipeline(
            LearnedKernelTransformer(**QUICK), MultipleKernelDiscriminant("precomputed", **QUICK)
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_all_estimators_take_tables(estimator):
    X, y = table()
    new, y_new = table(seed=1)
    assert clone(estimator).fit(X, y).score(new, y_new) > 0.8


def test_regression_takes_tables():
    X, y = table(300)
    target = 3.0 * y + X["rooms"].to_numpy()
    assert MultipleKernelRidge().fit(X[:200], target[:200]).score(X[200:], target[200:]) > 0.7


def explicit(X):
    """Return a scikit-learn encoding of the same table and what its columns are divided by."""
    words = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="?"),
        OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist", sparse_output=False),
    )
    steps = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), ["height"]),
        (words, ["colour", "city"]),
        ("passthrough", ["member", "rooms"]),
    ).fit(X)
    width = steps.transform(X).shape[1]
    spreads = np.ones(width)
    spreads[0] = X["height"].std(ddof=0)
    share = X["member"].mean()
    spreads[-2:] = np.sqrt(share * (1 - share)), X["rooms"].std(ddof=0)
    return lambda rows: np.asarray(steps.transform(rows), dtype=float) / spreads


def test_kernels_are_those_of_an_explicit_encoding():
    X, y = table()
    X["colour"] = X["colour"].astype(object).where(X["colour"].notna(), None)
    new = X.iloc[::-7]
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    encode = explicit(X)
    A, B = clf.encoder_.encode(new), clf.encoder_.encode(X)
    assert any("city is other" in name for name in clf.encoder_.get_feature_names_out())
    divisors = np.array(clf.kernels_[0].spreads)  # spreads over the scales of the metric
    scales = np.divide(clf.encoder_.spreads, divisors, where=divisors > 0, out=0.0 * divisors)
    # The same columns, in another order.
    ours = B / clf.encoder_.spreads
    scales = scales[[np.abs(ours - theirs[:, None]).sum(axis=0).argmin() for theirs in encode(X).T]]
    for made in clf.kernels_:
        expected = made.kernel(encode(new) * scales, encode(X) * scales)
        assert_allclose(made(A, B), expected, rtol=1e-9, atol=1e-12)


def test_a_category_counts_what_a_number_counts():
    """Kernels measure what the encoder says: a mismatch of a category, rare or not, is 2."""
    X = pd.DataFrame({"c": ["a"] * 50 + ["b"] * 8 + ["c"] * 2, "n": np.arange(60.0)})
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, np.arange(60) % 2)
    pair = pd.DataFrame({"c": ["a", "c", "new"], "n": 3.0})
    rows = clf.encoder_.encode(pair)
    assert clf.kernels_[0].spreads == clf.encoder_.spreads  # no metric
    for kernel in clf.kernels_[:-1]:
        power = 1 if isinstance(kernel.kernel, Laplace) else 2
        off = np.exp(-2.0 / kernel.parameters["width"] ** power)
        assert_allclose(kernel(rows), off + (1 - off) * np.eye(3), rtol=1e-12)


def test_counts_of_rows_do_not_change_what_a_category_counts():
    X = pd.DataFrame({"c": ["a"] * 50 + ["b"] * 8 + ["c"] * 2, "n": np.arange(60.0) % 7})
    counts = np.arange(60) % 3 + 1
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, np.arange(60) % 2, sample_weight=counts)
    assert clf.kernels_[0].spreads == clf.encoder_.spreads  # no metric


# ---- plain numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, np.ndarray.tolist])
def test_plain_numbers_are_as_they_were(frame):
    X, y = load_wine(return_X_y=True)
    X[:, 3] = np.round(X[:, 3])
    clf = MultipleKernelDiscriminant().fit(frame(X), y)
    plain = MultipleKernelDiscriminant().fit(X, y)
    assert clf.encoder_ is None
    assert_array_equal(clf.combined_kernel_.rows, X)
    assert_array_equal(clf.kernel_weights_, plain.kernel_weights_)
    assert_array_equal(clf.predict_proba(frame(X)), plain.predict_proba(X))


def test_cells_missing_in_prediction_only_become_the_median():
    X, y = load_wine(return_X_y=True)
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    new = X[::9].copy()
    new[:, 4] = np.nan
    filled = new.copy()
    filled[:, 4] = np.median(X[:, 4])
    assert_array_equal(clf.predict_proba(new), clf.predict_proba(filled))
    objects = np.where(np.isnan(new), None, new)
    assert_array_equal(clf.predict_proba(objects), clf.predict_proba(filled))
    objects[2, 1] = "text"
    with pytest.raises(InvalidInputError, match=r"'x1' must hold numbers, as in training. Got 'te"):
        clf.predict(objects)
    new[3, 2] = np.inf
    with pytest.raises(InvalidInputError, match=r"contains infinity.*'x2' has inf in row 3"):
        clf.predict(new)
    with pytest.raises(ValueError, match="expecting 13 features"):
        clf.predict(new[:, :4])


def test_numbers_with_missing_cells_in_training():
    X, y = load_wine(return_X_y=True)
    gone = X.copy()
    gone[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    clf = MultipleKernelDiscriminant().fit(gone, y)
    assert len(clf.encoder_.spreads) == 26
    assert clf.score(gone, y) > 0.9
    assert clf.fit(X, y).encoder_ is None  # nothing is left of the fit before
    assert_array_equal(
        clf.predict_proba(X), MultipleKernelDiscriminant().fit(X, y).predict_proba(X)
    )


def test_sparse_rows_stay_as_they_are():
    X, y = load_wine(return_X_y=True)
    X[X < 1.0] = 0.0
    clf = MultipleKernelDiscriminant(**QUICK).fit(sp.csr_matrix(X), y)
    assert clf.encoder_ is None
    bad = sp.csr_matrix(np.where(X > 1000.0, np.nan, X))
    with pytest.raises(ValueError, match="Input X contains NaN") as error:
        clf.fit(bad, y)
    assert "auto" not in str(error.value)  # which it is
    with pytest.raises(TypeError, match="dense data is required"):
        MultipleKernelDiscriminant(**QUICK).fit(*table()).predict(sp.csr_matrix(np.ones((2, 5))))


# ---- scikit-learn's contract -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "takes"),
    [
        (MultipleKernelDiscriminant(), True),
        (MultipleKernelRidge(), True),
        (AKFDClassifier(), True),
        (MultipleKernelDiscriminant("rbf"), False),
        (MultipleKernelDiscriminant([RBF()]), False),
        (MultipleKernelDiscriminant("precomputed"), False),
        (KernelDiscriminant(), False),
        (SeparabilityClassifier(require_unlabelled=False), False),
    ],
    ids=str,
)
def test_tags_say_what_is_taken(estimator, takes):
    tags = get_tags(estimator).input_tags
    assert (tags.allow_nan, tags.string) == (takes, takes)
    X, y = table(40)
    if takes:
        estimator.fit(X, y)
        return
    if tags.pairwise:
        return
    message = r"needs numbers.*kernels='auto', the default of MultipleKernelDiscriminant"
    with pytest.raises(InvalidInputError, match=message):
        estimator.fit(X[["city", "rooms"]], y)
    with pytest.raises(
        InvalidInputError, match=r"(?s)contains NaN.*kernels='auto', the default of"
    ):
        estimator.fit(X[["height", "rooms"]], y)
    with pytest.raises(InvalidInputError, match=r"(?s)could not convert.*kernels='auto', the defa"):
        estimator.fit(np.array([["a", "b"], ["c", "d"]] * 2), [0, 1, 0, 1])


def test_labels_that_are_missing_get_no_hint_about_columns():
    X, y = table(40)
    with pytest.raises(ValueError, match="Input y contains NaN") as error:
        MultipleKernelDiscriminant([RBF()]).fit(X[["rooms"]], np.where(y, np.nan, 0.0))
    assert "auto" not in str(error.value)


def test_columns_must_be_those_of_training():
    X, y = table()
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match=r"(?s)should match.*missing.*- city"):
        clf.predict(X.drop(columns="city"))
    with pytest.raises(ValueError, match=r"(?s)should match.*unseen.*- more"):
        clf.predict(X.assign(more=1))
    with pytest.raises(ValueError, match="must be in the same order"):
        clf.predict(X[X.columns[::-1]])
    with pytest.warns(UserWarning, match="but MultipleKernelDiscriminant was fitted with feature"):
        assert_array_equal(clf.predict(X.astype(object).to_numpy()), clf.predict(X))
    with pytest.raises(ValueError, match="5 features"), pytest.warns(UserWarning, match="valid"):
        clf.predict(X.astype(object).to_numpy()[:, :3])
    with pytest.raises(InvalidInputError, match="'rooms' must hold numbers, as in training"):
        clf.predict(X.assign(rooms="many"))


def test_labels_are_checked_as_ever():
    X, y = table()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MultipleKernelDiscriminant().fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        MultipleKernelDiscriminant().fit(X, None)
    with pytest.raises(InvalidInputError, match="1 sample"):
        MultipleKernelDiscriminant().fit(X[:1], y[:1])


def test_dates_are_learned_from_and_are_one_column():
    X, y = table()
    late = np.arange(len(X)) >= len(X) // 2
    days = pd.date_range("2020-01-01", periods=len(X), freq="97h")
    X = X.assign(day=days)
    y = np.where(late, "late", "early")
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    assert clf.encoder_.columns_[-1].parts == ("days", "year", "month", "weekday", "hour")
    assert clf.score(X, y) > 0.95
    assert clf.feature_importances_.shape == (X.shape[1],)
    assert clf.feature_importances_.argmax() == X.shape[1] - 1
    text = X.assign(day=days.strftime("%Y-%m-%d %H:%M"))
    np.testing.assert_allclose(clf.predict_proba(text), clf.predict_proba(X), atol=1e-12)
    again = MultipleKernelDiscriminant(**QUICK).fit(text, y)
    np.testing.assert_allclose(again.predict_proba(text), clf.predict_proba(X), atol=1e-9)


def test_columns_left_out_are_told_once_at_the_line_that_fits():
    X, y = table()
    X = X.assign(note=[f"note {i}" for i in range(len(X))])
    with pytest.warns(LeftOutColumnWarning, match="1 column was left out. 'note': text") as caught:
        clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert list(clf.encoder_.left_out) == ["note"]
    expected = MultipleKernelDiscriminant(**QUICK).fit(*table())
    assert_array_equal(clf.predict_proba(X), expected.predict_proba(table()[0]))


def test_cross_validation_search_clone_and_pickle():
    X, y = table(200)
    clf = MultipleKernelDiscriminant(**QUICK)
    assert cross_val_score(clf, X, y, cv=4).mean() > 0.85
    search = GridSearchCV(clf, {"regularization": [1e-2, 1e-1]}, cv=3).fit(X, y)
    assert search.best_estimator_.encoder_ is not None
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_array_equal(again.predict_proba(X), search.predict_proba(X))


def test_the_order_of_rows_does_not_matter():
    X, y = table()
    order = np.random.default_rng(0).permutation(len(y))
    clf = MultipleKernelDiscriminant(criterion="rkda", regularization=0.1).fit(X, y)
    other = clone(clf).fit(X.iloc[order], y[order])
    assert other.encoder_.columns_ == clf.encoder_.columns_
    assert_allclose(other.predict_proba(X), clf.predict_proba(X), atol=1e-5)


def test_what_the_caller_does_later_is_not_seen():
    X, y = table()
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    before = clf.predict_proba(X)
    given = X.copy()
    X.loc[:, "rooms"] = 0
    X.loc[:, "colour"] = "grey"
    assert_array_equal(clf.predict_proba(given), before)


def test_a_saved_model_has_its_encoder(tmp_path):
    skops = pytest.importorskip("skops.io")
    from discernel.cli import models

    X, y = table()
    X = X.assign(same=1)
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    path = tmp_path / "model.skops"
    skops.dump(clf, path)
    models._refuse_strange(path)
    again = skops.load(path, trusted=list(models._OURS))
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.encoder_.columns_ == clf.encoder_.columns_
    assert again.encoder_.left_out == {"same": "one value"}


# ---- real columns ------------------------------------------------------------------------------


def adult():
    path = Path(os.environ.get("DISCERNEL_DATA", "")) / "tables" / "adult.csv.gz"
    if not path.is_file():
        pytest.skip("needs tables/adult.csv.gz in the folder that DISCERNEL_DATA names")
    return path


@pytest.mark.data
def test_adult_as_pandas_and_polars_read_it():
    X = pd.read_csv(adult())
    y = X.pop("income")
    clf = MultipleKernelDiscriminant().fit(X[:800], y[:800])
    assert clf.score(X[800:2800], y[800:2800]) > 0.8
    assert "native_country is missing" in clf.encoder_.get_feature_names_out()
    assert "Scotland" in clf.encoder_.other_values(X)["native_country"]
    other = pl.read_csv(adult()).drop("income")
    by_polars = MultipleKernelDiscriminant().fit(other[:800], y[:800])
    assert_array_equal(by_polars.predict_proba(other[800:1000]), clf.predict_proba(X[800:1000]))
