"""Virtual environments of an interpreter that we built, and the packages for them, kept in the cache."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from ftnumpy import compiler, fingerprint, process
from ftnumpy.errors import SourceError
from ftnumpy.settings import Settings


def make_venv(
    settings: Settings,
    base: Path,
    folder: Path,
    requires: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    exact: bool = False,
) -> Path:
    """A new virtual environment of the interpreter ``base`` in ``folder``, with ``requires`` (names or wheels).

    ``exact`` says that ``requires`` names all that is needed, each with its version and to be had as a wheel.  What was
    in ``folder`` is lost.  Returns the environment's python.  Raises `CommandFailed`, and what `packages`
    raises before anything is touched.
    """
    environment = compiler.clean_environment()
    named = [requirement for requirement in requires if isinstance(requirement, str)]
    # Isolated from the user's pip configuration, whose say ended with the download.
    offline = ["--isolated", "--no-index"]
    if named:
        found = packages(settings, base, named, what=what, log=log, exact=exact)
        offline += ["--find-links", str(found)]
    process.run([base, "-m", "venv", "--clear", folder], what=what, log=log, env=environment)
    python = folder / "bin" / "python"
    process.run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *offline, *requires],
        what=what,
        log=log,
        env=environment,
    )
    return python


def packages(
    settings: Settings,
    base: Path,
    names: Sequence[str],
    *,
    what: str,
    log: Path,
    exact: bool = False,
    glibc: str | None = None,
) -> Path:
    """A folder with the packages of ``names`` and, unless these are exact, of all that they need, for interpreters that
    are called as ``base`` is.

    ``glibc`` is the version of the system that they are for, where that isn't this one; they are wheels then.  Fetched
    once, from where the user's pip looks.  Raises `SourceError` when they were not and no network may be used.
    """
    words = ["--no-deps"] if exact else []
    if exact or glibc:
        words += ["--only-binary=:all:"]
    if glibc:
        words += _platforms(glibc)
    inputs = {"python": base.name, "requires": " ".join([*words, *names])}

    def fetch(work: Path, _: Path) -> Path:
        if settings.offline:
            raise SourceError(
                f"{what}: {', '.join(names)} are not in {settings.builds}, and FTNUMPY_OFFLINE is set; "
                "run once without it, and they are kept there"
            )
        target = work / "packages"
        target.mkdir()
        process.run(
            [
                base,
                "-m",
                "pip",
                "download",
                "--disable-pip-version-check",
                "--no-input",
                "--dest",
                target,
                *words,
                *names,
            ],
            what=f"{what}: fetch packages",
            log=log,
            cwd=work,
            env=compiler.clean_environment(),
        )
        return target

    folder, _ = fingerprint.build_once(settings, "packages", inputs, fetch)
    return folder


def _platforms(glibc: str) -> list[str]:
    """For pip: the platforms whose wheels run on a system with that version of glibc, from the newest on."""
    major, minor = glibc.split(".")
    machine = platform.machine()
    # pip knows by itself what stands below manylinux2014.
    tags = [*(f"manylinux_{major}_{number}" for number in range(int(minor), 16, -1)), "manylinux2014"]
    return [f"--platform={tag}_{machine}" for tag in tags]
