"""Reports for readers: the figures and names of a census in tables and pages, and pages that need nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from census_samples import (
    HANDLER,
    HANDLER_LINE,
    INCREF,
    NO_DEBUG,
    PATCHED,
    PREDICTION,
    REPORT,
    REPORT_WITH_ALL,
    SIN,
    STOCK,
    census,
    line,
)

from ftnumpy.census import grids, page, table, wording
from ftnumpy.census.compare import compare
from ftnumpy.census.report import Report
from ftnumpy.census.tally import Frame, Owner

VOID = ("meta", "br", "link", "img", "hr", "input")


class Page(HTMLParser):
    """Tags that are balanced, the text of each table's rows, and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += f"{data} "


def read(text: str) -> Page:
    found = Page(text)
    assert found.open == []
    return found


PAGES = [
    page.report(REPORT_WITH_ALL),
    page.comparison([compare(["stock", "patched"], [STOCK, PATCHED])]),
    page.overview([REPORT], [Path("/somewhere/kernel.html")]),
]


@pytest.mark.parametrize("text", PAGES, ids=["report", "comparison", "overview"])
def test_a_page_is_whole_and_needs_nothing_else(text: str) -> None:
    found = read(text)
    assert text.startswith("<!DOCTYPE html>") and 'lang="en"' in text and "prefers-color-scheme: dark" in text
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img", text)
    assert [value for name, value in found.attributes if name in ("src", "href")] in ([], ["kernel.html"])


def test_a_report_has_every_line_word_and_site() -> None:
    text = read(page.report(REPORT)).text
    for told in ("PyCapsule mem_handler", "ob_ref_shared", "+24", "PyArray_NewFromDescr_int ctors.c:810", "libc.so.6"):
        assert told in text
    assert "a model" not in text and "native run" not in text


def test_the_native_run_and_the_model_are_shown_where_there_are_any() -> None:
    text = read(page.report(REPORT_WITH_ALL)).text
    for told in ("9,500 (9,250 to 9,700)", "FUTEX_WAIT_PRIVATE (under strace)", "bpftrace needs root", "900,000"):
        assert told in text
    assert "handover ns 55.50" in re.sub(r"\s+", " ", text) and "between processors 0 and 1" in text
    assert "1.50 times as long as at 1 in the model and 1.60 times by the clock (-6%; 7 rounds" in text


def test_names_are_text_not_markup() -> None:
    hostile = census(line((Owner(kind="str", name="<script>[bold]&", field=""), 2)))
    assert "<script>" not in page.report(Report(census=hostile, native=None, prediction=None))
    assert "<script>[bold]&" in read(page.report(Report(census=hostile, native=None, prediction=None))).text


def test_a_census_that_found_nothing_says_so() -> None:
    nothing = Report(census=census(), native=None, prediction=None)
    assert "No line is both shared and written." in read(page.report(nothing)).text
    assert grids.overview([nothing.census]).rows[0][:4] == ("kernel", "0", "0", "0")


def test_lines_as_a_grid() -> None:
    grid = grids.lines(STOCK)
    assert grid.rows[0] == (
        "PyCapsule mem_handler",
        *("16", "0", "2", "3.50", "2"),
        "true",
        "PyDataMem_GetHandler alloc.c:420 ← PyArray_NewFromDescr_int ctors.c:810",
    )
    assert grid.rows[2][-2:] == ("false", "pthread_rwlock_rdlock libc.so.6")
    assert grid.sums[0][:3] == ("sum", "22", "1")


def test_a_comparison_says_before_after_and_who() -> None:
    grid = grids.comparison(compare(["stock", "patched"], [STOCK, PATCHED]))
    assert [row[:3] for row in grid.rows] == [
        ("PyCapsule mem_handler", "16", "0"),
        ("ufunc np.sin", "4", "4"),
        ("block PyArrayIdentityHash_New", "2 (+1)", "0"),
    ]
    assert grid.rows[0][3].startswith("PyDataMem_GetHandler alloc.c:420")
    assert grid.sums[0][:3] == ("sum", "22 (+1)", "4")


def test_every_row_has_a_cell_for_every_column() -> None:
    for grid in (
        grids.lines(STOCK),
        grids.overview([STOCK, PATCHED]),
        grids.comparison(compare(["a", "b", "c"], [STOCK, PATCHED, STOCK])),
        grids.syscalls(STOCK),
        *([grids.native(REPORT_WITH_ALL.native)] if REPORT_WITH_ALL.native else []),
        grids.points(PREDICTION),
        grids.costs(PREDICTION),
        grids.inputs(PREDICTION),
    ):
        assert grid.rows and {len(row) for row in (*grid.rows, *grid.sums)} == {len(grid.columns)}


def test_the_console_shows_the_first_rows_and_how_many_more(capsys: pytest.CaptureFixture[str]) -> None:
    owners = [Owner(kind="type", name=f"[t{number}]", field="") for number in range(table.ROWS + 3)]
    table.show(grids.lines(census(*(line((owner, 1), address=64 * at) for at, owner in enumerate(owners)))))
    shown = capsys.readouterr().out
    assert f"type [t{table.ROWS - 1}]" in shown and f"type [t{table.ROWS}]" not in shown
    assert "3 more" in shown and re.search(rf"│ sum +│ +{table.ROWS + 3} │", shown)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (64, "64"),
        (63.996, "64"),
        (0.25, "0.25"),
        (0.001, "<0.01"),
        (1234567, "1,234,567"),
        (0.99, "0.99"),
        (40880.24, "40,880"),
    ],
)
def test_figures_are_whole_where_they_are(value: float, said: str) -> None:
    assert wording.figure(value) == said


def test_a_site_is_told_by_places_that_say_who_writes() -> None:
    assert wording.writer(HANDLER_LINE) == "PyDataMem_GetHandler alloc.c:420 ← PyArray_NewFromDescr_int ctors.c:810"
    assert wording.chain((INCREF,)) == "_Py_atomic_add_ssize pyatomic_gcc.h:72"
    assert wording.chain((NO_DEBUG,)) == "pthread_rwlock_rdlock libc.so.6"
    assert wording.chain(()) == "" and wording.writer(line((SIN, 1), (HANDLER, 1))) == ""
    included = Frame(function="_PyEval_EvalFrameDefault", file="/src/Python/generated_cases.c.h", line=835)
    extension = Frame(function="array_dealloc", file="/x/_multiarray_umath.cpython-313t-x86_64-linux-gnu.so", line=0)
    assert wording.chain((INCREF, extension, NO_DEBUG, included)) == (
        "array_dealloc _multiarray_umath.so ← _PyEval_EvalFrameDefault generated_cases.c.h:835"
    )


def test_a_program_counted_as_a_whole_is_not_said_to_be_per_iteration() -> None:
    assert "of the whole run" in grids.lines(census(iterations=1)).title
