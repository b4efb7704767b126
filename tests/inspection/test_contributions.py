"""Contributions add up to scores, and are Shapley values, for every kind of model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError
from discernel.inspection import contributions
from discernel.inspection.contributions import column_values
from discernel.inspection.explained import Scoring
from discernel.kernels import RBF, Exponential, Function, Laplace, Linear, Polynomial
from tests.inspection.brute import shapley


def make_rows(n=90, n_columns=5, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)) * np.linspace(2, 1, n_columns) + 3.0
    signal = X[:, 0] + 0.5 * (X[:, 1] - 3) ** 2 / 4 + rng.normal(size=n) * 0.5
    cuts = np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(cuts, signal)


def make_table(n=120, seed=0):
    X, y = make_rows(n, 3, seed=seed)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(X, columns=["age", "dose", "size"])
    frame["colour"] = np.where(y == 1, "red", rng.choice(["blue", "green"], n))
    frame.loc[rng.random(n) < 0.2, "dose"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, np.where(y == 1, "ill", "well")


def check_adds_up(found, scores, columns=True):
    scores = scores[:, None] if scores.ndim == 1 else scores
    np.testing.assert_allclose(found.scores, scores, atol=1e-9)
    np.testing.assert_allclose(found.baseline + found.sources.sum(-1), scores, atol=1e-9)
    assert found.sources.shape[-1] == len(found.source_names)
    if columns:
        np.testing.assert_allclose(found.baseline + found.columns.sum(-1), scores, atol=1e-9)
        assert found.columns.shape[-1] == len(found.column_names)
    else:
        assert found.columns is None


def relative(decision):
    return decision if decision.ndim == 1 else decision - decision.mean(axis=1, keepdims=True)


VIEWS = [RBF().on([0, 1], "first"), Laplace().on([0, 1], "first"), RBF().on([2, 3, 4], "rest")]
MODELS = {
    "default": MultipleKernelDiscriminant(),
    "views": MultipleKernelDiscriminant(VIEWS),
    "views, rkda": MultipleKernelDiscriminant(VIEWS, criterion="rkda"),
    "linear": MultipleKernelDiscriminant([Linear(), Linear().on([0])]),
    "other forms": MultipleKernelDiscriminant([Exponential(), Polynomial(gamma=0.01)]),
    "costs": MultipleKernelDiscriminant(VIEWS, class_costs="balanced", priors="uniform"),
    "one kernel": KernelDiscriminant(RBF()),
    "low rank": MultipleKernelDiscriminant(VIEWS, bank=LowRank(30), criterion="rkda"),
    "low rank, default": MultipleKernelDiscriminant(bank=LowRank(40)),
    "alternating": AKFDClassifier([RBF(gamma=0.1), RBF(gamma=0.1).on([0])], nu=1.0),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.filterwarnings("ignore")
def test_contributions_add_up(model, n_classes):
    X, y = make_rows(n_classes=n_classes)
    clf = model.fit(X[::2], y[::2])
    found = contributions(clf, X[1::8])
    check_adds_up(found, relative(clf.decision_function(X[1::8])))
    assert found.column_names == [f"column {i}" for i in range(5)]
    assert np.abs(found.columns).max() > 0.01
    assert found.classes.tolist() == list(range(n_classes))
    assert found.exact


def test_weighted_rows_add_up_too():
    X, y = make_rows()
    weights = np.arange(len(X)) % 4
    clf = MultipleKernelDiscriminant(VIEWS).fit(X, y, sample_weight=weights)
    check_adds_up(contributions(clf, X[:5]), clf.decision_function(X[:5]))


@pytest.mark.parametrize("model", ["default", "views", "other forms", "low rank"])
@pytest.mark.filterwarnings("ignore")
def test_values_of_columns_are_shapley_values_of_the_decision(model):
    X, y = make_rows()
    clf = MODELS[model].fit(X[::2], y[::2])
    found = contributions(clf, X[1:2], background=X[3:5])

    def value(subset):
        rows = np.where(np.isin(np.arange(5), subset), X[1], X[3:5])
        return clf.decision_function(rows).mean()

    np.testing.assert_allclose(found.baseline, clf.decision_function(X[3:5]).mean(), atol=1e-9)
    np.testing.assert_allclose(found.columns[0, 0], shapley(value, 5), atol=1e-8)


@pytest.mark.filterwarnings("ignore")
def test_sources_are_what_their_columns_add():
    X, y = make_rows()
    clf = MODELS["views"].fit(X, y)
    found = contributions(clf, X[:4])
    assert sorted(found.source_names) == ["first", "rest"]
    place = found.source_names.index("first")
    np.testing.assert_allclose(found.columns[..., :2].sum(-1), found.sources[..., place], atol=1e-9)
    grouped = contributions(clf, X[:4], groups={"a": [0, 1], "b": slice(2, 4)})
    assert grouped.source_names == ["a", "b", "other columns"]
    np.testing.assert_allclose(grouped.sources[..., 0], found.columns[..., :2].sum(-1), atol=1e-9)
    check_adds_up(grouped, clf.decision_function(X[:4]))


def test_a_column_of_categories_is_one_player():
    X, y = make_table()
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = contributions(clf, X[:6])
    check_adds_up(found, clf.decision_function(X[:6]))
    assert found.column_names == ["age", "dose", "size", "colour"]
    assert found.cells[0].tolist()[3] == X["colour"][0]
    typical = X.iloc[:1].copy()
    typical[["age", "dose", "size"]] = X[["age", "dose", "size"]].median().to_numpy()
    typical["colour"] = X["colour"].mode()[0]
    np.testing.assert_allclose(found.baseline, clf.decision_function(typical), atol=1e-9)

    def value(subset):
        row = typical.copy()
        for column in subset:
            row.isetitem(column, [X.iloc[2, column]])
        return clf.decision_function(row)[0]

    np.testing.assert_allclose(found.columns[2, 0], shapley(value, 4), atol=1e-9)


def test_precomputed_kernels_have_sources_and_no_columns():
    X, y = make_rows()
    kernels = [RBF(gamma=0.1), Laplace(gamma=0.2)]
    stack = np.stack([kernel(X) for kernel in kernels], axis=-1)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack, y)
    found = contributions(clf, stack[:5])
    check_adds_up(found, clf.decision_function(stack[:5]), columns=False)
    assert found.source_names == ["matrix 0", "matrix 1"]
    assert found.column_names == []
    found = contributions(clf, stack[:5], background=stack)
    check_adds_up(found, clf.decision_function(stack[:5]), columns=False)
    np.testing.assert_allclose(found.baseline, clf.decision_function(stack).mean(), atol=1e-9)
    with pytest.raises(InvalidInputError, match="Omit groups"):
        contributions(clf, stack[:5], groups={"a": [0]})
    one = KernelDiscriminant("precomputed").fit(stack[..., 0], y)
    check_adds_up(
        contributions(one, stack[:5, :, 0]), one.decision_function(stack[:5, :, 0]), False
    )


@pytest.mark.parametrize("n_targets", [1, 2])
def test_regressions_are_explained(n_targets):
    X, _ = make_rows()
    y = np.column_stack([X[:, 0] + X[:, 1] ** 2, X[:, 2]])[:, :n_targets]
    reg = MultipleKernelRidge(VIEWS).fit(X, y[:, 0] if n_targets == 1 else y)
    found = contributions(reg, X[:4])
    check_adds_up(found, reg.predict(X[:4]))
    assert found.classes is None


def test_of_a_pipeline_the_last_step_is_explained():
    X, y = make_rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    pipe = make_pipeline(StandardScaler(), MultipleKernelDiscriminant(VIEWS)).fit(frame, y)
    found = contributions(pipe, frame[:5])
    check_adds_up(found, pipe.decision_function(frame[:5]))
    assert found.column_names == list("abcde")
    assert found.cells[0].tolist() == X[0].tolist()  # not what the scaler has made of them
    turned = make_pipeline(PCA(2), KernelDiscriminant(RBF())).fit(frame, y)
    found = contributions(turned, frame[:5])
    assert found.column_names == ["pca0", "pca1"]
    np.testing.assert_allclose(found.cells.astype(float), turned[:1].transform(frame[:5]))
    mixed = make_pipeline(KernelDiscriminant(RBF()), LogisticRegression()).fit(X, y)
    with pytest.raises(InvalidInputError, match="LogisticRegression after KernelDiscriminant"):
        contributions(mixed, X)


def test_sparse_rows_and_rows_of_anything():
    X, y = make_rows()
    X[X < 2] = 0.0
    sparse = scipy.sparse.csr_matrix(X)
    clf = KernelDiscriminant(RBF()).fit(sparse, y)
    check_adds_up(contributions(clf, sparse[:4]), clf.decision_function(sparse[:4]))
    words = [["ab", "cd"][i] * (1 + j % 3) for j, i in enumerate(y)]

    def common(left, right):
        return np.array([[len(set(a) & set(b)) + (a == b) for b in right] for a in left], float)

    clf = KernelDiscriminant(Function(common)).fit(words, y)
    check_adds_up(contributions(clf, words[:4]), clf.decision_function(words[:4]), columns=False)


@pytest.mark.parametrize("offset", [1e6, 1e12])
def test_numbers_far_from_0_are_explained(offset):
    """Their differences have few digits, to which contributions add up."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = X[:, 0] + 0.3 * rng.standard_normal(120)
    plain, far = (contributions(MultipleKernelRidge().fit(X, y + by), X[:2]) for by in (0, offset))
    np.testing.assert_allclose(far.columns, plain.columns, atol=4 * np.spacing(offset))


def test_columns_of_text_beside_numbers():
    X, y = make_table()
    X = X.fillna({"dose": 0.0, "colour": "none"})

    def same(left, right):
        return (np.asarray(left)[:, 0][:, None] == np.asarray(right)[:, 0]).astype(float)

    kernels = [RBF().on(["age", "dose"], "numbers"), Function(same).on(["colour"], "text")]
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform").fit(X, y)
    found = contributions(clf, X[:5])
    check_adds_up(found, clf.decision_function(X[:5]))
    assert found.source_names == ["numbers", "text"]
    np.testing.assert_allclose(found.columns[..., 3], found.sources[..., 1], atol=1e-9)
    assert not found.columns[..., 2].any()


def test_rows_in_chunks_were_learned_from():
    X, y = make_rows(400)
    clf = MultipleKernelDiscriminant(bank=LowRank(50)).partial_fit(X, y)
    found = contributions(clf, X[:3])
    check_adds_up(found, clf.decision_function(X[:3]))


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_explained_says_so():
    X, y = make_rows()
    labels = np.column_stack([y, 1 - y, X[:, 2] > 3])
    for other in (
        MultiLabelKernelDiscriminant(RBF()).fit(X, labels),
        LearnedKernelTransformer(VIEWS).fit(X, y),
    ):
        with pytest.raises(InvalidInputError, match="Explanations need a KernelDiscriminant"):
            contributions(other, X)
    with pytest.raises(InvalidInputError, match="one of discernel"):
        contributions(LogisticRegression().fit(X, y), X)
    clf = KernelDiscriminant(RBF()).fit(X, y)
    for groups, words in (({"a": [0], "b": [0, 1]}, "in one group"), ({}, "a dictionary")):
        with pytest.raises(InvalidInputError, match=words):
            contributions(clf, X[:1], groups=groups)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_add_up_before_rounding_is_shared_out(n_classes):
    X, y = make_rows(200, n_columns=30, n_classes=n_classes)
    clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    scoring, typical = Scoring.of(clf.model_), np.median(X[::2], axis=0)[None]
    parts = [one for part in scoring.parts for one in part.by_kernel()]
    values, exact = column_values(parts, X[1:5], typical, np.arange(30), 30)
    assert exact
    total = scoring(typical) + values.sum(axis=-1)
    np.testing.assert_allclose(total, scoring(X[1:5]), atol=1e-9)
