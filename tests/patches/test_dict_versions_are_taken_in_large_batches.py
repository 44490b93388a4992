"""Threads take versions of dicts from their common counter once in 65,536 writes to dicts."""

from __future__ import annotations

import pytest
import running

pytestmark = pytest.mark.patch("cpython-patches", "versions-of-dicts")


def test_a_thread_goes_on_with_its_own_while_another_takes_some() -> None:
    """Stock: after 256 it takes new ones, beyond those of the other."""
    code = """
        import ctypes, threading

        def version(a_dict):
            # The second word behind the header of the object; its lower 12 bits are about watchers.
            return ctypes.c_uint64.from_address(id(a_dict) + object.__basicsize__ + 8).value >> 12

        steps = []

        def write():
            last = version({})
            for i in range(2000):
                if i % 100 == 0:
                    thread = threading.Thread(target=lambda: version({}))
                    thread.start()
                    thread.join()
                now = version({})
                assert now > last
                steps.append(now - last)
                last = now

        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        print(max(steps))
    """
    assert running.python(code) < 256
