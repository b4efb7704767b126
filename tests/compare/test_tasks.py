"""Splits: the same for all methods, every row in its place, nothing learned on held-out rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine

from discernel.compare import tasks
from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.tasks import load_split, read
from discernel.datasets import DataUnavailableError
from discernel.exceptions import InvalidInputError

X, Y = load_wine(return_X_y=True)
METHOD = Method("LDA", "lda")


def cell(data="wine", repetition=0, *, scaling="none", options=None, **splits):
    return Cell(Data(data, scaling, options=options or {}), METHOD, Splits(**splits), repetition)


def where(rows):
    """Return which rows of wine these are; no two of them are equal."""
    equal = (rows[:, None] == X).all(axis=2)
    assert (equal.sum(axis=1) == 1).all()
    return equal.argmax(axis=1)


def shares(labels):
    return np.bincount(labels, minlength=3) / len(labels)


def test_every_row_is_on_one_side():
    split = load_split(cell(train_size=0.6))
    rows = np.r_[where(split.X_train), where(split.X_test)]
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(X)))
    np.testing.assert_array_equal(Y[rows], np.r_[split.y_train, split.y_test])
    assert len(split.y_train) == int(0.6 * len(X))


def test_all_methods_see_the_same_split():
    first = cell(repetition=3, scaling="standard")
    other = replace(first, method=Method("ours", "discriminant", {"criterion": "fdr"}))
    one, two = load_split(first), load_split(other)
    for name in ("X_train", "X_test", "y_train", "y_test", "seed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_repetitions_differ_and_a_seed_shifts_them():
    one, two = load_split(cell(repetition=0)), load_split(cell(repetition=1))
    assert set(where(one.X_test)) != set(where(two.X_test))
    np.testing.assert_array_equal(load_split(cell(repetition=0, seed=1)).X_test, two.X_test)
    assert (one.seed, two.seed) == (0, 1)


def test_classes_keep_their_shares_if_asked():
    kept = [shares(load_split(cell(repetition=r)).y_test) for r in range(10)]
    np.testing.assert_allclose(kept, np.tile(shares(Y), (10, 1)), atol=1 / 36)
    free = [shares(load_split(cell(repetition=r, stratify=False)).y_test) for r in range(10)]
    assert np.abs(np.array(free) - shares(Y)).max() > 2 / 36


def test_train_size_as_a_number_of_rows():
    assert len(load_split(cell(train_size=60)).y_train) == 60
    assert len(load_split(cell(train_size=60.0)).y_train) == 60


def test_folds_hold_out_every_row_once_a_repetition():
    splits = {"n": 2, "folds": 5}
    found = [load_split(cell(repetition=r, **splits)) for r in range(10)]
    held_out = [where(split.X_test) for split in found]
    for turn in (held_out[:5], held_out[5:]):
        np.testing.assert_array_equal(np.sort(np.concatenate(turn)), np.arange(len(X)))
    assert set(held_out[0]) != set(held_out[5])
    for split in found:
        np.testing.assert_allclose(shares(split.y_test), shares(Y), atol=2 / 35)
        assert len(split.y_train) + len(split.y_test) == len(X)


# ---- scaling ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["standard", "minmax", "symmetric"])
def test_scaling_is_learned_on_training_rows(scaling, monkeypatch):
    asked = cell(scaling=scaling)
    before = load_split(asked)
    test_rows = where(load_split(cell()).X_test)
    changed = X.copy()
    changed[test_rows] = 1000.0 * changed[test_rows] + 7.0
    data = replace(read(asked.data), X=changed)
    monkeypatch.setattr(tasks, "read", lambda _: data)
    after = load_split(asked)
    np.testing.assert_array_equal(after.X_train, before.X_train)
    assert np.abs(after.X_test - before.X_test).min() > 1


@pytest.mark.parametrize(
    ("scaling", "low", "high"), [("minmax", 0.0, 1.0), ("symmetric", -1.0, 1.0)]
)
def test_range_of_scaled_features(scaling, low, high):
    split = load_split(cell(scaling=scaling))
    np.testing.assert_allclose(split.X_train.min(axis=0), low, atol=1e-12)
    np.testing.assert_allclose(split.X_train.max(axis=0), high, atol=1e-12)


def test_standard_scaling():
    split = load_split(cell(scaling="standard"))
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X_train.std(axis=0), 1.0)


def test_a_method_cannot_change_the_data_of_the_next():
    split = load_split(cell())
    split.X_train[:] = split.y_train[:] = 0
    again = load_split(cell())
    where(again.X_train)
    assert len(np.unique(again.y_train)) == 3


# ---- options of the data ---------------------------------------------------------------------


def test_only_some_rows_the_same_in_all_splits():
    kept = set()
    for repetition in range(3):
        split = load_split(cell(repetition=repetition, options={"rows": 90}))
        rows = where(np.r_[split.X_train, split.X_test])
        assert len(rows) == 90
        np.testing.assert_allclose(shares(Y[rows]), shares(Y), atol=1 / 90)
        kept.add(tuple(sorted(rows)))
    assert len(kept) == 1


def test_more_rows_than_there_are():
    split = load_split(cell(options={"rows": 10_000}))
    assert len(split.y_train) + len(split.y_test) == len(X)


# ---- the donor's split --------------------------------------------------------------------


def test_split_of_the_donor(monkeypatch):
    train = np.arange(len(Y)) % 3 == 0
    data = replace(read(Data("wine")), train=train)
    monkeypatch.setattr(tasks, "read", lambda _: data)
    split = load_split(cell(donor=True))
    np.testing.assert_array_equal(where(split.X_train), np.flatnonzero(train))
    np.testing.assert_array_equal(where(split.X_test), np.flatnonzero(~train))


def test_an_unknown_option_is_refused():
    with pytest.raises(InvalidInputError, match="option of data must be one of 'rows'"):
        load_split(cell(options={"classes": [1, 2]}))


def test_no_split_of_the_donor():
    with pytest.raises(InvalidInputError, match="this one has none"):
        load_split(cell(donor=True))


# ---- reading ---------------------------------------------------------------------------------


def test_a_data_set_is_read_once():
    assert read(Data("wine")) is read(Data("wine", "none", options={"rows": 50}))


def test_data_sets_that_cannot_be_read():
    with pytest.raises(InvalidInputError, match="Did you mean 'wine'"):
        read(Data("wien"))
    with pytest.raises(DataUnavailableError, match="private"):
        read(Data("feret"))


def test_split_keeps_views(monkeypatch):
    views = {"first": slice(0, 5), "second": slice(5, 13)}
    data = replace(read(Data("wine")), views=views)
    monkeypatch.setattr(tasks, "read", lambda _: data)
    split = load_split(cell())
    assert split.views == views


# ---- tables ------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A file with categories, one of which is in one row, and missing cells."""
    rng = np.random.default_rng(0)
    lines = [
        f"{x:.3f},{'' if i % 5 == 0 else i},{'rare' if i == 9 else 'uvw'[i % 3]},{i % 2}"
        for i, x in enumerate(rng.normal(size=60))
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,kind,y", *lines]))
    return path


def test_tables_are_encoded_as_the_training_rows_say(table):
    data = Data("t", file={"path": str(table)})
    frame = read(data).X
    for repetition in range(5):
        split = load_split(Cell(data, METHOD, Splits(), repetition))
        train, test = split.table_train, split.table_test
        assert sorted([*train.index, *test.index]) == list(range(60))
        # The slow and obvious way, with what is known of the training rows alone.
        known = frame.loc[train.index]
        expected = {"a": known["a"], "b": known["b"].fillna(known["b"].median())}
        expected["b is missing"] = known["b"].isna()
        expected |= {f"kind={kind}": known["kind"] == kind for kind in "uvw"}
        expected["kind is other"] = known["kind"] == "rare"
        columns = np.array([np.asarray(cells, dtype=float) for cells in expected.values()]).T
        deviations = np.where(columns.std(axis=0) > 0, columns.std(axis=0), 1.0)
        np.testing.assert_allclose(
            split.X_train, (columns - columns.mean(axis=0)) / deviations, atol=1e-12
        )
        assert split.columns == ("a", "b", "b", "kind", "kind", "kind", "kind")
        assert split.X_test.shape == (12, 7)
        assert split.as_read.X_test is test
        assert split.as_read.columns == ("a", "b", "kind")


def test_numbers_are_no_table(table):
    split = load_split(cell(scaling="standard"))
    assert split.table_train is None
    assert split.as_read is split


def test_views_with_missing_cells_keep_their_columns(tmp_path):
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    one[::3, 1] = np.nan
    np.savez(tmp_path / "v.npz", one=one, two=two, y=np.arange(40) % 2)
    data = Data("v", file={"path": str(tmp_path / "v.npz")})
    split = load_split(Cell(data, METHOD, Splits(), 0))
    assert split.views == {"one": slice(0, 4), "two": slice(4, 6)}
    assert np.isfinite(split.X_train).all()
