"""Casts are counted by nobody, whichever thread was the first to need one."""

from __future__ import annotations

import pytest
import running

pytestmark = pytest.mark.patch("patches", "casting")

FIND = """
    import ctypes, sys, threading
    import numpy as np
    from numpy._core._multiarray_umath import _get_castingimpl

    def implementation(source, target):
        # A bound method refers to its DTypes and then to the implementation.
        bound = _get_castingimpl(type(np.dtype(source)), type(np.dtype(target)))
        address = id(bound) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
        return ctypes.cast(address, ctypes.POINTER(ctypes.py_object))[0]

    def is_immortal(obj):
        return sys.getrefcount(obj) == sys.getrefcount(None)
"""


def test_all_between_builtin_dtypes() -> None:
    code = f"""{FIND}
    kinds = "?bhilqfdgFDGSUVOMmT"
    counted = []
    for source in kinds:
        for target in kinds:
            try:
                found = implementation(source, target)
            except TypeError:
                continue  # there is no such cast
            if not is_immortal(found):
                counted.append(source + target)
    assert not counted, counted
    """
    running.python(code)


def test_threads_that_need_one_first() -> None:
    """Each round asks for casts that nobody asked for, of all threads at once."""
    code = f"""{FIND}
    kinds = "?bhilqfdgFDGSU"
    found = {{}}
    barrier = threading.Barrier(4)

    def look(number):
        for source in kinds:
            for target in "UVOS":
                barrier.wait()
                np.zeros(3, source).astype(target)
                found.setdefault((source, target), []).append(implementation(source, target))

    threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pair, implementations in found.items():
        assert len(set(map(id, implementations))) == 1, pair
        assert is_immortal(implementations[0]), pair
    """
    running.python(code)
