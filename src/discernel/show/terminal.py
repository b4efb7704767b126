"""Blocks on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discernel.show.facts import Block, Row
from discernel.show.words import one_line

#: Length of the longest bar, in characters.
_BAR = 24
#: Largest numbers of rows, if the other rows are summed, and if they are not.
_MOST_ROWS, _MOST_LISTED = 10, 40


def print_blocks(console: Console, blocks: Sequence[Block], without: Collection[str] = ()) -> None:
    """Print blocks one below the other.

    Parameters
    ----------
    console : Console
        The terminal.
    blocks : sequence of Block
        Blocks, such as those of `ModelFacts.blocks`.
    without : collection of str
        Ids of blocks to omit.
    """
    for i, block in enumerate(each for each in blocks if each.id not in without):
        title, aside = Text(one_line(block.title), "bold"), Text(one_line(block.aside), "dim")
        if i:
            console.print()
        if len(title) + 2 + len(aside) > console.width:
            console.print(title)
            console.print(_indented(aside))
        else:
            console.print(Text("  ").join([title, aside] if aside else [title]))
        if block.rows:
            console.print(_indented(_table(block.shortened(_MOST_ROWS))))
        for sentence in block.sentences:
            style = "" if block.id in ("data", "row") else "dim"
            console.print(_indented(Text(one_line(sentence), style)))


def _indented(what: RenderableType) -> Padding:
    """Return a renderable, indented by two characters."""
    return Padding(what, (0, 0, 0, 2))


def plain_table(*columns: str | Text, header: bool = True) -> Table:
    """Return an empty table; ">" marks columns of numbers, "~" columns of text that may wrap."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header)
    for column in columns:
        mark = str(column)[:1]
        name = column if isinstance(column, Text) else Text(column.lstrip(">~"))
        table.add_column(name, justify="right" if mark == ">" else "left", no_wrap=mark != "~")
    return table


def _table(block: Block) -> Table:
    names = block.header or ("",) * len(block.rows[0].cells)
    numbers = range(1, block.n_numbers + 1)
    marked = [f"{'>' if i in numbers else '~'}{name}" for i, name in enumerate(names)]
    table = plain_table(*marked, "", header=any(block.header[2:]))
    for row in block.rows[:_MOST_LISTED]:
        table.add_row(*_cells(row, block.largest))
    if (n_others := len(block.rows) - _MOST_LISTED) > 0:
        table.add_row(Text(f"{n_others:,} more", style="dim"), Text("--json lists all", "dim"))
    return table


def _cells(row: Row, largest: float) -> list[Text]:
    """Return the cells of a row, and its bar, which has another colour if its value is negative."""
    style = "bold" if row.is_highlighted else ""
    cells = [Text(one_line(text), style=style) for text in row.cells]
    if row.value is None:
        return cells
    drawn = "█" * round(_BAR * abs(row.value) / (largest or 1.0))
    return [*cells, Text(drawn, style="cyan" if row.value >= 0 else "red")]
