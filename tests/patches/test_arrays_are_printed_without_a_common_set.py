"""Threads that print arrays share no set and lock no dict, and np.load() doesn't lock the keys that it expects."""

from __future__ import annotations

import pytest
import running

pytestmark = pytest.mark.patch("patches", "print-arrays")


def test_the_guard_against_recursion_has_no_set() -> None:
    code = """
        import numpy as np
        from numpy._core import arrayprint
        cells = [cell.cell_contents for cell in arrayprint._array2string.__closure__]
        assert not any(isinstance(thing, set) for thing in cells), cells
        assert isinstance(np.lib._format_impl.EXPECTED_KEYS, frozenset)
    """
    running.python(code)


def test_nobody_waits_for_the_dict_of_options() -> None:
    code = """
import numpy as np
from numpy._core.arrayprint import _default_array_repr
from numpy._core.printoptions import default_format_options_dict

array = np.arange(3.0)
# Once there was a functools.partial, whose arguments are a dict, too.
for thing in (default_format_options_dict, getattr(_default_array_repr, "keywords", {})):
    assert while_locked(thing, lambda: repr(array)) == "array([0., 1., 2.])"
"""
    running.python(running.WHILE_LOCKED + code)


def test_threads_print_what_contains_itself() -> None:
    code = """
        import threading
        import numpy as np
        array = np.empty(2, dtype=object)
        array[0], array[1] = array, np.arange(3)
        expected, results = repr(array), []
        assert "array(..., dtype=object)" in expected

        def work():
            results.extend(repr(array) for _ in range(200))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * 1600
        array[0] = None
    """
    running.python(code)
