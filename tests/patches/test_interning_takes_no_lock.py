"""Interning a string that is interned already doesn't wait for who holds the dict of interned strings."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("cpython-patches", "interned")


@pytest.mark.parametrize(
    "statement",
    [
        "sys.intern(''.join(['an_inter', 'ned_name']))",
        "setattr(thing, ''.join(['an_inter', 'ned_name']), 1)",
        "api.PyDict_SetItemString(ctypes.py_object({}), b'an_interned_name', ctypes.py_object(1))",
        "api.PyUnicode_InternFromString(b'an_interned_name')",
    ],
    ids=["intern", "setattr", "PyDict_SetItemString", "PyUnicode_InternFromString"],
)
def test_while_another_thread_holds_the_lock(build: Builder, statement: str) -> None:
    code = f"""
        import ctypes, sys, threading
        library = ctypes.PyDLL({str(build.library("interned_lock"))!r})
        api = ctypes.pythonapi
        thing = type("Thing", (), {{}})()
        start, done = threading.Event(), threading.Event()

        def work():
            {statement}  # what runs for the first time may be new, and the dict becomes a shared one
            started.set()
            start.wait()
            {statement}
            done.set()

        started = threading.Event()
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        started.wait()
        library.lock_interned()
        start.set()
        in_time = done.wait(5)
        library.unlock_interned()
        worker.join()
        print(int(in_time))
    """
    assert running.python(code, timeout=120) == 1


def test_threads_that_intern_the_same_new_strings_get_the_same_objects() -> None:
    code = """
        import sys, threading
        results = [None] * 8
        barrier = threading.Barrier(8)

        def work(number):
            barrier.wait()
            results[number] = [sys.intern(f"string {i}") for i in range(20_000)]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(sum(len(set(map(id, same))) != 1 for same in zip(*results)))
    """
    assert running.python(code, timeout=120) == 0
