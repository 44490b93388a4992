"""Threads don't contend for the counts of sys.modules and of functions that C code defines for types."""

from __future__ import annotations

import pytest
import running


@pytest.mark.patch("cpython-patches", "sys.modules")
def test_imports_do_not_count_sys_modules() -> None:
    """Stock: while another thread imports, its count is one higher at some moments."""
    code = """
        import sys, threading
        done = False

        def work():
            while not done:
                import sys

        thread = threading.Thread(target=work)
        thread.start()
        modules = sys.modules
        counts = {sys.getrefcount(modules) for _ in range(1_000_000)}
        done = True
        thread.join()
        print(len(counts))
    """
    assert running.python(code) == 1


@pytest.mark.patch("cpython-patches", "static-methods")
@pytest.mark.parametrize("function", ["tuple.__new__", "type.__new__", "str.maketrans", "bytes.maketrans"])
def test_functions_of_types_are_immortal_once_there_are_threads(function: str) -> None:
    code = f"""
        import sys, threading
        function = {function}
        thread = threading.Thread(target=len, args=("",))
        thread.start()
        thread.join()
        assert sys.getrefcount(function) == sys.getrefcount(None), sys.getrefcount(function)
    """
    running.python(code)


@pytest.mark.patch("cpython-patches", "static-methods")
def test_types_that_are_made_later_go() -> None:
    code = """
        import gc, threading, time, weakref, _testcapi
        thread = threading.Thread(target=len, args=("",))
        thread.start()
        thread.join()
        references = [weakref.ref(_testcapi.pytype_fromspec_meta(type)) for _ in range(1000)]
        gc.collect()
        assert not any(reference() for reference in references)
    """
    running.python(code)
