"""Fitted models as numbers: kernels, coefficients, columns and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, as_dense, as_rows, is_sparse, typical_row
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
from discernel.inspection.explained import pipeline_steps
from discernel.kernels import Kernel, WhereKnown
from discernel.kernels.columns import Table
from discernel.kernels.features import ExactMap
from discernel.kernels.terms import IDENTITY, Atom, Seen, Term, View
from discernel.model import Model
from discernel.model.parts import ScorePart, score_parts
from discernel.rows.encoder import TableEncoder

#: The pairs and functions that scorers and graphs compute.
_PAIRS = ("squared", "city", "inner", "cosine")
_FUNCTIONS = ("exp", "exp of root", "power")
#: What can be exported.
EXPORTED = (KernelDiscriminant, MultipleKernelDiscriminant)
#: Of kernels exp(−a·d), a times the largest squared length of a row from which on squared
#: distances by products are too coarse: their rounding is 1e-16 of this.
_COARSE = 1e4
#: Bytes of stored rows that are made dense.
_MOST_BYTES = 2**30


def final_estimator(model: Any) -> tuple[Any, list[Any]]:
    """Return the classifier of a fitted model or pipeline, and the steps before it, or raise."""
    *before, clf = pipeline_steps(model)
    if type(clf) not in EXPORTED:
        raise InvalidInputError(
            "A model can be exported if it is a KernelDiscriminant, a MultipleKernelDiscriminant "
            f"or a Pipeline that ends with one. Got {type(clf).__name__}."
        )
    check_is_fitted(clf, "discriminant_")
    return clf, [step for step in before if step is not None and step != "passthrough"]


def numpy_scorer(clf: Any, *, names: Sequence[str] | None = None) -> Scorer:
    """Return an object that predicts as a fitted model does, with NumPy alone.

    Parameters
    ----------
    clf : KernelDiscriminant, MultipleKernelDiscriminant or Pipeline
        Fitted. A pipeline is a `StandardScaler` and one of these. Kernels are RBF,
        Laplace, Exponential, Linear, Polynomial and Cosine, and what is made of them; others are
        refused.
    names : sequence of str, optional
        What the columns are called; by default as in training, and ``x0``, ``x1`` and so on where
        that was an array.

    Returns
    -------
    Scorer
        With ``predict`` and ``predict_proba``. Rows are an array, a dataframe, a dictionary of
        columns or a list of dictionaries; missing cells of tables are None or NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = numpy_scorer(KernelDiscriminant().fit(X, y))
    >>> scorer.predict([[5.1, 3.5, 1.4, 0.2]]).tolist()
    [0]
    """
    learner, before = final_estimator(clf)
    model: Model = learner.model_
    reader, head = model.reader, model.head
    assert model.kernel is not None
    parts, offset = score_parts(model.kernel, model.coef)
    sums = [one for part in parts for one in _sums(part, len(reader.given_columns))]
    slope, bias = head.discriminant.linear
    taken, columns = _columns(reader.encoder, input_names([*before, learner][0], names))
    return Scorer(
        _labels(learner.classes_),
        taken,
        _scaling(before),
        columns,
        reader.medians,
        tuple(sums),
        model.intercept - offset,
        slope,
        bias + head.decision.log_priors,
        head.decision.offsets,
    )


# ---- scores ------------------------------------------------------------------------------------


def _sums(part: ScorePart, n_columns: int) -> list[KernelSum]:
    """Return a part of scores as sums over stored rows."""
    if part.features is None:
        return _kernel_sums(part, n_columns)
    return [_feature_sum(part.features, part.coef, n_columns)]


def _kernel_sums(part: Any, n_columns: int) -> list[KernelSum]:
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
    return [*sums, *(_known_sum(*each, stored, part.coef) for each in lacking)]


def _check_terms(kernel: Kernel, terms: Sequence[Term]) -> None:
    """Raise an error where a kernel has an atom that only discernel can compute."""
    atoms = [atom for term in terms for atom in term.atoms]
    if not all(atom.pair.kind in _PAIRS and atom.function.kind in _FUNCTIONS for atom in atoms):
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
    if is_sparse(rows) and 8 * rows.shape[0] * rows.shape[1] > _MOST_BYTES:
        raise InvalidInputError(
            "An exported model holds its training rows as a dense array, which must be below "
            f"{_MOST_BYTES / 2**30:.0f} GiB. Got {rows.shape[0]:,} sparse rows of "
            f"{rows.shape[1]:,} columns. Fit to fewer columns, or with bank='lowrank'."
        )
    return np.asarray(as_dense(as_rows(rows)))


def _known_sum(
    weight: float, where: WhereKnown, view: Seen, rows: FloatArray, coef: FloatArray
) -> KernelSum:
    """Return Σ_j k(x, z_j) coef_j of a source that rows x and z_j may lack.

    Of a row z that lacks it, k(x, z) is the mean of k(x, r) over the training rows r that have it,
    and k(x, z) of a row x that lacks it does not depend on x.
    """
    known = where.training
    if known.medians is None:
        raise InvalidInputError(f"{where.name} must see numbers to be exported. Got other columns.")
    filled, lacks = where._filled(view.of(rows))
    there, own, absent = filled[~lacks], coef[~lacks], coef[lacks].sum(axis=0)
    means = known.means if known.has(there) else where.kernel(there, known.rows).mean(axis=1)
    scores = weight * (means @ own + known.means.mean() * absent)
    share = np.tile(absent / len(known.rows), (len(known.rows), 1))
    if known.has(there):
        own = own + share
    else:
        there, own = np.vstack([there, known.rows]), np.vstack([own, share])
    terms = [Term(weight * factor, atoms) for factor, atoms in where.kernel.terms()]
    made = _sum(terms, there, own, balanced=False)
    pairs = tuple(replace(each, columns=view.columns[each.columns]) for each in made.pairs)
    return replace(made, pairs=pairs, lack=Lack(view.columns, known.medians, scores))


def _sum(terms: list[Term], rows: FloatArray, coef: FloatArray, balanced: bool) -> KernelSum:
    """Return a sum over stored rows; atoms of the same distances or inner products share them.

    ``balanced`` says whether coefficients sum to 0.
    """
    sharpest: dict[tuple[str, View], float] = {}
    for atom in (atom for term in terms for atom in term.atoms):
        sharpest[_key(atom)] = max(sharpest.get(_key(atom), 0.0), atom.function.numbers[0])
    pairs = [_pairs(*key, rows, sharp) for key, sharp in sharpest.items()]
    places = {key: place for place, key in enumerate(sharpest)}
    made = []
    for number, atoms in terms:
        factors = (Factor(places[_key(a)], a.function.kind, a.function.numbers) for a in atoms)
        # A constant is (0·p + 1)¹ of any pairs.
        made.append((number, tuple(factors) or (Factor(0, "power", (0.0, 1.0, 1.0)),)))
    return KernelSum(tuple(pairs), tuple(made), np.ascontiguousarray(coef), balanced)


def _key(atom: Atom) -> tuple[str, View]:
    """Return what atoms have in common that share pairs."""
    # Next to distance 0, the root of a squared distance by products has half of the digits.
    by_column = atom.function.kind == "exp of root"
    return "squared by column" if by_column else str(atom.pair.kind), atom.view


def _pairs(kind: str, view: View, rows: FloatArray, sharpest: float) -> Pairs:
    """Return what atoms are functions of, with the stored rows as they see them."""
    columns, factors, origin = seen = view.seen(rows.shape[1])
    stored = seen.of(rows)
    if kind.startswith("squared"):
        # Products of rows far from the origin lose the digits that all of them share.
        origin = typical_row(stored)
    stored = np.ascontiguousarray(stored - origin)
    if kind == "squared":
        farthest = float(np.max(np.sum(stored**2, axis=1)))
        if stored.shape[1] == 1 or sharpest * farthest > _COARSE:
            kind = "squared by column"
    if kind == "cosine":
        lengths = np.sqrt(np.sum(stored**2, axis=1, keepdims=True))
        stored = stored / np.where(lengths > 0, lengths, 1.0)
    return Pairs(kind, columns, factors, origin, stored, np.zeros(len(stored)))


# ---- features ----------------------------------------------------------------------------------


def _feature_sum(one: ExactMap, coef: FloatArray, n_columns: int) -> KernelSum:
    """Return φ(x)·coef of a map as a sum over rows: products of inner products with them.

    Of the row, or its direction, coefficients are what a stored row would be. A feature of a
    polynomial kernel is a product of inner products with unit vectors, and of constants where its
    monomial has fewer variables.
    """
    kind, seen = str(one.atom.pair.kind), one.atom.view.seen(n_columns)
    root, pairs = float(np.sqrt(one.factor)), []
    if one.monomials is None:
        pairs, coef = [(np.ascontiguousarray(coef.T), np.zeros(coef.shape[1]))], np.eye(len(coef.T))
    else:
        indices, counts = one.monomials
        gamma, coef0, _ = one.atom.function.numbers
        first, coef = int(coef0 > 0), counts[:, None] * coef  # the constant comes first
        for chosen in indices.T:
            rows, added = np.zeros((len(chosen), len(seen.columns))), np.zeros(len(chosen))
            is_variable = chosen >= first
            rows[is_variable, chosen[is_variable] - first] = np.sqrt(gamma)
            added[~is_variable] = np.sqrt(coef0)
            pairs.append((rows, added))
    factors = tuple(Factor(i, "power", (1.0, 0.0, 1.0)) for i in range(len(pairs)))
    made = tuple(Pairs(kind, *seen, *each) for each in pairs)
    return KernelSum(made, ((root, factors),), coef, balanced=False)


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


def _columns(
    encoder: TableEncoder | None, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[NumberColumn | ValueColumn, ...] | None]:
    """Return the columns that an exported model takes, and what becomes of each that it uses.

    Parts of dates, such as ``when (days)``, are taken in place of dates.
    """
    if encoder is None:
        return tuple(names), None
    taken = [[name] for name in names]
    for column in encoder.columns_:
        taken[column.position] = column.input_names(names[column.position])
    first = [0, *accumulate(map(len, taken))]
    made: list[NumberColumn | ValueColumn] = []
    for column in encoder.columns_:
        inputs: Sequence[Any] = column.inputs
        for place, each in enumerate(inputs, start=first[column.position]):
            if each.kind == "number":
                made.append(NumberColumn(place, each.median, each.tells_missing))
            else:
                values = tuple(str(value) for value in each.values)
                made.append(ValueColumn(place, values, each.is_text, each.tells_missing))
    return tuple(name for some in taken for name in some), tuple(made)


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as an array of numbers, booleans or text."""
    labels = np.array(classes.tolist())
    if labels.dtype.kind not in "biufU" or labels.ndim != 1:
        raise InvalidInputError(
            "A model can be exported if its labels are all text, all numbers or all booleans. Got "
            f"{classes.tolist()}."
        )
    return labels
