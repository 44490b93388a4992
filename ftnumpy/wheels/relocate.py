"""An installed interpreter made into a folder that runs wherever it is unpacked."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import shutil
from pathlib import Path, PurePath

from ftnumpy import compiler, process
from ftnumpy.errors import BuildError

# What is compiled into the interpreter.  uv, when it installs one, replaces just this in sysconfig's data.
PREFIX = Path("/install")

# In place of the folder in which the interpreter was compiled, of which nothing is left.
TREE = "/build"

# Left out: what is for embedding and for building interpreters that link statically (150 MB), CPython's own tests, what
# needs Tk and with it X11, and .pyc files, which are made anew.  Patterns as in .gitignore.
LEFT_OUT = (
    "/build.json",
    "/files.json",
    "/lib/libpython*.a",
    "/lib/pkgconfig/*-embed.pc",
    "/lib/python3*/config-*/[!M]*",
    "/lib/python3*/test",
    "/lib/python3*/lib-dynload/_test*",
    "/lib/python3*/lib-dynload/_ctypes_test*",
    "/lib/python3*/lib-dynload/_xxtestfuzz*",
    "/lib/python3*/lib-dynload/xx*",
    "/bin/idle3*",
    "/lib/python3*/idlelib",
    "/lib/python3*/lib-dynload/_tkinter*",
    "/lib/python3*/tkinter",
    "/lib/python3*/turtle.py",
    "/lib/python3*/turtledemo",
    "__pycache__",
)

# Of site-packages only what ensurepip puts there; users of the interpreter may have added more.
SITE_PACKAGES = "/lib/python3*/site-packages"
PIP = ("README.txt", "pip", "pip-*.dist-info")

# The head of a script: a shell that starts the python beside it, to which the same lines are a string.
SHELL = """#!/bin/sh
'''exec' "$(dirname -- "$(readlink -f -- "$0")")/{python}" "$0" "$@"
' '''
"""

# The end of sysconfig's data: what is compiled in becomes where this file lies.
SYSCONFIG = """

def _moved(values):
    import os
    import re

    here = os.path.abspath(__file__)
    for _ in range(3):
        here = os.path.dirname(here)
    prefix = re.compile(r"{pattern}")
    return {{
        name: prefix.sub(lambda _: here, value) if isinstance(value, str) else value
        for name, value in values.items()
    }}


build_time_vars = _moved(build_time_vars)
"""
# A word may begin with it or have it behind a sign or an option (-L, -I); /usr/bin/install has it in its middle.
PATTERN = rf"(?<![^\s'\"=:LI]){PREFIX}(?=[/'\"\s:]|$)"


def left_out(path: PurePath) -> bool:
    """Whether ``path``, below the prefix, does not go into the archive, be it for a folder that it lies in."""
    return any(_is_left_out(each) for each in (path, *path.parents))


def _is_left_out(path: PurePath) -> bool:
    anchored = "/" / path
    if anchored.parent.match(SITE_PACKAGES):
        return not any(path.match(pattern) for pattern in PIP)
    return any(anchored.match(pattern) for pattern in LEFT_OUT)


def copy(prefix: Path, tree: Path) -> None:
    """Copy the interpreter in ``prefix`` to ``tree``, without what is `left_out`."""

    def ignored(folder: str, names: list[str]) -> list[str]:
        below = Path(folder).relative_to(prefix)
        return [name for name in names if _is_left_out(below / name)]

    shutil.copytree(prefix, tree, symlinks=True, ignore=ignored)


def make_movable(tree: Path, python: str) -> None:
    """Change ``tree``, a copy of what was installed in `PREFIX`, so that it runs in any folder.

    ``python`` is the interpreter's name below ``bin``.  Raises `BuildError` when a file is not as CPython makes it.
    """
    library = tree / "lib" / python
    _link(tree / "bin", python)
    _scripts(tree / "bin", library / "site-packages", python)
    _sysconfig(library)
    for file in sorted((tree / "lib" / "pkgconfig").glob("*.pc")):
        if not file.is_symlink():
            _change(file, f"prefix={PREFIX}\n", "prefix=${pcfiledir}/../..\n")


def _link(folder: Path, python: str) -> None:
    """One file of the interpreter, and the names by which people call it and pip."""
    (folder / python.removesuffix("t")).unlink(missing_ok=True)
    for name, target in ((python.removesuffix("t"), python), ("python", python), ("pip", "pip3")):
        (folder / name).symlink_to(target)


def _scripts(folder: Path, packages: Path, python: str) -> None:
    changed = []
    for file in sorted(folder.iterdir()):
        if file.is_symlink() or not file.read_bytes().startswith(b"#!" + os.fsencode(PREFIX)):
            continue
        _, _, rest = file.read_text(encoding="utf-8").partition("\n")
        file.write_text(SHELL.format(python=python) + rest, encoding="utf-8")
        changed.append(file)
    for record in packages.glob("*.dist-info/RECORD"):
        _record(record, packages, changed)


def _record(record: Path, packages: Path, changed: list[Path]) -> None:
    """Write hash and size of the ``changed`` files anew where ``record`` lists them."""
    with record.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    for row in rows:
        file = Path(os.path.normpath(packages / row[0]))
        if file in changed:
            digest = hashlib.sha256(file.read_bytes()).digest()
            row[1] = f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
            row[2] = str(file.stat().st_size)
    with record.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def _sysconfig(library: Path) -> None:
    (data,) = library.glob("_sysconfigdata_*.py")
    text = data.read_text(encoding="utf-8")
    match = re.search(r"'abs_srcdir': '([^']+)'", text)
    if match is None:
        raise BuildError(f"{data} doesn't say where the interpreter was compiled; is it CPython's?")
    data.write_text(text.replace(match[1], TREE) + SYSCONFIG.format(pattern=PATTERN), encoding="utf-8")
    for makefile in library.glob("config-*/Makefile"):
        makefile.write_text(makefile.read_text(encoding="utf-8").replace(match[1], TREE), encoding="utf-8")


def _change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise BuildError(f"{file} does not have the one line {old.strip()!r}, so it can't be made to move")
    file.write_text(text.replace(old, new), encoding="utf-8")


def strip(files: list[Path], log: Path) -> None:
    """Take the debugger's information out of ``files``; the names of functions stay, for profilers."""
    process.run(["strip", "--strip-debug", "--", *files], what="take debugging information out", log=log)


def compile_library(tree: Path, python: str, log: Path) -> None:
    """Compile ``tree``'s library to .pyc files that are taken as they are: what unpacks an archive may set any time."""
    process.run(
        [
            *(tree / "bin" / python, "-I", "-B", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
            *("-s", tree, tree / "lib" / python),
        ],
        what="compile the library",
        log=log,
        env=compiler.clean_environment(),
    )
