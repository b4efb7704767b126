"""Numbers, names and lists as text, the same on terminals, in notebooks and on pages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_NAMES = 10
#: Characters that control a terminal or the text direction, or are invalid in XML; not \n.
_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Return text with control characters escaped, for a terminal or a page.

    Parameters
    ----------
    text : str
        Text from any origin.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(what: object) -> str:
    """Return ``str(what)`` on one line, with control characters escaped."""
    return " ".join(printable(str(what)).split("\n"))


def escaped(value: Any) -> Any:
    """Return plain data with control characters escaped in all texts."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(key): escaped(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(escaped(entry) for entry in value)
    return value


def percent(value: float) -> str:
    """Return a share in percent with one decimal, without the percent sign."""
    return "–" if math.isnan(value) else f"{100.0 * value:z.1f}"


def format_number(value: float) -> str:
    """Return a number with two significant digits, such as 0.032 or 3.2e-4."""
    if value == 0 or 0.01 <= abs(value) < 100:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def signed(value: float, form: str = "z.3f") -> str:
    """Return a number with its sign; the minus sign is as wide as the plus sign."""
    return f"{value:+{form}}".replace("-", "−")


def signed_form(values: Sequence[float]) -> str:
    """Return a format for `signed`: three decimals, or more if all values are small."""
    largest = max(map(abs, values), default=0.0)
    n_decimals = 3 - math.floor(math.log10(largest)) if 0.0 < largest < 0.01 else 3
    return f"z.{n_decimals}f"


def seconds(value: float, digits: int = 3) -> str:
    """Return a time in ms, s, min or h."""
    if math.isnan(value):
        return "–"
    units = ((0.1, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
    unit, name = next((unit, name) for limit, unit, name in units if value < limit)
    number = value / unit
    return f"{number:.{max(digits, len(str(int(number))))}g} {name}"


def memory(value: int | None) -> str:
    """Return a number of bytes in MB or GB."""
    if value is None:
        return "–"
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def probability(value: float) -> str:
    """Return a p-value with its relation, such as "= 0.03" or "< 0.001"."""
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def plural(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 column", "1,200 columns"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def join(names: Sequence[str]) -> str:
    """Return names as an enumeration; of more than ten names, the first nine."""
    if len(names) > _MOST_NAMES:
        n_others = len(names) - _MOST_NAMES + 1
        names = [*names[: _MOST_NAMES - 1], f"{n_others} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
