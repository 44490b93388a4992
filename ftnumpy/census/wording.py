"""How a census's figures and places are said, on the console, in pages and in errors alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from ftnumpy.census.count import HELPERS
from ftnumpy.census.tally import Census, Frame, Line
from ftnumpy.census.timing import LineCost


def figure(value: float) -> str:
    """A figure as it is said: whole where it is whole to 0.005 or at least 1000, else with 2 decimals; ``<0.01`` for
    less than half of that."""
    if value and abs(value) < 0.005:
        return "<0.01"
    whole = round(value)
    return f"{whole:,}" if abs(value - whole) < 0.005 or abs(value) >= 1000 else f"{value:,.2f}"


def place(frame: Frame) -> str:
    """``function file:line``, or ``function object-file`` where no debug information exists."""
    # An extension's file name has the interpreter's and the machine's in it.
    file = re.sub(r"\.cpython-[^.]*", "", PurePath(frame.file).name)
    where = f"{file}:{frame.line}" if frame.line else file
    return f"{frame.function} {where}".strip()


def chain(frames: Sequence[Frame], depth: int = 2) -> str:
    """The innermost ``depth`` of ``frames`` that tell something, the innermost first: what headers inline, and what
    counts references or takes locks, says only how an object is written, not who does it."""
    telling = [frame for frame in frames if not HELPERS.fullmatch(frame.function) and not _header(frame.file)]
    return " ← ".join(place(frame) for frame in (telling or frames)[:depth])


def _header(file: str) -> bool:
    """``generated_cases.c.h`` and its kin are no headers but code that is included."""
    return file.endswith(".h") and not file.endswith(".c.h")


def writer(line: Line) -> str:
    """Who writes most to ``line``."""
    return chain(line.sites[0].frames) if line.sites else ""


def sharing(line: Line | LineCost) -> str:
    return "true" if line.true_sharing else "false"


def per(census: Census) -> str:
    """What the figures of ``census`` are counts of."""
    return "per iteration and thread" if census.iterations > 1 else "per thread, of the whole run"
