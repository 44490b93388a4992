"""Run a workload in threads that are all at it at once, natively, and say what the kernel's counters say of each.

Takes requests as arguments, or else one a line from standard input; each is a JSON object,
``{"name": "add", "setup": "…", "statement": "…", "threads": 2, "iterations": 100, "warm_up": 20}``.  Answers each with
a line, a list for each thread: when its window opened, how long it was open, time in which the thread waited for a
processor and time on one, all in ns; minor and major page faults; voluntary and forced switches.  The windows bear the
marks of plugin/census.c, for tracers.
Nothing but the standard library is used, and Python 3.11 suffices.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from typing import Any

from ftnumpy.census.guest.launch import BEGIN, END, LOOP, MARK


def look() -> tuple[int, ...]:
    """Of the calling thread, so far."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return (
        time.perf_counter_ns(),
        queued(),
        time.thread_time_ns(),
        usage.ru_minflt,
        usage.ru_majflt,
        usage.ru_nvcsw,
        usage.ru_nivcsw,
    )


def queued() -> int:
    """How long the calling thread has waited for a processor, in ns; 0 where the kernel doesn't say."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:  # noqa: PTH123 - as little as can be
            return int(file.read().split()[1])
    except FileNotFoundError:
        return 0


def race(text: str) -> list[list[int]]:
    """The windows of the request ``text``.  Each thread makes its own state and its own code."""
    barrier = threading.Barrier(json.loads(text)["threads"])
    windows: list[list[int]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            request = json.loads(text)
            namespace: dict[str, Any] = {"__name__": "census"}
            exec(compile(request["setup"], f"<setup of {request['name']}>", "exec"), namespace)
            body = "\n".join(f"        {line}" for line in request["statement"].splitlines())
            exec(compile(LOOP.format(statement=body), f"<{request['name']}>", "exec"), namespace)
            loop, iterations = namespace.pop("_loop"), request["iterations"]
            with open("/dev/zero", "rb", 0) as file:  # noqa: PTH123
                mark = file.seek
                loop(request["warm_up"])
                barrier.wait()
                begin = look()
                mark(MARK | BEGIN)
                loop(iterations)
                mark(MARK | END)
                end = look()
            windows.append([begin[0], *(after - before for before, after in zip(begin, end, strict=True))])
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return windows


def main() -> None:
    # As in the census, a workload may be a module of the folder that it is started from.
    sys.path[:0] = [os.getcwd()]  # noqa: PTH109
    for request in sys.argv[1:] or sys.stdin:
        print(json.dumps(race(request)), flush=True)


if __name__ == "__main__":
    main()
