"""What all kinds of stress share: time in rounds, threads, randomness, samples of what the process holds, a report."""

from __future__ import annotations

import argparse
import collections
import ctypes
import faulthandler
import gc
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "patches"))

ROUND = 2.0  # seconds, at most
ROUNDS = 12  # at least, so that a short run has samples, too
SAMPLES = 300  # at most
FEW = 20  # objects of one type that aren't worth a line in a sample
HANG = 600.0  # seconds; where many share few processors, a round may take long
LEAVING = 5.0  # seconds that a joined thread may take to be gone

# A thread's part: its number, its own randomness; returns how many operations it did.
Worker = Callable[[int, random.Random], int]


@dataclass(frozen=True)
class Round:
    """A part of a run, until ``end`` (seconds of `time.monotonic`): ``number`` from 0, from ``seed``."""

    number: int
    end: float
    seed: int

    @property
    def chance(self) -> random.Random:
        """What the round as a whole decides by; the same for the same seed and number."""
        return random.Random(f"{self.seed} {self.number}")

    def over(self) -> bool:
        return time.monotonic() >= self.end

    def fight(self, worker: Worker, threads: int) -> int:
        """Run ``worker`` in so many threads that start at once; returns the sum of their operations.

        The first exception of any of them is raised here, after all have ended.
        """
        barrier = threading.Barrier(threads)
        done: list[int] = []
        failures: list[BaseException] = []

        def run(number: int) -> None:
            try:
                barrier.wait()
                done.append(worker(number, random.Random(f"{self.seed} {self.number} {number}")))
            except BaseException as error:
                error.add_note(f"in thread {number} of {threads}, round {self.number}, seed {self.seed}")
                failures.append(error)

        started = [threading.Thread(target=run, args=(number,), name=f"fighter {number}") for number in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        if failures:
            raise failures[0]
        return sum(done)


class Samples:
    """What the process holds while nothing runs, as lines of JSON in ``file`` (None: nowhere)."""

    def __init__(self, file: Path | None, seconds: float) -> None:
        self.file = file
        self.every = seconds / SAMPLES
        self.start = time.monotonic()
        self.next = self.start
        watch(seconds)  # itself a thread
        self.threads = entries("task")

    def take(self) -> None:
        """A sample, if there is not one of a moment ago."""
        now = time.monotonic()
        if self.file is None or now < self.next:
            return
        self.next = now + self.every
        while entries("task") > self.threads and time.monotonic() < now + LEAVING:
            time.sleep(0.001)
        gc.collect()
        objects = collections.Counter(type(each).__qualname__ for each in gc.get_objects())
        sample = {
            "seconds": now - self.start,
            "resident": resident(),
            "blocks": sys.getallocatedblocks(),
            "descriptors": entries("fd"),
            "threads": entries("task"),
            "uncollectable": len(gc.garbage),
            "collections": sum(generation["collections"] for generation in gc.get_stats()),
            "objects": {name: count for name, count in objects.items() if count >= FEW},
        }
        with self.file.open("a", encoding="utf-8") as lines:
            print(json.dumps(sample), file=lines)


@dataclass(frozen=True)
class Arena:
    """One run of one kind: ``seconds`` from now on, from ``seed``."""

    seconds: float
    seed: int
    samples: Samples

    def rounds(self, least: int = 1) -> Iterator[Round]:
        """Rounds until the time is over; ``least`` are made however short it is.  Between them nothing runs, and
        samples are taken."""
        end = time.monotonic() + self.seconds
        length = min(ROUND, self.seconds / ROUNDS)
        number = 0
        while (now := time.monotonic()) < end or number < least:
            watch(length)
            yield Round(number=number, end=now + length, seed=self.seed)
            number += 1
            self.samples.take()
        watch(0)


def watch(seconds: float) -> None:
    """From now on, what takes more than ``seconds`` and `HANG` ends with the tracebacks of all threads."""
    faulthandler.dump_traceback_later(seconds + HANG, exit=True)


def entries(folder: str) -> int:
    """How many there are of what ``/proc`` lists of this process: ``task`` or ``fd``."""
    return sum(1 for _ in Path("/proc/self", folder).iterdir())


def resident() -> int:
    """The process's memory in bytes."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def library(name: str) -> ctypes.PyDLL:
    """The C file ``name`` of the patches' tests, compiled and loaded."""
    from building import Builder

    with tempfile.TemporaryDirectory(prefix="ftnumpy-stress-") as folder:
        return ctypes.PyDLL(str(Builder(Path(folder)).library(name)))


def main(stress: Callable[[Arena], int]) -> None:
    """The command line of a kind: ``--seconds``, ``--seed`` and where to leave samples.  The last line of output is
    JSON with ``ops``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--samples", type=Path)
    wishes = parser.parse_args()
    faulthandler.enable()
    ops = stress(Arena(wishes.seconds, wishes.seed, Samples(wishes.samples, wishes.seconds)))
    if ops <= 0:
        sys.exit("nothing was done: the time was too short for one operation")
    print(json.dumps({"ops": ops}))
