"""A queue of patches, and a release with the queue applied: a git repository with one commit per patch."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ftnumpy import patchfile, process
from ftnumpy.errors import FtnumpyError, PatchError, PrerequisiteError, SourceError
from ftnumpy.git import COMMITTER, GitFailed, create_repository, git, git_line, git_messages
from ftnumpy.stack import Queue

# In the tree's git: ``git rebase -i ftnumpy/base`` and ``git log ftnumpy/base..`` see the queue's commits.
BASE = "refs/ftnumpy/base"
# Debian 12's Python 3.11.2 has none yet (PEP 706).  What is unpacked has the hash that stack.toml pins.
FILTERS = hasattr(tarfile, "data_filter")
_SHOWN = 8  # lines of a failing hunk that an error shows


@dataclass(frozen=True)
class Patch:
    """One patch of a queue.  ``subject`` is its commit's first line."""

    file: Path
    subject: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """A file ``series``: its leading comment and blank lines, then the patches' file names in order."""

    head: tuple[str, ...]
    names: tuple[str, ...]

    def text(self) -> str:
        return "".join(f"{line}\n" for line in (*self.head, *self.names))


def read_series(folder: Path) -> Series:
    """The queue's order.  Raises `PatchError` for anything but comments on top and one plain file name a line."""
    file = folder / "series"
    try:
        lines = file.read_bytes().decode("utf-8").split("\n")
    except FileNotFoundError:
        raise PatchError(f"{file} is missing; an empty queue has a file 'series' without names") from None
    except UnicodeDecodeError:
        raise PatchError(f"{file} is not UTF-8") from None
    if lines[-1] == "":
        lines.pop()
    head: list[str] = []
    names: list[str] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        where = f"{file}, line {number}"
        if line.endswith("\r"):
            problems.append(f"{where}: ends in CR LF; lines must end in LF alone")
        elif not line.strip() or line.startswith("#"):
            if not names:
                head.append(line)
            elif line.strip():
                problems.append(f"{where}: a comment below the first patch; comments stand at the top")
        elif not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.patch", line):
            problems.append(f"{where}: {line!r} is not the plain name of a .patch file")
        elif line in names:
            problems.append(f"{where}: {line} is listed twice")
        else:
            names.append(line)
    _raise(problems)
    return Series(head=tuple(head), names=tuple(names))


def read_queue(queue: Queue) -> tuple[Patch, ...]:
    """The patches in the order of ``series``.

    Raises `PatchError` with all that is wrong: a name without a file, a file without a name, and files that are not
    patches with a reason in their message and a diff that stays within the tree.
    """
    series = read_series(queue.folder)
    problems: list[str] = []
    present = {file.name for file in queue.folder.iterdir() if not file.name.startswith(".")} - {"series"}
    for name in sorted(present - set(series.names)):
        problems.append(f"{queue.folder / name} is not in {queue.folder / 'series'}; list it or remove it")
    patches: list[Patch] = []
    for name in series.names:
        file = queue.folder / name
        if not file.is_file():
            problems.append(f"{queue.folder / 'series'} lists {name}, but {file} is no file")
            continue
        try:
            patches.append(Patch(file, patchfile.parse(file.read_bytes()).subject))
        except patchfile.Malformed as error:
            problems.append(f"{file}, {error}")
    _raise(problems)
    return tuple(patches)


def make_tree(archive: Path, patches: Sequence[Patch], folder: Path) -> None:
    """Make ``folder``, which must not exist: ``archive`` as base commit, then one commit per patch.

    Commit hashes depend on the archive's bytes and the patches alone.  The base commit holds every file of the
    archive, byte for byte, and is dated like the archive's newest member; a patch's commit has the patch's author and
    date, and its committer is fixed.  ``folder`` appears whole or not at all.  Raises `SourceError` for an archive
    that can't be unpacked and `PatchError` for a patch that doesn't apply without fuzz.
    """
    if folder.exists():
        raise FtnumpyError(f"{folder} exists already; remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        name, newest = _unpack(archive, scratch / "unpacked")
        _check_clock(archive, newest)
        tree = scratch / "tree"
        (scratch / "unpacked" / name).rename(tree)
        _commit_base(tree, name, sha256(archive), newest)
        apply_patches(tree, patches)
        tree.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def base_archive(folder: Path) -> str | None:
    """The sha256 of the archive that the tree ``folder`` stands on; None when `make_tree` did not make it."""
    message = git_line(folder, "log", "-1", "--format=%B", BASE)
    match = re.search(r"^sha256: ([0-9a-f]{64})$", message or "", re.MULTILINE)
    return match[1] if match else None


def apply_patches(folder: Path, patches: Sequence[Patch]) -> None:
    """One commit per patch on top of what ``folder`` has checked out.

    Raises `PatchError` naming patch, file and hunk; ``folder`` then stands at the last patch that applies, with
    ``git am`` in progress.
    """
    if not patches:
        return
    options = ("--keep-cr", "--keep-non-patch", "--no-3way", "--no-scissors", "--committer-date-is-author-date")
    files = [patch.file.absolute() for patch in patches]
    try:
        git(folder, "am", "--quiet", "--patch-format=mbox", "--whitespace=nowarn", *options, *files)
    except GitFailed as error:
        if process.no_space(folder):
            raise  # which says nothing about the patch
        try:
            number = int((folder / ".git" / "rebase-apply" / "next").read_text())
        except FileNotFoundError:
            raise PatchError(str(error)) from None
        patch = patches[number - 1]
        reasons = _rejections(folder, patch) or [f"  {line}" for line in error.stderr.strip().splitlines()]
        release = git_line(folder, "log", "-1", "--format=%s", BASE)
        where = f"{patch.file.parent.name}/{patch.file.name} (patch {number} of {len(patches)})"
        raise PatchError("\n".join([f"{where} does not apply to {release}:", *reasons])) from None


def format_patches(folder: Path, base: str = BASE) -> dict[str, bytes]:
    """The commits after ``base`` as patch files: name to content, in order, the same from every version of git."""
    with tempfile.TemporaryDirectory() as output:
        git(
            folder,
            *("-c", "diff.algorithm=myers", "-c", "diff.indentHeuristic=true"),
            *("format-patch", "--quiet", "--output-directory", output, "--zero-commit", "--no-signature", "--no-stat"),
            *("--no-numbered", "--full-index", "--no-renames", "--no-encode-email-headers"),
            *("--unified=3", f"{base}..HEAD"),
        )
        return {file.name: file.read_bytes() for file in sorted(Path(output).iterdir())}


def _raise(problems: Sequence[str]) -> None:
    if problems:
        raise PatchError("\n".join(problems))


def _unpack(archive: Path, folder: Path) -> tuple[str, int]:
    """Unpack ``archive`` into ``folder``; the name of its single top folder and its newest member's time (Unix)."""
    newest = 0
    tops: set[str] = set()

    def accept(member: tarfile.TarInfo, destination: str) -> tarfile.TarInfo | None:
        nonlocal newest
        parts = PurePosixPath(member.name).parts
        if ".git" in parts:
            raise SourceError(f"{archive} holds {member.name}; a release can't bring git's own files")
        newest = max(newest, int(member.mtime))
        tops.update(parts[:1])
        return tarfile.data_filter(member, destination) if FILTERS else _ours(member, archive)

    folder.mkdir()
    try:
        # Not as a stream ("r|*"), which takes an archive that is cut short for one that ends there.
        with tarfile.open(archive) as tar:
            if FILTERS:
                tar.extractall(folder, filter=accept)
            else:
                tar.extractall(folder, [ours for member in tar.getmembers() if (ours := accept(member, str(folder)))])
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise SourceError(f"{archive} can't be unpacked: {error}; remove it and fetch it again") from None
    if len(tops) != 1 or not (folder / min(tops)).is_dir():
        raise SourceError(f"{archive} must hold one top folder; it holds {', '.join(sorted(tops)) or 'nothing'}")
    return tops.pop(), newest


def _ours(member: tarfile.TarInfo, archive: Path) -> tarfile.TarInfo:
    """``member`` for a Python whose tarfile can't filter: within the folder, and owned by whom we run as."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir() or member.issym()):
        raise SourceError(f"{archive} holds {member.name}, which a release does not need")
    member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    return member


def _check_clock(archive: Path, newest: int) -> None:
    """``make`` would compile without end, or not at all, what seems to be newer than anything it makes."""
    now = time.time()
    if now < newest:
        when, told = (time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(each)) for each in (newest, now))
        raise PrerequisiteError(
            f"this machine's clock says {told}, but {archive.name} has files of {when}; set the clock and run again"
        )


def _commit_base(tree: Path, name: str, digest: str, newest: int) -> None:
    create_repository(tree)
    git(tree, "add", "--all", "--force", ".")
    environment = {
        "GIT_AUTHOR_NAME": COMMITTER[0],
        "GIT_AUTHOR_EMAIL": COMMITTER[1],
        "GIT_AUTHOR_DATE": f"@{newest} +0000",
        "GIT_COMMITTER_DATE": f"@{newest} +0000",
    }
    message = f"{name}\n\nThe release archive, unpacked.\n\nsha256: {digest}"
    git(tree, "commit", "--quiet", "--allow-empty", "--message", message, environment=environment)
    git(tree, "update-ref", BASE, "HEAD")


def _rejections(folder: Path, patch: Patch) -> list[str]:
    """What in ``patch`` does not fit the files in ``folder``: lines for an error, one part per hunk."""
    parsed = patchfile.parse(patch.file.read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        create_repository(copy)
        for change in parsed.files:
            original = folder / change.path
            if original.is_file() or original.is_symlink():
                (copy / change.path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(original, copy / change.path, follow_symlinks=False)
        said = git_messages(copy, "apply", "--reject", "--verbose", "--whitespace=nowarn", patch.file.absolute())
    rejected: set[tuple[str, int]] = set()
    current = ""
    for line in said.splitlines():
        if match := re.fullmatch(r"Applying patch (.+) with \d+ rejects?\.\.\.", line):
            current = match[1]
        elif match := re.fullmatch(r"Rejected hunk #(\d+)\.", line):
            rejected.add((current, int(match[1])))
    reasons: list[str] = []
    for change in parsed.files:
        start = f"error: {change.path}: "
        reasons += [f"  {line.removeprefix('error: ')}" for line in said.splitlines() if line.startswith(start)]
        for number, hunk in enumerate(change.hunks, 1):
            if (change.path, number) in rejected:
                reasons.append(f"  {change.path}, hunk {number} of {len(change.hunks)}: {hunk.header}")
                reasons.append("    expects these lines, which are not there:")
                reasons += [f"    | {line.rstrip()}" for line in hunk.before[:_SHOWN]]
                if len(hunk.before) > _SHOWN:
                    reasons.append(f"    | … {len(hunk.before) - _SHOWN} more")
    return reasons
