"""Options and results of solvers, and the learned kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.programs.base import Point, relative_gap

if TYPE_CHECKING:
    from discernel.show.facts import CandidateFacts, LearnedFacts

#: Up to this many samples, searches use all of them.
FEW_SAMPLES = 500
#: Readable names of candidates, and of the power of their column scales.
_LABELS = {
    "average": "equal weights",
    "likelihood": "equal weights",
    "sources": "equal weights of useful sources",
    "weights": "learned weights",
    "single": "best single kernel",
    "loo": "weights by leave-one-out",
    "rkda": "weights by rkda",
}
_STRENGTHS = {0.0: "unscaled", 0.5: "half scaled", 1.0: "scaled"}


class Status(StrEnum):
    """The reason why a solver stopped, with `advice`.

    Examples
    --------
    >>> Status.CONVERGED.value
    'converged'
    """

    CONVERGED = "converged"
    FLOOR = "converged at the floor of the regularization"
    APPROXIMATE = "approximate by design"
    MAX_ITERATIONS = "iteration limit reached"
    STALLED = "no further progress in floating point"
    INACCURATE = "the conic solver ended inaccurately"
    NO_PROGRAM = "nothing to optimise"
    NO_CERTIFICATE = "the best found; the program is not convex"
    OUT_OF_TIME = "stopped by the time limit"

    @property
    def is_success(self) -> bool:
        """Whether the solver reached its goal."""
        return self in (
            Status.CONVERGED,
            Status.FLOOR,
            Status.APPROXIMATE,
            Status.NO_PROGRAM,
            Status.NO_CERTIFICATE,
        )

    @property
    def advice(self) -> str:
        """A sentence on what to do; empty if nothing is wrong."""
        return {
            Status.FLOOR: "The learned λ is the smallest allowed; give a number if it overfits.",
            Status.MAX_ITERATIONS: "Raise max_iter or tol.",
            Status.STALLED: "Raise the regularization or tol.",
            Status.INACCURATE: "Use solver='auto', raise tol, or try another conic solver.",
            Status.OUT_OF_TIME: "Raise max_time or tol.",
        }.get(self, "")


@dataclass(frozen=True)
class Progress:
    """The argument of a callback, once per iteration.

    Attributes
    ----------
    iteration : int
        The iteration for the current λ, from 0.
    objective : float
        The value of the criterion at the current weights.
    gap : float or None
        The certified relative gap so far; None without a certificate.
    n_active : int
        The number of kernels with positive weight.
    regularization : float or None
        The current λ; None while λ is learned together with the weights.
    stage, n_stages : int
        The number of λ tried before, and the length of the path of λ; a search by leave-one-out
        may skip some. For ``"auto"``, stage 0 searches on a part of the samples and stage 1 on all.
    """

    iteration: int
    objective: float
    gap: float | None
    n_active: int
    regularization: float | None = None
    stage: int = 0
    n_stages: int = 1


#: The end of the considered λ that was chosen.
Limit = Literal["smallest", "largest"]
Callback = Callable[[Progress], Any]


class Monitor(Protocol):
    """A callable that solvers report their iterations to."""

    def __call__(
        self,
        iteration: int,
        value: float,
        gap: float | None,
        weights: FloatArray,
        /,
        **stage: int,
    ) -> None:
        """Report an iteration; ``stage`` and ``n_stages`` are those of `Progress`."""


def silent(*_: Any, **__: Any) -> None:
    """Ignore progress."""


class Subspace(NamedTuple):
    """A subspace of dual points, in which `Galerkin` searches. It does not depend on λ.

    Attributes
    ----------
    basis : ndarray of shape (n_samples, n_columns)
        S, orthonormal.
    matrices : ndarray of shape (n_kernels, n_columns, n_columns)
        Every SᵀK_iS.
    """

    basis: FloatArray
    matrices: FloatArray


@dataclass(frozen=True)
class Task:
    """The options of one run of a solver.

    Attributes
    ----------
    tol : float
        Tolerance of the relative gap.
    max_iter : int or None
        Maximum number of iterations; None for the solver's default.
    init : ndarray of shape (n_weights,) or None
        Initial weights; None for the solver's default, mostly equal weights.
    monitor : callable
        Called with iteration, value, gap (None without a certificate) and weights.
    random_state : int, RandomState or None
        Seed of random subsets; None means 0.
    few : int
        Up to this many samples, a search uses all of them.
    subspace : Subspace or None
        The `Solution.subspace` of the same kernels and target with another λ. A solver that needs
        none ignores it.
    """

    tol: float
    max_iter: int | None = None
    init: FloatArray | None = None
    monitor: Monitor = silent
    random_state: Any = None
    few: int = FEW_SAMPLES
    subspace: Subspace | None = None


class StoppedError(Exception):
    """Raised by a monitor to stop a solver at the deadline; it never reaches users.

    Parameters
    ----------
    solution : Solution, optional
        The current solution of the solver; None if the handler of the error has it.
    """

    def __init__(self, solution: Solution | None = None) -> None:
        super().__init__("The solver is out of time.")
        self.solution = solution


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a solver.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
        Weights that the program allows; by default at least 0 and summing to 1.
    value : float
        The value of the program at the weights; NaN if nothing was optimized.
    bound : float
        A lower bound of the value for all weights; minus infinity if unknown.
    status : Status
        The reason why the solver stopped.
    n_iter : int
        Number of iterations.
    screened : int
        Number of kernels that provably have weight 0 at every optimum.
    error : float
        How far the exact value can be above ``value``.
    regularization : float or None
        λ, if the solver chose it.
    regularization_at_limit : {"smallest", "largest"} or None
        Whether this λ is the smallest or largest of those considered.
    considered : tuple of Candidate
        The candidates, the chosen one first.
    subspace : Subspace or None
        The subspace in which the solver searched last.
    """

    weights: FloatArray
    value: float
    bound: float
    status: Status
    n_iter: int
    screened: int = 0
    error: float = 0.0
    regularization: float | None = None
    regularization_at_limit: Limit | None = None
    considered: tuple[Candidate, ...] = ()
    subspace: Subspace | None = None

    @classmethod
    def at(cls, point: Point, bound: float, status: Status, n_iter: int) -> Solution:
        """Return the solution at a point, with the best known bound."""
        return cls(point.weights, point.value, bound, status, n_iter, error=point.error)

    @property
    def gap(self) -> float:
        """The certified relative duality gap; infinite without a certificate."""
        return relative_gap(self.value, self.bound, self.error)


class Solver(Protocol):
    """An algorithm that finds the weights of a program.

    A solver may have a tuple ``needs`` with the names of methods that a program must have;
    programs without them are then refused before any work.
    """

    @property
    def name(self) -> str:
        """The name of the solver."""

    def solve(self, program: Any, task: Task) -> Solution:
        """Return a solution with a gap of at most ``task.tol``, or a status that explains why."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One of the combinations of kernels that ``"auto"`` chooses from.

    Attributes
    ----------
    name : str
        The method that found the weights. ``"likelihood"``: equal weights, with column scales by
        marginal likelihood. ``"sources"``: equal weights of the useful sources.
    weights : ndarray of shape (n_kernels,)
        The weights.
    regularization : float
        λ.
    error : float
        The loss of held-out rows. With ``kernels="auto"`` it is the mean log-loss over folds, or
        the mean squared error for numbers. With given kernels it is the mean squared leave-one-out
        error of the class scores, where 1 is the error of a constant prediction.
    pull : float
        The penalty on unequal weights.
    strength : float
        The power to which the learned column scales are raised; 0 for no learned scales.
    accuracy : float or None
        The share of held-out rows that are classified correctly; None if unknown.
    quantiles : bool
        Whether the values of columns are replaced by normal quantiles.
    logistic : bool
        Whether the loss is that of a mixture with a kernel logistic regression.
    few_widths : bool
        Whether the kernel of each source is the average of three kernels, not of twelve.
    """

    name: str
    weights: FloatArray
    regularization: float
    error: float
    pull: float
    strength: float = 0.0
    accuracy: float | None = None
    quantiles: bool = False
    logistic: bool = False
    few_widths: bool = False

    @property
    def kernel_options(self) -> tuple[float, bool, bool]:
        """What the kernels depend on."""
        return self.strength, self.quantiles, self.few_widths

    @property
    def score(self) -> float:
        """Error plus pull; the candidate with the smallest score is chosen."""
        return self.error + self.pull

    @property
    def _options(self) -> list[str]:
        """The other choices that were made, in words."""
        options = {
            "columns as quantiles": self.quantiles,
            "three widths per source": self.few_widths,
            "with logistic regression": self.logistic,
        }
        return [text for text, is_chosen in options.items() if is_chosen]

    def label(self, by_folds: bool) -> str:
        """Return the name in pictures and tables: how it weights kernels and scales columns.

        Parameters
        ----------
        by_folds : bool
            Whether candidates were compared by folds; they then differ in the scaling too.

        Examples
        --------
        >>> Candidate("average", np.ones(1), 0.1, 0.5, 0.0, strength=0.5).label(by_folds=True)
        'equal weights, half scaled'
        """
        label = _LABELS.get(self.name, self.name)
        if not by_folds:
            return label
        scaled = _STRENGTHS.get(self.strength, f"scaled to the power {self.strength:g}")
        scaled += " by likelihood" if self.name == "likelihood" else ""
        return ", ".join([label, scaled, *self._options])

    def describe(self, by_folds: bool) -> CandidateFacts:
        """Return the facts about the candidate, as plain data."""
        from discernel.show.facts import CandidateFacts

        is_probability = self.accuracy is not None
        return CandidateFacts(
            name=self.label(by_folds),
            regularization=float(self.regularization),
            n_kernels=int(np.count_nonzero(self.weights)),
            log_loss=float(self.error) if is_probability else None,
            accuracy=self.accuracy,
            squared_error=None if is_probability else float(self.error),
            pull=None if by_folds else float(self.pull),
        )

    def __repr__(self) -> str:
        if self.accuracy is None:
            what = f"error {self.error:z.4f} + pull {self.pull:z.4f}"
        else:
            what = f"log-loss {self.error:z.4f}, accuracy {self.accuracy:.1%}"
        scales = [f"scales to the power {self.strength:g}"] if self.strength else []
        kernels = f"{np.count_nonzero(self.weights)} kernels"
        listed = ", ".join([kernels, *scales, *self._options])
        return f"{self.name}: {what} at λ = {self.regularization:.1e}, {listed}"


@dataclass(frozen=True, eq=False)
class TargetWeights:
    """Weights and λ of each of several targets.

    Attributes
    ----------
    weights : ndarray of shape (n_targets, n_kernels)
        Weights of the normalized kernels, at least 0, with the sum 1 for each target.
    regularization : ndarray of shape (n_targets,)
        The λ.
    errors : ndarray of shape (n_targets,)
        The mean squared leave-one-out error of each target, in units of its variance.
    coefficients : ndarray of shape (n_targets, n_kernels) or None
        Factors for the raw matrices: weights times normalization; None during the search.
    """

    weights: FloatArray
    regularization: FloatArray
    errors: FloatArray
    coefficients: FloatArray | None = None

    def of(self, targets: NDArray[np.intp]) -> TargetWeights:
        """Return weights and λ of some targets."""
        return TargetWeights(
            self.weights[targets], self.regularization[targets], self.errors[targets]
        )

    def replaced(self, targets: NDArray[np.intp], others: TargetWeights) -> TargetWeights:
        """Return a copy with others for some targets."""
        weights, lam, errors = (
            each.copy() for each in (self.weights, self.regularization, self.errors)
        )
        weights[targets], lam[targets] = others.weights, others.regularization
        errors[targets] = others.errors
        return TargetWeights(weights, lam, errors)


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A learned combination of kernels with its certificate.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        Weights of the normalized kernels, at least 0. They sum to 1, except for ``RKDA`` with a
        ``norm``.
    coefficients : ndarray of shape (n_kernels,)
        Factors for the raw matrices: weights times normalization.
    regularization : float
        The λ used, given, chosen or learned.
    objective : float or None
        Value of the criterion at the weights.
    gap : float or None
        The certified relative duality gap; None if the criterion has no certificate.
    status : Status
        Why the solver stopped.
    n_iter : int
        Number of iterations on all samples, summed over all λ of a path. For ``"newton"`` these
        are Newton steps, also if only few kernels are solved for at a time.
    history : list of Progress
        One entry for each iteration.
    criterion, solver : str
        Names of the criterion and of the solver.
    leave_one_out : dict of float to float
        Leave-one-out error of every λ that was tried on all samples, in decreasing order of λ;
        empty if λ was not chosen by it. See the notes of `learn_kernel`.
    considered : tuple of Candidate
        Candidates of ``"auto"``, the chosen one first.
    parameters : dict of str to float
        Other learned parameters: the ``"C"`` of ``Margin("SM2_C")``.
    screened : int
        Number of kernels that provably have weight 0 at every optimum; counted only for ``"rkda"``
        with λ given and many kernels.
    regularization_at_limit : {"smallest", "largest"} or None
        Whether the chosen λ is the smallest or largest that was considered, so that a better one
        may lie beyond; see `regularization_advice`. None for a given λ. There is no warning: λ is
        often the smallest for separable classes and the largest for pure noise.
    rank : int or None
        Number of features with ``bank="lowrank"``. Objective and gap then refer to the
        approximated problem, and ``LowRankLoss.objective_bound`` bounds the distance from the exact
        one. None for exact kernels.
    names : tuple of str
        Names of the kernels, in the order of the weights.
    by_target : TargetWeights or None
        Weights and λ of each target, if these were learned for each; ``weights`` and
        ``coefficients`` are then their means, and ``regularization`` is the geometric mean.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> learned = learn_kernel(grams, y[::3], criterion="rkda", regularization=0.01)
    >>> learned.criterion, learned.solver, learned.gap <= 1e-6
    ('rkda', 'newton', True)
    >>> len(learned.weights), round(float(learned.weights.sum()), 6)
    (4, 1.0)
    """

    weights: FloatArray
    coefficients: FloatArray
    regularization: float
    objective: float | None
    gap: float | None
    status: Status
    n_iter: int
    criterion: str
    solver: str
    history: list[Progress] = field(default_factory=list, repr=False)
    leave_one_out: dict[float, float] = field(default_factory=dict, repr=False)
    considered: tuple[Candidate, ...] = ()
    parameters: dict[str, float] = field(default_factory=dict)
    screened: int = 0
    regularization_at_limit: Limit | None = None
    rank: int | None = None
    names: tuple[str, ...] = field(default=(), repr=False)
    by_target: TargetWeights | None = field(default=None, repr=False)

    @property
    def own_weights(self) -> FloatArray:
        """The weights, of shape (n_targets, n_kernels) if each target has its own."""
        return self.weights if self.by_target is None else self.by_target.weights

    @property
    def own_regularization(self) -> Any:
        """λ, or the λ of each target."""
        return self.regularization if self.by_target is None else self.by_target.regularization

    @property
    def regularization_advice(self) -> str:
        """Advice for a λ at the limit of those considered; empty for any other."""
        found = f"λ = {self.regularization:.1e} is the {self.regularization_at_limit} considered. "
        return {
            None: "",
            "smallest": found + "Held-out samples need no more regularization than this, as is "
            "usual for classes that are easy to separate. If you need more accuracy, give a "
            "smaller number, or try other kernels.",
            "largest": found + "The kernels predict held-out samples badly, perhaps not at all: "
            "see the leave-one-out errors, where 1 is the error of a constant prediction. Try "
            "other kernels, widths or columns, or give a larger number.",
        }[self.regularization_at_limit]

    def combine(self, grams: Any) -> FloatArray:
        """Return the learned combination of raw matrices, between any rows.

        Parameters
        ----------
        grams : array-like of shape (n_kernels, n_rows, n_columns)
            Raw matrices of the same kernels, for example between new rows and training rows.
        """
        return np.tensordot(self.coefficients, np.asarray(grams, dtype=np.float64), 1)

    @property
    def certificate(self) -> str:
        """The certificate of the weights, in a sentence."""
        if self.considered:
            return (
                "No certificate: the weights were chosen by how well held-out rows are predicted, "
                "and a better choice cannot be ruled out. The criterion rkda has a certificate."
            )
        if self.solver == "none":
            how = "given" if self.criterion == "given" else "equal"
            return f"No certificate needed: the weights are {how}, nothing was optimised."
        if self.gap is None or not np.isfinite(self.gap):
            return f"No certificate: {self.status}."
        about = "" if self.rank is None else f", for kernels approximated with rank {self.rank}"
        which = "" if abs(float(self.weights.sum()) - 1.0) <= 1e-6 else " with the same norm"
        return (
            f"No other weights of these kernels{which} improve the criterion {self.criterion} by "
            f"more than {self.gap:.0e} of its value{about}."
        )

    def describe(self, names: Sequence[str] = ()) -> LearnedFacts:
        """Return the facts about the learned kernel, as plain data.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the kernels; by default `names`, or "kernel 0", "kernel 1", ...
        """
        from discernel.show.facts import LearnedFacts

        known = names or self.names or [f"kernel {i}" for i in range(len(self.weights))]
        gap = None if self.gap is None or not np.isfinite(self.gap) else float(self.gap)
        by_folds = compared_by_folds(self.considered)
        return LearnedFacts(
            kernels=dict(zip(known, self.weights.tolist(), strict=True)),
            candidates=tuple(each.describe(by_folds) for each in self.considered),
            why_chosen=self._why_chosen(by_folds),
            criterion=self.criterion,
            solver=self.solver,
            status=str(self.status),
            n_iter=self.n_iter,
            regularization=float(self.regularization),
            regularization_note=self.regularization_advice,
            gap=gap,
            certificate=self.certificate,
        )

    def _why_chosen(self, by_folds: bool) -> str:
        """Return the reason for which the first candidate was chosen."""
        if len(self.considered) < 2:
            return ""
        first = self.considered[0]
        if not by_folds:
            return "chosen: the smallest sum of squared error and pull to equal weights"
        loss = "squared error" if first.accuracy is None else "log-loss"
        if first.error <= min(each.error for each in self.considered):
            return f"chosen: the smallest {loss}"
        return (
            f"chosen: simpler than the candidate with the smallest {loss}, and within one "
            "standard error of it"
        )

    def _repr_html_(self) -> str:
        """Return weights as bars, and the result of the solver, for a notebook."""
        from discernel.show.notebook import notebook_html

        return notebook_html(self.describe().blocks())


def compared_by_folds(candidates: Sequence[Candidate]) -> bool:
    """Return whether candidates were compared by folds, as with ``kernels="auto"``."""
    return any(each.strength > 0 or each.accuracy is not None for each in candidates)
