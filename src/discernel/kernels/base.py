"""What a kernel is: a small value object that turns rows into a matrix.

Kernels hold no data and know no labels. Choices that depend on data (``"median"`` widths, column
names) are fixed by `Kernel.resolve`, which returns a new kernel made of numbers only.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from functools import reduce
from numbers import Integral
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from discernel.arrays import FloatArray, as_rows, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.anywhere import Elsewhere, anywhere, take_anywhere
from discernel.kernels.columns import (
    Table,
    column_indices,
    column_spreads,
    describe_columns,
    divided_columns,
    take_columns,
)
from discernel.kernels.expansion import Array, Expansion

__all__ = [
    "Elementwise",
    "Kernel",
    "Known",
    "Named",
    "Offset",
    "Power",
    "Product",
    "Restricted",
    "Scaled",
    "Sum",
    "Wrapper",
]

#: What is known about the training rows; that of some columns stands under their positions.
Known: TypeAlias = dict[Hashable, Any]


class Kernel(ABC):
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
    """

    #: The kind of pairwise matrix `from_base` is computed from; kernels of one kind on the same
    #: columns share it. None: the kernel is computed from the rows directly.
    base: str | None = None

    #: The kind of that matrix where other array libraries can make it: ``"squared distance"``,
    #: ``"1-norm distance"`` or ``"inner product"``, of what `base_rows` returns.
    pairs: str | None = None

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

    #: What calls a method with arrays of other libraries than NumPy. `discernel.devices`, which
    #: knows them, says it: kernels know no room above.
    _elsewhere: ClassVar[Elsewhere | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _replace_outdated(cls)
        take_anywhere(cls)  # the diagonal too that may just have been put in its place

    @abstractmethod
    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the kernel matrix, of shape (n_rows_X, n_rows_Z)."""

    @abstractmethod
    def diagonal(self, X: Any) -> FloatArray:
        """Return k(x, x) for every row of X, of shape (n_rows_X,)."""

    @property
    def name(self) -> str:
        """A short name for tables and plots."""
        return repr(self)

    @property
    def base_key(self) -> Hashable | None:
        """What two kernels must have in common to share one pairwise matrix; None if nothing."""
        return self.base

    def base_matrix(self, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the pairwise matrix that `from_base` turns into the kernel matrix."""
        raise NotImplementedError(f"{self!r} is not computed from a pairwise matrix.")

    def base_diagonal(self, X: Any) -> FloatArray:
        """Return the diagonal of ``base_matrix(X)``, of shape (n_rows_X,), without the rest."""
        return np.diagonal(self.base_matrix(X)).copy()

    def from_base(self, base: FloatArray) -> FloatArray:
        """Return the kernel matrix made of the pairwise matrix, which is left as it is."""
        raise NotImplementedError(f"{self!r} is not computed from a pairwise matrix.")

    # The same in tiles. A subclass that overrides `base_matrix` without one of the first two of
    # these is computed from plain rows, in fresh arrays; see `_replace_outdated`.

    def base_rows(self, X: Any, like: Any | None = None) -> Any:
        """Return dense rows as `base_tile` takes them, computed once; those of one call alike.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.
        like : what this method returned, optional
            For the rows that these ones will meet.
        """
        return X

    def base_tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        """Return the `base_matrix` of what `base_rows` returned, in ``out`` if that helps."""
        return self.base_matrix(X, Z)

    def fill_from_base(self, base: FloatArray, out: FloatArray) -> None:
        """Write to ``out`` what `from_base` returns."""
        out[:] = self.from_base(base)

    def from_device_base(self, base: Any, xp: Any) -> Any | None:
        """Return what `from_base` does, of an array of another library; None: only NumPy can.

        Parameters
        ----------
        base : array
            The pairwise matrix, which is left as it is.
        xp : module
            Its namespace, of the array API standard.
        """
        return None

    @property
    def decay(self) -> tuple[Hashable, float] | None:
        """The kind of distance d and the factor c of a kernel exp(−c·d); None for others.

        Kernels of one `base_key` and one kind are powers of each other.
        """
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

    @anywhere
    def derivative(self, parameter: str, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the derivative of the kernel matrix by one of its `parameters`."""
        self._check_parameters([parameter])
        return self._derivative(parameter, X, Z)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        raise NotImplementedError

    @anywhere
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
        return self._scale_derivative(column, X, Z)

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        raise NotImplementedError(
            f"{self!r} has no scales of columns. RBF, Exponential and Laplace have, on columns, "
            "standardized, named or scaled too."
        )

    @anywhere
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
            ``kernel(X, Z)`` and ``kernel.base_matrix(X, Z)``, if they are known. They save time.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_outputs)
            ∂f_c/∂x_l. Of single precision if all that is given is. Where a kernel has a tip, the
            term is 0: at distance 0 (`Exponential`), or where a column is equal (`Laplace`).
        """
        blocks = list(self._gradients(Expansion.of(X, coef, Z, gram, base)))
        return np.concatenate(blocks, axis=1).transpose(1, 2, 0)

    @anywhere
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
        expansion = Expansion.of(X, coef, Z, gram, base)
        n, total = len(expansion.X), np.zeros(expansion.X.shape[1])
        counts = np.ones(n) if row_weights is None else np.asarray(row_weights, dtype=np.float64)
        for rows, block in zip(expansion.blocks, self._gradients(expansion), strict=True):
            total += counts[rows] @ np.einsum("cil,cil->il", block, block)
        return total / float(counts.sum())

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        """Yield the gradients of one block of rows after another.

        Each of shape (n_outputs, n_rows_of_block, n_features).
        """
        raise NotImplementedError(
            f"{self!r} has no gradient by its rows. RBF, Exponential and Laplace have, on columns, "
            "standardized, named, scaled or added too."
        )

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
        found = self._shifted(X)
        return found if found.name == self.name else found.named(self.name)

    def _shifted(self, X: Any) -> Kernel:
        return self

    def on_its_columns(self, X: Any) -> tuple[Kernel, Any]:
        """Return a kernel and rows of the columns it needs, which give the same matrices.

        For many calls on the same rows: columns are then chosen and copied once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. The kernel is resolved.
        """
        return self, X

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


#: Rows of which the diagonal is computed at a time where only whole matrices are known.
_DIAGONAL_ROWS = 64


def _replace_outdated(cls: type[Kernel]) -> None:
    """Replace what a class inherits but has overridden the grounds of.

    A subclass need only override the method that says what it is: `__call__`, `base_matrix` or
    `from_base`. What it inherits for speed would still compute its parent.
    """

    def depth(*names: str) -> int:
        """Return how many classes up the first one is that defines one of these."""
        return next(i for i, c in enumerate(cls.__mro__) if any(name in vars(c) for name in names))

    new: dict[str, Any] = {}
    if depth("base_matrix") < depth("base_rows", "base_tile"):
        new |= {"base_rows": Kernel.base_rows, "base_tile": Kernel.base_tile}
    if depth("base_matrix", "base_rows", "base_tile") < depth("pairs"):
        new["pairs"] = None  # of a wrapper that means it, it is said again
    if depth("from_base", "fill_from_base", "_distance") < depth("from_device_base"):
        new["from_device_base"] = Kernel.from_device_base
    if depth("from_base") < depth("fill_from_base"):
        new["fill_from_base"] = Kernel.fill_from_base
    elif depth("fill_from_base") < depth("from_base"):
        new["from_base"] = _filled_from_base
    if depth("from_base", "fill_from_base") < depth("decay"):
        new["decay"] = Kernel.decay
    if depth("__call__") < depth("base_matrix", "from_base", "fill_from_base"):
        new["base_key"] = None  # it is not made of a pairwise matrix any more
    elif depth("base_matrix", "base_rows", "base_tile") < depth("base", "base_key"):
        new["base_key"] = _key_of_its_own(cls)
    if depth("__call__", "base_matrix", "from_base", "fill_from_base") < depth("diagonal"):
        known = depth("__call__", "base_matrix") >= depth("base_diagonal")
        new["diagonal"] = _diagonal_of_base if known else _diagonal_of_calls
    if depth("__call__", "base_matrix") < depth("on_its_columns"):
        new["on_its_columns"] = Kernel.on_its_columns
    for name in ("_gradients", "_scale_derivative"):
        said = depth("__call__", "base_matrix", "from_base", "fill_from_base", "_distance")
        if said < depth(name, "_slope"):
            new[name] = getattr(Kernel, name)
    for name, value in new.items():
        setattr(cls, name, value)


def _filled_from_base(self: Kernel, base: FloatArray) -> FloatArray:
    matrix = np.empty_like(base)
    self.fill_from_base(base, matrix)
    return matrix


def _diagonal_of_base(self: Kernel, X: Any) -> FloatArray:
    return self.from_base(self.base_diagonal(X)[:, None])[:, 0]


def _diagonal_of_calls(self: Kernel, X: Any) -> FloatArray:
    starts = range(0, n_rows(X), _DIAGONAL_ROWS)
    return np.concatenate([np.diagonal(self(X[i : i + _DIAGONAL_ROWS])) for i in starts])


def _key_of_its_own(cls: type[Kernel]) -> property:
    inherited: Any = cls.base_key

    def base_key(self: Kernel) -> Hashable | None:
        key = inherited.__get__(self)
        return None if key is None else (key, cls)

    return property(base_key)


@dataclasses.dataclass(frozen=True, repr=False)
class Wrapper(Kernel):
    """A kernel made of one other kernel."""

    kernel: Kernel

    @property
    def trusted(self) -> bool:  # type: ignore[override]
        return self.kernel.trusted

    @property
    def takes_any_rows(self) -> bool:  # type: ignore[override]
        return self.kernel.takes_any_rows

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        return self.kernel.takes_missing

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        return self.kernel.takes_sparse

    @property
    def picks_columns(self) -> bool:  # type: ignore[override]
        return self.kernel.picks_columns

    @property
    def precomputed(self) -> bool:  # type: ignore[override]
        return self.kernel.precomputed

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        return self.kernel.thread_safe

    @property
    def base_key(self) -> Hashable | None:
        return self.kernel.base_key

    @property
    def pairs(self) -> str | None:  # type: ignore[override]
        return self.kernel.pairs

    def from_device_base(self, base: Any, xp: Any) -> Any | None:
        return self.kernel.from_device_base(base, xp)

    @property
    def decay(self) -> tuple[Hashable, float] | None:
        return self.kernel.decay

    def base_matrix(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.kernel.base_matrix(X, Z)

    def from_base(self, base: FloatArray) -> FloatArray:
        return self.kernel.from_base(base)

    def base_rows(self, X: Any, like: Any | None = None) -> Any:
        return self.kernel.base_rows(X, like)

    def base_tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return self.kernel.base_tile(X, Z, out)

    def fill_from_base(self, base: FloatArray, out: FloatArray) -> None:
        self.kernel.fill_from_base(base, out)

    def check_rows(self, X: Any) -> None:
        self.kernel.check_rows(X)

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.kernel(X, Z)

    def diagonal(self, X: Any) -> FloatArray:
        return self.kernel.diagonal(X)

    @property
    def parameters(self) -> dict[str, float]:
        return self.kernel.parameters

    def with_parameters(self, **values: float) -> Self:
        return dataclasses.replace(self, kernel=self.kernel.with_parameters(**values))

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.kernel.settings, **super().settings}

    def _with_settings(self, values: dict[str, Any]) -> Kernel:
        own = {name: values.pop(name) for name in self._setting_names() if name in values}
        return dataclasses.replace(self, kernel=self.kernel.with_settings(**values), **own)

    def _setting_names(self) -> list[str]:
        return [name for name in super()._setting_names() if name != "kernel"]

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.derivative(parameter, X, Z)

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.scale_derivative(column, X, Z)

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        return self.kernel._gradients(expansion)

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        return dataclasses.replace(self, kernel=self.kernel.resolve(X, frame, known))

    def _shifted(self, X: Any) -> Kernel:
        inner = self.kernel._shifted(X)
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

    def on_its_columns(self, X: Any) -> tuple[Kernel, Any]:
        return self.kernel.on_its_columns(X)


class Elementwise(Wrapper):
    """A kernel whose values are a function of those of another kernel."""

    #: The field that the kernel can be differentiated by.
    number: ClassVar[str | None] = None

    @abstractmethod
    def apply(self, values: Any) -> Any:
        """Return the values made of those of the other kernel, an array of any library."""

    @property
    def decay(self) -> tuple[Hashable, float] | None:
        return None

    def from_base(self, base: FloatArray) -> FloatArray:
        return np.asarray(self.apply(self.kernel.from_base(base)))

    def fill_from_base(self, base: FloatArray, out: FloatArray) -> None:
        self.kernel.fill_from_base(base, out)
        out[:] = self.apply(out)

    def from_device_base(self, base: Any, xp: Any) -> Any | None:
        made = self.kernel.from_device_base(base, xp)
        return None if made is None else self.apply(made)

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return np.asarray(self.apply(self.kernel(X, Z)))

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.apply(self.kernel.diagonal(X)))

    @property
    def parameters(self) -> dict[str, float]:
        own = {} if self.number is None else {self.number: getattr(self, self.number)}
        return {**self.kernel.parameters, **own}

    def with_parameters(self, **values: float) -> Self:
        self._check_parameters(values)
        own = {self.number: values.pop(self.number)} if self.number in values else {}
        inner = self.kernel.with_parameters(**values)
        return dataclasses.replace(self, kernel=inner, **own)


@dataclasses.dataclass(frozen=True, repr=False)
class Scaled(Elementwise):
    """A kernel times a positive number."""

    number = "factor"

    factor: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise InvalidInputError(
                f"A kernel may only be scaled by a positive number. Got {self.factor!r}."
            )

    def apply(self, values: Any) -> Any:
        return values * self.factor

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        if parameter == "factor":
            return self.kernel(X, Z)
        return self.factor * self.kernel.derivative(parameter, X, Z)

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        return self.factor * self.kernel.scale_derivative(column, X, Z)

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        # The matrix that is known is that of this kernel, which has the factor in it.
        factor = self.factor if expansion.gram is None else 1.0
        return (factor * block for block in self.kernel._gradients(expansion))

    def __repr__(self) -> str:
        return f"{self.factor:g} * {_grouped(self.kernel)}"


@dataclasses.dataclass(frozen=True, repr=False)
class Offset(Elementwise):
    """A kernel plus a positive constant."""

    number = "constant"

    constant: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.constant) and self.constant > 0):
            raise InvalidInputError(
                "A constant that is added to a kernel must be at least 0, or the sum need not be "
                f"positive semidefinite. Got {self.constant!r}."
            )

    def apply(self, values: Any) -> Any:
        return values + self.constant

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        if parameter == "constant":
            return np.ones((n_rows(X), n_rows(X if Z is None else Z)))
        return self.kernel.derivative(parameter, X, Z)

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.scale_derivative(column, X, Z)

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        # The matrix that is known is that of this kernel, which has the constant in it.
        gram = None if expansion.gram is None else expansion.gram - self.constant
        return self.kernel._gradients(dataclasses.replace(expansion, gram=gram))

    def __repr__(self) -> str:
        return f"{self.kernel!r} + {self.constant:g}"


@dataclasses.dataclass(frozen=True, repr=False)
class Power(Elementwise):
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

    @property
    def product(self) -> Kernel:
        """The same kernel as a product."""
        return reduce(Product, [self.kernel] * self.exponent)

    @property
    def decay(self) -> tuple[Hashable, float] | None:
        inner = self.kernel.decay
        return None if inner is None else (inner[0], self.exponent * inner[1])

    def apply(self, values: Any) -> Any:
        return values**self.exponent

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        return self._outer(X, Z) * self.kernel.derivative(parameter, X, Z)

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        return self._outer(X, Z) * self.kernel.scale_derivative(column, X, Z)

    def _outer(self, X: Any, Z: Any | None) -> FloatArray:
        """Return the derivative of the power by the kernel in it."""
        return np.asarray(self.exponent * self.kernel(X, Z) ** (self.exponent - 1))

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        return Kernel._gradients(self, expansion)

    def _shifted(self, X: Any) -> Kernel:
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

    pairs = Wrapper.pairs
    picks_columns = True

    @property
    def where(self) -> str:
        """The columns in words: by the name that was given, or by their own."""
        known = self.described if self.label is None else self.label
        return describe_columns(self.columns) if known is None else known

    @property
    def name(self) -> str:
        return f"{self.kernel.name} on {self.where}"

    @property
    def base_key(self) -> Hashable | None:
        inner = self.kernel.base_key
        return None if inner is None else (inner, self.columns)

    def on_its_columns(self, X: Any) -> tuple[Kernel, Any]:
        return self.kernel.on_its_columns(self._taken(X, None)[0])

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        indices = column_indices(self.columns, X if frame is None else frame)
        known_here = None if known is None else known.setdefault(indices.tobytes(), {})
        inner = self.kernel.resolve(take_columns(X, indices), None, known_here)
        return Restricted(inner, tuple(indices.tolist()), self.label, self.where)

    def _shifted(self, X: Any) -> Kernel:
        return super()._shifted(self._taken(X, None)[0])

    def _taken(self, X: Any, Z: Any | None) -> tuple[Any, Any | None]:
        taken = take_columns(X, column_indices(self.columns, X))
        if Z is None or Z is X:
            return taken, None
        return taken, take_columns(Z, column_indices(self.columns, Z))

    def base_matrix(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.kernel.base_matrix(*self._taken(X, Z))

    def check_rows(self, X: Any) -> None:
        self.kernel.check_rows(self._taken(X, None)[0])

    def base_rows(self, X: Any, like: Any | None = None) -> Any:
        return self.kernel.base_rows(self._taken(X, None)[0], like)

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.kernel(*self._taken(X, Z))

    def diagonal(self, X: Any) -> FloatArray:
        return self.kernel.diagonal(self._taken(X, None)[0])

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.derivative(parameter, *self._taken(X, Z))

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.scale_derivative(column, *self._taken(X, Z))

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        indices, n_columns = column_indices(self.columns, expansion.X), expansion.X.shape[1]
        X, Z = self._taken(expansion.X, expansion.Z)
        for block in self.kernel._gradients(dataclasses.replace(expansion, X=X, Z=Z)):
            whole = np.zeros((*block.shape[:2], n_columns), dtype=block.dtype)
            whole[:, :, indices] = block
            yield whole

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

    pairs = Wrapper.pairs

    def __post_init__(self) -> None:
        if self.kernel.takes_missing:
            raise InvalidInputError(
                "Spreads are those of rows that are known: Standardized must stand within "
                f"WhereKnown, as in WhereKnown(Standardized(RBF())). Got {self!r}."
            )

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def base_key(self) -> Hashable | None:
        inner = self.kernel.base_key
        return None if inner is None else (inner, self.spreads)

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        self.check_rows(X)
        known = {} if known is None else known
        if self.spreads is None and "spreads" not in known:
            known["spreads"] = tuple(column_spreads(as_rows(X)).tolist())
        spreads = known["spreads"] if self.spreads is None else self.spreads
        known_here = known.setdefault(spreads, {})
        inner = self.kernel.resolve(divided_columns(X, spreads), None, known_here)
        return Standardized(inner, spreads)

    def _divided(self, X: Any, Z: Any | None) -> tuple[Any, Any | None]:
        if self.spreads is None:
            raise InvalidInputError(
                f"{self!r} depends on the training set. Call kernel.resolve(X) first."
            )
        same = Z is None or Z is X
        return divided_columns(X, self.spreads), (
            None if same else divided_columns(Z, self.spreads)
        )

    def on_its_columns(self, X: Any) -> tuple[Kernel, Any]:
        return self.kernel.on_its_columns(self._divided(X, None)[0])

    def _shifted(self, X: Any) -> Kernel:
        if self.decay is not None:
            return self  # differences know no origin
        return super()._shifted(self._divided(X, None)[0])

    def base_matrix(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.kernel.base_matrix(*self._divided(X, Z))

    def base_rows(self, X: Any, like: Any | None = None) -> Any:
        return self.kernel.base_rows(self._divided(X, None)[0], like)

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.kernel(*self._divided(X, Z))

    def diagonal(self, X: Any) -> FloatArray:
        if self.decay is not None:
            return np.ones(n_rows(X))
        return self.kernel.diagonal(self._divided(X, None)[0])

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.derivative(parameter, *self._divided(X, Z))

    def _scale_derivative(self, column: int, X: Any, Z: Any | None) -> FloatArray:
        return self.kernel.scale_derivative(column, *self._divided(X, Z))

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        X, Z = self._divided(expansion.X, expansion.Z)
        factors = divided_columns(np.ones((1, X.shape[1])), self.spreads or ())
        for block in self.kernel._gradients(dataclasses.replace(expansion, X=X, Z=Z)):
            block *= factors.astype(block.dtype)
            yield block

    def __repr__(self) -> str:
        return f"Standardized({self.kernel!r})"


@dataclasses.dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    """A kernel made of two others, whose parameters are called ``left.*`` and ``right.*``."""

    left: Kernel
    right: Kernel

    @property
    def trusted(self) -> bool:  # type: ignore[override]
        return self.left.trusted and self.right.trusted

    @property
    def takes_any_rows(self) -> bool:  # type: ignore[override]
        return self.left.takes_any_rows and self.right.takes_any_rows

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        return self.left.takes_missing or self.right.takes_missing

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        return self.left.takes_sparse and self.right.takes_sparse

    @property
    def precomputed(self) -> bool:  # type: ignore[override]
        return self.left.precomputed and self.right.precomputed

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        return self.left.thread_safe and self.right.thread_safe

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

    def check_rows(self, X: Any) -> None:
        self.left.check_rows(X)
        self.right.check_rows(X)


class Sum(_Pair):
    """The sum of two kernels."""

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.left(X, Z) + self.right(X, Z)

    def diagonal(self, X: Any) -> FloatArray:
        return self.left.diagonal(X) + self.right.diagonal(X)

    def _shifted(self, X: Any) -> Kernel:
        left, right = self.left._shifted(X), self.right._shifted(X)
        same = left is self.left and right is self.right
        return self if same else Sum(left, right)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        side, _, inner = parameter.partition(".")
        kernel: Kernel = getattr(self, side)
        return kernel.derivative(inner, X, Z)

    def _gradients(self, expansion: Expansion) -> Iterator[Array]:
        parts = dataclasses.replace(expansion, gram=None, base=None)  # those of the sum help none
        left, right = self.left._gradients(parts), self.right._gradients(parts)
        return (one + other for one, other in zip(left, right, strict=True))

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


class Product(_Pair):
    """The elementwise product of two kernels."""

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.left(X, Z) * self.right(X, Z)

    def diagonal(self, X: Any) -> FloatArray:
        return self.left.diagonal(X) * self.right.diagonal(X)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        side, _, inner = parameter.partition(".")
        kernel: Kernel = getattr(self, side)
        other = self.right if side == "left" else self.left
        return kernel.derivative(inner, X, Z) * other(X, Z)

    def __repr__(self) -> str:
        return f"{_grouped(self.left)} * {_grouped(self.right)}"


def _grouped(kernel: Kernel) -> str:
    """Return the text of a kernel as part of a larger one, in brackets where it needs them."""
    inner = kernel.kernel if isinstance(kernel, Named) else kernel
    parts = Sum, Product, Scaled, Offset, Power
    return f"({kernel!r})" if isinstance(inner, parts) else repr(kernel)
