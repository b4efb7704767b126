"""Fits from chunks: the same as in memory where that can be, in bounded memory, and said aloud."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, open_rows
from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import fit_discriminant, within_reach
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Cosine, Laplace, Linear
from discernel.learn.summed import StreamedFit
from discernel.streams import RowProgress
from discernel.targets import ClassTarget

PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")


def rings(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noise = 0.3 * rng.normal(size=n)
    y = np.array(["in", "mid", "out"])[np.digitize(np.hypot(*X.T[:2]) + noise, [0.8, 1.6])]
    return X, y


def explicit(**options):
    return MultipleKernelDiscriminant([RBF(width=1.0), Laplace(width=2.0)], **options)


# ---- the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("statistics", ["loo", "training"])
def test_with_all_rows_as_landmarks_the_fit_is_that_in_memory(statistics):
    """900 rows are all landmarks: kernels, weights, λ, statistics and predictions agree."""
    X, y = rings()
    options = {"criterion": "rkda", "regularization": 1e-3, "statistics": statistics}
    one = explicit(**options).fit(X, y)
    other = explicit(**options).fit(open_rows(X, y, chunk_rows=100))
    assert other.streamed_.rank == 900
    assert np.isclose(other.streamed_.captured, 1.0)
    assert np.allclose(one.kernel_weights_, other.kernel_weights_, atol=1e-6)
    assert np.allclose(
        one.learned_kernel_.coefficients, other.learned_kernel_.coefficients, rtol=1e-5
    )
    new = rings(200, seed=1)[0]
    for name in PREDICTIONS:
        first, second = getattr(one, name)(new), getattr(other, name)(new)
        if name == "predict":
            assert (first == second).mean() > 0.99
        else:
            assert np.allclose(first, second, rtol=1e-4, atol=1e-4), name


def test_the_fit_is_that_of_the_low_rank_kernel_of_all_rows():
    """Few landmarks: against a factorisation of the approximated matrix of all rows."""
    X, y = rings()
    clf = explicit(criterion="uniform", regularization=1e-4)
    clf = with_landmarks(60, clf, open_rows(X, y, chunk_rows=128))
    features = clf.model_.stream.state.features
    assert features.rank == 60
    F, target = features(X), ClassTarget.from_labels(y)
    bank = DenseBank((F @ F.T)[None], normalization="centered_trace")
    # λ is in units of the trace of the kernel itself, which the features have a part of
    ridge = np.full(len(X), 1e-4 / clf.streamed_.captured)
    fit = KernelLeastSquares(bank.system(np.ones(1), ridge), ridge, target.scores)
    assert np.allclose(clf.model_.scores(X), fit.fitted, rtol=0, atol=1e-8)
    keys = clf.model_.stream.state.survey.sample
    order = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in keys.X])
    expected = within_reach(fit.left_out_scores(fit.left_out_groups(target)), target)[order]
    assert np.allclose(clf.discriminant_.training_scores, expected, rtol=0, atol=1e-8)


def test_a_part_of_the_rows_has_the_training_statistics_of_all():
    """Of rows that are there three times, every third of them is the same."""
    X, y = rings(300)
    clf = explicit(statistics="training", regularization=1e-2)
    clf.fit(open_rows(np.tile(X, (3, 1)), np.tile(y, 3)))
    state = clf.model_.stream.state
    _, once = np.unique(state.survey.drawn.X, axis=0, return_index=True)
    assert len(once) == 300
    options = {"regularization": 1e-2, "fallback": None}
    found = StreamedFit(state, state.survey.target(once), once, **options)
    part = fit_discriminant(found, found.target, "training")
    assert np.allclose(part.means, clf.discriminant_.means, rtol=1e-6)
    assert np.allclose(part.scalings, clf.discriminant_.scalings, rtol=1e-6)


def with_landmarks(n, clf, source):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discernel.plan.costs.n_landmarks", lambda _: n)
        return clf.fit(source)


@pytest.mark.parametrize("chunk_rows", [37, 450])
def test_chunks_do_not_change_the_model(chunk_rows):
    X, y = rings()
    one = explicit().fit(open_rows(X, y))
    other = explicit().fit(open_rows(X, y, chunk_rows=chunk_rows))
    assert one.regularization_ == other.regularization_
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-8)


def test_the_default_learns_a_metric_and_knows_what_to_expect():
    X, y = rings(6000)
    clf = MultipleKernelDiscriminant().fit(open_rows(X, y, chunk_rows=1000))
    new, truth = rings(3000, seed=1)
    assert clf.bank_ == "stream"
    assert clf.feature_importances_[:2].sum() > 0.9
    assert clf.streamed_.n_rows == 6000
    assert clf.streamed_.rank == 1500
    assert "sample of rows that the kernel was not learned from" in clf.expected_.where
    assert clf.expected_.low - 0.01 < clf.score(new, truth) < clf.expected_.high + 0.01
    few = MultipleKernelDiscriminant().fit(X[:500], y[:500])
    assert clf.score(new, truth) > few.score(new, truth)


def test_few_rows_take_statistics_and_λ_from_the_folds():
    X, y = rings(500)
    clf = MultipleKernelDiscriminant().fit(open_rows(X, y))
    assert "folds" in clf.expected_.where
    memory = MultipleKernelDiscriminant().fit(X, y)
    assert abs(clf.score(*rings(2000, 1)) - memory.score(*rings(2000, 1))) < 0.02


@pytest.mark.parametrize("factor", [1.0, 0.3, 1e17, 1e200, 1e-200])
def test_whole_weights_count_as_in_memory_whatever_their_scale(factor):
    X, y = rings(400)
    weights = np.random.default_rng(0).integers(0, 3, 400)
    options = {"criterion": "uniform", "regularization": 1e-3}
    one = explicit(**options).fit(open_rows(X, y, weights=factor * weights, chunk_rows=90))
    other = explicit(**options).fit(X, y, sample_weight=weights)
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)
    found, expected = (each.learned_kernel_.coefficients for each in (one, other))
    assert np.allclose(found, expected, rtol=1e-6)
    chosen = [
        explicit(criterion="uniform").fit(open_rows(X, y, weights=each)).regularization_
        for each in (factor * weights, weights / 7.0)
    ]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (0.0, "Some rows must have a weight above 0. Got 0 for all"),
        (1e300, "from 1e-290 to 1e.290.*Got 1e.300 in row 0 of X"),
        (1e-300, "Multiply all weights by the same number"),
    ],
)
def test_weights_of_which_no_sums_can_be_made_are_refused(weight, words):
    X, y = rings(60)
    with pytest.raises(ValueError, match=words):
        explicit().fit(open_rows(X, y, weights=np.full(60, weight)))


def test_class_weight_counts_as_in_memory():
    X, y = rings(600)
    options = {"criterion": "uniform", "regularization": 1e-3, "class_weight": "balanced"}
    one = explicit(**options).fit(X, y)
    other = explicit(**options).fit(open_rows(X, y, chunk_rows=100))
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-5)
    assert np.allclose(other.priors_, 1 / 3)


def test_tables_with_late_categories_and_missing_cells(tmp_path):
    X, y = rings(4000)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"] = np.where(y == "in", "York", "Bath")
    frame.loc[3900:, "town"] = "Ely"
    frame.loc[frame.index % 7 == 0, "a"] = np.nan
    frame["y"] = y
    for i in range(4):
        frame.iloc[1000 * i : 1000 * (i + 1)].to_parquet(tmp_path / f"part-{i}.parquet")
    source = open_rows(tmp_path, "y")
    clf = MultipleKernelDiscriminant().fit(source)
    names = clf.encoder_.get_feature_names_out().tolist()
    assert names[:2] == ["a", "a is missing"]
    assert "town=Ely" in names
    assert len(clf.feature_importances_) == 5
    parts = list(clf.predict(source))
    assert len(parts) == 4
    assert np.array_equal(np.concatenate(parts), clf.predict(frame.drop(columns="y")))
    assert np.mean(np.concatenate(parts) == y) > 0.8


def test_sparse_rows_of_many_columns():
    X = sparse.random(600, 2000, density=0.01, format="csr", random_state=0)
    y = np.ravel(X[:, :400].sum(axis=1)) > np.ravel(X[:, 400:800].sum(axis=1))
    clf = MultipleKernelDiscriminant([Linear(), Cosine()]).fit(open_rows(X, y, chunk_rows=100))
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predictions_of_chunks_are_those_of_rows(name):
    X, y = rings()
    clf = explicit(criterion="uniform").fit(X, y)
    parts = getattr(clf, name)(open_rows(X, chunk_rows=200))
    assert iter(parts) is parts
    found, expected = np.concatenate(list(parts)), getattr(clf, name)(X)
    if name == "predict":
        assert np.array_equal(found, expected)
    else:
        assert np.allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_files_are_scored_with_their_labels(tmp_path):
    X, y = rings()
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    table.assign(y=np.where(y == y[0], "in", "out")).to_csv(tmp_path / "rows.csv", index=False)
    rows = open_rows(tmp_path / "rows.csv", "y", chunk_rows=200)
    clf = explicit().fit(rows)
    assert clf.score(rows) == clf.score(table, np.where(y == y[0], "in", "out"))


def test_a_single_kernel_and_a_model_that_travels():
    X, y = rings()
    clf = KernelDiscriminant().fit(open_rows(X, y, chunk_rows=200))
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.predict(X), clf.predict(X))
    assert not hasattr(clone(clf), "streamed_")


# ---- progress, memory, faults ------------------------------------------------------------------


def test_a_callback_hears_of_rows():
    X, y = rings()
    heard = []
    explicit(callback=heard.append).fit(open_rows(X, y, chunk_rows=300))
    rows = [each for each in heard if isinstance(each, RowProgress)]
    assert [(each.stage, each.rows) for each in rows] == [
        (stage, done) for stage in (0, 1) for done in (300, 600, 900)
    ]
    assert rows[0].fraction == 1 / 3
    assert RowProgress(0, 2, 5, None).fraction is None


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """A process that fits 200,000 × 20 numbers from a file, against one that fits a tenth."""
    code = textwrap.dedent(
        """
        import sys, numpy as np
        def peak():  # ru_maxrss would be that of the process that started this one, if larger
            status = open("/proc/self/status").read()
            return int(status.partition("VmHWM:")[2].split()[0])
        from discernel import KernelDiscriminant, open_rows
        from discernel.kernels import RBF
        folder, n = sys.argv[1], int(sys.argv[2])
        X = np.lib.format.open_memmap(f"{folder}/X.npy", "w+", np.float64, (n, 20))
        y = np.lib.format.open_memmap(f"{folder}/y.npy", "w+", np.int64, (n,))
        rng = np.random.default_rng(0)
        for a in range(0, n, 10_000):
            X[a : a + 10_000] = rng.normal(size=(10_000, 20))
            y[a : a + 10_000] = X[a : a + 10_000, 0] > 0
        del X, y
        from discernel.kernels import features
        features._LANDMARKS, features._MANY_ROWS = 200, 10**9
        source = open_rows(f"{folder}/X.npy", f"{folder}/y.npy")
        before = peak()
        KernelDiscriminant(RBF(width=5.0), regularization=1e-3).fit(source)
        print(before, peak())
        """
    )

    def peak(n):
        out = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(n)],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(out.stdout.split()[1]) / 1024

    small, large = peak(20_000), peak(200_000)
    # the pages of a mapped file count as memory of the process as long as nobody wants them
    assert large < small + 32 + 40
    assert large < 1200


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: explicit().fit(open_rows(X)), "must have labels"),
        (lambda X, y: explicit().fit(open_rows(X, y), y), "contains labels, weights and groups"),
        (lambda X, y: explicit().fit(open_rows(X, np.zeros(900))), "at least two classes"),
        (
            lambda X, y: explicit(criterion="fdr").fit(open_rows(X, y == "in")),
            "fitted with the same λ",
        ),
        (
            lambda X, y: MultipleKernelDiscriminant("precomputed").fit(open_rows(X, y)),
            "need kernels of rows",
        ),
        (
            lambda X, y: explicit().fit(open_rows([(X, y), (X * [1, np.nan, 1, 1], y)])),
            r"nan\)? in column 'x1', row 0 of chunk 1",
        ),
        (
            lambda X, y: MultipleKernelDiscriminant().fit(
                open_rows([(frame(X, "a"), y), (frame(X, 1.0), y)])
            ),
            "Got numbers in chunk 1 and text in chunk 0",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make(*rings())


class Changing:
    """Chunks of which something is changed from the second pass on; one look comes first."""

    def __init__(self, X, y, change):
        self.chunks, self.change, self.calls = [(X[:400], y[:400]), (X[400:], y[400:])], change, 0

    def __call__(self):
        self.calls += 1
        return iter(self.change(self.chunks) if self.calls > 2 else self.chunks)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda chunks: chunks[:1], "Got 900 rows in the first and 400 in the second"),
        (lambda chunks: chunks * 2, "Got 900 rows in the first and 1,800 in the second"),
        (lambda chunks: [], "There must be rows in every pass"),
        (lambda chunks: [(X, np.full_like(y, "in")) for X, y in chunks], "rows of class 'in'"),
        (lambda chunks: [(X, np.full(len(y), "new")) for X, y in chunks], "same in both passes"),
    ],
)
def test_rows_that_change_between_passes_are_refused(change, words):
    X, y = rings()
    clf = explicit().fit(X[:200], y[:200])
    before = dict(vars(clf))
    with pytest.raises(InvalidInputError, match=words):
        clf.fit(open_rows(Changing(X, y, change)))
    assert vars(clf) == before


@pytest.mark.parametrize("rows", [slice(0, 500), slice(None)])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, rows):
    X, y = rings()
    table = pd.DataFrame(X).rename(columns=str).assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet")

    def write(progress):
        if progress.stage == 0 and progress.rows == 900:
            table.assign(y=y[::-1])[rows].to_parquet(tmp_path / "rows.parquet")

    clf = MultipleKernelDiscriminant([RBF(width=2.0)], callback=write)
    with pytest.raises(InvalidInputError, match=r"rows\.parquet was modified after"):
        clf.fit(open_rows(tmp_path / "rows.parquet", "y"))
    assert not hasattr(clf, "classes_")


def frame(X, value):
    return pd.DataFrame({"a": X[:, 0], "b": value})


def test_a_chunk_of_one_class_is_fine():
    X, y = rings()
    order = np.argsort(y, kind="stable")
    one = explicit().fit(open_rows(X[order], y[order], chunk_rows=50))
    assert one.score(X, y) > 0.7
