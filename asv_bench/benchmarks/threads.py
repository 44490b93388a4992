"""The same work in each of several threads: where nothing stands in a thread's way, the time stays what one takes.

A time is that of `CALLS` calls in each thread, from the moment when all are ready to the moment when the last is done.
A thread's throughput is the calls over that time.
"""

from __future__ import annotations

import functools
import os
import threading
from hashlib import sha256
from pathlib import Path

from . import cost

version = sha256(Path(__file__).read_bytes() + cost.version.encode()).hexdigest()

# Operation to calls in each thread, which take about 10 ms; at least one from each class of work.
CALLS = {
    "Article.time_kernel_50": 20,
    "Article.time_kernel_10_small": 200,
    "SmallOperators.time_add": 20_000,
    "MixedTypes.time_add_float_integer": 8_000,
    "Scalars.time_sin": 10_000,
    "Reductions.time_mean": 2_000,
    "Indexing.time_fancy": 10_000,
    "Sorting.time_sort": 4_000,
    "LinearAlgebra.time_solve": 1_000,
    "Fourier.time_rfft": 2_000,
    "RandomNumbers.time_random": 5_000,
    "Allocation.time_array_of_three": 10_000,
    "Allocation.time_ones_300_kib": 400,
    "OtherTypes.time_add_at": 5_000,
}


class Group:
    """``threads`` threads that wait for `run`, each with an object of its own of the operation's class."""

    def __init__(self, operation, threads):
        self.barrier = threading.Barrier(threads + 1)
        name, method = operation.split(".")
        for _ in range(threads):
            call = getattr(getattr(cost, name)(), method)
            threading.Thread(target=self._work, args=(call, CALLS[operation]), daemon=True).start()

    def _work(self, call, calls):
        while True:
            self.barrier.wait()
            try:
                for _ in range(calls):
                    call()
            except BaseException:
                # Else the time would be that of the threads that are left.
                self.barrier.abort()
                raise
            self.barrier.wait()

    def run(self):
        self.barrier.wait()
        self.barrier.wait()


group = functools.cache(Group)


class Threads:
    params = (list(CALLS), sorted({1, 2, os.cpu_count() or 1}))
    param_names = ("operation", "threads")
    number = 1
    timeout = 120

    def time_of_each(self, operation, threads):
        group(operation, threads).run()
