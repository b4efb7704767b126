"""What a fitted model predicts with, as numbers: kernels, coefficients, columns, classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, as_rows, is_sparse, typical_row
from discernel.estimators import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.export._scorer import (
    Factor,
    KernelSum,
    Lack,
    NumberColumn,
    Pairs,
    Scorer,
    ValueColumn,
)
from discernel.kernels import Kernel, WhereKnown
from discernel.kernels.columns import Table
from discernel.kernels.features import ExactMap
from discernel.kernels.terms import IDENTITY, Atom, Seen, Term
from discernel.model.parts import KernelPart, score_parts
from discernel.rows.tables import TableEncoder
from discernel.rows.tables.encoder import EncodedNumbers, EncodedValues

__all__ = ["EXPORTED", "final_estimator", "formula_of", "input_names"]

#: What can be exported.
EXPORTED = (KernelDiscriminant, MultipleKernelDiscriminant)
#: Of kernels exp(−a·d), a times the largest squared length of a row from which on squared
#: distances by products are too coarse: their rounding is 1e-16 of this.
_COARSE = 1e4
#: Bytes of stored rows that are made dense.
_MOST_BYTES = 2**30


def final_estimator(model: Any) -> tuple[Any, list[Any]]:
    """Return the classifier of a fitted model or pipeline, and the steps before it, or raise."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *before, clf = steps
    if type(clf) not in EXPORTED:
        raise InvalidInputError(
            "A model can be exported if it is a KernelDiscriminant, a MultipleKernelDiscriminant "
            f"or a Pipeline that ends with one. Got {type(clf).__name__}."
        )
    check_is_fitted(clf, "discriminant_")
    return clf, [step for step in before if step is not None and step != "passthrough"]


def formula_of(model: Any, names: Sequence[str] | None = None) -> Scorer:
    """Return what a fitted model predicts with, or raise; its columns may be called otherwise."""
    clf, before = final_estimator(model)
    n_columns = clf.n_features_in_ if clf.encoder_ is None else len(clf.encoder_.is_code)
    discriminant, decision = clf.discriminant_, clf.decision_
    parts, offset = score_parts(clf.combined_kernel_, discriminant.dual_coef)
    sums = [one for part in parts for one in _sums(part, n_columns)]
    slope, bias = discriminant.linear
    return Scorer(
        _labels(clf.classes_),
        input_names([*before, clf][0], names),
        _scaling(before),
        _columns(clf.encoder_),
        clf.model_.reader.medians,
        tuple(sums),
        discriminant.intercept - offset,
        slope,
        bias + decision.log_priors,
        decision.offsets,
    )


# ---- scores ------------------------------------------------------------------------------------


def _sums(part: Any, n_columns: int) -> list[KernelSum]:
    """Return a `ScorePart` of rows as sums over stored rows."""
    if isinstance(part, KernelPart):
        return _kernel_sums(part, n_columns)
    if not isinstance(part.features, ExactMap):
        raise InvalidInputError(
            "A model of low rank can be exported if its features are exact or of Nyström. Got "
            f"{type(part.features).__name__}. Fit again without it."
        )
    return [_feature_sum(part.features, part.coef, n_columns)]


def _kernel_sums(part: KernelPart, n_columns: int) -> list[KernelSum]:
    """Return Σ_j k(x, z_j) coef_j; kernels of sources that rows may lack are sums of their own."""
    plain: list[Term] = []
    lacking: list[tuple[float, WhereKnown, Seen]] = []
    for one, weight in zip(part.kernels, part.kernel.coefficients.tolist(), strict=True):
        for factor, atoms in one.terms():
            first = atoms[0].pair if len(atoms) == 1 and atoms[0].function == IDENTITY else None
            if isinstance(first, WhereKnown):
                lacking.append((weight * factor, first, atoms[0].view.seen(n_columns)))
                _check_terms(one, first.kernel.terms())
            else:
                _check_terms(one, [Term(factor, atoms)])
                plain.append(Term(weight * factor, atoms))
    stored = _dense(part.rows)
    sums = [_sum(plain, stored, part.coef, part.centered)] if plain else []
    for weight, where, seen in lacking:
        sums += _known_sums(where, seen, weight, stored, part.coef)
    return sums


def _check_terms(kernel: Kernel, terms: Sequence[Term]) -> None:
    """Raise an error where a kernel has an atom that only discernel can compute."""
    if any(atom.pair.kind is None for term in terms for atom in term.atoms):
        raise InvalidInputError(
            "A model can be exported if its kernels are RBF, Laplace, Exponential, Linear, "
            "Polynomial or Cosine, on columns, standardized, named, scaled, added, multiplied or "
            f"to a power too, or WhereKnown of these, not multiplied. Got {kernel.name}, of type "
            f"{type(kernel).__name__}. Fit again without it: others predict with discernel only."
        )


def _dense(rows: Any) -> FloatArray:
    """Return stored rows as an array, or raise where they are no numbers, or too many."""
    if isinstance(rows, Table):
        raise InvalidInputError(
            "A model can be exported if its kernels see numbers only. This one was fitted to a "
            "table with other columns, for callables. Fit again without them."
        )
    if is_sparse(rows):
        n_bytes = 8 * rows.shape[0] * rows.shape[1]
        if n_bytes > _MOST_BYTES:
            raise InvalidInputError(
                "An exported model holds its training rows as a dense array, which must be below "
                f"{_MOST_BYTES / 2**30:.0f} GiB. Got {rows.shape[0]:,} sparse rows of "
                f"{rows.shape[1]:,} columns. Fit to fewer columns, or with bank='lowrank'."
            )
        rows = rows.toarray()
    return np.asarray(as_rows(rows))


def _known_sums(
    where: WhereKnown, view: Seen, weight: float, rows: FloatArray, coef: FloatArray
) -> list[KernelSum]:
    """Return Σ_j k(x, z_j) coef_j of a source that rows x and z_j may lack.

    Of a row z that lacks it, k(x, z) is the mean of k(x, r) over the training rows r that have it,
    and k(x, z) of a row x that lacks it does not depend on x.
    """
    known = where.training
    if known.medians is None:
        raise InvalidInputError(f"{where.name} must see numbers to be exported. Got other columns.")
    within = where.kernel.terms()
    filled, lacks = where._filled(view.of(rows))
    there, absent = filled[~lacks], coef[lacks].sum(axis=0)
    means = known.means if known.has(there) else where.kernel(there, known.rows).mean(axis=1)
    scores = weight * (means @ coef[~lacks] + known.means.mean() * absent)
    parts = [
        (there, coef[~lacks]),
        (known.rows, np.tile(absent / len(known.rows), (len(known.rows), 1))),
    ]
    if known.has(there):  # one sum is enough
        parts = [(there, parts[0][1] + parts[1][1])]
    sums = []
    for position, (stored, own) in enumerate(parts):
        terms = [Term(weight * factor, atoms) for factor, atoms in within]
        made = _sum(terms, stored, own, balanced=False, of=view.columns)
        lack = Lack(view.columns, known.medians, scores if position == 0 else 0.0 * scores)
        sums.append(replace(made, lack=lack))
    return sums


def _sum(
    terms: list[Term],
    rows: FloatArray,
    coef: FloatArray,
    balanced: bool,
    of: NDArray[np.intp] | None = None,
) -> KernelSum:
    """Return a sum over stored rows; atoms of the same distances or inner products share them.

    ``balanced`` says whether coefficients sum to 0, and ``of`` which columns of new rows the stored
    rows have, by default all.
    """
    pairs: list[Pairs] = []
    places: dict[tuple[Any, ...], int] = {}
    sharpest: dict[tuple[Any, ...], float] = {}
    for atom in (atom for term in terms for atom in term.atoms):
        sharpest[_key(atom)] = max(sharpest.get(_key(atom), 0.0), atom.function.numbers[0])
    made = []
    for number, atoms in terms:
        factors = []
        for atom in atoms:
            key = _key(atom)
            if key not in places:
                places[key] = len(pairs)
                found = _pairs(atom, rows, sharpest[key])
                pairs.append(found if of is None else replace(found, columns=of[found.columns]))
            factors.append(Factor(places[key], atom.function.kind, atom.function.numbers))
        # A constant is (0·p + 1)¹ of any pairs.
        made.append((number, tuple(factors) or (Factor(0, "power", (0.0, 1.0, 1.0)),)))
    return KernelSum(tuple(pairs), tuple(made), np.ascontiguousarray(coef), balanced)


def _key(atom: Atom) -> tuple[Any, ...]:
    """Return what atoms have in common that share pairs."""
    # Next to distance 0, the root of a squared distance by products has half of the digits.
    by_column = atom.function.kind == "exp of root"
    return "squared by column" if by_column else atom.pair.kind, atom.view


def _pairs(atom: Atom, rows: FloatArray, sharpest: float) -> Pairs:
    """Return what an atom is a function of, with the stored rows as it sees them."""
    kind, view = _key(atom)[0], atom.view.seen(rows.shape[1])
    seen, origin = view.of(rows), view.origin
    if kind.startswith("squared"):
        # Products of rows far from the origin lose the digits that all of them share.
        origin = typical_row(seen)
    seen = np.ascontiguousarray(seen - origin)
    if kind == "squared":
        farthest = float(np.max(np.sum(seen**2, axis=1)))
        if seen.shape[1] == 1 or sharpest * farthest > _COARSE:
            kind = "squared by column"
    if kind == "cosine":
        lengths = np.sqrt(np.sum(seen**2, axis=1, keepdims=True))
        seen = seen / np.where(lengths > 0, lengths, 1.0)
    return Pairs(kind, view.columns, view.factors, origin, seen, np.zeros(len(seen)))


# ---- features ----------------------------------------------------------------------------------


def _feature_sum(one: ExactMap, coef: FloatArray, n_columns: int) -> KernelSum:
    """Return φ(x)·coef of a map as a sum over rows."""
    root, view = float(np.sqrt(one.factor)), one.atom.view.seen(n_columns)
    if one.monomials is not None:
        return _monomial_sum(one, view, root * coef)
    # φ(x) is the row, or its direction: a row of coefficients is what a stored row would be.
    pairs = _seen(one, view, np.ascontiguousarray(coef.T), np.zeros(coef.shape[1]))
    product = root, (Factor(0, "power", (1.0, 0.0, 1.0)),)
    return KernelSum((pairs,), (product,), np.eye(coef.shape[1]), balanced=False)


def _seen(one: ExactMap, view: Seen, rows: FloatArray, added: FloatArray) -> Pairs:
    assert one.atom.pair.kind is not None
    return Pairs(one.atom.pair.kind, view.columns, view.factors, view.origin, rows, added)


def _monomial_sum(one: ExactMap, view: Seen, coef: FloatArray) -> KernelSum:
    """Return the features of a polynomial kernel: each is a product of inner products.

    Those of a row with unit vectors, and constants where a monomial has fewer variables.
    """
    assert one.monomials is not None
    indices, roots = one.monomials
    gamma, coef0, _ = one.atom.function.numbers
    n_columns, first = len(view.columns), int(coef0 > 0)  # the constant comes first
    pairs = []
    for chosen in indices.T:
        rows, added = np.zeros((len(chosen), n_columns)), np.zeros(len(chosen))
        is_variable = chosen >= first
        rows[is_variable, chosen[is_variable] - first] = np.sqrt(gamma)
        added[~is_variable] = np.sqrt(coef0)
        pairs.append(_seen(one, view, rows, added))
    factors = tuple(Factor(i, "power", (1.0, 0.0, 1.0)) for i in range(len(pairs)))
    return KernelSum(tuple(pairs), ((1.0, factors),), roots[:, None] * coef, balanced=False)


# ---- rows --------------------------------------------------------------------------------------


def input_names(first: Any, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return what the columns are called, by what sees them first, or as they are to be called."""
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


def _scaling(before: list[Any]) -> tuple[FloatArray, FloatArray] | None:
    """Return what is taken off columns first, and what they are divided by; None for nothing."""
    if not before:
        return None
    if len(before) > 1 or type(before[0]) is not StandardScaler:
        listed = ", ".join(type(step).__name__ for step in before)
        raise InvalidInputError(
            "Before the classifier, a Pipeline that is exported to NumPy may have one "
            f"StandardScaler. Got {listed}. Transform rows by them yourself, or use to_onnx."
        )
    scaler, n = before[0], before[0].n_features_in_
    mean = np.zeros(n) if scaler.mean_ is None or not scaler.with_mean else scaler.mean_
    scale = np.ones(n) if scaler.scale_ is None else scaler.scale_
    return np.asarray(mean, dtype=np.float64), np.asarray(scale, dtype=np.float64)


def _columns(encoder: TableEncoder | None) -> tuple[NumberColumn | ValueColumn, ...] | None:
    if encoder is None:
        return None
    made: list[NumberColumn | ValueColumn] = []
    for column in encoder.columns_:
        if type(column) is EncodedNumbers:
            made.append(NumberColumn(column.position, column.median, column.tells_missing))
        elif type(column) is EncodedValues:
            values = tuple(str(value) for value in column.values)
            made.append(ValueColumn(column.position, values, column.is_text, column.tells_missing))
        else:
            raise InvalidInputError(
                "A table can be exported if its columns are numbers, categories or text. Got "
                f"{type(column).__name__}. Fit again without column {column.position}."
            )
    return tuple(made)


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as an array of numbers, booleans or text."""
    labels = np.array(classes.tolist())
    if labels.dtype.kind not in "biufU" or labels.ndim != 1:
        raise InvalidInputError(
            "A model can be exported if its labels are all text, all numbers or all booleans. Got "
            f"{classes.tolist()}."
        )
    return labels
