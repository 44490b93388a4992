"""The stack's history as a git repository, which asv wants: a commit for the releases, then one for each patch."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import patchqueue
from ftnumpy.git import COMMITTER, create_repository, git
from ftnumpy.patchqueue import Patch
from ftnumpy.stack import PATCHED, STOCK, Stack, Variant

# asv puts commits in the order of their dates.  A patch's own date says when it was last edited, not where in the
# queue it stands, so each commit is dated a day after the one before.
FIRST_DAY = 1_767_225_600  # 2026-01-01, UTC
DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class Step:
    """A state of the stack: ``variant``, which ``patch`` (None: the releases as they come) led to, as ``commit``."""

    commit: str
    variant: Variant
    patch: Patch | None

    @property
    def subject(self) -> str:
        return self.patch.subject if self.patch else "The releases as they come"


def variants(cpython: int, numpy: int) -> tuple[Variant, ...]:
    """The states of queues of these lengths, CPython's patches first: what NumPy's need is then there."""
    prefixes = [(count, 0) for count in range(cpython + 1)] + [(cpython, count) for count in range(1, numpy + 1)]
    named = [Variant(name=f"c{c}n{n}", cpython_patches=c, numpy_patches=n) for c, n in prefixes]
    return (STOCK, *named[1:-1], PATCHED) if len(named) > 1 else (STOCK,)


def make(stack: Stack, folder: Path) -> tuple[Step, ...]:
    """Make ``folder`` the repository of ``stack``'s history; the steps from stock to the end of both queues.

    A commit's hash depends on the releases, the build options and the patches up to it alone: results that were
    measured for it stay its own when a queue grows.  The tags ``stock`` and ``patched`` name the ends.
    """
    queues = (patchqueue.read_queue(stack.cpython.queue), patchqueue.read_queue(stack.numpy.queue))
    patches = [*queues[0], *queues[1]]
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        commits = _commit(stack, patches, scratch)
        if folder.exists():
            folder.rename(scratch / ".git" / "replaced")
        scratch.rename(folder)
        shutil.rmtree(folder / ".git" / "replaced", ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    states = variants(len(queues[0]), len(queues[1]))
    return tuple(
        Step(commit=commit, variant=variant, patch=patch)
        for commit, variant, patch in zip(commits, states, [None, *patches], strict=True)
    )


def _commit(stack: Stack, patches: Sequence[Patch], folder: Path) -> list[str]:
    """The whole history into the empty ``folder``; its commits, the oldest first."""
    create_repository(folder)
    declared = {
        project.name: {"release": project.releases[0].archive, "sha256": project.releases[0].sha256}
        | {"options": list(project.options), "requires": list(project.requires)}
        for project in (stack.cpython, stack.numpy)
    }
    (folder / "stack.json").write_text(json.dumps(declared, indent=2) + "\n", encoding="utf-8")
    commits = [_commit_all(folder, 0, "The releases as they come")]
    for number, patch in enumerate(patches, 1):
        queue = folder / patch.file.parent.name
        queue.mkdir(exist_ok=True)
        shutil.copyfile(patch.file, queue / patch.file.name)
        commits.append(_commit_all(folder, number, patch.subject))
    git(folder, "tag", STOCK.name, commits[0])
    git(folder, "tag", PATCHED.name, commits[-1])
    return commits


def _commit_all(folder: Path, number: int, subject: str) -> str:
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(FIRST_DAY + number * DAY))
    name, mail = COMMITTER
    git(folder, "add", "--all")
    git(
        folder,
        *("commit", "--quiet", "--no-gpg-sign", "-m", subject),
        environment={
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": mail,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        },
    )
    return git(folder, "rev-parse", "HEAD").decode().strip()
