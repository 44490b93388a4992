"""While there is no error state but the default one, the context isn't asked; its capsule is counted by nobody."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("patches", "error-state")


def test_the_context_is_asked_only_while_there_is_another_state() -> None:
    """Behind NumPy's back, the context variable gets what would be refused as an error state."""
    code = """
        import numpy as np
        from numpy._core.umath import _extobj_contextvar as variable

        def not_asked():
            token = variable.set("no state")
            assert np.add.reduce(np.sin(np.zeros(10))) == 0 and np.getbufsize() == 8192
            variable.reset(token)

        not_asked()
        with np.errstate(divide="raise"):
            try:
                np.divide(np.ones(3), 0)
            except FloatingPointError:
                pass
            else:
                raise AssertionError("the state was not asked")
            token = variable.set("no state")  # and keeps the other state alive
            try:
                np.sin(np.zeros(10))
            except ValueError:
                pass
            else:
                raise AssertionError("the context was not asked")
            variable.reset(token)
            del token
        not_asked()
    """
    running.python(code)


def test_ufuncs_do_not_count_its_capsule(build: Builder) -> None:
    """Not in its own thread nor in another, before and after other states were made."""
    code = """
        import ctypes, sys, threading
        import numpy as np
        from numpy._core.umath import _extobj_contextvar as variable

        library = ctypes.PyDLL(sys.argv[1])
        library.header.restype = ctypes.py_object
        for name in ("header", "is_immortal"):
            getattr(library, name).argtypes = [ctypes.py_object]
        capsule = variable.get()
        assert library.is_immortal(capsule)
        before = library.header(capsule)

        def work():
            for _ in range(100):
                np.sin(np.ones(10)).sum()

        for _ in range(2):
            work()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert library.header(capsule) == before
            with np.errstate(all="ignore"):
                work()
    """
    running.python(code, build.library("memory_handler"))
