"""Which λ, which start, which kernel: the rules by which learners choose, against what they say."""

from importlib import import_module

import numpy as np
import pytest

from discernel import learn_kernel, regularization_path
from discernel.bank import DenseBank
from discernel.criteria import Margin
from discernel.papers.akfd.criterion import one_against_rest
from discernel.papers.akfd.solver import alternate
from discernel.papers.separability.spectrum import Labels
from discernel.papers.separability.spectrum_choice import choose_reweighing
from discernel.programs.rkda import RKDAProgram
from discernel.targets import ClassTarget
from tests.conftest import make_problem


def paths():
    for seed in range(6):
        grams, y = make_problem(30, 2, 3, seed=seed)
        yield grams, y, regularization_path(grams, y, tol=1e-4)


def test_of_lambdas_within_one_percent_of_the_least_error_the_largest_is_taken():
    """By the path's `best` and by ``regularization="loo"``, from the same errors."""
    flat = 0
    for grams, y, path in paths():
        errors = path.leave_one_out_errors
        good = path.regularizations[errors <= 1.01 * errors.min()]
        flat += len(good) > 1 and good.max() != path.regularizations[errors.argmin()]
        assert path.best.regularization == good.max()
        learned = learn_kernel(grams, y, criterion="rkda", regularization="loo", tol=1e-4)
        assert learned.regularization == good.max()
        least = min(learned.leave_one_out.values())
        within = [lam for lam, error in learned.leave_one_out.items() if error <= 1.01 * least]
        assert learned.regularization == max(within)
    assert flat > 0, "none of the paths is flat: nothing was tested"


def test_many_samples_start_from_the_optimum_of_a_part_of_them(monkeypatch):
    monkeypatch.setattr(import_module("discernel.learn.learn"), "_MANY", 200)
    grams, y = make_problem(200, 2, 3, seed=1)
    for solver in ("newton", "galerkin"):
        learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-2, solver=solver)
        criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-2)
        equal = criterion.at(np.full(3, 1 / 3)).value
        start, end = learned.history[0].objective, learned.objective
        assert start - end < 0.3 * (equal - end)
        assert learned.gap <= 1e-6


def test_few_samples_start_from_equal_weights():
    grams, y = make_problem(40, 2, 3, seed=1)
    learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-2)
    criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-2)
    assert learned.history[0].objective == pytest.approx(criterion.at(np.full(3, 1 / 3)).value)


def test_the_corrector_saves_a_third_of_the_interior_points_steps():
    """7 steps on average where predictor steps alone take 11."""
    steps = []
    for seed in range(3):
        grams, y = make_problem(60, 2, 5, seed=seed)
        for kind, C in (("SM1", 1.0), ("SM1", 1e3), ("SM2", 1.0), ("SM2", 1e3), ("SM2_C", 1.0)):
            learned = learn_kernel(grams, y, criterion=Margin(kind, C), regularization=0.1)
            assert learned.gap <= 1e-6
            steps.append(learned.n_iter)
    assert np.mean(steps) < 9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("nu", [1e-3, 1.0, 1e3, 1e6])
def test_the_objective_of_the_alternation_never_rises_not_even_by_rounding(nu, n_classes):
    for seed in range(2):
        grams, y = make_problem(24, n_classes, 4, seed=seed)
        d = one_against_rest(ClassTarget.from_labels(y))
        for start in (None, [1e-12, 0, 0, 0], [1e-6, 1e-6, 1, 0]):
            found = alternate(grams, d, nu, tol=1e-15, max_iter=60, start=start)
            assert (np.diff(found.objectives) <= 0).all()


def test_the_plain_kernel_is_given_up_for_what_is_clearly_better_only():
    """[McNemar47]_: more rows gained than lost by 1.645 standard errors of their difference."""
    unclear = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        y = np.arange(60) % 2
        X = rng.standard_normal((60, 3)) + 0.9 * y[:, None] * (np.arange(3) == 0)
        grams = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2)[None] / 4.0)
        labels = Labels.from_partial(np.where(rng.random(60) < 0.5, y, -1))
        choice = choose_reweighing(grams, labels)
        plain = next(trial for trial in choice.trials if trial.method == "plain")
        best = max(
            (trial for trial in choice.trials if trial.method != "plain"), key=lambda t: t.rank
        )
        gained = np.count_nonzero(best.hits & ~plain.hits)
        lost = np.count_nonzero(plain.hits & ~best.hits)
        clearly = gained - lost > 1.645 * np.sqrt(gained + lost)
        unclear += gained > lost and not clearly
        assert (choice.trials[0].method == "plain") == (not clearly)
    assert unclear > 0, "every difference was clear: nothing was tested"
