"""Methods of Yeung 2006: a kernel on all rows, labelled or not, then a classifier on it.

One cell learns a kernel once and uses it with several classifiers, ``finals``: a dictionary of
names to ``{"n_neighbors": k}`` or ``{"C": C}``. The accuracy of each is a metric of that name; the
predictions are those of the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from discernel import SeparabilityClassifier
from discernel.arrays import FloatArray
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Kernel
from discernel.papers.separability.spectrum import GramSpectrum, Labels, Reweighing, reweigh
from discernel.papers.separability.spectrum_choice import SHARES
from discernel_reproduction.baselines import ConformalKernelTransformer, KernelNeighborsClassifier
from discernel_reproduction.baselines.conformal_factor import factor_design

#: The σ² of the paper: the mean squared distance, named, comes first.
SQUARED_WIDTHS: tuple[Any, ...] = ("mean", 1e-4, 1e-3, 1e-2, 0.1, 1.0, 5.0, 10.0, 100.0, 1000.0)
#: The default classifier.
_FINALS = {"k-NN k=1": {"n_neighbors": 1}}
#: Number of folds, if leave-one-out would have to learn a kernel for every row.
_FOLDS = 10


@dataclass(frozen=True)
class _Problem:
    """All rows, standardized, with labelled rows first; and the classifiers to run.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows; all of them are used for scaling.
    codes : ndarray of shape (n_labelled,)
        Classes of the labelled rows, as codes.
    kernels : list of RBF
        One per width.
    finals : dict of str to dict
        The classifiers.
    """

    X: FloatArray
    codes: NDArray[np.intp]
    kernels: Sequence[RBF]
    finals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, split: TrainTestSplit, options: dict[str, Any]) -> _Problem:
        X = scale(np.concatenate([split.X_train, split.X_test]))
        mean = 2.0 * float(np.mean(np.sum(X**2, axis=1)))  # of d² over all pairs, X being centred
        squares = [
            mean if square == "mean" else float(square)
            for square in options.pop("squared_widths", SQUARED_WIDTHS)
        ]
        codes = np.unique(split.y_train, return_inverse=True)[1]
        kernels = [RBF(width=float(np.sqrt(square))) for square in squares]
        return cls(X, codes, kernels, options.pop("finals", _FINALS))

    @property
    def labelled(self) -> slice:
        return slice(len(self.codes))

    @property
    def marked(self) -> NDArray[np.intp]:
        """The classes of all rows, −1 where there is no label."""
        unknown = np.full(len(self.X) - len(self.codes), -1)
        return np.concatenate([self.codes, unknown])

    def folds(self, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return the folds of the labelled rows; as many as the smallest class has rows, or ten."""
        n_folds = max(2, min(_FOLDS, int(np.bincount(self.codes).min())))
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return list(splitter.split(self.codes, self.codes))

    def classify(self, matrix: FloatArray, final: BaseEstimator) -> NDArray[np.intp]:
        """Return the classes of the rows without label, by a kernel matrix of all rows."""
        n = len(self.codes)
        final.fit(np.ascontiguousarray(matrix[:n, :n]), self.codes)
        return np.asarray(final.predict(np.ascontiguousarray(matrix[n:, :n])))


def _final(parameters: Mapping[str, Any]) -> BaseEstimator:
    if "C" in parameters:
        return SVC(kernel="precomputed", **parameters)
    return KernelNeighborsClassifier(kernel="precomputed", **parameters)


#: The kernel matrix of all rows for every classifier, and the kernel that it was made of.
Matrices: TypeAlias = dict[str, tuple[FloatArray, Kernel]]
#: Kernel matrices of the training and of the left-out rows of a fold, and their positions.
Fold: TypeAlias = tuple[FloatArray, FloatArray, NDArray[np.intp], NDArray[np.intp]]


def _run(
    split: TrainTestSplit, options: dict[str, Any], learn: Callable[[_Problem], Matrices]
) -> Result:
    """Learn a kernel for every classifier, predict, and measure accuracies."""
    embed = bool(options.pop("embed", False))
    problem = _Problem.of(split, options)
    if options:
        raise InvalidInputError(f"There are no options {sorted(options)} of this method.")
    classes = np.unique(split.y_train)
    start = time.perf_counter()
    learned = learn(problem)
    fitted = time.perf_counter()
    predicted = {
        name: classes[problem.classify(learned[name][0], _final(parameters))]
        for name, parameters in problem.finals.items()
    }
    first = next(iter(problem.finals))
    details: dict[str, Any] = {
        "width": {name: kernel.parameters["width"] for name, (_, kernel) in learned.items()}
    }
    if embed:
        details |= _embedding(split, learned[first][0])
    return Result(
        predictions={"y_pred": predicted[first]},
        seconds_fit=fitted - start,
        seconds_predict=time.perf_counter() - fitted,
        metrics={name: float(np.mean(y == split.y_test)) for name, y in predicted.items()},
        details=details,
    )


def _embedding(split: TrainTestSplit, matrix: FloatArray) -> dict[str, Any]:
    """Return two kernel principal components of all rows, and the first two features."""
    points = KernelPCA(2, kernel="precomputed").fit_transform(matrix)
    rows = np.concatenate([split.X_train, split.X_test])[:, :2]
    return {
        "embedding": np.round(points, 6).tolist(),
        "rows": np.round(rows, 6).tolist(),
        "labels": np.concatenate([split.y_train, split.y_test]).tolist(),
        "n_labelled": len(split.y_train),
    }


def _count(problem: _Problem, names: Iterable[str], folds: Iterable[Fold]) -> dict[str, int]:
    """Return the number of correctly predicted held-out rows of each classifier."""
    right = dict.fromkeys(names, 0)
    for inside, across, train, test in folds:
        for name in right:
            final = _final(problem.finals[name]).fit(inside, problem.codes[train])
            right[name] += int(np.count_nonzero(final.predict(across) == problem.codes[test]))
    return right


# ---- the plain kernel ----------------------------------------------------------------------------


def plain(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Use the Gaussian kernel as it is; its width is chosen by leave-one-out for machines."""
    return _run(split, options, _learn_plain)


def _learn_plain(problem: _Problem) -> Matrices:
    rows = problem.X[problem.labelled]
    learned: Matrices = {}
    for name, parameters in problem.finals.items():
        kernel = problem.kernels[0]
        if "C" in parameters:  # neighbours do not depend on the width
            grams = [candidate(rows) for candidate in problem.kernels]
            right = [leave_one_out(_final(parameters), gram, problem.codes) for gram in grams]
            kernel = problem.kernels[int(np.argmax(right))]
        learned[name] = kernel(problem.X), kernel
    return learned


def leave_one_out(machine: SVC, gram: FloatArray, codes: NDArray[np.intp]) -> float:
    """Return the leave-one-out accuracy of a support vector machine.

    Only support vectors are left out: without any other row the machine is the same.

    Parameters
    ----------
    machine : SVC
        With ``kernel="precomputed"``.
    gram : ndarray of shape (n_rows, n_rows)
        The kernel matrix.
    codes : ndarray of shape (n_rows,)
        The classes; two rows at least of each.
    """
    machine.fit(gram, codes)
    right = machine.predict(gram) == codes
    for row in machine.support_:
        rest = np.delete(np.arange(len(codes)), row)
        without = clone(machine).fit(gram[np.ix_(rest, rest)], codes[rest])
        right[row] = without.predict(gram[row, rest][None])[0] == codes[row]
    return float(np.mean(right))


# ---- learned spectra ----------------------------------------------------------------------------


def separability(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Reweight the spectrum by class separability or, with ``method="alignment"``, by alignment.

    ``alpha``, 10⁴ by default, is the α of the former. Width and share of the trace are chosen on
    the labelled rows: for nearest neighbours by leave-one-out, as in `SeparabilityClassifier`; for
    machines by tenfold cross-validation, in which left-out rows are rows without label.
    """
    method, alpha = options.pop("method", "closed_form"), options.pop("alpha", 1e4)

    def learn(problem: _Problem) -> Matrices:
        learned: Matrices = {}
        for name, parameters in problem.finals.items():
            if "C" not in parameters:
                clf = SeparabilityClassifier(
                    list(problem.kernels),
                    method=method,
                    alpha=alpha,
                    include_plain=False,
                    n_neighbors=int(parameters["n_neighbors"]),
                ).fit(problem.X, problem.marked)
                learned[name] = clf.spectrum_.extend(clf.kernel_(problem.X)), clf.kernel_
        return learned | _learn_for_machines(problem, method, alpha, split.seed)

    return _run(split, options, learn)


def _learn_for_machines(problem: _Problem, method: str, alpha: float, seed: int) -> Matrices:
    """Return the re-weighted matrices with which machines classify most left-out rows right."""
    names = [name for name, parameters in problem.finals.items() if "C" in parameters]
    if not names:
        return {}
    best: dict[str, tuple[int, GramSpectrum, RBF, float]] = {}
    labels, folds = Labels.from_partial(problem.marked), problem.folds(seed)
    for kernel in problem.kernels:
        spectrum = GramSpectrum.of(kernel(problem.X), labels.weights)
        parts = {len(part.values): (part, s) for s in SHARES for part in [spectrum.leading(s)]}
        for part, share in parts.values():
            matrices = (_reweighted_fold(problem, part, f, method, alpha, share) for f in folds)
            for name, right in _count(problem, names, matrices).items():
                if name not in best or right > best[name][0]:
                    best[name] = right, part, kernel, share
    return {
        name: (reweigh(part, labels, Reweighing(method, alpha), share).matrix, kernel)
        for name, (_, part, kernel, share) in best.items()
    }


def _reweighted_fold(
    problem: _Problem,
    part: GramSpectrum,
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    method: str,
    alpha: float,
    share: float,
) -> Fold:
    train, test = fold
    marked = np.full(len(problem.X), -1)
    marked[train] = problem.codes[train]
    mu = reweigh(part, Labels.from_partial(marked), Reweighing(method, alpha), share).mu
    inside, across = part.vectors[train] * mu, part.vectors[test] * mu
    return inside @ inside.T, across @ inside.T, train, test


# ---- conformal kernels --------------------------------------------------------------------------


def conformal(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Stretch the kernel, as `ConformalKernelTransformer` does; other options are its own.

    The width is chosen by tenfold cross-validation on the labelled rows, within which the factor
    is learned anew.
    """
    ours = ("squared_widths", "finals", "embed")
    own = {name: options.pop(name) for name in list(options) if name not in ours}
    own.setdefault("random_state", split.seed)

    def learn(problem: _Problem) -> Matrices:
        rows, folds = problem.X[problem.labelled], problem.folds(split.seed)
        best: dict[str, tuple[int, RBF]] = {}
        for kernel in problem.kernels:
            matrices = (_stretched_fold(kernel, rows, problem.codes, f, own) for f in folds)
            for name, right in _count(problem, problem.finals, matrices).items():
                if name not in best or right > best[name][0]:
                    best[name] = right, kernel
        return {
            name: (_stretch(kernel, problem, own), kernel) for name, (_, kernel) in best.items()
        }

    return _run(split, options, learn)


def _stretched_fold(
    kernel: RBF,
    rows: FloatArray,
    codes: NDArray[np.intp],
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    own: Mapping[str, Any],
) -> Fold:
    train, test = fold
    clf = ConformalKernelTransformer(kernel, **own).fit(rows[train], codes[train])
    return clf.transform(rows[train]), clf.transform(rows[test]), train, test


def _stretch(kernel: RBF, problem: _Problem, own: Mapping[str, Any]) -> FloatArray:
    """Return q(x) q(z) k(x, z) for all rows; `transform` has the labelled ones for z only."""
    rows = problem.X[problem.labelled]
    clf = ConformalKernelTransformer(kernel, **own).fit(rows, problem.codes)
    factors = factor_design(kernel(problem.X, rows[clf.centers_])) @ clf.alpha_
    return np.asarray(factors[:, None] * kernel(problem.X) * factors)
