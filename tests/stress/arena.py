"""What all kinds of stress share: time, threads, randomness, and a report that the session reads."""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "patches"))

# A thread's part: its number, its own randomness; returns how many operations it did.
Worker = Callable[[int, random.Random], int]


@dataclass(frozen=True)
class Arena:
    """One run of one kind: until ``end`` (seconds of `time.monotonic`), from ``seed``."""

    end: float
    seed: int

    def over(self) -> bool:
        return time.monotonic() >= self.end

    def fight(self, worker: Worker, threads: int, round: int = 0) -> int:
        """Run ``worker`` in so many threads that start at once; returns the sum of their operations.

        The first exception of any of them is raised here, after all have ended.
        """
        barrier = threading.Barrier(threads)
        done: list[int] = []
        failures: list[BaseException] = []

        def run(number: int) -> None:
            try:
                barrier.wait()
                done.append(worker(number, random.Random(f"{self.seed} {round} {number}")))
            except BaseException as error:
                failures.append(error)

        started = [threading.Thread(target=run, args=(number,), name=f"fighter {number}") for number in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        if failures:
            raise failures[0]
        return sum(done)


def resident() -> int:
    """The process's memory in bytes."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * 4096


def library(name: str) -> ctypes.PyDLL:
    """The C file ``name`` of the patches' tests, compiled and loaded."""
    from building import Builder

    with tempfile.TemporaryDirectory(prefix="ftnumpy-stress-") as folder:
        return ctypes.PyDLL(str(Builder(Path(folder)).library(name)))


def main(stress: Callable[[Arena], int]) -> None:
    """The command line of a kind: ``--seconds`` and ``--seed``.  The last line of output is JSON with ``ops``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    wishes = parser.parse_args()
    faulthandler.enable()
    # A hang ends with the tracebacks of all threads.
    faulthandler.dump_traceback_later(2 * wishes.seconds + 60, exit=True)
    ops = stress(Arena(end=time.monotonic() + wishes.seconds, seed=wishes.seed))
    if ops <= 0:
        sys.exit("nothing was done: the time was too short for one operation")
    print(json.dumps({"ops": ops}))
