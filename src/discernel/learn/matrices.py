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
    """Learn the combination of kernel matrices that separates the classes best.

    The matrices are given; `MultipleKernelDiscriminant` computes kernels from rows, and predicts.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples), or dict of str to array-like
        Raw kernel matrices, optionally by name; they are centred and normalized. Arrays of PyTorch
        or CuPy on a GPU are processed on the GPU.
    y : array-like of shape (n_samples,)
        Class labels.
    criterion : str or object, default="auto"
        The criterion that determines the weights, by name or as an object of `discernel.criteria`
        with options.

        - ``"auto"``: the candidate that predicts held-out samples best, of the plain average, the
          best single kernel, ``"rkda"`` with shrinkage, and ``"loo"``. With a named solver or
          ``regularization="joint"`` it means ``"rkda"``.
        - ``"rkda"``: [Ye08]_, for any number of classes.
        - ``"fdr"``: [Kim06]_, for two classes.
        - ``"margin"``: soft margin of [Lanckriet04]_, for two classes; `Margin` has the options.
        - ``"loo"``: leave-one-out error with a penalty on unequal weights.
        - ``"akfd"``: [Fung04]_; `AKFD` has the option ν.
        - ``"alignment"``: kernel alignment of [Pothin06]_; `Alignment` is greedy or exact.
        - ``"separability"``: scatter between and within classes of [Yeung06]_; `Separability` has
          the options.
        - ``"uniform"``: plain average. `GivenWeights` sets fixed weights.
    solver : str or object, default="auto"
        A name, such as ``"newton"``, ``"silp"``, ``"qcqp"`` or ``"sdp"``, or an object with
        options, such as ``SILP(stopping="paper")``. ``"auto"`` is ``"newton"`` for ``"fdr"`` and
        ``"interior_point"`` for ``"margin"``; for ``"rkda"`` it is ``"galerkin"`` with many
        samples, ``"columns"`` with many kernels, and otherwise ``"newton"``.
    regularization : float, "auto", "loo" or "joint", default="auto"
        λ, relative to the normalized kernels. ``"auto"`` means ``"loo"``: the largest λ of a path
        whose leave-one-out error is within 1 % of the least; see the notes. ``"joint"`` learns λ
        in the same program as the weights ([Ye08]_ section 4, ``"rkda"`` only). 0 requires a matrix
        of full rank and weights that do not depend on λ.
    tol : float, default=1e-6
        Tolerance of the relative duality gap.
    max_iter : int, optional
        Maximum number of iterations of the solver for one λ. For ``"newton"`` these are Newton
        steps, whatever the number of kernels.
    random_state : int or RandomState, optional
        With more than 500 samples, draws those on which ``"auto"`` searches and on which λ is first
        searched. None means 0.
    callback : callable, optional
        Called with a `Progress` once per iteration.
    sample_weight : array-like of shape (n_samples,), optional
        Relative weights of the samples, as in `MultipleKernelDiscriminant`; samples of weight 0
        are ignored.

    Returns
    -------
    LearnedKernel
        Weights, λ, objective, certified gap, status.

    Raises
    ------
    InvalidInputError
        If the matrices, labels or parameters are invalid.
    NumericalError
        If a factorization breaks down.

    Warns
    -----
    ConvergenceWarning
        If the gap could not be certified.
    DroppedKernelWarning
        If a kernel is constant on the training set.

    See Also
    --------
    regularization_path : Learn the weights for a sequence of λ.
    MultipleKernelDiscriminant : Learn kernels from rows, and classify new ones.

    Notes
    -----
    A step takes one Cholesky factorization of size n_samples. ``newton`` takes some 5 to 9 steps,
    ``galerkin`` 2 to 4, with two matrices of that size besides ``grams``.

    ``regularization="loo"`` considers 13 λ from 1 to 1e-6. It assumes that the error has one
    minimum, often a flat one: it tries every fourth λ and then those near the edge of the minimum,
    some 7 in all. With more than 500 samples, this search uses a quarter of them, 300 to 1,500, and
    then only the best λ and its neighbours, some 3, are tried on all samples while the error
    decreases. ``leave_one_out`` of the result has the errors on all samples, for weights with a
    relative gap of at most 1e-4 if the solver is ``"newton"`` or ``"galerkin"``. The gap of the
    chosen λ is then reduced to ``tol``. `regularization_path` tries all λ on all samples.

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
    """Check matrices and labels, and return bank and target, on the device of the matrices."""
    y, names = np.atleast_1d(np.asarray(on_host(y))), None
    if isinstance(grams, Mapping):
        names, grams = [str(name) for name in grams], list(grams.values())
    one = grams[0] if isinstance(grams, (list, tuple)) and grams else grams
    shape = np.shape(one) if device_of(one) is None else tuple(one.shape)
    if len(shape) >= 2 and shape[-1] != shape[-2]:
        raise InvalidInputError(
            f"Gram matrices must be square, (n_samples, n_samples). Got shape {shape[-2:]}. For "
            "rows of features, use MultipleKernelDiscriminant().fit(X, y)."
        )
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
        Values of λ, in decreasing order.
    weights : ndarray of shape (n_regularizations, n_kernels)
    objectives, gaps, n_iters : ndarray of shape (n_regularizations,)
        NaN if the criterion has no objective or gap.
    leave_one_out_errors : ndarray of shape (n_regularizations,)
        Mean squared leave-one-out error of the class scores.
    learned : list of LearnedKernel
        The complete results.
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
        """The learned kernel of the largest λ with an error within 1 % of the smallest.

        This is the λ that ``regularization="loo"`` chooses.
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
    """Learn kernel weights for a sequence of λ, with warm starts.

    Neighbouring optima are close, so each λ takes only a step or two from the previous one: the
    warm start announced in [Kim06]_.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        Raw kernel matrices.
    y : array-like of shape (n_samples,)
        Class labels.
    regularizations : sequence of float, optional
        The values of λ; by default 13 from 1 to 1e-6.
    criterion, solver, tol, max_iter, callback
        As in `learn_kernel`.

    Returns
    -------
    RegularizationPath
        Results from the largest λ to the smallest.

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
            "'rkda', 'fdr' or another criterion with a given λ, or learn_kernel."
        )
    with _bank_and_target(grams, y, request) as (bank, target):
        request = replace(request, criterion=request.criterion.on_bank(bank))
        learner = WeightLearner(bank, target, request, len(falling))
        for value in falling:
            learner.error(value)
    learned, errors = zip(*(learner.found[value] for value in falling), strict=True)
    return RegularizationPath(
        regularizations=np.array([entry.regularization for entry in learned]),
        weights=np.array([entry.weights for entry in learned]),
        objectives=np.array([entry.objective for entry in learned], dtype=np.float64),
        gaps=np.array([entry.gap for entry in learned], dtype=np.float64),
        n_iters=np.array([entry.n_iter for entry in learned], dtype=np.float64),
        leave_one_out_errors=np.array(errors),
        learned=list(learned),
    )
