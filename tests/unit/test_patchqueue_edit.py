"""Opening a tree for editing, exporting it, and never losing what a person did."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from patch_helpers import ALL, ARCHIVE_FILES, RELEASE, make_archive, patch_text, write_queue

from ftnumpy import patches_command, sources
from ftnumpy.errors import PatchError
from ftnumpy.git import GitFailed, git
from ftnumpy.patchcheck import check
from ftnumpy.patchedit import Change, export, open_tree, tree_status
from ftnumpy.settings import ROOT, read_settings
from ftnumpy.stack import Project, Queue, Release, Stack, read_stack

AUTHOR = {"GIT_AUTHOR_NAME": "Ada é", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_AUTHOR_DATE": "@1700000100 +0200"}


class Bench:
    """A queue, its archive and its editing tree, which is open."""

    def __init__(self, path: Path) -> None:
        self.queue = write_queue(path / "queue")
        self.archive = make_archive(path / "demo.tar.gz")
        self.tree = path / "src" / "tree"
        self.work = path / "work"
        self.open()

    def open(self) -> None:
        open_tree(self.queue, self.archive, self.tree, self.work)

    def export(self) -> tuple[Change, ...]:
        return export(self.queue, self.archive, self.tree, self.work)

    def git(self, *arguments: str) -> str:
        return git(self.tree, *arguments, environment=AUTHOR).decode().strip()

    def commit(self, name: str, content: str, *message: str) -> None:
        (self.tree / name).write_text(content)
        self.git("add", name)
        self.git("commit", "-q", *(part for text in message for part in ("-m", text)))

    def files(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.queue.folder.iterdir()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_apply_then_export_changes_no_byte(bench: Bench) -> None:
    before = bench.files()
    stamps = {file: file.stat().st_mtime_ns for file in bench.queue.folder.iterdir()}
    assert bench.export() == ()
    assert bench.files() == before
    assert {file: file.stat().st_mtime_ns for file in bench.queue.folder.iterdir()} == stamps
    assert tree_status(bench.queue, bench.tree).in_sync
    assert list(bench.work.iterdir()) == []


def test_editing_a_commit_changes_just_its_patch(bench: Bench) -> None:
    before = bench.files()
    (bench.tree / "run.sh").write_text("#!/bin/sh\nexit\n")
    bench.git("commit", "-q", "-a", "--fixup", ":/Change five")
    bench.git("-c", "sequence.editor=true", "rebase", "-q", "-i", "--autosquash", "ftnumpy/base")

    assert bench.export() == (Change(action="change", name=ALL[0]),)
    after = bench.files()
    assert {name for name in after if after[name] != before.get(name)} == {ALL[0]}
    assert b"run.sh" in after[ALL[0]]
    assert after["series"] == before["series"]
    check(bench.queue, [(RELEASE, bench.archive)], bench.work)
    assert tree_status(bench.queue, bench.tree).in_sync


def test_added_dropped_and_reordered_commits_renumber_the_queue(bench: Bench) -> None:
    bench.commit("new.txt", "new\n", "Add a file", "Why: it is new.")
    assert bench.export() == (Change(action="add", name="0003-Add-a-file.patch"),)

    bench.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
    assert bench.export() == (
        Change(action="remove", name=ALL[1]),
        Change(action="remove", name="0003-Add-a-file.patch"),
        Change(action="add", name="0002-Add-a-file.patch"),
    )
    assert bench.files()["series"] == f"# The order.\n\n{ALL[0]}\n0002-Add-a-file.patch\n".encode()
    assert set(bench.files()) == {"series", ALL[0], "0002-Add-a-file.patch"}
    check(bench.queue, [(RELEASE, bench.archive)], bench.work)


def test_crlf_binary_links_and_modes_survive_export(bench: Bench) -> None:
    (bench.tree / "mixed.txt").write_bytes(b"one\r\ntwo\r\n$Id$\r\n")
    (bench.tree / "ignored.o").write_bytes(bytes(range(256)))
    (bench.tree / "link").unlink()
    (bench.tree / "link").symlink_to("run.sh")
    (bench.tree / "empty").touch()
    (bench.tree / "no-end").write_text("no line end")
    (bench.tree / "run.sh").chmod(0o644)
    (bench.tree / "crlf.txt").rename(bench.tree / "renamed.txt")
    bench.git("add", "-A")
    bench.git("commit", "-q", "-m", "[NFC] Everything odd", "-m", "Why: a tést.")
    bench.export()
    check(bench.queue, [(RELEASE, bench.archive)], bench.work)
    head = bench.git("rev-parse", "HEAD^{tree}")
    open_tree(bench.queue, bench.archive, bench.tree.with_name("again"), bench.work)
    assert git(bench.tree.with_name("again"), "rev-parse", "HEAD^{tree}").decode().strip() == head


def test_apply_leaves_a_tree_in_sync_alone_and_renews_an_untouched_one(bench: Bench) -> None:
    head = bench.git("rev-parse", "HEAD")
    (bench.tree / "build").mkdir()
    (bench.tree / "build" / "made.o").write_text("made by a build")
    bench.open()
    assert bench.git("rev-parse", "HEAD") == head

    (bench.queue.folder / ALL[1]).unlink()
    (bench.queue.folder / "series").write_text(f"{ALL[0]}\n")
    assert tree_status(bench.queue, bench.tree).queue_moved
    bench.open()
    assert bench.git("rev-parse", "HEAD") == bench.git("rev-parse", f"{head}~1")
    assert (bench.tree / "build" / "made.o").read_text() == "made by a build"
    assert tree_status(bench.queue, bench.tree).in_sync


def test_apply_moves_an_untouched_tree_to_another_release(bench: Bench) -> None:
    newer = make_archive(bench.archive.with_name("newer.tar.gz"), {"run.sh": b"#!/bin/bash\n"})
    with pytest.raises(PatchError, match="does not stand on the pinned release"):
        export(bench.queue, newer, bench.tree, bench.work)
    open_tree(bench.queue, newer, bench.tree, bench.work)
    assert (bench.tree / "run.sh").read_bytes() == b"#!/bin/bash\n"
    fresh = bench.tree.with_name("fresh")
    open_tree(bench.queue, newer, fresh, bench.work)
    assert git(fresh, "rev-parse", "HEAD", "ftnumpy/base") == git(bench.tree, "rev-parse", "HEAD", "ftnumpy/base")


def _commit(bench: Bench) -> None:
    bench.commit("new.txt", "new\n", "Add a file", "Why: it is new.")


def _amend(bench: Bench) -> None:
    bench.git("commit", "-q", "--amend", "-m", "Other subject", "-m", "Why: other.")


def _edit(bench: Bench) -> None:
    (bench.tree / "a.txt").write_text("mine\n")


def _stage(bench: Bench) -> None:
    _edit(bench)
    bench.git("add", "a.txt")


def _untracked(bench: Bench) -> None:
    (bench.tree / "mine.txt").write_text("mine\n")


def _branch(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "mine")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (_commit, "has commits that are not in"),
        (_amend, "has commits that are not in"),
        (_edit, "not committed:\n   M a.txt"),
        (_stage, "not committed:\n  M  a.txt"),
        (_untracked, r"not committed:\n  \?\? mine.txt"),
        (_branch, "another branch checked out"),
    ],
)
def test_apply_never_overwrites_a_persons_work(bench: Bench, act: Callable[[Bench], None], said: str) -> None:
    act(bench)
    (bench.queue.folder / ALL[1]).unlink()
    (bench.queue.folder / "series").write_text(f"{ALL[0]}\n")
    state = {file: file.read_bytes() for file in bench.tree.iterdir() if file.is_file()}
    head = bench.git("rev-parse", "HEAD"), bench.git("status", "--porcelain"), bench.git("symbolic-ref", "HEAD")
    with pytest.raises(PatchError, match=said):
        bench.open()
    assert {file: file.read_bytes() for file in bench.tree.iterdir() if file.is_file()} == state
    assert head == (
        bench.git("rev-parse", "HEAD"),
        bench.git("status", "--porcelain"),
        bench.git("symbolic-ref", "HEAD"),
    )


def test_apply_does_not_overwrite_an_ignored_file_that_a_patch_adds(bench: Bench) -> None:
    (bench.tree / "build").mkdir()
    (bench.tree / "build" / "x").write_text("mine")
    diff = (
        "diff --git a/build/x b/build/x\nnew file mode 100644\n--- /dev/null\n+++ b/build/x\n@@ -0,0 +1 @@\n+theirs\n"
    )
    (bench.queue.folder / "0003-X.patch").write_text(patch_text("X", diff))
    with (bench.queue.folder / "series").open("a") as stream:
        stream.write("0003-X.patch\n")
    with pytest.raises(PatchError, match="build/x"):
        bench.open()
    assert (bench.tree / "build" / "x").read_text() == "mine"


def test_apply_does_not_overwrite_an_ignored_file_that_another_release_has(bench: Bench) -> None:
    (bench.tree / "build").mkdir()
    (bench.tree / "build" / "x").write_text("mine")
    head = bench.git("rev-parse", "HEAD", "ftnumpy/base")
    newer = make_archive(bench.archive.with_name("newer.tar.gz"), {"build/x": b"theirs"})
    with pytest.raises(GitFailed, match="build/x"):
        open_tree(bench.queue, newer, bench.tree, bench.work)
    assert (bench.tree / "build" / "x").read_text() == "mine"
    assert bench.git("rev-parse", "HEAD", "ftnumpy/base") == head


def test_apply_refuses_a_folder_that_it_did_not_make(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("mine")
    with pytest.raises(PatchError, match="is not a tree that"):
        open_tree(bench.queue, bench.archive, other, bench.work)
    assert (other / "file").read_text() == "mine"


def _merge(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "side", "ftnumpy/base")
    bench.commit("side.txt", "side\n", "Side", "Why: side.")
    bench.git("checkout", "-q", "ftnumpy")
    bench.git("merge", "-q", "--no-edit", "side")


def _rebase(bench: Bench) -> None:
    bench.git("-c", "sequence.editor=sed -i 1s/^pick/edit/", "rebase", "-q", "-i", "ftnumpy/base")


def _empty(bench: Bench) -> None:
    bench.git("commit", "-q", "--allow-empty", "-m", "Nothing", "-m", "Why: no reason.")


def _no_reason(bench: Bench) -> None:
    bench.commit("new.txt", "new\n", "Add a file")


def _scissors(bench: Bench) -> None:
    bench.commit("new.txt", "new\n", "Add a file", "Why: it is new.\n\n---\n\nThis would be lost.")


def _mail_header(bench: Bench) -> None:
    bench.commit("new.txt", "new\n", "Add a file", "From: Eve <eve@example.org>\n\nWhy: it is new.")


def _diff_in_message(bench: Bench) -> None:
    bench.commit("new.txt", "new\n", "Add a file", "Why:\ndiff --git a/a.txt b/a.txt\nis slow.")


def _quotes(bench: Bench) -> None:
    bench.commit('a"b', "new\n", "Add a file", "Why: it is new.")


def _drop_all(bench: Bench) -> None:
    bench.git("reset", "-q", "--hard", "ftnumpy/base")


def _hand_edit(bench: Bench) -> None:
    _commit(bench)
    file = bench.queue.folder / ALL[0]
    file.write_bytes(file.read_bytes().replace("Why: a tést.".encode(), b"Why: edited by hand."))


def _other_root(bench: Bench) -> None:
    bench.git("checkout", "-q", "--orphan", "fresh")
    bench.git("commit", "-q", "-m", "Root", "-m", "Why.")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (_edit, "not committed"),
        (_untracked, "not committed"),
        (_merge, "merge commit, which is no patch: .* Merge branch 'side'"),
        (_rebase, "git rebase is in progress"),
        (_empty, "changes no file"),
        (_no_reason, r"0003-Add-a-file\.patch, line 5: the message has no body"),
        (_scissors, "does not survive as a patch file"),
        (_mail_header, "does not survive as a patch file"),
        (_diff_in_message, r"0003-Add-a-file\.patch"),
        (_quotes, r"0003-Add-a-file\.patch, line \d+: a file name with quotes"),
        (_drop_all, "export would remove every patch"),
        (_hand_edit, "have changed since .* was opened; export would undo that"),
        (_other_root, "do not stand on refs/ftnumpy/base"),
    ],
)
def test_export_refuses_and_writes_nothing(bench: Bench, act: Callable[[Bench], None], said: str) -> None:
    act(bench)
    before = bench.files()
    head = bench.git("rev-parse", "HEAD")
    with pytest.raises(PatchError, match=said):
        bench.export()
    assert bench.files() == before
    assert bench.git("rev-parse", "HEAD") == head
    assert not bench.work.exists() or list(bench.work.iterdir()) == []


def test_a_patch_that_fails_is_resolved_in_the_tree_and_exported(bench: Bench, tmp_path: Path) -> None:
    changed = make_archive(
        tmp_path / "changed.tar.gz", {"a.txt": ARCHIVE_FILES["a.txt"].replace(b"\n5\n", b"\n5 new\n")}
    )
    tree = tmp_path / "src" / "resolve"
    before = bench.files()
    with pytest.raises(PatchError) as caught:
        open_tree(bench.queue, changed, tree, bench.work)
    assert f"queue/{ALL[0]} (patch 1 of 2) does not apply to demo-1.0" in str(caught.value)
    assert "a.txt, hunk 1 of 1: @@ -2,7 +2,7 @@" in str(caught.value)
    assert "git am --continue" in str(caught.value)
    assert tree_status(bench.queue, tree).under_way == "git am"
    for action in (open_tree, export):
        with pytest.raises(PatchError, match="git am is in progress"):
            action(bench.queue, changed, tree, bench.work)
    assert bench.files() == before

    # What the error tells a person to do, with a git that reads that person's configuration.
    steps = (
        "git am --show-current-patch=diff | git apply --reject || rm a.txt.rej"
        " && sed -i 's/^5 new$/five/' a.txt && git add a.txt && git am --continue"
    )
    config = tmp_path / "config"
    config.write_text("[user]\nname = P\nemail = p@example.org\n")
    environment = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": str(config), "HOME": str(tmp_path)}
    subprocess.run(["/bin/sh", "-ec", steps], cwd=tree, env=environment, check=True, capture_output=True)
    assert export(bench.queue, changed, tree, bench.work) == (Change(action="change", name=ALL[0]),)
    assert bench.files()[ALL[1]] == before[ALL[1]]
    check(bench.queue, [(RELEASE, changed)], bench.work)


def test_apply_starts_anew_after_git_am_abort(bench: Bench, tmp_path: Path) -> None:
    tree = tmp_path / "src" / "abort"
    good = (bench.queue.folder / ALL[1]).read_bytes()
    (bench.queue.folder / ALL[1]).write_bytes(good.replace(b" one\r\n", b" uno\r\n"))
    with pytest.raises(PatchError, match=r"crlf\.txt, hunk 1 of 1"):
        open_tree(bench.queue, bench.archive, tree, bench.work)
    assert git(tree, "log", "-1", "--format=%s") == b"Change five\n"
    git(tree, "am", "--abort")
    (bench.queue.folder / ALL[1]).write_bytes(good)
    open_tree(bench.queue, bench.archive, tree, bench.work)
    assert git(tree, "rev-parse", "HEAD").decode().strip() == bench.git("rev-parse", "HEAD")


def test_export_that_is_interrupted_leaves_every_listed_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
    _commit(bench)
    replace_file, calls = Path.replace, []

    def broken(source: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise OSError("disk full")
        return replace_file(source, target)

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        bench.export()
    monkeypatch.undo()
    assert all((bench.queue.folder / name).is_file() for name in ALL)
    assert not [name for name in bench.files() if name.startswith(".")]
    assert bench.git("status", "--porcelain") == ""


@pytest.fixture
def stack(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack whose two projects are the bench's release; CPython's queue is empty."""

    def project(name: str, queue: Queue) -> Project:
        release = replace(RELEASE, project=name)
        return Project(name=name, releases=(release,), queue=queue, requires=(), options=(), profiles={}, builds={})

    def fetch(release: Release, channels: object, settings: object) -> sources.Source:
        return sources.Source(release=release, path=bench.archive, channel="folder")

    monkeypatch.setattr(sources, "fetch", fetch)
    return replace(
        read_stack(ROOT / "stack.toml"),
        cpython=project("cpython", write_queue(tmp_path / "empty", [])),
        numpy=project("numpy", bench.queue),
    )


def test_the_command_goes_round(stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = read_settings({"FTNUMPY_CACHE": str(tmp_path / "cache")}, root=tmp_path / "checkout")

    patches_command.main("check", stack, settings)
    said = capsys.readouterr().out
    assert "cpython: 0 patches, well formed, on 1.0" in said
    assert "numpy: 2 patches, well formed, on 1.0" in said

    patches_command.main("status", stack, settings)
    said = capsys.readouterr().out
    assert "Change CRLF, é and a mode" in said
    assert "a.txt: +1 -1" in said
    assert "numpy-src: none" in said

    patches_command.main("apply", stack, settings)
    patches_command.main("export", stack, settings)
    patches_command.main("status", stack, settings)
    said = capsys.readouterr().out
    assert "numpy: the queue is as in" in said
    assert said.count("in sync with the queue") == 2
    assert (tmp_path / "checkout" / ".build" / "cpython-src" / "run.sh").is_file()

    (tmp_path / "checkout" / "numpy-src" / "a.txt").write_text("mine")
    patches_command.main("status", stack, settings)
    assert "uncommitted changes in 1 file(s)" in capsys.readouterr().out
