"""The errors and warnings of discernel.

Every error is also a built-in error, so that plain ``except ValueError`` works::

    DiscernelError
    ├── InvalidInputError     (ValueError)   invalid data, labels or parameters
    │   └── InvalidGramError                 a matrix that is not a kernel matrix
    ├── NumericalError        (LinAlgError)  a factorization that broke down
    ├── MissingExtraError     (ImportError)  an optional package that is not installed
    ├── DataUnavailableError  (OSError)      a data set that is not available
    ├── FileWriteError        (OSError)      a file that cannot be written; an old file is kept
    ├── ClusterError          (RuntimeError) Dask workers or schedulers that were lost
    └── DeviceError           (RuntimeError) a GPU that failed or ran out of memory

    DiscernelWarning          (UserWarning)
    ├── DroppedKernelWarning                 a kernel that is constant on the training rows
    ├── LeftOutColumnWarning                 a column that cannot be used
    ├── LongFitWarning                       a fit that is expected to take minutes
    ├── LowRankWarning                       a rank that is clearly too small
    └── ConvergenceWarning    (scikit-learn's) a solver that did not reach its tolerance
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataUnavailableError",
    "DeviceError",
    "DiscernelError",
    "DiscernelWarning",
    "DroppedKernelWarning",
    "FileWriteError",
    "InvalidGramError",
    "InvalidInputError",
    "LeftOutColumnWarning",
    "LongFitWarning",
    "LowRankWarning",
    "MissingExtraError",
    "NumericalError",
    "caller_stacklevel",
    "check_count",
    "check_number",
    "did_you_mean",
    "is_count",
    "is_number",
    "is_positive",
    "is_word",
    "missing_extra",
    "needs_extra",
    "unknown_choice",
]


class DiscernelError(Exception):
    """Base class of all errors of discernel."""


class InvalidInputError(DiscernelError, ValueError):
    """Data, labels or parameters are invalid; the message has a remedy."""


class InvalidGramError(InvalidInputError):
    """A matrix given as a kernel matrix is not symmetric positive semidefinite."""


class NumericalError(DiscernelError, np.linalg.LinAlgError):
    """A factorization broke down in floating point."""


class MissingExtraError(DiscernelError, ImportError):
    """An optional package is needed and not installed; see `missing_extra`."""


class DataUnavailableError(DiscernelError, OSError):
    """A data set is not available; the message has a remedy."""


class FileWriteError(DiscernelError, OSError):
    """A file cannot be written; an existing file is unchanged."""


class ClusterError(DiscernelError, RuntimeError):
    """Dask workers or their scheduler were lost during a fit; the message has a remedy."""


class DeviceError(DiscernelError, RuntimeError):
    """A GPU failed or ran out of memory during a fit; the message has a remedy."""


class DiscernelWarning(UserWarning):
    """Base class of all warnings of discernel."""


class DroppedKernelWarning(DiscernelWarning):
    """A kernel is constant on the training rows and was left out."""


class LongFitWarning(DiscernelWarning):
    """A fit is expected to take minutes, and progress is not shown."""


class LeftOutColumnWarning(DiscernelWarning):
    """A column of a table cannot be used and was left out; the message has the reason."""


class LowRankWarning(DiscernelWarning):
    """Kernels were approximated with a rank that is clearly too small."""


class ConvergenceWarning(DiscernelWarning, _SklearnConvergenceWarning):  # type: ignore[misc]
    """A solver stopped before it certified the requested gap."""


def missing_extra(need: str, extra: str, instead: str = "") -> MissingExtraError:
    """Return the error for an optional package that is not installed.

    Parameters
    ----------
    need : str
        The first sentence of the message, without a full stop, such as "Plots need matplotlib".
    extra : str
        The extra of discernel that installs the package.
    instead : str
        An alternative for the user, without a full stop.
    """
    # Both forms, because a clone may be newer than any release.
    otherwise = f" Or {instead}." if instead else ""
    return MissingExtraError(
        f"{need}. Install the extra: pip install 'discernel[{extra}]', "
        f"or in a clone: pip install '.[{extra}]'.{otherwise}"
    )


@contextmanager
def needs_extra(need: str, extra: str, instead: str = "") -> Iterator[None]:
    """Replace the error of an import within a ``with`` block by that of `missing_extra`."""
    try:
        yield
    except ImportError as error:
        raise missing_extra(need, extra, instead) from error


def unknown_choice(what: str, given: object, known: list[str]) -> InvalidInputError:
    """Return the error for an unknown choice; its message lists the known ones."""
    return InvalidInputError(
        f"The {what} must be one of {', '.join(map(repr, known))}. Got {given!r}."
        f"{did_you_mean(given, known)}"
    )


def listed(names: Iterable[Any], limit: int = 5, form: Callable[[Any], str] = repr) -> str:
    """Return names for a message, at most ``limit`` of them."""
    names = list(names)
    shown = ", ".join(form(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """Return a sentence that names up to three similar choices; an empty text if there are none."""
    names = {str(name).lower(): name for name in known}
    close = get_close_matches(str(given).lower(), list(names), n=3)
    return f" Did you mean {' or '.join(repr(names[each]) for each in close)}?" if close else ""


def is_word(given: object, word: str) -> bool:
    """Whether a parameter equals a string; safe for arrays, whose ``==`` is elementwise."""
    return isinstance(given, str) and given == word


def is_number(value: Any) -> bool:
    """Whether a parameter is a real number of Python or NumPy; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    """Whether a parameter is a finite number above 0."""
    return is_number(value) and 0 < float(value) < np.inf


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a parameter is an integer of Python or NumPy, of at least ``least``."""
    return isinstance(value, Integral) and is_number(value) and int(value) >= least


def check_number(
    what: str, value: Any, *, positive: bool = False, least: float = 0.0, most: float = np.inf
) -> float:
    """Return a parameter as a float, or raise a clear error if it is out of range.

    Parameters
    ----------
    what : str
        The name of the parameter.
    value : object
        Its value, which must be a finite number of at least ``least``.
    positive : bool, default=False
        Whether it must be above 0.
    least, most : float
        The smallest and the largest allowed number.
    """
    number = float(value) if is_number(value) else np.nan
    if least <= number <= most and np.isfinite(number) and not (positive and number == 0):
        return number
    must = "a positive, finite number" if positive else f"a finite number of at least {least:g}"
    if most < np.inf:
        must = f"a number above 0 and at most {most:g}"
    raise InvalidInputError(f"The {what} must be {must}. Got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise an error unless a parameter is an integer of at least ``least``."""
    if not is_count(value, least):
        raise InvalidInputError(f"{name} must be an integer of at least {least}. Got {value!r}.")


def caller_stacklevel() -> int:
    """Return the ``stacklevel`` at which a warning names the user's line of code."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None:
        module = frame.f_globals["__name__"]
        if not (module.startswith("discernel.") or module == "contextlib"):
            break
        frame, levels = frame.f_back, levels + 1
    return levels
