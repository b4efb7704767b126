"""Class separability maximised: Yeung 2006, Dinkelbach's method, and what is chosen by labels."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.stats import special_ortho_group
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel import MultipleKernelDiscriminant, Status, learn_kernel
from discernel.bank import DenseBank
from discernel.criteria import Separability
from discernel.exceptions import ConvergenceWarning, InvalidGramError, InvalidInputError
from discernel.kernels import RBF
from discernel.papers.separability.criterion import Scatter, critical_alpha, ratio, vector_scatter
from discernel.papers.separability.solvers import ClosedForm, Dinkelbach, dinkelbach
from discernel.papers.separability.spectrum import Labels, reweigh_spectrum
from discernel.papers.separability.spectrum_choice import (
    ALPHAS,
    SHARES,
    Trial,
    _is_clearly_better,
    choose_reweighing,
    neighbor_votes,
)
from discernel.solvers import Task
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


@pytest.fixture(scope="module")
def partial():
    """Wine, a fifth of it labelled: the kernel matrix, the labels, and those that are hidden."""
    X, y = load_wine(return_X_y=True)
    X, y = scale(X)[::2], y[::2]
    known = np.arange(len(y)) % 4 == 0
    return RBF(width=4.0)(X), np.where(known, y, -1), y


def two(y):
    """The same labels, of two classes."""
    return np.where(y == 2, 1, y)


# ---- given kernels ---------------------------------------------------------------------------


def explicit_scatter(grams, y):
    """(1/l)⟨A − 11ᵀ/l, G⟩ and (1/l)⟨I − A, G⟩ of the normalised kernels."""
    n = len(y)
    A = (y[:, None] == y) / np.array([np.sum(y == label) for label in y])
    kernels = reference.trace_normalized(grams)
    f = np.array([np.sum((A - 1.0 / n) * G) / n for G in kernels])
    return Scatter(f, np.array([np.sum((np.eye(n) - A) * G) / n for G in kernels]))


@pytest.mark.parametrize("problem", ["two_classes", "three_classes"])
@pytest.mark.parametrize("alpha", [1e4, "1.5*critical"])
def test_weights_of_given_kernels_are_the_squares_of_eq_16(problem, alpha, request):
    grams, y = request.getfixturevalue(problem)
    f, g = explicit_scatter(grams, y)
    number = 1.5 * (f / g).max() if isinstance(alpha, str) else alpha
    mu = 1.0 / (f - number * g)
    learned = learn_kernel(grams, y, criterion=Separability(alpha=alpha), regularization=0.1)
    np.testing.assert_allclose(learned.weights, mu**2 / np.sum(mu**2), rtol=1e-8)
    assert learned.objective == pytest.approx(learned.weights @ (f - number * g), rel=1e-8)
    assert learned.status is Status.CONVERGED
    assert (learned.criterion, learned.solver) == ("separability", "closed_form")


def test_names_options_and_estimator_agree(three_classes):
    grams, y = three_classes
    by_solver = learn_kernel(grams, y, criterion="separability", solver="dinkelbach")
    by_object = learn_kernel(grams, y, criterion=Separability(), solver=Dinkelbach())
    np.testing.assert_array_equal(by_solver.weights, by_object.weights)
    assert by_solver.solver == by_object.solver == "dinkelbach"
    clf = MultipleKernelDiscriminant("precomputed", criterion="separability", regularization=0.1)
    clf.fit(np.moveaxis(grams, 0, -1), y)
    expected = learn_kernel(grams, y, criterion="separability", regularization=0.1)
    np.testing.assert_allclose(clf.kernel_weights_, expected.weights, rtol=1e-10)


def test_cost_is_one_pass_over_the_bank(monkeypatch, three_classes):
    """One product with the class scores for each method; nothing else touches a matrix."""
    grams, y = three_classes
    passes = []
    plain = DenseBank.products
    monkeypatch.setattr(DenseBank, "products", lambda *args: passes.append(1) or plain(*args))
    for name in ("inner", "inner_products", "combined"):
        monkeypatch.setattr(DenseBank, name, None)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    for count, solver in enumerate((ClosedForm(), Dinkelbach()), start=1):
        solver.solve(Separability().program(bank, target, None), Task(1e-6))
        assert len(passes) == count


def test_an_alpha_too_small_for_a_maximum_warns(three_classes):
    grams, y = three_classes
    with pytest.warns(ConvergenceWarning, match=r"not a maximum for alpha=1e-06.*largest ratio, 0"):
        learned = learn_kernel(grams, y, criterion=Separability(alpha=1e-6), regularization=0.1)
    assert learned.status is Status.NO_CERTIFICATE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, r"alpha of class separability must be a positive, finite number. Got 0"),
        ({"alpha": "0.5*critical"}, r"multiple above 1 of the critical.*Got '0.5\*critical'"),
        ({"alpha": "auto"}, r"such as '2\*critical'. Got 'auto'"),
        ({"cap": 0.5}, r"cap of class separability must be a finite number of at least 1.*0.5"),
        ({"cap": "2"}, r"cap of class separability .*Got '2'"),
    ],
)
def test_options_refuse(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Separability(**options)


def test_a_solver_of_another_criterion_is_refused(three_classes):
    message = r"solver of criterion='separability' .*'auto', 'closed_form', 'dinkelbach'.*'sdp'"
    with pytest.raises(InvalidInputError, match=message):
        learn_kernel(*three_classes, criterion="separability", solver="sdp")


# ---- Dinkelbach ------------------------------------------------------------------------------


def by_charnes_and_cooper(f, g, caps, total):
    """The largest ratio by a linear program in (w/gᵀw, 1/gᵀw)."""
    p = len(f)
    upper = np.hstack([np.eye(p), -np.asarray(caps)[:, None]])
    equal = np.vstack([np.r_[g, 0.0], np.r_[np.ones(p), -total]])
    found = linprog(-np.r_[f, 0.0], upper, np.zeros(p), equal, [1.0, 0.0])
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kappa", [1.0, 1.3, 2.0, 5.0, 1e6])
def test_dinkelbach_finds_the_largest_ratio_of_all_weights(seed, kappa):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 30))
    scatter = Scatter(rng.exponential(size=p), 0.05 + rng.exponential(size=p))
    plain = rng.exponential(size=p)
    weights, ratios = dinkelbach(scatter, kappa * plain, plain.sum())
    assert weights.sum() == pytest.approx(plain.sum(), rel=1e-12)
    assert (weights >= 0).all()
    assert (weights <= kappa * plain * (1 + 1e-12)).all()
    best = by_charnes_and_cooper(*scatter, kappa * plain, plain.sum())
    assert ratios[-1] == pytest.approx(best, rel=1e-7)
    assert float(ratio(scatter, weights)) == ratios[-1]
    assert (np.diff(ratios) > 0).all()
    assert len(ratios) <= 12


def test_dinkelbach_without_room_is_plain_and_without_limit_one_kernel(three_classes):
    grams, y = three_classes
    p = len(grams)
    equal = learn_kernel(grams, y, criterion=Separability(cap=1.0), solver="dinkelbach")
    np.testing.assert_allclose(equal.weights, 1.0 / p)
    single = learn_kernel(grams, y, criterion=Separability(cap=1e9), solver="dinkelbach")
    scatter = explicit_scatter(grams, y)
    expected = np.eye(p)[(scatter.between / scatter.within).argmax()]
    np.testing.assert_allclose(single.weights, expected)
    assert single.objective == pytest.approx(float(critical_alpha(scatter)))
    assert single.status is Status.CONVERGED
    assert [step.objective for step in single.history] == sorted(
        step.objective for step in single.history
    )


def test_dinkelbach_solves_many_problems_at_once_as_it_does_one():
    rng = np.random.default_rng(0)
    scatter = Scatter(rng.exponential(size=(20, 7)), rng.exponential(size=(20, 7)))
    caps = 2.0 * np.arange(1.0, 8.0)
    together = dinkelbach(scatter, caps, 28.0)[0]
    for i in range(20):
        one = dinkelbach(Scatter(scatter.between[i], scatter.within[i]), caps, 28.0)[0]
        np.testing.assert_array_equal(together[i], one)


def test_dinkelbach_ends_at_an_infinite_ratio():
    scatter = Scatter(np.array([1.0, 2.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    weights, ratios = dinkelbach(scatter, np.full(3, 1.0), 1.0)
    assert ratios[-1] == np.inf
    np.testing.assert_array_equal(weights, [1.0, 0.0, 0.0])


# ---- the spectrum of one matrix --------------------------------------------------------------


def test_all_eigenvectors_with_plain_weights_are_the_matrix(partial):
    """K_μ with μ_r = √λ_r; ``"dinkelbach"`` with a cap of 1 leaves nothing else."""
    K, y, _ = partial
    found = reweigh_spectrum(K, y, method="dinkelbach", cap=1.0, share=1.0)
    np.testing.assert_allclose(found.mu, np.sqrt(found.eigenvalues), rtol=1e-10)
    np.testing.assert_allclose(found.matrix, K, atol=1e-8)


@pytest.mark.parametrize("method", ["closed_form", "dinkelbach", "alignment"])
@pytest.mark.parametrize("classes", [2, 3])
def test_reweighed_matrix_by_explicit_eigenvectors(partial, method, classes):
    K, y, _ = partial
    y = two(y) if classes == 2 else y
    found = reweigh_spectrum(K, y, method=method, share=0.7, alpha=50.0, cap=1.5)
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    n = int(np.argmax(np.cumsum(values) >= 0.7 * values.sum())) + 1
    values, vectors = values[:n], vectors[:, :n]
    known = np.flatnonzero(y >= 0)
    V, labels = vectors[known], y[known]
    overall = V.mean(axis=0)
    means = np.array([V[labels == label].mean(axis=0) for label in labels])
    f, g = np.mean((means - overall) ** 2, axis=0), np.mean((V - means) ** 2, axis=0)
    if method == "closed_form":
        inverse = 1.0 / (f - 50.0 * g)
        weights = (np.sqrt(values).sum() * inverse / inverse.sum()) ** 2
    elif method == "alignment":
        strength = (V.T @ np.where(labels == 1, 1.0, -1.0)) ** 2 if classes == 2 else f
        weights = strength * values.sum() / strength.sum()
    else:
        weights = dinkelbach(Scatter(f, g), 1.5 * values, values.sum())[0]
        best = by_charnes_and_cooper(f, g, 1.5 * values, values.sum())
        assert found.ratio == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(found.matrix, (vectors * weights) @ vectors.T, atol=1e-8)
    np.testing.assert_allclose(found.scatter.between, f, rtol=1e-6, atol=1e-12)
    assert found.is_maximum is {"closed_form": True, "dinkelbach": True, "alignment": None}[method]
    assert found.alpha == (50.0 if method == "closed_form" else None)


@pytest.mark.parametrize("method", ["closed_form", "dinkelbach", "alignment"])
def test_extension_to_new_rows_reproduces_the_matrix_on_its_own(partial, method):
    K, y, _ = partial
    found = reweigh_spectrum(K, y, method=method, share=0.9)
    np.testing.assert_allclose(
        found.extend(K), found.matrix, atol=1e-10 * np.abs(found.matrix).max()
    )
    np.testing.assert_allclose(
        found.extend(K[5:9]), found.matrix[5:9], atol=1e-10 * np.abs(found.matrix).max()
    )


def test_labels_of_the_hidden_rows_have_no_say(partial):
    K, y, _ = partial
    plain = reweigh_spectrum(K, y)
    order = np.random.default_rng(0).permutation(len(y))
    permuted = reweigh_spectrum(K[np.ix_(order, order)], y[order])
    np.testing.assert_allclose(permuted.matrix, plain.matrix[np.ix_(order, order)], atol=1e-8)


@pytest.mark.parametrize("method", ["closed_form", "dinkelbach", "alignment"])
def test_equal_eigenvalues_leave_no_choice_of_basis(method):
    """Eigenvectors of one eigenvalue may be rotated at will: the learned matrix may not change."""
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((30, 12)))[0]
    values = np.array([9.0, 5, 5, 5, 4, 3, 3, 2, 1, 1, 1, 1])
    turned = V.copy()
    for first, last in ((1, 4), (5, 7), (8, 12)):
        turn = special_ortho_group.rvs(last - first, random_state=1)
        turned[:, first:last] = V[:, first:last] @ turn
    y = np.r_[np.arange(15) % 3, np.full(15, -1)]
    share = 12.0 / 40.0  # within the first eigenspace of more than one vector
    one, other = (
        reweigh_spectrum((W * values) @ W.T, y, method=method, share=share) for W in (V, turned)
    )
    assert len(one.mu) == len(other.mu) == 4
    np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-10)
    np.testing.assert_allclose(one.mu[1:4], one.mu[1])


def test_an_eigenvector_of_hidden_rows_only_gets_no_weight():
    K = np.kron(np.eye(2), RBF(width=1.0)(np.arange(8.0)[:, None]))
    K[8:, 8:] *= 1.1  # every eigenvector lives on the first rows or on the last
    y = np.r_[np.repeat([0, 1], 4), np.full(8, -1)]
    for method in ("closed_form", "dinkelbach"):
        found = reweigh_spectrum(K, y, method=method, share=0.9)
        hidden = np.abs(found.vectors[:8]).max(axis=0) < 1e-8
        assert hidden.any()
        assert (found.mu[hidden] == 0).all()
        assert np.isfinite(found.mu).all()
        assert np.abs(found.matrix[:8, :8]).max() > 0.1


@pytest.mark.parametrize("mark", [None, np.nan, -1], ids=["None", "NaN", "-1"])
def test_rows_without_label_are_marked_in_any_of_three_ways(partial, mark):
    K, y, _ = partial
    names = np.array(["red", "rose", "white"])[y].astype(object)
    names[y < 0] = mark
    found = Labels.from_partial(names)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(y >= 0))
    assert found.target.classes.tolist() == ["red", "rose", "white"]
    expected = reweigh_spectrum(K, y).matrix
    np.testing.assert_array_equal(reweigh_spectrum(K, names).matrix, expected)
    np.testing.assert_array_equal(reweigh_spectrum(K, pd.Series(names)).matrix, expected)


def test_minus_one_may_be_a_class():
    found = Labels.from_partial([-1.0, 1.0, np.nan, -1.0, 1.0], None)
    assert found.target.classes.tolist() == [-1.0, 1.0]
    assert found.rows.tolist() == [0, 1, 3, 4]


Y = [0, 0, 1, 1, -1, -1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 1, 1, 0, 1], r"must be unlabelled rows .*marked by -1.*All 6 rows have"),
        ([-1] * 6, r"labelled rows of at least two classes. Got none"),
        ([0, 0, 0, 0, -1, -1], r"at least two classes to separate. Got 1 class: \[0\]"),
        ([[0], [0], [1], [1], [-1], [-1]], r"1d array of labels. Got shape \(6, 1\)"),
        (["a", "a", "b", "b", "-1", "-1"], r"array of dtype object. Got .* the label '-1'"),
        (
            pd.Categorical(["a", "a", "b", "b", None, None], categories=["a", "b", "c"]),
            r"Every class must have a labelled row. Got none of \['c'\]",
        ),
        ([0, 0, 1, 1, -1], r"one label per row of the kernel matrix. Got 5 labels .*\(6, 6\)"),
    ],
)
def test_reweigh_spectrum_refuses_labels(y, message):
    with pytest.raises(InvalidInputError, match=message):
        reweigh_spectrum(np.eye(6), y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, r"must be one of 'closed_form', 'dinkelbach', 'alignment'"),
        ({"share": 0.0}, r"share of the trace .* above 0 and at most 1.*Got 0.0"),
        ({"share": "auto"}, r"share of the trace .*Got 'auto'"),
        ({"alpha": -1}, r"alpha of class separability .*Got -1"),
        ({"cap": 0}, r"cap of class separability .*Got 0"),
    ],
)
def test_reweigh_spectrum_refuses_options(options, message):
    with pytest.raises(InvalidInputError, match=message):
        reweigh_spectrum(np.eye(6), Y, **options)


def test_reweigh_spectrum_refuses_what_is_no_kernel():
    with pytest.raises(InvalidGramError, match=r"positive semidefinite. K has the eigenvalue -1"):
        reweigh_spectrum(-np.eye(6), Y)
    with pytest.raises(InvalidInputError, match=r"NaN or infinity. K has nan"):
        reweigh_spectrum(np.full((6, 6), np.nan), Y)
    flat = np.zeros((6, 6))
    flat[4:, 4:] = 1.0
    with pytest.raises(InvalidInputError, match=r"vary over the labelled rows. .*all 4 of them"):
        reweigh_spectrum(flat, Y)


# ---- what is chosen --------------------------------------------------------------------------


def slow_hits(K, y, i, k=1, **options):
    """Whether row i is right when it has no label at all, from the beginning."""
    hidden = y.copy()
    hidden[i] = -1
    found = reweigh_spectrum(K, hidden, **options).matrix
    rest = np.flatnonzero(hidden >= 0)
    distances = found[i, i] - 2.0 * found[i, rest] + found.diagonal()[rest]
    votes = np.bincount(y[rest][np.argsort(distances, kind="stable")[:k]], minlength=3)
    return votes.argmax() == y[i]


@pytest.mark.parametrize("n_neighbors", [1, 3])
@pytest.mark.parametrize("method", ["closed_form", "dinkelbach", "alignment"])
@pytest.mark.parametrize("classes", [2, 3])
def test_leave_one_out_hides_the_label_from_the_weights_too(partial, method, classes, n_neighbors):
    K, y, _ = partial
    y = two(y) if classes == 2 else y
    choice = choose_reweighing(
        K[None], Labels.from_partial(y), method=method, share="auto", n_neighbors=n_neighbors
    )
    known = np.flatnonzero(y >= 0)
    tried = [trial for trial in choice.trials if trial.method == method and trial.share < 0.9]
    assert len(tried) >= 3
    for trial in tried[:4]:
        options = {"method": method, "share": trial.share}
        if trial.alpha is not None:
            options["alpha"] = trial.alpha
        expected = [slow_hits(K, y, i, n_neighbors, **options) for i in known]
        np.testing.assert_array_equal(trial.hits, expected)


def test_the_most_accurate_is_chosen_and_what_was_tried_is_told(partial):
    K, y, _ = partial
    grams = np.array([K, K**4])
    choice = choose_reweighing(grams, Labels.from_partial(y), include_plain=False)
    first, *others = choice.trials
    assert all(first.rank >= other.rank for other in others)
    assert {trial.kernel for trial in choice.trials} == {0, 1}
    assert {trial.alpha for trial in choice.trials} == set(ALPHAS)
    assert {trial.share for trial in choice.trials} <= set(SHARES)
    expected = reweigh_spectrum(grams[first.kernel], y, share=first.share, alpha=first.alpha)
    np.testing.assert_array_equal(choice.spectrum.matrix, expected.matrix)


def test_one_row_of_much_weight_is_one_row_to_go_by():
    """A gain of half of all weight is clear if many rows have it, and chance if one has."""
    for weights in (np.where(np.arange(60) == 7, 59.0, 1.0), np.ones(60)):
        plain = Trial(0, "plain", 1.0, None, np.zeros(60, dtype=bool), 0.0, weights)
        assert not _is_clearly_better(plain._replace(hits=np.arange(60) == 7), plain)
        assert _is_clearly_better(plain._replace(hits=np.arange(60) >= 30), plain)


def test_plain_kernel_is_given_up_only_for_what_is_clearly_better(partial):
    """Nothing is better than neighbours that are always right; much is than noise."""
    K = partial[0]
    rng = np.random.default_rng(0)
    ideal = np.eye(3)[np.arange(90) % 3] + 0.1 * rng.standard_normal((90, 3))
    labels = np.where(np.arange(90) < 40, np.arange(90) % 3, -1)
    kept = choose_reweighing(RBF(width=1.0)(ideal)[None], Labels.from_partial(labels))
    assert kept.spectrum.method == "plain"
    assert kept.trials[0].accuracy == 1.0
    np.testing.assert_array_equal(kept.spectrum.extend(K), K)
    noisy = np.hstack([3.0 * ideal, rng.standard_normal((90, 60))])
    given_up = choose_reweighing(RBF(width=15.0)(noisy)[None], Labels.from_partial(labels))
    assert given_up.spectrum.method == "closed_form"
    plain = next(trial for trial in given_up.trials if trial.method == "plain")
    gained = np.sum(given_up.trials[0].hits & ~plain.hits)
    lost = np.sum(plain.hits & ~given_up.trials[0].hits)
    assert gained - lost > 1.645 * np.sqrt(gained + lost)


def test_nothing_is_tried_where_nothing_is_open(partial):
    K, y, _ = partial
    choice = choose_reweighing(K[None], Labels.from_partial(y), share=0.8, alpha=1e4)
    assert choice.trials == ()
    np.testing.assert_array_equal(choice.spectrum.matrix, reweigh_spectrum(K, y).matrix)


def test_a_class_with_one_labelled_row_can_be_left_out(partial):
    K, y, _ = partial
    y = y.copy()
    y[np.flatnonzero(y == 2)[1:]] = -1
    choice = choose_reweighing(K[None], Labels.from_partial(y), include_plain=False)
    alone = np.flatnonzero(y[y >= 0] == 2)
    assert not choice.trials[0].hits[alone].any()
    assert np.isfinite(choice.spectrum.mu).all()


def test_votes_count_the_nearest_and_take_the_first_of_equals():
    distances = np.array([[3.0, 1.0, 1.0, 2.0], [0.0, 0.0, 5.0, 5.0]])
    codes = np.array([0, 2, 1, 0])
    np.testing.assert_array_equal(neighbor_votes(distances, codes, 3, 1), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(neighbor_votes(distances, codes, 3, 3), [[1, 1, 1], [1, 1, 1]])


def test_separability_rises_with_dinkelbach(partial):
    """The ratio of the traces, where there is room, is above that of the plain kernel."""
    K, y, _ = partial
    plain = reweigh_spectrum(K, y, method="dinkelbach", cap=1.0).ratio
    ratios = [reweigh_spectrum(K, y, method="dinkelbach", cap=c).ratio for c in (1.5, 2.0, 8.0)]
    assert plain < ratios[0] < ratios[1] < ratios[2]


@pytest.mark.parametrize("k", [2, 3])
def test_scatter_of_the_leading_vectors_of_a_problem(k):
    """The trace of the whole spectrum's scatter is that of the kernel on the labelled rows."""
    grams, y = make_problem(40, k, 3)
    partial_labels = np.where(np.arange(40) < 20, y, -1)
    found = reweigh_spectrum(grams[1], partial_labels, share=1.0)
    f, g = found.scatter
    part = grams[1][:20, :20]
    whole = np.trace(part) / 20 - part.mean()
    assert (f + g) @ found.eigenvalues == pytest.approx(whole, rel=1e-8)
    labels = Labels.from_partial(partial_labels)
    direct = vector_scatter(found.vectors[:20], labels.target)
    np.testing.assert_allclose(f @ found.eigenvalues, direct.between @ found.eigenvalues)
