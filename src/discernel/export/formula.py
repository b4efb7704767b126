"""Conversion of fitted models to steps that NumPy and ONNX can run, and scorers as files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, as_dense, as_rows, is_sparse
from discernel.estimators import (
    KernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.exceptions import InvalidInputError, listed
from discernel.export import _scorer
from discernel.export._scorer import InputColumn, Scorer
from discernel.export.record import Recorded, Recorder
from discernel.inspection.explained import first_encoder, input_encoder, pipeline_steps
from discernel.kernels import Kernel
from discernel.kernels.columns import Table
from discernel.kernels.terms import Term, formula_of
from discernel.model import Model
from discernel.model.parts import score_parts
from discernel.rows.encoder import DateEncoder, TableEncoder
from discernel.rows.writing import check_writable_path, refuse_same_file, write_file

#: Estimators that can be exported.
EXPORTED = (KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge)
#: Largest size in bytes of sparse rows that are converted to dense.
_MOST_BYTES = 2**30


def final_estimator(model: Any) -> tuple[Any, list[Any]]:
    """Return the estimator of a fitted model or pipeline, and the steps before it."""
    *before, clf = pipeline_steps(model)
    if type(clf) not in EXPORTED:
        raise InvalidInputError(
            "A model can be exported if it is a KernelDiscriminant, a MultipleKernelDiscriminant, "
            "a MultipleKernelRidge or a Pipeline that ends with one. Got "
            f"{type(clf).__name__}."
        )
    check_is_fitted(clf, "model_")
    return clf, [step for step in before if step is not None and step != "passthrough"]


def without_dates(model: Any, names: Sequence[str] | None) -> tuple[Any, Sequence[str] | None]:
    """Return a pipeline without a `DateEncoder` as its first step, and the names of its columns.

    An exported model takes the numbers of dates.
    """
    first = pipeline_steps(model)[0]
    if not isinstance(first, DateEncoder):
        return model, names
    return model[1:], first.get_feature_names_out(names).tolist()


def numpy_scorer(clf: Any, *, names: Sequence[str] | None = None) -> Scorer:
    """Return an object that predicts like a fitted model and needs only NumPy.

    Parameters
    ----------
    clf : KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge or Pipeline
        Fitted. A pipeline may contain a `TableEncoder` and a `StandardScaler` before the
        estimator. Kernels must be RBF, Laplace, Exponential, Linear, Polynomial or Cosine, or
        sums, products and powers of these.
    names : sequence of str, optional
        Names of the columns; by default those of training, or ``x0``, ``x1`` and so on for an
        array.

    Returns
    -------
    Scorer
        Object with ``predict`` and, for classes, ``predict_proba``. Rows are an array, a
        DataFrame, a dictionary of columns or a list of dictionaries; missing cells of tables are
        None or NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = numpy_scorer(KernelDiscriminant().fit(X, y))
    >>> scorer.predict([[5.1, 3.5, 1.4, 0.2]]).tolist()
    [0]
    """
    clf, names = without_dates(clf, names)
    learner, before = final_estimator(clf)
    _check_steps(before)
    model: Model = learner.model_
    taken, columns = _columns(input_encoder(clf), input_names([*before, learner][0], names))
    xp = Recorder(len(columns))
    (used,) = xp.given
    rows = _features(model, before, [column.position for column in columns], used, xp)
    needed = np.arange(0) if first_encoder(clf) else _needed(model)
    scores, head, known = _scores(model, rows, xp), model.head, (taken, columns, needed)
    if model.classes is None:
        return Scorer(*known, xp.computation(scores), has_columns=head.has_columns)
    slope, bias = head.discriminant.linear
    logs = xp.computation(xp.matmul(scores, slope) + (bias + head.decision.log_priors))
    return Scorer(*known, logs, _labels(model.classes), head.decision.offsets)


def encoder_scorer(encoder: TableEncoder, names: Sequence[str] | None = None) -> Scorer:
    """Return an object like `numpy_scorer`, whose scores are the encoded columns of a table.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    names : sequence of str, optional
        Names of the columns, as in `numpy_scorer`.
    """
    taken, columns = _columns(encoder, input_names(encoder, names))
    xp = Recorder(len(columns))
    (used,) = xp.given
    return Scorer(taken, columns, np.arange(0), xp.computation(_encoded(encoder, used, xp)))


# ---- scores ------------------------------------------------------------------------------------


def _scores(model: Model, X: Recorded, xp: Recorder) -> Recorded:
    """Return the scores of encoded rows, as `Model.scores`."""
    assert model.kernel is not None
    parts, offset = score_parts(model.kernel, model.coef)
    scores: Any = model.intercept - offset
    for part in parts:
        own = _kernel_scores if part.features is None else _feature_scores
        scores = own(part, X, xp) + scores
    return scores  # type: ignore[no-any-return]


def _kernel_scores(part: Any, X: Recorded, xp: Recorder) -> Recorded:
    """Return Σ_j k(x, z_j) coef_j."""
    rows, kernels = _dense(part), part.kernels
    weights = part.kernel.coefficients.tolist()
    terms = [
        Term(weight * factor, atoms)
        for kernel, weight in zip(kernels, weights, strict=True)
        for factor, atoms in kernel.terms()
    ]
    matrix = formula_of(terms, X, rows, xp)
    if matrix is None:
        refused = (each for each in kernels if formula_of(each.terms(), X, rows, xp) is None)
        raise _not_exported(next(refused))
    if part.centered:
        # Coefficients sum to 0; subtracting a common part of a row reduces rounding errors.
        matrix = matrix - matrix[:, [0]]
    return xp.matmul(matrix, np.ascontiguousarray(part.coef))


def _not_exported(kernel: Kernel) -> InvalidInputError:
    return InvalidInputError(
        "A model can be exported if its kernels are RBF, Laplace, Exponential, Linear, Polynomial "
        "or Cosine, also on columns, standardized, named, scaled, added, multiplied or raised to a "
        f"power, or WhereKnown of these. Got {kernel.name} of type {type(kernel).__name__}. Fit "
        "again without it."
    )


def _dense(part: Any) -> FloatArray:
    """Return stored rows as a dense array, or raise if they are not numbers or too large."""
    if part.rows is None:
        raise _not_exported(part.kernels[0])
    rows = part.rows
    if isinstance(rows, Table):
        raise InvalidInputError(
            "A model can be exported if its kernels use numbers only. This one was fitted to a "
            "table with other columns for callable kernels. Fit again without them."
        )
    if is_sparse(rows) and 8 * rows.shape[0] * rows.shape[1] > _MOST_BYTES:
        raise InvalidInputError(
            "An exported model holds its training rows as a dense array, which must be below "
            f"{_MOST_BYTES / 2**30:.0f} GiB. Got {rows.shape[0]:,} sparse rows of "
            f"{rows.shape[1]:,} columns. Fit to fewer columns, or with bank='lowrank'."
        )
    return np.asarray(as_dense(as_rows(rows)))


def _feature_scores(part: Any, X: Recorded, xp: Recorder) -> Recorded:
    """Return φ(x)·coef for exact features: the row, its direction, or its monomials."""
    one, coef = part.features, np.sqrt(part.features.factor) * part.coef
    atom = one.atom
    seen = atom.pair.formula_rows(atom.view.seen(X.width).of(X), xp)
    if one.monomials is None:
        return xp.matmul(seen, coef)
    # c + γ⟨x, z⟩ = ⟨x', z'⟩, where the first entry of x' is the constant √c.
    gamma, constant, _ = atom.function.numbers
    first = int(constant > 0)
    indices, roots = one.monomials
    product = roots
    for chosen in indices.T:
        is_variable = chosen >= first
        factors = np.where(is_variable, np.sqrt(gamma), 0.0)
        added = np.where(is_variable, 0.0, np.sqrt(constant))
        product = product * (seen[:, np.maximum(chosen - first, 0)] * factors + added)
    return xp.matmul(product, coef)


# ---- rows --------------------------------------------------------------------------------------


def input_names(first: Any, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the names of the columns: as given, from the first step, or numbered."""
    n_columns = int(first.n_features_in_)
    if names is None:
        names = getattr(first, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{i}" for i in range(n_columns))
    if len(names) != n_columns:
        raise InvalidInputError(
            f"There must be one name per column, here {n_columns}. Got {len(names)}."
        )
    return tuple(str(name) for name in names)


def _check_steps(before: Sequence[Any]) -> None:
    """Raise an error unless the steps before the estimator can be exported to NumPy."""
    scalers = before[1:] if before and isinstance(before[0], TableEncoder) else before
    if any(type(step) is not StandardScaler for step in scalers):
        raise InvalidInputError(
            "Before the estimator, a Pipeline that is exported to NumPy may have a TableEncoder as "
            "its first step, and StandardScaler. Got "
            f"{listed([type(step).__name__ for step in before])}. Apply the other steps yourself, "
            "or use to_onnx."
        )


def _scaled(scaler: StandardScaler, X: Recorded, used: Sequence[int]) -> Recorded:
    """Return columns standardized; ``used`` are their positions among those of the scaler."""
    mean = scaler.mean_ if scaler.with_mean and scaler.mean_ is not None else np.zeros(1)
    scale = np.ones(1) if scaler.scale_ is None else scaler.scale_
    n = scaler.n_features_in_
    mean, scale = (np.broadcast_to(each, n)[list(used)] for each in (mean, scale))
    scaled: Recorded = (X - mean) / scale
    return scaled


def _columns(
    encoder: TableEncoder | None, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[InputColumn, ...]]:
    """Return the names of the input columns of an exported model, and the columns that it uses.

    Dates are replaced by their parts, such as ``when (days)``.
    """
    if encoder is None:
        return tuple(names), tuple(InputColumn(position) for position in range(len(names)))
    known = {each.position: each.inputs(names[each.position]) for each in encoder.columns_}
    taken: list[tuple[str, Any]] = []
    for position, name in enumerate(names):
        taken += known.get(position, {name: None}).items()
    made = []
    for place, (_, each) in enumerate(taken):
        if each is not None and each.kind == "number":
            made.append(InputColumn(place))
        elif each is not None:
            values = tuple(str(value) for value in each.values)
            missing = len(values) + each.tells_missing
            made.append(InputColumn(place, values, each.is_text, missing))
    return tuple(name for name, _ in taken), tuple(made)


def _features(
    model: Model, before: Sequence[Any], used: Sequence[int], X: Recorded, xp: Recorder
) -> Recorded:
    """Return the rows for the kernels from the columns that are used, at positions ``used``."""
    for step in before:
        if isinstance(step, TableEncoder):
            X = _encoded(step, X, xp)
            used = range(X.width)
        else:
            X = _scaled(step, X, used)
    encoder, medians = model.reader.encoder, model.reader.medians
    if encoder is not None:
        return _encoded(encoder, X, xp)
    return X if medians is None else xp.where(xp.isnan(X), medians, X)


def _encoded(encoder: TableEncoder, X: Recorded, xp: Recorder) -> Recorded:
    """Return the features of encoded columns.

    In a column of numbers, missing cells are replaced by the median; with ``tells_missing``, an
    indicator column is added. A column of categories becomes one indicator column per value, one
    for other values and one for missing cells.
    """
    inputs = [each for column in encoder.columns_ for each in column.inputs("").values()]
    numbers = [i for i, each in enumerate(inputs) if each.kind == "number"]
    told = [i for i in numbers if inputs[i].tells_missing]
    parts, keys = [], [(i, 0) for i in numbers] + [(i, 1) for i in told]
    if numbers:
        missing = xp.isnan(X[:, numbers])
        parts.append(xp.where(missing, [inputs[i].median for i in numbers], X[:, numbers]))
    if told:
        parts.append(xp.where(missing[:, np.searchsorted(numbers, told)], 1.0, 0.0))
    for i, each in enumerate(inputs):
        if each.kind != "number":
            codes = np.arange(len(each.values) + 1.0 + each.tells_missing)
            parts.append(xp.where(xp.equal(X[:, [i]], codes), 1.0, 0.0))
            keys += [(i, code) for code in range(len(codes))]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return (xp.concat(parts) if len(parts) > 1 else parts[0])[:, order]


def _needed(model: Model) -> NDArray[np.intp]:
    """Return the positions of encoded columns that may not have missing cells."""
    n_columns = len(model.reader.given_columns)
    is_needed = np.zeros(n_columns, dtype=np.bool_)
    if model.reader.encoder is None and model.reader.medians is None:
        assert model.kernel is not None
        parts, _ = score_parts(model.kernel, model.coef)
        terms = [term for part in parts for kernel in part.kernels for term in kernel.terms()]
        for atom in (atom for term in terms for atom in term.atoms):
            is_needed[atom.view.seen(n_columns).columns] |= not atom.pair.takes_missing
    return np.flatnonzero(is_needed)


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as an array of numbers, booleans or text."""
    labels = np.array(classes.tolist())
    if labels.dtype.kind not in "biufU" or labels.ndim != 1:
        raise InvalidInputError(
            "A model can be exported if its labels are all text, all numbers or all booleans. Got "
            f"{classes.tolist()}."
        )
    return labels


# ---- files -------------------------------------------------------------------------------------


def write_scorer(
    clf: Any, path: str | Path, *, names: Sequence[str] | None = None
) -> tuple[Path, Path]:
    """Write a fitted model as a Python file that needs only NumPy.

    Parameters
    ----------
    clf : KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge or Pipeline
        Fitted, as in `numpy_scorer`.
    path : str or Path
        The Python file, such as ``scorer.py``. The arrays of the model are written to
        ``scorer.npz`` beside it. Each file is written atomically.
    names : sequence of str, optional
        Names of the columns, as in `numpy_scorer`.

    Returns
    -------
    tuple of Path
        The Python file and the ``.npz`` file.

    Notes
    -----
    ``import scorer`` then has ``predict`` and, for classes, ``predict_proba`` and ``classes``. The
    file is the same for all models: the module ``discernel.export._scorer``.
    """
    code, numbers = Path(path), Path(path).with_suffix(".npz")
    if code.suffix != ".py":
        raise InvalidInputError(
            f"A scorer must be a file that ends with .py, to be imported. Got {str(path)!r}."
        )
    check_writable_path("scorer", code)
    refuse_same_file(scorer=code, file_of_numbers=numbers)
    _refuse_other_numbers(numbers)
    stored = io.BytesIO()
    np.savez_compressed(stored, **pack(numpy_scorer(clf, names=names)))  # type: ignore[arg-type]
    # Arrays first: an existing Python file can read the new ones.
    write_file(numbers, stored.getvalue())
    return write_file(code, Path(_scorer.__file__).read_bytes()), numbers


def _refuse_other_numbers(path: Path) -> None:
    """Raise an error if a file, whose name the user did not give, is not one of a scorer."""
    if not path.is_file():
        return
    try:
        with np.load(path, allow_pickle=False) as stored:
            is_scorer = "plan" in stored.files
    except Exception:  # whatever else the file is
        is_scorer = False
    if not is_scorer:
        raise InvalidInputError(
            f"The file of numbers beside the scorer would replace {str(path)!r}, which belongs to "
            "no scorer. Choose another name for the scorer."
        )


def pack(scorer: Scorer) -> dict[str, NDArray[Any]]:
    """Return a scorer as arrays, the input of `Scorer.unpack`."""
    arrays: dict[str, NDArray[Any]] = {}

    def encode(value: Any) -> dict[str, Any]:
        """Return an object as its class name and fields, an array as the name it is stored by."""
        if is_dataclass(value):
            parts = {each.name: getattr(value, each.name) for each in fields(value)}
            return {"class": type(value).__name__, **parts}
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}

    plan = json.dumps({"format": _scorer.FORMAT, "model": scorer}, default=encode)
    return {"plan": np.array(plan), **arrays}
