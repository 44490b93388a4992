"""The census plugin, compiled once for each compiler and version of QEMU's plugin API."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ftnumpy import compiler, fingerprint, process
from ftnumpy.settings import Settings

SOURCES = Path(__file__).parent / "plugin"
FLAGS = ("-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
SHARED = ("-shared", "-fPIC", "-fvisibility=hidden", "-pthread")


def plugin(settings: Settings, api: int, log: Path) -> Path:
    """The plugin for QEMUs that take version ``api``, found again or compiled now.  Raises `CommandFailed`."""
    inputs = {
        "compiler": compiler.identify(settings),
        "api": str(api),
        "flags": " ".join(FLAGS + SHARED),
        **{name: hashlib.sha256((SOURCES / name).read_bytes()).hexdigest() for name in ("census.c", "qemu_plugin.h")},
    }

    def build(work: Path, final: Path) -> Path:
        staged = work / "plugin"
        staged.mkdir()
        process.run(
            [settings.cc, *FLAGS, *SHARED, f"-DCENSUS_API={api}", SOURCES / "census.c", "-o", staged / "census.so"],
            what="the census plugin",
            log=log,
        )
        return staged

    folder, _ = fingerprint.build_once(settings, "census", inputs, build)
    return folder / "census.so"
