"""Queues, their form, and trees made from them."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from patch_helpers import ARCHIVE_FILES, RELEASE, make_archive, patch_text, write_queue

from ftnumpy import git as git_module
from ftnumpy import patchfile, patchqueue
from ftnumpy.errors import FtnumpyError, PatchError, PrerequisiteError, SourceError
from ftnumpy.git import git
from ftnumpy.patchcheck import check, check_form
from ftnumpy.patchqueue import BASE, format_patches, make_tree, read_queue, read_series


def commits(folder: Path) -> list[str]:
    return git(folder, "log", "--format=%H %s", "--reverse").decode().splitlines()


def test_base_commit_keeps_every_byte_mode_and_link(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    make_tree(make_archive(tmp_path / "demo.tar.gz"), (), tree)

    for name, content in ARCHIVE_FILES.items():
        assert (tree / name).read_bytes() == content
        assert git(tree, "show", f"HEAD:{name}") == content
    modes = dict(
        reversed(line.split(None, 1))
        for line in git(tree, "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD").decode().splitlines()
    )
    assert modes["run.sh"] == "100755"
    assert modes["a.txt"] == "100644"
    assert modes["link"] == "120000"
    assert set(modes) == {*ARCHIVE_FILES, "link"}, "ignored files belong to the base commit too"
    assert git(tree, "status", "--porcelain", "--ignored") == b""
    assert (tree / "link").readlink() == Path("a.txt")
    assert stat.S_IMODE((tree / "run.sh").stat().st_mode) & 0o111


def test_patches_become_commits_in_series_order(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    queue = write_queue(tmp_path / "queue")
    make_tree(make_archive(tmp_path / "demo.tar.gz"), read_queue(queue), tree)

    assert [line.split(" ", 1)[1] for line in commits(tree)] == ["demo-1.0", "Change five", "Change CRLF, é and a mode"]
    assert (tree / "crlf.txt").read_bytes() == b"one\r\nTWO\r\nthree\r\n"
    assert (tree / "a.txt").read_text().splitlines()[4] == "five"
    assert git(tree, "rev-parse", BASE) == git(tree, "rev-parse", "HEAD~2")
    assert git(tree, "log", "-1", "--format=%an %ae %ad|%cn %cd", "--date=raw").decode().strip() == (
        "Ada é ada@example.org 1700000000 +0200|ftnumpy 1700000000 +0200"
    )


def test_commit_hashes_do_not_depend_on_the_users_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make_archive(tmp_path / "demo.tar.gz")
    patches = read_queue(write_queue(tmp_path / "queue"))
    make_tree(archive, patches, tmp_path / "first")

    home = tmp_path / "home"
    template = home / "template" / "hooks"
    template.mkdir(parents=True)
    (home / "ignore").write_text("*\n")
    (home / "attributes").write_text("* text eol=lf ident\n")
    hook = template / "applypatch-msg"
    hook.write_text('#!/bin/sh\necho "hooked" >> "$1"\n')
    hook.chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[user]\nname = Eve\nemail = eve@example.org\n[core]\nautocrlf = true\nfileMode = false\nquotePath = true\n"
        f"excludesFile = {home}/ignore\nattributesFile = {home}/attributes\nhooksPath = {template}\n"
        f"[init]\ntemplateDir = {home}/template\ndefaultBranch = trunk\n[commit]\ngpgSign = true\n"
        f"[am]\nthreeWay = true\nkeepcr = false\n[apply]\nwhitespace = fix\n[diff]\nnoprefix = true\n"
        f"[format]\nsignature = Eve\nnumbered = true\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Eve")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1 +0000")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("LANG", "tr_TR.UTF-8")
    mask = os.umask(0o077)
    try:
        make_tree(archive, patches, tmp_path / "second")
    finally:
        os.umask(mask)

    assert commits(tmp_path / "first") == commits(tmp_path / "second")
    assert format_patches(tmp_path / "first") == format_patches(tmp_path / "second")


def test_exported_patches_are_the_queues_bytes(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue")
    make_tree(make_archive(tmp_path / "demo.tar.gz"), read_queue(queue), tmp_path / "tree")
    files = {file.name: file.read_bytes() for file in queue.folder.glob("*.patch")}
    assert format_patches(tmp_path / "tree") == files


def test_a_tree_is_whole_or_absent(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "demo.tar.gz")
    queue = write_queue(tmp_path / "queue", ["0001-Change-five.patch"], old="not there")
    (tmp_path / "trees").mkdir()
    with pytest.raises(PatchError):
        make_tree(archive, read_queue(queue), tmp_path / "trees" / "tree")
    assert list((tmp_path / "trees").iterdir()) == []

    make_tree(archive, (), tmp_path / "trees" / "tree")
    with pytest.raises(FtnumpyError, match="exists already"):
        make_tree(archive, (), tmp_path / "trees" / "tree")


@pytest.mark.parametrize("spoil", ["cut", "escape", "two tops", "git"])
def test_bad_archives_are_refused(tmp_path: Path, spoil: str) -> None:
    archive = make_archive(tmp_path / "demo.tar.gz")
    if spoil == "cut":
        archive.write_bytes(archive.read_bytes()[:-200])
        said = "can't be unpacked"
    else:
        name, said = {
            "escape": ("demo-1.0/../../evil", "can't be unpacked"),
            "two tops": ("other/file", "one top folder"),
            "git": ("demo-1.0/.git/config", "git's own files"),
        }[spoil]
        with tarfile.open(archive, "w:gz") as tar:
            for member in ("demo-1.0/a.txt", name):
                info = tarfile.TarInfo(member)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(SourceError, match=said):
        make_tree(archive, (), tmp_path / "trees" / "tree")
    assert list((tmp_path / "trees").iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_a_failing_patch_is_told_by_patch_file_and_hunk(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue", ["0001-Change-five.patch", "0002-Many.patch"])
    body = (
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n"
        "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
        "@@ -20,3 +20,3 @@ section\n 20\n-twenty-one\n+21x\n 22\n"
        "diff --git a/gone.txt b/gone.txt\n--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +1 @@\n-x\n+y\n"
    )
    (queue.folder / "0002-Many.patch").write_text(patch_text("Many", body))
    with pytest.raises(PatchError) as caught:
        make_tree(make_archive(tmp_path / "demo.tar.gz"), read_queue(queue), tmp_path / "tree")
    said = str(caught.value)
    assert "queue/0002-Many.patch (patch 2 of 2) does not apply to demo-1.0" in said
    assert "a.txt, hunk 2 of 2: @@ -20,3 +20,3 @@ section" in said
    assert "| twenty-one" in said
    assert "hunk 1 of 2" not in said
    assert "gone.txt: No such file" in said


def test_context_never_matches_with_fuzz(tmp_path: Path) -> None:
    body = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -2,5 +2,5 @@\n 2\n 3\n-4\n+four\n 5\n other\n"
    queue = write_queue(tmp_path / "queue", ["0001-Fuzz.patch"])
    (queue.folder / "0001-Fuzz.patch").write_text(patch_text("Fuzz", body))
    with pytest.raises(PatchError, match=r"a\.txt, hunk 1 of 1"):
        make_tree(make_archive(tmp_path / "demo.tar.gz"), read_queue(queue), tmp_path / "tree")


def test_offset_is_an_error_on_the_pinned_release_only(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue")
    plain = make_archive(tmp_path / "demo.tar.gz")
    longer = make_archive(tmp_path / "longer.tar.gz", {"a.txt": b"0\n" + ARCHIVE_FILES["a.txt"]})

    check(queue, [(RELEASE, plain), (RELEASE, longer)], tmp_path / "work")
    with pytest.raises(PatchError) as caught:
        check(queue, [(RELEASE, longer)], tmp_path / "work")
    assert "a.txt, hunk 1 '@@ -2,7 +2,7 @@' is in fact at '@@ -3,7 +3,7 @@'" in str(caught.value)
    assert list((tmp_path / "work").iterdir()) == []


def test_check_refuses_what_export_would_write_otherwise(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue")
    file = queue.folder / "0001-Change-five.patch"
    file.write_text(file.read_text().replace("index ", "index 0", 1))
    with pytest.raises(PatchError, match=r"0001-Change-five\.patch, line \d+: has 'index 0"):
        check(queue, [(RELEASE, make_archive(tmp_path / "demo.tar.gz"))], tmp_path / "work")


def test_an_empty_queue_is_well_formed(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue", [])
    assert check_form(queue) == ()
    make_tree(make_archive(tmp_path / "demo.tar.gz"), read_queue(queue), tmp_path / "tree")
    assert len(commits(tmp_path / "tree")) == 1
    assert format_patches(tmp_path / "tree") == {}


FIVE = "0001-Change-five.patch"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.replace("From: Ada é <ada@example.org>\n", ""), "header From is missing"),
        (lambda t: t[t.index("\n") + 1 :], "line 1: is not 'From 0000"),
        (lambda t: t.replace("Date: ", "Dated: "), "header Date is missing"),
        (lambda t: t.replace("[PATCH] ", ""), r"must read '\[PATCH\] …'"),
        (lambda t: t.replace("[PATCH] ", "[PATCH 1/2] "), r"must read '\[PATCH\] …'"),
        (lambda t: t.replace("Subject: ", "Subject: x\nSubject: "), "a second header Subject"),
        (lambda t: t.replace("Subject: ", "nonsense\nSubject: "), "not a header: 'nonsense'"),
        (lambda t: t.replace("Why: a tést.\n\n", ""), "message has no body"),
        (lambda t: t[: t.index("diff --git")], "there is no diff"),
        (lambda t: t.replace("Why: a tést.", "Why: a test.\r"), "line 9: ends in CR LF"),
        (lambda t: t.replace("a.txt", "../a.txt"), "leaves the source tree"),
        (lambda t: t.replace("a/a.txt", "a//etc/a.txt").replace("b/a.txt", "b//etc/a.txt"), "leaves the source tree"),
        (lambda t: t.replace("a.txt", ".git/hooks/am"), "leaves the source tree"),
        (lambda t: t.replace("--- a/a.txt", "--- a/b.txt"), "do not name a.txt"),
        (lambda t: t.replace("b/a.txt", "b/b.txt"), "must name one file"),
        (lambda t: t.replace("+five\n", ""), "is cut short"),
        (lambda t: t + "trailing words\n", "text after the end of the diff: 'trailing words'"),
        (lambda t: t + "-- \n2.39.5\n\n", "a git version or blank lines after the end"),
        (lambda t: t.replace("From 0000", "From 1234"), "line 1: is not 'From 0000"),
        (lambda t: t.replace("diff --git", "---\n a.txt | 2 +-\n\ndiff --git", 1), "text between message and diff"),
        (lambda t: t[:-1], "no line end"),
        (lambda t: "", "empty"),
    ],
)
def test_each_malformed_patch_has_its_message(tmp_path: Path, change, said: str) -> None:
    queue = write_queue(tmp_path / "queue", [FIVE])
    check_form(queue)
    file = queue.folder / FIVE
    before = file.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    file.write_bytes(after.encode())
    with pytest.raises(PatchError, match=said) as caught:
        check_form(queue)
    assert str(file) in str(caught.value)


def test_a_patch_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue", [FIVE])
    file = queue.folder / FIVE
    file.write_bytes(file.read_bytes().replace("Why: a tést.".encode(), b"Why: \xe9"))
    with pytest.raises(PatchError, match=r"five\.patch, line 9: byte 0xe9 is not UTF-8"):
        read_queue(queue)


def test_all_problems_of_a_queue_are_told_at_once(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue")
    (queue.folder / "series").write_text(f"{FIVE}\n0002-Missing.patch\n")
    with pytest.raises(PatchError) as caught:
        read_queue(queue)
    assert "lists 0002-Missing.patch, but" in str(caught.value)
    assert "0002-Change-CRLF-and-a-mode.patch is not in" in str(caught.value)


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (f"{FIVE}\n{FIVE}\n", "line 2: 0001-Change-five.patch is listed twice"),
        (f"{FIVE} # why\n", "not the plain name"),
        (f"sub/{FIVE}\n", "not the plain name"),
        (f"{FIVE}\r\n", "CR LF"),
        (f"{FIVE}\n# below\n", "comments stand at the top"),
        (f"{FIVE}\n\n", "blank lines below the first patch"),
        (f"{FIVE}", "no line end behind the last"),
    ],
)
def test_each_malformed_series_has_its_message(tmp_path: Path, series: str, said: str) -> None:
    queue = write_queue(tmp_path / "queue", [FIVE])
    (queue.folder / "series").write_bytes(series.encode())
    with pytest.raises(PatchError, match=said):
        check_form(queue)


def test_a_missing_series_is_told(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="series is missing"):
        read_series(tmp_path)


def test_name_must_be_position_and_subject(tmp_path: Path) -> None:
    queue = write_queue(tmp_path / "queue", [FIVE])
    (queue.folder / FIVE).rename(queue.folder / "0007-five.patch")
    (queue.folder / "series").write_text("0007-five.patch\n")
    with pytest.raises(PatchError, match=r"must be named 0001-Change-five\.patch"):
        check_form(queue)


@pytest.mark.parametrize(
    "subject",
    [
        "gh-12345: fix `PyDict_Next()` (free-threaded)",
        "Ünïcode — and… dots..in.the.middle.",
        "...leading dots",
        "a very long subject that goes on and on until the name must be cut off somewhere",
        "[NFC] brackets",
        "trailing (paren)",
    ],
)
def test_file_name_and_subject_are_gits(tmp_path: Path, subject: str) -> None:
    tree = tmp_path / "tree"
    make_tree(make_archive(tmp_path / "demo.tar.gz"), (), tree)
    (tree / "new.txt").write_text("x\n")
    git(tree, "add", ".")
    author = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
    git(tree, "commit", "-q", "-m", subject, "-m", "Why.", environment=author)
    ((name, content),) = format_patches(tree).items()
    assert patchfile.file_name(1, subject) == name
    assert patchfile.parse(content).subject == subject


def test_a_missing_or_old_git_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make_archive(tmp_path / "demo.tar.gz")
    binaries = tmp_path / "bin"
    binaries.mkdir()
    monkeypatch.setenv("PATH", str(binaries))
    git_module._executable.cache_clear()
    try:
        with pytest.raises(PrerequisiteError, match="git is missing"):
            make_tree(archive, (), tmp_path / "tree")
        fake = binaries / "git"
        fake.write_text("#!/bin/sh\necho git version 2.29.3\n")
        fake.chmod(0o755)
        with pytest.raises(PrerequisiteError, match=r"2\.29\.3.*too old"):
            make_tree(archive, (), tmp_path / "tree")
    finally:
        git_module._executable.cache_clear()
    assert subprocess.run(["/bin/ls", tmp_path / "tree"], capture_output=True).returncode != 0


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="from 3.14 on tarfile can't unpack without a filter")
def test_a_python_whose_tarfile_has_no_filters_makes_the_same_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path / "demo.tar.gz")
    make_tree(archive, (), tmp_path / "first")
    monkeypatch.setattr(patchqueue, "FILTERS", False)
    make_tree(archive, (), tmp_path / "second")
    assert commits(tmp_path / "first") == commits(tmp_path / "second")
    assert (tmp_path / "second" / "a.txt").stat().st_uid == os.geteuid()


@pytest.mark.parametrize("name", ["/etc/demo", "demo-1.0/../../out"])
def test_without_filters_nothing_leaves_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with tarfile.open(tmp_path / "demo.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name))
    monkeypatch.setattr(patchqueue, "FILTERS", False)
    with pytest.raises(SourceError, match="does not need"):
        make_tree(tmp_path / "demo.tar.gz", (), tmp_path / "tree")
    assert not (tmp_path / "tree").exists() and not (tmp_path.parent / "out").exists()


def test_a_clock_before_the_release_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patchqueue.time, "time", lambda: 1_500_000_000.0)
    with pytest.raises(PrerequisiteError, match=r"clock says 2017-07-14 .* files of 2020-09-13"):
        make_tree(make_archive(tmp_path / "demo.tar.gz"), (), tmp_path / "tree")
