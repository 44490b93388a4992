"""docs/performance.md: its figures are written by the command that measured them, between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ftnumpy.census import report
from ftnumpy.census.grids import Grid
from ftnumpy.errors import UsageError

BEGIN = "<!-- scaling: written by nox -s scaling; edits are lost -->"
END = "<!-- scaling: end -->"
MARKED = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def table(grid: Grid) -> str:
    """``grid`` as a table with its title above and its notes below."""
    rule = ["---" if place in grid.words else "---:" for place in range(len(grid.columns))]
    rows = [" | ".join(map(_cell, row)) for row in (grid.columns, rule, *grid.rows, *grid.sums)]
    return "\n".join([f"**{grid.title}**", "", *(f"| {row} |" for row in rows), *(f"\n{note}" for note in grid.notes)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def section(grids: Sequence[Grid], pictures: Sequence[tuple[str, str]]) -> str:
    """All of ``grids`` and ``pictures``, which are titles and file names."""
    return "\n\n".join([*map(table, grids), *(f"![{title}]({name})" for title, name in pictures)])


def check(page: Path) -> None:
    """Raises `UsageError` unless ``page`` has the marks."""
    if not MARKED.search(page.read_text(encoding="utf-8") if page.exists() else ""):
        raise UsageError(f"{page} lacks the lines {BEGIN} and {END}, between which the figures belong; restore them")


def insert(page: Path, text: str) -> None:
    """Replace what stands between the marks of ``page``, whole or not at all.  Raises `UsageError` without marks."""
    check(page)
    old = page.read_text(encoding="utf-8")
    report.write(page, MARKED.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", old, count=1))
