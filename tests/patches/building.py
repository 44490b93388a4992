"""Compile a C file of this folder against the interpreter that runs this."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-pthread")


class Builder:
    """Compiles into ``folder``; asked twice for the same file, it compiles once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.library = functools.cache(self._library)
        self.program = functools.cache(self._program)

    def _library(self, name: str) -> Path:
        """``name``.c as a shared library, for ctypes or LD_PRELOAD."""
        return self._compile(name, ".so", ["-shared", "-fPIC"], [])

    def _program(self, name: str) -> Path:
        """``name``.c as a program with the interpreter linked in."""
        # The folder of the static library lies under the prefix, wherever that was moved to.
        archive = (
            Path(sysconfig.get_path("stdlib"))
            / Path(sysconfig.get_config_var("LIBPL")).name
            / sysconfig.get_config_var("LIBRARY")
        )
        libraries = [word for key in ("LIBS", "SYSLIBS") for word in shlex.split(sysconfig.get_config_var(key) or "")]
        return self._compile(name, "", [], [str(archive), "-Wl,-export-dynamic", *libraries])

    def _compile(self, name: str, suffix: str, flags: list[str], libraries: list[str]) -> Path:
        target = self.folder / f"{name}{suffix}"
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        headers = sysconfig.get_path("include")
        internal = [f"-isystem{headers}/internal", f"-isystem{headers}/internal/mimalloc"]
        include = [f"-I{headers}", *internal, f"-isystem{np.get_include()}"]
        command = [*compiler, *FLAGS, *flags, *include, str(HERE / f"{name}.c"), "-o", str(target), *libraries]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.fail(f"these tests need a C compiler, and there is no {compiler[0]}; install one or set CC", False)
        if done.returncode != 0:
            pytest.fail(f"{name}.c can't be compiled:\n$ {shlex.join(command)}\n{done.stderr}", pytrace=False)
        return target
