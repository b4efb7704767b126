"""Groups of rows in chunks: a group is one group, in whatever chunks its rows are."""

import pickle

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant, open_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels import rbf_ladder
from discernel.learn.summed import GroupFolds
from discernel.rows.chunks import Chunk, Place
from discernel.rows.groups import group_hashes, group_labels
from discernel.targets import ClassTarget
from tests.groups.test_fit import patients

GIVEN = {"kernels": rbf_ladder(3, center=2.0), "criterion": "uniform"}


def mixed_rows(seed=0, n_patients=80, n_rows=10, shift=0.0):
    """Return rows of patients in a random order, so that patients straddle chunks."""
    X, y, groups = patients(seed, n_patients, n_rows, n_columns=4, shift=shift)
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order], y[order], groups[order]


@pytest.mark.parametrize(("options", "n_seeds"), [({}, 1), (GIVEN, 3)], ids=["default", "given"])
def test_noise_is_predicted_by_chance_only(options, n_seeds):
    claimed = []
    for seed in range(n_seeds):
        X, y, groups = mixed_rows(seed, 60, 8)
        rows = open_rows(X, y, groups=[f"patient {group}" for group in groups], chunk_rows=150)
        clf = MultipleKernelDiscriminant(**options).fit(rows)
        claimed.append(clf.expected_.accuracy)
        assert "groups" in clf.expected_.where
    assert 0.35 < np.mean(claimed) < 0.65
    alone = MultipleKernelDiscriminant(**options).fit(open_rows(X, y, chunk_rows=150))
    assert alone.expected_.accuracy > 0.9


def test_expected_accuracy_is_that_of_new_patients():
    claimed, found = [], []
    for seed in range(4):
        X, y, groups = mixed_rows(seed, 60, 5, shift=2.0)
        new_X, new_y, _ = mixed_rows(100 + seed, 200, 5, shift=2.0)
        clf = MultipleKernelDiscriminant(**GIVEN).fit(open_rows(X, y, groups=groups, chunk_rows=64))
        claimed.append(clf.expected_.accuracy)
        found.append(clf.score(new_X, new_y))
    assert abs(np.mean(claimed) - np.mean(found)) < 0.05


def test_held_out_scores_are_those_of_fits_without_the_fold():
    """With all rows as landmarks, sums without a fold are a fit in memory to the other rows."""
    X, y, groups = mixed_rows(0, 20, 6, shift=1.0)
    clf = MultipleKernelDiscriminant(**GIVEN, regularization=1e-2)
    clf.fit(open_rows(X, y, groups=groups, chunk_rows=50))
    state = clf.model_.stream.state
    sample = state.survey.drawn
    folds = state.folds(sample.groups)
    assert set(folds) == set(range(5))
    kernel = state.features.kernel
    K = sum(c * k(sample.X) for k, c in zip(kernel.kernels, kernel.coefficients, strict=True))
    n, centering = len(K), np.eye(len(K)) - 1 / len(K)
    lam = 1e-2 * np.trace(centering @ K @ centering)
    target = ClassTarget.from_labels(sample.y)
    scores = clf.discriminant_.training_scores
    for fold in range(5):
        outside, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        system = np.ones((len(outside) + 1, len(outside) + 1))
        system[:-1, :-1] = K[np.ix_(outside, outside)] + lam * np.eye(len(outside))
        system[-1, -1] = 0.0
        found = np.linalg.solve(system, np.append(target.scores[outside, 0], 0.0))
        expected = K[np.ix_(inside, outside)] @ found[:-1] + found[-1]
        expected -= target.scores[outside, 0].mean()  # shifted to the mean of all rows, 0
        np.testing.assert_allclose(scores[inside, 0], expected, atol=1e-4)
    assert n == len(X)


def test_chunks_files_and_frames_give_the_same_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, groups = mixed_rows(1, 40, 8, shift=1.0)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(patient=groups, y=y)
    (tmp_path / "rows").mkdir()
    for part in range(4):
        path = tmp_path / "rows" / f"{part}.csv"
        frame[80 * part : 80 * (part + 1)].to_csv(path, index=False)
    first = MultipleKernelDiscriminant(**GIVEN).fit(open_rows(X, y, groups=groups, chunk_rows=80))
    pieces = [(X[i : i + 80], y[i : i + 80], None, groups[i : i + 80]) for i in range(0, 320, 80)]
    ways = {
        "frame": open_rows(frame, "y", groups="patient", chunk_rows=33),
        "files": open_rows(tmp_path / "rows", "y", groups="patient"),
        "frames": open_rows([frame[:200], frame[200:]], "y", groups="patient"),
        "tuples": open_rows(pieces),
    }
    for way, rows in ways.items():
        clf = MultipleKernelDiscriminant(**GIVEN).fit(rows)
        assert clf.n_features_in_ == 4, way
        assert clf.expected_.accuracy == pytest.approx(first.expected_.accuracy, abs=0.03), way
        assert "groups" in clf.expected_.where, way


def test_dask_partitions_share_groups():
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y, groups = mixed_rows(1, 40, 8, shift=0.0)
    names = [f"p{group}" for group in groups]
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(patient=names, y=y)
    rows = dataframe.from_pandas(frame, npartitions=3)
    by_name = MultipleKernelDiscriminant(**GIVEN).fit(rows, "y", groups="patient")
    assert by_name.n_features_in_ == 4
    series = MultipleKernelDiscriminant(**GIVEN).fit(
        rows[list("abcd")], rows["y"], groups=rows["patient"]
    )
    assert series.expected_.accuracy == pytest.approx(by_name.expected_.accuracy, abs=1e-9)
    assert by_name.expected_.accuracy < 0.7


def test_rows_may_be_added_to_groups():
    X, y, groups = mixed_rows(2, 60, 12)
    clf = MultipleKernelDiscriminant(**GIVEN)
    for part in np.array_split(np.arange(len(X)), 4):
        clf.partial_fit(X[part], y[part], classes=[0, 1], groups=groups[part])
        assert "groups" in clf.expected_.where
    assert clf.expected_.accuracy < 0.7
    whole = MultipleKernelDiscriminant(**GIVEN).partial_fit(X, y, groups=groups)
    assert whole.expected_.accuracy < 0.7
    sums, parts = clf.model_.stream.state.sums, clf.model_.stream.state.parts
    assert sums.n_rows == len(X) == sum(part.n_rows for part in parts)
    assert MultipleKernelDiscriminant(**GIVEN).partial_fit(X, y).expected_.accuracy > 0.9
    before = clf.expected_
    clf.partial_fit(X[:50], y[:50], groups=groups[:50], forget=0.5)
    assert clf.expected_ != before


def test_calls_with_and_without_groups_are_refused():
    X, y, groups = mixed_rows(3, 20, 6)
    clf = MultipleKernelDiscriminant(**GIVEN).partial_fit(X, y, groups=groups)
    with pytest.raises(InvalidInputError, match="Either all rows have groups, or none"):
        clf.partial_fit(X, y)
    clf = MultipleKernelDiscriminant(**GIVEN).partial_fit(X, y)
    with pytest.raises(InvalidInputError, match="Either all rows have groups, or none"):
        clf.partial_fit(X, y, groups=groups)
    one = MultipleKernelDiscriminant(**GIVEN).partial_fit(X[:1], y[:1], [0, 1], groups=groups[:1])
    with pytest.raises(InvalidInputError, match="Either all calls of partial_fit have groups"):
        one.partial_fit(X, y)
    one.partial_fit(X, y, groups=groups)
    assert one.expected_ is not None


def test_bad_groups_in_chunks_are_refused():
    X, y, groups = mixed_rows(4, 20, 6)
    fit = MultipleKernelDiscriminant(**GIVEN).fit
    with pytest.raises(InvalidInputError, match="contains labels, weights and groups"):
        fit(open_rows(X, y), groups=groups)
    with pytest.raises(InvalidInputError, match="at least two groups"):
        fit(open_rows(X, y, groups=np.zeros(len(X))))
    with pytest.raises(InvalidInputError, match="Are the groups the classes"):
        fit(open_rows(X, y, groups=y))
    with pytest.raises(InvalidInputError, match=r"shape \(120,\). Got shape \(119,\)"):
        open_rows(X, y, groups=groups[1:])
    missing = [None, *groups[1:]]
    with pytest.raises(
        InvalidInputError, match=r"missing value for row 0.*Row 0 here is row 50 of X"
    ):
        Chunk.of(X, y, None, Place("X", 0, 50), missing)
    with pytest.raises(InvalidInputError, match="Arrays have no column names"):
        fit(open_rows([(X, y)], groups="patient"))


def test_labels_have_the_same_number_in_all_chunks():
    def hashes(labels):
        return group_hashes(group_labels(labels, len(labels))).tolist()

    assert hashes([3, 1]) == hashes(np.array([3.0, 1.0])) == hashes(np.array([3, 1], np.int8))
    assert hashes([3.0, "a"])[0] == 3
    assert hashes(["a", "b"]) == hashes(np.array(["a", "b"])) == hashes(["b", "a"])[::-1]
    assert len(set(hashes([("a", 1), ("a", 2), 0.5, "0.25", float("inf")]))) == 5
    again = group_hashes(np.array(hashes(["a", "b"])))
    assert again.tolist() == hashes(["a", "b"])


def test_few_groups_are_dealt_and_others_hashed():
    target = ClassTarget.from_labels(np.arange(12) % 2)
    folds = GroupFolds.of(target, np.repeat([10, 20, 30], 4))
    assert sorted(folds(np.array([10, 20, 30]))) == [0, 1, 2]
    others = folds(np.arange(1000, 2000))
    assert set(others) == {0, 1, 2}
    np.testing.assert_array_equal(folds(np.arange(1000, 2000)[::-1]), others[::-1])


def test_pickled_streams_take_more_groups():
    X, y, groups = mixed_rows(5, 30, 6)
    clf = MultipleKernelDiscriminant(**GIVEN).partial_fit(X, y, groups=groups)
    loaded = pickle.loads(pickle.dumps(clf))
    for one in (clf, loaded):
        one.partial_fit(X[:60], y[:60], groups=groups[:60])
    assert loaded.expected_ == clf.expected_


def test_importances_of_streams_are_those_of_left_out_groups():
    rng = np.random.default_rng(0)
    X, y, groups = mixed_rows(6, 60, 6, shift=2.0)
    X = np.column_stack([X[:, :2], 3.0 * rng.normal(size=60)[groups] + 0.01 * rng.normal(size=360)])
    options = {"kernels": rbf_ladder(3, center=1.0), "criterion": "uniform"}
    alone, together = (
        MultipleKernelDiscriminant(**options).fit(open_rows(X, y, groups=each))
        for each in (None, groups)
    )
    assert alone.feature_importances_[2] > 0.15
    assert together.feature_importances_[2] < 0.1
    assert together.feature_importances_[0] > 0.8
