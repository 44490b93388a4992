"""The table of what threads may do with arrays: what launches found, in words, and a page without marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftnumpy import semantics
from ftnumpy.errors import UsageError


def test_losses_are_shares_of_the_updates() -> None:
    launches = (
        {"operations": 100, "updates": 800, "lost": 8, "wrong": 0},
        {"operations": 100, "updates": 800, "lost": 8},
    )
    assert semantics._found(launches) == "200 operations; 16 lost (1%)"


def test_crashes_are_counted_by_process() -> None:
    launches = ({"signal": 11}, {"signal": 6}, {"operations": 50})
    assert semantics._found(launches) == "2 of 3 processes crashed; 50 operations"


def test_all_processes_crashed() -> None:
    assert semantics._found(({"signal": 11},) * 3) == "3 of 3 processes crashed"


def test_a_row_of_the_table() -> None:
    row = semantics.Measured(title="t", code="a[0] += 1", verdict="safe", note="n", launches=({"operations": 1},))
    assert semantics.grid([row], "stock").rows == (("t", "`a[0] += 1`", "safe", "1 operations", "n"),)


def test_a_page_is_split_at_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{semantics.BEGIN}\nold\n{semantics.END}\nafter\n")
    assert semantics._marked(page) == ("before\n", "\nafter\n")


@pytest.mark.parametrize("text", ["", semantics.BEGIN, semantics.END])
def test_a_page_without_marks_is_refused(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(UsageError, match="restore them"):
        semantics._marked(page)
    with pytest.raises(UsageError, match="restore them"):
        semantics._marked(tmp_path / "absent.md")
