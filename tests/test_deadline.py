"""Work that has a deadline looks at the clock, and stops in time."""

import numpy as np
import pytest

from discernel import learn_kernel
from discernel.arrays import Cholesky, in_threads, matmul, self_product, symmetric_eigen
from discernel.default.landmarks import residual_landmarks
from discernel.default.metric import learn_metric
from discernel.exceptions import ConvergenceWarning
from discernel.kernels import RBF
from discernel.kernels.weighted import WeightedKernels
from discernel.progress.deadline import (
    NO_DEADLINE,
    Deadline,
    OutOfTimeError,
    active_deadline,
    check_deadline,
    is_late,
    keep_deadline,
    must_stop_learning,
)
from discernel.solvers import Status
from discernel.targets import ClassTarget
from tests.bank._blend import blend_of_rank


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def advance(self, *_):
        self.now += 1.0


def test_without_a_deadline_nothing_stops():
    assert active_deadline() is NO_DEADLINE
    assert active_deadline().to_learn == np.inf
    assert not is_late()
    assert not must_stop_learning()
    check_deadline(1e300)


def test_time_for_learning_ends_before_the_deadline():
    clock = Clock()
    with keep_deadline(Deadline(10.0, clock, reserve=4.0)):
        assert active_deadline().to_learn == 6.0
        clock.now = 7.0
        assert is_late()
        assert must_stop_learning()
        check_deadline()
        clock.now = 11.0
        with pytest.raises(OutOfTimeError):
            check_deadline()
    assert active_deadline() is NO_DEADLINE


def test_a_factorisation_that_cannot_end_in_time_does_not_begin():
    clock = Clock()
    with keep_deadline(Deadline(1.0, clock, rate=8.0)):
        Cholesky(np.eye(2))
        with pytest.raises(OutOfTimeError):
            Cholesky(np.eye(3))  # 9 operations


def test_jobs_of_threads_end_with_the_one_that_they_are_at():
    clock, done = Clock(), []

    def work(job, _):
        done.append(job)
        clock.advance()

    with keep_deadline(Deadline(2.5, clock)), pytest.raises(OutOfTimeError):
        in_threads(work, range(10), [None])
    assert done == [0, 1, 2]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_work_in_threads_knows_the_deadline(n_threads):
    deadline, found = Deadline(1.0, Clock()), []
    with keep_deadline(deadline):
        in_threads(lambda *_: found.append(active_deadline()), range(4), [None] * n_threads)
    assert found == [deadline] * 4


@pytest.mark.parametrize(
    "work",
    [
        lambda square: matmul(square, square),
        self_product,
        symmetric_eigen,
        lambda square: Cholesky(np.eye(3)).solve(square),
        lambda square: Cholesky(np.eye(3)).half_solve(square),
    ],
)
def test_no_product_and_no_solution_begins_after_the_deadline(work):
    clock = Clock()
    with keep_deadline(Deadline(0.5, clock)):
        work(np.asfortranarray(np.eye(3)))
        clock.advance()
        with pytest.raises(OutOfTimeError):
            work(np.asfortranarray(np.eye(3)))


ROWS = np.random.default_rng(0).normal(size=(300, 4))
LABELS = (ROWS[:, 0] * ROWS[:, 1] > 0).astype(int)


def draw_landmarks():
    kernel = WeightedKernels([RBF(width=1.0)], np.full(1, 1e-2))
    residual_landmarks(ROWS, kernel, ClassTarget.from_labels(LABELS), 30, 1e-3)


def make_features():
    blend_of_rank([RBF(width=1.0), RBF(width=2.0)], np.full(2, 0.5), ROWS, 30)


def find_metric():
    learn_metric(ROWS, np.eye(2)[LABELS])


@pytest.mark.parametrize(
    ("work", "n_looks"), [(draw_landmarks, 12), (make_features, 5), (find_metric, 10)]
)
def test_long_work_looks_at_the_clock_between_its_steps(work, n_looks):
    looks = []

    def clock():
        looks.append(None)
        return 0.0

    with keep_deadline(Deadline(1.0, clock)):
        work()
    assert len(looks) >= n_looks


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    grams = [RBF(width=width)(X) for width in (0.5, 1.0, 2.0, 4.0)]
    return grams, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize(
    ("criterion", "solver"),
    [("rkda", "newton"), ("rkda", "silp"), ("rkda", "galerkin"), ("margin", "auto")],
)
def test_solvers_stop_with_their_weights_and_the_gap(problem, criterion, solver):
    clock = Clock()
    options = {"criterion": criterion, "solver": solver}
    if criterion == "rkda":
        options["regularization"] = 1e-3
    whole = learn_kernel(*problem, **options, tol=1e-6)
    with (
        keep_deadline(Deadline(100.0, clock, reserve=98.5)),
        pytest.warns(ConvergenceWarning, match=r"stopped by the time limit .* Raise max_time"),
    ):
        found = learn_kernel(*problem, **options, tol=1e-6, callback=clock.advance)
    assert found.status is Status.OUT_OF_TIME
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.n_iter < whole.n_iter
    # The gap is a certificate of these weights.
    assert found.gap > whole.gap
    better = (found.objective - whole.objective) / abs(found.objective)
    assert abs(better) <= found.gap * (1 + 1e-9) + whole.gap


@pytest.mark.parametrize("criterion", ["auto", "loo"])
def test_searches_stop_with_the_best_so_far(problem, criterion):
    with (
        keep_deadline(Deadline(np.inf, Clock(), learns=False)),
        pytest.warns(ConvergenceWarning, match="stopped by the time limit"),
    ):
        found = learn_kernel(*problem, criterion=criterion)
    assert found.status is Status.OUT_OF_TIME
    np.testing.assert_allclose(found.weights, 0.25)
    assert [each.name for each in found.considered] == ["average"]


def test_the_search_for_a_regularization_ends_with_the_best_that_was_tried(problem):
    clock = Clock()
    deadline = Deadline(100.0, clock, reserve=99.5)
    with keep_deadline(deadline), pytest.warns(ConvergenceWarning):
        found = learn_kernel(*problem, criterion="rkda", callback=clock.advance)
    assert len(found.leave_one_out) == 1


def test_conic_solvers_are_told_the_time_that_is_left(problem):
    pytest.importorskip("cvxpy")
    with keep_deadline(Deadline(10.0, Clock(), learns=False)), pytest.warns(ConvergenceWarning):
        found = learn_kernel(*problem, criterion="rkda", solver="qcqp", regularization=1e-2)
    assert found.status is Status.OUT_OF_TIME
    np.testing.assert_allclose(found.weights, 0.25)
    with keep_deadline(Deadline(1e3, Clock())):
        found = learn_kernel(
            *problem, criterion="rkda", solver="qcqp", regularization=1e-2, tol=1e-4
        )
    assert found.status is Status.CONVERGED
