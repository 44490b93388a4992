"""A critical section within one on the same object neither waits for itself nor lets others in."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("cpython-patches", "nested")

# Every spinning thread yields before it parks.
YIELDS = """
import ctypes
counter = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "counted_yields")
"""
CACHED = """
import functools

@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
"""


def test_import_of_numpy_gives_the_processor_away_hardly_ever(build: Builder) -> None:
    """Stock: 18,400 times."""
    code = YIELDS + "import numpy; print(counter.value)"
    assert running.python(code, preload=build.library("count_calls")) < 50


def test_a_cached_function_that_calls_itself(build: Builder) -> None:
    """Stock: 20 times per call within a call."""
    code = (
        YIELDS
        + CACHED
        + """
before = counter.value
fibonacci(100)
print(counter.value - before)
"""
    )
    assert running.python(code, preload=build.library("count_calls")) == 0


def test_threads_call_it_while_others_empty_the_cache() -> None:
    running.python(
        CACHED
        + """
import threading
errors = []

def call():
    try:
        for _ in range(300):
            assert fibonacci(100) == 354224848179261915075
            fibonacci.cache_clear()
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
""",
        timeout=120,
    )


def test_a_thread_that_is_detached_within_gives_the_object_away() -> None:
    """A write that blocks, within a flush within the file's own method, must not keep the others from the file."""
    running.python(
        """
        import io, threading

        class Slow(io.RawIOBase):
            entered, go_on = threading.Event(), threading.Event()

            def writable(self):
                return True

            def write(self, data):
                self.entered.set()
                assert self.go_on.wait(30)
                return len(data)

        file = io.BufferedWriter(Slow(), 16)
        writer = threading.Thread(target=file.write, args=(b"x" * 100,))
        writer.start()
        assert Slow.entered.wait(30)
        # Asks for the file's critical section, and gets it as the writer waits.
        assert file.raw.writable() and repr(file)
        Slow.go_on.set()
        writer.join()
    """,
        timeout=120,
    )
