"""All solvers find the same optimum, and it is the one of the plainly written programs."""

import numpy as np
import pytest

from discernel import Status, learn_kernel
from discernel.solvers import SDP, SILP
from tests import reference
from tests.conftest import make_problem

#: samples, classes, kernels, λ
PROBLEMS = [
    (30, 2, 3, 1e-2),
    (30, 2, 10, 5e-4),
    (36, 2, 20, 1e-3),
    (30, 2, 5, "joint"),
    (30, 3, 3, 5e-4),
    (33, 3, 8, 1e-3),
    (30, 3, 6, "joint"),
    (30, 10, 5, 1e-2),
    (30, 10, 4, "joint"),
    (30, 10, 20, 5e-4),
]


def learn(grams, y, **options):
    return learn_kernel(grams, y, criterion="rkda", **options)


@pytest.mark.conic
@pytest.mark.parametrize(("m", "k", "p", "lam"), PROBLEMS)
def test_newton_qcqp_sdp_and_silp_agree(m, k, p, lam):
    grams, y = make_problem(m, k, p, seed=m + k + p)
    newton = learn(grams, y, regularization=lam, solver="newton", tol=1e-8)
    for solver in ("qcqp", "sdp", "silp"):
        other = learn(grams, y, regularization=lam, solver=solver, tol=1e-6)
        assert other.status.is_success, f"{solver}: {other.status}"
        assert other.objective == pytest.approx(newton.objective, rel=1e-6), solver
        assert other.gap <= 1e-6, solver


@pytest.mark.parametrize(("m", "k", "p", "lam"), PROBLEMS)
def test_galerkin_and_newton_agree(m, k, p, lam):
    grams, y = make_problem(m, k, p, seed=m + k + p)
    newton = learn(grams, y, regularization=lam, solver="newton", tol=1e-8)
    other = learn(grams, y, regularization=lam, solver="galerkin", tol=1e-8)
    assert other.status.is_success
    assert other.solver == "galerkin"
    assert other.objective == pytest.approx(newton.objective, rel=1e-8)
    assert other.gap <= 1e-8


@pytest.mark.conic
@pytest.mark.parametrize(("m", "k", "p", "lam"), PROBLEMS)
def test_newton_finds_the_value_of_the_papers_qcqp(m, k, p, lam):
    """Ye 2008, Eq. (34) and (46), as printed."""
    grams, y = make_problem(m, k, p, seed=m + k + p)
    learned = learn(grams, y, regularization=lam, tol=1e-8)
    if lam == "joint":
        expected = reference.rkda_joint_qcqp(grams, y)
    else:
        expected, _ = reference.rkda_qcqp(grams, y, lam)
    assert learned.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("n_classes", "lam"), [(2, 1e-2), (3, 5e-4), (10, 1e-3)])
def test_newton_is_not_beaten_by_brute_force(n_classes, lam):
    grams, y = make_problem(30, n_classes, 4, seed=7)
    learned = learn(grams, y, regularization=lam, tol=1e-9)
    assert learned.objective == pytest.approx(reference.rkda_optimum(grams, y, lam), rel=1e-6)
    value = reference.rkda(grams, y, learned.weights, lam)
    assert learned.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.conic
def test_exact_and_approximate_sdp_are_those_of_the_paper():
    """Ye 2008, Eq. (29) and (32): the second is stricter, so no weights of it are better."""
    grams, y = make_problem(24, 3, 4, seed=8)
    exact, _ = reference.rkda_sdp(grams, y, 1e-2)
    bound, weights = reference.rkda_sdp(grams, y, 1e-2, approximate=True)
    ours = learn(grams, y, regularization=1e-2, solver="sdp")
    assert ours.objective == pytest.approx(exact, rel=1e-6)
    loose = learn(grams, y, regularization=1e-2, solver="sdp_approximate")
    np.testing.assert_allclose(loose.weights, weights, atol=1e-4)
    assert loose.status is Status.APPROXIMATE
    assert ours.objective * (1 + 1e-4) < loose.objective <= bound
    assert loose.gap >= (loose.objective - ours.objective) / loose.objective - 1e-9


@pytest.mark.conic
@pytest.mark.parametrize("lam", [1e-1, 1e-2, 1e-4])
def test_fdr_newton_and_sdp_find_the_value_of_kim_2006_eq_9(two_classes, lam):
    grams, y = two_classes
    newton = learn_kernel(grams, y, criterion="fdr", regularization=lam, tol=1e-9)
    sdp = learn_kernel(grams, y, criterion="fdr", regularization=lam, solver="sdp", tol=1e-5)
    expected, _ = reference.fisher_ratio_sdp(grams, y, lam)
    assert newton.objective == pytest.approx(expected, rel=1e-6)
    assert newton.objective == pytest.approx(sdp.objective, rel=1e-6)
    assert newton.objective == pytest.approx(
        reference.fisher_ratio_optimum(grams, y, lam), rel=1e-6
    )


@pytest.mark.conic
def test_another_installed_conic_solver_by_name():
    grams, y = make_problem(20, 2, 3, seed=9)
    newton = learn(grams, y, regularization=0.1, tol=1e-9)
    scs = learn(grams, y, regularization=0.1, solver=SDP(backend="SCS"), tol=1e-2)
    assert scs.objective == pytest.approx(newton.objective, rel=1e-3)


def test_silp_stops_by_the_papers_rule_earlier_than_by_the_gap(three_classes):
    """Ye 2008, Eq. (22) with ε = 5e-4."""
    grams, y = three_classes
    exact = learn(grams, y, regularization=1e-2, tol=1e-9)
    paper = learn(grams, y, regularization=1e-2, solver=SILP(stopping="paper"))
    tight = learn(grams, y, regularization=1e-2, solver="silp", tol=1e-7)
    assert paper.n_iter < tight.n_iter
    assert exact.objective <= paper.objective <= exact.objective * (1 + 1e-3)
    assert paper.objective - exact.objective <= paper.gap * paper.objective * (1 + 1e-9)
    assert tight.objective == pytest.approx(exact.objective, rel=1e-6)


@pytest.mark.parametrize("solver", ["newton", "silp"])
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_gap_is_a_true_bound_at_every_iteration(three_classes, solver, max_iter):
    grams, y = three_classes
    best = learn(grams, y, regularization=1e-3, tol=1e-11).objective
    with pytest.warns() as caught:
        early = learn(grams, y, regularization=1e-3, solver=solver, max_iter=max_iter, tol=1e-14)
    assert early.objective - best <= early.gap * early.objective * (1 + 1e-9)
    assert "Raise" in str(caught[0].message)
