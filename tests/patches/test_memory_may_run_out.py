"""Where memory runs out at a bad moment, MemoryError is all that happens."""

from __future__ import annotations

import pytest
import running


@pytest.mark.patch("cpython-patches", "former-items")
def test_a_list_that_gets_no_items() -> None:
    """Stock gives back what the list held before it came from the free list: an endless loop, or a crash."""
    running.python(
        """
        import sys
        import _testcapi
        item = object()
        refcount = sys.getrefcount(item)
        for _ in range(100):
            former = [item]
            del former
            failed = False
            _testcapi.set_nomemory(0, 1)
            try:
                [None, None]
            except MemoryError:
                failed = True
            finally:
                _testcapi.remove_mem_hooks()
            assert failed and sys.getrefcount(item) == refcount
    """
    )


@pytest.mark.patch("patches", "ArrayMethod")
def test_a_ufunc_that_gets_no_loop() -> None:
    """Stock: a segmentation fault."""
    running.python(
        """
        import _testcapi
        import numpy as np
        x = np.arange(3.0)
        for first in range(200):
            _testcapi.set_nomemory(first, first + 1)
            try:
                np.frompyfunc(max, 2, 1)(x, x)
            except (MemoryError, SystemError):
                pass
            finally:
                _testcapi.remove_mem_hooks()
    """
    )
