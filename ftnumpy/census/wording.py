"""How a census's figures and places are said, on the console, in pages and in errors alike."""

from __future__ import annotations

from pathlib import PurePath

from ftnumpy.census.tally import Census, Frame, Line, Site
from ftnumpy.census.timing import LineCost


def figure(value: float) -> str:
    """A figure per iteration: whole where it is whole to 0.005, else with 2 decimals; ``<0.01`` for less than that."""
    if value and abs(value) < 0.005:
        return "<0.01"
    whole = round(value)
    return f"{whole:,}" if abs(value - whole) < 0.005 else f"{value:,.2f}"


def place(frame: Frame) -> str:
    """``function file:line``, or ``function object-file`` where no debug information exists."""
    file = PurePath(frame.file).name
    where = f"{file}:{frame.line}" if frame.line else file
    return f"{frame.function} {where}".strip()


def told(site: Site) -> tuple[Frame, ...]:
    """The site's frames from the first one that tells something: functions that headers inline say only how an object
    is written, not who does it."""
    outside = (at for at, frame in enumerate(site.frames) if not frame.file.endswith(".h"))
    return site.frames[next(outside, 0) :]


def chain(frames: tuple[Frame, ...], depth: int = 2) -> str:
    """The innermost ``depth`` of ``frames``, the innermost first."""
    return " ← ".join(place(frame) for frame in frames[:depth])


def caller(site: Site) -> str:
    """Who writes, and who had it do so."""
    return chain(told(site))


def writer(line: Line) -> str:
    """Who writes most to ``line``."""
    return caller(line.sites[0]) if line.sites else ""


def sharing(line: Line | LineCost) -> str:
    return "true" if line.true_sharing else "false"


def per(census: Census) -> str:
    """What the figures of ``census`` are counts of."""
    return "per iteration and thread" if census.iterations > 1 else "per thread, of the whole run"
