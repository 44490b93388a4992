"""The system that a wheel is built on: PyPA's manylinux image, or a small one of this machine's own distribution."""

from __future__ import annotations

import configparser
import importlib.resources
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import apt_mirrors, compiler, console, fingerprint, prerequisites, process
from ftnumpy.download import NotThere, Place, read_page
from ftnumpy.errors import BuildError, CommandFailed, PrerequisiteError, SourceError
from ftnumpy.settings import Settings
from ftnumpy.wheels import engine as engines
from ftnumpy.wheels.engine import Engine

# The manylinux image that is asked for, in the release that cibuildwheel pins.
POLICY = "manylinux_2_28"
PULL_SECONDS = 1800.0
BOOTSTRAP_SECONDS = 1800.0

# Of a distribution's packages, what nobody needs who compiles.
LEFT_OUT = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/share/doc/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/archives/*.deb",
    "./var/lib/apt/lists/*",
)


@dataclass(frozen=True, kw_only=True)
class Base:
    """An image that the engine has.  ``kind`` is ``official``, ``own`` or ``named``, by the user; ``glibc`` is a
    version such as ``2.28``."""

    name: str
    identity: str
    kind: str
    glibc: str


def get(settings: Settings, engine: Engine, named: str | None, log: Path) -> tuple[Base, Engine]:
    """The image ``named`` by the user, else the official one if it can be had, else our own; and the engine, as it can
    be used here.

    Fetched or made once.  Raises `SourceError` when there is none, `PrerequisiteError` and `BuildError`.
    """
    if named is not None:
        name, kind = named, "named"
        if engines.image_id(engine, name) is None:
            try:
                _pull(settings, engine, name, log)
            except CommandFailed as error:
                raise SourceError(
                    f"{engine.name} neither has the image {name} nor can fetch it: {_short(error)}\n"
                    f"'{engine.name} images' lists those that it has; name one of them, or see to the registry\n"
                    f"log: {log}"
                ) from None
    else:
        name, kind = _official_or_own(settings, engine, log)
    engine = engines.settle(engine, name, settings.cache / "containers")
    answer = engines.ask(engine, ["run", "--rm", *engine.arguments, name, "getconf", "GNU_LIBC_VERSION"])
    words = answer.stdout.split()
    if answer.returncode != 0 or len(words) != 2 or words[0] != "glibc":
        raise BuildError(
            f"the image {name} does not say which glibc it has ({engines.last_line(answer.stderr)}); "
            "manylinux wheels are built on glibc: name another image with --image"
        )
    identity = engines.image_id(engine, name)
    assert identity is not None
    return Base(name=name, identity=identity, kind=kind, glibc=words[1]), engine


def official() -> str:
    """The address of the manylinux image for this machine's processor.  Raises `SourceError` where there is none."""
    config = configparser.ConfigParser()
    config.read_string(
        importlib.resources.files("cibuildwheel").joinpath("resources/pinned_docker_images.cfg").read_text("utf-8")
    )
    machine = platform.machine()
    if not config.has_option(machine, POLICY):
        raise SourceError(f"cibuildwheel knows no image of {POLICY} for {machine}")
    return config.get(machine, POLICY)


def _official_or_own(settings: Settings, engine: Engine, log: Path) -> tuple[str, str]:
    reasons = []
    try:
        name = official()
        if engines.image_id(engine, name) is None:
            _pull(settings, engine, name, log)
        return name, "official"
    except (CommandFailed, SourceError) as error:
        reasons.append(f"{POLICY}, the official image: {_short(error)}")
    try:
        own = _own(settings, engine, log)
    except (CommandFailed, PrerequisiteError, SourceError) as error:
        reasons.append(f"an image of this machine's distribution: {_short(error)}")
        raise SourceError(
            "\n".join(
                [
                    "there is no image to build the wheel in:",
                    *(f"  {reason}" for reason in reasons),
                    "Give the engine access to the registry, or name an image that it has or can pull, of any system "
                    "with glibc, a compiler and CPython's libraries: --image NAME",
                    f"log: {log}",
                ]
            )
        ) from None
    console.say(f"  {reasons[0]}; building on {own} instead")
    return own, "own"


def _short(error: Exception) -> str:
    """Why, in a line: of a command what it said last."""
    if isinstance(error, CommandFailed):
        return engines.last_line("\n".join(error.last_lines))
    return str(error).splitlines()[0]


def _pull(settings: Settings, engine: Engine, name: str, log: Path) -> None:
    if settings.offline:
        raise SourceError(f"{engine.name} does not have {name}, and FTNUMPY_OFFLINE is set; run once without it")
    engines.run(engine, ["pull", name], what=f"{engine.name}: fetch {name}", log=log, timeout=PULL_SECONDS)


def _own(settings: Settings, engine: Engine, log: Path) -> str:
    """A minimal system of this machine's distribution and release, with what compiles CPython and NumPy."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    needs = [need for need in prerequisites.NEEDS if need.compiler or need.command in ("git", "make", "pkg-config")]
    packages = sorted({"ca-certificates", *prerequisites.packages("apt-get", needs)})
    words = fingerprint.fingerprint({"packages": " ".join(packages)})[:8]
    name = f"localhost/ftnumpy-base:{codename}-{words}"
    with fingerprint.lock(settings, f"base-{codename}-{words}"):
        if engines.image_id(engine, name) is None:
            _make(settings, engine, name, codename, packages, log)
    return name


def _make(settings: Settings, engine: Engine, name: str, codename: str, packages: list[str], log: Path) -> None:
    if settings.offline:
        raise SourceError("FTNUMPY_OFFLINE is set, and making one takes packages from a Debian mirror")
    if shutil.which("debootstrap") is None or not codename:
        raise PrerequisiteError("there is no debootstrap on PATH (Debian and Ubuntu have a package of this name)")
    if os.geteuid() != 0:
        raise PrerequisiteError("debootstrap must be run by root")
    settings.work.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="base-", dir=settings.work))
    try:
        _bootstrap(work / "root", codename, packages, log)
        excluded = [f"--exclude={each}" for each in LEFT_OUT]
        process.run(
            ["tar", "-C", work / "root", "--numeric-owner", *excluded, "-cf", work / "root.tar", "."],
            what="pack the base image",
            log=log,
        )
        engines.run(engine, ["import", work / "root.tar", name], what=f"{engine.name}: import {name}", log=log)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _bootstrap(root: Path, codename: str, packages: list[str], log: Path) -> None:
    """Fill ``root`` from the first of apt's mirrors that has the release."""
    mirrors = apt_mirrors.mirrors(apt_mirrors.ask_apt())
    place = next(_having(mirrors, codename), None)
    if place is None:
        tried = ", ".join(str(mirror) for mirror in mirrors) or "apt names none"
        raise SourceError(f"no mirror of apt's has the release {codename} ({tried})")
    process.run(
        # In a mount namespace of its own: what debootstrap mounts is gone when it ends, however it ends.
        [
            *("unshare", "--mount", "debootstrap", "--variant=minbase", f"--include={','.join(packages)}"),
            *(codename, root, place.url),
        ],
        what=f"make a minimal {codename}",
        log=log,
        env=compiler.clean_environment()
        | {f"{scheme}_proxy": proxy for scheme, proxy in place.route.proxies.items() if proxy},
        timeout=BOOTSTRAP_SECONDS,
    )


def _having(mirrors: tuple[Place, ...], codename: str) -> Iterator[Place]:
    for mirror in mirrors:
        try:
            read_page(mirror / f"dists/{codename}/InRelease", "*/*")
        except NotThere:
            continue
        yield mirror
