"""A release archive, verified, from the first channel that has it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ftnumpy import apt_mirrors, console, locks, pip_index
from ftnumpy.download import NotThere, Place, Route, download, read_place
from ftnumpy.errors import ArchiveNotFound, HashMismatch, SourceError
from ftnumpy.settings import Settings
from ftnumpy.stack import Project, Release

Note = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """An archive in the cache whose bytes have the pinned hash, and the channel that it came from this time."""

    release: Release
    path: Path
    channel: str


def fetch_first(project: Project, channels: Sequence[str], settings: Settings) -> Source:
    """The archive of the first of ``project.releases`` that any channel has.

    A fallback is announced as a warning, and ``Source.release`` says which release it is.  Raises as `fetch` does; a
    wrong hash or a full disk ends the search, because another release would only hide it.
    """
    failures: list[ArchiveNotFound] = []
    for release in project.releases:
        try:
            source = fetch(release, channels, settings)
        except ArchiveNotFound as error:
            failures.append(error)
            continue
        if failures:
            missing = "\n".join(str(failure) for failure in failures)
            console.warn(f"{missing}\nUSING THE FALLBACK RELEASE {project.name} {release.version} INSTEAD.")
        return source
    if len(failures) == 1:
        raise failures[0]
    raise SourceError("\n".join(str(failure) for failure in failures))


def fetch(release: Release, channels: Sequence[str], settings: Settings) -> Source:
    """The archive of ``release`` as ``settings.archives / release.archive``, from the first of ``channels`` with it.

    The archive in the cache is verified each time; a damaged one is removed and fetched anew.  Two runs at once wait
    for each other.  Raises `ArchiveNotFound` when no channel has the archive, `HashMismatch` when one serves other
    bytes under its name, `SourceError` when the cache can't be written.
    """
    target = settings.archives / release.archive
    with _disk(target):
        # Without the lock first: a cache that we may only read is as good as any.
        if "cache" in channels and target.exists() and _sha256(target) == release.sha256:
            return Source(release, target, "cache")
        settings.archives.mkdir(parents=True, exist_ok=True)
        with locks.held(
            target.with_name(f"{target.name}.lock"), f"{target.name}: waiting for another run that fetches it"
        ):
            return _fetch_locked(release, channels, settings, target)


def _fetch_locked(release: Release, channels: Sequence[str], settings: Settings, target: Path) -> Source:
    reasons: list[tuple[str, str]] = []
    for channel in channels:

        def note(why: str, channel: str = channel) -> None:
            reasons.append((channel, why))

        if channel == "cache":
            found = _from_cache(release, target, note)
        elif channel == "folder":
            found = _from_folder(release, settings.sources, target, note)
        elif settings.offline:
            note("not tried, FTNUMPY_OFFLINE is set")
            found = False
        else:
            found = _from_network(release, channel, target, note)
        if found:
            return Source(release, target, channel)
    name = f"{release.project} {release.version}"
    raise ArchiveNotFound(name, release.archive, release.sha256, settings.archives, reasons)


def _from_cache(release: Release, target: Path, note: Note) -> bool:
    if not target.exists():
        note(f"{target} does not exist")
        return False
    found = _sha256(target)
    if found == release.sha256:
        return True
    target.unlink()
    note(f"{target} was damaged and has been removed")
    console.warn(f"{target} had sha256 {found} instead of {release.sha256}; it was removed and is fetched anew")
    return False


def _from_folder(release: Release, folder: Path | None, target: Path, note: Note) -> bool:
    if folder is None:
        note("FTNUMPY_SOURCES is not set")
        return False
    names = [release.archive]
    if release.apt_pool:
        names.append(PurePosixPath(release.apt_pool).name)
    files = [folder / name for name in names if (folder / name).is_file()]
    if not files:
        note(f"{folder} has no {' or '.join(names)}")
        return False
    copy = target.with_name(f"{target.name}.copy")
    try:
        shutil.copyfile(files[0], copy)
        found = _sha256(copy)
        if found != release.sha256:
            raise HashMismatch(f"{release.archive} ({files[0]})", "folder", release.sha256, found)
        copy.replace(target)
    finally:
        copy.unlink(missing_ok=True)
    return True


def _from_network(release: Release, channel: str, target: Path, note: Note) -> bool:
    part = target.with_name(f"{target.name}.part")
    try:
        for place in NETWORK[channel](release, note):
            try:
                _download_verified(release, channel, place, part)
            except NotThere as error:
                note(str(error))
                console.say(f"  {error}")
                continue
            part.replace(target)
            return True
    except NotThere as error:
        note(str(error))
    return False


def _download_verified(release: Release, channel: str, place: Place, part: Path) -> None:
    """Leaves the pinned bytes in ``part``, or raises and leaves no wrong ones."""
    console.say(f"  {release.archive}: trying {place}")
    continued = download(place, part, release.size, release.archive)
    if continued and _sha256(part) != release.sha256:
        # The bytes of the earlier, interrupted transfer may be the wrong ones.
        part.unlink()
        download(place, part, release.size, release.archive)
    found = _sha256(part)
    if found != release.sha256:
        if part.stat().st_size > release.size:
            found = f"unknown: more than the pinned {release.size} bytes came"
        part.unlink()
        raise HashMismatch(f"{release.archive} ({place})", channel, release.sha256, found)


def _url_places(release: Release, note: Note) -> Iterator[Place]:
    if release.url is None:
        raise NotThere("stack.toml gives no url")
    yield read_place(release.url, Route())


def _apt_places(release: Release, note: Note) -> Iterator[Place]:
    if release.apt_pool is None:
        raise NotThere("stack.toml gives no apt-pool")
    mirrors = apt_mirrors.mirrors(apt_mirrors.ask_apt())
    if not mirrors:
        raise NotThere("apt is not configured with a mirror")
    for mirror in mirrors:
        yield mirror / release.apt_pool


def _index_places(release: Release, note: Note) -> Iterator[Place]:
    if release.index_project is None:
        raise NotThere("stack.toml gives no index-project")
    yield from pip_index.find(release.index_project, release.archive, pip_index.ask_pip(), note)


# Each gives the places of one channel in turn; a place that is not there is noted, a channel without any is `NotThere`.
NETWORK: dict[str, Callable[[Release, Note], Iterator[Place]]] = {
    "url": _url_places,
    "apt": _apt_places,
    "index": _index_places,
}


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _disk(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or target
        raise SourceError(
            f"{where}: {error.strerror or error}, while {target} was read or written\n"
            "What was fetched so far is kept and continued by the next run. Free some space, mend the permissions, or "
            "name another folder with FTNUMPY_CACHE."
        ) from None
