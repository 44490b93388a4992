"""Attributes of types are found in the type cache, whatever else is looked up and however their names were made."""

from __future__ import annotations

import pytest
import running

# A key with the hash of a name: whoever searches the type's dict for the name compares the two.
SEARCHED = """
import ctypes, sys, warnings
warnings.simplefilter("ignore")

class Searched:
    def __init__(self, name):
        self.hash = hash(name)
        self.searches = 0

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        self.searches += 1
        return False

def names_of_one_place(number):
    '''Names with addresses that differ in no bit which the cache's hash takes, in this release or patched.'''
    groups = {}
    for i in range(100_000):
        name = sys.intern(f"missing_{i}")
        group = groups.setdefault(id(name) % 2**15, [])
        group.append(name)
        if len(group) == number:
            return group
"""


@pytest.mark.patch("cpython-patches", "share-a-place")
@pytest.mark.parametrize("number", [2, 3, 4])
def test_up_to_four_that_share_a_place(number: int) -> None:
    """Stock: each lookup of each but the last evicts another."""
    code = f"""
names = names_of_one_place({number})
keys = [Searched(name) for name in names]
C = type("C", (), dict.fromkeys(keys))
for _ in range(10):
    for name in names:
        hasattr(C, name)
before = sum(key.searches for key in keys)
assert before >= {number}
for _ in range(100):
    for name in names:
        hasattr(C, name)
print(sum(key.searches for key in keys) - before)
"""
    assert running.python(SEARCHED + code) == 0


@pytest.mark.patch("cpython-patches", "share-a-place")
def test_threads_see_changes_of_attributes_that_share_a_place() -> None:
    code = """
import threading
names = names_of_one_place(6)
C = type("C", (), dict.fromkeys(names, 0))
seen, done = [], threading.Event()

def read():
    last = [0] * len(names)
    while not done.is_set():
        for i, name in enumerate(names):
            value = getattr(C, name)
            if value < last[i]:
                seen.append((name, last[i], value))
            last[i] = value

threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
for value in range(900):  # a type gets a thousand versions
    setattr(C, names[value % len(names)], value)
    assert getattr(C, names[value % len(names)]) == value
done.set()
for thread in threads:
    thread.join()
print(len(seen))
"""
    assert running.python(SEARCHED + code, timeout=120) == 0


@pytest.mark.patch("cpython-patches", "equal-names")
@pytest.mark.parametrize(
    ("lookup", "value"),
    [
        ("hasattr(C, ''.join(['a_na', 'me']))", "missing"),
        ("hasattr(C, ''.join(['a_na', 'me']))", "present"),
        ("api.PyObject_HasAttrString(ctypes.py_object(C), b'a_name')", "missing"),
        ("api.PyObject_GetAttrString(ctypes.py_object(C), b'a_name')", "present"),
    ],
)
def test_names_that_are_made_at_each_lookup(lookup: str, value: str) -> None:
    """Stock: each lookup searches the type's dict."""
    code = f"""
api = ctypes.pythonapi
key = Searched(sys.intern("a_name"))
C = type("C", (), {{key: 0, "a_name": 1}} if {value == "present"} else {{key: 0}})

def look():
    {lookup}

for _ in range(3):
    look()
before = key.searches
assert before > 0
for _ in range(100):
    look()
print(key.searches - before)
"""
    assert running.python(SEARCHED + code) == 0
