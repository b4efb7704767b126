"""The alternation of A-KFD between discriminant and weights, Fung, Dundar, Bi and Rao (2004)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from discernel.arrays import FloatArray, inner
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank import Matrices, StoredMatrices, System
from discernel.bank.grams import CONSTANT
from discernel.exceptions import InvalidInputError, NumericalError, check_count, check_number
from discernel.papers.akfd.criterion import (
    SERIES_ERROR,
    AKFDProgram,
    critical_nu,
    decide,
    minimize_discriminant,
    minimize_weights,
    objective,
    one_against_rest,
    ridge,
)
from discernel.programs.base import draw_part
from discernel.programs.simplex import normalize
from discernel.programs.solution import Callback, Progress, Solution, Status, Task
from discernel.targets import ClassTarget

#: A function called after every iteration, with its number, the objective and the weights.
_Report = Callable[[int, float, FloatArray], None]

#: The values of ν that [Fung04]_ chooses from.
NUS: tuple[float, ...] = tuple((10.0 ** np.arange(-3, 13)).tolist())


@dataclass(frozen=True, eq=False)
class Alternation:
    """The result of the alternation.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        The weights a, at least 0, not normalised.
    v : ndarray of shape (n_samples, n_columns)
        The coefficients of the training samples.
    gamma : ndarray of shape (n_columns,)
        The thresholds.
    objectives : tuple of float
        Eq. (20) after every half-step: the discriminant, the weights, the discriminant, ...
    n_iter : int
        Pairs of half-steps.
    converged : bool
        Whether the relative change of the objective in the last iteration is at most ``tol``.
    """

    weights: FloatArray
    v: FloatArray
    gamma: FloatArray
    objectives: tuple[float, ...]
    n_iter: int
    converged: bool

    def scores(self, cross: FloatArray) -> FloatArray:
        """Return Σ_j a_j K_j(x)V − γ, [Fung04]_ Eq. (21), of shape (n_rows, n_columns).

        Parameters
        ----------
        cross : ndarray of shape (n_kernels, n_rows, n_samples)
            Every kernel between new rows and the training samples.
        """
        return np.asarray(np.tensordot(self.weights, cross, 1) @ self.v - self.gamma)


def alternate(
    grams: Any,
    d: Any,
    nu: float,
    *,
    start: Any = None,
    tol: float = 1e-4,
    max_iter: int = 100,
    callback: Callback | None = None,
    sample_weights: SampleWeights | None = None,
) -> Alternation:
    """Minimize [Fung04]_, Eq. (20), by Algorithm 4.1: Eq. (23) and (24) in turn.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        The raw kernel matrices; the paper neither centres nor normalizes them.
    d : array-like of shape (n_samples,) or (n_samples, n_columns)
        The targets, `one_against_rest`. All columns share the weights.
    nu : float
        ν > 0.
    start : array-like of shape (n_kernels,), optional
        Weights to start from, at least 0; by default `start_weights`.
    tol : float, default=1e-4
        Relative change of the objective at which to stop. The paper asks for a "sufficiently
        little change" and reports 3 to 4 iterations, which is closest to 1e-2.
    max_iter : int, default=100
        Maximum number of iterations.
    callback : callable, optional
        Called with a `Progress` once per iteration, without a gap: nothing is certified.
    sample_weights : SampleWeights, optional
        Sample weights, which the targets must contain already.

    Returns
    -------
    Alternation
        Weights, discriminant, objectives.

    Raises
    ------
    NumericalError
        If rounding errors of the kernels are larger than 1/√ν. Use a smaller ν then.

    Notes
    -----
    Each half-step is an exact minimization, so the objective never increases; the alternation stops
    when rounding errors would increase it. An iteration takes one factorization and n_kernels
    products with n_columns vectors. The result is a minimum over each block of variables, in
    general not a joint minimum.
    """
    stack = np.ascontiguousarray(grams, dtype=np.float64)
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or stack.size == 0:
        raise InvalidInputError(
            "The Gram matrices must have shape (n_kernels, n_samples, n_samples). "
            f"Got {stack.shape}."
        )
    columns = np.asarray(d, dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or len(columns) != stack.shape[1]:
        raise InvalidInputError(
            f"There must be one target per sample, here {stack.shape[1]} rows. "
            f"Got targets of shape {np.shape(d)}."
        )
    check_number("tol", tol, positive=True)
    check_count("max_iter", max_iter)
    if start is None:
        weights = start_weights(stack, sample_weights)
    else:
        weights = _check_start(start, len(stack))

    def report(iteration: int, value: float, weights: FloatArray) -> None:
        if callback is not None:
            callback(Progress(iteration, value, None, int(np.count_nonzero(weights))))

    kernels = StoredMatrices(stack, sample_weights=sample_weights)
    nu = check_number("nu of A-KFD", nu, positive=True)
    return _alternate(kernels, columns, nu, weights, tol, max_iter, report)


def _alternate(
    kernels: Matrices,
    d: FloatArray,
    nu: float,
    weights: FloatArray,
    tol: float,
    max_iter: int,
    report: _Report | None,
) -> Alternation:
    """Run the alternation on checked inputs."""
    ones, objectives = kernels.row_weights.roots, list[float]()
    # A tolerance of 1 % does not require a solution with ten digits.
    error = max(1e-4 * tol, SERIES_ERROR)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        system = _factor(kernels, weights, nu)
        v, gamma = minimize_discriminant(system, d, nu, error, ones)  # Eq. (23)
        products = kernels.products(v)
        before = objective(products, d, nu, weights, v, gamma, ones)
        if objectives and before > objectives[-1]:
            converged = True  # the change is a rounding error
            break
        following = minimize_weights(products, d, gamma, nu, ones)  # Eq. (24)
        after = objective(products, d, nu, following, v, gamma, ones)
        if after > before:  # by a rounding error
            following, after = weights, before
        converged = bool(objectives) and objectives[-1] - after <= tol * objectives[-1]
        objectives += [before, after]
        # Coefficients of the rows themselves, not of rows times √ω.
        state = following, v * ones[:, None], gamma
        weights, n_iter = following, n_iter + 1
        if report is not None:
            report(n_iter, after, weights)
    return Alternation(*state, tuple(objectives), n_iter, converged)


def _factor(kernels: Matrices, weights: FloatArray, nu: float) -> System:
    try:
        return kernels.system(weights, ridge(nu))
    except NumericalError as error:
        raise NumericalError(
            f"The combined kernel plus 1/√ν = {ridge(nu):.1e} on its diagonal must be positive "
            "definite, but its factorization failed: the rounding errors of the kernels are "
            "larger, or a kernel is not positive semidefinite. Use a smaller nu, scale the columns "
            "of the data, or check the kernels."
        ) from error


def effective_rank(gram: FloatArray, weights: SampleWeights | None = None) -> float:
    """Return (Σκ)²/Σκ² over the eigenvalues κ of the centred matrix, its effective rank.

    It is 1 for a matrix of rank 1, and n_samples − 1 if all rows have equal distances; NaN for a
    constant matrix.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        One kernel, raw or centred.
    weights : SampleWeights, optional
        Sample weights.
    """
    rows = row_weights(weights, len(gram))
    means = rows.means(gram)
    # Centred first, because the entries of a wide Gaussian kernel are almost equal to their mean.
    centered = gram - means
    centered -= (means - rows.means(means))[:, None]
    trace = float(rows.sums(centered.diagonal()))
    if not trace > CONSTANT * abs(float(rows.sums(gram.diagonal()))):
        return math.nan
    centered = rows.scale_both(centered) / trace
    return 1.0 / inner(centered, centered)


def start_weights(
    grams: Iterable[FloatArray], sample_weights: SampleWeights | None = None
) -> FloatArray:
    """Return weight 1 for the kernels of smallest and largest effective rank, else 0; Eq. (26).

    [Fung04]_ starts from the linear kernel plus the narrowest Gaussian. The type of a kernel is not
    known from its matrix, but of the five kernels of the paper, these two have the smallest and the
    largest `effective_rank` on all of its public data sets.

    Parameters
    ----------
    grams : iterable of ndarray of shape (n_samples, n_samples)
        The kernels, raw or centred.
    sample_weights : SampleWeights, optional
        Sample weights.

    Returns
    -------
    ndarray of shape (n_kernels,)
        All ones if every kernel is constant.
    """
    return _extremes(np.array([effective_rank(gram, sample_weights) for gram in grams]))


def _extremes(ranks: FloatArray) -> FloatArray:
    """Return 1 for the smallest and the largest number, else 0; all ones if all are NaN."""
    if np.isnan(ranks).all():
        return np.ones(len(ranks))
    weights = np.zeros(len(ranks))
    weights[[np.nanargmin(ranks), np.nanargmax(ranks)]] = 1.0
    return weights


def choose_nu(
    grams: Any,
    y: Any,
    nus: Sequence[float] = NUS,
    n_splits: int = 10,
    random_state: Any = None,
    *,
    tol: float = 1e-2,
    max_iter: int = 100,
    sample_weights: SampleWeights | None = None,
) -> tuple[float, dict[float, float]]:
    """Choose ν by the accuracy of the score (21) in stratified cross-validation, as [Fung04]_.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        The raw kernel matrices; those of the folds are blocks of them.
    y : array-like of shape (n_samples,)
        Class labels.
    nus : sequence of float, default=10^-3, ..., 10^12
        The candidates.
    n_splits : int, default=10
        The number of folds, at most the number of samples of the smallest class.
    random_state : int, RandomState or None, default=None
        Determines the folds.
    tol, max_iter : float, int
        Tolerance and limit of iterations, as in `alternate`.
    sample_weights : SampleWeights, optional
        Sample weights, for fits and accuracies.

    Returns
    -------
    nu : float
        The smallest of the most accurate ν.
    accuracies : dict of float to float
        The accuracy of every ν, from 0 to 1; 0 if rounding errors are larger than 1/√ν.

    Notes
    -----
    The result of the alternation depends on its start, mostly for large ν, for which the first
    discriminant fits perfectly and the weights do not change. Starts from the weights of the
    previous ν would save a third of the iterations, but then the scored classifier would differ
    from the fitted one: on ionosphere this cost 2 points of accuracy, over six partitions.
    """
    target = ClassTarget.from_labels(y, sample_weights)
    values = sorted(check_number("nu of A-KFD", nu, positive=True) for nu in nus)
    if not values or not n_splits >= 2:
        raise InvalidInputError(
            "There must be at least one ν to choose from and at least two folds. "
            f"Got nus={nus!r} and n_splits={n_splits!r}."
        )
    stack, hits = np.asarray(grams, dtype=np.float64), np.zeros(len(values))
    n_folds = min(n_splits, int(target.counts[target.counts > 1].min()))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    # The only row of a class goes into any fold, and is classified wrongly.
    strata = np.where(target.counts[target.codes] > 1, target.codes, target.counts.argmax())
    for train, test in folds.split(strata, strata):
        part = target.subset(train)
        if part.n_classes < 2:
            continue
        block, cross = _block(stack, train, train), _block(stack, test, train)
        d, weights = one_against_rest(part), part.row_weights
        path = _alternate_along(block, d, values, tol, max_iter, weights)
        for position, found in enumerate(path):
            right = part.classes[decide(found.scores(cross))] == target.classes[target.codes[test]]
            hits[position] += target.row_weights.values[test] @ right
    shares = np.minimum(hits / target.row_weights.total, 1.0)  # sums of weights are rounded
    accuracies = dict(zip(values, shares.tolist(), strict=True))
    return max(values, key=lambda nu: accuracies[nu]), accuracies  # the first of equals


def _block(stack: FloatArray, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
    # One matrix at a time: indexing all at once would interleave the kernels in memory.
    return np.array([gram[np.ix_(rows, columns)] for gram in stack])


def _alternate_along(
    grams: FloatArray,
    d: FloatArray,
    nus: Sequence[float],
    tol: float,
    max_iter: int,
    sample_weights: SampleWeights,
) -> Iterator[Alternation]:
    """Yield the results of the alternation for increasing ν, until rounding errors prevail."""
    kernels = StoredMatrices(grams, sample_weights=sample_weights)
    weights = start_weights(grams, sample_weights)
    for position, nu in enumerate(nus):
        try:
            yield _alternate(kernels, d, nu, weights, tol, max_iter, None)
        except NumericalError:
            if position == 0:
                raise
            return  # 1/√ν is below the rounding errors of the kernels, also for all larger ν


#: The default ν on the normalized kernels of a bank, relative to `critical_nu`. On nine data sets
#: of 124 to 560 training samples it took 4 to 9 iterations, and no other factor from 1.5 to 50 was
#: better by more than 0.7 points of accuracy.
_CRITICAL_NUS = 5.0
#: With more samples, the alternation starts from the result for a part of them.
_MANY = 1000


@dataclass(frozen=True)
class Alternating:
    """Algorithm 4.1 of [Fung04]_: fit the discriminant and the weights alternately.

    Notes
    -----
    Each iteration takes one linear system and one set of products of the bank. With many samples
    and the default ν, it starts from the result for a quarter of them: two or three iterations on
    all samples are then enough, instead of four or five. A given ν depends on the number of samples
    and does not allow this.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Alternating
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="akfd", solver=Alternating(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('alternating', 'converged')
    """

    name: ClassVar[str] = "alternating"
    needs: ClassVar[tuple[str, ...]] = ("bank", "target", "tol")

    def solve(self, program: Any, task: Task) -> Solution:
        def report(iteration: int, value: float, weights: FloatArray) -> None:
            task.monitor(iteration, value, None, weights)

        found = _alternate_on(program, task, report)
        status = Status.CONVERGED if found.converged else Status.MAX_ITERATIONS
        weights = normalize(found.weights)
        return Solution(weights, found.objectives[-1], -np.inf, status, found.n_iter)


def _alternate_on(program: AKFDProgram, task: Task, report: _Report | None) -> Alternation:
    """Run the alternation on the kernels of a bank."""
    bank, nu = program.bank, program.nu
    d = one_against_rest(program.target)
    return _alternate(
        bank,
        d,
        _CRITICAL_NUS * critical_nu(bank.products(d)) if nu is None else nu,
        _start(program, task),
        program.tol,
        100 if task.max_iter is None else task.max_iter,
        report,
    )


def _start(program: AKFDProgram, task: Task) -> FloatArray:
    """Return initial weights: those of the paper, or the result for a quarter of many samples."""
    bank, part = program.bank, None
    if program.nu is None and bank.n_samples > _MANY:
        part = draw_part(bank, program.target, 0.25, task.random_state)
    if part is None:
        # The effective ranks, in one pass over the bank.
        return _extremes(bank.traces() ** 2 / bank.inner_products().diagonal())
    smaller = AKFDProgram(part.bank, cast(ClassTarget, part.target), None, program.tol)
    found = _alternate_on(smaller, task, None)
    # As observed, the length of the weights grows with the fourth root of the number of samples.
    growth = float(bank.total / part.bank.total) ** 0.25
    # The alternation never leaves 0, so kernels that are constant on the part get the mean weight.
    weights = np.where(part.unseen, found.weights.mean(), part.bank.expand(found.weights))
    return np.asarray(growth * weights)


def _check_start(start: Any, n_kernels: int) -> FloatArray:
    weights = np.asarray(start, dtype=np.float64)
    if weights.shape != (n_kernels,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise InvalidInputError(
            f"The weights to start from must be {n_kernels} numbers of at least 0, not all 0: "
            f"from 0 the alternation never leaves. Got {start!r}."
        )
    return weights
