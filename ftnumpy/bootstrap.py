"""The toolchain's own virtual environment, from nothing but a Python: what nox's sessions run ftnumpy with.

Standard library only: this is imported by the Python that nox runs in.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ftnumpy import installed
from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import ROOT, read_settings

MARKER = "complete"


def toolchain_python(root: Path = ROOT) -> Path:
    """The python of an environment with what ``pyproject.toml`` lists, its ``dev`` group included.

    Made once per Python version and content of ``pyproject.toml``, in the cache.  Raises `PrerequisiteError`.
    """
    project = (root / "pyproject.toml").read_bytes()
    settings = read_settings(os.environ, root)
    folder = (
        settings.cache / "toolchain" / hashlib.sha256(project + platform.python_version().encode()).hexdigest()[:16]
    )
    python = folder / "bin" / "python"
    requires = requirements(project)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_suffix(".lock")):
            damage = installed.damage(folder, requires) if (folder / MARKER).exists() else "it is not complete"
            if damage is not None:
                if folder.exists():
                    print(f"{folder} can't be used ({damage})", flush=True)
                print(f"making the toolchain's environment in {folder} (once)", flush=True)
                shutil.rmtree(folder, ignore_errors=True)
                _make(folder, python, [*(["--no-index"] if settings.offline else []), *requires])
                (folder / MARKER).touch()
    except OSError as error:
        raise PrerequisiteError(
            f"{error.strerror}: {error.filename or folder}\nThe toolchain's environment is kept in the cache, "
            f"{settings.cache}; make room and give access there, or set FTNUMPY_CACHE to another folder."
        ) from None
    return python


def requirements(project: bytes) -> list[str]:
    """The dependencies in a ``pyproject.toml``, then those of its group ``dev``."""
    table = tomllib.loads(project.decode())
    return [*table["project"]["dependencies"], *table["dependency-groups"]["dev"]]


def _make(folder: Path, python: Path, requires: list[str]) -> None:
    # nox brings virtualenv, which needs no ensurepip; Debian's python3 lacks that unless python3-venv is installed.
    if importlib.util.find_spec("virtualenv") is not None:
        tool = "virtualenv"
    elif importlib.util.find_spec("ensurepip") is not None:
        tool = "venv"
    else:
        raise PrerequisiteError(
            f"{sys.executable} has neither virtualenv nor ensurepip; install one of them "
            f"({sys.executable} -m pip install virtualenv, or the package python3-venv on Debian and Ubuntu)"
        )
    _run([sys.executable, "-m", tool, str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *requires])


def _run(command: list[str]) -> None:
    # With our lock inherited: when we are killed and pip goes on, the next run waits until it no longer writes.
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        close_fds=False,
    )
    if done.returncode != 0:
        raise PrerequisiteError(f"the toolchain's environment could not be made:\n$ {' '.join(command)}\n{done.stdout}")


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    with file.open("w") as stream:
        os.set_inheritable(stream.fileno(), True)
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run that makes the toolchain's environment", flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
