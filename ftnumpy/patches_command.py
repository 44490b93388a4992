"""``nox -s patches -- check | apply | export | status``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from filelock import FileLock

from ftnumpy import console, patchfile, sources
from ftnumpy.errors import UsageError
from ftnumpy.patchcheck import check
from ftnumpy.patchedit import TreeStatus, export, open_tree, tree_status
from ftnumpy.patchqueue import Patch, read_queue
from ftnumpy.settings import Settings
from ftnumpy.stack import Project, Release, Stack

Action = Literal["check", "apply", "export", "status"]
ACTIONS: tuple[Action, ...] = get_args(Action)


def main(action: Action, stack: Stack, settings: Settings) -> None:
    """Do ``action`` for both queues of ``stack``.  One run at a time in a checkout; a second one waits."""
    trees = {"cpython": settings.root / ".build" / "cpython-src", "numpy": settings.root / "numpy-src"}
    lock = settings.root / ".build" / "patches.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        for project in (stack.cpython, stack.numpy):
            folder = trees[project.name]
            match action:
                case "check":
                    _check(project, stack, settings)
                case "apply":
                    open_tree(project.queue, _archive(project.releases[0], stack, settings), folder, settings.work)
                    console.say(f"{project.name}: {folder} is {_release(project)} with {_count(project)}")
                case "export":
                    _export(project, stack, settings, folder)
                case "status":
                    _status(project, folder)
                case _:
                    raise UsageError(f"patches has no action {action!r}; give one of {', '.join(ACTIONS)}")


def _check(project: Project, stack: Stack, settings: Settings) -> None:
    archives = [(release, _archive(release, stack, settings)) for release in project.releases]
    check(project.queue, archives, settings.work)
    versions = ", ".join(release.version for release in project.releases)
    console.say(f"{project.name}: {_count(project)}, well formed, on {versions}")


def _export(project: Project, stack: Stack, settings: Settings, folder: Path) -> None:
    if not folder.exists():
        console.say(f"{project.name}: no tree {folder}, nothing to export")
        return
    changes = export(project.queue, _archive(project.releases[0], stack, settings), folder, settings.work)
    for change in changes:
        console.say(f"{project.name}: {change.action} {change.name}")
    if not changes:
        console.say(f"{project.name}: the queue is as in {folder} already")


def _status(project: Project, folder: Path) -> None:
    patches = read_queue(project.queue)
    console.say(f"{project.name}: {_release(project)}, {_count(project)}")
    for patch in patches:
        console.say(f"  {patch.file.name}")
        console.say(f"    {patch.subject}")
        console.say(f"    {_diffstat(patch)}")
    if not folder.exists():
        console.say(f"  tree {folder}: none; 'nox -s patches -- apply' makes it")
        return
    console.say(f"  tree {folder}: {_tree_words(tree_status(project.queue, folder))}")


def _tree_words(status: TreeStatus) -> str:
    if status.in_sync:
        return "in sync with the queue"
    words = [f"{status.under_way} in progress"] if status.under_way else []
    if status.dirty:
        words.append(f"uncommitted changes in {len(status.dirty)} file(s)")
    if status.queue_moved:
        words.append("the queue changed since the tree was opened")
    if status.changes:
        words.append("export would " + ", ".join(f"{change.action} {change.name}" for change in status.changes))
    return "; ".join(words)


def _diffstat(patch: Patch) -> str:
    files = patchfile.parse(patch.file.read_bytes()).files
    added = sum(hunk.added for change in files for hunk in change.hunks)
    removed = sum(hunk.removed for change in files for hunk in change.hunks)
    return f"{', '.join(change.path for change in files)}: +{added} -{removed}"


def _archive(release: Release, stack: Stack, settings: Settings) -> Path:
    return sources.fetch(release, stack.channels, settings).path


def _release(project: Project) -> str:
    return f"{project.name} {project.releases[0].version}"


def _count(project: Project) -> str:
    number = len(read_queue(project.queue))
    return f"{number} patch{'es' if number != 1 else ''}"
