"""A folder as a tar archive whose bytes depend on its files and nothing else."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import zstandard

from ftnumpy import console

ZSTANDARD_LEVEL = 19
GZIP_LEVEL = 9


def write(folder: Path, top: str, epoch: int, targets: tuple[Path, Path]) -> None:
    """Pack ``folder`` as ``top`` into ``targets``, a ``.tar.zst`` and a ``.tar.gz``.

    Entries are sorted, belong to uid and gid 0, bear the time ``epoch`` (seconds since 1970) and one of three modes:
    folder, program or file.  Neither has a name or a time in its header.
    """
    zst, gz = targets
    with zst.open("wb") as raw, zstandard.ZstdCompressor(level=ZSTANDARD_LEVEL).stream_writer(raw) as stream:
        _pack(folder, top, epoch, cast(IO[bytes], stream), zst.name)
    with gz.open("wb") as raw, gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as stream:
        _pack(folder, top, epoch, cast(IO[bytes], stream), gz.name)


def _pack(folder: Path, top: str, epoch: int, stream: IO[bytes], what: str) -> None:
    entries = list(_entries(folder))
    with (
        console.counter(what, len(entries)) as progress,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in entries:
            name = Path(top, path.relative_to(folder)).as_posix()
            entry = tar.gettarinfo(path, name)
            # Two names of one file become two files: not everything that unpacks archives knows hard links.
            if entry.islnk():
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = epoch
            entry.mode = 0o777 if entry.issym() else 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            if entry.isreg():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
            progress.update(progress.task_ids[0], advance=1)


def _entries(folder: Path) -> Iterator[Path]:
    """``folder`` and all below it, by name; a link to a folder is a link."""
    yield folder
    with os.scandir(folder) as found:
        for entry in sorted(found, key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(Path(entry.path))
            else:
                yield Path(entry.path)
