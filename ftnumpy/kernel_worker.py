"""The article's kernel on request: runs in a variant's interpreter, with nothing but NumPy beside it.

Reads one JSON object a line, ``{"threads": 2, "size": 10, "calls": 100, "loops": 50}``, lets every thread call the
kernel ``calls`` times on its own array of ``size`` float64, and answers with the wall time in seconds, from the moment
when all are ready to the moment when the last one is done.  No thread (0) means the program's main thread alone.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import numpy as np
import numpy.typing as npt


def kernel(x: npt.NDArray[np.float64], n_loop: int) -> np.float64:
    """From "Scaling NumPy on Free-Threaded Python" (Quansight Labs, 2026)."""
    return sum((np.sin(np.cos(np.sin(np.cos(x + i)))).sum() for i in range(n_loop)), np.float64(0))


def alone(size: int, calls: int, loops: int) -> float:
    """Seconds that the thread that calls this takes."""
    x = np.random.default_rng(0).random(size)
    kernel(x, 2)
    start = time.perf_counter()
    for _ in range(calls):
        kernel(x, loops)
    return time.perf_counter() - start


def run(threads: int, size: int, calls: int, loops: int) -> float:
    """Seconds that ``threads`` threads take, each with the same work."""
    if threads == 0:
        return alone(size, calls, loops)
    barrier = threading.Barrier(threads + 1)
    sums: list[float] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random(size)
        kernel(x, 2)
        total = 0.0
        barrier.wait()
        for _ in range(calls):
            total += float(kernel(x, loops))
        barrier.wait()
        sums.append(total)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
    if len(sums) != threads:
        sys.exit("a thread of the kernel failed")
    return seconds


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
