"""What the user sees: step lines, progress bars and the closing summary.  Nothing else in the toolchain prints."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

# Without a terminal nothing says how wide a reader's window is; 80 columns would fold every path in a table.
WIDTH = None if sys.stdout.isatty() else 160

# A terminal or a file of another encoding gets question marks where it has no such letter.
for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")

out = Console(highlight=False, soft_wrap=True, width=WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A plain line of result."""
    out.print(text, markup=False)


def warn(text: str) -> None:
    """A line that must not be overlooked, on standard error."""
    err.print(f"warning: {text}", style="bold yellow", markup=False)


def fail(text: str) -> None:
    """The one error that ends a run, on standard error."""
    err.print(f"error: {text}", style="bold red", markup=False)


def duration(seconds: float) -> str:
    """``seconds`` for a reader: ``0.4 s``, ``12 s``, ``3 min 07 s``."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


@contextmanager
def transfer(description: str, total: int, start: int = 0) -> Iterator[Progress]:
    """A progress bar of bytes; ``progress.update(progress.task_ids[0], advance=n)`` moves it.  Silent without a
    terminal, where a bar would fill the log."""
    columns = (
        TextColumn("  {task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out, transient=True, disable=not sys.stdout.isatty()) as progress:
        progress.add_task(description, total=total, completed=start)
        yield progress


@contextmanager
def counter(description: str, total: int) -> Iterator[Progress]:
    """A progress bar of ``total`` pieces of work, moved like `transfer`'s; silent without a terminal."""
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True, disable=not sys.stdout.isatty()) as progress:
        progress.add_task(description, total=total)
        yield progress


@dataclass(frozen=True)
class Row:
    """One line of a closing summary."""

    what: str
    seconds: float
    result: str
    log: Path | None = None


@dataclass
class Summary:
    """What a session did, step by step, shown as a table when it closes, whether it went well or not.

    ``builds`` holds, by variant, the fingerprints of the interpreter and of the wheel that it did it with.
    """

    title: str
    rows: list[Row] = field(default_factory=list)
    builds: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @contextmanager
    def step(self, what: str, log: Path | None = None) -> Iterator[list[str]]:
        """Time a step and record it.  The body may append to the yielded list; its last entry becomes the result
        (default ``ok``)."""
        start = time.monotonic()
        result: list[str] = []
        out.print(f"• {what}…", markup=False)
        try:
            yield result
        except BaseException:
            self.rows.append(Row(what, time.monotonic() - start, "failed", log))
            out.print(f"✗ {what}: failed after {duration(time.monotonic() - start)}", style="red", markup=False)
            raise
        seconds = time.monotonic() - start
        self.rows.append(Row(what, seconds, result[-1] if result else "ok", log))
        out.print(f"✓ {what}: {self.rows[-1].result}, {duration(seconds)}", style="green", markup=False)

    def show(self) -> None:
        table = Table(title=self.title, title_justify="left")
        table.add_column("what")
        table.add_column("time", justify="right")
        table.add_column("result")
        table.add_column("log", overflow="fold")
        for row in self.rows:
            table.add_row(row.what, duration(row.seconds), row.result, str(row.log or ""))
        out.print(table)
