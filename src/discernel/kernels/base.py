"""The base class of all kernels.

Kernels hold no data and no labels. Values that depend on the training rows, such as ``"median"``
widths and column names, are fixed by `Kernel.resolve`, which returns a new kernel with numbers
only. Evaluation, gradients, devices and exports all read the normal form, `Kernel.terms`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from functools import wraps
from inspect import signature
from numbers import Real
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np

from discernel.arrays import (
    FloatArray,
    as_host,
    as_rows,
    check_given,
    device_errors,
    device_of,
    is_dense,
    is_sparse,
    n_rows,
)
from discernel.exceptions import InvalidInputError, is_number
from discernel.kernels.columns import Table
from discernel.kernels.expansion import (
    Expansion,
    gradients,
    scale_derivative,
    squared_gradient,
)
from discernel.kernels.pairs import Called
from discernel.kernels.terms import Array, Atom, Term, Terms, View, diagonal_of, matrix_of

if TYPE_CHECKING:
    from discernel.kernels.composites import Named, Restricted

#: Statistics of the training rows that kernels share, such as the median distance. Statistics of a
#: view of the rows are in a dictionary under that view.
Known: TypeAlias = dict[Hashable, Any]

#: Number of rows in each block of the diagonal of a kernel that only has ``__call__``.
_DIAGONAL_ROWS = 64

Method = TypeVar("Method", bound=Callable[..., Any])

#: Types of arguments that are never arrays of another library; a fast test.
_NOT_ON_DEVICE = frozenset({np.ndarray, type(None), dict, str, int})


def any_rows(method: Method) -> Method:
    """Wrap a kernel method written for NumPy so that it takes rows of any array library.

    The result is an array of the library and device of the rows. Kernel matrices are computed on
    that device if possible, everything else by NumPy. One-dimensional rows are refused, and sparse
    rows if the kernel needs dense ones. Two one-dimensional rows give a number, because
    scikit-learn calls kernels this way.
    """
    is_call = method.__name__ == "__call__"

    @wraps(method)
    def dispatched(self: Any, *given: Any, **named: Any) -> Any:
        X = given[0] if given else None
        if not (type(X) is np.ndarray and X.ndim == 2):
            refuse_sparse(self, X)
            if getattr(X, "ndim", 2) == 1 and not self.precomputed:
                pair = (*given, *named.values())
                if is_call and len(pair) == 2 and all(_is_row(self, x) for x in pair):
                    rows = [x.to_numpy() if hasattr(x, "to_numpy") else x for x in pair]
                    return float(dispatched(self, *(x[None, :] for x in rows))[0, 0])
                if not self.takes_any_rows:
                    as_rows(X)  # raises an error
        if not named and _NOT_ON_DEVICE.issuperset(map(type, given)):
            return method(self, *given)
        device = check_given(*given, *named.values())
        if device is None:
            return method(self, *given, **named)
        bound = signature(method).bind(self, *given, **named)
        converted: dict[int, Any] = {}  # X and Z may be the same array
        for name, each in bound.arguments.items():
            if device_of(each) is not None:
                bound.arguments[name] = converted.setdefault(id(each), as_host(each))
        with device_errors(device, smaller="Take fewer rows at a time"):
            if is_call and not device.is_host:
                from discernel.kernels.device import device_matrix  # imports Kernel

                X, Z = (*bound.args[1:], None)[:2]
                found = device_matrix(self, X, Z, device)
                if found is not None:
                    return found
            return device.returned(method(*bound.args, **bound.kwargs))

    return cast(Method, dispatched)


def _is_row(kernel: Any, x: Any) -> bool:
    """Whether a one-dimensional array is a single row, not one cell for each row.

    If a kernel takes rows of any type, only an array of floats is a single row.
    """
    if getattr(x, "ndim", 2) != 1:
        return False
    return not kernel.takes_any_rows or getattr(x.dtype, "kind", "f") == "f"


def refuse_sparse(kernel: Any, X: Any) -> None:
    """Raise an error if X is sparse and the kernel needs dense rows."""
    if is_sparse(X) and not kernel.takes_sparse:
        raise InvalidInputError(
            f"{kernel.name} needs dense rows. Got a sparse matrix; use X.toarray()."
        )


class Kernel:
    """A positive semidefinite function of two rows.

    ``kernel(X)`` is the Gram matrix of the rows of X, ``kernel(X, Z)`` the matrix between the
    rows of X and Z. ``a + b``, ``a * b``, ``2.0 * a``, ``a + 1.0`` and ``a ** 2`` are kernels
    too, and ``a.on(columns)`` is the kernel on some of the columns.

    ``kernel(x, z)`` of two one-dimensional rows is a number, so that a kernel whose parameters are
    numbers can be the ``kernel`` of scikit-learn's ``KernelPCA``, ``KernelRidge`` or
    ``Nystroem``, or the ``affinity`` of ``SpectralClustering``. If a kernel takes rows of any type,
    such as texts, a one-dimensional array that does not hold floats has one cell for each row.

    Rows may be arrays of PyTorch, CuPy or array-api-strict. The matrix is then an array of the same
    library on the same device. Methods written by users always get NumPy arrays.

    A subclass defines either ``_terms``, from which all other methods follow, or its own
    ``__call__``. A kernel with its own ``__call__`` is opaque: it can only be called.
    """

    #: Whether the kernel is positive semidefinite by construction. Matrices of other kernels are
    #: checked before they are used.
    trusted: bool = True

    #: Whether rows may hold objects other than numbers.
    takes_any_rows: bool = False

    #: Whether rows may have missing cells in the columns of the kernel.
    takes_missing: bool = False

    #: Whether rows may be a sparse matrix.
    takes_sparse: bool = True

    #: Whether X is a stack of kernel matrices instead of rows.
    precomputed: bool = False

    #: Whether several threads may compute the kernel at once.
    thread_safe: bool = True

    #: Whether the text of the kernel needs parentheses within a larger expression.
    needs_brackets: ClassVar[bool] = False

    #: Names of the settings by which the kernel matrix can be differentiated, if they are numbers.
    differentiable: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "__call__" in own and "diagonal" not in own:
            # The inherited diagonal is that of the parent's kernel.
            cls.diagonal = Kernel.diagonal  # type: ignore[method-assign]
        for name in ("__call__", "diagonal", "resolve"):
            if isinstance(own.get(name), FunctionType):
                setattr(cls, name, any_rows(own[name]))

    # ---- values ------------------------------------------------------------------------------

    @any_rows
    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the kernel matrix, of shape (n_rows_X, n_rows_Z)."""
        return matrix_of(self._terms(View()), X, Z)

    @any_rows
    def diagonal(self, X: Any) -> FloatArray:
        """Return k(x, x) for every row of X, of shape (n_rows_X,)."""
        if not self.is_opaque:
            return diagonal_of(self._terms(View()), X)
        starts = range(0, n_rows(X), _DIAGONAL_ROWS)
        return np.concatenate([np.diagonal(self(X[i : i + _DIAGONAL_ROWS])) for i in starts])

    @property
    def is_opaque(self) -> bool:
        """Whether the kernel has its own ``__call__`` and no terms."""
        return type(self).__call__ is not Kernel.__call__

    def terms(self, view: View | None = None) -> Terms:
        """Return the kernel as a sum of numbers times products of atoms.

        Parameters
        ----------
        view : View, optional
            The columns of the kernel and their scaling; by default all columns, unchanged.
        """
        view = View() if view is None else view
        return (Term(1.0, (Atom(Called(self), view),)),) if self.is_opaque else self._terms(view)

    def _terms(self, view: View) -> Terms:
        raise NotImplementedError(f"{type(self).__name__} must define __call__ or _terms.")

    # ---- names and settings ------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Short name for tables and plots."""
        return repr(self)

    def _grouped(self) -> str:
        """Return the text of the kernel within a larger expression, in parentheses if needed."""
        return f"({self!r})" if self.needs_brackets else repr(self)

    @property
    def source(self) -> Restricted | None:
        """The part of the kernel that was made by ``.on(columns)``, or None."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of the kernel and of the kernels in it, by name.

        A kernel with a name, a factor or columns has these and the settings of the kernel in it.
        The settings of the two parts of a sum or product start with ``left__`` and ``right__``.
        """
        return {name: vars(self)[name] for name in self._setting_names()}

    def with_settings(self, **values: Any) -> Kernel:
        """Return the kernel with new values of some of its `settings`."""
        unknown = [name for name in values if name not in self.settings]
        if unknown:
            raise InvalidInputError(
                f"The settings of {self!r} are {list(self.settings)}. Got {unknown}."
            )
        return self._with("settings", values)

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        """Return the kernel with new values of its "settings" or "parameters"."""
        return dataclasses.replace(self, **values) if values else self  # type: ignore[type-var]

    def _setting_names(self) -> list[str]:
        fields: Any = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        return [f.name for f in fields if f.init and not f.metadata.get("private")]

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers by which the kernel matrix can be differentiated, by name."""
        own = {name: self.settings[name] for name in self.differentiable}
        return {name: float(value) for name, value in own.items() if is_number(value)}

    def with_parameters(self, **values: float) -> Kernel:
        """Return the kernel with new values of some of its `parameters`."""
        self._check_parameters(values)
        return self._with("parameters", values)

    def _check_parameters(self, names: Any) -> None:
        unknown = [name for name in names if name not in self.parameters]
        if unknown:
            raise InvalidInputError(
                f"The parameters of {self!r} that can be set or differentiated are "
                f"{list(self.parameters)}. Got {unknown}. Resolve 'median' widths first, with "
                "kernel.resolve(X)."
            )

    # ---- derivatives -------------------------------------------------------------------------

    @any_rows
    def derivative(self, parameter: str, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the derivative of the kernel matrix by one of its `parameters`."""
        self._check_parameters([parameter])
        return self._derivative(parameter, X, Z)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        raise NotImplementedError

    @any_rows
    def scale_derivative(self, column: int, X: Any, Z: Any | None = None) -> FloatArray:
        """Return ∂K/∂s_l, the derivative of the kernel matrix by one of the kernel's ``scales``.

        A kernel without scales has scales of 1.

        Parameters
        ----------
        column : int
            The position l of the scale.
        X, Z : array-like of shape (n_rows, n_features)
            Rows. Without Z, the matrix is between the rows of X.
        """
        return scale_derivative(self, column, X, Z)

    @any_rows
    def gradient(self, X: Any, coef: Any, Z: Any | None = None) -> Array:
        """Return the gradients of f_c(x) = Σ_j coef_jc k(x, z_j) at the rows x of X.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. Derivatives are by the columns of X, before any scaling.
        coef : array-like of shape (n_rows_Z,) or (n_rows_Z, n_outputs)
            Coefficients, one column for each output.
        Z : array-like of shape (n_rows_Z, n_features), optional
            The rows z_j; by default those of X.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_outputs)
            ∂f_c/∂x_l, in single precision if all arguments are. Where a kernel is not
            differentiable, its term is 0: at distance 0 (`Exponential`), or where two rows agree
            in a column (`Laplace`).
        """
        blocks = [block for _, block in gradients(self, Expansion.of(X, coef, Z))]
        return np.concatenate(blocks, axis=1).transpose(1, 2, 0)

    @any_rows
    def squared_gradient(
        self, X: Any, coef: Any, Z: Any | None = None, *, row_weights: Any = None
    ) -> FloatArray:
        """Return the mean over the rows x of X of Σ_c (∂f_c/∂x_l)², of shape (n_features,).

        It measures how much f_c(x) = Σ_j coef_jc k(x, z_j) depends on each column. Gradients are
        computed for a block of rows at a time, which limits memory.

        Parameters
        ----------
        X, coef, Z
            As in `gradient`.
        row_weights : array-like of shape (n_rows,), optional
            Weights of the rows of X in the mean; equal by default.
        """
        return squared_gradient(self, Expansion.of(X, coef, Z), row_weights)

    # ---- training rows -----------------------------------------------------------------------

    @any_rows
    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        """Return the kernel with all values that depend on the training rows fixed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows.
        frame : dataframe, optional
            The training rows as the user gave them, for columns chosen by name or selector.
        known : dict, optional
            Statistics of the training rows that other kernels have computed, such as the median
            distance. New ones are added.
        """
        return self._resolve(X, frame, {} if known is None else known)

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        return self

    def _unresolved(self) -> InvalidInputError:
        """Return the error for a kernel that needs `resolve` first."""
        return InvalidInputError(
            f"{self!r} depends on the training set. Call kernel.resolve(X) first."
        )

    def check_rows(self, X: Any) -> None:
        """Raise an error if the kernel cannot use the cells in its columns.

        A kernel of numbers refuses columns of other types. Missing cells are refused unless
        `takes_missing`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows.
        """
        numbers = X
        if isinstance(X, Table):
            if not self.takes_any_rows:
                raise X.no_numbers(self.name)
            numbers = X.numbers
        is_float = is_dense(numbers) and numbers.dtype.kind == "f"
        if is_float and np.isnan(numbers.sum()):  # faster than np.isnan(numbers).any()
            row = np.isnan(numbers).any(axis=1).argmax()
            raise InvalidInputError(
                f"{self.name} takes no missing cells, but row {row} has one in its columns. Impute "
                f"them, or use WhereKnown({self!r}), which ignores this source for rows without it."
            )

    def shifted(self, X: Any) -> Kernel:
        """Return the kernel of rows minus a typical row of X, if its centred matrix is the same.

        ⟨x − o, z − o⟩ and ⟨x, z⟩ have the same centred matrix. If rows are far from the origin,
        the second loses the digits that all rows share. Kernels whose centred matrix would change,
        or whose accuracy would not, are returned unchanged. The name of the kernel stays.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows of this resolved kernel. Sparse rows are not shifted.
        """
        found = self._shifted(X, View())
        is_named = found is self or found.name == self.name
        return found if is_named else found.named(self.name)

    def _shifted(self, X: Any, view: View) -> Kernel:
        return self

    # ---- algebra -----------------------------------------------------------------------------

    def on(self, columns: Any, name: str | None = None) -> Restricted:
        """Return this kernel on some of the columns.

        Parameters
        ----------
        columns : int, str, slice, mask, list of int or str, or callable
            The columns. A callable is called with the dataframe and returns one of the others,
            like scikit-learn's ``make_column_selector``.
        name : str, optional
            Name of the source, for tables and plots.
        """
        if np.ndim(columns):
            columns = tuple(np.ravel(columns).tolist())  # hashable and immutable
        return _composites().Restricted(self, columns, name)  # type: ignore[no-any-return]

    def named(self, name: str) -> Named:
        """Return this kernel under another name."""
        return _composites().Named(self, name)  # type: ignore[no-any-return]

    def __add__(self, other: Kernel | float) -> Kernel:
        return self._joined(other, _composites().Sum, self._plus)

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        return self._joined(other, _composites().Product, self._times)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Kernel:
        if not isinstance(exponent, Real):
            return NotImplemented
        return self._to_power(exponent)

    def _joined(self, other: Any, pair: Any, with_number: Callable[[float], Kernel]) -> Kernel:
        """Return ``pair`` of this kernel and another, or the result of ``with_number``."""
        if isinstance(other, Kernel):
            return pair(self, other)  # type: ignore[no-any-return]
        return with_number(float(other)) if is_number(other) else NotImplemented

    def _plus(self, constant: float) -> Kernel:
        # sum(kernels) starts from 0.
        return _composites().Offset(self, constant) if constant else self

    def _times(self, factor: float) -> Kernel:
        return _composites().Scaled(self, factor)  # type: ignore[no-any-return]

    def _to_power(self, exponent: Any) -> Kernel:
        made = _composites().Power(self, exponent)
        return self if made.exponent == 1 else made


def _composites() -> Any:
    """Import the kernels made of kernels, which are subclasses of `Kernel`."""
    from discernel.kernels import composites

    return composites
