"""Threads don't contend for the counts of sys.modules, of types that C code defines and of their functions."""

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


@pytest.mark.patch("cpython-patches", "types-and-functions")
@pytest.mark.parametrize(
    "thing", ["_io.BytesIO", "_struct.Struct", "functools.partial", "tuple.__new__", "type.__new__", "str.maketrans"]
)
def test_what_c_code_defines_is_immortal_once_there_are_threads(thing: str) -> None:
    code = f"""
        import sys, threading, _io, _struct, functools
        thing = {thing}
        thread = threading.Thread(target=len, args=("",))
        thread.start()
        thread.join()
        assert sys.getrefcount(thing) == sys.getrefcount(None), sys.getrefcount(thing)
    """
    running.python(code)


@pytest.mark.patch("cpython-patches", "types-and-functions")
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
