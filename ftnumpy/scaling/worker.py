"""Does a workload's units on request: runs in a variant's interpreter, with nothing but NumPy beside it.

The first line of output says which Python and NumPy this is.  After that, two lines of input and two of output a run:

- a request as JSON, ``{"program": "…", "ranges": [[seed, first, last], …], "processors": [0, …], "warm_up": 5,
  "keep": false}``: a thread for each range, on the processor of the same place.  ``"ready"`` answers when all have
  their data and are warm.
- the time of `time.monotonic` at which all begin, here and in other processes.  The answer is ``{"threads":
  [[seconds, sum], …], "collections": []}``: from that time to the thread's end, and a check sum of its last result, or
  of all its results with ``keep``.

With ``"stamps": true`` a thread's list goes on with how long each of its units took, in ns.  With ``"collect": N``
another thread collects garbage meanwhile, in a heap with N live objects more, and ``collections`` has the seconds that
each collection took.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import traceback
import types
import zlib
from array import array
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Step = Callable[[int], Any]
Make = Callable[[int, int, int], Step]

PAUSE = 0.02  # seconds between two collections
MODULES: dict[str, types.ModuleType] = {}


def module(source: str) -> types.ModuleType:
    """The module of ``source``, made once: its code and functions are shared by all threads."""
    if source not in MODULES:
        made = types.ModuleType("workload")
        exec(compile(source, "<workload>", "exec"), made.__dict__)
        MODULES[source] = made
    return MODULES[source]


def check_sum(value: Any) -> int:
    """Of a result: the bytes of a number or array, one after the other for tuples."""
    sums = 0
    for part in value if isinstance(value, tuple) else (value,):
        sums = zlib.crc32(np.asarray(part).tobytes(), sums)
    return sums


class Run:
    """The threads of one request, from their start to their answers."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.make: Make = module(request["program"]).make
        self.threads = len(request["ranges"])
        self.gate = threading.Barrier(self.threads + 1)
        self.begin = 0.0
        self.answers: list[list[Any]] = [[] for _ in range(self.threads)]
        self.errors: list[str] = []
        self.heap: list[list[int]] = [[i] for i in range(request.get("collect", 0))]
        self.collections: list[float] = []
        self.done = threading.Event()

    def work(self, place: int) -> None:
        """What the thread at ``place`` does."""
        try:
            seed, first, last = self.request["ranges"][place]
            os.sched_setaffinity(0, {self.request["processors"][place]})
            step = self.make(seed, first, last)
            for i in range(first, min(last, first + self.request["warm_up"])):
                step(i)
            task = self.stamped if self.request.get("stamps") else self.kept if self.request["keep"] else self.plain
            self.gate.wait()
            self.gate.wait()
            while time.monotonic() < self.begin:
                pass
            self.answers[place] = task(step, first, last)
        except threading.BrokenBarrierError:
            pass
        except BaseException:
            self.errors.append(traceback.format_exc())
            self.gate.abort()

    def plain(self, step: Step, first: int, last: int) -> list[Any]:
        value = None
        for i in range(first, last):
            value = step(i)
        return [time.monotonic() - self.begin, check_sum(value)]

    def kept(self, step: Step, first: int, last: int) -> list[Any]:
        values = []
        for i in range(first, last):
            values.append(step(i))
        seconds = time.monotonic() - self.begin
        return [seconds, sum(map(check_sum, values))]

    def stamped(self, step: Step, first: int, last: int) -> list[Any]:
        # Room for all stamps from the beginning: nothing may grow in between.
        stamps = array("q", bytes(8 * (last - first + 1)))
        clock = time.perf_counter_ns
        stamps[0] = clock()
        value = None
        for place, i in enumerate(range(first, last), 1):
            value = step(i)
            stamps[place] = clock()
        seconds = time.monotonic() - self.begin
        return [seconds, check_sum(value), [after - before for before, after in pairwise(stamps)]]

    def collect(self) -> None:
        """Collect garbage again and again, until the threads are done."""
        while not self.done.wait(PAUSE):
            begin = time.monotonic()
            gc.collect()
            self.collections.append(time.monotonic() - begin)


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """One run: says when it is ready, waits for the time to begin, returns what the threads and the collector found."""
    run = Run(request)
    threads = [threading.Thread(target=run.work, args=(place,)) for place in range(run.threads)]
    collector = threading.Thread(target=run.collect)
    for thread in threads:
        thread.start()
    try:
        run.gate.wait()
        print(json.dumps("ready"), flush=True)
        run.begin = float(sys.stdin.readline())
        if run.heap:
            collector.start()
        run.gate.wait()
    except threading.BrokenBarrierError:
        pass
    for thread in threads:
        thread.join()
    run.done.set()
    if run.heap:
        collector.join()
    if run.errors:
        sys.exit("a thread failed:\n" + run.errors[0])
    return {"threads": run.answers, "collections": run.collections}


def main() -> None:
    # Type checkers of older Pythons don't know the name.
    gil = vars(sys)["_is_gil_enabled"]()
    print(json.dumps({"numpy": np.__version__, "python": sys.version, "gil": gil}), flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
