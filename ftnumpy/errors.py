"""Every way to fail, each with its exit code and what the user can do about it.

An error's message is the whole story for its reader: what went wrong, where, and what to do.  ``ftnumpy.__main__``
prints it and exits with ``exit_code``; a traceback reaches the user only when the toolchain itself is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class FtnumpyError(Exception):
    """Base of all failures that the user is told about without a traceback."""

    exit_code = 1


class UsageError(FtnumpyError):
    """The command line, an environment variable or ``stack.toml`` says something that can't be meant."""

    exit_code = 2


class SourceError(FtnumpyError):
    """A release archive can't be had."""

    exit_code = 3


class ArchiveNotFound(SourceError):
    """No channel has a release archive.  ``reasons`` holds (channel, why it did not have it)."""

    def __init__(
        self, release: str, archive: str, sha256: str, folder: Path, reasons: Sequence[tuple[str, str]]
    ) -> None:
        tried = "\n".join(f"  {channel}: {why}" for channel, why in reasons)
        super().__init__(
            f"no channel has {archive} ({release}):\n{tried}\n"
            f"By hand: put {archive} (sha256 {sha256}) into {folder}, or into a folder named by FTNUMPY_SOURCES."
        )
        self.release, self.archive, self.reasons = release, archive, tuple(reasons)


class HashMismatch(SourceError):
    """A channel served other bytes than the pinned ones."""

    def __init__(self, file: str, channel: str, expected: str, found: str) -> None:
        super().__init__(
            f"{file} from channel '{channel}' is not the pinned archive:\n"
            f"  expected sha256 {expected}\n"
            f"  found    sha256 {found}\n"
            "It was not kept. If upstream re-made the release, check it and change the hash in stack.toml."
        )
        self.file, self.channel, self.expected, self.found = file, channel, expected, found


class PatchError(FtnumpyError):
    """A queue is malformed or does not apply."""

    exit_code = 4


class PrerequisiteError(FtnumpyError):
    """Something that the machine must have is missing."""

    exit_code = 5


class BuildError(FtnumpyError):
    """A build ended without what it was to make."""

    exit_code = 6


class CommandFailed(BuildError):
    """A command that we ran returned non-zero, ran past its time or could not be started."""

    def __init__(self, what: str, reason: str, log: Path, last_lines: Sequence[str]) -> None:
        tail = "\n".join(f"  | {line}" for line in last_lines)
        super().__init__(f"{what} failed: {reason}\n{tail}\n  whole log: {log}")
        self.what, self.reason, self.log, self.last_lines = what, reason, log, tuple(last_lines)


class TestsFailed(FtnumpyError):
    """The tests ran and some failed."""

    __test__ = False  # for pytest, which would take it for a test class
    exit_code = 7


class BudgetExceeded(FtnumpyError):
    """A workload makes more locked shared writes than ``census.toml`` allows."""

    exit_code = 8


class SlowerThanStock(FtnumpyError):
    """On one thread, patched gains too little or loses too much."""

    exit_code = 9


class SanitizerFindings(FtnumpyError):
    """A sanitizer reports what ``sanitizers.toml`` doesn't know, or what lies in code that patches touch."""

    exit_code = 10
