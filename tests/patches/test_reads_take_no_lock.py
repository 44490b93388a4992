"""What is only read is read while another thread holds its lock: dicts by get(), cells, frozensets."""

from __future__ import annotations

import pytest
import running


@pytest.mark.patch("cpython-patches", "dict.get")
@pytest.mark.parametrize("key", ["'a'", "int", "1.5"])
def test_get(key: str) -> None:
    code = f"""
key, default, value = {key}, object(), object()
a_dict = {{key: value, "other": 2, int: value}}
assert while_locked(a_dict, lambda: (a_dict.get({key}), a_dict.get("no", default), a_dict.get(0))) == (
    value, default, None
)
"""
    running.python(running.WHILE_LOCKED + code)


@pytest.mark.patch("cpython-patches", "cells")
def test_cells() -> None:
    code = """
def outer():
    value = object()
    def inner():
        return value
    return value, inner

value, inner = outer()
assert while_locked(inner.__closure__[0], inner) is value
assert while_locked(inner.__closure__[0], lambda: inner.__closure__[0].cell_contents) is value
"""
    running.python(running.WHILE_LOCKED + code)


@pytest.mark.patch("cpython-patches", "cells")
def test_cells_that_are_set_while_they_are_read() -> None:
    code = """
        import threading

        def run():
            value, done, errors = [0], False, []

            def write():
                nonlocal value, done
                for i in range(100_000):
                    value = [i]
                done = True

            def read():
                last = 0
                while not done:
                    now = value[0]
                    if now < last:
                        errors.append((last, now))
                    last = now

            threads = [threading.Thread(target=target) for target in (read, read, read, write)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return errors

        assert run() == []
    """
    running.python(code, timeout=120)


@pytest.mark.patch("cpython-patches", "frozensets")
@pytest.mark.parametrize("expression", ["'a' in s", "{'b'} in s", "2 not in s", "s.__contains__(1)"])
def test_frozensets(expression: str) -> None:
    code = f"""
s = frozenset(["a", 1, frozenset("b")])
assert while_locked(s, lambda: {expression}) is True
"""
    running.python(running.WHILE_LOCKED + code)
