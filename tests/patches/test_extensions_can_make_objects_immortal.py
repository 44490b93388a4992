"""PyUnstable_SetImmortal(): public, for an object that only its maker knows."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import pytest
from building import Builder

pytestmark = pytest.mark.patch("cpython-patches", "SetImmortal")


@pytest.fixture(scope="module")
def library(build: Builder) -> ctypes.PyDLL:
    library = ctypes.PyDLL(build.library("set_immortal"))
    library.new_immortal_list.restype = ctypes.py_object
    library.immortalize.argtypes = [ctypes.py_object]
    library.counting_writes_nothing.argtypes = [ctypes.py_object]
    return library


def test_its_symbol_is_exported() -> None:
    assert hasattr(ctypes.pythonapi, "PyUnstable_SetImmortal")


def test_extensions_may_bring_a_function_of_that_name(build: Builder) -> None:
    """pythoncapi-compat does, and NumPy brings that along: Python.h must not declare it."""
    assert ctypes.PyDLL(build.library("own_set_immortal")).answer() == 42


def test_it_is_neither_counted_nor_freed_nor_collected(library: ctypes.PyDLL) -> None:
    immortal = library.new_immortal_list()
    immortal.append("content")
    assert library.counting_writes_nothing(immortal)
    assert not gc.is_tracked(immortal)
    count = sys.getrefcount(immortal)
    more = [immortal] * 1000
    assert sys.getrefcount(immortal) == count
    del more
    gc.collect()
    assert immortal == ["content"]


def test_threads_may_use_it_as_any_other(library: ctypes.PyDLL) -> None:
    immortal = library.new_immortal_list()

    def use() -> None:
        for _ in range(2000):
            assert len([immortal] * 10) == 10

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library.counting_writes_nothing(immortal)
    assert immortal == []


def test_it_refuses_what_others_may_know(library: ctypes.PyDLL) -> None:
    assert library.immortalize_shared() == 0
    assert library.immortalize_string() == 0
    assert library.immortalize(library.new_immortal_list()) == 0, "it is immortal already"
    known = []
    assert library.immortalize(known) == 0
    assert gc.is_tracked(known)
    assert sys.getrefcount(known) < 10
