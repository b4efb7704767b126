"""One pass: counts, values and a sample that do not depend on chunks, order or machines."""

from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from discernel.exceptions import InvalidInputError
from discernel.learn.labels import codes_of
from discernel.learn.survey import SurveyPass, row_keys
from discernel.rows.chunks import Chunk, Place
from discernel.streams import open_rows
from discernel.tables import TableEncoder


def mixed(n=3000):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "town": rng.choice(["York", "Bath"], n),
            "number": np.arange(n),
            "y": rng.choice(["a", "b"], n),
        }
    )
    frame.loc[n - 10 : n - 4, "town"] = "Ely"  # a category that comes late
    frame.loc[n - 3 :, "y"] = "rare"
    frame.loc[5, "age"] = np.nan
    return frame


def survey_of(source, **options):
    options = {"most": 200} | options
    return source.reduce(SurveyPass(**options))


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000, 3000])
def test_a_survey_counts_all_rows_whatever_the_chunks_are(chunk_rows):
    frame = mixed(300) if chunk_rows == 1 else mixed()
    found = survey_of(open_rows(frame, "y", chunk_rows=chunk_rows))
    assert found.n_rows == len(frame)
    assert found.totals.weights == frame["y"].value_counts().to_dict()
    age, town, _ = found.facts
    assert (age.n_known, age.n_missing) == (len(frame) - 1, 1)
    assert town.counts == frame["town"].value_counts().to_dict()
    keys = row_keys(Place("X"), len(frame), 0)
    kept = np.argsort(keys)[:200]
    for label in ("a", "b", "rare"):
        own = np.flatnonzero(frame["y"] == label)
        kept = np.union1d(kept, own[np.argsort(keys[own])[:20]])
    kept = kept[np.argsort(keys[kept])]
    assert found.sample.X["number"].tolist() == kept.tolist()
    assert found.sample.y.tolist() == frame["y"].iloc[kept].tolist()


def test_a_survey_does_not_depend_on_the_order_of_the_reduction():
    fold, source = SurveyPass(most=100), open_rows(mixed(), "y", chunk_rows=250)
    parts = [fold.add(fold.start(), chunk) for chunk in source.chunks()]
    one, other = reduce(fold.merge, parts), reduce(fold.merge, parts[::-1])
    assert one.totals.weights == other.totals.weights
    assert one.sample.X["number"].tolist() == other.sample.X["number"].tolist()
    assert [f.counts for f in one.facts] == [f.counts for f in other.facts]


def test_keys_are_uniform_and_those_of_other_parts_are_others():
    u = 1.0 - np.exp(-row_keys(Place("a", 0), 100_000, 0))
    assert np.abs(np.sort(u) - np.arange(100_000) / 100_000).max() < 0.006
    for other in (row_keys(Place("a", 1), 100_000, 0), row_keys(Place("a", 0), 100_000, 1)):
        assert abs(np.corrcoef(u, other)[0, 1]) < 0.02
    assert np.array_equal(row_keys(Place("a", 3, 50), 10, 7), row_keys(Place("a", 3), 60, 7)[50:])


def test_classes_of_the_sample_weigh_what_they_weigh_in_all_rows():
    frame = mixed()
    found = survey_of(open_rows(frame, "y"))
    target = found.target(np.arange(len(found.sample)))
    expected = frame["y"].value_counts(normalize=True).sort_index()
    assert np.allclose(target.shares, expected)
    assert found.sample.y.tolist().count("rare") == 3
    everything = survey_of(open_rows(frame, "y"), most=10_000)
    assert everything.target(np.arange(3000)).row_weights.is_equal


def test_weights_are_relative_and_rows_of_weight_0_are_absent():
    X, y = np.arange(8.0)[:, None], np.array([0, 1] * 4)
    weights = np.array([1, 2, 0, 3, 1, 1, 2, 2])
    found = survey_of(open_rows(X, y, weights=weights, chunk_rows=3))
    assert found.n_rows == 7
    assert found.totals.weights == {0: 4.0, 1: 8.0}
    target = found.target(np.arange(7))
    order = found.sample.X[:, 0].astype(int)
    assert np.allclose(target.sample_weights.values, weights[order] * 7 / 12)


def test_a_value_that_comes_late_has_a_column_of_its_own_and_row_numbers_are_known():
    frame = mixed()
    found = survey_of(open_rows(frame, "y"), most=60)
    assert "Ely" not in set(found.sample.X["town"])
    with pytest.warns(UserWarning, match="number the rows"):
        encoder = TableEncoder().fit(found.sample.X, facts=found.facts)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["age", "town=Bath", "town=Ely", "town=York", "town is other"]


def test_too_many_values_are_left_to_the_sample(monkeypatch):
    monkeypatch.setattr("discernel.rows.cells._MOST_VALUES", 2)
    found = survey_of(open_rows(mixed(), "y", chunk_rows=100))
    assert found.facts[1].counts is None
    with pytest.warns(UserWarning, match="number the rows"):
        encoder = TableEncoder().fit(found.sample.X, facts=found.facts)
    assert "town=Bath" in encoder.get_feature_names_out().tolist()


# ---- faults ------------------------------------------------------------------------------------


def bad_chunk(cell, kind):
    X = np.ones((20, 2))
    X[7, 1] = cell
    if kind == "frame":
        X = pd.DataFrame(X, columns=["size", "age"])
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    return Chunk(X, np.arange(20) % 2, None, Place("data/part-812.parquet", 812))


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
@pytest.mark.parametrize("cell", [np.inf, np.nan])
def test_a_number_that_is_not_finite_is_named(cell, kind):
    fold = SurveyPass(takes_tables=np.isinf(cell))
    name = "age" if kind == "frame" else "x1"
    words = rf"column '{name}', row 7 of data/part-812\.parquet, counted from 0"
    with pytest.raises(InvalidInputError, match=words):
        fold.add(fold.start(), bad_chunk(cell, kind))


def test_a_missing_number_is_counted_where_tables_are_taken():
    fold = SurveyPass()
    assert fold.add(fold.start(), bad_chunk(np.nan, "frame")).facts[1].n_missing == 1


def test_labels_of_two_kinds_continuous_ones_and_none_are_refused():
    fold = SurveyPass()
    with pytest.raises(InvalidInputError, match="int and str"):
        _ = survey_of(open_rows([(np.ones((1, 1)), [1]), (np.ones((1, 1)), ["a"])])).totals.classes
    with pytest.raises(InvalidInputError, match="continuous"):
        survey_of(open_rows(np.ones((9000, 1)), np.arange(9000) + 0.5))
    with pytest.raises(InvalidInputError, match="must have labels"):
        fold.add(fold.start(), Chunk(np.ones((2, 1)), None, None, Place("X")))
    with pytest.raises(InvalidInputError, match="There must be rows"):
        survey_of(open_rows(lambda: iter([np.ones((0, 2))])))
    with pytest.raises(InvalidInputError, match=r"same number of columns\. Got 1 in the first"):
        survey_of(open_rows([(np.ones((1, 1)), [1]), (np.ones((1, 2)), [2])]))


def test_a_label_that_is_no_class_is_named():
    classes = np.array(["a", "bc"])
    assert codes_of(np.array(["bc", "a"], dtype=object), classes).tolist() == [1, 0]
    with pytest.raises(InvalidInputError, match="Got 'bcd' in part-3"):
        codes_of(np.array(["a", "bcd"], dtype=object), classes, "part-3")
    with pytest.raises(InvalidInputError, match="Got 3 in y"):
        codes_of(np.array([3]), classes)
