"""A transformer that returns a learned kernel, for estimators that take kernel matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from discernel.arrays import FloatArray, n_rows
from discernel.arrays.sample_weights import check_sample_weight
from discernel.bank import Centering, CombinedKernel
from discernel.discriminant import Head
from discernel.estimators.base import BaseKernelEstimator, like_input, view
from discernel.exceptions import InvalidInputError
from discernel.learn import Request
from discernel.learn.rows import Learning
from discernel.learn.stages import FitRun
from discernel.model import Model
from discernel.model.importances import squared_losses
from discernel.model.training import TrainingRows, check_training
from discernel.targets import ClassTarget


@dataclass(frozen=True)
class KernelHead(Head):
    """The head of the transformer, which returns the kernel instead of scores.

    Attributes
    ----------
    n_samples : int
        The number of training rows, including those of weight 0.
    total : float
        The factor of the kernel.
    """

    n_samples: int
    total: float

    def row_losses(self, labels: FloatArray) -> Any:
        """Return a function that computes the squared error of each row from its scores."""
        return squared_losses(labels)


class LearnedKernelTransformer(TransformerMixin, BaseKernelEstimator):
    """Learn a kernel from class labels and pass its matrix to the next step of a pipeline.

    ``transform`` returns the kernel between new rows and the training rows, as estimators with
    ``kernel="precomputed"`` expect it, in training and in prediction. Cross-validation of the
    pipeline is therefore correct. A row of weight 0 does not influence the kernel, but has a column
    in the output of ``transform``.

    Parameters
    ----------
    kernels, criterion, solver, regularization, tol, max_iter, random_state
        As in `MultipleKernelDiscriminant`; λ is only used to learn the weights.
    bank, max_time, device, verbose, callback
        As in `MultipleKernelDiscriminant`.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the normalized kernels, at least 0. They sum to 1, except for ``RKDA`` with a
        ``norm``.
    kernel_names_ : list of str
        Names of the kernels, in the order of the weights.
    learned_kernel_ : LearnedKernel
        The complete result of the solver.
    combined_kernel_ : CombinedKernel
        The centred learned kernel between new rows and the training rows.
    feature_importances_ : ndarray of shape (n_features,)
        Importances for a least-squares fit of class scores with this kernel, as in
        `MultipleKernelDiscriminant`.
    feature_importances_std_ : ndarray of shape (n_features,)
        Standard errors of `feature_importances_`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> X, y = load_wine(return_X_y=True)
    >>> svm = make_pipeline(StandardScaler(), LearnedKernelTransformer(), SVC(kernel="precomputed"))
    >>> print(round(cross_val_score(svm, X, y).mean(), 2))
    0.99
    """

    _predicts: ClassVar[bool] = False

    n_samples_fit_ = view("head.n_samples", "The number of training rows.")

    def _fit_model(self, X: Any, y: Any, sample_weight: Any, groups: Any, run: FitRun) -> Model:
        """Return the model of one stage, whose kernel also has columns for rows of weight 0."""
        if run.bank.kind == "lowrank":
            raise InvalidInputError(
                "LearnedKernelTransformer returns the kernel between new rows and all training "
                "rows, which bank='lowrank' does not keep. Use another bank."
            )
        model, n = super()._fit_model(X, y, sample_weight, groups, run), _num_samples(X)
        model = replace(model, head=replace(model.head, n_samples=n))
        if sample_weight is None:
            return model
        present = np.flatnonzero(check_sample_weight(sample_weight, n))
        kernel, reader = cast(CombinedKernel, model.kernel), model.reader  # of no low rank
        if len(present) == n:
            return model
        # An encoder was fitted without rows of weight 0, and encodes them like new rows.
        encoded = reader.encoder is not None
        every_row: Any = reader.read(X) if encoded else check_training(self, X, y).X
        n_given = every_row.shape[1] if reader.present else reader.n_features
        return replace(
            model,
            reader=replace(reader, present=None, n_features=n_given),
            kernel=_on_all_rows(kernel, every_row, present),
        )

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the classes."""
        target = ClassTarget.from_labels(training.y, training.weights, training.groups)
        request.criterion.check_target(target, request.regularization)
        return (target,)

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel."""
        fit, target = learning.fit(), learning.target
        head = KernelHead(target.n_samples, target.row_weights.total)
        none: dict[str, Any] = {"coef": np.empty((0, 0)), "intercept": np.empty(0)}
        return learning.model(fit, head, fit.truth, **none)

    @like_input
    def transform(self, X: Any) -> FloatArray:
        """Return the learned kernel between rows and the training rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, or the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
            Centred; the weighted mean of the diagonal on the training rows is 1.
        """
        model, kernel = self.model_, self.combined_kernel_
        # With mean 1 on the diagonal, the C of an SVM has its usual scale.
        return np.asarray(model.head.total * kernel(model.reader.read(X)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return one name per training row.

        Parameters
        ----------
        input_features : array-like of str, optional
            Ignored, because the output columns correspond to rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Names.
        """
        check_is_fitted(self, "model_")
        return np.array([f"row{i}" for i in range(self.n_samples_fit_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _on_all_rows(
    kernel: CombinedKernel, all_rows: Any, present: NDArray[np.intp]
) -> CombinedKernel:
    """Return the kernel with columns for all rows, from one for some rows; same centring."""
    centering, n = kernel.centering, n_rows(all_rows)
    absent = np.setdiff1d(np.arange(n), present)
    shares, means = np.zeros(n), np.empty(n)
    shares[present] = 1.0 / len(present) if centering.shares is None else centering.shares
    means[present] = centering.row_means
    new = all_rows[absent] if kernel.rows is not None else all_rows[np.ix_(absent, present)]
    means[absent] = sum(
        factor * (one(new, kernel.rows) @ shares[present])
        for one, factor in zip(kernel.kernels, kernel.coefficients, strict=True)
    )
    return replace(
        kernel,
        rows=None if kernel.rows is None else all_rows,
        centering=Centering(means, centering.grand_mean, shares),
    )
