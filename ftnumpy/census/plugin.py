"""The census plugin and the program that proves it, each compiled once for what goes into it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ftnumpy.census.compiled import compiled
from ftnumpy.census.qemu import Qemu
from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import Settings

SOURCES = Path(__file__).parent / "plugin"
LATEST_API = 5  # that qemu_plugin.h knows; a later QEMU takes plugins for it until it says otherwise
NO_API = 1_000_000
FLAGS = ("-std=gnu11", "-g", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


def plugin(settings: Settings, machine: Qemu, log: Path) -> Path:
    """The plugin for the version of the plugin API that ``machine`` has.

    Raises `CommandFailed` when it can't be compiled, `PrerequisiteError` when QEMU is of a version not known here.
    """
    probe = _plugin(settings, NO_API, log)
    # QEMU refuses a plugin for an API that it does not have yet, and says which it has.
    said = subprocess.run(
        [machine.program, "-plugin", probe, "/bin/true"], capture_output=True, text=True, check=False
    ).stderr
    match = re.search(r"only up to version (\d+)", said)
    if match is None:
        raise PrerequisiteError(f"{machine.program} does not say which plugins it takes, but: {said.strip()!r}")
    return _plugin(settings, min(int(match[1]), LATEST_API), log)


def _plugin(settings: Settings, api: int, log: Path) -> Path:
    flags = (*FLAGS, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-DCENSUS_API={api}")
    return compiled(settings, SOURCES / "census.c", flags, log, (SOURCES / "qemu_plugin.h",))


def known_answer(settings: Settings, log: Path) -> Path:
    """The program of known_answer.c, at fixed addresses and with all its symbols bound at the start."""
    return compiled(settings, SOURCES / "known_answer.c", (*FLAGS, "-O1", "-no-pie", "-Wl,-z,now"), log)
