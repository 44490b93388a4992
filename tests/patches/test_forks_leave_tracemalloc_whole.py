"""A fork while another thread holds the lock of tracemalloc's tables: the child goes on."""

from __future__ import annotations

import pytest
import running
from building import Builder


@pytest.mark.patch("cpython-patches", "over-a-fork")
def test_a_child_can_allocate(build: Builder) -> None:
    """Without the patch the child waits for ever for a lock that nobody will release."""
    running.python(
        """
        import ctypes, os, sys, time, tracemalloc
        tracemalloc.start()
        for _ in range(4):
            assert ctypes.PyDLL(sys.argv[1]).free_forever() == 0
        for _ in range(400):
            pid = os.fork()
            if pid == 0:
                bytearray(1000)
                os._exit(0)
            end = time.monotonic() + 20
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > end:
                    os.kill(pid, 9)
                    os.waitpid(pid, 0)
                    print("a child hung", file=sys.stderr)
                    os._exit(1)
                time.sleep(0.001)
        os._exit(0)  # the native thread goes on
    """,
        build.library("track_memory"),
        timeout=120,
    )
