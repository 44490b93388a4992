"""Run a command: its output in a log file, progress on the console, the last lines on failure."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ftnumpy import console, guard
from ftnumpy.errors import CommandFailed

HEARTBEAT = 60.0  # seconds between signs of life where there is no terminal to draw a spinner on
LAST_LINES = 30
NO_SPACE = 32 << 20  # bytes; with less than this left, that is why a command failed: it takes its own rubbish with it


def last_lines(log: Path, count: int = LAST_LINES) -> list[str]:
    """The last ``count`` lines of ``log`` (none when there is no log)."""
    try:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []


def run(
    argv: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> None:
    """Run ``argv`` and append its standard output and error to ``log``.

    ``timeout`` is in seconds.  The command gets its own process group, which is ended as a whole on time-out, on
    interruption and, by ``ftnumpy.guard``, when we are killed, so that no compiler outlives us.  Raises `CommandFailed`
    with the log's last lines.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(part) for part in argv]
    with log.open("ab") as sink:
        sink.write(f"\n$ {' '.join(command)}\n".encode())
        sink.flush()
        try:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(env) if env is not None else None,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailed(what, f"{command[0]} could not be started ({error.strerror})", log, []) from None
    try:
        status = _wait(child, what, log, timeout)
    except BaseException:
        _end_group(child)
        raise
    finally:
        if child.stdin is not None:
            child.stdin.close()
    if status is None:
        _end_group(child)
        raise CommandFailed(what, f"ran past its {console.duration(timeout or 0)}", log, last_lines(log))
    if status != 0:
        reason = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
        raise CommandFailed(what, reason + no_space(cwd or Path.cwd(), log.parent), log, last_lines(log))


def no_space(*folders: Path) -> str:
    """What to do when a disk is full, which a log on that disk can't tell; empty when none is."""
    for folder in folders:
        usage = shutil.disk_usage(folder)
        if usage.free < NO_SPACE:
            return (
                f"; no space is left in {folder}: free some, or set FTNUMPY_CACHE to a folder on another disk, "
                "and run again"
            )
    return ""


def _wait(child: subprocess.Popen[bytes], what: str, log: Path, timeout: float | None) -> int | None:
    """The exit status, or None when ``timeout`` passed first; meanwhile a spinner or a heartbeat."""
    start = time.monotonic()
    heartbeat = start + HEARTBEAT
    terminal = sys.stdout.isatty()
    spinner = console.out.status(f"  {what}") if terminal else None
    if spinner:
        spinner.start()
    try:
        while True:
            try:
                return child.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if timeout is not None and now - start > timeout:
                return None
            if spinner:
                spinner.update(f"  {what}, {console.duration(now - start)} (log: {log})")
            elif now > heartbeat:
                heartbeat += HEARTBEAT
                console.say(f"  … {what}, {console.duration(now - start)}")
    finally:
        if spinner:
            spinner.stop()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
