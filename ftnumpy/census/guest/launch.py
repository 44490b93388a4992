"""Run, inside the census, what it is to count.  Usage: launch.py JOB, a JSON file that `ftnumpy.census.runner` wrote.

Runs in the interpreter that is counted, so it uses nothing but the standard library of Python 3.11 or later.  The marks
are those of plugin/census.c.
"""

# pathlib would be imported into the interpreter that is counted.
# ruff: noqa: PTH100, PTH109, PTH120, PTH123

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from ftnumpy.census.guest import naming

Lock = Any  # what threading.Lock() returns is no type before Python 3.13

MARK = 0x0066746E756D7000
BEGIN, END, DUMP, FINISH = 1, 2, 3, 4

# `_iterations` and nothing else is shared with the loop.  A statement may use `i`.
LOOP = """
def _loop(_iterations):
    for i in range(_iterations):
{statement}
"""


class Worker(threading.Thread):
    """A thread with its own state and its own code for every workload: what the harness allocates side by side for two
    threads would look like sharing."""

    def __init__(self, workloads: list[dict[str, Any]], before: Lock, outcome: Lock) -> None:
        super().__init__()
        self.workloads = workloads
        self.before = before  # the lock that lets this thread take its turn
        self.outcome = outcome  # the lock that says that its turn is over
        self.error: BaseException | None = None
        self.namespaces: list[dict[str, Any]] = []
        self.action: tuple[Any, ...] = ()

    def run(self) -> None:
        keep_small_blocks()
        with open("/dev/zero", "rb", 0) as file:
            self.take_turns(file.seek)

    def take_turns(self, seek: Callable[[int], int]) -> None:
        loops: list[Callable[[int], None]] = []
        # No globals in the window: loading one for the first or the second time may write.
        begin, end = MARK | BEGIN, MARK | END
        while True:
            self.before.acquire()
            try:
                match self.action:
                    case "set up", index:
                        workload = self.workloads[index]
                        namespace: dict[str, Any] = {"__name__": f"census_{index}"}
                        exec(compile(workload["setup"], f"<setup of {workload['name']}>", "exec"), namespace)
                        body = "\n".join(f"        {line}" for line in workload["statement"].splitlines())
                        code = compile(LOOP.format(statement=body), f"<{workload['name']}>", "exec")
                        exec(code, namespace)
                        self.namespaces.append(namespace)
                        loops.append(namespace.pop("_loop"))
                    case "warm up", index:
                        # Not once: the loop, too, loads a global.
                        for iterations in (1, 1, self.workloads[index]["warm_up"]):
                            loops[index](iterations)
                    case "count", index:
                        loop, iterations = loops[index], self.workloads[index]["iterations"]
                        seek(begin)
                        loop(iterations)
                        seek(end)
                    case ("end",):
                        return
            except BaseException as error:
                self.error = error
            finally:
                self.outcome.release()


def keep_small_blocks() -> None:
    """Take, for good, the small blocks that glibc has ready for the calling thread.

    Among them is what the starting thread had allocated for this one, beside what it allocated for the next: arrays
    that came to lie there would share a line with those of another thread.
    """
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    for size in range(24, 256, 16):
        for _ in range(8):  # glibc keeps at most 7
            malloc(size)


def count_workloads(job: dict[str, Any]) -> None:
    """Each workload in turn: every thread warms up, then every thread is counted, one after the other.

    That the windows don't overlap makes the counts the same in every run: nobody waits for a lock, and what is handed
    from thread to thread goes the same way each time.
    """
    # A collection writes to every object there is. Whether one comes into a window hangs on what ran before.
    gc.disable()
    # What is imported belongs to the main thread, as in most programs.
    for workload in job["workloads"]:
        exec(compile(workload["setup"], f"<setup of {workload['name']}>", "exec"), {"__name__": "census"})
    workers = []
    for _ in range(job["threads"]):
        before, outcome = threading.Lock(), threading.Lock()
        before.acquire()
        outcome.acquire()
        workers.append(Worker(json.loads(json.dumps(job["workloads"])), before, outcome))
        workers[-1].start()

    def everyone(action: tuple[Any, ...]) -> None:
        for worker in workers:
            worker.action = action
            worker.before.release()
            worker.outcome.acquire()
            if worker.error is not None:
                raise worker.error

    try:
        for index, _ in enumerate(job["workloads"]):
            everyone(("set up", index))
        for index, workload in enumerate(job["workloads"]):
            everyone(("warm up", index))
            everyone(("count", index))
            dump(job, index)
            print("counted", workload["name"], flush=True)
        dumps = [f"{job['out']}.{index}" for index, _ in enumerate(job["workloads"])]
        finish()
        naming.write(job["out"], dumps, {worker.name: worker.namespaces for worker in workers})
    finally:
        for worker in workers:
            worker.action = ("end",)
            worker.before.release()


def mark(operation: int, argument: int = 0) -> None:
    # The plugin sees the call before the kernel does, and the kernel may refuse it.
    with contextlib.suppress(OSError):
        os.lseek(0, MARK | operation, argument)


def finish() -> None:
    """Nothing is counted any more; the rest runs at QEMU's own speed."""
    mark(FINISH)


def dump(job: dict[str, Any], number: int) -> None:
    """Have the plugin write what it counted, and keep the memory that it is about."""
    mark(DUMP, number)
    naming.keep_memory(f"{job['out']}.{number}")


def run_program(job: dict[str, Any]) -> None:
    """A program as if it had been started by itself, and at its very end the names of what it used."""
    path, *arguments = job["program"]
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main

    # Runs after what the program registers and after its threads have ended.
    @atexit.register
    def at_the_end() -> None:
        dump(job, 0)
        finish()
        naming.write(job["out"], [f"{job['out']}.0"], {})

    exec(code, main.__dict__)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    if job["program"]:
        run_program(job)
    else:
        sys.path[0] = os.getcwd()
        count_workloads(job)


if __name__ == "__main__":
    main()
