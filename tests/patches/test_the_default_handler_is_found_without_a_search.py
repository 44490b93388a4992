"""As long as there is only the default handler, neither the context nor its capsule's name is looked at."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("patches", "short-way-to-the-default-memory")


def test_its_capsule_is_not_asked(build: Builder) -> None:
    """Under another name the capsule would refuse to tell the handler."""
    code = """
        import ctypes, sys
        import numpy as np

        library = ctypes.PyDLL(sys.argv[1])
        library.current_handler.restype = ctypes.py_object
        assert library.prepare() == 0
        default = library.current_handler()
        name = ctypes.c_char_p(b"another name")
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        rename(default, name)
        for size in (1, 100, 100_000):
            assert np.zeros(size).sum() == 0
            array = np.ones(size)
            array.resize(2 * size, refcheck=False)
            assert array.sum() == size
        rename(default, ctypes.c_char_p(b"mem_handler"))
    """
    running.python(code, build.library("memory_handler"))


def test_the_context_is_asked_only_when_a_handler_was_installed(build: Builder) -> None:
    """Behind NumPy's back, the context variable gets what would be refused as a handler."""
    code = """
        import contextvars, ctypes, gc, sys
        import numpy as np

        library = ctypes.PyDLL(sys.argv[1])
        for name in ("new_user_handler", "install"):
            getattr(library, name).restype = ctypes.py_object
        library.install.argtypes = [ctypes.py_object]
        assert library.prepare() == 0
        handler_name = np._core.multiarray.get_handler_name

        (variable,) = [found for found in gc.get_objects()
                       if type(found) is contextvars.ContextVar and found.name == "current_allocator"]
        token = variable.set("no handler")
        assert handler_name(np.zeros(100)) == handler_name() == "default_allocator"
        variable.reset(token)

        library.install(library.new_user_handler())
        assert handler_name(np.zeros(100)) == handler_name() == "user"
        assert contextvars.Context().run(handler_name) == "default_allocator"
        library.install(None)
        assert handler_name(np.zeros(100)) == handler_name() == "default_allocator"
    """
    running.python(code, build.library("memory_handler"))
