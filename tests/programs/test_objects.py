"""Criteria are objects: names stand for them, and a user's own go where ours go."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import softmax, xlogy
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from discernel import MultipleKernelDiscriminant, Status, learn_kernel
from discernel.criteria import (
    AKFD,
    CRITERIA,
    RKDA,
    Alignment,
    Auto,
    ConvexProgram,
    Criterion,
    FisherRatio,
    LeaveOneOut,
    Margin,
    Point,
    Separability,
    Split,
    Uniform,
    as_criterion,
)
from discernel.exceptions import ConvergenceWarning, InvalidInputError, NumericalError
from discernel.kernels import RBF
from discernel.programs.search import Search
from discernel.solvers import Galerkin, Newton, Solution
from tests import reference
from tests.conftest import make_problem

#: What the names stand for, and the same criterion with another option.
OBJECTS = {
    "auto": (Auto(), Auto(pull=500.0)),
    "rkda": (RKDA(), RKDA(shrinkage=1.0)),
    "fdr": (FisherRatio(), None),
    "akfd": (AKFD(), AKFD(nu=0.5)),
    "alignment": (Alignment(), Alignment(epsilon=0.0)),
    "margin": (Margin(), Margin("SM1", C=0.1)),
    "separability": (Separability(), Separability(alpha="1.1*critical")),
    "loo": (LeaveOneOut(), LeaveOneOut(pull=500.0)),
    "uniform": (Uniform(), None),
}


# ---- names and objects -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("regularization", [1e-2, "auto"])
def test_a_name_stands_for_the_object_with_its_defaults(two_classes, name, regularization):
    grams, y = two_classes
    made, other = OBJECTS[name]
    by_name, by_object = (
        learn_kernel(grams, y, criterion=each, regularization=regularization)
        for each in (name, made)
    )
    np.testing.assert_array_equal(by_name.weights, by_object.weights)
    np.testing.assert_array_equal(by_name.coefficients, by_object.coefficients)
    for field in ("regularization", "objective", "gap", "status", "n_iter", "criterion", "solver"):
        assert getattr(by_name, field) == getattr(by_object, field), field
    assert by_name.history == by_object.history
    assert by_name.leave_one_out == by_object.leave_one_out
    assert by_name.criterion == made.name == name
    if other is not None:  # what an object says is heard
        changed = learn_kernel(grams, y, criterion=other, regularization=regularization)
        assert np.abs(changed.weights - by_name.weights).max() > 1e-3


@pytest.mark.parametrize("name", CRITERIA)
def test_objects_are_values(name):
    made, other = OBJECTS[name]
    assert as_criterion(name) == made
    assert as_criterion(made) is made
    assert made == type(made)()
    assert hash(made) == hash(type(made)())
    assert other is None or other != made


@pytest.mark.parametrize("name", CRITERIA)
def test_the_estimator_takes_either(blobs, name):
    X, y = blobs
    keep = y != y[-1] if len(np.unique(y)) > 2 else slice(None)
    X, y = X[keep], y[keep]
    kernels = [RBF(width=1.0), RBF(width=4.0)]
    by_name, by_object = (
        MultipleKernelDiscriminant(kernels, criterion=each, regularization=0.1).fit(X, y)
        for each in (name, OBJECTS[name][0])
    )
    np.testing.assert_array_equal(by_name.kernel_weights_, by_object.kernel_weights_)
    np.testing.assert_array_equal(by_name.decision_function(X), by_object.decision_function(X))


NAMED = [(name, solver) for name, made in CRITERIA.items() for solver in made.solvers]


@pytest.mark.parametrize(("name", "solver"), NAMED)
def test_the_solver_that_is_named_is_the_one_that_runs(name, solver):
    grams, y = make_problem(24, 2, 3)
    learned = learn_kernel(grams, y, criterion=name, solver=solver, regularization=0.1)
    assert (learned.criterion, learned.solver) == (name, solver)
    assert learned.status.is_success


def test_a_solver_of_auto_may_be_an_object_too(two_classes):
    by_name = learn_kernel(*two_classes, solver="search")
    by_object = learn_kernel(*two_classes, solver=Search())
    assert (by_object.criterion, by_object.solver) == ("auto", "search")
    np.testing.assert_array_equal(by_object.weights, by_name.weights)


@pytest.mark.parametrize("asked", [{"solver": "newton"}, {"regularization": "joint"}])
def test_the_word_auto_gives_way_to_a_solver_but_an_object_does_not(two_classes, asked):
    """Who writes Auto(pull=3.0) means it."""
    assert learn_kernel(*two_classes, **asked).criterion == "rkda"
    with pytest.raises(InvalidInputError, match="of criterion='auto'"):
        learn_kernel(*two_classes, criterion=Auto(pull=3.0), **asked)


# ---- what is no criterion, and no solver -----------------------------------------------------


@dataclass(frozen=True)
class Lookalike:
    """It has the name of a criterion, and nothing else."""

    name: str = "rkda"


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (Lookalike(), r"or an object of discernel.criteria. Got Lookalike\(.*a subclass of"),
        (RKDA, r"Got <class .*RKDA'> of type ABCMeta.*Call the class to make one"),
        ("entropy", r"criterion must be one of 'auto', 'rkda', .*'uniform'. Got 'entropy'"),
        ("RKDA", r"criterion must be one of 'auto', 'rkda', .*Got 'RKDA'"),
        (None, r"criterion must be one of .*Got None of type NoneType"),
        (["rkda"], r"criterion must be one of .*Got \['rkda'\] of type list"),
    ],
)
def test_what_is_no_criterion_is_refused(two_classes, blobs, criterion, message):
    with pytest.raises(InvalidInputError, match=message):
        learn_kernel(*two_classes, criterion=criterion)
    with pytest.raises(InvalidInputError, match=message):
        MultipleKernelDiscriminant(criterion=criterion).fit(*blobs)


class Nameless:
    def solve(self, program, task):
        raise AssertionError("It must not come to this.")


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (Lookalike("mine"), r"with a name and a method solve\(program, task\). Got Lookalike"),
        (Nameless(), r"with a name and a method solve\(program, task\). Got <.*Nameless"),
        (Newton, r"with a name and a method solve\(program, task\). Got <class .*Newton'>"),
        (None, r"must be one of 'auto', 'newton', .*Got None"),
        ("mine", r"solver of criterion='rkda' must be one of 'auto', 'newton', .*Got 'mine'"),
    ],
)
@pytest.mark.parametrize("criterion", ["auto", "rkda"])
def test_what_is_no_solver_is_refused(two_classes, criterion, solver, message):
    with pytest.raises(InvalidInputError, match=message):
        learn_kernel(*two_classes, criterion=criterion, solver=solver)


# ---- a criterion of a user's own -------------------------------------------------------------


class DistancePoint(Point):
    def __init__(self, weights, energies, tau):
        w = np.maximum(weights, 1e-12)  # the logarithm of nothing is none
        self.weights, self.value = weights, float(tau * xlogy(w, len(w) * w).sum() - energies @ w)
        self._gradient, self._curvature = tau * (np.log(len(w) * w) + 1.0) - energies, tau / w

    @property
    def gradient(self):
        return self._gradient

    @property
    def hessian(self):
        return np.diag(self._curvature)


class DistanceProgram(ConvexProgram):
    """Minimise −Σ w_i⟨a, K_ia⟩ + τ Σ w_i log(p w_i): convex, so that tangents are bounds."""

    def __init__(self, energies, tau):
        self.energies, self.tau = energies, tau

    @property
    def n_weights(self):
        return len(self.energies)

    def at(self, weights):
        return DistancePoint(weights, self.energies, self.tau)


@dataclass(frozen=True)
class ClassDistance(Criterion):
    """The squared distance of the class means, with an entropy of ``share`` of its average."""

    share: float = 0.5
    name: ClassVar[str] = "class distance"
    regularization_is: ClassVar[str] = "apart"
    takes: ClassVar[str] = "two classes"

    def program(self, bank, target, regularization):
        a = target.mean_difference[:, None]
        energies = np.einsum("ijk,jk->i", bank.products(a), a)
        return DistanceProgram(energies, self.share * energies.mean())


@dataclass(frozen=True)
class MirrorDescent:
    """Exponentiated gradients, with steps as long as the value falls."""

    rate: float = 1.0
    name: ClassVar[str] = "mirror descent"
    needs: ClassVar[tuple[str, ...]] = ("at",)

    def solve(self, program, task):
        p, bound, max_iter = program.n_weights, -np.inf, task.max_iter or 5000
        point = program.at(np.full(p, 1.0 / p) if task.init is None else task.init)
        step = self.rate / np.abs(point.gradient).max()
        for iteration in range(max_iter + 1):
            bound = max(bound, point.bound)
            found = Solution.at(point, bound, Status.CONVERGED, iteration)
            task.monitor(iteration, point.value, found.gap, point.weights)
            if found.gap <= task.tol:
                return found
            trial = program.at(softmax(np.log(point.weights) - step * point.gradient))
            step *= 1.2 if trial.value < point.value else 0.5
            point = trial if trial.value < point.value else point
        return replace(found, status=Status.MAX_ITERATIONS)


def expected_weights(grams, y, share=0.5):
    """The closed form: weights in proportion to exp(⟨a, K_ia⟩/τ)."""
    a = np.where(y == y.min(), -1.0 / np.sum(y == y.min()), 1.0 / np.sum(y != y.min()))
    energies = np.array([a @ K @ a for K in reference.trace_normalized(grams)])
    return softmax(energies / (share * energies.mean()))


@pytest.mark.parametrize("solver", ["auto", "newton", "silp", MirrorDescent()])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_criterion_of_our_users_own_is_solved_and_certified(two_classes, solver, share):
    grams, y = two_classes
    learned = learn_kernel(
        grams, y, criterion=ClassDistance(share), solver=solver, regularization=0.1, tol=1e-5
    )
    expected = expected_weights(grams, y, share)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(learned.weights, expected, atol=0.02)
    assert learned.gap <= 1e-5
    assert learned.status is Status.CONVERGED
    assert (learned.criterion, learned.regularization) == ("class distance", 0.1)
    ran = {"auto": "newton"}.get(solver, solver) if isinstance(solver, str) else solver.name
    assert learned.solver == ran
    assert learned.history[-1].gap == learned.gap
    assert len(learned.history) == learned.n_iter + 1


def test_regularization_is_chosen_for_weights_that_do_not_depend_on_it(two_classes):
    learned = learn_kernel(*two_classes, criterion=ClassDistance())
    np.testing.assert_allclose(learned.weights, expected_weights(*two_classes), atol=1e-3)
    assert learned.regularization in learned.leave_one_out


def test_what_a_criterion_says_of_itself_is_checked(three_classes, two_classes):
    with pytest.raises(InvalidInputError, match="'class distance' is defined for two classes"):
        learn_kernel(*three_classes, criterion=ClassDistance())
    for solver in ("galerkin", Galerkin()):
        with pytest.raises(InvalidInputError, match=r"'class distance'.*'silp'. Got 'galerkin'"):
            learn_kernel(*two_classes, criterion=ClassDistance(), solver=solver)
    with pytest.raises(InvalidInputError, match=r"'class distance'.*'auto', 'loo'. Got 'joint'"):
        learn_kernel(*two_classes, criterion=ClassDistance(), regularization="joint")


def test_a_default_solver_that_is_none_of_ours_must_be_given(two_classes):
    class Alone(ClassDistance):
        solvers: ClassVar[tuple[str, ...]] = ("mirror descent",)

    message = r"solver of criterion='class distance'.*'mirror descent'.*Give the solver itself"
    for solver in ("auto", "mirror descent"):
        with pytest.raises(InvalidInputError, match=message):
            learn_kernel(*two_classes, criterion=Alone(), solver=solver)
    learned = learn_kernel(*two_classes, criterion=Alone(), solver=MirrorDescent())
    assert learned.solver == "mirror descent"


def test_a_class_without_a_name_is_called_by_its_own():
    class Mine(Criterion):
        def program(self, bank, target, regularization):
            raise NotImplementedError

    class Ours(RKDA):
        pass

    assert (Mine().name, Ours().name) == ("Mine", "rkda")


@pytest.mark.parametrize("solver", ["auto", MirrorDescent(rate=0.5)])
def test_the_estimator_takes_a_criterion_and_a_solver_of_a_users_own(blobs, solver):
    X, y = blobs
    y = np.where(y == y[0], "one", "other")
    kernels = [RBF(width=0.1), RBF(width=1.0), RBF(width=10.0)]
    clf = MultipleKernelDiscriminant(
        kernels, criterion=ClassDistance(), solver=solver, regularization=0.1, tol=1e-5
    )
    copy = clone(clf)
    assert copy.get_params()["criterion"] == ClassDistance()
    assert copy.get_params()["solver"] == solver
    clf.fit(X, y)
    expected = expected_weights(np.array([kernel(X) for kernel in kernels]), y != y[0])
    np.testing.assert_allclose(clf.kernel_weights_, expected, atol=0.02)
    assert clf.gap_ <= 1e-5
    assert set(clf.predict(X)) == {"one", "other"}
    assert clf.score(X, y) > 0.9
    np.testing.assert_array_equal(copy.fit(X, y).predict(X), clf.predict(X))
    scores = cross_val_score(clone(clf), X, y, cv=3)
    assert scores.min() > 0.8


class WithAnOther(ConvexProgram):
    """`DistanceProgram` with a weight more, of nothing, that is split off; and λ matters."""

    def __init__(self, program, lam):
        self.program, self.lam = program, lam

    @property
    def n_weights(self):
        return self.program.n_weights + 1

    def at(self, weights):
        energies = np.append(self.program.energies, 0.0)
        return DistancePoint(weights, energies, self.program.tau * (1.0 + self.lam))

    def split(self, weights):
        kernels = weights[:-1]
        return Split(kernels / kernels.sum(), parameters={"other": float(weights[-1])})


class WithAnOtherCriterion(Criterion):
    def program(self, bank, target, regularization):
        return WithAnOther(ClassDistance().program(bank, target, None), regularization)


def test_a_program_may_have_more_weights_than_there_are_kernels(two_classes):
    """Then the weights of one λ are no start for the next, of which more are asked."""
    learned = learn_kernel(*two_classes, criterion=WithAnOtherCriterion())
    assert learned.regularization in learned.leave_one_out
    assert learned.weights.shape == (5,)
    assert learned.weights.sum() == pytest.approx(1.0)
    assert 0 < learned.parameters["other"] < 1


# ---- a solver of a user's own ----------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["auto", "rkda", RKDA(shrinkage=0.3), "fdr"])
def test_a_solver_of_our_users_own_solves_our_criteria(two_classes, criterion):
    """With the default criterion it means the convex program, as the name of one does."""
    grams, y = two_classes
    mine = learn_kernel(
        grams, y, criterion=criterion, solver=MirrorDescent(), regularization=0.1, tol=1e-3
    )
    name = as_criterion(criterion).name.replace("auto", "rkda")
    assert (mine.criterion, mine.solver) == (name, "mirror descent")
    assert mine.gap <= 1e-3
    plain = "rkda" if criterion == "auto" else criterion
    ours = learn_kernel(grams, y, criterion=plain, solver="newton", regularization=0.1)
    assert mine.objective == pytest.approx(ours.objective, rel=2e-3)


def test_a_solver_that_stops_early_says_so(two_classes):
    with pytest.warns(ConvergenceWarning, match=r"limit reached after 3 .*'mirror descent'.*gap"):
        learned = learn_kernel(
            *two_classes, criterion="rkda", solver=MirrorDescent(), regularization=0.1, max_iter=3
        )
    assert (learned.status, learned.n_iter) == (Status.MAX_ITERATIONS, 3)


class Picky:
    name = "picky"
    needs = ("at", "restricted")

    def solve(self, program, task):
        raise AssertionError("It must not come to this.")


@pytest.mark.parametrize(
    ("criterion", "missing"),
    [
        (FisherRatio(), "restricted"),
        (Margin(), "restricted"),
        (ClassDistance(), "restricted"),
        (Uniform(), "at, restricted"),
        (LeaveOneOut(), "at, restricted"),
    ],
)
def test_a_solver_is_refused_if_the_program_lacks_methods_that_it_needs(
    two_classes, criterion, missing
):
    message = (
        rf"solver='picky' needs a program with at, restricted. .*'{criterion.name}' has "
        rf"no {missing}. Use one of .*'{criterion.solvers[0]}'"
    )
    with pytest.raises(InvalidInputError, match=message):
        learn_kernel(*two_classes, criterion=criterion, solver=Picky())


def test_a_solver_of_ours_is_refused_where_a_criterion_has_no_use_for_it(two_classes):
    for solver in (Galerkin(), "galerkin"):
        with pytest.raises(InvalidInputError, match=r"solver of criterion='fdr'.*Got 'galerkin'"):
            learn_kernel(*two_classes, criterion=FisherRatio(), solver=solver)
    with pytest.raises(InvalidInputError, match=r"'columns' needs .*'rkda' has no select"):
        learn_kernel(*two_classes, criterion="rkda", solver="columns", regularization="joint")


@dataclass(frozen=True)
class Returns:
    """A solver that knows the answer."""

    weights: tuple[float, ...]
    name: ClassVar[str] = "prophet"

    def solve(self, program, task):
        return Solution(np.array(self.weights), 1.0, 0.0, Status.CONVERGED, 1)


@pytest.mark.parametrize(
    "weights",
    [
        (0.5, 0.5, 0.5, 0.0, 0.0),
        (1.5, -0.5, 0.0, 0.0, 0.0),
        (0.5, 0.5),
        (0.2,) * 5 + (0.0,),
        (np.nan, 1.0, 0.0, 0.0, 0.0),
        (np.inf, 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_weights_off_the_simplex_are_a_clear_error(two_classes, weights):
    message = r"return 5 weights that are at least 0 and sum to 1. 'prophet' returned array\("
    with pytest.raises(NumericalError, match=message):
        learn_kernel(*two_classes, criterion="rkda", solver=Returns(weights), regularization=0.1)


def test_weights_on_the_simplex_are_taken_as_they_are(two_classes):
    weights = (0.25, 0.25, 0.5, 0.0, 0.0)
    learned = learn_kernel(
        *two_classes, criterion="rkda", solver=Returns(weights), regularization=0.1
    )
    assert learned.weights.tolist() == list(weights)
    assert (learned.gap, learned.solver) == (1.0, "prophet")


def test_what_is_no_solution_is_a_clear_error(two_classes):
    class Mute:
        name = "mute"

        def solve(self, program, task):
            return np.ones(5) / 5

    with pytest.raises(InvalidInputError, match=r"must return a Solution.*'mute' returned array"):
        learn_kernel(*two_classes, criterion="rkda", solver=Mute(), regularization=0.1)


def test_a_solver_that_is_to_choose_lambda_must_say_which(two_classes):
    with pytest.raises(InvalidInputError, match=r"must return the learned λ\. 'prophet' returned"):
        learn_kernel(*two_classes, criterion=Auto(), solver=Returns((0.2,) * 5))
