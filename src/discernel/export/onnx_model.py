"""Export of models to ONNX."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.pipeline import make_pipeline

from discernel.exceptions import (
    InvalidInputError,
    NumericalError,
    needs_extra,
    unknown_choice,
)
from discernel.export._scorer import (
    MISSING_VALUES,
    Computation,
    Floats,
    Scorer,
    Step,
    as_numbers,
    as_table,
    as_word,
    cells_of,
    is_missing,
)
from discernel.export.formula import (
    EXPORTED,
    encoder_scorer,
    final_estimator,
    input_names,
    numpy_scorer,
    without_dates,
)
from discernel.inspection.explained import first_encoder, input_encoder
from discernel.rows.encoder import TableEncoder

#: Versions of the standard operators and of the machine-learning operators in graphs.
_VERSION, _ML_VERSION = 13, 2
#: Default opsets, supported by runtimes since 2021.
_OPSETS = {"": 15, "ai.onnx.ml": 2}
#: Options of skl2onnx for classifiers: probabilities as dictionaries, and the classes as an output.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False],
}
#: The axis of columns, as an ONNX constant.
_COLUMNS = np.array([1])
#: Largest error when a graph is checked: of probabilities, or of numbers relative to their range.
_TOLERANCES = {"float64": 1e-6, "float32": 1e-2}


def _skl2onnx() -> Any:
    need = "Exporting to ONNX needs skl2onnx and onnx"
    with needs_extra(need, "onnx", "write a scorer for NumPy with write_scorer"):
        import skl2onnx
    return skl2onnx


def register_onnx() -> None:
    """Register our estimators with skl2onnx, also as the last step of a Pipeline.

    After it, ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` take `KernelDiscriminant`,
    `MultipleKernelDiscriminant`, `MultipleKernelRidge` and `TableEncoder`. The graph has the
    precision of its inputs: with a ``FloatTensorType`` probabilities can be off by some 1e-3, with
    a ``DoubleTensorType`` by no more than 1e-6. Give ``options={"zipmap": False}`` to classifiers
    for the latter: dictionaries of probabilities, which skl2onnx makes by default, are of single
    precision only. `to_onnx` does all of this.
    """
    skl2onnx = _skl2onnx()
    for cls in EXPORTED:
        skl2onnx.update_registered_converter(
            cls,
            f"Discernel{cls.__name__}",
            _set_output_types,
            _convert,
            options=_OPTIONS if issubclass(cls, ClassifierMixin) else None,
        )
    skl2onnx.update_registered_converter(
        TableEncoder, "DiscernelTableEncoder", _set_encoded_type, _convert_encoder
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
    clf : KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge or Pipeline
        Fitted. A pipeline may contain a `TableEncoder` and steps that skl2onnx converts, such as
        `StandardScaler`, before the estimator. Kernels must be RBF, Laplace, Exponential, Linear,
        Polynomial or Cosine, or sums, products and powers of these.
    X : array-like or dataframe of shape (n_rows, n_features), optional
        Rows on which to check that onnxruntime predicts the same probabilities or numbers as the
        model.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the graph. With ``"float64"`` probabilities, and numbers relative to their
        range, agree with the model to 1e-6.
        ``"float32"`` halves the file; errors of probabilities are then about 1e-4, and up to 1e-2
        for models that nearly interpolate the training rows.
    target_opset : int or dict, optional
        The version of ONNX operators; by default 15, which runtimes of 2021 and later have.
    names : sequence of str, optional
        Names of the columns; by default those of training, or ``x0``, ``x1`` and so on for an
        array.

    Returns
    -------
    onnx.ModelProto
        Its outputs are ``label``, of shape (n_rows,), and ``probabilities``, of shape (n_rows,
        n_classes). A `MultipleKernelRidge` has one output ``variable``, the name that skl2onnx
        gives to predicted numbers, of shape (n_rows, n_targets). Rows are one input ``X`` of shape
        (n_rows, n_features). A table with categories, or with columns that the model does not use,
        has one input per column that it uses, of shape (n_rows, 1): numbers with NaN for missing
        cells, or text with ``""`` for missing cells. It has the name of the column, with ``_`` for
        what is neither letter nor digit. The metadata say, as JSON, which column is which
        (``columns``: a list, or of tables a dictionary of inputs), and in which order the
        probabilities are (``classes``; absent for numbers).

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
    if dtype not in _TOLERANCES:
        raise unknown_choice("dtype", dtype, list(_TOLERANCES))
    given, (clf, names) = clf, without_dates(clf, names)
    found, before = final_estimator(clf)
    # Raises an error for unsupported models first.
    formula, encoder = numpy_scorer(found, names=None if before else names), first_encoder(clf)
    if encoder is not None:
        taken = encoder_scorer(encoder, names)
        formula = replace(formula, names=taken.names, columns=taken.columns)
    one = bool(before) and encoder is None
    columns = input_names(before[0], names) if one else formula.names
    skl2onnx = _skl2onnx()
    register_onnx()
    model = skl2onnx.convert_sklearn(
        make_pipeline(*before, found) if before else found,  # skl2onnx has no "passthrough"
        "discernel",
        _input_types(formula, len(columns), dtype, one=one),
        target_opset=_OPSETS if target_opset is None else target_opset,
        options={id(found): {"zipmap": False}} if formula.classes is not None else None,
    )
    _describe(model, formula, columns)
    if X is not None:
        _check(model, clf, formula, X if clf is given else given[0].transform(X), dtype)
    return model


def _describe(model: Any, formula: Scorer, columns: Sequence[str]) -> None:
    """Add the names of columns and classes to the metadata of a graph."""
    metadata: dict[str, Any] = {"columns": list(columns)}
    if formula.classes is not None:
        metadata["classes"] = formula.classes.tolist()
    if not _takes_array(model, formula):
        inputs = [each.name for each in model.graph.input]
        metadata["columns"] = dict(zip(inputs, formula.used_names, strict=True))
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, json.dumps(value)


def _has_values(formula: Scorer) -> bool:
    return any(column.values is not None for column in formula.columns)


def _uses_all(formula: Scorer) -> bool:
    return [column.position for column in formula.columns] == list(range(len(formula.names)))


def _input_types(
    formula: Scorer, n_columns: int, dtype: str, *, one: bool
) -> list[tuple[str, Any]]:
    """Return the inputs of a graph: an array of numbers, or each column that the model uses.

    Columns that it does not use may hold text. With ``one``, for a pipeline, the input is one array
    whatever is used.
    """
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    number = DoubleTensorType if dtype == "float64" else FloatTensorType
    if one or (_uses_all(formula) and not _has_values(formula)):
        return [("X", number([None, n_columns]))]
    kinds = [number if each.values is None else StringTensorType for each in formula.columns]
    return [(name, kind([None, 1])) for name, kind in zip(formula.used_names, kinds, strict=True)]


def _takes_array(model: Any, formula: Scorer) -> bool:
    """Return whether a graph takes rows as one array, with columns that the model does not use."""
    first, *others = model.graph.input
    n_columns = first.type.tensor_type.shape.dim[1].dim_value
    is_one = not others and not _has_values(formula)
    return is_one and (n_columns > 1 or len(formula.names) == 1)


def feeds(model: Any, formula: Scorer, X: Any) -> dict[str, Any]:
    """Return rows as inputs of the ONNX graph of a scorer."""
    from onnx import TensorProto

    names = [each.name for each in model.graph.input]
    single = any(each.type.tensor_type.elem_type == TensorProto.FLOAT for each in model.graph.input)
    dtype = np.float32 if single else np.float64
    if _takes_array(model, formula):
        if hasattr(X, "columns") or isinstance(X, Mapping):
            table = as_table(X, len(formula.names))
            X = np.column_stack([as_numbers(each, cells_of(table, each, 0)) for each in table])
        return {names[0]: np.asarray(X, dtype=dtype)}
    given: dict[str, Any] = {}
    X = as_table(X, len(formula.names))
    for name, column in zip(names, formula.columns, strict=True):
        cells = cells_of(X, formula.names[column.position], column.position)
        if column.values is None:
            given[name] = as_numbers(name, cells).astype(dtype)[:, None]
        else:
            words = ["" if is_missing(cell) else as_word(cell) for cell in cells.tolist()]
            given[name] = np.array(words, dtype=object)[:, None]
    return given


def _check(model: Any, clf: Any, formula: Scorer, X: Any, dtype: str) -> None:
    """Raise an error if a graph and its model predict different probabilities or numbers."""
    with needs_extra("Checking a graph on rows needs onnxruntime", "onnx", "leave X out"):
        import onnxruntime
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rows, encoder = X, input_encoder(clf)
    if encoder is not None and encoder.dates:
        rows = encoder.split_dates(X)
    *_, predicted = session.run(None, feeds(model, formula, rows))
    if formula.classes is not None:
        what, limit, far = "probabilities", "", np.abs(predicted - clf.predict_proba(X))
    else:
        expected = clf.predict(X).reshape(predicted.shape)
        unit = np.ptp(expected, axis=0)
        unit = np.where(unit > 0, unit, np.abs(expected).max(axis=0) + (expected == 0).all(axis=0))
        what, limit, far = "numbers", " of their range", np.abs(predicted - expected) / unit
    if not far.max() <= _TOLERANCES[dtype]:
        raise NumericalError(
            f"The {what} of the graph must agree with those of the model to "
            f"{_TOLERANCES[dtype]:g}{limit}. The error is {far.max():.2g}. Export with "
            "dtype='float64', or fit with more regularization."
        )


# ---- the graph ---------------------------------------------------------------------------------


def _set_output_types(operator: Any) -> None:
    """Set the types of outputs: labels, and probabilities or numbers, as precise as the inputs."""
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )

    model = operator.raw_operator.model_
    n_rows = operator.inputs[0].get_first_dimension()
    number = DoubleTensorType if _is_double(operator.inputs) else FloatTensorType
    if model.classes is None:
        operator.outputs[0].type = number([n_rows, len(model.intercept)])
        return
    classes = _check_labels(model.classes)
    label = StringTensorType if classes.dtype.kind == "U" else Int64TensorType
    operator.outputs[0].type = label([n_rows])
    operator.outputs[1].type = number([n_rows, len(classes)])


def _check_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as text or integers, the types of ONNX, or raise an error."""
    labels = np.array(classes.tolist())
    if labels.dtype.kind in "biuf" and (labels == labels.astype(np.int64)).all():
        return labels.astype(np.int64)
    if labels.dtype.kind != "U":
        raise InvalidInputError(
            f"Labels must be text or integers for ONNX. Got {classes.tolist()}. Fit again with "
            "labels of text."
        )
    return labels


def _set_encoded_type(operator: Any) -> None:
    """Set the type of the encoded columns of a table: numbers, as precise as the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    n_rows = operator.inputs[0].get_first_dimension()
    number = DoubleTensorType if _is_double(operator.inputs) else FloatTensorType
    operator.outputs[0].type = number([n_rows, len(operator.raw_operator.source)])


def _is_double(inputs: Sequence[Any]) -> bool:
    """Whether to use double precision: as the numeric inputs, or if all inputs are text."""
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    kinds = {type(variable.type) for variable in inputs} - {StringTensorType}
    return not kinds or DoubleTensorType in kinds


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a model; the interface of a skl2onnx converter."""
    formula = numpy_scorer(operator.raw_operator)
    graph, scores = _computed(scope, operator, container, formula)
    if formula.classes is None:
        graph.node("Identity", scores, out=operator.outputs[0].full_name)
        return
    moved = graph.node("Add", scores, formula.offsets[None, :])
    best, labels = graph.node("ArgMax", moved, axis=1, keepdims=0), _check_labels(formula.classes)
    graph.node("Gather", labels, best, axis=0, out=operator.outputs[0].full_name)
    graph.node("Softmax", scores, axis=1, out=operator.outputs[1].full_name)


def _convert_encoder(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a table encoder; the interface of a skl2onnx converter."""
    graph, encoded = _computed(scope, operator, container, encoder_scorer(operator.raw_operator))
    graph.node("Identity", encoded, out=operator.outputs[0].full_name)


def _computed(scope: Any, operator: Any, container: Any, formula: Scorer) -> tuple[_Graph, str]:
    """Add the scores of rows, and return the graph and their name."""
    graph = _Graph(scope, container, np.float64 if _is_double(operator.inputs) else np.float32)
    return graph, _compute(graph, formula.scores, _rows(graph, operator.inputs, formula))


class _Graph:
    """Nodes and constants of a graph in one precision, with generated names."""

    def __init__(self, scope: Any, container: Any, dtype: type[np.floating[Any]]) -> None:
        from onnx import TensorProto

        self._scope, self._container, self.dtype = scope, container, dtype
        self._known: dict[tuple[Any, ...], str] = {}
        #: The ONNX data type of the precision.
        self.kind = int(TensorProto.DOUBLE if dtype is np.float64 else TensorProto.FLOAT)

    def constant(self, value: Any) -> str:
        """Return the name of a constant; floats get the precision of the graph."""
        array = np.asarray(value)
        array = array.astype({"f": self.dtype, "i": np.int64}.get(array.dtype.kind, array.dtype))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self._name()
            self._add_constant(self._known[key], array)
        return self._known[key]

    def node(self, kind: str, *inputs: Any, out: str | None = None, **options: Any) -> str:
        """Add a node with inputs (names or constants) and return the name of its output."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        out = out or self._name()
        self._add_node(kind, names, out, **options)
        return out

    def _name(self) -> str:
        return str(self._scope.get_unique_variable_name("discernel"))

    def _add_constant(self, name: str, array: NDArray[Any]) -> None:
        from onnx import TensorProto, numpy_helper

        if array.dtype.kind == "U":
            words = [word.encode() for word in array.tolist()]
            self._container.add_initializer(name, TensorProto.STRING, array.shape, words)
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(array))
            self._container.add_initializer(name, tensor.data_type, array.shape, tensor)

    def _add_node(self, kind: str, names: list[str], out: str, **options: Any) -> None:
        is_ml = kind == "LabelEncoder"
        self._container.add_node(
            kind,
            names,
            [out],
            op_domain="ai.onnx.ml" if is_ml else "",
            op_version=_ML_VERSION if is_ml else _VERSION,
            name=self._scope.get_unique_operator_name(f"discernel_{kind}"),
            **options,
        )


class _Body(_Graph):
    """Nodes and constants of a graph inside a node of another graph."""

    def __init__(self, outer: _Graph) -> None:
        super().__init__(outer._scope, None, outer.dtype)
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def _add_constant(self, name: str, array: NDArray[Any]) -> None:
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(array), name))

    def _add_node(self, kind: str, names: list[str], out: str, **options: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, names, [out], **options))


# ---- rows --------------------------------------------------------------------------------------


def _rows(graph: _Graph, inputs: Sequence[Any], formula: Scorer) -> str:
    """Return the columns that a model uses, as numbers side by side."""
    used = [column.position for column in formula.columns]
    uses_all, n_given = _uses_all(formula), sum(each.type.shape[1] or 1 for each in inputs)
    if _has_values(formula) or (len(inputs) > 1 and not uses_all):
        return _joined(graph, _one_by_one(graph, inputs, formula))
    X = _joined(graph, [each.full_name for each in inputs])
    is_all = uses_all or n_given == len(used)
    return X if is_all else graph.node("Gather", X, np.array(used), axis=1)


def _joined(graph: _Graph, columns: Sequence[str]) -> str:
    """Return columns as numbers in one matrix."""
    parts = [graph.node("Cast", each, to=graph.kind) for each in columns]
    return graph.node("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _one_by_one(graph: _Graph, inputs: Sequence[Any], formula: Scorer) -> list[str]:
    """Return the used columns in order: numbers, and codes of categories."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import BooleanTensorType, StringTensorType

    if len(inputs) == len(formula.names):
        inputs = [inputs[column.position] for column in formula.columns]
    elif len(inputs) != len(formula.columns):
        raise _wrong_inputs(formula, len(inputs))
    names = []
    for column, variable in zip(formula.columns, inputs, strict=True):
        is_text, name = isinstance(variable.type, StringTensorType), variable.full_name
        if column.values is None:
            names.append(name)
            continue
        if isinstance(variable.type, BooleanTensorType):
            name = graph.node("Where", name, np.array(["True"]), np.array(["False"]))
        elif not is_text:  # categories that are numbers, such as 1, 2 and 3
            _refuse_fractions(column, formula)
            whole = graph.node("Cast", name, to=TensorProto.INT64)
            name = graph.node("Cast", whole, to=TensorProto.STRING)
        codes = {value: code for code, value in enumerate(column.values)}
        codes |= dict.fromkeys(MISSING_VALUES, column.missing)
        found = graph.node(
            "LabelEncoder",
            name,
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=len(column.values),
        )
        names.append(found)
    return names


def _refuse_fractions(column: Any, formula: Scorer) -> None:
    strange = [value for value in column.values if not value.lstrip("-").isdigit()]
    if strange:
        raise InvalidInputError(
            f"The input of the column {formula.names[column.position]!r} must be text, as its "
            f"values are not all integers. Got an input of numbers, and the value {strange[0]!r}. "
            "discernel.export.to_onnx makes the inputs."
        )


def _wrong_inputs(formula: Scorer, n_inputs: int) -> InvalidInputError:
    return InvalidInputError(
        "A model of a table needs one input per column that it uses, each of shape [None, 1], of "
        f"numbers or text, in this order: {formula.used_names}. Got {n_inputs}. "
        "discernel.export.to_onnx makes them."
    )


# ---- steps -------------------------------------------------------------------------------------

#: ONNX operators of the functions of a scorer.
_OPERATORS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "power": "Pow",
    "maximum": "Max",
    "minimum": "Min",
    "matmul": "MatMul",
    "negative": "Neg",
    "absolute": "Abs",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "cos": "Cos",
    "tanh": "Tanh",
    "isnan": "IsNaN",
    "greater": "Greater",
    "equal": "Equal",
    "where": "Where",
    "take": "Gather",
    "concat": "Concat",
}


def _compute(graph: _Graph, computation: Computation, *given: str) -> str:
    """Add the nodes of a computation, and return the name of the last value."""
    values: list[Any] = list(given)
    for step in computation.steps:
        inputs = [values[place] for place in step.inputs]
        values.append(step.constant if step.name == "constant" else _add_step(graph, step, inputs))
    return str(values[-1])


def _add_step(graph: _Graph, step: Step, inputs: Sequence[Any]) -> str:
    if step.name == "sum":
        return graph.node("ReduceSum", *inputs, _COLUMNS, keepdims=1)
    if step.name == "all":
        some = graph.node("Not", *inputs)
        count = graph.node("ReduceSum", graph.node("Cast", some, to=graph.kind), _COLUMNS)
        return graph.node("Less", count, 0.5)
    if step.body is not None:
        return _column_sums(graph, step.body, *inputs)
    if step.name in ("multiply", "divide"):
        # onnxruntime fuses a scalar factor with the matrix product, in single precision: use a
        # row vector instead.
        inputs = [np.full((1, step.width), x) if isinstance(x, float) else x for x in inputs]
    options: dict[str, Any] = {"axis": 1} if step.name in ("take", "concat") else {}
    return graph.node(_OPERATORS[step.name], *inputs, **options)


def _column_sums(graph: _Graph, computation: Computation, new: str, stored: Floats) -> str:
    """Return sums over columns of a function of new and stored rows.

    A scan over columns needs memory for one column only.
    """
    n_rows = graph.node("Slice", graph.node("Shape", new), np.array([0]), np.array([1]))
    shape = graph.node("Concat", n_rows, np.array([len(stored)]), axis=0)
    return graph.node(
        "Scan",
        graph.node("Expand", 0.0, shape),
        graph.node("Transpose", new, perm=[1, 0]),
        stored.T,
        body=_column_body(graph, computation),
        num_scan_inputs=2,
    )


def _column_body(graph: _Graph, computation: Computation) -> Any:
    """Return the graph that adds a function of one column to a sum."""
    from onnx import helper

    def value(name: str, shape: list[str]) -> Any:
        return helper.make_tensor_value_info(name, graph.kind, shape)

    body = _Body(graph)
    change = _compute(body, computation, body.node("Unsqueeze", "new", _COLUMNS), "stored")
    body.node("Add", "before", change, out="after")
    given = [value("before", ["n", "m"]), value("new", ["n"]), value("stored", ["m"])]
    return helper.make_graph(
        body.nodes, "one_column", given, [value("after", ["n", "m"])], body.tensors
    )
