"""Dask collections: the sums are those of the same chunks at home, and faults name a partition."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from discernel.bank.sums import Labelled, SumPass
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.kernels.features import NystromMap
from discernel.learn.survey import SurveyPass
from discernel.streams import open_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SIZES = (30, 1, 0, 44, 12, 9, 20, 20, 20, 4)  # unequal, and one without rows
N = sum(SIZES)


def task():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = (np.hypot(*X.T[:2]) > 1.2).astype(int)
    y[SIZES[0] :][:1] = y[0]
    return X, y, rng.integers(0, 3, N).astype(float)


def chunks(*arrays, sizes=SIZES):
    ends = np.cumsum(sizes)
    return [
        tuple(each[end - n : end] for each in arrays) for n, end in zip(sizes, ends, strict=True)
    ]


def forgotten(array):
    """Return a Dask array that does not know how many rows its chunks have."""
    return array[da.ones(len(array), chunks=array.chunks[0]) > 0]


def frame(X, y, weights):
    return pd.DataFrame(X, columns=list("abc")).assign(y=y, weights=weights)


def partitions(frames):
    return dd.from_map(lambda i: frames[i], range(len(frames)), meta=frames[0].iloc[:0])


def collections():
    X, y, weights = task()
    rows = da.from_array(X, chunks=(SIZES, 2))
    parts = [part for (part,) in chunks(frame(X, y, weights))]
    table = partitions(parts)
    one = (da.from_array(each, chunks=(SIZES,)) for each in (y, weights))
    labels, numbers = one
    return {
        "array": (rows, labels, numbers),
        "unknown chunks": tuple(
            forgotten(each) for each in (rows.rechunk({1: -1}), labels, numbers)
        ),
        "y in memory": (rows, y, weights),
        "other chunks of y": (rows, labels.rechunk(50), numbers.rechunk(-1)),
        "columns": (table, "y", "weights"),
        "series": (table[["a", "b", "c"]], table["y"], table["weights"]),
    }


class Preparing:
    def __call__(self, chunk):
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        return Labelled(np.asarray(chunk.X), np.eye(2)[chunk.y], weights)


def summing(X):
    return SumPass(
        NystromMap([RBF(width=1.0), Linear()], [0.7, 0.3], X[:20]), 2, prepare=Preparing()
    )


@pytest.mark.parametrize("kind", list(collections()))
def test_sums_are_those_of_the_same_chunks_at_home(kind):
    X, y, weights = task()
    home, away = (
        open_rows(chunks(X, y, weights)),
        open_rows(*collections()[kind][:2], weights=collections()[kind][2]),
    )
    one, other = (source.reduce(summing(X)) for source in (home, away))
    assert one.n_rows == other.n_rows == N
    for name in ("products", "all_cross", "all_values", "diagonal"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", list(collections()))
def test_the_survey_draws_the_same_rows(kind):
    given = collections()[kind]
    away = open_rows(*given[:2], weights=given[2])
    fold = SurveyPass(seed=3, most=40)
    one, other = (source.reduce(fold) for source in (open_rows(chunks(*task())), away))
    assert one.totals.weights == other.totals.weights
    assert np.array_equal(one.sample.keys, other.sample.keys)
    assert np.array_equal(one.sample.X, np.asarray(other.sample.X))
    assert np.array_equal(one.sample.weights, other.sample.weights)


def test_the_order_in_which_tasks_are_done_changes_no_bit():
    X, _, _ = task()
    given = collections()["array"]
    found = []
    for scheduler in ("sync", "threads", "threads"):
        with dask.config.set(scheduler=scheduler):
            found.append(open_rows(*given[:2]).reduce(summing(X)))
    assert all(np.array_equal(found[0].products, each.products) for each in found)


def test_merging_changes_nothing_that_another_task_made():
    from discernel.rows.dask import Sent, _merged, _Summary
    from discernel.rows.sources import Layout

    X, y, _ = task()
    fold = summing(X)
    states = [open_rows([pair]).reduce(fold) for pair in chunks(X, y) if len(pair[0])]
    before = [state.products.copy() for state in states]
    sent = Sent(Layout(None, 3), fold)
    twice = [_merged(sent, [None, *(_Summary(state, 1) for state in states)]) for _ in range(2)]
    assert np.array_equal(twice[0].state.products, twice[1].state.products)
    assert all(
        np.array_equal(*pair) for pair in zip(before, [s.products for s in states], strict=True)
    )


def test_a_summary_is_dropped_once_it_is_merged(monkeypatch):
    """Of 100 partitions, no more summaries are alive than two levels of the tree need."""
    import weakref

    import discernel.rows.dask as module

    alive, most = weakref.WeakSet(), 0

    class Counted(module._Summary):
        def __init__(self, *args):
            super().__init__(*args)
            nonlocal most
            alive.add(self)
            most = max(most, len(alive))

        __hash__ = object.__hash__

    monkeypatch.setattr(module, "_Summary", Counted)
    rows = da.ones((1000, 3), chunks=(10, 3))
    with dask.config.set(scheduler="sync"):
        open_rows(rows, da.zeros(1000, chunks=10, dtype=int)).reduce(summing(np.eye(3)))
    assert 8 < most <= 24


def test_progress_counts_the_rows_of_all_partitions():
    given, seen = collections()["array"], []
    source = open_rows(*given[:2])
    source.reduce(SurveyPass(), seen.append)
    assert source.n_rows == source.estimated_n_rows == N
    assert (np.diff(seen) > 0).all()
    assert len(seen) == np.count_nonzero(SIZES)
    assert seen[-1] == N
    unknown = open_rows(*collections()["columns"][:2])
    assert unknown.n_rows is unknown.estimated_n_rows is None
    next(unknown.chunks())
    assert unknown.estimated_n_rows == SIZES[0] * len(SIZES)


def test_chunks_and_maps_come_in_order():
    X, y, _ = task()
    source = open_rows(*collections()["series"][:2])
    assert np.array_equal(np.concatenate([chunk.X for chunk in source.chunks()]), X)
    assert np.array_equal(np.concatenate(list(source.map(lambda chunk: chunk.y))), y)
    assert len(list(source.map(lambda chunk: chunk.y))) == np.count_nonzero(SIZES)


def test_parquet_and_text_come_through_dataframes(tmp_path):
    table = pd.DataFrame({"a": np.arange(40.0), "town": ["x", "y"] * 20, "y": ["no", "yes"] * 20})
    table.loc[30:, "town"] = "late"
    for i in range(4):
        table.iloc[10 * i :][:10].to_parquet(tmp_path / f"{i}.parquet")
    found = open_rows(dd.read_parquet(tmp_path), "y").reduce(SurveyPass())
    assert found.totals.weights == {"no": 20, "yes": 20}
    assert found.facts[1].counts == {"x": 15, "y": 15, "late": 10}


def test_sparse_partitions():
    X, y, _ = task()
    rows = da.from_array(X, chunks=(SIZES, 3)).map_blocks(sparse.csr_matrix)
    found = open_rows(rows, da.from_array(y, chunks=(SIZES,))).reduce(SurveyPass())
    assert found.n_rows == N
    assert found.facts is None


# ---- faults ------------------------------------------------------------------------------------


def test_a_cell_that_cannot_be_is_named_by_partition_and_row():
    X = np.ones((900, 3))
    X[812 + 7, 1] = np.nan
    sizes = (1,) * 812 + (88,)
    y = np.arange(900) % 2
    rows, labels = da.from_array(X, chunks=(sizes, 3)), da.from_array(y, chunks=(sizes,))
    with pytest.raises(InvalidInputError, match="Got nan in column 'x1', row 7 of partition 812,"):
        open_rows(rows, labels).reduce(SurveyPass(takes_tables=False))
    y = np.where(np.arange(900) == 819, np.nan, y)
    with pytest.raises(InvalidInputError, match=r"label\. Got .*nan.* in row 7 of partition 812"):
        open_rows(rows, y).reduce(SurveyPass())


def test_a_column_that_is_missing_or_moved_in_one_partition():
    X, y, weights = task()
    parts = [part for (part,) in chunks(frame(X, y, weights))]
    whole = open_rows(partitions(parts), "y").reduce(SurveyPass())
    less = open_rows(partitions(parts), "y", drop=["b"]).reduce(SurveyPass())
    assert list(less.sample.X.columns) == ["a", "c", "weights"]
    parts[3] = parts[3][["c", "y", "weights", "b", "a"]]
    moved = open_rows(partitions(parts), "y").reduce(SurveyPass())
    assert np.array_equal(whole.sample.X, moved.sample.X)
    parts[3] = parts[3].drop(columns="b")
    with pytest.raises(InvalidInputError, match=r"same columns\. partition 3 has no 'b'"):
        open_rows(partitions(parts), "y").reduce(SurveyPass())
    parts[3] = parts[3].drop(columns="y")
    with pytest.raises(InvalidInputError, match=r"'y' must be in every chunk\. partition 3 has"):
        open_rows(partitions(parts), "y").reduce(SurveyPass())


def test_blocks_that_are_not_as_their_array_says():
    wrong = da.ones((20, 3), chunks=10).map_blocks(lambda X: X[:, :2], chunks=((10, 10), (3,)))
    with pytest.raises(
        InvalidInputError, match=r"Got 3 in the first, and shape \(10, 2\) in partition \d"
    ):
        open_rows(wrong, np.arange(20) % 2).reduce(SurveyPass())


def test_labels_and_weights_that_do_not_fit():
    X, y, weights = task()
    rows = da.from_array(X, chunks=(SIZES, 3))
    table = partitions([part for (part,) in chunks(frame(X, y, weights))])
    short = da.from_array(y, chunks=((N,),))
    for given, match in [
        ((rows, y[1:]), f"y must have one entry per row. Got {N} rows and {N - 1}"),
        ((rows, da.ones((N, 1))), "y should be a 1d array"),
        ((rows, "y"), "Arrays have no column names. Got the column 'y'"),
        ((table, y), "y must be a Dask collection with the partitions of X. Got ndarray"),
        ((table, table[["y"]]), "y should be a 1d array.*select one column"),
        ((table, short), f"y must have as many partitions as X. Got 1 and {len(SIZES)}"),
        ((table, "nothing"), "'nothing' must be in every chunk. the dataframe has 'a', 'b'"),
        ((rows[:, 0], y), "two-dimensional table"),
    ]:
        with pytest.raises(InvalidInputError, match=match):
            open_rows(*given)
    mixed = forgotten(rows), forgotten(da.from_array(y, chunks=(SIZES[::-1],)))
    with pytest.raises(InvalidInputError, match=r"one label per row\. Got \d+ rows and \d+ .*in p"):
        open_rows(*mixed).reduce(SurveyPass())
    numbers = forgotten(da.from_array(weights, chunks=(SIZES[::-1],)))
    with pytest.raises(InvalidInputError, match=r"one weight per row\. Got \d+ rows and"):
        open_rows(
            forgotten(rows), forgotten(da.from_array(y, chunks=(SIZES,))), weights=numbers
        ).reduce(SurveyPass())


def test_no_rows_at_all():
    rows = da.ones((0, 3), chunks=(1, 3))
    with pytest.raises(
        InvalidInputError, match=r"There must be rows in every pass\. Got none from DaskSource"
    ):
        open_rows(rows, np.ones(0)).reduce(SurveyPass())


def test_memory_that_a_partition_does_not_fit_into():
    def much(block):
        raise MemoryError

    rows = da.ones((20, 3), chunks=10).map_blocks(much, dtype=float)
    with pytest.raises(InvalidInputError, match=r"does not fit into memory\. Make partitions sm"):
        open_rows(rows, np.arange(20) % 2).reduce(SurveyPass())


def test_dask_is_not_loaded_where_nobody_uses_it():
    code = (
        "import sys, discernel, numpy as np;"
        "discernel.MultipleKernelDiscriminant().fit(np.eye(20), np.arange(20) % 2);"
        "print([n for n in ('dask', 'distributed') if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
