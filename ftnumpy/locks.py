"""A lock between runs, as a file; the system frees that of a killed run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ftnumpy import console


@contextmanager
def held(file: Path, waiting: str) -> Iterator[None]:
    """Hold the lock ``file``; says ``waiting`` when another run has it."""
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        console.say(f"  {waiting}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
