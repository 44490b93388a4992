"""The raw domain is mimalloc's, and serves every thread at any time."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("cpython-patches", "raw-domain")

CALL = """
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
print(getattr(library, sys.argv[2])(*map(int, sys.argv[3:])))
"""


@pytest.mark.parametrize("allocator", ["default", "mimalloc", "debug"])
def test_the_c_library_is_not_asked(build: Builder, allocator: str) -> None:
    code = """
        import ctypes, sys
        counter = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "counted_allocations")
        print(ctypes.PyDLL(sys.argv[1]).allocations_of_the_c_library(ctypes.byref(counter)))
    """
    library, counters = build.library("raw_memory"), build.library("count_calls")
    assert running.python(code, library, preload=counters, PYTHONMALLOC=allocator) == 0


@pytest.mark.parametrize("allocator", ["default", "debug"])
def test_blocks_outlive_the_thread_that_allocated_them(build: Builder, allocator: str) -> None:
    library = build.library("raw_memory")
    assert running.python(CALL, library, "from_threads_that_are_gone", 100, PYTHONMALLOC=allocator) == 0


def test_before_python_is_initialised_and_after_it_is_finalised(build: Builder) -> None:
    running.program([build.program("raw_memory")])


def test_a_child_goes_on_whatever_the_threads_were_at(build: Builder) -> None:
    assert running.python(CALL, build.library("raw_memory"), "fork_under_threads", 100) == 0


def test_hooks_see_every_call(build: Builder) -> None:
    assert running.python(CALL, build.library("raw_memory"), "hooks_see_all") == 0


def test_the_debug_hooks_find_an_overflow(build: Builder) -> None:
    code = "import ctypes, sys; ctypes.PyDLL(sys.argv[1]).overflow()"
    command = [running.sys.executable, "-c", code, build.library("raw_memory")]
    status, _, errors = running.ended(command, PYTHONMALLOC="debug")
    assert status == -running.signal.SIGABRT
    assert "bad trailing pad byte" in errors


def test_threads_that_come_and_go_leave_no_memory() -> None:
    """Each makes some of everything, array data included, and drops it."""
    code = """
        import json, threading
        import numpy as np

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        def work():
            arrays = [np.ones(size) for size in (10, 1000, 100_000)]
            return sum(array[-1] for array in arrays), [str(i) for i in range(100)]

        measured = []
        for count in (2000, 8000):
            for _ in range(count // 4):
                threads = [threading.Thread(target=work) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            measured.append(resident())
        print(json.dumps(measured))
    """
    early, late = running.python(code, timeout=120)
    assert late - early < 16 << 20, f"{early >> 20} MiB after 2000 threads, {late >> 20} MiB after 10000"


def test_what_one_thread_makes_and_another_drops_is_used_again() -> None:
    code = """
        import json, queue, threading
        import numpy as np

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        def produce():
            for i in range(100_000):
                passed.put(np.full(1 + i * 7 % 3000, i))
            passed.put(None)

        passed = queue.Queue(100)
        threading.Thread(target=produce).start()
        taken, measured = 0, []
        while (array := passed.get()) is not None:
            assert array[0] == array[-1] == taken
            taken += 1
            if taken in (20_000, 100_000):
                measured.append(resident())
        print(json.dumps(measured))
    """
    early, late = running.python(code, timeout=120)
    assert late - early < 16 << 20, f"{early >> 20} MiB after 20000 arrays, {late >> 20} MiB after 100000"
