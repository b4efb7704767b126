"""Models as ONNX, which many runtimes and languages can score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from discernel.exceptions import (
    NumericalError,
    missing_extra,
    unknown_choice,
)
from discernel.export._scorer import (
    NumberColumn,
    Scorer,
    ValueColumn,
    as_numbers,
    as_table,
    as_word,
    cells_of,
    is_missing,
)
from discernel.export.converter import convert, set_output_types
from discernel.export.formula import EXPORTED, final_estimator, formula_of, input_names

__all__ = ["register_onnx", "to_onnx"]

#: The versions of operators: old enough for runtimes of some years ago.
_OPSETS = {"": 15, "ai.onnx.ml": 2}
#: What skl2onnx may be asked for: probabilities as dictionaries, and the classes as an output.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False],
}
#: How far probabilities may be off where they are checked.
_FAR = {"float64": 1e-6, "float32": 1e-2}


def _skl2onnx() -> Any:
    try:
        import skl2onnx
    except ImportError as error:
        need = "Exporting to ONNX needs skl2onnx and onnx"
        raise missing_extra(need, "onnx", "write a scorer for NumPy with write_scorer") from error
    return skl2onnx


def register_onnx() -> None:
    """Teach skl2onnx to convert our classifiers, also as the last step of a Pipeline.

    After it, ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` take `KernelDiscriminant` and
    `MultipleKernelDiscriminant`. The graph has the precision of its inputs: with a
    ``FloatTensorType`` probabilities can be off by some 1e-3, with a ``DoubleTensorType`` by no
    more than 1e-6. Give ``options={"zipmap": False}`` for the latter: dictionaries of
    probabilities, which skl2onnx makes by default, are of single precision only. `to_onnx` does
    all of this.
    """
    skl2onnx = _skl2onnx()
    for cls in EXPORTED:
        skl2onnx.update_registered_converter(
            cls,
            f"Discernel{cls.__name__}",
            set_output_types,
            convert,
            options=_OPTIONS,
        )


def to_onnx(
    clf: Any,
    X: Any = None,
    *,
    dtype: Literal["float64", "float32"] = "float64",
    target_opset: Any = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Return a fitted model as an ONNX graph.

    Parameters
    ----------
    clf : KernelDiscriminant, MultipleKernelDiscriminant or Pipeline
        Fitted. A pipeline may have what skl2onnx converts, such as `StandardScaler`, in front of
        one of these. Kernels are RBF, Laplace, Exponential, Linear, Polynomial and Cosine, and
        what is made of them; others are refused.
    X : array-like or dataframe of shape (n_rows, n_features), optional
        Rows to check the graph on: onnxruntime must then predict what the model predicts.
    dtype : {"float64", "float32"}, default="float64"
        The precision of inputs, outputs and all between. Probabilities are those of the model up
        to 1e-6 with ``"float64"``. ``"float32"`` halves the file; probabilities are then off by
        some 1e-4, and by up to 1e-2 where a model is nearly an interpolation.
    target_opset : int or dict, optional
        The version of ONNX operators; by default 15, which runtimes of 2021 and later have.
    names : sequence of str, optional
        What the columns are called; by default as in training, and ``x0``, ``x1`` and so on where
        that was an array.

    Returns
    -------
    onnx.ModelProto
        Its outputs are ``label``, of shape (n_rows,), and ``probabilities``, of shape (n_rows,
        n_classes). Rows are one input ``X`` of shape (n_rows, n_features). A table with
        categories has one input per column that the model uses, of shape (n_rows, 1): numbers
        with NaN for missing cells, or text with ``""`` for missing cells. It has the name of the
        column, with ``_`` for what is neither letter nor digit. The metadata say, as JSON, which
        column is which (``columns``: a list, or of tables a dictionary of inputs), and in which
        order the probabilities are (``classes``).

    Notes
    -----
    New rows are compared with all stored rows at once, in n_rows × n_stored numbers: score some
    thousands of rows at a time.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = to_onnx(KernelDiscriminant().fit(X, y))  # doctest: +SKIP
    >>> Path("iris.onnx").write_bytes(model.SerializeToString())  # doctest: +SKIP
    """
    if dtype not in _FAR:
        raise unknown_choice("dtype", dtype, list(_FAR))
    found, before = final_estimator(clf)
    # Says what is wrong with it, before any work. Tables come to the classifier itself.
    formula = formula_of(found, None if before else names)
    columns = input_names([*before, found][0], names)
    skl2onnx = _skl2onnx()
    register_onnx()
    model = skl2onnx.convert_sklearn(
        clf,
        "discernel",
        _input_types(formula, len(columns), dtype),
        target_opset=_OPSETS if target_opset is None else target_opset,
        options={id(found): {"zipmap": False}},
    )
    _describe(model, formula, columns)
    if X is not None:
        _check(model, clf, formula, X, dtype)
    return model


def _describe(model: Any, formula: Scorer, columns: Sequence[str]) -> None:
    """Say in a graph which column is which, and which class."""
    told = {"classes": formula.classes.tolist(), "columns": list(columns)}
    if _has_values(formula):
        names = [formula.names[column.position] for column in formula.columns or ()]
        inputs = [each.name for each in model.graph.input]
        told["columns"] = dict(zip(inputs, names, strict=True))
    for key, value in told.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, json.dumps(value)


def _has_values(formula: Scorer) -> bool:
    return any(isinstance(column, ValueColumn) for column in formula.columns or ())


def _input_types(formula: Scorer, n_columns: int, dtype: str) -> list[tuple[str, Any]]:
    """Return the inputs of a graph: one array, or one per column of a table with categories."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    number = DoubleTensorType if dtype == "float64" else FloatTensorType
    if not _has_values(formula):
        return [("X", number([None, n_columns]))]
    return [
        (
            formula.names[column.position],
            (number if isinstance(column, NumberColumn) else StringTensorType)([None, 1]),
        )
        for column in formula.columns or ()
    ]


def feeds(model: Any, formula: Scorer, X: Any) -> dict[str, Any]:
    """Return rows as the inputs of the graph of a model.

    Parameters
    ----------
    model : onnx.ModelProto
        The graph.
    formula : Scorer
        The model that it is of.
    X : array-like or dataframe of shape (n_rows, n_features)
        Rows.
    """
    from onnx import TensorProto

    names = [each.name for each in model.graph.input]
    single = any(each.type.tensor_type.elem_type == TensorProto.FLOAT for each in model.graph.input)
    dtype = np.float32 if single else np.float64
    if not _has_values(formula):
        return {names[0]: np.asarray(X, dtype=dtype)}
    given: dict[str, Any] = {}
    X = as_table(X, len(formula.names))
    for name, column in zip(names, formula.columns or (), strict=True):
        cells = cells_of(X, formula.names[column.position], column.position)
        if isinstance(column, NumberColumn):
            given[name] = as_numbers(name, cells).astype(dtype)[:, None]
        else:
            words = ["" if is_missing(cell) else as_word(cell) for cell in cells.tolist()]
            given[name] = np.array(words, dtype=object)[:, None]
    return given


def _check(model: Any, clf: Any, formula: Scorer, X: Any, dtype: str) -> None:
    """Raise where a graph does not predict what the model does."""
    try:
        import onnxruntime
    except ImportError as error:
        need = "Checking a graph on rows needs onnxruntime"
        raise missing_extra(need, "onnx", "leave X out") from error
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    _, probabilities = session.run(None, feeds(model, formula, X))
    expected = clf.predict_proba(X)
    far = float(np.abs(probabilities - expected).max())
    if not far <= _FAR[dtype]:
        raise NumericalError(
            f"The probabilities of the graph must be those of the model up to {_FAR[dtype]:g}. "
            f"They are off by {far:.2g}. Export with dtype='float64', or fit with more "
            "regularization."
        )
