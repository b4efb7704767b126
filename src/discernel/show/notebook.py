"""Blocks as HTML for notebooks.

Text inherits the colour of the notebook, and the colour of bars is visible on light and dark
backgrounds, so that every theme works.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discernel.show.facts import Block, Row

#: Largest number of rows of a table; the others are summed.
_MOST_ROWS = 10
#: Blocks that are not folded.
_OPEN = ("data", "expected", "importances", "sources")
_STYLE = (
    ".discernel{color:inherit;font:13px/1.45 system-ui,sans-serif;max-width:60em;margin:.5em 0}"
    ".discernel table{border-collapse:collapse;margin:.2em 0 .8em;font:inherit;color:inherit}"
    ".discernel caption{text-align:left;padding:.2em 0;color:inherit;caption-side:top}"
    ".discernel tr,.discernel th,.discernel td{background:none;color:inherit;border:0}"
    ".discernel th,.discernel td{padding:.1em .8em .1em 0;text-align:left;vertical-align:middle;"
    "font-weight:400;max-width:none}"
    ".discernel .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".discernel td.b{width:14em;min-width:8em}"
    ".discernel .bar{height:.8em;background:#3b82c4;border-radius:2px;min-width:1px}"
    ".discernel p{margin:.2em 0 .8em}"
    ".discernel strong{font-weight:600}"
    ".discernel summary{cursor:pointer;font-weight:600}"
)


def notebook_html(blocks: Sequence[Block]) -> str:
    """Return blocks as HTML with its style; details are folded.

    Parameters
    ----------
    blocks : sequence of Block
        Blocks in order.

    Examples
    --------
    >>> block = Block("weights", "weights", rows=(Row(("a", "2"), 2.0), Row(("b", "1"), 1.0)))
    >>> "width:50.0%" in notebook_html([block])
    True
    """
    shown = "".join(_part(block) for block in blocks if block.id in _OPEN)
    folded = "".join(_part(block) for block in blocks if block.id not in _OPEN)
    if folded:
        opened = "" if shown else " open"
        folded = f"<details{opened}><summary>How it was learned</summary>{folded}</details>"
    return f'<div class="discernel"><style>{_STYLE}</style>{shown}{folded}</div>'


def _part(block: Block) -> str:
    block = block.shortened(_MOST_ROWS)
    title = f"<strong>{escape(block.heading)}</strong> {escape(block.aside)}".strip()
    rows = "".join(_row(row, block) for row in block.rows)
    table = f"<table><caption>{title}</caption>{_header(block)}<tbody>{rows}</tbody></table>"
    sentences = "".join(f"<p>{escape(each)}</p>" for each in block.sentences)
    return (table if rows else f"<p>{title}</p>") + sentences


def _header(block: Block) -> str:
    if not any(block.header[2:]):  # tables of two columns need no header
        return ""
    cells = "".join(
        f"<th{_kind(i, block)}>{escape(text)}</th>" for i, text in enumerate(block.header)
    )
    return f"<thead><tr>{cells}</tr></thead>"


def _row(row: Row, block: Block) -> str:
    name, *cells = row.cells
    texts = "".join(f"<td{_kind(i, block)}>{escape(text)}</td>" for i, text in enumerate(cells, 1))
    bar = ""
    if row.value is not None:
        width = 100.0 * max(row.value, 0.0) / (block.largest or 1.0)
        drawn = f'<div class="bar" style="width:{width:.1f}%"></div>'
        bar = f'<td class="b" aria-hidden="true">{drawn}</td>'
    return f'<tr><th scope="row">{escape(name)}</th>{texts}{bar}</tr>'


def _kind(position: int, block: Block) -> str:
    return ' class="n"' if 1 <= position <= block.n_numbers else ""
