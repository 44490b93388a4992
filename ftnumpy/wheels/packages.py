"""Which of the system's packages a file came with, and under what licence."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.errors import PrerequisiteError

DOCUMENTS = Path("/usr/share/doc")
# Debian's packages name the texts of well-known licences by their place here.
COMMON = Path("/usr/share/common-licenses")


@dataclass(frozen=True, kw_only=True)
class Package:
    """A binary package of the system, and the ``source`` package, with its version, that it was built from.

    ``distribution`` is its name in ``/etc/os-release``, such as ``debian``.
    """

    name: str
    version: str
    source: str
    distribution: str


def owner(file: Path) -> Package:
    """The package that ``file`` came with.  Raises `PrerequisiteError` where dpkg knows none."""
    asked = [str(place) for place in _places(file)]
    try:
        answer = subprocess.run(["dpkg-query", "--search", *asked], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise PrerequisiteError(
            f"{file} goes into the archive, and with it its licence; only dpkg is asked whose file it is, and this "
            "machine has no dpkg. Make the archive on Debian or Ubuntu; it runs on other systems, too"
        ) from None
    # "name:architecture: /path", or several names for a file that they share.
    match = re.search(r"^([a-z0-9][a-z0-9+.-]+)(?::\w+)?: /", answer.stdout, re.MULTILINE)
    if match is None:
        raise PrerequisiteError(
            f"{file} goes into the archive, and with it its licence, but no package of this system has it; install the "
            "library from a package, and take away the one that was installed by hand"
        )
    shown = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Version}\n${source:Package} ${source:Version}\n", match[1]],
        capture_output=True,
        text=True,
        check=True,
    )
    version, source = shown.stdout.splitlines()[:2]
    return Package(
        name=match[1],
        version=version,
        source=source,
        distribution=platform.freedesktop_os_release()["ID"],
    )


def _places(file: Path) -> list[Path]:
    """The names under which dpkg may know ``file``: /lib is a link to /usr/lib, and either may be in its lists."""
    names = dict.fromkeys([file, file.resolve()])
    roots = [Path("/", *name.parts[2:]) if name.parts[1] == "usr" else Path("/usr", *name.parts[1:]) for name in names]
    return [*names, *roots]


def licences(package: Package, documents: Path = DOCUMENTS, common: Path = COMMON) -> dict[str, Path]:
    """The texts of ``package``'s licence, by the name that each is to get below a folder of licences.

    Raises `PrerequisiteError` when its copyright file is missing.
    """
    copyright_file = documents / package.name / "copyright"
    try:
        text = copyright_file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise PrerequisiteError(
            f"{copyright_file} is missing, so a library would go into the archive without its licence; "
            f"get it with: apt-get install --reinstall {package.name}"
        ) from None
    found = {f"{package.name}/copyright": copyright_file}
    for name in sorted(set(re.findall(rf"{re.escape(str(common))}/([\w.+-]*\w)", text))):
        if (common / name).is_file():
            found[f"common-licenses/{name}"] = common / name
    return found
