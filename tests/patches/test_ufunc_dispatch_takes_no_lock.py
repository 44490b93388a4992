"""Looking up a ufunc's loop takes no lock and stays attached; what threads add at once is the same for all."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("patches", "dispatch")

TYPES = "bhilBHILfdgFDG?O"


def test_calls_take_no_lock(build: Builder) -> None:
    code = """
        import ctypes
        import numpy as np
        counter = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "counted_read_locks")
        a, b = np.ones(10), np.ones(10, dtype=int)
        for use in (lambda: a + a, lambda: a + b, lambda: np.sin(a), a.sum, lambda: np.add.reduce(b)):
            use()  # the first call may add to the cache
        before = counter.value
        for _ in range(1000):
            a + a, a + b, np.sin(a), a.sum(), np.add.reduce(b)
        print(counter.value - before)
    """
    assert running.python(code, preload=build.library("count_calls")) == 0


def test_calls_stay_attached(build: Builder) -> None:
    code = """
        import ctypes, gc, json, sys, time
        import numpy as np
        detaches = ctypes.PyDLL(sys.argv[1]).detaches
        detaches.argtypes = [ctypes.py_object, ctypes.c_int]
        gc.disable()
        a, out = np.ones(10), np.ones(10)
        add = np.add
        add(a, a, out)
        print(json.dumps([detaches(lambda: add(a, a, out), 10_000), detaches(lambda: time.sleep(0.001), 100)]))
    """
    attached, sleeping = running.python(code, build.library("stay_attached"))
    assert sleeping == 1, "the test can't tell a detached thread"
    assert attached == 0


def test_first_calls_at_once_agree() -> None:
    """Threads call new ufuncs with many type tuples, each in its own order: caches are made and grow under readers."""
    code = f"""
        import random, threading
        import numpy as np
        types = {TYPES!r}
        arrays = [np.array([1, 0, 1], dtype=kind) for kind in types]

        def join(x, y):
            return (bool(x), bool(y))

        def work(number):
            order = [(i, j) for i in range(len(types)) for j in range(len(types))]
            random.Random(number).shuffle(order)
            for ufunc in ufuncs:
                barrier.wait()
                for i, j in order:
                    result = ufunc(arrays[i], arrays[j])
                    if result.tolist() != expected:
                        wrong.append((types[i], types[j], result))

        expected = [(True, True), (False, False), (True, True)]
        ufuncs = [np.frompyfunc(join, 2, 1) for _ in range(30)]
        wrong, barrier = [], threading.Barrier(8)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:3]
    """
    running.python(code, timeout=120)


def test_without_memory_the_cache_stays_as_it_was() -> None:
    """Each allocation of a first call fails once; the call is refused or not, and the next one is right."""
    code = f"""
        import _testcapi, itertools, json
        import numpy as np
        arrays = [np.array([1, 0], dtype=kind) for kind in {TYPES!r}]
        pairs = list(itertools.product(arrays, arrays))

        def join(x, y):
            return bool(x) and bool(y)

        refused = 0
        for failing in range(1, 60):
            ufunc = np.frompyfunc(join, 2, 1)
            for a, b in pairs[:8]:
                _testcapi.set_nomemory(failing, failing + 1)
                try:
                    ufunc(a, b)
                except (MemoryError, SystemError):  # elsewhere NumPy may forget to set the exception
                    refused += 1
                finally:
                    _testcapi.remove_mem_hooks()
            for a, b in pairs:
                assert ufunc(a, b).tolist() == [True, False], (a, b)
        print(json.dumps(refused))
    """
    assert running.python(code) > 0


def test_a_ufunc_s_cache_goes_with_it() -> None:
    code = f"""
        import json
        import numpy as np
        arrays = [np.array([1], dtype=kind) for kind in {TYPES!r}]

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        measured = []
        for count in (500, 2500):
            for _ in range(count):
                ufunc = np.frompyfunc(lambda x, y: x, 2, 1)
                for a in arrays[:10]:
                    for b in arrays[:5]:
                        ufunc(a, b)
            measured.append(resident())
        print(json.dumps(measured))
    """
    early, late = running.python(code, timeout=120)
    # The tables of one ufunc with 50 entries take some 5 kB.
    assert late - early < 4 << 20, f"{early >> 10} KiB after 500 ufuncs, {late >> 10} KiB after 3000"
