"""The contention census: which cache lines a program's threads share, counted under QEMU.

A program that is to be counted in parts says which by ``with ftnumpy.census.window():``; outside the census that does
nothing.  Nothing but the standard library is imported here, because the program's own Python imports it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_MARK = 0x0066746E756D7000  # as in plugin/census.c
_BEGIN, _END = 1, 2


@contextlib.contextmanager
def window() -> Iterator[None]:
    """Count what the calling thread does in the body.  Each thread opens windows of its own; they may be repeated."""
    if "FTNUMPY_CENSUS" not in os.environ:
        yield
        return
    # A file of the thread's own: the mark must not itself touch what other threads touch.
    with open("/dev/zero", "rb", 0) as file:  # noqa: PTH123 - pathlib would be imported into the counted program
        seek = file.seek
        seek(_MARK | _BEGIN)
        try:
            yield
        finally:
            seek(_MARK | _END)
