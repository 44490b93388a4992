"""Workers in a variant's interpreter, which wait, begin at the same time and answer: see `worker`."""

from __future__ import annotations

import json
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ftnumpy import process, suites
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, CommandFailed

PROGRAM = Path(__file__).with_name("worker.py")
LEAD = 0.005  # seconds from the word to the begin; the word takes less than 1 ms to reach everybody
TIMEOUT = 600.0  # seconds for one answer
THREADS_OF_LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


class Worker:
    """A process that runs `worker`; ``about`` is what it says of itself."""

    def __init__(self, child: subprocess.Popen[str], log: Path) -> None:
        self.child, self.log = child, log
        self.about: dict[str, Any] = self.read()

    def write(self, line: str) -> None:
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            self._fail("it ended early")

    def read(self) -> Any:
        """The next line of its output.  Raises `CommandFailed` when it ends, or says nothing for too long."""
        assert self.child.stdout is not None
        # A worker writes one line and waits, so nothing is ever left in Python's own buffer.
        ready, _, _ = select.select([self.child.stdout], [], [], TIMEOUT)
        if not ready:
            self._fail(f"it gave no answer for {TIMEOUT:.0f} s")
        line = self.child.stdout.readline()
        if not line:
            self._fail("it ended early")
        return json.loads(line)

    def _fail(self, reason: str) -> None:
        raise CommandFailed("a worker of the scaling run", reason, self.log, process.last_lines(self.log))


@contextmanager
def crew(made: Environment, size: int, log: Path) -> Iterator[list[Worker]]:
    """``size`` workers in the interpreter of ``made``.  What they complain about goes to ``log``."""
    log.parent.mkdir(parents=True, exist_ok=True)
    variables = suites.tests_variables(made) | dict.fromkeys(THREADS_OF_LIBRARIES, "1")
    children: list[subprocess.Popen[str]] = []
    with log.open("ab") as sink:
        try:
            for _ in range(size):
                children.append(
                    subprocess.Popen(
                        [made.python, PROGRAM],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=sink,
                        text=True,
                        env=variables,
                    )
                )
            workers = [Worker(child, log) for child in children]
            if workers[0].about["gil"]:
                raise BuildError(f"{made.python} runs with the GIL on, so its threads can't be compared")
            yield workers
        finally:
            for child in children:
                child.kill()
            for child in children:
                child.communicate()


def race(workers: Sequence[Worker], requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each of ``workers`` does one of ``requests``; all begin at the same time.  Returns their answers."""
    for worker, request in zip(workers, requests, strict=True):
        worker.write(json.dumps(request))
    for worker in workers:
        worker.read()
    begin = repr(time.monotonic() + LEAD)
    for worker in workers:
        worker.write(begin)
    return [worker.read() for worker in workers]
