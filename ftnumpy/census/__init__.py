"""The contention census: which cache lines a program's threads share, counted under QEMU.

A program that is to be counted in parts says which by ``with ftnumpy.census.window():``; outside the census that does
nothing.  Nothing but the standard library is imported here, because the program's own Python imports it.
"""

from __future__ import annotations

import os
from types import TracebackType

_MARK = 0x0066746E756D7000  # as in plugin/census.c
_BEGIN, _END = 1, 2


class window:
    """``with window():`` counts what the calling thread does in the body.  Every thread opens windows of its own, as
    often as it likes; windows of one thread don't overlap."""

    def __enter__(self) -> None:
        self._file = None
        if "FTNUMPY_CENSUS" in os.environ:
            # All that the marks need is the window's own: they must not themselves touch what other threads touch.
            self._file = open("/dev/zero", "rb", 0)  # noqa: PTH123 - pathlib would be imported into the program
            self._end = _MARK | _END
            self._seek = self._file.seek
            self._seek(_MARK | _BEGIN)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._seek(self._end)
            self._file.close()
