"""The stack's history: one commit for each patch, the same hashes for the same patches."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy.bench import history
from ftnumpy.git import git, git_line
from ftnumpy.settings import ROOT
from ftnumpy.stack import PATCHED, STOCK, Queue, Stack, read_stack


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """The real one, with queues of its own to change."""
    found = read_stack(ROOT / "stack.toml")
    for project in (found.cpython, found.numpy):
        shutil.copytree(project.queue.folder, tmp_path / project.queue.folder.name)
    return replace(found, cpython=_moved(found, tmp_path, "cpython"), numpy=_moved(found, tmp_path, "numpy"))


def _moved(stack: Stack, folder: Path, name: str):  # type: ignore[no-untyped-def]
    project = getattr(stack, name)
    return replace(project, queue=Queue(project=name, folder=folder / project.queue.folder.name))


def test_cpythons_patches_come_first_and_the_ends_have_their_names() -> None:
    assert [variant.name for variant in history.variants(2, 1)] == ["stock", "c1n0", "c2n0", "patched"]
    assert history.variants(2, 1)[0] == STOCK and history.variants(2, 1)[-1] == PATCHED
    assert history.variants(0, 0) == (STOCK,)
    assert [variant.name for variant in history.variants(0, 2)] == ["stock", "c0n1", "patched"]


def test_there_is_a_commit_for_each_patch_in_order(stack: Stack, tmp_path: Path) -> None:
    steps = history.make(stack, tmp_path / "history")
    files = [*_series(stack.cpython.queue), *_series(stack.numpy.queue)]
    assert [step.patch.file.name if step.patch else None for step in steps] == [None, *files]
    log = git(tmp_path / "history", "log", "--reverse", "--format=%H %s").decode().splitlines()
    assert log == [f"{step.commit} {step.subject}" for step in steps]
    dates = git(tmp_path / "history", "log", "--reverse", "--format=%at").decode().split()
    assert sorted(set(dates), key=int) == dates, "asv orders commits by their dates"
    assert git_line(tmp_path / "history", "rev-parse", "stock^{commit}") == steps[0].commit
    assert git_line(tmp_path / "history", "rev-parse", "patched^{commit}") == steps[-1].commit


def test_a_longer_queue_keeps_the_commits_that_were_there(stack: Stack, tmp_path: Path) -> None:
    whole = history.make(stack, tmp_path / "history")
    series = stack.numpy.queue.folder / "series"
    *kept, last = series.read_text().splitlines(keepends=True)
    series.write_text("".join(kept))
    (stack.numpy.queue.folder / last.strip()).unlink()
    assert [step.commit for step in history.make(stack, tmp_path / "history")] == [step.commit for step in whole[:-1]]


def test_a_changed_patch_changes_its_commit_and_those_after(stack: Stack, tmp_path: Path) -> None:
    before = history.make(stack, tmp_path / "history")
    third = before[3].patch
    assert third is not None
    third.file.write_text(third.file.read_text().replace("\n\n", "\n\nAnd why.\n\n", 1))
    after = history.make(stack, tmp_path / "history")
    same = [one.commit == other.commit for one, other in zip(before, after, strict=True)]
    assert same == [True] * 3 + [False] * (len(before) - 3)


def _series(queue: Queue) -> list[str]:
    return [line for line in (queue.folder / "series").read_text().splitlines() if line and not line.startswith("#")]
