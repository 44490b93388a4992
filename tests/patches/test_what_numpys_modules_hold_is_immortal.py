"""What NumPy's modules hold is counted by nobody; what users create comes and goes, a million times."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import running

pytestmark = pytest.mark.patch("patches", "modules-hold")

IMMORTAL = sys.getrefcount(None)

HELD = {
    "a ufunc": "np.sin",
    "the attributes of a ufunc": "np.sin.__dict__",
    "a ufunc of linalg": "np.linalg._umath_linalg.inv",
    "a ufunc of a module that is imported when it is used": "np.strings.str_len",
    "a function that __array_function__ overrides": "np.concatenate",
    "one of a module that is imported when it is used": "np.strings.upper",
    "a builtin method": "np._core._methods.umr_sum",
    "a function that a decorator made": "np._core.arrayprint._array2string",
    "a sentinel": "np._NoValue",
    "a constant": "np.pi",
    "a method made by Cython": "np.random.Generator.random",
    "a function made by Cython": "np.random.default_rng",
    "what np.finfo() found out": "np.finfo('f4').eps",
    "the name of a module": "np.lib._arraypad_impl.__name__",
    "the name by which pickle finds a module": "next(name for name in sys.modules if name == 'numpy._core.multiarray')",
}


@pytest.mark.parametrize("held", HELD.values(), ids=list(HELD))
def test_it_is_immortal(held: str) -> None:
    assert sys.getrefcount(eval(held, {"np": np, "sys": sys})) == IMMORTAL


def test_an_import_in_another_thread_does_the_same() -> None:
    code = """
        import sys, threading
        def use():
            import numpy as np
            np.sin(0.5), np.strings.upper("a"), np.random.default_rng
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        import numpy as np
        held = (np.sin, np._NoValue, np.strings.upper, np.random.Generator.random)
        assert all(sys.getrefcount(each) == sys.getrefcount(None) for each in held)
    """
    running.python(code)


# What is made a million times, each dropped before the next is made.
MADE = {
    "ufuncs": "np.frompyfunc(abs, 1, 1)",
    "dtypes with fields": "np.dtype([('x', 'f8'), ('y', 'M8[s]')])",
    "dtypes of the other byte order": "np.dtype('f8').newbyteorder()",
    "dtypes of times": "np.zeros(1, 'M8[%ds]' % (i % 1000 + 1)).dtype",
    "dtypes of strings": "np.zeros(1, 'S%d' % (i % 1000)).dtype",
    "error states": "np._core.umath._make_extobj(divide=('ignore', 'warn')[i % 2])",
}


@pytest.mark.parametrize("made", MADE.values(), ids=list(MADE))
def test_a_million_come_and_go(made: str) -> None:
    code = f"""
        import json
        import numpy as np

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        def make(times):
            for i in range(times):
                {made}

        make(50_000)
        before = resident()
        make(1_000_000)
        print(json.dumps(resident() - before))
    """
    assert running.python(code, timeout=120) < 2**20
