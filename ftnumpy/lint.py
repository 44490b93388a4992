"""The checks that need no build: style, types, C format, and patch queues that are well formed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ftnumpy import console, patchcheck, process
from ftnumpy.console import Summary
from ftnumpy.errors import FtnumpyError
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack


def run(stack: Stack, settings: Settings, logs: Path, summary: Summary) -> None:
    """Run every check, a step of ``summary`` each.  After all have run, raises the last failure; earlier ones
    are shown."""
    tools = Path(sys.executable).parent
    commands: dict[str, list[str | Path]] = {
        "ruff check": [sys.executable, "-m", "ruff", "check", "."],
        "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "."],
        "mypy": [sys.executable, "-m", "mypy"],
    }
    sources = _own_c(settings.root, stack)
    if sources:
        commands["clang-format"] = [tools / "clang-format", "--dry-run", "-Werror", *sources]
    failures: list[FtnumpyError] = []
    for what, command in commands.items():
        log = logs / f"{what.replace(' ', '-')}.log"
        try:
            with summary.step(what, log):
                process.run(command, what=what, log=log, cwd=settings.root)
        except FtnumpyError as error:
            failures.append(error)
    for project in (stack.cpython, stack.numpy):
        try:
            with summary.step(f"{project.name}'s queue") as result:
                result.append(f"{len(patchcheck.check_form(project.queue))} patches")
        except FtnumpyError as error:
            failures.append(error)
    for failure in failures[:-1]:
        console.fail(str(failure))
    if failures:
        raise failures[-1]


def _own_c(root: Path, stack: Stack) -> list[Path]:
    """Our own C files: those in git that are not part of a patch queue."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--", "*.c", "*.h"], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        raise FtnumpyError(f"git can't list the files of {root}; run from a git checkout:\n{listed.stderr.strip()}")
    files = [root / name for name in listed.stdout.split("\0") if name]
    queues = [project.queue.folder for project in (stack.cpython, stack.numpy)]
    return [file for file in files if not any(file.is_relative_to(queue) for queue in queues)]
