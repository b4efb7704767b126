"""Recording of a computation as steps of a scorer, by running it on symbolic rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.export._scorer import FUNCTIONS, Computation, Step


class Recorded(NDArrayOperatorsMixin):
    """A symbolic matrix with one row per new row; a recorder records operations on it.

    Attributes
    ----------
    recorder : Recorder
        The recorder.
    place : int
        Position among the values of the computation.
    width : int
        Number of columns.
    """

    def __init__(self, recorder: Recorder, place: int, width: int) -> None:
        self.recorder, self.place, self.width = recorder, place, width

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Recorded:
        """Record an operator or a NumPy ufunc."""
        if method != "__call__" or options:
            raise _unknown(f"{ufunc.__name__}.{method}")
        return self.recorder.add_step(ufunc.__name__, *inputs)

    def __getitem__(self, key: tuple[slice, Any]) -> Recorded:
        """Return some columns of all rows."""
        columns = np.asarray(key[1])
        if np.array_equal(columns, np.arange(self.width)):
            return self
        return self.recorder.add_step("take", self, columns, width=len(columns))


class Recorder:
    """An array namespace with functions like NumPy's, which records each call as a `Step`.

    Parameters
    ----------
    *widths : int
        Numbers of columns of the arguments.

    Attributes
    ----------
    given : tuple of Recorded
        The arguments, as symbolic matrices.
    steps : list of Step
        Recorded steps.
    """

    def __init__(self, *widths: int) -> None:
        self.given = tuple(Recorded(self, place, width) for place, width in enumerate(widths))
        self.steps: list[Step] = []

    def computation(self, result: Recorded) -> Computation:
        """Return the recorded steps up to a result."""
        n_given = len(self.given)
        return Computation(n_given, tuple(self.steps[: result.place + 1 - n_given]))

    def add_step(
        self, name: str, *inputs: Any, width: int | None = None, body: Computation | None = None
    ) -> Recorded:
        """Record a step and return its value; inputs that are not symbolic are constants."""
        if name not in FUNCTIONS and body is None:
            raise _unknown(name)
        values = [each if isinstance(each, Recorded) else self._constant(each) for each in inputs]
        if width is None:
            width = max(each.width for each in values)
        return self._add(Step(name, tuple(each.place for each in values), width, body=body))

    def _constant(self, value: Any) -> Recorded:
        array = np.asarray(value)
        if array.ndim == 0:
            return self._add(Step("constant", constant=float(array)))
        return self._add(Step("constant", width=array.shape[-1], constant=array))

    def _add(self, step: Step) -> Recorded:
        self.steps.append(step)
        return Recorded(self, len(self.given) + len(self.steps) - 1, step.width)

    # ---- functions ---------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """Return a NumPy ufunc."""
        function = getattr(np, name, None)
        if not isinstance(function, np.ufunc):  # others would treat symbolic values as objects
            raise _unknown(name)
        return function

    def clip(self, X: Recorded, min: float) -> Recorded:
        """Return the maximum of each entry and a number."""
        return self.add_step("maximum", X, min)

    def where(self, condition: Any, X: Any, other: Any) -> Recorded:
        """Return the entries of X where a condition holds, and of ``other`` elsewhere."""
        return self.add_step("where", condition, X, other)

    def matmul(self, X: Recorded, matrix: FloatArray) -> Recorded:
        """Return the product with a matrix of constants."""
        return self.add_step("matmul", X, matrix, width=matrix.shape[1])

    def concat(self, parts: Sequence[Recorded]) -> Recorded:
        """Return the concatenated columns of several matrices."""
        return self.add_step("concat", *parts, width=sum(part.width for part in parts))

    def sum(self, X: Recorded, *, axis: int, keepdims: bool) -> Recorded:
        """Return the sum of every row, ``axis=1, keepdims=True``."""
        assert axis == 1
        assert keepdims
        return self.add_step("sum", X, width=1)

    def all(self, X: Recorded, *, axis: int, keepdims: bool) -> Recorded:
        """Return whether all entries of a row are true, ``axis=1, keepdims=True``."""
        assert axis == 1
        assert keepdims
        return self.add_step("all", X, width=1)

    def column_sums(
        self, function: Callable[[Any, Any], Any], X: Recorded, Z: FloatArray
    ) -> Recorded:
        """Return the sum over columns of a function of the columns of X and Z."""
        recorder = Recorder(1, len(Z))
        body = recorder.computation(function(*recorder.given))
        return self.add_step("column_sums", X, Z, width=len(Z), body=body)


def _unknown(name: str) -> InvalidInputError:
    return InvalidInputError(
        "The functions of an exported kernel can use numbers and "
        f"{', '.join(FUNCTIONS)}. Got {name!r}."
    )
