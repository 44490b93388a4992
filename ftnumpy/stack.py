"""``stack.toml`` read once into frozen dataclasses: Release, Queue, Project, Variant, Stack."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from ftnumpy.errors import UsageError

CHANNELS = ("cache", "folder", "url", "apt", "index")
PROFILES = ("default", "release")
BUILDS = ("gil", "tsan", "asan")


@dataclass(frozen=True, kw_only=True)
class Release:
    """An upstream version and its source archive.  ``size`` is in bytes, ``sha256`` in lower-case hex.

    ``url`` (official address), ``apt_pool`` (path under a Debian mirror's base address) and ``index_project`` (name on
    a package index) say where the channels of the same name look; None where a channel can't have it.
    """

    project: str
    version: str
    archive: str
    size: int
    sha256: str
    url: str | None
    apt_pool: str | None
    index_project: str | None


@dataclass(frozen=True, kw_only=True)
class Queue:
    """An ordered list of patches: files in ``folder``, in the order of its ``series`` file."""

    project: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Project:
    """One upstream: its releases (the pinned one first, then fallbacks), our queue, and how it is built.

    ``options`` go to every build, with those of its profile and, for a variant that is one of `BUILDS`, of that.
    """

    name: str
    releases: tuple[Release, ...]
    queue: Queue
    requires: tuple[str, ...]
    options: tuple[str, ...]
    profiles: dict[str, tuple[str, ...]]
    builds: dict[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A series: CPython and NumPy that belong together, the NumPy that they are measured against, what their tests need
    besides, and packages of others that are tried with them."""

    series: str
    local_version: str
    channels: tuple[str, ...]
    cpython: Project
    numpy: Project
    reference: Project
    test_requires: tuple[str, ...]
    upstream_requires: tuple[str, ...]
    others_requires: tuple[str, ...]
    container_requires: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Which prefix of each queue is applied (None means the whole queue), and how the result is built.

    ``build`` is one of `BUILDS` (with the GIL, both with ThreadSanitizer, NumPy with AddressSanitizer); None is how it
    is used.  ``reference`` takes the NumPy that we measure against.
    """

    name: str
    cpython_patches: int | None
    numpy_patches: int | None
    build: str | None = None
    reference: bool = False

    @property
    def gil(self) -> bool:
        return self.build == "gil"


STOCK = Variant(name="stock", cpython_patches=0, numpy_patches=0)
PATCHED = Variant(name="patched", cpython_patches=None, numpy_patches=None)
GIL = Variant(name="gil", cpython_patches=None, numpy_patches=None, build="gil")
TSAN = Variant(name="tsan", cpython_patches=None, numpy_patches=None, build="tsan")
ASAN = Variant(name="asan", cpython_patches=0, numpy_patches=None, build="asan")
REFERENCE = Variant(name="reference", cpython_patches=0, numpy_patches=0, reference=True)


def read_variant(text: str) -> Variant:
    """``stock``, ``patched``, ``reference`` (another NumPy on stock's interpreter), one of `BUILDS` (for checks), or a
    prefix such as ``c2n1`` (the first 2 CPython patches and the first NumPy patch, built for use)."""
    for variant in (STOCK, PATCHED, REFERENCE, GIL, TSAN, ASAN):
        if text == variant.name:
            return variant
    match = re.fullmatch(r"c(\d+)n(\d+)", text)
    if match is None:
        raise UsageError(
            f"there is no variant {text!r}; give 'stock', 'patched', 'reference' (the NumPy that we measure against, "
            "on stock's interpreter), a prefix of the queues such as 'c2n1' (the first 2 CPython patches, the first "
            "NumPy patch), or 'gil', 'tsan' or 'asan' (patched, built for checks)"
        )
    return Variant(name=text, cpython_patches=int(match[1]), numpy_patches=int(match[2]))


def read_stack(file: Path, series: str | None = None) -> Stack:
    """The stack that ``file`` declares for ``series`` (default: its ``default-series``).  Raises `UsageError`."""
    try:
        with file.open("rb") as stream:
            data = tomllib.load(stream)
    except FileNotFoundError:
        raise UsageError(f"{file} is missing; run from a whole checkout of ftnumpy") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    try:
        name = series or data["default-series"]
        if name not in data["series"]:
            raise UsageError(f"{file} has no series {name!r}; it has {', '.join(data['series'])}")
        table = data["series"][name]
        channels = tuple(table["channels"])
        unknown = [channel for channel in channels if channel not in CHANNELS]
        if unknown:
            raise UsageError(f"{file}: no channel {unknown[0]!r}; the channels are {', '.join(CHANNELS)}")
        numpy = _project("numpy", table["numpy"], file, options="meson")
        reference = _release("numpy", table["numpy"]["reference"], file)
        return Stack(
            series=name,
            local_version=table["local-version"],
            channels=channels,
            cpython=_project("cpython", table["cpython"], file, options="configure"),
            numpy=numpy,
            reference=replace(numpy, releases=(reference,)),
            test_requires=tuple(table["test"]["requires"]),
            upstream_requires=tuple(table["upstream"]["requires"]),
            others_requires=tuple(table["others"]["requires"]),
            container_requires=tuple(table["container"]["requires"]),
        )
    except KeyError as error:
        raise UsageError(f"{file}: the entry {error} is missing") from None


def _project(name: str, table: dict[str, Any], file: Path, options: str) -> Project:
    releases = tuple(_release(name, entry, file) for entry in table["releases"])
    if not releases:
        raise UsageError(f"{file}: {name} has no release")
    return Project(
        name=name,
        releases=releases,
        queue=Queue(project=name, folder=file.parent / table["queue"]),
        requires=tuple(table["options"].get("requires", ())),
        options=tuple(table["options"][options]),
        profiles={profile: tuple(extra) for profile, extra in table.get("profiles", {"default": ()}).items()},
        builds={build: tuple(table["builds"][build]) for build in BUILDS},
    )


def _release(project: str, entry: dict[str, Any], file: Path) -> Release:
    where = f"{file}: release {entry.get('version', '?')} of {project}"
    try:
        Version(entry["version"])
    except InvalidVersion:
        raise UsageError(f"{where}: not a version") from None
    if not re.fullmatch(r"[0-9a-f]{64}", entry["sha256"]):
        raise UsageError(f"{where}: sha256 must be 64 lower-case hex digits")
    if not isinstance(entry["size"], int) or entry["size"] <= 0:
        raise UsageError(f"{where}: size must be a positive number of bytes")
    return Release(
        project=project,
        version=entry["version"],
        archive=entry["archive"],
        size=entry["size"],
        sha256=entry["sha256"],
        url=entry.get("url"),
        apt_pool=entry.get("apt-pool"),
        index_project=entry.get("index-project"),
    )
