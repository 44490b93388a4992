"""QEMU's user mode: where it is, which plugin API it has, and how to get it without root."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import fingerprint, process
from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import Settings

PROGRAM = "qemu-x86_64"
PACKAGE = "qemu-user"
CPU = "Nehalem"  # for -cpu: the default, qemu64, lacks what NumPy is compiled for
ADVICE = f"""Install it:
  Debian, Ubuntu: sudo apt-get install {PACKAGE}; without root: ftnumpy census --fetch-qemu
  Fedora: sudo dnf install qemu-user; Arch: sudo pacman -S qemu-user
or put a {PROGRAM} of 7.2 or later, built with --enable-plugins, on PATH"""


@dataclass(frozen=True, kw_only=True)
class Qemu:
    """A ``program`` that takes plugins; ``version`` as it says itself, such as ``7.2.22``."""

    program: Path
    version: str


def find(settings: Settings) -> Qemu:
    """The QEMU on PATH, or else the one that `fetch` unpacked.  Raises `PrerequisiteError` with what to do."""
    fetched = _fetched(settings)
    on_path = shutil.which(PROGRAM)
    if on_path is None and not fetched.exists():
        raise PrerequisiteError(f"the census runs programs under {PROGRAM}, which this machine has not.\n{ADVICE}")
    return identify(Path(on_path) if on_path else fetched)


def identify(program: Path) -> Qemu:
    """What ``program`` is.  Raises `PrerequisiteError` when it can't be run, is too old or takes no plugins."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise PrerequisiteError(f"{program} can't be run: {error}.\n{ADVICE}") from None
    match = re.search(r"version (\d+)\.(\d+)(\.\d+)?", said)
    if match is None:
        raise PrerequisiteError(f"{program} does not say its version, but: {said.strip()!r}.\n{ADVICE}")
    version = (int(match[1]), int(match[2]))
    if version < (7, 2):
        raise PrerequisiteError(f"{program} is QEMU {match[0][8:]}; the census needs 7.2 or later.\n{ADVICE}")
    if "-plugin" not in help_text:
        raise PrerequisiteError(f"{program} was built without plugins.\n{ADVICE}")
    return Qemu(program=program, version=match[0][8:])


def fetch(settings: Settings, log: Path) -> Path:
    """Download the distribution's package and unpack it into the cache; returns the program.  Needs no root.

    Raises `PrerequisiteError` on a machine without apt, `CommandFailed` when a command fails.
    """
    program = _fetched(settings)
    for command in ("apt-get", "dpkg-deb"):
        if shutil.which(command) is None:
            raise PrerequisiteError(f"{command} is missing, so {PROGRAM} can't be fetched here.\n{ADVICE}")
    with fingerprint.lock(settings, PACKAGE):
        if program.exists():
            return program
        settings.work.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f"{PACKAGE}-", dir=settings.work))
        try:
            process.run(["apt-get", "download", PACKAGE], what=f"download of {PACKAGE}", log=log, cwd=work)
            (package,) = work.glob("*.deb")
            process.run(["dpkg-deb", "-x", package, work / "tree"], what=f"unpacking {package.name}", log=log)
            root = program.parents[2]
            root.parent.mkdir(parents=True, exist_ok=True)
            (work / "tree").rename(root)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return program


def _fetched(settings: Settings) -> Path:
    return settings.cache / "tools" / PACKAGE / "usr" / "bin" / PROGRAM
