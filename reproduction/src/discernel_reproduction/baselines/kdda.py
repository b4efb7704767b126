"""Kernel direct discriminant analysis, by Lu, Plataniotis and Venetsanopoulos (2003)."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, blas_threads
from discernel.bank import Bank, CombinedKernel, DenseBank, gram_stack
from discernel.estimators.base import BaseKernelEstimator, view
from discernel.exceptions import InvalidInputError, check_number
from discernel.kernels import kernel_names
from discernel.model import Model
from discernel.model.training import check_training
from discernel.targets import ClassTarget

#: Eigenvalues of the scatter between the classes below this share of the largest are rounding
#: errors: k means span at most k − 1 dimensions, fewer where some lie on a line.
_RANK = 1e-10


class _Directions(NamedTuple):
    """Directions in feature space, and where they place the training rows."""

    dual_coef: FloatArray
    points: FloatArray
    within: FloatArray


def _direct_directions(bank: Bank, target: ClassTarget, regularization: float) -> _Directions:
    """Return the directions that diagonalise S_b and S_w, the least S_w first.

    Where S_b is 0 there is nothing to tell classes by, so its range comes first. With
    S_b = BBᵀ, where column j of B is √(n_j/m) times the mean of class j less the mean of all, the
    range is that of U = BEΛ⁻¹, where BᵀB = EΛEᵀ is of size n_classes. There UᵀS_bU = I and
    UᵀS_wU = PDPᵀ; the directions are UP(λI + D)^(−1/2).
    """
    share = target.counts / target.n_samples
    means = target.membership / target.counts
    between = (means - (means @ share)[:, None]) * np.sqrt(share)  # B, expanded in the rows
    products = bank.products(between)[0]
    values, vectors = scipy.linalg.eigh(between.T @ products)
    kept = values > _RANK * values[-1]
    scalings = vectors[:, kept] / values[kept]
    residuals = products @ scalings
    residuals -= (means.T @ residuals)[target.codes]
    within, rotation = scipy.linalg.eigh(residuals.T @ residuals / target.n_samples)
    within = np.maximum(within, 0.0)
    scalings = scalings @ rotation / np.sqrt(regularization + within)
    # A sign that does not depend on LAPACK: the last class is on the positive side.
    scalings *= np.where(means[:, -1] @ products @ scalings < 0, -1.0, 1.0)
    return _Directions(between @ scalings, products @ scalings, within)


class KDDA(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseKernelEstimator):
    """Kernel direct discriminant analysis, [Lu03]_, with nearest neighbours in its space.

    Made for few samples of many classes, such as faces: the directions lie in the span of the
    class means, where the classes differ at all, and of these those come first within which the
    samples of a class differ least. No problem larger than n_classes is solved. Any number of
    classes.

    Parameters
    ----------
    kernel : kernel, str or callable, default="rbf"
        As in `KernelDiscriminant`.
    regularization : float, default=1e-3
        λ > 0: coordinates are divided by √(λ + s), where s is the scatter within the classes in
        units of that between them. 1 puts the whole scatter in place of that within the classes;
        towards 0, directions in which classes have no width at all are taken to be certain.
    n_components : int, optional
        The columns of `transform`, those with the least scatter within the classes. At most
        n_classes − 1, and fewer where the class means span fewer dimensions.
    n_neighbors : int or None, default=1
        The nearest training rows that vote, in the discriminant space. None takes the class with
        the nearest mean.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    within_scatter_ : ndarray of shape (n_components,)
        The scatter within the classes along each direction, where that between them is 1.
    dual_coef_ : ndarray of shape (n_samples, n_components)
        The directions, expanded in the training rows.
    combined_kernel_ : CombinedKernel
        The centred kernel between new rows and the training rows.
    classifier_ : KNeighborsClassifier
        What predicts in the discriminant space.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = KDDA().fit(X[::6], y[::6])
    >>> round(clf.score(X[1::6], y[1::6]), 2)
    0.94
    >>> clf.transform(X[1::6]).shape
    (300, 9)
    """

    dual_coef_ = view("coef", "The directions, expanded in the training rows.")

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        regularization: float = 1e-3,
        n_components: int | None = None,
        n_neighbors: int | None = 1,
    ) -> None:
        self.kernel = kernel
        self.regularization = regularization
        self.n_components = n_components
        self.n_neighbors = n_neighbors

    def _candidates(self) -> Any:
        """Return the kernels as the user gave them."""
        return self.kernel if isinstance(self.kernel, str) else [self.kernel]

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # takes no weights
        """Find the directions and place the training rows in their space.

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
        check_number("regularization of KDDA", self.regularization, positive=True)
        training = check_training(self, X, y)
        X, y, kernels = training.X, training.y, training.reader.kernels
        target = ClassTarget.from_labels(y)
        n_components = self._check_integer("n_components", target.n_classes - 1)
        n_neighbors = self._check_integer("n_neighbors", target.n_samples)
        with blas_threads(target.n_samples):
            names, trusted = kernel_names(kernels), [kernel.trusted for kernel in kernels]
            bank, one = DenseBank(gram_stack(kernels, X), names, trusted=trusted), np.ones(1)
            found = _direct_directions(bank, target, float(self.regularization))
        rows = None if kernels[0].precomputed else X
        combined = CombinedKernel(kernels, bank.coefficients(one), rows, bank.centering(one))
        points, labels = found.points[:, :n_components], target.classes[target.codes]
        if n_neighbors is None:
            points, labels = target.membership.T @ points / target.counts[:, None], target.classes
        self.classifier_ = KNeighborsClassifier(n_neighbors or 1).fit(points, labels)
        coef = found.dual_coef[:, :n_components]
        self.model_ = Model(training.reader, combined, coef, np.zeros(coef.shape[1]))
        self.within_scatter_ = found.within[:n_components]
        self.classes_ = target.classes
        self._n_features_out = coef.shape[1]
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the discriminant coordinates of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The classes are widest along the last column; the mean of the training rows is 0.
        """
        check_is_fitted(self, "model_")
        return self.model_.scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        points = np.asarray(self.transform(X))  # `set_output` may have made a dataframe of them
        return np.asarray(self.classifier_.predict(points))

    def _check_integer(self, name: str, most: int) -> int | None:
        asked = getattr(self, name)
        if asked is None:
            return None
        if not (isinstance(asked, (int, np.integer)) and 1 <= asked <= most):
            raise InvalidInputError(
                f"The {name} of KDDA must be an integer from 1 to {most}, or None. Got {asked!r}."
            )
        return int(asked)
