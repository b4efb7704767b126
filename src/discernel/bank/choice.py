"""Values of the parameter ``bank``: names, and objects with a memory limit and a rank."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from discernel.bank.tiled import CACHE_BYTES
from discernel.exceptions import InvalidInputError, is_count

_UNITS: dict[str, float] = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_DEFAULT_MEMORY = "256MiB"


class BankChoice(NamedTuple):
    """The bank that a user asks for, as `read_choice` reads it.

    Attributes
    ----------
    kind : str
        The name of the bank, or ``"auto"``.
    rank : int or None
        Total rank of a bank of low rank; None for the default.
    memory : float
        Bytes of memory for kernel matrices.
    """

    kind: str = "auto"
    rank: int | None = None
    memory: float = CACHE_BYTES


class _AskedBank(BaseEstimator):  # type: ignore[misc]
    """Base class of objects for the parameter ``bank``."""

    kind: str
    memory: str | int
    rank: int | None = None


class AutoBank(_AskedBank):
    """Automatic choice of the bank, within a memory limit.

    Parameters
    ----------
    memory : str or int, default="256MiB"
        Memory for kernel matrices: bytes, or a number with a unit such as ``"2GB"``. All matrices
        are stored if they fit; otherwise, tiles are stored up to this limit.
    rank : int, optional
        Total rank if a bank of low rank is chosen; by default it grows with the number of rows.

    Examples
    --------
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.bank import AutoBank
    >>> clf = MultipleKernelDiscriminant(bank=AutoBank(memory="1GB"))
    """

    kind = "auto"

    def __init__(self, memory: str | int = _DEFAULT_MEMORY, rank: int | None = None) -> None:
        self.memory = memory
        self.rank = rank


class LowRank(_AskedBank):
    """Features of low rank instead of kernels, for many rows.

    Parameters
    ----------
    rank : int, optional
        Total rank of all kernels; by default it grows with the number of rows.
    memory : str or int, default="256MiB"
        Memory for the features of all rows, in bytes or as ``"2GB"``. Features that need more
        are summed in two passes.

    Examples
    --------
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.bank import LowRank
    >>> clf = MultipleKernelDiscriminant(bank=LowRank(500))
    """

    kind = "lowrank"

    def __init__(self, rank: int | None = None, memory: str | int = _DEFAULT_MEMORY) -> None:
        self.rank = rank
        self.memory = memory


class Tiled(_AskedBank):
    """Tiles of kernel matrices, computed again if there is no memory to store them.

    Parameters
    ----------
    memory : str or int, default="256MiB"
        Memory for stored tiles, in bytes or as ``"2GB"``.

    Examples
    --------
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.bank import Tiled
    >>> clf = MultipleKernelDiscriminant(bank=Tiled(memory="2GB"))
    """

    kind = "tiled"

    def __init__(self, memory: str | int = _DEFAULT_MEMORY) -> None:
        self.memory = memory


class Iterative(Tiled):
    """Conjugate gradients with tiles, without a matrix of n_samples² numbers.

    Parameters are those of `Tiled`.

    Examples
    --------
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.bank import Iterative
    >>> clf = MultipleKernelDiscriminant(bank=Iterative(memory="2GB"))
    """

    kind = "iterative"


class Distributed(Tiled):
    """Tiles on the workers of a Dask cluster, each of which holds all rows.

    Parameters are those of `Tiled`; the memory limit is per worker.

    Examples
    --------
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.bank import Distributed
    >>> clf = MultipleKernelDiscriminant(bank=Distributed(memory="2GB"))
    """

    kind = "distributed"


def read_choice(bank: Any) -> BankChoice:
    """Convert a value of the parameter ``bank`` to a `BankChoice`, or raise an error."""
    if isinstance(bank, str):
        return BankChoice(bank)
    if not isinstance(bank, _AskedBank):
        raise InvalidInputError(
            "bank must be a name such as 'auto', or an object of discernel.bank such as "
            f"LowRank(500) or Tiled(memory='2GB'). Got {bank!r}."
        )
    rank, n_bytes = bank.rank, read_quantity(bank.memory, _UNITS)
    if rank is not None and not is_count(rank):
        raise InvalidInputError(f"The rank must be an integer of at least 1. Got {rank!r}.")
    if n_bytes is None:
        raise InvalidInputError(
            "The memory of a bank must be a positive number of bytes, or a number with a unit "
            f"such as '256MiB' or '2GB'. Got {bank.memory!r}."
        )
    return BankChoice(bank.kind, None if rank is None else int(rank), n_bytes)


def read_quantity(given: Any, units: Mapping[str, float]) -> float | None:
    """Convert a positive number with a unit, such as "2GB", to a float; None if invalid."""
    found = re.fullmatch(
        r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*([a-z]*)", str(given).strip().lower()
    )
    if found is None or found[3] not in units:
        return None
    quantity = float(found[1] + (found[2] or "")) * units[found[3]]
    return quantity if 0 < quantity < np.inf else None
