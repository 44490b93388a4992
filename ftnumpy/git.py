"""Git, cut off from the user's and the machine's configuration: the same input gives the same bytes everywhere."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from ftnumpy import process
from ftnumpy.errors import FtnumpyError, PrerequisiteError

OLDEST = (2, 30)
COMMITTER = ("ftnumpy", "ftnumpy@localhost")

# Kept in the repository itself, so that a person's own git in the tree treats its files as we do.
_CONFIG = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.compression": "0",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
# The highest place that git reads attributes from: it outranks the release's own .gitattributes, which would change
# line ends and choose, by git version, what stands behind the @@ of a hunk.
_ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding !diff !merge !whitespace !conflict-marker-size\n"
# What `git apply --reject`, and so a person at work on a patch, leaves behind.
_EXCLUDE = "*.rej\n*.orig\n"


class GitFailed(FtnumpyError):
    """A git command returned non-zero.  ``stdout`` and ``stderr`` are what it said."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, stdout: bytes, stderr: bytes) -> None:
        self.stdout = stdout.decode(errors="replace")
        self.stderr = stderr.decode(errors="replace")
        said = (self.stderr + self.stdout).strip() or "it gave no reason"
        super().__init__(f"git {' '.join(arguments)} failed in {folder}{process.no_space(folder)}:\n{said}")


def git(folder: Path, *arguments: str | Path, environment: dict[str, str] | None = None) -> bytes:
    """Standard output of a git command run in ``folder``.

    ``environment`` is added to a clean one: no ``GIT_*`` of the caller, no system, user or global configuration, no
    hooks, English messages.  Raises `GitFailed`, and `PrerequisiteError` without a git that is new enough.
    """
    return _run(folder, *arguments, environment=environment).stdout


def git_messages(folder: Path, *arguments: str | Path) -> str:
    """Like `git`, but standard error, whatever the exit status."""
    return _run(folder, *arguments, check=False).stderr.decode(errors="replace")


def git_line(folder: Path, *arguments: str | Path) -> str | None:
    """Like `git`, for a question whose answer is one line; None when git says no."""
    done = _run(folder, *arguments, check=False)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def create_repository(folder: Path) -> None:
    """An empty repository in ``folder`` that keeps every file byte for byte."""
    git(folder, "init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=ftnumpy")
    for name, value in _CONFIG.items():
        git(folder, "config", name, value)
    info = folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    (info / "exclude").write_text(_EXCLUDE, encoding="ascii")


def _run(
    folder: Path, *arguments: str | Path, environment: dict[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    words = tuple(str(argument) for argument in arguments)
    done = subprocess.run(
        [_executable(), "-c", "core.hooksPath=/dev/null", "-c", "core.fsync=none", *words],
        cwd=folder,
        env=_environment(folder) | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    if check and done.returncode != 0:
        raise GitFailed(words, folder, done.stdout, done.stderr)
    return done


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LC_", "LANG", "XDG_"))}
    return kept | {
        "HOME": "/dev/null",  # what stands for GIT_CONFIG_GLOBAL in a git older than 2.32
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.absolute().parent),  # a tree is never taken for part of our checkout
        "GIT_EDITOR": "true",
        "GIT_COMMITTER_NAME": COMMITTER[0],
        "GIT_COMMITTER_EMAIL": COMMITTER[1],
    }


@functools.cache
def _executable() -> str:
    path = shutil.which("git")
    needed = ".".join(map(str, OLDEST))
    if path is None:
        raise PrerequisiteError(f"git is missing; install git {needed} or newer")
    said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise PrerequisiteError(f"{path} is '{said.strip()}', which is too old; install git {needed} or newer")
    return path
