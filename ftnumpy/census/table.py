"""Grids on the console."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ftnumpy import console
from ftnumpy.census.grids import Grid

ROWS = 30  # of a grid that are shown; pages and files have all


def show(grid: Grid) -> None:
    """Print ``grid`` with its notes below it, at most `ROWS` of its rows."""
    table = Table(title=Text(grid.title), title_justify="left")
    for place, heading in enumerate(grid.columns):
        words = place in grid.words
        table.add_column(Text(heading), justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in grid.rows[:ROWS]:
        table.add_row(*map(Text, row))
    left_out = len(grid.rows) - ROWS
    if left_out > 0:
        table.add_row(f"{left_out} more")
    table.add_section()
    for row in grid.sums:
        table.add_row(*map(Text, row))
    console.out.print(table)
    for note in grid.notes:
        console.say(f"  {note}")
