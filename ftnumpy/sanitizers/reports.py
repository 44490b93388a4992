"""What a sanitizer wrote, as data: each report with the stacks that it accuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

UNKNOWN = "?"

# The sanitizer's own code, the compiler's headers, and CPython's headers of inline helpers: they are in every stack and
# tell nothing.
HELPERS = re.compile(r"(?:^|/)(?:libsanitizer|usr/include|usr/lib|Include)/|pyatomic_\w+\.h$|npy_atomic\.h$")

# "#1 name file:line:column (module+0x12) (BuildId: 34)"; ASan writes "#1 0x12 in name file:line:column".
FRAME = re.compile(
    r"^\s+#\d+ (?:0x[0-9a-f]+ in )?(?P<name>.*?)(?: (?P<file>[^\s()]\S*?):(?P<line>\d+)(?::\d+)?| <null>)?$"
)
MODULE = re.compile(r" \([^()]*\+0x[0-9a-f]+\)(?: \(BuildId: \w+\))?$")

TSAN = re.compile(r"^WARNING: ThreadSanitizer: (?P<kind>.+?) \(pid=\d+\)")
ASAN = re.compile(r"^==\d+==\s*ERROR: AddressSanitizer: (?P<kind>[\w-]+)")
UBSAN = re.compile(r"^(?P<file>\S+):(?P<line>\d+):\d+: runtime error: (?P<kind>.+)$")
# What differs between two reports of one mistake: numbers, addresses, types.
PARTICULARS = re.compile(r"0x[0-9a-f]+|'[^']*'|-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b|-?\b(?:nan|inf)\b")


@dataclass(frozen=True)
class Frame:
    """A call on a stack.  ``file`` is a path as the compiler was given it; empty, with ``line`` 0, where that isn't
    known."""

    function: str
    file: str
    line: int

    @property
    def helper(self) -> bool:
        return bool(HELPERS.search(self.file)) or (not self.file and self.function.startswith("__"))

    def __str__(self) -> str:
        return f"{self.function} {self.file}:{self.line}" if self.file else self.function


@dataclass(frozen=True)
class Access:
    """A stack that a report accuses, innermost call first; empty where the sanitizer has forgotten it."""

    what: str
    frames: tuple[Frame, ...]

    @property
    def culprits(self) -> tuple[Frame, ...]:
        """The innermost call that isn't a helper's, after the helpers that it was in."""
        for number, frame in enumerate(self.frames):
            if not frame.helper:
                return self.frames[: number + 1]
        return self.frames

    @property
    def function(self) -> str:
        return self.culprits[-1].function if self.frames else UNKNOWN


@dataclass(frozen=True)
class Report:
    """One report.  ``kind`` in the sanitizer's words; ``text`` is all that it wrote."""

    kind: str
    accesses: tuple[Access, ...]
    text: str

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """What tells one mistake from another: its kind and the functions accused, in the order of the alphabet."""
        return self.kind, tuple(sorted(access.function for access in self.accesses))


def read_folder(folder: Path) -> list[Report]:
    """The reports in all files of ``folder``, one file a process."""
    return [
        report
        for path in sorted(folder.iterdir())
        for report in read(path.read_text(encoding="utf-8", errors="replace"))
    ]


def read(text: str) -> list[Report]:
    """The reports in ``text``, in order."""
    reports = []
    for block in _blocks(text.splitlines()):
        heading = block[0]
        if found := UBSAN.match(heading):
            frames = _frames(block[1:]) or (Frame(UNKNOWN, found["file"], int(found["line"])),)
            kind, accesses = PARTICULARS.sub("…", found["kind"]), [Access(heading, frames)]
        else:
            found = TSAN.match(heading) or ASAN.match(heading)
            assert found is not None
            kind, accesses = found["kind"], list(_accesses(block[1:], two="race" in found["kind"]))
        reports.append(Report(kind=kind, accesses=tuple(accesses), text="\n".join(block)))
    return reports


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """From each report's heading up to its end: a rule, or the next heading."""
    block: list[str] = []
    for line in lines:
        heading = TSAN.match(line) or ASAN.match(line) or UBSAN.match(line)
        if (heading or line.startswith("=====")) and block:
            yield block
            block = []
        if heading or (block and not line.startswith("=====")):
            block.append(line)
    if block:
        yield block


def _accesses(lines: list[str], *, two: bool) -> Iterator[Access]:
    """The first stack, and the second one of a race.  What follows tells where memory, threads and locks come from."""
    stacks: list[Access] = []
    heading: str | None = None
    body: list[str] = []
    for line in [*lines, ""]:
        if line.strip() and not line.lstrip().startswith(("#", "[failed to restore")):
            heading = line.strip().rstrip(":") if heading is None or not body else heading
        elif line.strip():
            body.append(line)
        elif heading is not None and body:
            stacks.append(Access(heading, _frames(body)))
            heading, body = None, []
    yield from stacks[: 2 if two else 1]


def _frames(lines: list[str]) -> tuple[Frame, ...]:
    frames = []
    for line in lines:
        found = FRAME.match(MODULE.sub("", line))
        if found is not None:
            path = str(PurePosixPath(found["file"])) if found["file"] else ""
            frames.append(Frame(plain_name(found["name"]), path, int(found["line"] or 0)))
        elif frames:
            break
    return tuple(frames)


def plain_name(name: str) -> str:
    """A function's name as its source has it: without arguments, namespaces without a name, and what the optimiser
    hangs on."""
    name = name.replace("(anonymous namespace)::", "").strip()
    name = re.sub(r"\.(?:part|constprop|isra|cold|lto_priv)\b.*$", "", name)
    return re.sub(r"\(.*$", "", name) or UNKNOWN
