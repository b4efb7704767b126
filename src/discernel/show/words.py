"""Numbers, names and lists as text: the same on a terminal, in a notebook and on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_NAMES = 10
_NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
#: Moves the cursor, rings, turns text round, or may not stand in XML; not the end of a line.
_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
#: How the weights of a candidate were found, where its own name says too little.
_CANDIDATES = {
    "average": "equal weights",
    "likelihood": "equal weights",
    "weights": "learned weights",
    "single": "best single kernel",
    "loo": "weights by leave-one-out",
    "rkda": "weights by rkda",
}
#: How much a candidate scales columns by their importance.
_STRENGTHS = {0.0: "unscaled", 0.5: "half scaled", 1.0: "scaled"}


def printable(text: str) -> str:
    r"""Return text with control characters written out, for a terminal or a page.

    Parameters
    ----------
    text : str
        Anybody's text.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(what: object) -> str:
    """Return the words for something on one line, with nothing in them that a terminal obeys."""
    return " ".join(printable(str(what)).split("\n"))


def written(value: Any) -> Any:
    """Return plain data with the control characters of all its texts written out."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(key): written(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(written(entry) for entry in value)
    return value


def candidate_label(name: str, strength: float, by_folds: bool) -> str:
    """Return the name of a candidate of the default: how it weighs kernels and scales columns.

    Parameters
    ----------
    name : str
        How the weights were found.
    strength : float
        The power of the learned scales of columns.
    by_folds : bool
        Whether candidates were compared by folds, and so differ in how columns are scaled.

    Examples
    --------
    >>> candidate_label("average", 0.5, by_folds=True)
    'equal weights, half scaled'
    >>> candidate_label("likelihood", 1.0, by_folds=True)
    'equal weights, scaled by likelihood'
    """
    label = _CANDIDATES.get(name, name)
    scaled = _STRENGTHS.get(strength, f"scaled to the power {strength:g}")
    scaled = f"{scaled} by likelihood" if name == "likelihood" else scaled
    return f"{label}, {scaled}" if by_folds else label


def percent(value: float) -> str:
    """Return a share in percent with one decimal, without the sign."""
    return "–" if math.isnan(value) else f"{100.0 * value:z.1f}"


def format_number(value: float) -> str:
    """Return two digits, such as 0.032 or 3.2e-4."""
    if value == 0 or 0.01 <= abs(value) < 100:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def signed(value: float, form: str = "z.3f") -> str:
    """Return a number with its sign, the minus as long as the plus."""
    return f"{value:+{form}}".replace("-", "−")


def seconds(value: float, digits: int = 3) -> str:
    """Return a time in a unit that suits it."""
    if math.isnan(value):
        return "–"
    units = ((0.1, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
    unit, name = next((unit, name) for limit, unit, name in units if value < limit)
    number = value / unit
    return f"{number:.{max(digits, len(str(int(number))))}g} {name}"


def memory(value: int | None) -> str:
    """Return bytes in a unit that suits them."""
    if value is None:
        return "–"
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def probability(value: float) -> str:
    """Return a probability as one writes it after "p"."""
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "one method", "12 data sets"."""
    numeral = _NUMERALS[number] if number < len(_NUMERALS) else str(number)
    return f"{numeral} {noun}" if number == 1 else f"{numeral} {noun}s"


def plural(number: int, noun: str, plural: str = "") -> str:
    """Return a number in digits with its noun: "1 column", "1,200 columns"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def join(names: Sequence[str]) -> str:
    """Return names as a list in a sentence; of more than ten, the first nine."""
    if len(names) > _MOST_NAMES:
        n_others = len(names) - _MOST_NAMES + 1
        names = [*names[: _MOST_NAMES - 1], f"{n_others} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def sentence(text: str) -> str:
    """Return a text as it stands at the beginning of a sentence: numerals with a capital."""
    return text[:1].upper() + text[1:] if text.split(" ")[0] in _NUMERALS else text
