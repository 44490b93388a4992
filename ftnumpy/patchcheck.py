"""Is a queue well formed, and does it apply to its releases?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ftnumpy import patchfile
from ftnumpy.errors import PatchError
from ftnumpy.patchqueue import Patch, format_patches, make_tree, read_queue, read_series
from ftnumpy.stack import Queue, Release

_REWRITE = "'nox -s patches -- apply' and 'nox -s patches -- export' rewrite the queue in its one form."
_RESOLVE = "Fix the patch so that it fits every release: 'nox -s patches -- apply', edit its commit, and 'export'."


def check_form(queue: Queue) -> tuple[Patch, ...]:
    """The queue's patches.  Raises `PatchError` with all that is wrong with its files or is not as export writes it."""
    patches = read_queue(queue)
    problems: list[str] = []
    for number, patch in enumerate(patches, 1):
        name = patchfile.file_name(number, patch.subject)
        if patch.file.name != name:
            problems.append(f"{patch.file}: must be named {name} (position in the series, subject)")
        oddities = patchfile.parse(patch.file.read_bytes()).oddities
        problems += [f"{patch.file}, {oddity}" for oddity in oddities]
    series = queue.folder / "series"
    if series.read_bytes() != read_series(queue.folder).text().encode():
        problems.append(f"{series}: blank lines below the first patch, or no line end behind the last")
    if problems:
        raise PatchError("\n".join([*problems, _REWRITE]))
    return patches


def check(queue: Queue, releases: Sequence[tuple[Release, Path]], work: Path) -> None:
    """Check the queue's form and that it applies to each of ``releases`` (with its archive), the pinned one first.

    A hunk never applies with fuzz.  On the pinned release every hunk stands exactly where it says and export would
    change no byte; on the others, hunks may be found at other lines.  Raises `PatchError`.  ``work`` is a folder for
    trees, about 300 MB each, removed afterwards.
    """
    patches = check_form(queue)
    if not patches:
        return
    work.mkdir(parents=True, exist_ok=True)
    for number, (release, archive) in enumerate(releases):
        with tempfile.TemporaryDirectory(prefix="patches-check-", dir=work) as scratch:
            tree = Path(scratch) / "tree"
            try:
                make_tree(archive, patches, tree)
            except PatchError as error:
                raise PatchError(f"{error}\n{_RESOLVE}") from None
            if number == 0:
                _check_exact(patches, list(format_patches(tree).values()), release)


def _check_exact(patches: Sequence[Patch], exported: Sequence[bytes], release: Release) -> None:
    problems: list[str] = []
    for patch, wanted in zip(patches, exported, strict=True):
        content = patch.file.read_bytes()
        moved = _moved_hunks(content, wanted)
        difference = patchfile.difference(content, wanted)
        if moved:
            problems += [f"{patch.file}: on {release.project} {release.version}, {hunk}" for hunk in moved]
        elif difference:
            line, has, writes = difference
            problems.append(f"{patch.file}, line {line}: has {has!r} where export writes {writes!r}")
    if problems:
        raise PatchError("\n".join([*problems, _REWRITE]))


def _moved_hunks(content: bytes, exported: bytes) -> list[str]:
    """The hunks that were found at another line than the patch says."""
    moved: list[str] = []
    for ours, theirs in zip(patchfile.parse(content).files, patchfile.parse(exported).files, strict=False):
        if ours.path != theirs.path or len(ours.hunks) != len(theirs.hunks):
            break
        for number, (our, their) in enumerate(zip(ours.hunks, theirs.hunks, strict=True), 1):
            if our.place != their.place:
                moved.append(f"{ours.path}, hunk {number} '{our.place}' is in fact at '{their.place}'")
    return moved
