"""A collection, which stops all threads, is not made for a few thousand objects."""

from __future__ import annotations

import pytest
import running

pytestmark = pytest.mark.patch("cpython-patches", "few-thousand-objects")

COUNTED = """
import gc, json, threading

def collections(function):
    gc.collect()
    before = gc.get_stats()[0]["collections"]
    kept = function()
    return gc.get_stats()[0]["collections"] - before
"""


def test_none_for_fifteen_thousand() -> None:
    code = "print(json.dumps(collections(lambda: [[] for _ in range(15_000)])))"
    assert running.python(COUNTED + code) == 0


def test_importing_numpy_makes_few() -> None:
    """Stock: 7."""
    code = "print(json.dumps(collections(lambda: __import__('numpy'))))"
    assert running.python(COUNTED + code) <= 3


def test_garbage_in_cycles_goes_all_the_same() -> None:
    code = """
def make():
    for _ in range(200_000):
        cycle = []
        cycle.append(cycle)
    return len(gc.get_objects())

before = len(gc.get_objects())
made = collections(make)
print(json.dumps([made, max(0, len(gc.get_objects()) - before)]))
"""
    made, left = running.python(COUNTED + code)
    assert made >= 5
    assert left < 45_000


def test_a_threshold_that_is_set_holds() -> None:
    code = """
gc.set_threshold(100, 0)
print(json.dumps(collections(lambda: [[] for _ in range(15_000)])))
"""
    assert running.python(COUNTED + code) > 5
