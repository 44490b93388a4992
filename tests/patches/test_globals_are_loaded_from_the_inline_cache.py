"""Loads remember where the globals or the builtins keep a name, and see every change."""

from __future__ import annotations

import textwrap

import pytest
import running

pytestmark = pytest.mark.patch("cpython-patches", "Load-globals")

# `remembered(f)`: what the first LOAD_GLOBAL of f knows of dicts, all zero where that is nothing.
REMEMBERED = """
import dis, json, threading, types

def remembered(function):
    for instruction in dis.get_instructions(function):
        if instruction.opname == "LOAD_GLOBAL":
            # behind the counter
            return function.__code__._co_code_adaptive[instruction.cache_offset + 2 : instruction.end_offset]

def make(namespace, source="return name"):
    exec("def load(): " + source, namespace)
    return namespace.pop("load")
"""


def test_globals_and_builtins_of_numpys_functions_are_remembered() -> None:
    code = """
        import numpy as np
        found = {}
        for _ in range(3):
            np.percentile(np.arange(3.0), 50), np.arange(3.0).mean()
        for function in (np.percentile._implementation, np._core._methods._mean):
            found[function.__name__] = any(remembered(function))
        builtin = make({}, "return isinstance")
        for _ in range(3):
            assert builtin() is isinstance
        found["isinstance"] = any(remembered(builtin))
        print(json.dumps(found))
    """
    found = running.python(REMEMBERED + textwrap.dedent(code))
    assert all(found.values()), found


def test_threads_that_only_load_write_nothing() -> None:
    code = """
        import numpy as np
        load = make({"np": np}, "return [len(np.__name__) for _ in range(10_000)]")
        for _ in range(3):
            load()
        before = load.__code__._co_code_adaptive
        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(json.dumps([any(remembered(load)), load.__code__._co_code_adaptive == before]))
    """
    found, unchanged = running.python(REMEMBERED + textwrap.dedent(code))
    assert found
    assert unchanged


def test_each_change_is_seen() -> None:
    """A name comes, goes, hides a builtin and takes the place of another, between loads that had remembered."""
    code = """
        def expect(value):
            for _ in range(5):
                try:
                    found = load()
                except NameError:
                    found = None
                assert found == value, (found, value)

        own = {"name": "builtin"}
        namespace = {"__builtins__": own}
        load = make(namespace)
        for round in range(100):
            expect("builtin")
            namespace["name"] = ("global", round)
            expect(("global", round))
            namespace["name"] = round
            expect(round)
            assert namespace.popitem() == ("name", round)
            namespace["other"] = "other"
            expect("builtin")
            del own["name"]
            expect(None)
            own["more"] = "more"
            expect(None)
            own["name"] = "builtin"
            del own["more"], namespace["other"]
            if round % 10 == 0:
                copied = namespace.copy()
                namespace.clear()
                expect("builtin")
                namespace.update(copied)
    """
    running.python(REMEMBERED + textwrap.dedent(code))


def test_threads_see_a_builtin_that_is_hidden_and_shown() -> None:
    code = """
        import time
        own = {"name": ("builtin", 0)}
        namespace = {"__builtins__": own}
        function = make(namespace)
        errors = []

        def load():
            while time.monotonic() < end:
                kind, _ = function()
                if kind not in ("builtin", "global"):
                    errors.append(kind)

        def change():
            i = 0
            while time.monotonic() < end:
                i += 1
                namespace["name"] = ("global", i)
                namespace.popitem()
                namespace["other"] = ("other", i)
                own["name"] = ("builtin", i)
                namespace.popitem()

        end = time.monotonic() + 2
        threads = [threading.Thread(target=load) for _ in range(4)] + [threading.Thread(target=change)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors[0]
    """
    running.python(REMEMBERED + textwrap.dedent(code))


def test_interpreters_do_not_mix() -> None:
    """The same source in several interpreters at once, whose globals and builtins have the same versions."""
    code = """
        in_interpreters('''
            import types
            def load(): return name
            functions = []
            for i in range(50):
                before = dict.fromkeys(f"before{j}" for j in range((i + NUMBER) % 7))
                functions.append(types.FunctionType(load.__code__, {**before, "name": (NUMBER, i)}))
                functions.append(types.FunctionType(load.__code__, {"__builtins__": {**before, "name": (NUMBER, i)}}))
            for _ in range(200):
                for i, function in enumerate(functions):
                    assert function() == (NUMBER, i // 2)
        ''')
    """
    running.python(running.IN_INTERPRETERS + textwrap.dedent(code))


def test_a_forked_child_goes_on() -> None:
    code = """
        import os
        namespace = {"name": 1}
        load = make(namespace)
        for _ in range(10):
            load()
        child = os.fork()
        if child == 0:
            try:
                for round in range(1000):
                    namespace["name"] = round
                    assert load() == round
                    namespace[f"more{round}"] = None
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert load() == 1
    """
    running.python(REMEMBERED + textwrap.dedent(code))
