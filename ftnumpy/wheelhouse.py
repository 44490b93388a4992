"""The checkout's folder of what is finished.  A file appears there whole, and one run at a time puts files there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ftnumpy import fingerprint
from ftnumpy.settings import Settings


@contextmanager
def opened(settings: Settings) -> Iterator[Path]:
    """The folder, made if need be, for this run alone."""
    folder = settings.root / "wheelhouse"
    folder.mkdir(exist_ok=True)
    with fingerprint.lock(settings, f"wheelhouse-{fingerprint.fingerprint({'folder': str(folder)})[:16]}"):
        yield folder


def put(target: Path, content: Path | bytes) -> Path:
    """Make ``target``, in an opened folder, a copy of the file ``content`` or what these bytes are; returns it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Of one name, so that the next run takes away what a killed one left.
    part = target.with_name(f".{target.name}.part")
    try:
        if isinstance(content, Path):
            shutil.copy2(content, part)
        else:
            part.write_bytes(content)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
    return target
