"""What the machine must have before a build starts, how to find out, and the one line that installs the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import Settings, read_settings

# The package managers that we know, in the order in which they are looked for, and what installs a package.
MANAGERS = {
    "apt-get": "apt-get install -y",
    "dnf": "dnf install -y",
    "pacman": "pacman -S --needed",
    "zypper": "zypper install -y",
    "apk": "apk add",
}


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing that a build needs.

    Found as a ``command`` on PATH or, when ``source`` is given, by the ``compiler`` (``c`` or ``c++``) that
    preprocesses it; ``source`` ends with the word VERSION and a macro, if the library tells its version that way.
    ``packages`` are names in the order of MANAGERS.  Without an optional one a build works, with the loss that ``why``
    names.  ``module`` is the Python module that is missing from an interpreter that was built without it.
    """

    name: str
    why: str
    packages: tuple[str, str, str, str, str]
    command: str | None = None
    compiler: str | None = None
    source: str | None = None
    module: str | None = None
    optional: bool = False


def _library(
    name: str,
    why: str,
    packages: tuple[str, str, str, str, str],
    source: str,
    *,
    module: str | None = None,
    optional: bool = False,
) -> Need:
    return Need(name=name, why=why, packages=packages, compiler="c", source=source, module=module, optional=optional)


NEEDS = (
    Need(name="git", why="patch queues", packages=("git",) * 5, command="git"),
    Need(name="make", why="CPython's build", packages=("make",) * 5, command="make"),
    Need(
        name="C compiler",
        why="everything",
        packages=("gcc libc6-dev", "gcc", "gcc", "gcc", "gcc musl-dev"),
        compiler="c",
        source="#include <stdio.h>\nVERSION __VERSION__\n",
    ),
    Need(
        name="C++17 compiler",
        why="NumPy",
        packages=("g++", "gcc-c++", "gcc", "gcc-c++", "g++"),
        compiler="c++",
        source="#include <optional>\nVERSION __VERSION__\n",
    ),
    Need(
        name="pkg-config",
        why="finds OpenBLAS and CPython's libraries",
        packages=("pkg-config", "pkgconf-pkg-config", "pkgconf", "pkg-config", "pkgconf"),
        command="pkg-config",
    ),
    _library(
        "zlib",
        "module zlib, pip",
        ("zlib1g-dev", "zlib-devel", "zlib", "zlib-devel", "zlib-dev"),
        "#include <zlib.h>\nVERSION ZLIB_VERSION\n",
        module="zlib",
    ),
    _library(
        "OpenSSL 1.1.1 or later",
        "module ssl, pip",
        ("libssl-dev", "openssl-devel", "openssl", "libopenssl-devel", "openssl-dev"),
        "#include <openssl/ssl.h>\n#if OPENSSL_VERSION_NUMBER < 0x10101000L\n#error too old\n#endif\n"
        "VERSION OPENSSL_VERSION_TEXT\n",
        module="ssl",
    ),
    _library(
        "libffi",
        "module ctypes, which NumPy uses",
        ("libffi-dev", "libffi-devel", "libffi", "libffi-devel", "libffi-dev"),
        "#include <ffi.h>\n",
        module="ctypes",
    ),
    _library(
        "liblzma",
        "module lzma",
        ("liblzma-dev", "xz-devel", "xz", "xz-devel", "xz-dev"),
        "#include <lzma.h>\nVERSION LZMA_VERSION_STRING\n",
        module="lzma",
    ),
    _library(
        "bzip2",
        "module bz2",
        ("libbz2-dev", "bzip2-devel", "bzip2", "libbz2-devel", "bzip2-dev"),
        "#include <bzlib.h>\n",
        module="bz2",
    ),
    _library(
        "SQLite 3.15.2 or later",
        "module sqlite3",
        ("libsqlite3-dev", "sqlite-devel", "sqlite", "sqlite3-devel", "sqlite-dev"),
        "#include <sqlite3.h>\n#if SQLITE_VERSION_NUMBER < 3015002\n#error too old\n#endif\nVERSION SQLITE_VERSION\n",
        module="sqlite3",
    ),
    _library(
        "readline",
        "line editing in the interpreter",
        ("libreadline-dev", "readline-devel", "readline", "readline-devel", "readline-dev"),
        "#include <stdio.h>\n#include <readline/readline.h>\n",
        module="readline",
    ),
    _library(
        "ncurses",
        "without it no module curses and a plainer prompt",
        ("libncurses-dev", "ncurses-devel", "ncurses", "ncurses-devel", "ncurses-dev"),
        "#include <curses.h>\nVERSION NCURSES_VERSION\n",
        module="curses",
        optional=True,
    ),
    _library(
        "libuuid",
        "without it slower uuid.uuid1()",
        ("uuid-dev", "libuuid-devel", "util-linux-libs", "libuuid-devel", "util-linux-dev"),
        "#include <uuid/uuid.h>\n",
        module="_uuid",
        optional=True,
    ),
    _library(
        "gdbm",
        "without it no module dbm.gnu",
        ("libgdbm-dev", "gdbm-devel", "gdbm", "gdbm-devel", "gdbm-dev"),
        "#include <gdbm.h>\n",
        module="_gdbm",
        optional=True,
    ),
    Need(
        name="ccache",
        why="without it every build compiles everything anew",
        packages=("ccache",) * 5,
        command="ccache",
        optional=True,
    ),
    Need(
        name="QEMU's user mode",
        why="without it no contention census",
        packages=("qemu-user", "qemu-user", "qemu-user", "qemu-linux-user", "qemu-x86_64"),
        command="qemu-x86_64",
        optional=True,
    ),
    Need(name="valgrind", why="without it no bench", packages=("valgrind",) * 5, command="valgrind", optional=True),
)


@dataclass(frozen=True)
class Finding:
    """Whether ``need`` is there, and the version that it tells (empty when it tells none)."""

    need: Need
    found: bool
    version: str


def check(settings: Settings, needs: Iterable[Need] = NEEDS) -> list[Finding]:
    """Look for each of ``needs``.  Without a compiler nothing that it would have to look for counts as found."""
    return [_find(settings, need) for need in needs]


def _find(settings: Settings, need: Need) -> Finding:
    if need.command is not None:
        path = shutil.which(need.command)
        return Finding(need, path is not None, _ask_version(path) if path else "")
    if need.source is None or need.compiler is None:
        raise ValueError(f"{need.name} has neither a command nor a source to find it by")
    language = ["-x", "c"] if need.compiler == "c" else ["-x", "c++", "-std=c++17"]
    command = settings.cc if need.compiler == "c" else settings.cxx
    try:
        answer = subprocess.run(
            [command, *language, "-E", "-P", "-"], input=need.source, capture_output=True, text=True, check=False
        )
    except OSError:
        return Finding(need, False, "")
    last = answer.stdout.rstrip().rpartition("\n")[2]
    # A macro may be made of string literals side by side.
    version = re.sub(r'" *"', "", last.removeprefix("VERSION")).strip(' "') if last.startswith("VERSION") else ""
    return Finding(need, answer.returncode == 0, version)


def _ask_version(command: str) -> str:
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\d+(\.\d+)+", answer.stdout)
    return match[0] if match else ""


def require(settings: Settings) -> None:
    """Raise `PrerequisiteError` with everything that is missing and one line that installs it."""
    raise_for_missing(check(settings, [need for need in NEEDS if not need.optional]))


def raise_for_missing(findings: Iterable[Finding]) -> None:
    """Raise `PrerequisiteError` for those of ``findings`` that are missing and not optional."""
    missing = [finding.need for finding in findings if not finding.found and not finding.need.optional]
    if missing:
        names = "".join(f"\n  {need.name} ({need.why})" for need in missing)
        raise PrerequisiteError(f"this machine lacks what the build needs:{names}\n{advice(missing)}")


def package_manager() -> str | None:
    """The first of MANAGERS on PATH."""
    return next((manager for manager in MANAGERS if shutil.which(manager)), None)


def packages(manager: str, needs: Iterable[Need]) -> list[str]:
    """What ``manager`` calls the packages of ``needs``, each once."""
    index = list(MANAGERS).index(manager)
    return list(dict.fromkeys(name for need in needs for name in need.packages[index].split()))


def advice(missing: Sequence[Need]) -> str:
    """The line to type that installs ``missing``, for the package manager that this machine has."""
    manager = package_manager()
    if manager is None:
        return (
            f"No package manager that we know is on PATH ({', '.join(MANAGERS)}); install the above your system's way."
        )
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"To install it: {sudo}{MANAGERS[manager]} {' '.join(packages(manager, missing))}"


def advice_for_modules(modules: Sequence[str]) -> str:
    """The same for what the Python ``modules`` come from; pip comes with zlib and ssl."""
    wanted = set(modules) | ({"zlib", "ssl"} if "pip" in modules else set())
    return advice([need for need in NEEDS if need.module in wanted])


def main() -> int:
    """For scripts that install: write the names of the packages that this machine lacks, on one line."""
    manager = package_manager()
    missing = [finding.need for finding in check(read_settings(os.environ)) if not finding.found]
    if manager is not None and missing:
        sys.stdout.write(f"{' '.join(packages(manager, missing))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
