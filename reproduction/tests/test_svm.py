"""The support vector machine on a learned kernel, against convex programs and scikit-learn's."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import LearnedKernelTransformer
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel_reproduction.baselines import LearnedKernelSVC

KERNELS = [RBF(width=2.0), RBF(width=6.0), Linear()]
LEARN = {"criterion": "rkda", "regularization": 0.01}
ONE = {"criterion": "uniform", "regularization": 1.0}  # one kernel: nothing to learn


@parametrize_with_checks(
    [
        LearnedKernelSVC(regularization=0.1),
        LearnedKernelSVC(criterion="alignment", regularization=0.1, loss="l2", C=10.0),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[::5], np.array(["malignant", "benign"])[y[::5]]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def normalized(X):
    """Return centred rows whose linear kernel has a diagonal of mean 1."""
    X = X - X.mean(axis=0)
    return X / np.sqrt(np.mean(np.sum(X**2, axis=1)))


@pytest.mark.conic
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_linear_kernel_solves_the_primal_program(cancer, loss, C):
    """½‖w‖² + C Σ ξ, or + (C/2) Σ ξ², on rows scaled as the kernel is."""
    X, y = cancer
    Z, signs = normalized(X), np.where(y == "malignant", 1.0, -1.0)
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    slacks = cp.pos(1 - cp.multiply(signs, Z @ w + b))
    cost = C * cp.sum(slacks) if loss == "l1" else C / 2 * cp.sum_squares(slacks)
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + cost)).solve(solver="CLARABEL")
    svm = LearnedKernelSVC([Linear()], loss=loss, C=C, **ONE).fit(X, y)
    np.testing.assert_array_equal(svm.classes_, ["benign", "malignant"])
    expected = Z @ w.value + b.value
    np.testing.assert_allclose(svm.decision_function(X), expected, atol=1e-3)


@pytest.mark.conic
def test_squared_hinge_on_a_learned_kernel_solves_the_dual_program(cancer):
    """max Σ α − ½ Σ α_i α_j y_i y_j (K_ij + δ_ij/C) over α ≥ 0, Σ α_i y_i = 0."""
    X, y = cancer
    svm = LearnedKernelSVC(KERNELS, loss="l2", C=5.0, **LEARN).fit(X, y)
    K, signs = svm.transform(X), np.where(y == "malignant", 1.0, -1.0)
    alpha = cp.Variable(len(y), nonneg=True)
    matrix = cp.psd_wrap((K + np.eye(len(y)) / 5.0) * np.outer(signs, signs))
    objective = cp.sum(alpha) - 0.5 * cp.quad_form(alpha, matrix)
    cp.Problem(cp.Maximize(objective), [signs @ alpha == 0]).solve(solver="CLARABEL")
    ours = np.zeros(len(y))
    ours[svm.svm_.support_] = svm.svm_.dual_coef_[0]
    np.testing.assert_allclose(ours, alpha.value * signs, atol=1e-3 * alpha.value.max())
    # Slacks are α/C: where α > 0 the margin is short by it.
    margins = signs * svm.decision_function(X)
    active = alpha.value > 1e-3
    np.testing.assert_allclose(margins[active], 1 - alpha.value[active] / 5.0, atol=1e-3)


def test_squared_hinge_is_that_of_linear_svc_with_half_the_c(cancer):
    """LinearSVC penalises its intercept; a large constant feature makes that vanish."""
    X, y = cancer
    Z = normalized(X)
    svm = LearnedKernelSVC([Linear()], loss="l2", C=2.0, **ONE).fit(X, y)
    peer = LinearSVC(loss="squared_hinge", C=1.0, intercept_scaling=30.0, tol=1e-8, max_iter=10**6)
    scores = peer.fit(Z, y).decision_function(Z)
    np.testing.assert_allclose(svm.decision_function(X), scores, atol=1e-2)


def test_hinge_is_the_pipeline_of_transformer_and_svc(wine):
    X, y = wine
    svm = LearnedKernelSVC(KERNELS, C=3.0, **LEARN)
    pipeline = make_pipeline(
        LearnedKernelTransformer(KERNELS, **LEARN), SVC(kernel="precomputed", C=3.0, tol=1e-4)
    )
    np.testing.assert_allclose(
        cross_val_predict(svm, X, y, cv=4, method="decision_function"),
        cross_val_predict(pipeline, X, y, cv=4, method="decision_function"),
    )


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_several_classes_are_told_apart_two_by_two(wine, loss):
    """Each pair's machine is the one trained on the two classes alone, on the same kernel."""
    X, y = wine
    svm = LearnedKernelSVC(KERNELS, loss=loss, C=4.0, **LEARN).fit(X, y)
    K, votes = svm.transform(X), np.zeros((len(y), 3))
    for first, second in [(0, 1), (0, 2), (1, 2)]:
        rows = np.flatnonzero((y == first) | (y == second))
        inside = K[np.ix_(rows, rows)] + (np.eye(len(rows)) / 4.0 if loss == "l2" else 0.0)
        pair = SVC(kernel="precomputed", C=4.0 if loss == "l1" else 1e10, tol=1e-5)
        chosen = pair.fit(inside, y[rows]).predict(K[:, rows])
        votes[np.arange(len(y)), chosen] += 1
    clear = votes.max(axis=1) == 2
    assert clear.sum() > 170
    np.testing.assert_array_equal(svm.predict(X)[clear], votes.argmax(axis=1)[clear])


def test_units_of_a_kernel_do_not_change_what_c_means(cancer):
    X, y = cancer
    for loss in ("l1", "l2"):
        plain = LearnedKernelSVC([RBF(width=6.0)], loss=loss, **ONE).fit(X, y)
        scaled = LearnedKernelSVC([1000.0 * RBF(width=6.0)], loss=loss, **ONE).fit(X, y)
        np.testing.assert_allclose(
            scaled.decision_function(X), plain.decision_function(X), atol=1e-3
        )
    assert np.mean(np.diagonal(plain.transform(X))) == pytest.approx(1.0)


def test_precomputed_stack_equals_kernels(wine):
    X, y = wine
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=-1)
    on_rows = LearnedKernelSVC(KERNELS, loss="l2", **LEARN)
    on_stack = LearnedKernelSVC("precomputed", loss="l2", **LEARN)
    np.testing.assert_array_equal(
        cross_val_predict(on_stack, stack, y, cv=4), cross_val_predict(on_rows, X, y, cv=4)
    )


def test_loss_and_c_can_be_searched_and_output_set(wine):
    X, y = wine
    grid = {"loss": ["l1", "l2"], "C": [0.01, 10.0]}
    search = GridSearchCV(LearnedKernelSVC(KERNELS, **LEARN), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    framed = LearnedKernelSVC(KERNELS, **LEARN).set_output(transform="pandas").fit(X, y)
    assert framed.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss of LearnedKernelSVC must be one of 'l1', 'l2'. Got 'hinge'"),
        ({"C": 0.0}, "C of LearnedKernelSVC must be a positive, finite number. Got 0.0"),
    ],
)
def test_what_cannot_work_is_refused(wine, options, message):
    with pytest.raises(InvalidInputError, match=message):
        LearnedKernelSVC(**options).fit(*wine)


def test_criterion_for_two_classes_refuses_three_by_name(wine):
    with pytest.raises(
        InvalidInputError, match=r"criterion='fdr' is defined for two classes.*rkda"
    ):
        LearnedKernelSVC(criterion="fdr").fit(*wine)
