"""Editing a queue as commits: open its tree, write the commits back to patch files, see where both stand."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.errors import PatchError
from ftnumpy.git import create_repository, git, git_line
from ftnumpy.patchqueue import (
    BASE,
    Series,
    apply_patches,
    base_archive,
    format_patches,
    make_tree,
    read_queue,
    read_series,
    sha256,
)
from ftnumpy.stack import Queue

_BRANCH = "refs/heads/ftnumpy"
# Files in .git that stand for an operation which a person began and has not ended.
_UNDER_WAY = {
    "rebase-apply": "git am",
    "rebase-merge": "git rebase",
    "MERGE_HEAD": "git merge",
    "CHERRY_PICK_HEAD": "git cherry-pick",
    "REVERT_HEAD": "git revert",
}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What export would do to a file of the queue: ``add``, ``change`` or ``remove`` it."""

    action: str
    name: str


@dataclass(frozen=True, kw_only=True)
class TreeStatus:
    """Where an editing tree stands.

    ``under_way`` names an unfinished git operation; ``dirty`` are lines of ``git status --porcelain``; ``changes`` is
    what export would do; ``queue_moved`` says that the queue's files changed since the tree was opened or exported.
    """

    under_way: str | None
    dirty: tuple[str, ...]
    changes: tuple[Change, ...]
    queue_moved: bool

    @property
    def in_sync(self) -> bool:
        return not (self.under_way or self.dirty or self.changes)


@dataclass(frozen=True, kw_only=True)
class _Commit:
    """All of a commit that its patch file must carry over; ``author`` with time and zone."""

    tree: str
    author: str
    message: str


def open_tree(queue: Queue, archive: Path, folder: Path, work: Path) -> None:
    """Make ``folder`` the queue applied to ``archive``, for editing; leave it alone if it is that already.

    An existing tree is renewed only when nothing in it is a person's: its commits are those of an earlier `open_tree`
    or `export` and no file differs from them.  Raises `PatchError` else, changing nothing; and for a patch that does
    not apply, leaving the tree at the last patch that does, with ``git am`` in progress.
    """
    patches = read_queue(queue)
    digest = sha256(archive)
    if not folder.exists():
        make_tree(archive, (), folder)
    else:
        status = tree_status(queue, folder)
        if status.in_sync and base_archive(folder) == digest:
            _record(queue, folder)
            return
        _refuse_to_overwrite(status, queue, folder)
        base = BASE if base_archive(folder) == digest else _fetch_base(archive, folder, work)
        git(folder, "checkout", "--quiet", "--no-overwrite-ignore", "-B", "ftnumpy", base)
        git(folder, "update-ref", BASE, "HEAD")
    _record(queue, folder, head=None)
    try:
        apply_patches(folder, patches)
    except PatchError as error:
        raise PatchError(
            f"{error}\n"
            f"{folder} stands at the last patch that applies, with git am in progress. There:\n"
            "  1. git am --show-current-patch=diff | git apply --reject   (what doesn't fit goes to .rej files)\n"
            "  2. make the change by hand, remove the .rej files, git add the files\n"
            "  3. git am --continue\n"
            "then run 'nox -s patches -- export'. Or give up with git am --abort."
        ) from None
    _record(queue, folder)


def export(queue: Queue, archive: Path, folder: Path, work: Path) -> tuple[Change, ...]:
    """Write the commits of ``folder`` back as the queue's patch files; returns what changed.

    The new files are proven first: applied to the base again, they must give the same trees and messages.  Only files
    that change are written, each by rename, then ``series``, then files no longer in it are removed.  Raises
    `PatchError`, having written nothing, for a tree that is not made from ``archive`` (the pinned release), holds
    uncommitted changes or can't be told in patches, and for a queue that changed since the tree was opened.
    """
    if not folder.exists():
        raise PatchError(f"{folder} is missing; 'nox -s patches -- apply' makes it")
    status = tree_status(queue, folder)
    _refuse_unfinished(status, folder)
    if base_archive(folder) != sha256(archive):
        raise PatchError(
            f"{folder} does not stand on the pinned release ({archive.name}) but on another one; "
            "move it away, run 'nox -s patches -- apply' and 'git cherry-pick' your commits into the new tree"
        )
    if status.queue_moved and status.changes:
        raise PatchError(
            f"the patches in {queue.folder} have changed since {folder} was opened; export would undo that.\n"
            f"Move {folder} away, run 'nox -s patches -- apply' and 'git cherry-pick' your commits into the new tree."
        )
    files = _proven_patches(folder, work)
    if not files and status.changes:
        raise PatchError(
            f"{folder} has no commit above {BASE}; export would remove every patch. "
            f"If that is meant, remove the files in {queue.folder} and their lines in 'series'."
        )
    series = read_series(queue.folder)
    for change in status.changes:
        if change.action != "remove":
            _write(queue.folder / change.name, files[change.name])
    _write(queue.folder / "series", Series(head=series.head, names=tuple(files)).text().encode())
    for change in status.changes:
        if change.action == "remove":
            (queue.folder / change.name).unlink()
    _record(queue, folder)
    return status.changes


def tree_status(queue: Queue, folder: Path) -> TreeStatus:
    """Where the tree ``folder`` stands.  Raises `PatchError` when it is not a tree that `open_tree` made."""
    head = git_line(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if base_archive(folder) is None or head is None or not (folder / ".git").is_dir():
        raise PatchError(f"{folder} is not a tree that 'nox -s patches -- apply' made; move it away")
    if git_line(folder, "merge-base", "--is-ancestor", BASE, "HEAD") is None:
        raise PatchError(
            f"the commits in {folder} do not stand on {BASE}; 'git rebase' them onto it, or move the folder away"
        )
    under_way = next((what for name, what in _UNDER_WAY.items() if (folder / ".git" / name).exists()), None)
    dirty = git(folder, "status", "--porcelain", "--untracked-files=normal").decode(errors="replace").splitlines()
    record = _read_record(folder)
    return TreeStatus(
        under_way=under_way,
        dirty=tuple(dirty),
        changes=_changes(queue.folder, format_patches(folder)),
        queue_moved=record.get("queue") != _digest(queue.folder),
    )


def _changes(folder: Path, exported: Mapping[str, bytes]) -> tuple[Change, ...]:
    present = {file.name: file.read_bytes() for file in sorted(folder.glob("*.patch"))}
    changes = [Change(action="remove", name=name) for name in present if name not in exported]
    for name, content in exported.items():
        if name not in present:
            changes.append(Change(action="add", name=name))
        elif present[name] != content:
            changes.append(Change(action="change", name=name))
    return tuple(changes)


def _refuse_unfinished(status: TreeStatus, folder: Path) -> None:
    if status.under_way:
        raise PatchError(f"{status.under_way} is in progress in {folder}; finish it (--continue) or end it (--abort)")
    if status.dirty:
        shown = "\n".join(f"  {line}" for line in status.dirty[:20])
        raise PatchError(f"{folder} has changes that are not committed:\n{shown}\nCommit them or take them back.")


def _refuse_to_overwrite(status: TreeStatus, queue: Queue, folder: Path) -> None:
    _refuse_unfinished(status, folder)
    ours = (_read_record(folder).get("head"), git_line(folder, "rev-parse", BASE))
    if git_line(folder, "rev-parse", "HEAD") not in ours:
        raise PatchError(
            f"{folder} has commits that are not in {queue.folder}.\n"
            "Run 'nox -s patches -- export' to keep them as patches, or remove or move the folder to start anew."
        )
    if git_line(folder, "symbolic-ref", "--quiet", "HEAD") != _BRANCH:
        raise PatchError(f"{folder} has another branch checked out; 'git checkout ftnumpy' there first")


def _fetch_base(archive: Path, folder: Path, work: Path) -> str:
    """Bring the base commit of ``archive`` into the repository ``folder``; its hash.  Changes no file, no branch."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="patches-base-", dir=work) as scratch:
        tree = Path(scratch) / "tree"
        make_tree(archive, (), tree)
        git(folder, "fetch", "--quiet", "--no-tags", tree, BASE)
        return git(tree, "rev-parse", BASE).decode().strip()


def _proven_patches(folder: Path, work: Path) -> dict[str, bytes]:
    """The tree's commits as patch files that give the same commits again."""
    merges = git(folder, "log", "--merges", "--format=%h %s", f"{BASE}..HEAD").decode().splitlines()
    if merges:
        raise PatchError(f"{folder} has a merge commit, which is no patch: {merges[0]}\nMake it linear: git rebase")
    wanted = _commits(folder)
    trees = [git(folder, "rev-parse", f"{BASE}^{{tree}}").decode().strip(), *(commit.tree for commit in wanted)]
    for before, commit in zip(trees, wanted, strict=False):
        if before == commit.tree:
            subject = commit.message.split("\n", 1)[0]
            raise PatchError(f"the commit '{subject}' in {folder} changes no file; drop it: git rebase -i ftnumpy/base")
    files = format_patches(folder)
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="patches-export-", dir=work) as scratch:
        queue, copy = Path(scratch) / "queue", Path(scratch) / "tree"
        queue.mkdir()
        copy.mkdir()
        for name, content in files.items():
            (queue / name).write_bytes(content)
        (queue / "series").write_text("".join(f"{name}\n" for name in files), encoding="utf-8")
        try:
            patches = read_queue(Queue(project=folder.name, folder=queue))
        except PatchError as error:
            problems = str(error).replace(f"{queue}/", "  ")
            raise PatchError(f"commits in {folder} would make patches that are not well formed:\n{problems}") from None
        create_repository(copy)
        alternates = copy / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{(folder / '.git' / 'objects').absolute()}\n", encoding="utf-8")
        base = git(folder, "rev-parse", BASE).decode().strip()
        git(copy, "update-ref", BASE, base)
        git(copy, "reset", "--quiet", "--hard", base)
        apply_patches(copy, patches)
        for want, got in zip(wanted, _commits(copy), strict=True):
            if want != got:
                raise PatchError(
                    f"a commit in {folder} does not survive as a patch file: git reads back\n{got.message}\n"
                    f"by {got.author} instead of\n{want.message}\nby {want.author}.\n"
                    "Reword its message: one line of subject, a blank line, and no line that begins like a part of a "
                    "patch ('---', 'diff -', 'Index: ', 'From ', 'From: ')."
                )
    return files


def _commits(folder: Path) -> list[_Commit]:
    """The commits above the base, in order."""
    said = git(folder, "log", "--reverse", "-z", "--format=%T%n%an <%ae> %ad%n%B", "--date=raw", f"{BASE}..HEAD")
    entries = [entry.split("\n", 2) for entry in said.decode(errors="replace").split("\0") if entry]
    return [_Commit(tree=tree, author=author, message=message.strip()) for tree, author, message in entries]


def _write(file: Path, content: bytes) -> None:
    if file.is_file() and file.read_bytes() == content:
        return
    temporary = file.with_name(f".{file.name}.new")
    try:
        temporary.write_bytes(content)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(folder: Path) -> str:
    """A hash of the queue's series and patch files."""
    names = sorted(file.name for file in folder.iterdir() if file.name == "series" or file.suffix == ".patch")
    state = hashlib.sha256()
    for name in names:
        state.update(f"{name} {sha256(folder / name)}\n".encode())
    return state.hexdigest()


def _record_file(folder: Path) -> Path:
    return folder / ".git" / "ftnumpy.json"


def _read_record(folder: Path) -> dict[str, str | None]:
    """What the tree was when it last agreed with the queue: ``head`` (commit; None while applying), ``queue``."""
    try:
        record: dict[str, str | None] = json.loads(_record_file(folder).read_text(encoding="ascii"))
    except FileNotFoundError:
        return {}
    return record


def _record(queue: Queue, folder: Path, head: str | None = "HEAD") -> None:
    commit = git_line(folder, "rev-parse", head) if head else None
    _write(_record_file(folder), json.dumps({"head": commit, "queue": _digest(queue.folder)}).encode())
