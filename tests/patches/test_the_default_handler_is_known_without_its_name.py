"""Array data of the default handler comes and goes without a look at its capsule's name."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("patches", "Recognize")


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
