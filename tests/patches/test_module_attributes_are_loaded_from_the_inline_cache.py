"""Loads remember where a module keeps an attribute, also where it defines __getattr__, and see every change."""

from __future__ import annotations

import textwrap

import pytest
import running

pytestmark = pytest.mark.patch("cpython-patches", "Load-module-attributes")

# `entries(f)`: the cache entries of the first LOAD_ATTR of f, all zero where nothing is remembered.
ENTRIES = """
import dis, json, threading, types

def entries(function):
    for instruction in dis.get_instructions(function):
        if instruction.opname == "LOAD_ATTR":
            return function.__code__._co_code_adaptive[instruction.cache_offset : instruction.end_offset]

def make(source, name):
    namespace = {}
    exec(source, namespace)
    return namespace[name]
"""


def test_numpys_functions_are_remembered() -> None:
    code = """
        import numpy as np
        import numpy.linalg
        remembered = {}
        for name in ("sin", "add", "float64", "linalg", "pi"):
            load = make(f"def load(np): return np.{name}", "load")
            for _ in range(3):
                assert load(np) is getattr(np, name)
            remembered[name] = any(entries(load))
        print(json.dumps(remembered))
    """
    remembered = running.python(ENTRIES + textwrap.dedent(code))
    assert all(remembered.values()), remembered


def test_threads_that_only_load_write_nothing() -> None:
    code = """
        import numpy as np
        load = make("def load(np):\\n    for _ in range(10_000):\\n        np.sin", "load")
        for _ in range(3):
            load(np)
        before = load.__code__._co_code_adaptive
        threads = [threading.Thread(target=load, args=(np,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(json.dumps([any(entries(load)), load.__code__._co_code_adaptive == before]))
    """
    remembered, unchanged = running.python(ENTRIES + textwrap.dedent(code))
    assert remembered
    assert unchanged


def test_what_getattr_makes_up_is_not_remembered() -> None:
    code = """
        m = types.ModuleType("m")
        m.__getattr__ = lambda name: made[name]
        load = make("def load(m): return m.name", "load")
        for round in range(100):
            made = {"name": round}
            assert load(m) == round
        m.name = "own"
        for _ in range(2000):
            assert load(m) == "own"
        del m.name
        made = {"name": "again"}
        assert load(m) == "again"
    """
    running.python(ENTRIES + textwrap.dedent(code))


def test_names_that_the_module_type_defines() -> None:
    code = """
        m = types.ModuleType("m")
        own = {"__class__": 1, "__dict__": 2, "__annotations__": {}, "__doc__": "own"}
        m.__dict__.update(own)
        expected = own | {"__class__": types.ModuleType, "__dict__": m.__dict__}
        for name in own:
            load = make(f"def load(m): return m.{name}", "load")
            for _ in range(100):
                assert load(m) is expected[name], name
    """
    running.python(ENTRIES + textwrap.dedent(code))


def test_a_lazy_loaders_class_is_heeded() -> None:
    code = """
        import importlib.util, sys
        load = make("def load(m): return m.OrderedDict", "load")
        del sys.modules["collections"]
        spec = importlib.util.find_spec("collections")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        m = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(m)
        assert type(m) is not types.ModuleType
        first = load(m)  # loads the module, which makes it a plain one
        assert type(m) is types.ModuleType
        for _ in range(100):
            assert load(m) is first
        assert any(entries(load))
        class Other(types.ModuleType):
            OrderedDict = property(lambda self: "other")
        m.__class__ = Other
        assert load(m) == "other"
    """
    running.python(ENTRIES + textwrap.dedent(code))


def test_a_reload_is_seen() -> None:
    code = """
        import importlib, pathlib, sys, tempfile
        load = make("def load(m): return m.value", "load")
        with tempfile.TemporaryDirectory() as folder:
            sys.path.insert(0, folder)
            sys.dont_write_bytecode = True
            file = pathlib.Path(folder, "reloaded.py")
            for round in range(5):
                file.write_text(f"value = {round}\\nmore_{round} = 0\\n")
                importlib.invalidate_caches()
                m = importlib.reload(m) if round else importlib.import_module("reloaded")
                for _ in range(100):
                    assert load(m) == round, (load(m), round)
    """
    running.python(ENTRIES + textwrap.dedent(code))


def test_interpreters_do_not_mix() -> None:
    """The same source in several interpreters at once, each with modules whose keys have the same versions."""
    code = """
        in_interpreters('''
            import types
            modules = []
            for i in range(50):
                m = types.ModuleType("m")
                for j in range((i + NUMBER) % 7):
                    setattr(m, f"before{j}", None)
                m.value = (NUMBER, i)
                modules.append(m)
            def load(m): return m.value
            for _ in range(200):
                for i, m in enumerate(modules):
                    assert load(m) == (NUMBER, i)
        ''')
    """
    running.python(running.IN_INTERPRETERS + textwrap.dedent(code))


def test_a_forked_child_goes_on() -> None:
    code = """
        import os
        m = types.ModuleType("m")
        m.value = 1
        load = make("def load(m): return m.value", "load")
        for _ in range(10):
            load(m)
        child = os.fork()
        if child == 0:
            try:
                for round in range(1000):
                    m.value = round
                    assert load(m) == round
                    setattr(m, f"more{round}", None)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert load(m) == 1
    """
    running.python(ENTRIES + textwrap.dedent(code))
