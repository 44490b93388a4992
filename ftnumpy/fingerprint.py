"""One folder per hash of everything that goes into a build; a folder that exists is complete."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from filelock import FileLock, Timeout

from ftnumpy import console, locks
from ftnumpy.errors import BuildError
from ftnumpy.settings import Settings

DESCRIPTION = "build.json"
FILES = "files.json"
# What users and interpreters may add to or change in a finished build.
OPEN = frozenset({"__pycache__", "site-packages"})
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def fingerprint(inputs: Mapping[str, str]) -> str:
    """64 hex digits that change whenever a name or a value in ``inputs`` does."""
    return hashlib.sha256(json.dumps(dict(inputs), sort_keys=True).encode()).hexdigest()


def place(settings: Settings, kind: str, inputs: Mapping[str, str]) -> Path:
    """Where the build of ``inputs`` lies when it is done.  ``kind`` is a word without a dash."""
    return settings.builds / f"{kind}-{fingerprint(inputs)[:16]}"


def find(settings: Settings, kind: str, inputs: Mapping[str, str]) -> Path | None:
    """The finished build of ``inputs``; None when there is none, or none that is as it was made."""
    final = place(settings, kind, inputs)
    return final if final.is_dir() and damage(final) is None else None


@contextmanager
def lock(settings: Settings, name: str) -> Iterator[None]:
    """Hold the lock ``name`` of this cache; says so when another run has it.  The system frees a killed run's lock."""
    settings.locks.mkdir(parents=True, exist_ok=True)
    with locks.held(settings.locks / name, f"waiting for another run that makes {name}"):
        yield


def build_once(
    settings: Settings, kind: str, inputs: Mapping[str, str], build: Callable[[Path, Path], Path]
) -> tuple[Path, bool]:
    """The folder with the build of ``inputs``, and whether this call built it.

    ``build(work, final)`` gets an empty folder of its own, leaves the result in a folder somewhere under it and returns
    that one; it becomes ``final`` by a single rename.  No other run ever gets the same ``work``, so what a killed
    run's orphans still write can't reach a later result.  Of several runs one builds while the others wait.  When
    ``build`` raises nothing is left; a full disk becomes a `BuildError`.  A damaged build is made anew.
    """
    final = place(settings, kind, inputs)
    if find(settings, kind, inputs):
        return final, False
    with lock(settings, final.name):
        if find(settings, kind, inputs):
            return final, False
        try:
            if final.is_dir():
                _discard(settings, final)
            _build(settings, inputs, build, final)
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise BuildError(
                f"no space is left for the build of {kind} in {settings.cache} ({error.strerror}); "
                "free some, or set FTNUMPY_CACHE to a folder on another disk, and run again"
            ) from None
    return final, True


def _discard(settings: Settings, final: Path) -> None:
    """Take a damaged build out of the way, whole: by a rename, so that it is never half there under its name."""
    console.warn(f"{final} was damaged ({damage(final)}); it is removed and built anew")
    settings.work.mkdir(parents=True, exist_ok=True)
    waste = Path(tempfile.mkdtemp(prefix=f"{final.name}-", dir=settings.work))
    final.rename(waste / "damaged")
    shutil.rmtree(waste, ignore_errors=True)


def _build(settings: Settings, inputs: Mapping[str, str], build: Callable[[Path, Path], Path], final: Path) -> None:
    settings.work.mkdir(parents=True, exist_ok=True)
    settings.builds.mkdir(parents=True, exist_ok=True)
    clear_abandoned(settings, final.name)
    work = Path(tempfile.mkdtemp(prefix=f"{final.name}-", dir=settings.work))
    started, start = time.time(), time.monotonic()
    try:
        staged = build(work, final)
        description = {
            "inputs": dict(inputs),
            "fingerprint": fingerprint(inputs),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.monotonic() - start),
        }
        (staged / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        (staged / FILES).write_text(json.dumps(_contents(staged), indent=0) + "\n", encoding="utf-8")
        staged.rename(final)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def clear_abandoned(settings: Settings, own: str = "") -> None:
    """Remove work folders of runs that were killed: those whose lock is free, or ``own``, whose lock the caller has."""
    for folder in settings.work.iterdir() if settings.work.exists() else ():
        match = re.fullmatch(r"(\w+-[0-9a-f]{16})-\w+", folder.name)
        if match is None:
            continue
        try:
            with nullcontext() if match[1] == own else FileLock(settings.locks / match[1], timeout=0):
                console.say(f"  removing what a killed run left in {folder}")
                shutil.rmtree(folder, ignore_errors=True)
        except Timeout:
            continue


def damage(folder: Path) -> str | None:
    """What is wrong with the finished build in ``folder``: the first of its files that is missing or has another size,
    as a disk leaves them that lost its power or its files to a cleaner; None when all are there.

    A build from before there was a list of files is taken as it is.
    """
    if not (folder / DESCRIPTION).is_file():
        return f"{DESCRIPTION} is missing"
    try:
        expected = json.loads((folder / FILES).read_text(encoding="utf-8")).items()
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError):
        return f"{FILES} can't be read"
    for name, size in expected:
        try:
            if _size(folder / name) != size:
                return f"{name} has another size"
        except OSError:
            return f"{name} is missing"
    return None


def _contents(folder: Path) -> dict[str, int]:
    """Every file below ``folder`` with its size in bytes, but for what is `OPEN`."""
    sizes = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - OPEN)
        for name in sorted(names):
            file = Path(parent, name)
            sizes[str(file.relative_to(folder))] = _size(file)
    return sizes


def _size(file: Path) -> int:
    """In bytes; a link's is the length of what it points to."""
    return file.lstat().st_size


def read_description(folder: Path) -> dict[str, object]:
    """What ``build_once`` wrote beside a build: inputs, fingerprint, start (UTC) and duration in seconds."""
    description: dict[str, object] = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    return description


def describe_times(folder: Path) -> str:
    """A build's start and duration, for a reader."""
    description = read_description(folder)
    return f"{description['started']}, took {console.duration(float(str(description['seconds'])))}"
