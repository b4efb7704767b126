"""Kernels made of kernels: names, factors, powers, columns, spreads, sums and products."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import attrgetter, methodcaller
from typing import Any, ClassVar, Self

import numpy as np

from discernel.arrays import FloatArray, as_rows, n_rows
from discernel.exceptions import InvalidInputError, check_number, is_count
from discernel.kernels.base import Kernel, Known
from discernel.kernels.columns import column_indices, column_spreads, describe_columns
from discernel.kernels.curves import Curves
from discernel.kernels.terms import Atom, Term, Terms, View, multiply, raise_to

#: Separator between the field of a part and the name of one of its settings or parameters.
_SEPARATORS = {"settings": "__", "parameters": "."}


@dataclass(frozen=True)
class Combination(Kernel):
    """A kernel given by its terms."""

    parts: Terms

    def _terms(self, view: View) -> Terms:
        def seen_first(atom: Atom) -> Atom:
            return replace(atom, view=View((*view.steps, *atom.view.steps)))

        return tuple(Term(factor, tuple(map(seen_first, atoms))) for factor, atoms in self.parts)


def _of_all_parts(flag: str) -> Any:
    """Return a property that is True if a flag of all parts is set."""
    of = attrgetter(flag)
    return property(lambda self: all(map(of, self.parts.values())))


class _Composite(Kernel):
    """A kernel made of other kernels, its parts.

    Flags, settings and parameters are read from the parts, and methods are applied to each part.
    """

    #: Names of the fields that hold the parts.
    part_fields: ClassVar[tuple[str, ...]] = ("kernel",)

    #: Whether centring removes all that a shift of the parts adds to the kernel.
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
        """The kernels in this kernel, by the names of their fields."""
        return {slot: vars(self)[slot] for slot in self.part_fields}

    def _seen(self, view: View) -> View:
        """Return the view of the parts, given the view of this kernel."""
        return view

    def _map(self, method: str, *given: Any) -> Self:
        """Return the kernel with each part replaced by the result of a method of the part."""
        change = methodcaller(method, *given)
        new = {slot: change(part) for slot, part in self.parts.items()}
        same = all(new[slot] is part for slot, part in self.parts.items())
        return self if same else replace(self, **new)  # type: ignore[type-var]

    def _prefixed(self, kind: str) -> list[tuple[str, str, Kernel]]:
        """Return the field, the prefix of settings or parameters, and the kernel of every part."""
        alone, separator = len(self.parts) == 1, _SEPARATORS[kind]
        return [(f, "" if alone else f + separator, part) for f, part in self.parts.items()]

    def _inner(self, kind: str) -> dict[str, Any]:
        """Return the settings or parameters of the parts, with their prefixes."""
        found, of = self._prefixed(kind), attrgetter(kind)
        return {p + name: value for _, p, part in found for name, value in of(part).items()}

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        new = {name: values.pop(name) for name in self._setting_names() if name in values}
        for slot, prefix, part in self._prefixed(kind):
            inner = {n.removeprefix(prefix): values[n] for n in values if n.startswith(prefix)}
            new[slot] = methodcaller(f"with_{kind}", **inner)(part)
        return replace(self, **new)  # type: ignore[type-var]

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
        """Fix the values of this kernel, then those of its parts on their view of the rows."""
        fixed = self._fixed(X, frame, known)
        view = fixed._seen(View())
        given = (view.of(X), None, known.setdefault(view, {})) if view.steps else (X, frame, known)
        return fixed._map("resolve", *given)

    def _fixed(self, X: Any, frame: Any | None, known: Known) -> Self:
        """Return the kernel with its own values, not those of its parts, fixed."""
        return self

    def _shifted(self, X: Any, view: View) -> Kernel:
        return self._map("_shifted", X, self._seen(view)) if self.may_shift else self

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        """Return the derivative of the part with this parameter."""
        found = self._prefixed("parameters")
        prefix, part = next((p, part) for _, p, part in found if parameter.startswith(p))
        rows = self._seen(View()).of_both(X, Z)
        return part.derivative(parameter.removeprefix(prefix), *rows)


@dataclass(frozen=True, repr=False)
class Wrapper(_Composite):
    """A kernel made of one other kernel, by default the same kernel on another view of rows."""

    kernel: Kernel

    @property
    def source(self) -> Restricted | None:
        return self.kernel.source

    def _terms(self, view: View) -> Terms:
        return self.kernel.terms(self._seen(view))

    def __repr__(self) -> str:
        return repr(self.kernel)


@dataclass(frozen=True, repr=False)
class Named(Wrapper):
    """A kernel with a name given by the user."""

    label: str

    @property
    def name(self) -> str:
        return self.label

    def _grouped(self) -> str:
        return self.kernel._grouped()


@dataclass(frozen=True, repr=False)
class Scaled(Wrapper):
    """A kernel times a positive number."""

    needs_brackets = True
    differentiable = ("factor",)

    factor: float

    def __post_init__(self) -> None:
        check_number("factor of a kernel", self.factor, positive=True)

    def _times(self, factor: float) -> Kernel:
        return Scaled(self.kernel, self.factor * factor)

    def _terms(self, view: View) -> Terms:
        return tuple(Term(self.factor * c, atoms) for c, atoms in self.kernel.terms(view))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        is_own = parameter == "factor"
        return self.kernel(X, Z) if is_own else self.factor * super()._derivative(parameter, X, Z)

    def __repr__(self) -> str:
        return f"{self.factor:g} * {self.kernel._grouped()}"


@dataclass(frozen=True, repr=False)
class Offset(Wrapper):
    """A kernel plus a positive constant."""

    needs_brackets = True
    differentiable = ("constant",)

    constant: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.constant) and self.constant > 0):
            raise InvalidInputError(
                "A constant added to a kernel must be at least 0; otherwise the sum may not be "
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


@dataclass(frozen=True, repr=False)
class Power(Wrapper):
    """A kernel to the power of an integer of at least 1."""

    needs_brackets = True
    may_shift = False

    exponent: int

    def __post_init__(self) -> None:
        if not is_count(self.exponent):
            raise InvalidInputError(
                "The power of a kernel must be an integer of at least 1; otherwise it may not be "
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


@dataclass(frozen=True, repr=False)
class Restricted(Wrapper):
    """A kernel on some columns."""

    columns: Any
    label: str | None = None
    #: Names of the columns, before `resolve` replaced them by positions.
    described: str | None = field(default=None, metadata={"private": True})

    @property
    def source(self) -> Restricted | None:
        return self

    @property
    def where(self) -> str:
        """The name of the source, or else the names of its columns."""
        known = self.described if self.label is None else self.label
        return describe_columns(self.columns) if known is None else known

    @property
    def name(self) -> str:
        return f"{self.kernel.name} on {self.where}"

    def _seen(self, view: View) -> View:
        return view.then("columns", self.columns)

    def _fixed(self, X: Any, frame: Any | None, known: Known) -> Self:
        indices = column_indices(self.columns, X if frame is None else frame)
        return replace(self, columns=tuple(indices.tolist()), described=self.where)

    def __repr__(self) -> str:
        return f"{self.kernel._grouped()}.on({describe_columns(self.columns)})"


@dataclass(frozen=True, repr=False)
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
    curves : Curves, optional
        Functions of the columns, applied before the division; the default kernels may have some.

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
    curves: Curves | None = field(default=None, metadata={"private": True})

    def __post_init__(self) -> None:
        if self.kernel.takes_missing:
            raise InvalidInputError(
                "Standardized must be inside WhereKnown, because spreads are computed from known "
                f"rows: write WhereKnown(Standardized(RBF())). Got {self!r}."
            )

    @property
    def name(self) -> str:
        return self.kernel.name

    def _seen(self, view: View) -> View:
        if self.spreads is None:
            raise self._unresolved()
        return view.then("curves", self.curves).then("spreads", self.spreads)

    def check_rows(self, X: Any) -> None:
        self.kernel.check_rows(X)

    def _fixed(self, X: Any, frame: Any | None, known: Known) -> Self:
        self.check_rows(X)
        if self.spreads is not None:
            return self
        if "spreads" not in known:
            known["spreads"] = tuple(column_spreads(as_rows(X)).tolist())
        return replace(self, spreads=known["spreads"])

    def __repr__(self) -> str:
        return f"Standardized({self.kernel!r})"


@dataclass(frozen=True, repr=False)
class _Pair(_Composite):
    """A kernel made of two others, with parameters ``left.*`` and ``right.*``."""

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
