"""NumPy's import leaves out ast and inspect; the signatures that inspect made are there when somebody asks."""

from __future__ import annotations

import pytest
import running

pytestmark = pytest.mark.patch("patches", "inspect-and-ast")


def test_neither_ast_nor_inspect_is_imported() -> None:
    code = """
        import json, sys
        for name in ("ast", "inspect"):
            sys.modules.pop(name, None)
        import numpy as np
        np.sin(np.arange(3.0)).sum(), np.linalg, np.fft, np.random
        print(json.dumps(sorted({"ast", "inspect"} & set(sys.modules))))
    """
    assert running.python(code) == []


def test_threads_that_ask_at_once_get_the_same_signature() -> None:
    code = """
        import json, threading
        import numpy as np
        import inspect
        functions = [np.inner, np.where, np.lexsort, np.putmask, np.packbits, np.result_type]
        barrier = threading.Barrier(8)
        found = []

        def ask():
            barrier.wait()
            found.append([inspect.signature(function) for function in functions])

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert all(a is b for each in found for a, b in zip(each, found[0]))
        print(json.dumps(str(found[0][0])))
    """
    assert running.python(code) == "(a, b, /)"
