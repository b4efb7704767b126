"""What is to be learnt, in checked form: what every learner is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Bank, Normalization
from discernel.criteria import Criterion
from discernel.exceptions import InvalidInputError
from discernel.learners.solution import Callback, LearnedKernel, Solver, Weighting
from discernel.targets import ClassTarget, Target

__all__ = ["CriterionSpec", "Request", "check_leave_one_out"]


@dataclass(frozen=True)
class CriterionSpec:
    """What `learn_kernel` has to know about a criterion.

    Exactly one of ``build``, ``weigh`` and ``learn`` is given.

    Attributes
    ----------
    solvers : tuple of str
        The solvers that can be asked for; the first is the default.
    regularizations : tuple of str
        The words that may stand for λ.
    build : callable or None
        From bank, target, λ (None: learn it) and request to a convex criterion, which a solver
        minimises.
    weigh : callable or None
        From bank, target and request to weights that do not depend on λ.
    learn : callable or None
        From bank, target and request to weights and λ.
    normalization : str
        How the bank normalises the kernels for it.
    balanced : bool
        Whether the discriminant that goes with it weighs classes, not samples, equally.
    two_classes : bool
        Whether it is defined for two classes only.
    classes_only : bool
        Whether it needs classes, and cannot regress.
    options : callable or None
        Makes the default options, where the criterion has any; a user may pass others in place of
        its name.
    """

    solvers: tuple[str, ...]
    regularizations: tuple[str, ...]
    build: Callable[[Bank, Target, float | None, Request], Criterion] | None = None
    weigh: Callable[[Bank, Target, Request], Weighting] | None = None
    learn: Callable[[Bank, Target, Request], LearnedKernel] | None = None
    normalization: Normalization = "centered_trace"
    balanced: bool = False
    two_classes: bool = False
    classes_only: bool = False
    options: Callable[[], Any] | None = None

    def sample_ridge(self, target: Target, regularization: float) -> FloatArray:
        """Return λ times the inverse sample weights of the discriminant that goes with it.

        1 for [Ye08]_, whose scatter counts samples; the class size for [Kim06]_, whose scatter is
        the sum of the class covariances.
        """
        if self.balanced:
            assert isinstance(target, ClassTarget), "only classes can be balanced"
            return regularization * target.counts[target.codes].astype(np.float64)
        return np.full(target.n_samples, regularization)


@dataclass(frozen=True)
class Request:
    """What to learn and how.

    Attributes
    ----------
    criterion : str
        The name of the criterion.
    spec : CriterionSpec
        What is known about it.
    solver : Solver or None
        What minimises it, where it is a program.
    solver_name : str
        The name of the algorithm.
    automatic : bool
        Whether the user left the choice of it to us.
    regularization : float, "loo" or "joint"
        ``"loo"`` chooses λ, ``"joint"`` learns it with the weights.
    tol, max_iter, random_state, callback
        As in `learn_kernel`.
    options : object
        What else the criterion is told.
    """

    criterion: str
    spec: CriterionSpec
    solver: Solver | None
    solver_name: str
    automatic: bool
    regularization: float | Literal["loo", "joint"]
    tol: float = 1e-6
    max_iter: int | None = None
    random_state: Any = None
    callback: Callback | None = None
    options: Any = None

    def check_target(self, target: Target) -> None:
        """Raise a clear error if the target cannot be learnt as asked."""
        if not isinstance(target, ClassTarget):
            if self.spec.classes_only:
                kind = "two classes" if self.spec.two_classes else "classes"
                raise InvalidInputError(
                    f"criterion='{self.criterion}' is for {kind}. Got {target.kind}. Use "
                    "'auto', 'rkda', 'alignment', 'loo' or 'uniform'."
                )
            return
        if self.spec.two_classes and target.n_classes != 2:
            raise InvalidInputError(
                f"criterion='{self.criterion}' is defined for two classes. Got "
                f"{target.n_classes}: {target.classes.tolist()}. Use criterion='rkda', which "
                "takes any number of classes."
            )
        if self.spec.learn is not None:
            what = f"criterion='{self.criterion}'"
            check_leave_one_out(target, what, "criterion='rkda' and a number as regularization")
        elif self.regularization == "loo":
            check_leave_one_out(target, "regularization='loo'", "a number as regularization")


def check_leave_one_out(target: ClassTarget, what: str, instead: str) -> None:
    """Raise a clear error if a class would vanish when one sample is left out."""
    single = target.classes[target.counts == 1]
    if len(single):
        raise InvalidInputError(
            f"{what} leaves one sample out at a time, so every class must have at least two "
            f"samples. Got 1 sample of {single.tolist()}. Merge or remove the class, or give "
            f"{instead}."
        )
