"""Certificates and terminals on systems that have them elsewhere than the one that the archive is made on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from ftnumpy import process
from ftnumpy.errors import BuildError
from ftnumpy.settings import Settings
from ftnumpy.wheels import libraries
from ftnumpy.wheels.libraries import Library

SOURCE = Path(__file__).with_name("places.c")
NAME = "libftnumpy-places.so"

# The libraries that look for certificates or for descriptions of terminals.
SEEKERS = ("libcrypto.so.*", "libncurses*.so.*", "libtinfo.so.*")

# Where systems keep descriptions of terminals, and the terminals that people sit at.
TERMINFO = (Path("/etc/terminfo"), Path("/lib/terminfo"), Path("/usr/share/terminfo"))
TERMINALS = (
    *("alacritty", "ansi", "dumb", "linux", "rxvt-unicode-256color", "screen", "screen-256color", "tmux"),
    *("tmux-256color", "vt100", "vt220", "xterm", "xterm-256color", "xterm-color", "xterm-kitty"),
)


def descriptions() -> dict[str, Path]:
    """This system's descriptions of those of `TERMINALS` that it knows, by their places in a folder of such.

    Raises `BuildError` when it knows none.
    """
    found = {}
    for name in TERMINALS:
        place = f"{name[0]}/{name}"
        file = next((folder / place for folder in TERMINFO if (folder / place).is_file()), None)
        if file is not None:
            found[place] = file.resolve()
    if "x/xterm" not in found:
        raise BuildError(
            "this machine has no description of xterm to put into the archive; install ncurses-base (on other systems "
            "than Debian: ncurses) and run again"
        )
    return found


def install(settings: Settings, tree: Path, found: Sequence[Library], certificates: tuple[str, str], log: Path) -> None:
    """Make the libraries ``found``, which are in ``tree`` already, find what they need on any system.

    ``certificates`` are the file and the folder that OpenSSL looks for by itself.
    """
    target = tree / "lib" / NAME
    file, folder = certificates
    process.run(
        [
            *(settings.cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
            *(f'-DCA_FILE="{file}"', f'-DCA_FOLDER="{folder}"', f"-Wl,-soname,{NAME}", SOURCE.name, "-o", target),
        ],
        what=f"compile {NAME}",
        log=log,
        cwd=SOURCE.parent,
    )
    for library in found:
        if any(fnmatch(library.soname, pattern) for pattern in SEEKERS):
            libraries.patch(tree / "lib" / library.name, ["--set-rpath", "$ORIGIN", "--add-needed", NAME], log)
    for place, source in descriptions().items():
        copy = tree / "share" / "terminfo" / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
