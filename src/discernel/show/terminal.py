"""Blocks on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discernel.show.facts import Block, Row
from discernel.show.words import one_line

_BAR = 24
#: Largest numbers of rows, if the other rows are summed, and if they are not.
_MOST_ROWS, _MOST_LISTED = 10, 40
_INDENT = 2


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
        print_heading(console, block.title, block.aside, first=i == 0)
        if block.rows:
            indented(console, _table(block.shortened(_MOST_ROWS)))
        for sentence in block.sentences:
            say(console, sentence, "" if block.id == "data" else "dim")


def print_heading(console: Console, words: str, aside: str = "", *, first: bool = False) -> None:
    """Print a title and a note, on one line if there is space."""
    title, rest = Text(one_line(words), style="bold"), Text(one_line(aside), style="dim")
    if not first:
        console.print()
    if len(title) + 2 + len(rest) > console.width:
        console.print(title)
        say(console, aside, "dim")
    else:
        console.print(Text("  ").join([title, rest] if rest else [title]))


def say(console: Console, words: str, style: str = "", indent: int = _INDENT) -> None:
    """Print a sentence, indented."""
    indented(console, Text(one_line(words), style=style), indent)


def indented(console: Console, what: RenderableType, indent: int = _INDENT) -> None:
    """Print a renderable, indented."""
    console.print(Padding(what, (0, 0, 0, indent)))


def bar(share: float, length: int = _BAR) -> Text:
    """Return a bar for a share of the full length; negative shares have another colour."""
    drawn = "█" * round(length * min(1.0, abs(share)))
    return Text(drawn, style="cyan" if share >= 0 else "red")


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
    style = "bold" if row.is_highlighted else ""
    cells = [Text(one_line(text), style=style) for text in row.cells]
    return cells if row.value is None else [*cells, bar(row.value / (largest or 1.0))]
