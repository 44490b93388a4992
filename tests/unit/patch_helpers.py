"""A small release and a queue of two patches on it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ftnumpy.patchfile import FROM_LINE
from ftnumpy.stack import Queue, Release

ARCHIVE_FILES = {
    "a.txt": b"".join(b"%d\n" % number for number in range(1, 31)),
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "mixed.txt": b"one\r\ntwo\n$Id$\n",
    "run.sh": b"#!/bin/sh\n",
    "ignored.o": b"\x00\x01\xff",
    "dir/\u00fc name.txt": b"\xfc\n",
    ".gitignore": b"*.o\nbuild/\n",
    ".gitattributes": b"*.txt text eol=lf ident\n",
}
RELEASE = Release(
    project="demo",
    version="1.0",
    archive="demo.tar.gz",
    size=1,
    sha256="0" * 64,
    url=None,
    apt_pool=None,
    index_project=None,
)
ALL = ("0001-Change-five.patch", "0002-Change-CRLF-and-a-mode.patch")


def make_archive(file: Path, changed: Mapping[str, bytes] | None = None) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for name, content in (ARCHIVE_FILES | dict(changed or {})).items():
            info = tarfile.TarInfo(f"demo-1.0/{name}")
            info.size = len(content)
            info.mtime = 1_600_000_000
            info.mode = 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("demo-1.0/link")
        link.type = tarfile.SYMTYPE
        link.linkname = "a.txt"
        tar.addfile(link)
    return file


def patch_text(subject: str, diff: str) -> str:
    return (
        f"{FROM_LINE}\nFrom: Ada é <ada@example.org>\nDate: Wed, 15 Nov 2023 00:13:20 +0200\n"
        f"Subject: [PATCH] {subject}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        f"Content-Transfer-Encoding: 8bit\n\nWhy: a tést.\n\n{diff}"
    )


def _index(name: str, old: bytes, new: bytes) -> str:
    """The line with both blobs' hashes, as git computes them."""
    before = ARCHIVE_FILES[name]
    blobs = [
        hashlib.sha1(b"blob %d\0%s" % (len(data), data)).hexdigest() for data in (before, before.replace(old, new))
    ]
    return f"index {blobs[0]}..{blobs[1]} 100644\n"


FIVE = (
    "diff --git a/a.txt b/a.txt\n"
    + _index("a.txt", b"4\n5\n6\n", b"4\nfive\n6\n")
    + "--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
)
CRLF = (
    "diff --git a/crlf.txt b/crlf.txt\n" + _index("crlf.txt", b"two", b"TWO") + "--- a/crlf.txt\n+++ b/crlf.txt\n"
    "@@ -1,3 +1,3 @@\n one\r\n-two\r\n+TWO\r\n three\r\n"
    "diff --git a/dir/ü name.txt b/dir/ü name.txt\nold mode 100644\nnew mode 100755\n"
)


def write_queue(folder: Path, names: Sequence[str] = ALL, old: str = "5") -> Queue:
    """A queue in the form that export writes; ``old`` other than 5 makes the first patch fail."""
    folder.mkdir()
    texts = {
        ALL[0]: patch_text("Change five", FIVE.replace("\n-5\n", f"\n-{old}\n")),
        ALL[1]: patch_text("Change CRLF, é and a mode", CRLF),
    }
    for name in names:
        if name in texts:
            (folder / name).write_bytes(texts[name].encode())
    (folder / "series").write_text("# The order.\n\n" + "".join(f"{name}\n" for name in names))
    return Queue(project="demo", folder=folder)
