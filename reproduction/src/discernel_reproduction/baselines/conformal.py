"""A kernel stretched where the classes meet, as a step of a pipeline."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, blas_threads
from discernel.bank import gram_stack
from discernel.bank.grams import check_grams
from discernel.estimators.base import BaseKernelEstimator
from discernel.exceptions import InvalidInputError, check_number, unknown_choice
from discernel.kernels import kernel_names
from discernel.model.training import check_training
from discernel.targets import ClassTarget
from discernel_reproduction.baselines.conformal_factor import (
    ConformalFactor,
    ConformalSeparability,
    ascend,
    factor_design,
    maximize,
)
from discernel_reproduction.baselines.rows import model_of_rows


class ConformalKernelTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseKernelEstimator
):
    """Learn K(x, z) = q(x) q(z) k₀(x, z) from labels, [Xiong05]_, and hand on its matrix.

    The factor q(x) = α₀ + Σ α_i k₁(x, c_i) is that with the most scatter between the classes for
    the scatter within them. ``transform`` returns the kernel between new rows and the training
    rows, which is what estimators with ``kernel="precomputed"`` take. Any number of classes.

    Parameters
    ----------
    kernel : kernel, str or callable, default="rbf"
        k₀, as in `KernelDiscriminant`.
    factor_kernel : kernel, str, callable or None, default=None
        k₁; None is ``kernel``.
    centers : float or int, default=1/3
        How many training rows are drawn as the centres c_i: a number, or a share below 1.
    method : {"ascent", "exact"}, default="ascent"
        ``"ascent"`` takes a few gradient steps from the plain kernel, as the paper does;
        ``"exact"`` the largest ratio, by one eigenproblem with as many rows as centres.
    rate : float, default=0.01
        ``"ascent"``: the first step, as a factor of half the gradient; it falls to 0.
    n_steps : int, default=200
        ``"ascent"``: the steps.
    ridge : float, default=1e-3
        ``"exact"``: what is added to the scatter within the classes, as a share of its mean
        diagonal; at least 0.
    random_state : int, RandomState or None, default=None
        Draws the centres.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_centers + 1,)
        α, scaled so that the diagonal of the learned kernel has mean 1 on the training rows.
    centers_ : ndarray of shape (n_centers,)
        The positions of the centres among the training rows.
    factors_ : ndarray of shape (n_samples,)
        q on the training rows.
    separability_ : float
        tr S_b / tr S_w of the learned kernel on the training rows.
    separability_path_ : ndarray of shape (n_steps + 1,)
        The same for ``kernel`` itself and after each step.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> X, y = load_wine(return_X_y=True)
    >>> conformal = ConformalKernelTransformer(random_state=0)
    >>> svm = make_pipeline(StandardScaler(), conformal, SVC(kernel="precomputed"))
    >>> print(round(cross_val_score(svm, X, y).mean(), 2))
    0.99
    """

    _kernel_parameters = ("kernel", "factor_kernel")

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        factor_kernel: Any = None,
        centers: float = 1 / 3,
        method: str = "ascent",
        rate: float = 0.01,
        n_steps: int = 200,
        ridge: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.factor_kernel = factor_kernel
        self.centers = centers
        self.method = method
        self.rate = rate
        self.n_steps = n_steps
        self.ridge = ridge
        self.random_state = random_state

    def _candidates(self) -> Any:
        """Return the kernels as the user gave them."""
        return [self.kernel, self.kernel if self.factor_kernel is None else self.factor_kernel]

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # takes no weights
        """Draw the centres and learn the factor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or a kernel matrix where the kernel is precomputed.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
            Fitted.
        """
        self._check_parameters()
        training = check_training(self, X, y)
        X, y, kernels = training.X, training.y, training.reader.kernels
        target = ClassTarget.from_labels(y)
        with blas_threads(target.n_samples):
            stack = gram_stack(kernels, X)
            check_grams(stack, kernel_names(kernels), [kernel.trusted for kernel in kernels])
            self.centers_ = self._draw_centers(target.n_samples)
            design = factor_design(stack[1][:, self.centers_])
            found = self._learn_factor(ConformalSeparability(stack[0], design, target))
        factors = design @ found.alpha
        scale = np.sqrt(np.mean(factors**2 * np.diagonal(stack[0])))
        # J is the same for q and −q.
        self.alpha_ = found.alpha / (np.copysign(scale, factors.sum()) if scale > 0 else 1.0)
        self.model_ = model_of_rows(training.reader)
        self.rows_ = None if kernels[0].precomputed else X
        self.factors_ = design @ self.alpha_
        self.separability_ = found.value
        self.separability_path_ = np.array(found.history)
        self._n_features_out = target.n_samples
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the learned kernel between rows and the training rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, or the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
            On the training rows, the diagonal has mean 1.
        """
        check_is_fitted(self, "alpha_")
        X = self.model_.reader.read(X)
        kernel, factor_kernel = self.kernels_
        if self.rows_ is None:
            columns = factor_kernel(X)[:, self.centers_]
        else:
            columns = factor_kernel(X, self.rows_[self.centers_])
        factors = factor_design(columns) @ self.alpha_
        return np.asarray(factors[:, None] * kernel(X, self.rows_) * self.factors_)

    def _check_parameters(self) -> None:
        if self.method not in ("ascent", "exact"):
            raise unknown_choice(
                "method of ConformalKernelTransformer", self.method, ["ascent", "exact"]
            )
        check_number("rate of ConformalKernelTransformer", self.rate, positive=True)
        check_number("ridge of ConformalKernelTransformer", self.ridge)
        check_number("centers of ConformalKernelTransformer", self.centers, positive=True)
        if not (isinstance(self.n_steps, (int, np.integer)) and self.n_steps > 0):
            raise InvalidInputError(f"n_steps must be a positive integer. Got {self.n_steps!r}.")

    def _draw_centers(self, n_samples: int) -> NDArray[np.intp]:
        share = self.centers < 1
        asked = max(1, round(self.centers * n_samples)) if share else int(self.centers)
        if asked > n_samples or (not share and asked != self.centers):
            raise InvalidInputError(
                "The centers of ConformalKernelTransformer must be a share below 1 or an integer "
                f"of at most n_samples = {n_samples}. Got {self.centers!r}."
            )
        rng = check_random_state(self.random_state)
        return np.sort(rng.permutation(n_samples)[:asked])

    def _learn_factor(self, criterion: ConformalSeparability) -> ConformalFactor:
        if self.method == "exact":
            return maximize(criterion, ridge=float(self.ridge))
        return ascend(criterion, rate=float(self.rate), n_steps=int(self.n_steps))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
