"""Whether the chosen λ lies at the limit of those considered, and what is said about it."""

import numpy as np
import pytest

from discernel import learn_kernel, regularization_path
from discernel.kernels import RBF
from discernel.programs import search as auto
from discernel.programs.lambdas import find_limit
from discernel.programs.loo import LeaveOneOutProgram
from discernel.programs.solution import Candidate, Status, Task
from tests.conftest import make_problem


def far_apart(n_samples=60, n_kernels=2):
    """Classes that any λ tells apart, the better the smaller it is."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % 2
    X = 10.0 * y[:, None] + 0.01 * rng.standard_normal((n_samples, 2))
    return np.array([RBF(width=w)(X) for w in np.geomspace(20.0, 40.0, n_kernels)]), y


def noise(n_samples=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 2))
    return np.array([RBF(width=w)(X) for w in (0.5, 2.0)]), np.arange(n_samples) % 2


@pytest.mark.parametrize("criterion", ["rkda", "fdr", "uniform"])
def test_a_path_says_which_end_was_chosen(criterion):
    learned = learn_kernel(*noise(), criterion=criterion)
    assert learned.regularization == 1.0
    assert learned.regularization_at_limit == "largest"
    assert "largest considered" in learned.regularization_advice
    assert "regularization_at_limit='largest'" in repr(learned)
    small = learn_kernel(*far_apart(), criterion=criterion)
    assert (small.regularization, small.regularization_at_limit) == (1e-6, "smallest")
    inside = learn_kernel(*make_problem(60, 2, 4, seed=1), criterion=criterion)
    assert 1e-6 < inside.regularization < 1.0
    assert inside.regularization_at_limit is None
    assert inside.regularization_advice == ""


def test_paths_of_ones_own_have_their_own_ends():
    grams, y = make_problem(60, 2, 4, seed=1)
    best = learn_kernel(grams, y, criterion="rkda").regularization
    for values, end in (
        ([10 * best, best], "smallest"),
        ([best, best / 1e4], "largest"),
        ([100 * best, best, best / 1e4], None),
        ([best], None),
    ):
        chosen = regularization_path(grams, y, values).best
        assert (chosen.regularization, chosen.regularization_at_limit) == (best, end)


@pytest.mark.parametrize("criterion", ["auto", "loo"])
def test_the_default_says_it_too(criterion):
    at_end = learn_kernel(*noise(), criterion=criterion)
    assert at_end.regularization_at_limit == "largest"
    assert at_end.considered[0].error > 0.99
    inside = learn_kernel(*make_problem(60, 2, 4, seed=1), criterion=criterion)
    assert inside.regularization_at_limit is None
    grams, y = far_apart()
    at_end = learn_kernel(grams, y, criterion=criterion)
    assert at_end.regularization_at_limit == "smallest"
    assert "smallest considered" in at_end.regularization_advice


@pytest.mark.parametrize(
    ("lam", "end"),
    [(0.89, None), (0.91, "largest"), (1.12e-6, None), (1.08e-6, "smallest"), (3e-7, "smallest")],
)
def test_descent_that_hardly_left_the_end_is_at_the_end(lam, end):
    best = Candidate("loo", np.ones(1), lam, 0.5, 0.0)
    for given, expected in ((None, end), (lam, None)):
        program = LeaveOneOutProgram(None, None, 5.0, given)
        search = auto._Search(program, Task(1e-6), found={"loo": best})
        assert search.solution().regularization_at_limit == expected


@pytest.mark.parametrize("criterion", ["auto", "loo", "rkda", "uniform"])
@pytest.mark.parametrize("lam", [1.0, 1e-6, 1e-7, 10.0])
def test_a_given_lambda_is_at_no_limit(criterion, lam):
    learned = learn_kernel(*noise(30), criterion=criterion, regularization=lam)
    assert learned.regularization_at_limit is None


def test_learned_with_the_weights_it_may_be_the_smallest():
    y = np.arange(20) % 2
    learned = learn_kernel(np.eye(20)[None] + np.outer(y, y), y, regularization="joint")
    assert (learned.status, learned.regularization_at_limit) == (Status.FLOOR, "smallest")
    above = learn_kernel(*far_apart(), criterion="rkda", regularization="joint")
    assert (above.status, above.regularization_at_limit) == (Status.CONVERGED, None)


def test_the_smallest_of_many_samples_is_at_the_limit_too():
    """On all of them 0.3 times the smallest λ of the search is tried: it is beyond the limit."""
    learned = learn_kernel(*far_apart(600))
    assert learned.regularization < 3.1e-7
    assert learned.regularization_at_limit == "smallest"
    lambdas = tuple(np.logspace(0.0, -6.0, 7).tolist())
    assert find_limit(lambdas[-1], lambdas) == "smallest"
    assert find_limit(0.3 * lambdas[-1], lambdas) == "smallest"
    assert find_limit(0.3 * lambdas[0], lambdas) is None
    assert find_limit(1e-7 * (1 + 1e-12), (1e-7, 10.0)) == "smallest"
    assert find_limit(10.0 * (1 - 1e-12), (1e-7, 10.0)) == "largest"
    assert find_limit(5.0, (5.0,)) is None
