"""A root file system that has nothing but glibc, and what glibc and manylinux wheels take for granted."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What programs load of glibc, name service included, and libgcc_s, which glibc loads when a thread ends early.
GLIBC = (
    *("ld-linux*", "libc.so.*", "libdl.so.*", "libm.so.*", "libnss_*.so.*", "libpthread.so.*", "libresolv.so.*"),
    *("librt.so.*", "libutil.so.*", "libgcc_s.so.*"),
)
# What wheels may expect besides, by every manylinux policy.
FOR_WHEELS = ("libstdc++.so.*", "libz.so.*")
DEVICES = {"null": (1, 3), "urandom": (1, 9)}


@dataclass(frozen=True)
class Root:
    """Commands in it find nothing outside of ``folder``."""

    folder: Path

    def said(self, *command: str, **environment: str) -> str:
        """What ``command`` writes; a failure shows all of it."""

        def enter() -> None:
            os.chroot(self.folder)
            os.chdir("/")

        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={"HOME": "/nonexistent", "PATH": "/nonexistent"} | environment,
            stdin=subprocess.DEVNULL,
            timeout=300,
            preexec_fn=enter,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def make(folder: Path) -> Root:
    """Make the root in ``folder``, which is there and empty."""
    install(GLIBC, folder)
    for loader in Path("/lib64").glob("ld-linux*"):
        copy(loader, folder)
    for name in ("dev", "tmp", "opt", "srv"):
        (folder / name).mkdir()
    for name, numbers in DEVICES.items():
        os.mknod(folder / "dev" / name, 0o666 | stat.S_IFCHR, os.makedev(*numbers))
    return Root(folder)


def install(patterns: tuple[str, ...], root: Path) -> None:
    """Copy libraries from where this machine has glibc to where a loader in ``root`` looks."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    match = re.search(r"(/\S+)/libc\.so\.6$", maps, re.MULTILINE)
    assert match is not None, "this is no glibc"
    libraries = Path(match[1])
    for file in (file for pattern in patterns for file in libraries.glob(pattern)):
        copy(file, root)
        # Where /lib is a folder of its own, the loader looks there; here it may be a link.
        copy(file, root, Path("/lib", *libraries.parts[3:], file.name))


def copy(file: Path, root: Path, place: Path | None = None) -> None:
    """Copy ``file``, not a link to it, to the same or another ``place`` below ``root``."""
    target = root / (place or file).relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)


def share(folder: Path, target: Path) -> None:
    """Copy what the sums in ``folder`` list to ``target``."""
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        name = line.split("  ", 1)[1]
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / name, target / name)
