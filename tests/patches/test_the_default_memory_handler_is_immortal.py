"""The handler that all arrays refer to is counted by nobody; handlers of users live and die as before."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from building import Builder

pytestmark = pytest.mark.patch("patches", "handler-immortal")


@pytest.fixture(scope="module")
def library(build: Builder) -> ctypes.PyDLL:
    library = ctypes.PyDLL(build.library("memory_handler"))
    for name in ("current_handler", "new_user_handler", "install", "header"):
        getattr(library, name).restype = ctypes.py_object
    for name in ("install", "header", "is_immortal"):
        getattr(library, name).argtypes = [ctypes.py_object]
    assert library.prepare() == 0
    return library


def in_thread(work: object) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_arrays_do_not_count_it(library: ctypes.PyDLL) -> None:
    handler = library.current_handler()
    before = library.header(handler)
    arrays = [np.ones(10) for _ in range(100)]
    in_thread(lambda: arrays.extend(np.ones(10) + 1 for _ in range(100)))
    assert library.header(handler) == before
    arrays.clear()
    assert library.header(handler) == before


def test_it_is_immortal_in_every_thread(library: ctypes.PyDLL) -> None:
    seen = [library.current_handler()]
    in_thread(lambda: seen.append(library.current_handler()))
    assert seen[0] is seen[1]
    assert library.is_immortal(seen[0])


def test_a_user_s_handler_is_freed_after_its_last_array(library: ctypes.PyDLL) -> None:
    freed = library.handlers_freed()
    handler = library.new_user_handler()
    default = library.install(handler)
    try:
        array = np.ones(1000)
    finally:
        assert library.install(default) is handler
    assert not library.is_immortal(handler)
    assert np._core.multiarray.get_handler_name(array) == "user"
    del handler
    assert library.handlers_freed() == freed, "an array still needs it"
    array = array + 1
    assert library.handlers_freed() == freed + 1
    assert np._core.multiarray.get_handler_name(array) == "default_allocator"


def test_without_a_handler_it_is_the_default_again(library: ctypes.PyDLL) -> None:
    default = library.install(library.new_user_handler())
    library.install(None)
    assert library.current_handler() is default


def test_user_s_handlers_come_and_go_under_threads(library: ctypes.PyDLL) -> None:
    """Each thread has its own context, so its own handler; arrays carry theirs across threads."""
    freed = library.handlers_freed()
    arrays: list[np.ndarray] = []

    def work() -> None:
        for i in range(200):
            library.install(library.new_user_handler())
            arrays.append(np.full(10, i))
            library.install(None)
            arrays.append(np.full(10, i))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [np._core.multiarray.get_handler_name(array) for array in arrays]
    assert (names.count("user"), names.count("default_allocator")) == (1600, 1600)
    arrays.clear()
    assert library.handlers_freed() == freed + 1600
