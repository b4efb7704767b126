"""`learn_kernel` and `regularization_path`: learning from kernel matrices and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discernel.arrays import FloatArray, blas_threads, device_errors, device_of, on_host
from discernel.arrays.sample_weights import SampleWeights, check_sample_weight
from discernel.bank import Bank, bank_of_matrices, device_of_matrices
from discernel.exceptions import InvalidInputError
from discernel.learn.learn import DEFAULT_REGULARIZATIONS, WeightLearner, learn
from discernel.learn.request import Request, make_request
from discernel.programs.lambdas import NEAR_LEAST, search_lambda
from discernel.programs.solution import Callback, LearnedKernel, Solver
from discernel.targets import ClassTarget


def learn_kernel(
    grams: Any,
    y: Any,
    *,
    criterion: Any = "auto",
    solver: str | Solver = "auto",
    regularization: float | str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    sample_weight: Any = None,
) -> LearnedKernel:
    """Learn the combination of kernels that separates the classes best.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples), or dict of str to array-like
        Raw Gram matrices, with their names perhaps; they are centred and normalised here. On a
        GPU, as arrays of PyTorch or CuPy, they are computed with there.
    y : array-like of shape (n_samples,)
        Class labels.
    criterion : str or object, default="auto"
        ``"rkda"`` is that of [Ye08]_, for any number of classes; ``"fdr"`` that of [Kim06]_, for
        two; ``"loo"`` is the leave-one-out error itself, pulled towards equal weights;
        ``"akfd"`` are the weights of [Fung04]_, by `AKFD` with another ν; ``"alignment"`` the
        kernel alignment of [Pothin06]_, by `Alignment` greedily or exactly; ``"margin"`` the soft
        margin of [Lanckriet04]_, for two classes, by `Margin` with another C or kind;
        ``"separability"`` the scatter between and within classes of [Yeung06]_, by
        `Separability` with another α or as a ratio; ``"uniform"`` is the plain average,
        and `GivenWeights` has weights of your own.
        ``"auto"`` takes what predicts left-out samples best:
        plain average, best single kernel, ``"rkda"`` with shrinkage, or ``"loo"``; with a solver
        of the convex program or ``regularization="joint"`` it is ``"rkda"``. The names stand for
        the objects of `discernel.criteria` with their defaults; one of your own goes here too.
    solver : {"auto", "newton", "galerkin", "sdp", "sdp_approximate", "qcqp", "silp"} or object
        ``"auto"`` is ``"newton"``, for ``"rkda"`` on many samples ``"galerkin"``, which takes
        fewer factorisations, and ``"interior_point"`` for
        ``"margin"``, which takes ``"silp"`` and ``"qcqp"`` too. Objects, such as
        ``SILP(stopping="paper")`` or ``SDP(backend="SCS")``, set more than a name can.
    regularization : float, "auto", "loo" or "joint", default="auto"
        λ, in units of the normalised kernels. 0 is for a matrix of full rank, and weights that do
        not depend on λ. ``"loo"``, which is ``"auto"``, takes the λ
        with the least leave-one-out error of a path, the largest of those within 1 % of it; not
        all of them are tried, see the notes. ``"joint"`` learns λ in the same program as the
        weights ([Ye08]_ section 4, ``"rkda"`` only).
    tol : float, default=1e-6
        The relative duality gap to certify.
    max_iter : int, optional
        The limit of the solver's iterations for one λ; by default its own. Those of ``"newton"``
        are its steps, however many kernels there are.
    random_state : int or RandomState, optional
        Where there are more than 500, draws the samples that ``"auto"`` searches on and those
        that λ is first looked for on; None is 0.
    callback : callable, optional
        Called with a `Progress` once per iteration.
    sample_weight : array-like of shape (n_samples,), optional
        How much each sample counts, as in `MultipleKernelDiscriminant`: relative to the others,
        and a sample of weight 0 is absent.

    Returns
    -------
    LearnedKernel
        Weights, λ, objective, certified gap, status.

    Raises
    ------
    InvalidInputError
        If the matrices, labels or parameters cannot work.
    NumericalError
        If a factorisation breaks down.

    Warns
    -----
    ConvergenceWarning
        If the gap could not be certified.
    DroppedKernelWarning
        If a kernel is constant on the training set.

    Notes
    -----
    One Cholesky factorisation of size n_samples a step, with ``newton`` some 5 to 9 steps, with
    ``galerkin`` 2 to 4, and two matrices of that size beside ``grams``.

    ``regularization="loo"`` knows 13 λ from 1 to 1e-6. The error has one valley, mostly with a
    flat floor: every fourth λ is tried, then those around the edge of the floor, some 7 in all. Of
    more than 500 samples this is done on a quarter, 300 to 1,500 of them, and on all of them for
    that λ and its neighbours only, some 3, as far as the error falls. These are in
    ``leave_one_out``, with weights of a relative gap of at most 1e-4 where the solver is
    ``"newton"`` or ``"galerkin"``. For the λ chosen the gap is then closed to ``tol``.
    `regularization_path` tries all λ on all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> grams = [RBF(width=s)(X) for s in (1, 4, 16)]
    >>> learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-3)
    >>> learned.weights.round(2).tolist()
    [0.4, 0.54, 0.07]
    >>> learned.gap <= 1e-6
    True
    """
    request = make_request(
        criterion=criterion,
        solver=solver,
        regularization=regularization,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        callback=callback,
    )
    with _bank_and_target(grams, y, request, sample_weight) as (bank, target):
        return learn(bank, target, request)


@contextmanager
def _bank_and_target(
    grams: Any, y: Any, request: Request, sample_weight: Any = None
) -> Iterator[tuple[Bank, ClassTarget]]:
    """Check matrices and labels, and give a request what to learn from, where the matrices lie."""
    y, names = np.atleast_1d(np.asarray(on_host(y))), None
    if isinstance(grams, Mapping):
        names, grams = [str(name) for name in grams], list(grams.values())
    one = grams[0] if isinstance(grams, (list, tuple)) and grams else grams
    shape = np.shape(one) if device_of(one) is None else tuple(one.shape)
    if len(shape) >= 2 and shape[-1] != len(y):
        raise InvalidInputError(
            "There must be one label per row of the Gram matrices. "
            f"Got {len(y)} labels and matrices of shape {shape[-2:]}."
        )
    weights, present = None, None
    if sample_weight is not None:
        given = check_sample_weight(on_host(sample_weight), len(y))
        if not given.all():
            present = np.flatnonzero(given)
            y, given = y[present], given[present]
        weights = SampleWeights.of(given)
    target = ClassTarget.from_labels(y, weights)
    request.criterion.check_target(target, request.regularization)
    device = device_of_matrices(grams)
    with device_errors(device), blas_threads(target.n_samples):
        bank = bank_of_matrices(
            grams,
            names,
            normalization=request.criterion.normalization,
            sample_weights=weights,
            present=present,
            device=device,
        )
        yield bank, target


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Learned kernels along λ.

    Attributes
    ----------
    regularizations : ndarray of shape (n_regularizations,)
        In the order they were solved: falling.
    weights : ndarray of shape (n_regularizations, n_kernels)
    objectives, gaps, n_iters : ndarray of shape (n_regularizations,)
        NaN where the criterion has no program.
    leave_one_out_errors : ndarray of shape (n_regularizations,)
        Mean squared leave-one-out error of the class scores.
    learned : list of LearnedKernel
        Everything else.
    """

    regularizations: FloatArray
    weights: FloatArray
    objectives: FloatArray
    gaps: FloatArray
    n_iters: FloatArray
    leave_one_out_errors: FloatArray
    learned: list[LearnedKernel]

    @property
    def best(self) -> LearnedKernel:
        """The learned kernel of the largest λ whose leave-one-out error is as good as the least.

        As good is within 1 %: what ``regularization="loo"`` takes.
        """
        errors = dict(zip(self.regularizations, self.leave_one_out_errors, strict=True))
        found = search_lambda(self.regularizations.tolist(), errors.__getitem__, NEAR_LEAST)
        return replace(self.learned[found.position], regularization_at_limit=found.at_limit)


def regularization_path(
    grams: Any,
    y: Any,
    regularizations: Sequence[float] | None = None,
    *,
    criterion: Any = "rkda",
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    callback: Callback | None = None,
) -> RegularizationPath:
    """Learn the kernel for many λ, each started from the one before.

    λ only scales the kernels, so neighbouring optima are close and a step or two lead from one
    to the next: the warm start that [Kim06]_ announces.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        Raw Gram matrices.
    y : array-like of shape (n_samples,)
        Class labels.
    regularizations : sequence of float, optional
        The values of λ; by default 13 from 1 to 1e-6.
    criterion, solver, tol, max_iter, callback
        As in `learn_kernel`.

    Returns
    -------
    RegularizationPath
        From the largest λ to the smallest.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import regularization_path
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> path = regularization_path(grams, y[::3], [0.1, 0.01, 0.001])
    >>> path.weights.shape
    (3, 4)
    >>> path.best.regularization in (0.1, 0.01, 0.001)
    True
    """
    values = DEFAULT_REGULARIZATIONS if regularizations is None else tuple(regularizations)
    if not values or not all(0 < value < np.inf for value in values):
        raise InvalidInputError(
            f"The regularizations must be positive, finite numbers, at least one. Got {values!r}."
        )
    falling = sorted(map(float, values), reverse=True)
    request = make_request(
        criterion=criterion,
        solver=solver,
        regularization=falling[0],
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    if request.criterion.regularization_is == "learned":
        raise InvalidInputError(
            f"criterion='{request.criterion.name}' learns λ itself, so there is no path. Use "
            "'rkda', 'fdr' or another criterion that is given λ, or learn_kernel."
        )
    with _bank_and_target(grams, y, request) as (bank, target):
        request = replace(request, criterion=request.criterion.on_bank(bank))
        learner = WeightLearner(bank, target, request, len(falling))
        for value in falling:
            learner.error(value)
    learned, errors = zip(*learner.found, strict=True)
    return RegularizationPath(
        regularizations=np.array([entry.regularization for entry in learned]),
        weights=np.array([entry.weights for entry in learned]),
        objectives=np.array([entry.objective for entry in learned], dtype=np.float64),
        gaps=np.array([entry.gap for entry in learned], dtype=np.float64),
        n_iters=np.array([entry.n_iter for entry in learned], dtype=np.float64),
        leave_one_out_errors=np.array(errors),
        learned=list(learned),
    )
