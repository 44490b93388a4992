"""One patch file, read: who, when, why, and the hunks per file."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

# A regular patch says nothing of where it was made.
FROM_LINE = f"From {'0' * 40} Mon Sep 17 00:00:00 2001"
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SLUG_END = 64 - len(".patch") - 1


class Malformed(Exception):
    """What is wrong with a patch file, and in which line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """``header`` is the whole @@ line; ``before`` is what the patch expects in the file, without line ends."""

    header: str
    before: tuple[str, ...]
    added: int
    removed: int

    @property
    def place(self) -> str:
        """The header without the line of context that git puts behind it: ``@@ -1,3 +1,4 @@``."""
        return self.header[: self.header.index("@@", 2) + 2]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """A file that a patch changes; no hunks when it is binary or only its mode changes."""

    path: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, kw_only=True)
class PatchText:
    """A parsed patch file.  ``oddities`` are what git accepts but ``export`` would write otherwise."""

    sender: str
    date: str
    subject: str
    body: str
    files: tuple[FileChange, ...]
    oddities: tuple[str, ...]


def file_name(number: int, subject: str) -> str:
    """The name that ``git format-patch`` gives to the patch at position ``number`` (from 1)."""
    slug = re.sub(r"\.+", ".", re.sub(r"[^A-Za-z0-9._]+", "-", subject).lstrip("-")).rstrip("-.")
    return f"{number:04d}-{slug}"[:_SLUG_END] + ".patch"


def parse(content: bytes) -> PatchText:
    """Read a patch file.  Raises `Malformed`."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Malformed(line, f"byte 0x{content[error.start]:02x} is not UTF-8") from None
    if not text.endswith("\n"):
        raise Malformed(text.count("\n") + 1, "the file is empty or its last line has no line end")
    lines = text[:-1].split("\n")
    oddities: list[str] = []
    if not lines[0].startswith("From "):
        raise Malformed(1, f"is not '{FROM_LINE}', with which git format-patch begins a patch")
    if lines[0] != FROM_LINE:
        oddities.append(f"line 1: is not '{FROM_LINE}'")
    start = next((number for number, line in enumerate(lines) if line.startswith("diff --git ")), None)
    for number, text_line in enumerate(lines[:start], 1):
        if text_line.endswith("\r"):
            raise Malformed(number, "ends in CR LF; headers and message must end in LF alone")
    if start is None:
        raise Malformed(len(lines), "there is no diff (no line 'diff --git …')")
    blank = lines.index("", 0, start) if "" in lines[:start] else None
    if blank is None:
        raise Malformed(start, "no blank line ends the headers")
    headers = _headers(lines[1:blank])
    message = lines[blank + 1 : start]
    if "---" in message:
        at = message.index("---")
        oddities.append(f"line {blank + at + 2}: text between message and diff, which git leaves out of the commit")
        message = message[:at]
    body = "\n".join(message).strip("\n")
    if not body.strip():
        raise Malformed(blank + 1, "the message has no body; it must say why the patch exists")
    files, end = _files(lines, start)
    if end < len(lines):
        if lines[end] not in ("-- ", ""):
            raise Malformed(end + 1, f"text after the end of the diff: {lines[end]!r}")
        oddities.append(f"line {end + 1}: a git version or blank lines after the end of the diff")
    return PatchText(
        sender=headers["From"],
        date=headers["Date"],
        subject=headers["Subject"],
        body=body,
        files=files,
        oddities=tuple(oddities),
    )


def _headers(lines: list[str]) -> dict[str, str]:
    """From, Date and Subject, the latter without its [PATCH]."""
    headers: dict[str, str] = {}
    last = None
    for number, line in enumerate(lines, 2):
        if line.startswith(" ") and last is not None:
            headers[last] += line  # git folds a long header at a space and leaves the space in the next line
        elif match := re.fullmatch(r"([A-Za-z-]+): (.*)", line):
            last = match[1]
            if last in headers:
                raise Malformed(number, f"a second header {last}")
            headers[last] = match[2]
        else:
            raise Malformed(number, f"not a header: {line!r}")
    for name in ("From", "Date", "Subject"):
        if not headers.get(name):
            raise Malformed(1, f"the header {name} is missing")
    prefix, _, subject = headers["Subject"].partition("] ")
    if prefix != "[PATCH" or not subject.strip():
        raise Malformed(1, f"the header Subject is {headers['Subject']!r}; it must read '[PATCH] …'")
    return headers | {"Subject": subject}


def _files(lines: list[str], start: int) -> tuple[tuple[FileChange, ...], int]:
    """The file changes and the index of the first line behind them."""
    files: list[FileChange] = []
    at = start
    while at < len(lines) and lines[at].startswith("diff --git "):
        path = _path(lines[at], at + 1)
        at += 1
        while at < len(lines) and re.match(r"(index|old mode|new mode|new file mode|deleted file mode) ", lines[at]):
            at += 1
        hunks: list[Hunk] = []
        if at < len(lines) and lines[at] == "GIT binary patch":
            at = _behind_binary(lines, at + 1)
        elif at < len(lines) and lines[at].startswith("--- "):
            if at + 1 == len(lines) or not _names_agree(path, lines[at], lines[at + 1]):
                raise Malformed(at + 1, f"'---' and '+++' do not name {path}, which the line 'diff --git' names")
            at += 2
            while at < len(lines) and lines[at].startswith("@@ "):
                hunk, at = _hunk(lines, at)
                hunks.append(hunk)
            if not hunks:
                raise Malformed(at, f"{path} has no hunk")
        elif at < len(lines) and re.match(r"(rename|copy|similarity|dissimilarity) ", lines[at]):
            raise Malformed(at + 1, f"{path}: renames and copies must be written in full (--no-renames)")
        elif at < len(lines) and lines[at].startswith("Binary files "):
            raise Malformed(at + 1, f"{path}: the binary change itself is missing (--binary)")
        files.append(FileChange(path=path, hunks=tuple(hunks)))
    return tuple(files), at


def _path(line: str, number: int) -> str:
    names = line.removeprefix("diff --git ").rstrip("\r")
    if '"' in names:
        raise Malformed(number, f"a file name with quotes or control characters: {names}")
    half = len(names) // 2
    old, new = names[:half], names[half + 1 :]
    if not (old.startswith("a/") and new.startswith("b/") and old[2:] == new[2:]):
        raise Malformed(number, f"'{line}' must name one file, as 'a/NAME b/NAME'")
    path = old[2:]
    if any(part.lower() in ("", ".", "..", ".git") for part in path.split("/")):
        raise Malformed(number, f"the path {path!r} leaves the source tree")
    return path


def _names_agree(path: str, old: str, new: str) -> bool:
    # git puts a tab behind a name that holds a space.
    old, new = old.removesuffix("\t"), new.removesuffix("\t")
    names = (old.removeprefix("--- "), new.removeprefix("+++ "))
    return names in ((f"a/{path}", f"b/{path}"), ("/dev/null", f"b/{path}"), (f"a/{path}", "/dev/null"))


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose @@ line is at index ``at``, and the index behind it."""
    header = lines[at]
    match = _HUNK.match(header)
    if match is None:
        raise Malformed(at + 1, f"not a hunk's head: {header!r}")
    old, new = (int(count) if count is not None else 1 for count in match.groups())
    before: list[str] = []
    added = removed = 0
    line = at + 1
    while old > 0 or new > 0 or (line < len(lines) and lines[line].startswith("\\")):
        kind = lines[line][:1] if line < len(lines) else "end"
        if kind not in (" ", "+", "-", "\\"):
            raise Malformed(min(line + 1, len(lines)), f"the hunk '{header}' is cut short")
        if kind in " -":
            before.append(lines[line][1:])
            old -= 1
        if kind in " +":
            new -= 1
        added += kind == "+"
        removed += kind == "-"
        line += 1
    if old < 0 or new < 0:
        raise Malformed(line, f"the hunk '{header}' holds more lines than its head says")
    return Hunk(header=header, before=tuple(before), added=added, removed=removed), line


def _behind_binary(lines: list[str], at: int) -> int:
    """The index behind a binary change: one or two blocks, each ended by a blank line."""
    while at < len(lines) and re.match(r"(literal|delta) \d+$", lines[at]):
        while at < len(lines) and lines[at]:
            at += 1
        at += 1
    return at


def difference(old: bytes, new: bytes) -> tuple[int, str, str] | None:
    """The first line in which two texts differ: its number and its two versions; None when they are the same."""
    olds, news = old.split(b"\n"), new.split(b"\n")
    for number, (left, right) in enumerate(itertools.zip_longest(olds, news, fillvalue=b""), 1):
        if left != right:
            return number, left.decode(errors="replace"), right.decode(errors="replace")
    return None
