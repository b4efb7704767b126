"""Numbers from chunks: the same fit as in memory, in `fit` and in `partial_fit`."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from discernel import MultipleKernelRidge, load, open_rows, save
from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace
from discernel.learn.labels import NumberTotals
from discernel.learn.survey import SurveyPass
from discernel.targets import RegressionTarget


def waves(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def several(n=600, seed=0):
    """Return three targets of different scales, one far from the origin."""
    X, y = waves(n, seed)
    return X, np.column_stack([y, 1e6 + 50.0 * X[:, 1] * y, 1e-3 * np.cos(X[:, 0])])


def explicit(**options):
    return MultipleKernelRidge([RBF(width=1.5), Laplace(width=2.0)], **options)


def with_landmarks(n, reg, fit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discernel.plan.costs.n_landmarks", lambda _: n)
        return fit(reg)


def close(one, other, units, tol):
    return bool((np.abs(one - other) <= tol * units).all())


# ---- the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [waves, several])
def test_with_all_rows_as_landmarks_the_fit_is_that_in_memory(data):
    X, y = data()
    options = {"criterion": "rkda", "regularization": 1e-3}
    one = explicit(**options).fit(X, y)
    other = explicit(**options).fit(open_rows(X, y, chunk_rows=100))
    assert other.streamed_.rank == 600
    assert other.bank_ == "stream"
    np.testing.assert_allclose(one.kernel_weights_, other.kernel_weights_, atol=1e-6)
    new = data(200, seed=1)[0]
    assert other.predict(new).shape == one.predict(new).shape
    assert close(one.predict(new), other.predict(new), y.std(axis=0), 1e-5)


def test_the_fit_is_that_of_the_low_rank_kernel_of_all_rows():
    """Few landmarks: against a factorization of the approximated matrix of all rows."""
    X, y = several()
    reg = explicit(criterion="uniform", regularization=1e-4)
    reg = with_landmarks(60, reg, lambda one: one.fit(open_rows(X, y, chunk_rows=128)))
    state = reg.model_.stream.state
    F, target = state.features(X), RegressionTarget.from_values(y)
    bank = DenseBank((F @ F.T)[None], normalization="centered_trace")
    ridge = np.full(len(X), 1e-4 / reg.streamed_.captured)
    fit = KernelLeastSquares(bank.system(np.ones(1), ridge), ridge, target.values)
    units = y.std(axis=0)
    assert close(reg.predict(X), fit.fitted, units, 1e-8)
    sample = state.survey.drawn
    order = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in sample.X])
    assert len(reg.leave_one_out_) == 600
    assert close(reg.leave_one_out_, fit.leave_one_out[order], units, 1e-7)


@pytest.mark.parametrize("chunk_rows", [37, 450])
def test_chunks_do_not_change_the_model(chunk_rows):
    X, y = several()
    one = explicit().fit(open_rows(X, y))
    other = explicit().fit(open_rows(X, y, chunk_rows=chunk_rows))
    assert one.regularization_ == other.regularization_
    assert close(one.predict(X), other.predict(X), y.std(axis=0), 1e-8)


def test_the_default_learns_more_from_more_rows():
    X, y = waves(5000)
    reg = MultipleKernelRidge().fit(open_rows(X, y, chunk_rows=1000))
    few, (new, truth) = MultipleKernelRidge().fit(X[:400], y[:400]), waves(2000, seed=1)
    assert reg.feature_importances_[:2].sum() > 0.95
    assert reg.score(new, truth) > few.score(new, truth) > 0.9
    held_out = 1 - np.mean((reg.leave_one_out_ - _truth(reg)) ** 2) / y.var()
    assert abs(held_out - reg.score(new, truth)) < 0.01


@pytest.mark.parametrize("calls", [0, 2])
def test_the_expected_error_is_found_and_intervals_have_one_width(calls):
    X, y = waves(1200)
    if calls:
        reg = explicit()
        for part in np.split(np.arange(1200), calls):
            reg = reg.partial_fit(X[part], y[part])
    else:
        reg = explicit().fit(open_rows(X, y, chunk_rows=500))
    new, truth = waves(3000, seed=1)
    predicted, std = reg.predict(new, return_std=True)
    error, expected = np.sqrt(np.mean((truth - predicted) ** 2)), reg.expected_
    assert 0.97 * expected.rmse_low < error < 1.03 * expected.rmse_high
    np.testing.assert_allclose(std, expected.rmse, rtol=1e-6)
    low, high = reg.predict_interval(new).T
    assert np.ptp(high - low) < 1e-9
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(0.9, abs=0.04)


def _truth(reg):
    """Return the numbers of the rows of `leave_one_out_`: those the kernel was not learned on."""
    sample = reg.model_.stream.state.survey.drawn
    return sample.y[~sample.involved]


@pytest.mark.parametrize("factor", [1.0, 1e200, 1e-200])
def test_weights_count_as_in_memory_and_as_copies_whatever_their_scale(factor):
    X, y = several(400)
    weights = np.random.default_rng(0).integers(0, 3, 400)
    copies = np.repeat(np.arange(400), weights)
    options = {"criterion": "uniform", "regularization": 1e-3}
    rows = open_rows(X, y, weights=factor * weights, chunk_rows=90)
    found = explicit(**options).fit(rows).predict(X)
    one = explicit(**options).fit(X, y, weights).predict(X)
    other = explicit(**options).fit(open_rows(X[copies], y[copies], chunk_rows=90)).predict(X)
    assert close(found, one, y.std(axis=0), 1e-5)
    assert close(found, other, y.std(axis=0), 1e-5)


def test_predictions_of_chunks_files_and_a_saved_model(tmp_path):
    X, y = waves(500)
    table = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(y > 0, "u", "v"), y=y)
    table.iloc[3, 0] = np.nan
    table.to_csv(tmp_path / "rows.csv", index=False)
    reg = MultipleKernelRidge().fit(open_rows(tmp_path / "rows.csv", "y", chunk_rows=120))
    rows = table.drop(columns="y")
    expected = reg.predict(rows)
    parts = list(reg.predict(open_rows(rows, chunk_rows=200)))
    assert [len(part) for part in parts] == [200, 200, 100]
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-10)
    for again in (pickle.loads(pickle.dumps(reg)), load(save(reg, tmp_path / "model.skops"))):
        np.testing.assert_array_equal(again.predict(rows), expected)
    assert reg.score(rows, y) > 0.9


def test_sparse_rows():
    X, y = waves(500)
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    one = explicit().fit(open_rows(rows, y, chunk_rows=130))
    other = explicit().fit(open_rows(rows.toarray(), y, chunk_rows=130))
    np.testing.assert_allclose(one.predict(rows), other.predict(rows.toarray()), rtol=1e-6)


def test_a_target_that_is_nearly_always_the_same_varies_over_the_sample(monkeypatch):
    monkeypatch.setattr("discernel.learn.chunks.LEARNED_ON", 100)
    X, _ = waves(3000)
    y = np.zeros(3000)
    y[[17, 2500]] = 1.0, 2.0
    reg = explicit(criterion="uniform", regularization=1e-2).fit(open_rows(X, y, chunk_rows=250))
    assert np.isfinite(reg.predict(X)).all()


def test_a_survey_does_not_depend_on_chunks_or_their_order():
    X, y = several(1000)
    reduction = SurveyPass(most=100, totals=NumberTotals())
    one, other = (open_rows(X, y, chunk_rows=size).reduce(reduction) for size in (1000, 130))
    chunks = list(open_rows(X, y, chunk_rows=130).chunks())
    third = reduction.start()
    for chunk in chunks[::-1]:
        third = reduction.merge(reduction.add(reduction.start(), chunk), third)
    for found in (other, third):
        np.testing.assert_array_equal(one.drawn.keys, found.drawn.keys)
        np.testing.assert_allclose(one.totals.mean, found.totals.mean, rtol=1e-12)
        np.testing.assert_array_equal(one.totals.high, y.max(axis=0))
        np.testing.assert_array_equal(one.totals.low, found.totals.low)
    np.testing.assert_allclose(one.totals.mean, y.mean(axis=0), rtol=1e-12)
    assert {*y[:, 0].argsort()[[0, -1]]} <= {
        int(np.flatnonzero(y[:, 0] == value)[0]) for value in one.drawn.y[:, 0]
    }


# ---- more rows ---------------------------------------------------------------------------------


def in_calls(reg, X, y, ends, **options):
    for part in np.split(np.arange(len(X)), ends):
        reg.partial_fit(X[part], y[part], **options)
    return reg


@pytest.mark.parametrize("kernels", [[RBF(width=1.5), Laplace(width=2.0)], "auto"])
def test_any_number_of_calls_gives_one_model(kernels):
    X, y = several(900)
    one = in_calls(MultipleKernelRidge(kernels), X, y, [500])
    other = in_calls(MultipleKernelRidge(kernels), X, y, [500, 600, 700, 800])
    assert one.streamed_.n_rows == other.streamed_.n_rows == 900
    assert one.regularization_ == other.regularization_
    assert close(one.predict(X), other.predict(X), y.std(axis=0), 1e-8)
    assert one.score(*several(500, 1)) > 0.9


def test_calls_give_the_fit_of_all_rows_with_these_landmarks():
    X, y = several(900)
    reg = explicit(criterion="uniform", regularization=1e-3)
    with_landmarks(50, reg, lambda one: in_calls(one, X, y, [400, 700]))
    F = reg.model_.stream.state.features(X)
    bank = DenseBank((F @ F.T)[None], normalization="centered_trace")
    ridge = np.full(len(X), 1e-3 / reg.streamed_.captured)
    fit = KernelLeastSquares(bank.system(np.ones(1), ridge), ridge, y)
    assert close(reg.predict(X), fit.fitted, y.std(axis=0), 1e-8)


def test_forgetting_follows_what_changes():
    X, y = waves(1200)
    changed = np.concatenate([y[:600], 1e3 - y[600:]])
    kept = in_calls(explicit(regularization=1e-3), X, changed, [600, 900])
    gone = in_calls(explicit(regularization=1e-3), X, changed, [600, 900], forget=1e-3)
    new, truth = waves(300, 1)
    assert gone.score(new, 1e3 - truth) > 0.8 > kept.score(new, 1e3 - truth)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(600, 5.0), "must vary over the rows"),
        (1e305 * np.arange(600), "range of every target must be between"),
        (np.r_[np.nan, np.ones(599)], "Every row must have a label. Got nan in row 0"),
        (np.array(["a", "b"] * 300), "y must hold numbers to predict"),
        (np.zeros((600, 2, 2)), "1d array of labels"),
        (np.zeros(599), "one label per row"),
        (None, "must have labels"),
    ],
)
def test_bad_targets_are_refused(y, words):
    with pytest.raises(InvalidInputError, match=words):
        explicit().fit(open_rows(waves()[0], y))


def test_bad_calls_are_refused_and_change_nothing():
    X, y = several()
    reg = explicit().partial_fit(X, y)
    before = reg.model_
    for rows, numbers, words in (
        (X, y[:, :2], "as many targets as in the first rows, 3. Got 2"),
        (X, y[:, 0], "as many targets"),
        (X[:, :2], y, "2 features"),
        (X, np.where(y > 0, np.nan, y), "Every row must have a label"),
        (X[:0], y[:0], "minimum of 1"),
        (X, None, "a target per row"),
    ):
        with pytest.raises(ValueError, match=words):
            reg.partial_fit(rows, numbers)
    with pytest.raises(ValueError, match="forget"):
        reg.partial_fit(X, y, forget=0.0)
    with pytest.raises(InvalidInputError, match="contains labels, weights and groups"):
        explicit().fit(open_rows(X, y), y)
    assert reg.model_ is before


def test_rows_that_change_between_passes_are_refused():
    X, y = waves()
    calls = []

    def chunks():
        calls.append(1)
        yield X, y + (1e-6 if len(calls) > 2 else 0.0)

    with pytest.raises(InvalidInputError, match="as the mean of target 0 in the first"):
        explicit(regularization=1e-3).fit(open_rows(chunks))


def test_rows_in_chunks_are_scored_with_their_targets_and_weights():
    X, y = waves()
    weights = np.linspace(1.0, 3.0, len(y))
    reg, rows = explicit().fit(X, y), open_rows(X, y, weights=weights, chunk_rows=100)
    assert reg.score(rows) == pytest.approx(reg.score(X, y, weights))
    assert reg.score(open_rows(X, y)) == pytest.approx(reg.score(X, y))
    with pytest.raises(InvalidInputError, match="contains labels, weights and groups"):
        reg.score(rows, y)
    with pytest.raises(InvalidInputError, match="Rows to score must have labels"):
        reg.score(open_rows(X))


@pytest.mark.parametrize("table", [False, True])
def test_the_first_call_takes_two_rows_and_later_ones_take_one(table):
    X, y = waves(60)
    if table:
        X = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 0] > 0, "u", "v"))
    for rows, weights in ((slice(1), None), (slice(3), [0.0, 2.0, 0.0])):
        with pytest.raises(InvalidInputError, match=r"at least 2 rows .* Got 1\. Pass more rows"):
            MultipleKernelRidge().partial_fit(X[rows], y[rows], weights)
    reg, whole = (MultipleKernelRidge().partial_fit(X[:30], y[:30]) for _ in range(2))
    for row in range(30, 60):
        reg.partial_fit(X[row : row + 1], y[row : row + 1])
    whole.partial_fit(X[30:], y[30:])
    assert reg.streamed_.n_rows == 60
    np.testing.assert_allclose(reg.predict(X), whole.predict(X), rtol=1e-8)
