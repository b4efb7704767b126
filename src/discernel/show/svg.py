"""Matplotlib figures as inline SVG with the colours and the font of the page.

Colours become CSS variables, so that one figure works in light mode, dark mode and print. Style
attributes become presentation attributes, because the Content-Security-Policy of the page forbids
the former.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from discernel.exceptions import needs_extra

#: Colours of series; the style sheet has them as --series-1, --series-2, ...
PALETTE = ("#0072b2", "#c8500a", "#00805e", "#b0478a", "#946300", "#5a4fcf")
#: Colours of text and background, which no display uses otherwise.
_INK, _PAPER = "#010203", "#fdfeff"
_VARIABLES = {color: f"var(--series-{i})" for i, color in enumerate(PALETTE, start=1)} | {
    _INK: "var(--ink)",
    _PAPER: "var(--paper)",
    "#888888": "var(--muted)",  # unnamed lines in displays
}
#: Width in inches; text of 11 points keeps about its size on a page of 390 pixels.
WIDTH = 5.0
_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": _INK,
    "axes.facecolor": _PAPER,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 11.0,
    "legend.framealpha": 0.7,
    "legend.facecolor": _PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "discernel",
    "text.color": _INK,
    "text.parse_math": False,  # names may contain dollar signs
    "xtick.color": _INK,
    "ytick.color": _INK,
}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def drawing() -> Iterator[None]:
    """Set the matplotlib options that `to_svg` needs."""
    with needs_extra("A report needs matplotlib", "app"):
        import matplotlib as mpl
    with mpl.rc_context():
        mpl.rcdefaults()  # independent of the user's style
        mpl.rcParams.update(_SETTINGS)
        mpl.rcParams["axes.prop_cycle"] = f"cycler(color={PALETTE})"
        yield


def new_figure(height: float, n_panels: int = 1) -> list[Any]:
    """Return axes, one below the other, on a new figure that pyplot does not manage."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return list(figure.subplots(n_panels, sharex=True, squeeze=False)[:, 0])


def to_svg(figure: Any, prefix: str) -> str:
    """Return a figure as an ``<svg>`` element for a page.

    Parameters
    ----------
    figure : Figure
        Drawn within `drawing`.
    prefix : str
        Prefix of ids, unique on the page.
    """
    for ax in figure.axes:
        _write_powers(ax)
    figure.patch.set_alpha(0.0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in root.iter():
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        _simplify(element)
    _rename(root, prefix)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "aria-hidden": "true", "focusable": "false"})
    return ElementTree.tostring(root, encoding="unicode")


def _write_powers(ax: Any) -> None:
    """Format powers of ten on logarithmic axes as plain text."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis, scale in ((ax.xaxis, ax.get_xscale()), (ax.yaxis, ax.get_yscale())):
        if scale == "log":
            low, high = sorted(axis.get_view_interval())
            axis.set_major_formatter(FuncFormatter(_power))
            if high > 20.0 * low:
                axis.set_minor_formatter(NullFormatter())
            else:  # the axis may contain no power of ten
                axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:.2g}"))


def _power(value: float, _: Any = None) -> str:
    mantissa, exponent = f"{value:e}".split("e")
    if float(mantissa) != 1.0 or abs(int(exponent)) < 3:
        return f"{value:g}"
    return "10" + str(int(exponent)).translate(_SUPERSCRIPTS)


def _simplify(element: ElementTree.Element) -> None:
    """Convert the style of an element to attributes, and its colours to CSS variables."""
    style = element.attrib.pop("style", "")
    for part in filter(None, (part.strip() for part in style.split(";"))):
        name, _, value = (text.strip() for text in part.partition(":"))
        if name == "font":
            element.set("font-size", re.search(r"([\d.]+)px", value)[1])  # type: ignore[index]
        else:
            element.set(name, _VARIABLES.get(value, value))
    for name in list(element.attrib):
        value = element.attrib.pop(name)
        element.set(name.rpartition("}")[2], re.sub(r"\d+\.\d{3,}", _shorten, value))
    element.tail = None if not (element.tail or "").strip() else element.tail
    if element.tag != "text":
        element.text = None if not (element.text or "").strip() else element.text


def _shorten(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Keep only ids that are referenced, and add a prefix to them."""
    pointers = re.compile(r"url\(#(.+?)\)|^#(.+)$")
    names: dict[str, str] = {}
    for element in root.iter():
        for name, value in element.attrib.items():
            found = pointers.search(value) if name in ("clip-path", "href") else None
            if found:
                old = found[1] or found[2]
                new = names.setdefault(old, f"{prefix}-{len(names)}")
                element.set(name, value.replace(f"#{old}", f"#{new}"))
    for element in root.iter():
        old_id = element.attrib.pop("id", None)
        if old_id in names:
            element.set("id", names[old_id])
