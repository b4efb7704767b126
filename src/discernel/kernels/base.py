"""What a kernel is: a small value object that turns rows into a matrix.

Kernels hold no data and know no labels. Choices that depend on data (``"median"`` widths, column
names) are fixed by `Kernel.resolve`, which returns a new kernel made of numbers only. What a kernel
computes is said by its `Kernel.terms`, and everything that computes with kernels reads these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from numbers import Integral
from types import FunctionType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from discernel.arrays import FloatArray, as_dense, as_rows, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.calls import any_array, any_rows
from discernel.kernels.columns import (
    Table,
    column_indices,
    column_spreads,
    describe_columns,
    divided_columns,
    take_columns,
)
from discernel.kernels.expansion import Array, Expansion, gradients, pair_slopes
from discernel.kernels.pairs import Called
from discernel.kernels.terms import (
    Atom,
    Term,
    Terms,
    View,
    diagonal_of,
    matrix_of,
    multiply,
    raise_to,
)

__all__ = [
    "Combination",
    "Kernel",
    "Known",
    "Named",
    "Offset",
    "Power",
    "Product",
    "Restricted",
    "Scaled",
    "Standardized",
    "Sum",
    "Wrapper",
]

#: What is known about the training rows; that of some columns stands under their positions.
Known: TypeAlias = dict[Hashable, Any]

#: The methods that a class of kernels defines, and that are called with rows.
_OF_ROWS = ("__call__", "diagonal", "resolve")
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

    #: Whether the kernel picks columns of a table itself.
    picks_columns: bool = False

    #: Whether what it is given for rows is a stack of matrices.
    precomputed: bool = False

    #: Whether several threads may compute it at once.
    thread_safe: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls) and "diagonal" not in vars(cls):
            # That of the class above is of another kernel.
            cls.diagonal = Kernel.diagonal  # type: ignore[method-assign]
        for name in _OF_ROWS:
            method = vars(cls).get(name)
            if isinstance(method, FunctionType):
                setattr(cls, name, any_rows(method))

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

    @property
    def name(self) -> str:
        """A short name for tables and plots."""
        return repr(self)

    @property
    def source(self) -> Restricted | None:
        """The kernel in it that was put on columns by ``.on``; None where there is none."""
        return None

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers the kernel matrix can be differentiated by."""
        return {}

    def with_parameters(self, **values: float) -> Self:
        """Return the kernel with other values of some of its `parameters`."""
        self._check_parameters(values)
        return dataclasses.replace(self, **values)  # type: ignore[type-var]

    @property
    def settings(self) -> dict[str, Any]:
        """All that the kernel was made with, by name, that of the kernels in it included.

        A kernel with a name, a factor or columns has the settings of the kernel in it and those
        of its own; the parts of sums and products stand under ``left__`` and ``right__``.
        """
        return {name: getattr(self, name) for name in self._setting_names()}

    def with_settings(self, **values: Any) -> Kernel:
        """Return the kernel with other values of some of its `settings`."""
        self._check_settings(values)
        return self._with_settings(values)

    def _with_settings(self, values: dict[str, Any]) -> Kernel:
        return dataclasses.replace(self, **values) if values else self  # type: ignore[type-var]

    def _setting_names(self) -> list[str]:
        fields: Any = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        return [f.name for f in fields if f.init and not f.metadata.get("private")]

    def _check_settings(self, names: Any) -> None:
        unknown = [name for name in names if name not in self.settings]
        if unknown:
            raise InvalidInputError(
                f"The settings of {self!r} are {list(self.settings)}. Got {unknown}."
            )

    @any_array
    def derivative(self, parameter: str, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the derivative of the kernel matrix by one of its `parameters`."""
        self._check_parameters([parameter])
        return self._derivative(parameter, X, Z)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        raise NotImplementedError

    @any_array
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
        terms = self.terms()
        keys = {atom.key for term in terms for atom in term.atoms}
        pair, view = next(iter(keys))
        plain, scales = view.scales
        left, right = (_column(plain.of(rows), column) for rows in (X, X if Z is None else Z))
        change = pair.scale_slope(left, right, 1.0 if scales is None else scales[column])
        if change is None or len(keys) > 1:
            raise NotImplementedError(
                f"{self!r} has no scales of columns. RBF, Exponential and Laplace have, on "
                "columns, standardized, named or scaled too."
            )
        base = pair.entries(*view.of_both(X, Z))
        slope, factor = pair_slopes(terms, lambda key: base)[pair, view]
        return np.asarray(factor * slope * change)

    @any_array
    def gradient(
        self, X: Any, coef: Any, Z: Any | None = None, *, gram: Any = None, base: Any = None
    ) -> Array:
        """Return the gradients of f_c(x) = Σ_j coef_jc k(x, z_j) at the rows x of X.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Where. Derivatives are by its columns as they are, before any scales.
        coef : array-like of shape (n_rows_Z,) or (n_rows_Z, n_outputs)
            The coefficients, one column per output.
        Z : array-like of shape (n_rows_Z, n_features), optional
            The rows z_j; by default those of X.
        gram, base : ndarray of shape (n_rows, n_rows_Z), optional
            ``kernel(X, Z)``, and the distances or inner products that it is made of, if they are
            known. They save time.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_outputs)
            ∂f_c/∂x_l. Of single precision if all that is given is. Where a kernel has a tip, the
            term is 0: at distance 0 (`Exponential`), or where a column is equal (`Laplace`).
        """
        blocks = list(gradients(self._sloped(), Expansion.of(X, coef, Z, gram, base)))
        return np.concatenate(blocks, axis=1).transpose(1, 2, 0)

    @any_array
    def squared_gradient(
        self,
        X: Any,
        coef: Any,
        Z: Any | None = None,
        *,
        gram: Any = None,
        base: Any = None,
        row_weights: Any = None,
    ) -> FloatArray:
        """Return the mean over the rows x of X of Σ_c (∂f_c/∂x_l)², of shape (n_features,).

        How much f_c(x) = Σ_j coef_jc k(x, z_j) depends on each column. Some rows at a time: memory
        does not grow beyond that of the matrices.

        Parameters
        ----------
        X, coef, Z, gram, base
            As in `gradient`.
        row_weights : array-like of shape (n_rows,), optional
            How much each row of X counts in the mean; by default all the same.
        """
        terms, expansion = self._sloped(), Expansion.of(X, coef, Z, gram, base)
        n, total = len(expansion.X), np.zeros(expansion.X.shape[1])
        counts = np.ones(n) if row_weights is None else np.asarray(row_weights, dtype=np.float64)
        for rows, block in zip(expansion.blocks, gradients(terms, expansion), strict=True):
            total += counts[rows] @ np.einsum("cil,cil->il", block, block)
        return total / float(counts.sum())

    def _sloped(self) -> Terms:
        """Return the terms, or raise an error where one has no gradient."""
        terms = self.terms()
        if not all(atom.pair.has_slopes for term in terms for atom in term.atoms):
            raise NotImplementedError(
                f"{self!r} has no gradient by its rows. RBF, Exponential, Laplace, Linear and "
                "Polynomial have, on columns, standardized, named, scaled, added or multiplied too."
            )
        return terms

    def _check_parameters(self, names: Any) -> None:
        unknown = [name for name in names if name not in self.parameters]
        if unknown:
            raise InvalidInputError(
                f"The parameters of {self!r} that can be set or differentiated are "
                f"{list(self.parameters)}. Got {unknown}. Resolve 'median' widths first, with "
                "kernel.resolve(X)."
            )

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
        return self

    def check_rows(self, X: Any) -> None:
        """Raise a clear error if the kernel cannot take what stands in its columns.

        That is, numbers where it needs them, and missing cells where it takes none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows.
        """
        if isinstance(X, Table) and not self.takes_any_rows:
            raise X.no_numbers(self.name)
        numbers = X.numbers if isinstance(X, Table) else X
        if not (isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f"):
            return
        # A sum is quick, and NaN where a cell is.
        if np.isnan(numbers.sum()) and (missing := np.isnan(numbers).any(axis=1)).any():
            raise InvalidInputError(
                f"{self.name} takes no missing cells, but row {missing.argmax()} has one in its "
                "columns. Impute them, or let rows without this source say nothing through it: "
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

    def without_columns(self, X: Any) -> tuple[Kernel, Any]:
        """Return a kernel and rows of the columns it needs, which give the same matrices.

        For many calls on the same rows: columns are then chosen and copied once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. The kernel is resolved.
        """
        terms = self.terms()
        views = {atom.view for term in terms for atom in term.atoms}
        if views == {View()} or len(views) > 1:
            return self, X
        plain = [Term(c, tuple(Atom(a.pair, View(), a.function) for a in t)) for c, t in terms]
        return Combination(tuple(plain)), views.pop().of(X)

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
        if hasattr(columns, "__len__") and not isinstance(columns, str):
            columns = tuple(np.asarray(columns).ravel().tolist())  # comparable, unchangeable
        return Restricted(self, columns, name)

    def named(self, name: str) -> Named:
        """Return this kernel under another name."""
        return Named(self, name)

    def __add__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Sum(self, other)
        if not isinstance(other, (int, float, np.number)):
            return NotImplemented
        if other == 0:  # sum(kernels) starts from 0
            return self
        if isinstance(self, Offset):
            return Offset(self.kernel, self.constant + Offset(self, float(other)).constant)
        return Offset(self, float(other))

    __radd__ = __add__

    def __pow__(self, exponent: int) -> Kernel:
        if not isinstance(exponent, (int, float, np.number)):
            return NotImplemented
        made = Power(self, exponent)
        if isinstance(self, Power):
            return Power(self.kernel, self.exponent * made.exponent)
        return self if made.exponent == 1 else made

    def __mul__(self, other: Kernel | float) -> Product | Scaled:
        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, (int, float, np.number)):
            if isinstance(self, Scaled):
                return Scaled(self.kernel, self.factor * float(other))
            return Scaled(self, float(other))
        return NotImplemented

    __rmul__ = __mul__


@dataclasses.dataclass(frozen=True)
class Combination(Kernel):
    """The kernel of some terms.

    Parameters
    ----------
    parts : tuple of Term
        The terms.
    """

    parts: Terms

    def _terms(self, view: View) -> Terms:
        return tuple(
            Term(factor, tuple(dataclasses.replace(a, view=view.then(a.view)) for a in atoms))
            for factor, atoms in self.parts
        )


def _column(X: Any, column: int) -> FloatArray:
    """Return one column of rows, dense or CSR."""
    X = as_rows(X)
    if not 0 <= column < X.shape[1]:
        raise InvalidInputError(
            f"The column must be one of 0 to {X.shape[1] - 1}, as the rows have {X.shape[1]}. "
            f"Got {column!r}."
        )
    return np.asarray(as_dense(X[:, [column]]))[:, 0]


# ---- kernels made of kernels --------------------------------------------------------------------


class _Composite(Kernel):
    """A kernel made of others, which knows what these know."""

    @property
    def inner(self) -> tuple[Kernel, ...]:
        """The kernels that it is made of."""
        raise NotImplementedError

    @property
    def trusted(self) -> bool:  # type: ignore[override]
        return all(kernel.trusted for kernel in self.inner)

    @property
    def takes_any_rows(self) -> bool:  # type: ignore[override]
        return all(kernel.takes_any_rows for kernel in self.inner)

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        return any(kernel.takes_missing for kernel in self.inner)

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        return all(kernel.takes_sparse for kernel in self.inner)

    @property
    def precomputed(self) -> bool:  # type: ignore[override]
        return all(kernel.precomputed for kernel in self.inner)

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        return all(kernel.thread_safe for kernel in self.inner)

    def check_rows(self, X: Any) -> None:
        for kernel in self.inner:
            kernel.check_rows(X)


@dataclasses.dataclass(frozen=True, repr=False)
class Wrapper(_Composite):
    """A kernel made of one other kernel, by default the same on another view of rows."""

    kernel: Kernel

    #: The field that the kernel can be differentiated by.
    number: ClassVar[str | None] = None

    @property
    def inner(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    @property
    def picks_columns(self) -> bool:  # type: ignore[override]
        return self.kernel.picks_columns

    @property
    def source(self) -> Restricted | None:
        return self.kernel.source

    def _seen(self, view: View) -> View:
        """Return what the kernel in it sees of what a view shows."""
        return view

    def _terms(self, view: View) -> Terms:
        return self.kernel.terms(self._seen(view))

    def check_rows(self, X: Any) -> None:
        self.kernel.check_rows(self._seen(View()).of(X))

    def _own_parameter(self) -> dict[str, float]:
        return {} if self.number is None else {self.number: self.settings[self.number]}

    @property
    def parameters(self) -> dict[str, float]:
        return {**self.kernel.parameters, **self._own_parameter()}

    def with_parameters(self, **values: float) -> Self:
        self._check_parameters(values)
        own = {name: values.pop(name) for name in self._own_parameter() if name in values}
        return dataclasses.replace(self, kernel=self.kernel.with_parameters(**values), **own)

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.kernel.settings, **super().settings}

    def _with_settings(self, values: dict[str, Any]) -> Kernel:
        own = {name: values.pop(name) for name in self._setting_names() if name in values}
        return dataclasses.replace(self, kernel=self.kernel.with_settings(**values), **own)

    def _setting_names(self) -> list[str]:
        return [name for name in super()._setting_names() if name != "kernel"]

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.derivative(parameter, *self._seen(View()).of_both(X, Z))

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        return dataclasses.replace(self, kernel=self.kernel.resolve(X, frame, known))

    def _shifted(self, X: Any, view: View) -> Kernel:
        inner = self.kernel._shifted(X, self._seen(view))
        return self if inner is self.kernel else dataclasses.replace(self, kernel=inner)

    def __repr__(self) -> str:
        return repr(self.kernel)


@dataclasses.dataclass(frozen=True, repr=False)
class Named(Wrapper):
    """A kernel under a name of the user's choice."""

    label: str

    @property
    def name(self) -> str:
        return self.label


@dataclasses.dataclass(frozen=True, repr=False)
class Scaled(Wrapper):
    """A kernel times a positive number."""

    number = "factor"

    factor: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise InvalidInputError(
                f"A kernel may only be scaled by a positive number. Got {self.factor!r}."
            )

    def _terms(self, view: View) -> Terms:
        return tuple(Term(self.factor * c, atoms) for c, atoms in self.kernel.terms(view))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        if parameter == "factor":
            return self.kernel(X, Z)
        return self.factor * self.kernel.derivative(parameter, X, Z)

    def __repr__(self) -> str:
        return f"{self.factor:g} * {_grouped(self.kernel)}"


@dataclasses.dataclass(frozen=True, repr=False)
class Offset(Wrapper):
    """A kernel plus a positive constant."""

    number = "constant"

    constant: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.constant) and self.constant > 0):
            raise InvalidInputError(
                "A constant that is added to a kernel must be at least 0, or the sum need not be "
                f"positive semidefinite. Got {self.constant!r}."
            )

    def _terms(self, view: View) -> Terms:
        return (*self.kernel.terms(view), Term(self.constant, ()))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        if parameter == "constant":
            return np.ones((n_rows(X), n_rows(X if Z is None else Z)))
        return self.kernel.derivative(parameter, X, Z)

    def __repr__(self) -> str:
        return f"{self.kernel!r} + {self.constant:g}"


@dataclasses.dataclass(frozen=True, repr=False)
class Power(Wrapper):
    """A kernel to the power of an integer of at least 1: the product of so many of it."""

    exponent: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.exponent, Integral) and not isinstance(self.exponent, bool)
        if not (is_whole and self.exponent >= 1):
            raise InvalidInputError(
                "The power of a kernel must be an integer of at least 1, or it need not be "
                f"positive semidefinite. Got {self.exponent!r}."
            )
        object.__setattr__(self, "exponent", int(self.exponent))

    def _terms(self, view: View) -> Terms:
        return raise_to(self.kernel.terms(view), self.exponent)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        outer = self.exponent * self.kernel(X, Z) ** (self.exponent - 1)
        return np.asarray(outer * self.kernel.derivative(parameter, X, Z))

    def _shifted(self, X: Any, view: View) -> Kernel:
        return self  # centring takes off what a shift adds to a kernel, not to its power

    def __repr__(self) -> str:
        return f"{_grouped(self.kernel)} ** {self.exponent}"


@dataclasses.dataclass(frozen=True, repr=False)
class Restricted(Wrapper):
    """A kernel on some columns."""

    columns: Any
    label: str | None = None
    #: What the columns were called before they were positions.
    described: str | None = dataclasses.field(default=None, metadata={"private": True})

    picks_columns = True

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

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        indices = column_indices(self.columns, X if frame is None else frame)
        known_here = None if known is None else known.setdefault(indices.tobytes(), {})
        inner = self.kernel.resolve(take_columns(X, indices), None, known_here)
        return Restricted(inner, tuple(indices.tolist()), self.label, self.where)

    def __repr__(self) -> str:
        return f"{_grouped(self.kernel)}.on({describe_columns(self.columns)})"


@dataclasses.dataclass(frozen=True, repr=False)
class Standardized(Wrapper):
    """A kernel of columns that are each divided by their spread over the training rows.

    The units of columns then do not matter. A column that has one value only is left out.

    Parameters
    ----------
    kernel : Kernel
        The kernel, of distances or inner products.
    spreads : tuple of float, optional
        One number per column; by default, and after `resolve`, those of the training rows.

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
            raise InvalidInputError(
                f"{self!r} depends on the training set. Call kernel.resolve(X) first."
            )
        return view.divide(self.spreads)

    def check_rows(self, X: Any) -> None:
        self.kernel.check_rows(X)

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        self.check_rows(X)
        known = {} if known is None else known
        if self.spreads is None and "spreads" not in known:
            known["spreads"] = tuple(column_spreads(as_rows(X)).tolist())
        spreads = known["spreads"] if self.spreads is None else self.spreads
        known_here = known.setdefault(spreads, {})
        inner = self.kernel.resolve(divided_columns(X, spreads), None, known_here)
        return Standardized(inner, spreads)

    def __repr__(self) -> str:
        return f"Standardized({self.kernel!r})"


@dataclasses.dataclass(frozen=True, repr=False)
class _Pair(_Composite):
    """A kernel made of two others, whose parameters are called ``left.*`` and ``right.*``."""

    left: Kernel
    right: Kernel

    @property
    def inner(self) -> tuple[Kernel, ...]:
        return self.left, self.right

    def _sides(self, parameter: str) -> tuple[Kernel, Kernel, str]:
        """Return the kernel that has a parameter, the other one, and its name there."""
        side, _, name = parameter.partition(".")
        return (*(self.inner if side == "left" else self.inner[::-1]), name)  # type: ignore[return-value]

    @property
    def parameters(self) -> dict[str, float]:
        return {f"left.{name}": value for name, value in self.left.parameters.items()} | {
            f"right.{name}": value for name, value in self.right.parameters.items()
        }

    def with_parameters(self, **values: float) -> Self:
        self._check_parameters(values)
        sides: dict[str, dict[str, float]] = {"left": {}, "right": {}}
        for name, value in values.items():
            side, _, inner = name.partition(".")
            sides[side][inner] = value
        return dataclasses.replace(
            self,
            left=self.left.with_parameters(**sides["left"]),
            right=self.right.with_parameters(**sides["right"]),
        )

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        left, right = (side.resolve(X, frame, known) for side in (self.left, self.right))
        return dataclasses.replace(self, left=left, right=right)

    @property
    def settings(self) -> dict[str, Any]:
        parts = {"left": self.left, "right": self.right}
        return {
            f"{side}__{name}": value
            for side, part in parts.items()
            for name, value in part.settings.items()
        }

    def _with_settings(self, values: dict[str, Any]) -> Kernel:
        sides: dict[str, dict[str, Any]] = {"left": {}, "right": {}}
        for path, value in values.items():
            side, _, name = path.partition("__")
            sides[side][name] = value
        left = self.left.with_settings(**sides["left"])
        right = self.right.with_settings(**sides["right"])
        return dataclasses.replace(self, left=left, right=right)


class Sum(_Pair):
    """The sum of two kernels."""

    def _terms(self, view: View) -> Terms:
        return self.left.terms(view) + self.right.terms(view)

    def _shifted(self, X: Any, view: View) -> Kernel:
        left, right = self.left._shifted(X, view), self.right._shifted(X, view)
        same = left is self.left and right is self.right
        return self if same else Sum(left, right)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        kernel, _, name = self._sides(parameter)
        return kernel.derivative(name, X, Z)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


class Product(_Pair):
    """The elementwise product of two kernels."""

    def _terms(self, view: View) -> Terms:
        return multiply(self.left.terms(view), self.right.terms(view))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        kernel, other, name = self._sides(parameter)
        return kernel.derivative(name, X, Z) * other(X, Z)

    def __repr__(self) -> str:
        return f"{_grouped(self.left)} * {_grouped(self.right)}"


def _grouped(kernel: Kernel) -> str:
    """Return the text of a kernel as part of a larger one, in brackets where it needs them."""
    inner = kernel.kernel if isinstance(kernel, Named) else kernel
    parts = Sum, Product, Scaled, Offset, Power
    return f"({kernel!r})" if isinstance(inner, parts) else repr(kernel)
