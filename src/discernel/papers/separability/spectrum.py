"""New eigenvalues of a kernel matrix that separate the labelled classes.

The methods are that of Yeung, Chang and Dai (2006), and spectral alignment, to which they compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import (
    Device,
    FloatArray,
    blas_threads,
    check_given,
    device_errors,
    device_of,
    matmul,
    on_host,
)
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank.grams import check_grams
from discernel.exceptions import InvalidInputError, check_number, unknown_choice
from discernel.kernels.columns import is_missing
from discernel.papers.separability.criterion import (
    ALPHA,
    Scatter,
    closed_form,
    critical_factor,
    is_maximum,
    is_visible,
    ratio,
    resolve_alpha,
    spectral_alignment,
    vector_scatter,
)
from discernel.papers.separability.solvers import dinkelbach, quotient
from discernel.targets import ClassTarget

#: Methods to compute the new eigenvalues.
Method = Literal["closed_form", "dinkelbach", "alignment"]

#: Eigenvalues below this share of the largest are rounding errors, and two that differ by less
#: are equal.
_NOISE = 1e-10
#: Vectors whose variance is below this share of their mean square are constant up to rounding.
_CONSTANT = 1e-24


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of some rows.

    Attributes
    ----------
    target : ClassTarget
        The classes of the labelled rows.
    rows : ndarray of shape (n_labelled,)
        Positions of the labelled rows.
    n_samples : int
        The number of all rows.
    weights : SampleWeights, optional
        Weights of all rows. The target may have other weights, with class weights.
    """

    target: ClassTarget
    rows: NDArray[np.intp]
    n_samples: int
    weights: SampleWeights

    @classmethod
    def from_partial(
        cls,
        y: Any,
        unlabelled: Any = -1,
        *,
        required: bool = True,
        weights: SampleWeights | None = None,
    ) -> Labels:
        """Return the labels, or raise a clear error.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels. Unlabelled rows are marked by ``unlabelled``, None or NaN.
        unlabelled : object, default=-1
            The mark of unlabelled rows; None if -1 is a class.
        required : bool, default=True
            Whether there must be unlabelled rows.
        weights : SampleWeights, optional
            Weights of all rows.
        """
        declared = getattr(getattr(y, "dtype", None), "categories", None)
        y = np.asarray(y)
        if y.ndim != 1:
            raise InvalidInputError(f"y should be a 1d array of labels. Got shape {y.shape}.")
        if unlabelled is not None and y.dtype.kind in "US" and str(unlabelled) in y:
            raise InvalidInputError(
                f"Unlabelled rows must be marked by {unlabelled!r} itself or by None, in an "
                f"array of dtype object. Got an array of text with the label '{unlabelled}'."
            )
        marked = np.array([_is_marked(label, unlabelled) for label in y.tolist()], dtype=bool)
        if required and not marked.any():
            raise InvalidInputError(
                f"There must be unlabelled rows to classify, marked by {unlabelled!r}, None or "
                f"NaN. All {len(y)} rows have a label. Append the rows to classify, or use an "
                "inductive classifier."
            )
        if marked.all():
            raise InvalidInputError(
                "There must be labelled rows of at least two classes. Got none: all labels are "
                f"{unlabelled!r}, None or NaN."
            )
        known = y[~marked]
        if known.dtype.kind == "O":
            known = np.array(known.tolist())
        rows = np.flatnonzero(~marked)
        weights = row_weights(weights, len(y))
        target = ClassTarget.from_labels(known, weights.subset(rows))
        if declared is not None:
            present = set(target.classes.tolist())
            absent = [c for c in declared if c not in present and not _is_marked(c, unlabelled)]
            if absent:
                raise InvalidInputError(
                    f"Every class must have a labelled row. Got none of {absent}. Label some, or "
                    "remove the unused categories of y."
                )
        return cls(target, rows, len(y), weights)


def _is_marked(label: Any, unlabelled: Any) -> bool:
    """Return whether a label marks an unlabelled row: the mark itself, None, NaN or NA."""
    if is_missing(label):
        return True
    return unlabelled is not None and not isinstance(label, str) and bool(label == unlabelled)


@dataclass(frozen=True, eq=False)
class ReweighedSpectrum:
    """A kernel matrix with other eigenvalues: K_μ = Σ μ_r² v_r v_rᵀ, (2) of [Yeung06]_.

    Attributes
    ----------
    vectors : ndarray of shape (n_samples, n_vectors)
        The leading eigenvectors v_r of the kernel matrix.
    eigenvalues : ndarray of shape (n_vectors,)
        Their eigenvalues λ_r, in decreasing order.
    mu : ndarray of shape (n_vectors,)
        μ.
    scatter : Scatter
        f and g of the eigenvectors.
    method : {"closed_form", "dinkelbach", "alignment", "plain"}
        The method of computing μ; ``"plain"`` is μ_r = √λ_r.
    share : float
        The requested share of the trace.
    alpha : float or None
        The α of the closed form; None for other methods.
    is_maximum : bool or None
        Whether μ maximizes its program; None if there is no program.
    row_weights : ndarray of shape (n_samples,) or None
        Sample weights; None if all are equal.
    device : Device or None
        The device of the kernel matrix; None for NumPy arrays.
    """

    vectors: FloatArray
    eigenvalues: FloatArray
    mu: FloatArray
    scatter: Scatter
    method: str
    share: float
    alpha: float | None = None
    is_maximum: bool | None = None
    row_weights: FloatArray | None = None
    device: Device | None = None

    @property
    def matrix(self) -> FloatArray:
        """K_μ, of shape (n_samples, n_samples), computed on access to keep fitted models small.

        It has the array library and the device of the original kernel matrix.
        """
        device = self.device
        if device is None or device.is_host:
            made = matmul(self.vectors * self.mu**2, self.vectors.T)
            return made if device is None else device.returned(made)
        with device_errors(device):
            scaled = device.put(self.vectors * self.mu)
            return device.xp.matmul(scaled, scaled.T)  # type: ignore[no-any-return]

    @property
    def ratio(self) -> float:
        """The ratio tr S_b / tr S_w on the labelled rows."""
        return float(ratio(self.scatter, self.mu**2))

    def extend(self, cross: Any) -> Any:
        """Return K_μ between new rows and the original rows.

        Eigenvectors are extended by v_r(x) = k(x, X)v_r / λ_r, which on X is v_r itself.

        Parameters
        ----------
        cross : array of shape (n_rows, n_samples)
            The original kernel between new and original rows. The result has the same array
            library and device.
        """
        device, found = check_given(cross), on_host(cross)
        if self.method != "plain":
            vectors, counted = self.vectors, self.row_weights
            if counted is not None:
                vectors = vectors * counted[:, None]
            extended = matmul(found, vectors) / self.eigenvalues
            found = matmul(extended * self.mu**2, self.vectors.T)
        return found if device is None else device.returned(found)


class GramSpectrum(NamedTuple):
    """Eigenvalues in decreasing order, eigenvectors, and the first position of each eigenspace.

    The basis of an eigenspace is arbitrary, and depends on LAPACK. The learned kernel must not
    depend on it, so the vectors of an eigenspace are kept or dropped together and share the mean of
    f and g. The base kernel is then the projection on the whole eigenspace.
    """

    values: FloatArray
    vectors: FloatArray
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, K: FloatArray, weights: SampleWeights) -> GramSpectrum:
        """Return the spectrum of a kernel matrix, with weighted rows."""
        K = K if weights.is_equal else weights.scale_both(K.copy())
        # For all eigenvalues, many of them equal, the default "evr" is several times slower.
        values, vectors = scipy.linalg.eigh(K, driver="evd")
        there = np.flatnonzero(values > _NOISE * values[-1])[::-1]
        values = values[there]
        is_new = np.concatenate([[True], values[:-1] - values[1:] > _NOISE * values[0]])
        vectors = weights.unscale(np.ascontiguousarray(vectors[:, there]))
        return cls(values, vectors, np.flatnonzero(is_new))

    def leading(self, share: float) -> GramSpectrum:
        """Return the fewest leading eigenspaces with a share of the trace."""
        ends = np.append(self.starts[1:], len(self.values))
        sums = np.cumsum(self.values)[ends - 1]
        # Because of rounding, the search could return one more than there are.
        n = min(int(np.searchsorted(sums, share * sums[-1] * (1 - 1e-12))) + 1, len(sums))
        return GramSpectrum(
            self.values[: ends[n - 1]], self.vectors[:, : ends[n - 1]], self.starts[:n]
        )

    def spread(self, totals: FloatArray) -> FloatArray:
        """Return totals of eigenspaces, on the last axis, divided equally among eigenvectors."""
        sizes = np.diff(np.append(self.starts, len(self.values)))
        return np.asarray(np.repeat(totals / sizes, sizes, axis=-1))

    def pooled(self, numbers: FloatArray) -> FloatArray:
        """Return numbers of eigenvectors, on the last axis, averaged over each eigenspace."""
        return self.spread(np.add.reduceat(numbers, self.starts, axis=-1))


def reweigh_spectrum(
    K: Any,
    y: Any,
    *,
    method: Method = "closed_form",
    alpha: float | str = 1e4,
    cap: float = 2.0,
    share: float = 0.8,
    unlabelled: Any = -1,
) -> ReweighedSpectrum:
    """Reweight the leading eigenvectors of a kernel matrix to separate the classes.

    The kernel matrix includes labelled and unlabelled rows: all rows determine the eigenvectors,
    the labels determine the new eigenvalues.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        The kernel matrix.
    y : array-like of shape (n_samples,)
        Labels; -1, None or NaN for unlabelled rows.
    method : {"closed_form", "dinkelbach", "alignment"}, default="closed_form"
        ``"closed_form"`` is Eq. (16) of [Yeung06]_ with c = Σ √λ_r. ``"dinkelbach"`` maximizes
        tr S_b / tr S_w over weights with w_r ≤ cap · λ_r and Σ w_r = Σ λ_r. ``"alignment"`` is the
        spectral alignment of [Cristianini02]_.
    alpha : float or str, default=1e4
        The α of ``"closed_form"``: a number, or a multiple such as ``"2*critical"`` of the α
        above which it is certainly a maximum.
    cap : float, default=2.0
        The limit of ``"dinkelbach"``. 1 keeps the eigenvalues; without a limit, a single
        eigenvector is optimal.
    share : float, default=0.8
        The share of the trace in the eigenvectors that are kept. With 1, the last eigenvectors,
        which are noise and small on the labelled rows, get most of the weight, and the kernel is
        mostly lost.
    unlabelled : object, default=-1
        The mark of unlabelled rows; None if -1 is a class.

    Returns
    -------
    ReweighedSpectrum
        The learned kernel. Its ``matrix``, on the device of K, is for methods that take kernel
        matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> y[np.arange(len(y)) % 5 != 0] = -1
    >>> found = reweigh_spectrum(RBF(width=5.0)(scale(X)), y)
    >>> found.matrix.shape, len(found.mu), found.is_maximum
    ((178, 178), 10, True)
    """
    rule = Reweighing(method, alpha, cap).checked()
    check_number("share of the trace", share, positive=True, most=1.0)
    check_given(K, y)
    device = device_of(K)
    labels = Labels.from_partial(on_host(y), unlabelled)
    grams, _ = check_grams(np.asarray(on_host(K))[None], ["K"], None)
    if grams.shape[1] != labels.n_samples:
        raise InvalidInputError(
            "There must be one label per row of the kernel matrix. "
            f"Got {labels.n_samples} labels and a matrix of shape {grams.shape[1:]}."
        )
    with blas_threads(labels.n_samples):
        leading = GramSpectrum.of(grams[0], labels.weights).leading(share)
        found = reweigh(leading, labels, rule, share)
    return found if device is None else replace(found, device=device)


class Reweighing(NamedTuple):
    """The method that computes new eigenvalues, with its options, as in `reweigh_spectrum`."""

    method: str
    alpha: float | str = ALPHA
    cap: float = 2.0

    def checked(self) -> Reweighing:
        """Return the rule, or raise a clear error if it is invalid."""
        if self.method not in get_args(Method):
            known = list(get_args(Method))
            raise unknown_choice("method of class separability", self.method, known)
        critical_factor(self.alpha)
        check_number("cap of class separability", self.cap, least=1.0)
        return self

    def weights(self, spectrum: GramSpectrum, scatter: Scatter, aligned: FloatArray) -> FloatArray:
        """Return μ² of shape (..., n_vectors); ``aligned`` is that of spectral alignment."""
        if self.method == "closed_form":
            numbers = resolve_alpha(self.alpha, scatter)[..., None]
            return closed_form(scatter, numbers, float(np.sqrt(spectrum.values).sum())) ** 2
        if self.method == "dinkelbach":
            # By eigenspaces, because a knapsack would fill one eigenvector after the other.
            spaces = Scatter(*(numbers[..., spectrum.starts] for numbers in scatter))
            seen = np.add.reduceat(spectrum.values, spectrum.starts) * is_visible(spaces)
            found, _ = dinkelbach(spaces, self.cap * seen, seen.sum(axis=-1, keepdims=True))
            return spectrum.spread(found)
        return aligned * quotient(spectrum.values.sum(), aligned.sum(axis=-1, keepdims=True))


def reweigh(
    spectrum: GramSpectrum, labels: Labels, rule: Reweighing, share: float
) -> ReweighedSpectrum:
    """Return new eigenvalues for the leading part of a spectrum."""
    values, vectors, _ = spectrum
    known, method = vectors[labels.rows], rule.method
    scatter = Scatter(*map(spectrum.pooled, vector_scatter(known, labels.target)))
    if (scatter.between + scatter.within).max() <= _CONSTANT * np.mean(known**2, axis=0).max():
        raise InvalidInputError(
            "The kernel must vary over the labelled rows. It is constant on all "
            f"{len(labels.rows)} of them. Use a smaller width or other columns."
        )
    number = float(resolve_alpha(rule.alpha, scatter)) if method == "closed_form" else None
    maximal = is_maximum(scatter, number) if number is not None else None
    if method == "plain":
        mu = np.sqrt(values)
    elif number is not None:
        mu = closed_form(scatter, number, float(np.sqrt(values).sum()))
    else:
        target, roots = labels.target, labels.target.row_weights.roots
        # ±1 for two classes, as published, and the class scores for more.
        columns = (target.signs * roots)[:, None] if target.n_classes == 2 else target.scores
        aligned = spectrum.pooled(spectral_alignment(roots[:, None] * known, columns))
        mu = np.sqrt(rule.weights(spectrum, scatter, aligned))
    if method == "dinkelbach":
        maximal = True
    counted = None if labels.weights.is_equal else labels.weights.values
    return ReweighedSpectrum(vectors, values, mu, scatter, method, share, number, maximal, counted)


def left_out_alignment(known: FloatArray, target: ClassTarget, between: FloatArray) -> FloatArray:
    """Return the weights of spectral alignment without each labelled row in turn."""
    if target.n_classes != 2:
        return between  # for class scores, the weights are proportional to f
    signed = (target.signs * target.row_weights.values)[:, None] * known
    return np.asarray((signed.sum(axis=0) - signed) ** 2)
