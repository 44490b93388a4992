"""What the machine and the user's environment say, read once at the edge."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where things are on this machine.  ``jobs`` is the number of parallel compiler processes."""

    root: Path
    cache: Path
    sources: Path | None
    offline: bool
    jobs: int
    cc: str
    cxx: str
    ccache: str | None

    @property
    def archives(self) -> Path:
        return self.cache / "archives"

    @property
    def builds(self) -> Path:
        return self.cache / "builds"

    @property
    def work(self) -> Path:
        return self.cache / "work"

    @property
    def locks(self) -> Path:
        return self.cache / "locks"

    @property
    def logs(self) -> Path:
        return self.cache / "logs"


def read_settings(environ: Mapping[str, str], root: Path = ROOT) -> Settings:
    """Settings from ``environ``.

    ``FTNUMPY_CACHE`` (else ``$XDG_CACHE_HOME/ftnumpy``, else ``~/.cache/ftnumpy``), ``FTNUMPY_SOURCES`` (a folder
    with release archives), ``FTNUMPY_OFFLINE=1`` (use no network), ``FTNUMPY_JOBS``, ``CC`` and ``CXX``.
    Raises `UsageError` for values that can't be meant.
    """
    xdg = environ.get("XDG_CACHE_HOME")
    named = environ.get("FTNUMPY_CACHE") or (f"{xdg}/ftnumpy" if xdg else "~/.cache/ftnumpy")
    try:
        cache = Path(named).expanduser().absolute()
    except RuntimeError:
        raise UsageError(f"{named} is to be the cache, but no home folder is known here; set FTNUMPY_CACHE") from None
    sources = Path(environ["FTNUMPY_SOURCES"]).expanduser().absolute() if environ.get("FTNUMPY_SOURCES") else None
    if sources is not None and not sources.is_dir():
        raise UsageError(f"FTNUMPY_SOURCES names {sources}, which is not a folder; create it or unset the variable")
    jobs_text = environ.get("FTNUMPY_JOBS") or str(os.cpu_count() or 1)
    if not jobs_text.isdecimal() or int(jobs_text) < 1:
        raise UsageError(f"FTNUMPY_JOBS is {jobs_text!r}; give a whole number of at least 1")
    offline = environ.get("FTNUMPY_OFFLINE", "")
    if offline not in ("", "0", "1"):
        raise UsageError(f"FTNUMPY_OFFLINE is {offline!r}; give 1 or 0")
    return Settings(
        root=root,
        cache=cache,
        sources=sources,
        offline=offline == "1",
        jobs=int(jobs_text),
        cc=environ.get("CC") or "gcc",
        cxx=environ.get("CXX") or "g++",
        ccache=shutil.which("ccache", path=environ.get("PATH")),
    )
