"""What a kernel is: a small value object that turns rows into a matrix.

Kernels hold no data and know no labels. Choices that depend on data (``"median"`` widths, column
names) are fixed by `Kernel.resolve`, which returns a new kernel made of numbers only. What a kernel
computes is said by its `Kernel.terms`, and everything that computes with kernels reads these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from numbers import Real
from operator import attrgetter, methodcaller
from types import FunctionType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from discernel.arrays import FloatArray, as_rows, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.calls import any_rows, is_whole
from discernel.kernels.columns import (
    Table,
    column_indices,
    column_spreads,
    describe_columns,
)
from discernel.kernels.expansion import (
    Expansion,
    gradients,
    scale_derivative,
    squared_gradient,
)
from discernel.kernels.pairs import Called
from discernel.kernels.terms import (
    Array,
    Atom,
    Term,
    Terms,
    View,
    diagonal_of,
    matrix_of,
    multiply,
    raise_to,
)

#: What is known about the training rows; that of what a view shows of them stands under the view.
Known: TypeAlias = dict[Hashable, Any]

#: What stands between the field of a part of a kernel and the name of a number in it.
_BETWEEN = {"settings": "__", "parameters": "."}

#: Rows of which the diagonal is computed at a time where only whole matrices are known.
_DIAGONAL_ROWS = 64


class Kernel:
    """A positive semidefinite function of two rows.

    ``kernel(X)`` is the Gram matrix of the rows of X, ``kernel(X, Z)`` the matrix between the
    rows of X and Z. ``a + b``, ``a * b``, ``2.0 * a``, ``a + 1.0`` and ``a ** 2`` are kernels
    again, and ``a.on(columns)`` is the kernel on some columns only.

    ``kernel(x, z)`` of two rows of one dimension is a number, so that a kernel whose parameters are
    numbers can be the ``kernel`` of scikit-learn's ``KernelPCA``, ``KernelRidge`` or
    ``Nystroem``, or the ``affinity`` of ``SpectralClustering``. To a kernel that takes any rows,
    such as texts, an array of one dimension that does not hold floats is one cell per row.

    Rows may be arrays of PyTorch, CuPy or array-api-strict: a matrix is then one of that library,
    on their device. Methods that a user writes are given NumPy's.

    A subclass says what it computes in one of two ways: by its `terms`, which all else follows
    from, or by a ``__call__`` of its own, of which nothing more is known.
    """

    #: Whether the kernel is positive semidefinite by construction. Matrices of other kernels are
    #: checked before they are used.
    trusted: bool = True

    #: Whether the kernel takes rows that are not numbers.
    takes_any_rows: bool = False

    #: Whether rows may have missing cells in the columns that it sees.
    takes_missing: bool = False

    #: Whether rows may be a sparse matrix.
    takes_sparse: bool = True

    #: Whether what it is given for rows is a stack of matrices.
    precomputed: bool = False

    #: Whether several threads may compute it at once.
    thread_safe: bool = True

    #: Whether the text of the kernel needs brackets within a larger one.
    needs_brackets: ClassVar[bool] = False

    #: The settings that the kernel matrix can be differentiated by, where they are numbers.
    differentiable: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "__call__" in own and "diagonal" not in own:
            # That of the class above is of another kernel.
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
        """Whether nothing is known of the kernel but its ``__call__``."""
        return type(self).__call__ is not Kernel.__call__

    def terms(self, view: View | None = None) -> Terms:
        """Return the kernel as a sum of numbers times products of atoms.

        Parameters
        ----------
        view : View, optional
            What the kernel is given of rows; by default all of them.
        """
        view = View() if view is None else view
        return (Term(1.0, (Atom(Called(self), view),)),) if self.is_opaque else self._terms(view)

    def _terms(self, view: View) -> Terms:
        raise NotImplementedError(f"{type(self).__name__} must have a __call__, or its terms.")

    # ---- names and settings ------------------------------------------------------------------

    @property
    def name(self) -> str:
        """A short name for tables and plots."""
        return repr(self)

    def _grouped(self) -> str:
        """Return the text of the kernel as part of a larger one, in brackets if need be."""
        return f"({self!r})" if self.needs_brackets else repr(self)

    @property
    def source(self) -> Restricted | None:
        """The kernel in it that was put on columns by ``.on``; None where there is none."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """All that the kernel was made with, by name, that of the kernels in it included.

        A kernel with a name, a factor or columns has the settings of the kernel in it and those
        of its own; the parts of sums and products stand under ``left__`` and ``right__``.
        """
        return {name: vars(self)[name] for name in self._setting_names()}

    def with_settings(self, **values: Any) -> Kernel:
        """Return the kernel with other values of some of its `settings`."""
        unknown = [name for name in values if name not in self.settings]
        if unknown:
            raise InvalidInputError(
                f"The settings of {self!r} are {list(self.settings)}. Got {unknown}."
            )
        return self._with("settings", values)

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        """Return the kernel with other values of its "settings" or "parameters", all known."""
        return dataclasses.replace(self, **values) if values else self  # type: ignore[type-var]

    def _setting_names(self) -> list[str]:
        fields: Any = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        return [f.name for f in fields if f.init and not f.metadata.get("private")]

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers the kernel matrix can be differentiated by."""
        own = {name: self.settings[name] for name in self.differentiable}
        return {name: float(value) for name, value in own.items() if isinstance(value, Real)}

    def with_parameters(self, **values: float) -> Kernel:
        """Return the kernel with other values of some of its `parameters`."""
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
            The rows of the matrix; without Z, those of X on both sides.
        """
        return scale_derivative(self, column, X, Z)

    @any_rows
    def gradient(self, X: Any, coef: Any, Z: Any | None = None) -> Array:
        """Return the gradients of f_c(x) = Σ_j coef_jc k(x, z_j) at the rows x of X.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Where. Derivatives are by its columns as they are, before any scales.
        coef : array-like of shape (n_rows_Z,) or (n_rows_Z, n_outputs)
            The coefficients, one column per output.
        Z : array-like of shape (n_rows_Z, n_features), optional
            The rows z_j; by default those of X.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_outputs)
            ∂f_c/∂x_l. Of single precision if all that is given is. Where a kernel has a tip, the
            term is 0: at distance 0 (`Exponential`), or where a column is equal (`Laplace`).
        """
        blocks = [block for _, block in gradients(self, Expansion.of(X, coef, Z))]
        return np.concatenate(blocks, axis=1).transpose(1, 2, 0)

    @any_rows
    def squared_gradient(
        self, X: Any, coef: Any, Z: Any | None = None, *, row_weights: Any = None
    ) -> FloatArray:
        """Return the mean over the rows x of X of Σ_c (∂f_c/∂x_l)², of shape (n_features,).

        How much f_c(x) = Σ_j coef_jc k(x, z_j) depends on each column. Some rows at a time: memory
        does not grow beyond that of the matrices.

        Parameters
        ----------
        X, coef, Z
            As in `gradient`.
        row_weights : array-like of shape (n_rows,), optional
            How much each row of X counts in the mean; by default all the same.
        """
        return squared_gradient(self, Expansion.of(X, coef, Z), row_weights)

    # ---- training rows -----------------------------------------------------------------------

    @any_rows
    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        """Return the kernel with everything that depends on the training set fixed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows.
        frame : dataframe, optional
            The training rows as the user gave them, for columns chosen by name or selector.
        known : dict, optional
            What other kernels found out about these rows, such as their median distance; more is
            added.
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
        """Raise a clear error if the kernel cannot take what stands in its columns.

        That is, numbers where it needs them, and missing cells where it takes none.

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
        is_dense = isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f"
        if is_dense and np.isnan(numbers.sum()):  # which is quick, and NaN where a cell is
            row = np.isnan(numbers).any(axis=1).argmax()
            raise InvalidInputError(
                f"{self.name} takes no missing cells, but row {row} has one in its columns. Impute "
                "them, or let rows without this source say nothing through it: "
                f"WhereKnown({self!r})."
            )

    def shifted(self, X: Any) -> Kernel:
        """Return the kernel of rows less a typical one of X, where centring makes them the same.

        ⟨x − o, z − o⟩ and ⟨x, z⟩ have one centred matrix, but far from the origin the second loses
        the digits that all rows share. Kernels that centring does not make the same, or that have
        nothing to gain, are returned as they are. The name stays.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows. The kernel is resolved. Sparse rows are not shifted.
        """
        found = self._shifted(X, View())
        return found if found.name == self.name else found.named(self.name)

    def _shifted(self, X: Any, view: View) -> Kernel:
        return self

    # ---- algebra -----------------------------------------------------------------------------

    def on(self, columns: Any, name: str | None = None) -> Restricted:
        """Return this kernel on some columns only: one line for one data source.

        Parameters
        ----------
        columns : int, str, slice, mask, list of int or str, or callable
            Which columns. A callable is given the dataframe and returns one of the others, like
            scikit-learn's ``make_column_selector``.
        name : str, optional
            The name of the source, for tables and plots.
        """
        if np.ndim(columns):
            columns = tuple(np.ravel(columns).tolist())  # comparable, unchangeable
        return Restricted(self, columns, name)

    def named(self, name: str) -> Named:
        """Return this kernel under another name."""
        return Named(self, name)

    def __add__(self, other: Kernel | float) -> Kernel:
        return self._joined(other, Sum, self._plus)

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        return self._joined(other, Product, self._times)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Kernel:
        if not isinstance(exponent, Real):
            return NotImplemented
        return self._to_power(exponent)

    def _joined(self, other: Any, pair: type[_Pair], number: Callable[[float], Kernel]) -> Kernel:
        """Return the kernel of this one and another, or of this one and a number."""
        if isinstance(other, Kernel):
            return pair(self, other)
        if not isinstance(other, Real):
            return NotImplemented  # type: ignore[no-any-return]
        return number(float(other))

    def _plus(self, constant: float) -> Kernel:
        return Offset(self, constant) if constant else self  # sum(kernels) starts from 0

    def _times(self, factor: float) -> Kernel:
        return Scaled(self, factor)

    def _to_power(self, exponent: Any) -> Kernel:
        made = Power(self, exponent)
        return self if made.exponent == 1 else made


@dataclasses.dataclass(frozen=True)
class Combination(Kernel):
    """The kernel of some terms."""

    parts: Terms

    def _terms(self, view: View) -> Terms:
        def seen_first(atom: Atom) -> Atom:
            return dataclasses.replace(atom, view=View((*view.steps, *atom.view.steps)))

        return tuple(Term(factor, tuple(map(seen_first, atoms))) for factor, atoms in self.parts)


# ---- kernels made of kernels --------------------------------------------------------------------


def _of_all_parts(flag: str) -> Any:
    """Return a property of composites: whether a flag of all of their parts is set."""
    of = attrgetter(flag)
    return property(lambda self: all(map(of, self.parts.values())))


class _Composite(Kernel):
    """A kernel made of others, which knows what these know, and does with each what it is to do."""

    #: The fields of the kernels that it is made of.
    part_fields: ClassVar[tuple[str, ...]] = ("kernel",)

    #: Whether centring takes off what a shift adds to the kernels in it.
    may_shift: ClassVar[bool] = True

    trusted = _of_all_parts("trusted")
    takes_any_rows = _of_all_parts("takes_any_rows")
    takes_sparse = _of_all_parts("takes_sparse")
    precomputed = _of_all_parts("precomputed")
    thread_safe = _of_all_parts("thread_safe")

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        return any(part.takes_missing for part in self.parts.values())

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels that it is made of, by the names of their fields."""
        return {field: vars(self)[field] for field in self.part_fields}

    def _seen(self, view: View) -> View:
        """Return what the kernels in it see of what a view shows."""
        return view

    def _map(self, method: str, *given: Any) -> Self:
        """Return the kernel of what a method returns of its parts."""
        change = methodcaller(method, *given)
        new = {field: change(part) for field, part in self.parts.items()}
        same = all(new[field] is part for field, part in self.parts.items())
        return self if same else dataclasses.replace(self, **new)  # type: ignore[type-var]

    def _prefixed(self, kind: str) -> list[tuple[str, str, Kernel]]:
        """Return the field of every part, what its settings or parameters begin with, the part."""
        alone, between = len(self.parts) == 1, _BETWEEN[kind]
        return [(f, "" if alone else f + between, part) for f, part in self.parts.items()]

    def _inner(self, kind: str) -> dict[str, Any]:
        """Return the settings or parameters of the parts, by the names that they have here."""
        found, of = self._prefixed(kind), attrgetter(kind)
        return {p + name: value for _, p, part in found for name, value in of(part).items()}

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        new = {name: values.pop(name) for name in self._setting_names() if name in values}
        for field, prefix, part in self._prefixed(kind):
            inner = {n.removeprefix(prefix): values[n] for n in values if n.startswith(prefix)}
            new[field] = methodcaller(f"with_{kind}", **inner)(part)
        return dataclasses.replace(self, **new)  # type: ignore[type-var]

    @property
    def parameters(self) -> dict[str, float]:
        return self._inner("parameters") | super().parameters

    @property
    def settings(self) -> dict[str, Any]:
        return self._inner("settings") | super().settings

    def _setting_names(self) -> list[str]:
        return [name for name in super()._setting_names() if name not in self.part_fields]

    def check_rows(self, X: Any) -> None:
        rows = self._seen(View()).of(X)
        for part in self.parts.values():
            part.check_rows(rows)

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        """Fix what is its own, then the kernels in it on what they see of the rows."""
        fixed = self._fixed(X, frame, known)
        view = fixed._seen(View())
        given = (view.of(X), None, known.setdefault(view, {})) if view.steps else (X, frame, known)
        return fixed._map("resolve", *given)

    def _fixed(self, X: Any, frame: Any | None, known: Known) -> Self:
        """Return the kernel with all of its own that depends on the training set fixed."""
        return self

    def _shifted(self, X: Any, view: View) -> Kernel:
        return self._map("_shifted", X, self._seen(view)) if self.may_shift else self

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        """Return the derivative of the part that the parameter belongs to."""
        found = self._prefixed("parameters")
        prefix, part = next((p, part) for _, p, part in found if parameter.startswith(p))
        rows = self._seen(View()).of_both(X, Z)
        return part.derivative(parameter.removeprefix(prefix), *rows)


@dataclasses.dataclass(frozen=True, repr=False)
class Wrapper(_Composite):
    """A kernel made of one other kernel, by default the same on another view of rows."""

    kernel: Kernel

    @property
    def source(self) -> Restricted | None:
        return self.kernel.source

    def _terms(self, view: View) -> Terms:
        return self.kernel.terms(self._seen(view))

    def __repr__(self) -> str:
        return repr(self.kernel)


@dataclasses.dataclass(frozen=True, repr=False)
class Named(Wrapper):
    """A kernel under a name of the user's choice."""

    label: str

    @property
    def name(self) -> str:
        return self.label

    def _grouped(self) -> str:
        return self.kernel._grouped()


@dataclasses.dataclass(frozen=True, repr=False)
class Scaled(Wrapper):
    """A kernel times a positive number."""

    needs_brackets = True
    differentiable = ("factor",)

    factor: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise InvalidInputError(
                f"A kernel may only be scaled by a positive number. Got {self.factor!r}."
            )

    def _times(self, factor: float) -> Kernel:
        return Scaled(self.kernel, self.factor * factor)

    def _terms(self, view: View) -> Terms:
        return tuple(Term(self.factor * c, atoms) for c, atoms in self.kernel.terms(view))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        is_own = parameter == "factor"
        return self.kernel(X, Z) if is_own else self.factor * super()._derivative(parameter, X, Z)

    def __repr__(self) -> str:
        return f"{self.factor:g} * {self.kernel._grouped()}"


@dataclasses.dataclass(frozen=True, repr=False)
class Offset(Wrapper):
    """A kernel plus a positive constant."""

    needs_brackets = True
    differentiable = ("constant",)

    constant: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.constant) and self.constant > 0):
            raise InvalidInputError(
                "A constant that is added to a kernel must be at least 0, or the sum need not be "
                f"positive semidefinite. Got {self.constant!r}."
            )

    def _plus(self, constant: float) -> Kernel:
        if not constant:
            return self
        return Offset(self.kernel, self.constant + Offset(self, constant).constant)

    def _terms(self, view: View) -> Terms:
        return (*self.kernel.terms(view), Term(self.constant, ()))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        if parameter == "constant":
            return np.ones((n_rows(X), n_rows(X if Z is None else Z)))
        return super()._derivative(parameter, X, Z)

    def __repr__(self) -> str:
        return f"{self.kernel!r} + {self.constant:g}"


@dataclasses.dataclass(frozen=True, repr=False)
class Power(Wrapper):
    """A kernel to the power of an integer of at least 1: the product of so many of it."""

    needs_brackets = True
    may_shift = False

    exponent: int

    def __post_init__(self) -> None:
        if not is_whole(self.exponent):
            raise InvalidInputError(
                "The power of a kernel must be an integer of at least 1, or it need not be "
                f"positive semidefinite. Got {self.exponent!r}."
            )
        object.__setattr__(self, "exponent", int(self.exponent))

    def _to_power(self, exponent: Any) -> Kernel:
        return Power(self.kernel, self.exponent * Power(self, exponent).exponent)

    def _terms(self, view: View) -> Terms:
        return raise_to(self.kernel.terms(view), self.exponent)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        outer = self.exponent * self.kernel(X, Z) ** (self.exponent - 1)
        return np.asarray(outer * super()._derivative(parameter, X, Z))

    def __repr__(self) -> str:
        return f"{self.kernel._grouped()} ** {self.exponent}"


@dataclasses.dataclass(frozen=True, repr=False)
class Restricted(Wrapper):
    """A kernel on some columns."""

    columns: Any
    label: str | None = None
    #: What the columns were called before they were positions.
    described: str | None = dataclasses.field(default=None, metadata={"private": True})

    @property
    def source(self) -> Restricted | None:
        return self

    @property
    def where(self) -> str:
        """The columns in words: by the name that was given, or by their own."""
        known = self.described if self.label is None else self.label
        return describe_columns(self.columns) if known is None else known

    @property
    def name(self) -> str:
        return f"{self.kernel.name} on {self.where}"

    def _seen(self, view: View) -> View:
        return view.take(self.columns)

    def _fixed(self, X: Any, frame: Any | None, known: Known) -> Self:
        indices = column_indices(self.columns, X if frame is None else frame)
        return dataclasses.replace(self, columns=tuple(indices.tolist()), described=self.where)

    def __repr__(self) -> str:
        return f"{self.kernel._grouped()}.on({describe_columns(self.columns)})"


@dataclasses.dataclass(frozen=True, repr=False)
class Standardized(Wrapper):
    """Kernel of columns divided by their spread over the training rows.

    The units of the columns then do not matter. Constant columns are ignored.

    Parameters
    ----------
    kernel : Kernel
        A kernel of distances or inner products.
    spreads : tuple of float, optional
        One number for each column; by default, and after `resolve`, the spreads of the training
        rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> from discernel.kernels import RBF
    >>> kernel, other_unit = Standardized(RBF(width=1.0)), 1000 * rows
    >>> in_units = kernel.resolve(rows)(rows)
    >>> bool(np.allclose(in_units, kernel.resolve(other_unit)(other_unit)))
    True
    """

    spreads: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.kernel.takes_missing:
            raise InvalidInputError(
                "Spreads are those of rows that are known: Standardized must stand within "
                f"WhereKnown, as in WhereKnown(Standardized(RBF())). Got {self!r}."
            )

    @property
    def name(self) -> str:
        return self.kernel.name

    def _seen(self, view: View) -> View:
        if self.spreads is None:
            raise self._unresolved()
        return view.divide(self.spreads)

    def check_rows(self, X: Any) -> None:
        self.kernel.check_rows(X)

    def _fixed(self, X: Any, frame: Any | None, known: Known) -> Self:
        self.check_rows(X)
        if self.spreads is not None:
            return self
        if "spreads" not in known:
            known["spreads"] = tuple(column_spreads(as_rows(X)).tolist())
        return dataclasses.replace(self, spreads=known["spreads"])

    def __repr__(self) -> str:
        return f"Standardized({self.kernel!r})"


@dataclasses.dataclass(frozen=True, repr=False)
class _Pair(_Composite):
    """A kernel made of two others, whose parameters are called ``left.*`` and ``right.*``."""

    needs_brackets = True
    part_fields = ("left", "right")

    left: Kernel
    right: Kernel


class Sum(_Pair):
    """The sum of two kernels."""

    def _terms(self, view: View) -> Terms:
        return self.left.terms(view) + self.right.terms(view)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


class Product(_Pair):
    """The elementwise product of two kernels."""

    may_shift = False

    def _terms(self, view: View) -> Terms:
        return multiply(self.left.terms(view), self.right.terms(view))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        other = self.right if parameter.startswith("left.") else self.left
        return super()._derivative(parameter, X, Z) * other(X, Z)

    def __repr__(self) -> str:
        return f"{self.left._grouped()} * {self.right._grouped()}"
