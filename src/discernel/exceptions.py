"""The errors and warnings of discernel.

Every error is also the built-in a caller would expect, so plain ``except ValueError`` works::

    DiscernelError
    ├── InvalidInputError     (ValueError)   data, labels or parameters that cannot work
    │   └── InvalidGramError                 a Gram matrix that is not one
    ├── NumericalError        (LinAlgError)  a factorisation that broke down
    ├── MissingExtraError     (ImportError)  an optional package that is not installed
    ├── DataUnavailableError  (OSError)      a data set that cannot be had here
    ├── FileWriteError        (OSError)      a file that cannot be written; the old one is kept
    ├── ClusterError          (RuntimeError) other machines that went away in the middle
    └── DeviceError           (RuntimeError) a GPU that failed, or whose memory was not enough

    DiscernelWarning          (UserWarning)
    ├── DroppedKernelWarning                 a kernel that is constant on the training set
    ├── LeftOutColumnWarning                 a column that nothing can be learned from as it is
    ├── LowRankWarning                       a rank that is clearly too small
    └── ConvergenceWarning    (scikit-learn's)
"""

from __future__ import annotations

import sys
from numbers import Real
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
    "is_word",
    "missing_extra",
    "unknown_choice",
]


class DiscernelError(Exception):
    """Base of all errors raised by discernel."""


class InvalidInputError(DiscernelError, ValueError):
    """Data, labels or parameters that cannot work; the message says what to do."""


class InvalidGramError(InvalidInputError):
    """A matrix given as a kernel matrix that is not symmetric positive semidefinite."""


class NumericalError(DiscernelError, np.linalg.LinAlgError):
    """A factorisation broke down in floating point."""


class MissingExtraError(DiscernelError, ImportError):
    """An optional package is needed and not installed; `missing_extra` writes the message."""


class DataUnavailableError(DiscernelError, OSError):
    """A data set cannot be had here; the message says what to do."""


class FileWriteError(DiscernelError, OSError):
    """A file cannot be written; what was there before is as it was."""


class ClusterError(DiscernelError, RuntimeError):
    """Workers, or their scheduler, went away in the middle; the message says what to do."""


class DeviceError(DiscernelError, RuntimeError):
    """A GPU failed in the middle, or its memory was not enough; the message says what to do."""


class DiscernelWarning(UserWarning):
    """Base of all warnings raised by discernel."""


class DroppedKernelWarning(DiscernelWarning):
    """A kernel is constant on the training set and was left out."""


class LongFitWarning(DiscernelWarning):
    """A fit is expected to take minutes, and nothing would be seen of it."""


class LeftOutColumnWarning(DiscernelWarning):
    """Nothing can be learned from a column of a table as it is, and it was left out."""


class LowRankWarning(DiscernelWarning):
    """Kernels were approximated by features; more features would clearly reduce the error."""


class ConvergenceWarning(DiscernelWarning, _SklearnConvergenceWarning):  # type: ignore[misc]
    """A solver stopped before it could certify the requested gap."""


def missing_extra(need: str, extra: str, instead: str = "") -> MissingExtraError:
    """Return the error for an optional package that is not installed.

    Parameters
    ----------
    need : str
        What needs which package, without a full stop.
    extra : str
        The extra of discernel that installs the package.
    instead : str
        What else can be done, without a full stop.
    """
    # Without a release on an index, only the form for a clone works: both are said.
    otherwise = f" Or {instead}." if instead else ""
    return MissingExtraError(
        f"{need}. Install the extra: pip install 'discernel[{extra}]', "
        f"or in a clone: pip install '.[{extra}]'.{otherwise}"
    )


def unknown_choice(what: str, given: object, known: list[str]) -> InvalidInputError:
    """Return the error for a name that is not among the known ones."""
    return InvalidInputError(
        f"The {what} must be one of {', '.join(map(repr, known))}. Got {given!r}."
    )


def is_word(given: object, word: str) -> bool:
    """Whether a parameter is some word, and not an array or a list that is compared with it."""
    return isinstance(given, str) and given == word


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
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_number else np.nan
    if least <= number <= most and np.isfinite(number) and not (positive and number == 0):
        return number
    must = "a positive, finite number" if positive else f"a finite number of at least {least:g}"
    if most < np.inf:
        must = f"a number above 0 and at most {most:g}"
    raise InvalidInputError(f"The {what} must be {must}. Got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise a clear error if a parameter is not an integer of at least ``least``."""
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (is_integer and value >= least):
        raise InvalidInputError(f"{name} must be an integer of at least {least}. Got {value!r}.")


def caller_stacklevel() -> int:
    """Return the ``stacklevel`` of the first line that is not ours, to be named by a warning."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame.f_globals["__name__"]):
        frame, levels = frame.f_back, levels + 1
    return levels


def _is_ours(module: str) -> bool:
    return module.startswith("discernel.") or module == "contextlib"
