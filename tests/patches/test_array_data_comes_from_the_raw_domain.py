"""Array data is raw memory; small arrays are made without detaching; tracemalloc sees each array once."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("patches", "raw")


def test_the_raw_domain_sees_it_come_and_go(build: Builder) -> None:
    """Each way to allocate, and growing in place; 100003 bytes are too many for NumPy's own cache of small blocks."""
    code = """
        import ctypes, json, sys
        import numpy as np
        hooks = ctypes.PyDLL(sys.argv[1])
        hooks.watch.argtypes, hooks.last_block.restype = [ctypes.c_size_t], ctypes.c_void_p

        def grown():
            array = np.empty(5, np.uint8)
            array.resize(100_003, refcheck=False)
            return array

        ways = {
            "empty": lambda: np.empty(100_003, np.uint8), "zeros": lambda: np.zeros(100_003, np.uint8),
            "resize": grown, "copy": np.frombuffer(bytes(100_003), np.uint8).copy,
        }
        seen = {}
        for name, make in ways.items():
            hooks.watch(100_003)
            array = make()
            same = hooks.last_block() == array.ctypes.data
            allocated = hooks.blocks_allocated()
            del array
            seen[name] = [same, allocated, hooks.blocks_freed()]
        print(json.dumps(seen))
    """
    seen = running.python(code, build.library("raw_hooks"))
    assert seen == {way: [True, 1, 1] for way in ("empty", "zeros", "resize", "copy")}


@pytest.mark.patch("cpython-patches", "raw-domain")
def test_the_c_library_is_not_asked(build: Builder) -> None:
    code = """
        import ctypes
        import numpy as np
        counter = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "counted_allocations")

        def work():
            for size in (1, 100, 1000, 100_000, 1_000_000):
                array = np.zeros(size)
                array += np.empty(size)
                array = array.reshape(1, -1)[:, ::2].copy()

        work()
        before = counter.value
        for _ in range(100):
            work()
        print(counter.value - before)
    """
    assert running.python(code, preload=build.library("count_calls")) == 0


def test_small_arrays_are_made_without_detaching(build: Builder) -> None:
    code = """
        import ctypes, gc, json, sys
        import numpy as np
        detaches = ctypes.PyDLL(sys.argv[1]).detaches
        detaches.argtypes = [ctypes.py_object, ctypes.c_int]
        gc.disable()
        ways = {
            "empty": lambda: np.empty(500), "zeros": lambda: np.zeros(500), "few": lambda: np.zeros(5),
            "resize": lambda: np.empty(10).resize(500, refcheck=False),
        }
        # Of several times, because a wait for a mutex may detach, too, which was seen once on a busy machine.
        print(json.dumps({name: min(detaches(make, 1000) for _ in range(4)) for name, make in ways.items()}))
    """
    seen = running.python(code, build.library("stay_attached"))
    assert seen == dict.fromkeys(("empty", "zeros", "few", "resize"), 0)


def test_tracemalloc_sees_each_array_once() -> None:
    """In NumPy's domain and with its size; nothing of that size in Python's."""
    code = """
        import _tracemalloc, collections, tracemalloc
        import numpy as np
        DOMAIN = np.lib.tracemalloc_domain
        sizes = (3, 101, 1009, 10_007, 1_000_003, 40_000_003)

        def grown(size):
            array = np.empty(size // 2 + 1, np.uint8)
            array.resize(size, refcheck=False)
            return array

        def traces():
            # How often each (domain, size) is there.  Little is kept, as it is traced itself.
            return collections.Counter(trace[:2] for trace in _tracemalloc._get_traces())

        tracemalloc.start()
        for make in (lambda n: np.empty(n, np.uint8), lambda n: np.zeros(n, np.uint8), grown):
            for size in sizes:
                before = traces()
                arrays = [make(size) for _ in range(3)]
                after = traces()
                new = {domain: after[domain, size] - before[domain, size] for domain in (0, DOMAIN)}
                # A few of Python's own objects may happen to have a small size.
                assert new[DOMAIN] == 3 and (new[0] == 0 or size < 1000), (size, new)
                sums = [sum(s * n for (domain, s), n in found.items() if domain == 0) for found in (before, after)]
                assert size < 100_000 or sums[1] - sums[0] < size, (size, sums)
                del arrays
                assert traces()[DOMAIN, size] == before[DOMAIN, size], size
    """
    running.python(code)


def test_tracemalloc_that_comes_and_goes_under_arrays_keeps_them_whole() -> None:
    """Arrays made while it is off are dropped and resized while it is on, and the other way round."""
    code = """
        import tracemalloc
        import numpy as np

        def make():
            return [np.full(size, size, float) for size in (1, 200, 5000, 200_000)]

        for _ in range(20):
            untraced = make()
            tracemalloc.start()
            traced = make()
            for array in untraced[::2] + traced[::2]:
                array.resize(array.size + 1000, refcheck=False)
            del untraced[1::2]
            tracemalloc.stop()
            for array in traced + untraced:
                size = array[0]
                assert (array[: int(size)] == size).all() and not array[int(size) :].any()
                array.resize(array.size + 1000, refcheck=False)
            del traced, untraced, array
    """
    running.python(code)


@pytest.mark.patch("cpython-patches", "mapping")
def test_large_zeros_are_not_there_until_they_are_touched() -> None:
    code = """
        import json, resource
        import numpy as np

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        before, faults = resident(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        array = np.zeros(1 << 30)
        after, faulted = resident(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        assert array[0] == array[-1] == array[1 << 29] == 0
        print(json.dumps([after - before, faulted]))
    """
    grown, faulted = running.python(code)
    assert grown < 16 << 20
    assert faulted < 100
