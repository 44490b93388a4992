"""Run code that may crash or hang in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

# Set for a run by hand, these change what the tests are about.
IGNORED = ("PYTHONMALLOC", "PYTHONTRACEMALLOC", "PYTHON_GIL", "PYTHONDEVMODE", "MIMALLOC_SHOW_STATS")

# How many times longer than a test says a program may take, where a sanitizer makes everything slow.
PATIENCE = int(os.environ.get("FTNUMPY_PATIENCE", "1"))


# Begins code that calls while_locked(thing, function): what the function returns in another thread while this one has
# the lock of the thing.  A mutex is a byte, and any other thread waits for it until we let go.
WHILE_LOCKED = """
import ctypes, threading
api = ctypes.pythonapi
MUTEX = 10  # the place of ob_mutex in the header of an object

def while_locked(thing, function):
    def work():
        function()  # the first time, what the thread finds becomes shared, for which it needs the lock
        ready.set()
        start.wait()
        results.append(function())
        done.set()

    ready, start, done, results = threading.Event(), threading.Event(), threading.Event(), []
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    mutex = ctypes.c_void_p(id(thing) + MUTEX)
    api.PyMutex_Lock(mutex)
    start.set()
    in_time = done.wait(5)
    api.PyMutex_Unlock(mutex)
    thread.join()
    assert in_time, "it waited for the lock"
    return results[0]
"""

# Begins code that calls in_interpreters(script): runs the script, for which NUMBER differs, in 4 interpreters at once.
IN_INTERPRETERS = """
import _interpreters, textwrap, threading

def in_interpreters(script):
    def work(number):
        interpreter = _interpreters.create()
        failed = _interpreters.exec(interpreter, f"NUMBER = {number}\\n" + textwrap.dedent(script))
        if failed is not None:
            failures.append(failed.formatted)
        _interpreters.destroy(interpreter)

    failures = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
"""


def python(code: str, *arguments: object, timeout: int = 60, preload: Path | None = None, **environment: str) -> Any:
    """Run ``code`` in a new interpreter; returns the last line that it prints, which is JSON, or None.

    A crash, a failed assertion or ``timeout`` (seconds) fails the test with the output, all threads' tracebacks
    included.  ``preload`` is a library for LD_PRELOAD.
    """
    before_the_end = f"import faulthandler; faulthandler.dump_traceback_later({PATIENCE * timeout}, exit=True)\n"
    command = [sys.executable, "-X", "faulthandler", "-c", before_the_end + textwrap.dedent(code)]
    lines = program([*command, *arguments], timeout=timeout + 10, preload=preload, **environment).splitlines()
    return json.loads(lines[-1]) if lines else None


def program(command: list[object], *, timeout: int = 60, preload: Path | None = None, **environment: str) -> str:
    """Run ``command``; returns what it prints.  Fails the test as `python` does."""
    status, output, errors = ended(command, timeout=timeout, preload=preload, **environment)
    if status != 0:
        how = f"exit status {status}" if status > 0 else f"signal {signal.Signals(-status).name}"
        pytest.fail(f"ended with {how}\n{output}{errors[-6000:]}", pytrace=False)
    return output


def ended(
    command: list[object], *, timeout: int = 60, preload: Path | None = None, **environment: str
) -> tuple[int, str, str]:
    """Run ``command``; returns its exit status (negative: a signal) and what it wrote on output and error."""
    env = {name: value for name, value in os.environ.items() if name not in IGNORED} | environment
    if preload is not None:
        # A sanitizer's runtime, which must stay the first.
        env["LD_PRELOAD"] = f"{env.get('LD_PRELOAD', '')} {preload}".strip()
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env=env,
            timeout=PATIENCE * timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        pytest.fail(
            f"still running after {PATIENCE * timeout} s\n{error.stdout or ''}{error.stderr or ''}", pytrace=False
        )
    return done.returncode, done.stdout, done.stderr
