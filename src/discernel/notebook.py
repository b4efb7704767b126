"""Small pieces of HTML for notebooks: bars, facts, panels. They know numbers and names only.

Text takes the colour of the notebook, and bars one that is seen on light and on dark ground, so
that no theme needs to be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["HtmlBar", "bars", "facts", "panel", "top_bars"]

_STYLE = (
    ".discernel{color:inherit;font:13px/1.45 system-ui,sans-serif;max-width:60em;margin:.5em 0}"
    ".discernel table{border-collapse:collapse;margin:.2em 0 .8em;font:inherit;color:inherit}"
    ".discernel caption{text-align:left;font-weight:600;padding:.2em 0;color:inherit;"
    "caption-side:top}"
    ".discernel tr,.discernel th,.discernel td{background:none;color:inherit;border:0}"
    ".discernel th,.discernel td{padding:.1em .8em .1em 0;text-align:left;vertical-align:middle;"
    "font-weight:400;max-width:none}"
    ".discernel td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".discernel td.b{width:14em;min-width:8em}"
    ".discernel .bar{height:.8em;background:#3b82c4;border-radius:2px;min-width:1px}"
    ".discernel p{margin:.2em 0 .8em}"
    ".discernel .note{font-style:italic}"
    ".discernel strong{font-weight:600}"
    ".discernel summary{cursor:pointer;font-weight:600}"
)


@dataclass(frozen=True)
class HtmlBar:
    """A bar: its name, its length, and what stands beside it."""

    name: str
    value: float
    text: str


def bars(title: str, rows: Sequence[HtmlBar], note: str = "") -> str:
    """Return a table of bars, as long as their values beside the largest.

    Parameters
    ----------
    title : str
        What the bars show.
    rows : sequence of HtmlBar
        From the top.
    note : str, default=""
        What a reader must know.

    Examples
    --------
    >>> "width:50.0%" in bars("weights", [HtmlBar("a", 2.0, "2"), HtmlBar("b", 1.0, "1")])
    True
    """
    largest = max((row.value for row in rows), default=0.0) or 1.0
    lines = [
        f'<tr><th scope="row">{escape(row.name)}</th><td class="n">{escape(row.text)}</td>'
        f'<td class="b" aria-hidden="true"><div class="bar" style="width:'
        f'{100.0 * max(row.value, 0.0) / largest:.1f}%"></div></td></tr>'
        for row in rows
    ]
    table = f"<table><caption>{escape(title)}</caption><tbody>{''.join(lines)}</tbody></table>"
    return table + (f'<p class="note">{escape(note)}</p>' if note else "")


def top_bars(
    names: Sequence[str],
    values: Sequence[float],
    texts: Sequence[str],
    *,
    most: int = 10,
    what: str = "kernels",
) -> list[HtmlBar]:
    """Return bars of the largest values, and one for what the others have together.

    Parameters
    ----------
    names, values, texts : sequence
        One of each per bar.
    most : int, default=10
        So many have a bar of their own.
    what : str, default="kernels"
        What the others are.
    """
    order = sorted(range(len(names)), key=lambda i: -values[i])
    found = [HtmlBar(names[i], float(values[i]), texts[i]) for i in order[:most]]
    rest = [float(values[i]) for i in order[most:]]
    if rest:
        found.append(HtmlBar(f"{len(rest)} other {what}", sum(rest), f"{sum(rest):z.3f}"))
    return found


def facts(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and what is known of them.

    Parameters
    ----------
    title : str
        What it is about.
    pairs : iterable of (str, str)
        Name and fact.
    """
    lines = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(fact)}</td></tr>'
        for name, fact in pairs
    ]
    return f"<table><caption>{escape(title)}</caption><tbody>{''.join(lines)}</tbody></table>"


def panel(*parts: str) -> str:
    """Return pieces of HTML as one, with the style that they need.

    Parameters
    ----------
    *parts : str
        What the other functions return.
    """
    return f'<div class="discernel"><style>{_STYLE}</style>{"".join(parts)}</div>'
